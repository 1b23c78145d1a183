// Pairs of rows scored by the models that saw neither of them: what src/rankwise/holdout derives, a pair at a time.
#pragma once

#include <algorithm>

#include "parallel.hpp"

namespace rankwise {

// One global ranking whose rows are ridge regression: T = M - uu', its diagonal d, the residuals e = Tt.
struct RidgeRows {
    const double* label;
    const double* diagonal;
    const double* residual;
    const double* root_share;  // u: the roots of the rows' shares of the weight
};

struct PairCounts {
    double wrong = 0.0;
    double right = 0.0;
};

// Counts the pairs (i, j), first_row <= i, i < j, of a block of T that hold rows [first_row, + n_rows) and columns
// [first_column, + n_columns). Row by row without branches, so that the compiler works on several pairs at once.
//
// With U = {i, j}, e_U = T_UU^-1 (Tt)_U and the held-out difference is (y_i - y_j) - (e_i/u_i - e_j/u_j). The sign of
// gap (gap det - numerator) tells right from wrong, since det > 0; what rounding cannot tell from zero is neither.
template <bool Weighted>
PairCounts count_ridge_pairs(const RidgeRows& rows, const double* across, int64_t first_row, int64_t n_rows,
                             int64_t first_column, int64_t n_columns, double rounding) {
    PairCounts total;
    WorkCounter work;
    for (int64_t r = 0; r < n_rows; ++r) {
        const int64_t i = first_row + r;
        const double* t = across + r * n_columns;
        const double y_i = rows.label[i], d_i = rows.diagonal[i], e_i = rows.residual[i], u_i = rows.root_share[i];
        const double inverse_i = 1.0 / u_i, scaled_i = e_i * inverse_i;
        double wrong = 0.0, right = 0.0;
        for (int64_t c = std::max<int64_t>(0, i + 1 - first_column); c < n_columns; ++c) {
            const int64_t j = first_column + c;
            const double gap = y_i - rows.label[j], d_j = rows.diagonal[j], e_j = rows.residual[j];
            const double product = d_i * d_j;
            double numerator, weight = 1.0;
            if constexpr (Weighted) {
                const double u_j = rows.root_share[j], inverse_j = 1.0 / u_j;
                numerator = t[c] * (e_i * inverse_j - inverse_i * e_j) + scaled_i * d_j - d_i * e_j * inverse_j;
                weight = u_i * u_i * u_j * u_j;
            } else {
                numerator = inverse_i * (t[c] * (e_i - e_j) + e_i * d_j - d_i * e_j);
            }
            const double success = gap * (gap * (product - t[c] * t[c]) - numerator);
            const double bound = rounding * product * gap * gap;
            wrong += success < -bound ? weight : 0.0;
            right += success > bound ? weight : 0.0;
        }
        total.wrong += wrong;
        total.right += right;
        work.add(n_columns);
    }
    return total;
}

}  // namespace rankwise
