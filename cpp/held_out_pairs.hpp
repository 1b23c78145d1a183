// Pairs of rows judged by the models that saw neither of them: what src/rankwise/holdout derives, a pair at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

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
PairCounts count_ridge_pairs(const RidgeRows& rows, const double* across, std::int64_t first_row, std::int64_t n_rows,
                             std::int64_t first_column, std::int64_t n_columns, double rounding) {
    PairCounts total;
    for (std::int64_t r = 0; r < n_rows; ++r) {
        const std::int64_t i = first_row + r;
        const double* t = across + r * n_columns;
        const double y_i = rows.label[i], d_i = rows.diagonal[i], e_i = rows.residual[i], u_i = rows.root_share[i];
        const double inverse_i = 1.0 / u_i, scaled_i = e_i * inverse_i;
        double wrong = 0.0, right = 0.0;
        for (std::int64_t c = std::max<std::int64_t>(0, i + 1 - first_column); c < n_columns; ++c) {
            const std::int64_t j = first_column + c;
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
    }
    return total;
}

// One ranking in which pairs are weighed by the levels of their rows: L = P - C W C', P diagonal and constant on a
// level, C the indicators of the levels. Without rows i of level a and j of level b it is
//
//     P - E P_E E' - C' W C''   with E = (e_i, e_j) and C' = C without those rows,
//
// so with A = (alpha K^-1 + P)^-1, V = (E, C'), Q = V'AV, S = diag(P_E, W) and the linear term r = V rho the scores of
// i and j are the first two entries of Q (I - S Q)^-1 rho.
struct LevelPair {
    std::int64_t n_levels;
    std::int64_t level_a, level_b;
    double degree_a, degree_b;     // P on the two levels
    const double* coupling;        // W, (levels, levels)
    const double* pull;            // rho, (levels,)
    const double* level_products;  // C'AC, (levels, levels)
};

namespace detail {

// Solves a small system in place by elimination with partial pivoting; the matrix is row by row.
inline void solve_small(double* matrix, double* rhs, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) {
        std::int64_t pivot = k;
        for (std::int64_t r = k + 1; r < n; ++r)
            if (std::abs(matrix[r * n + k]) > std::abs(matrix[pivot * n + k])) pivot = r;
        if (pivot != k) {
            for (std::int64_t c = k; c < n; ++c) std::swap(matrix[k * n + c], matrix[pivot * n + c]);
            std::swap(rhs[k], rhs[pivot]);
        }
        const double inverse = 1.0 / matrix[k * n + k];
        for (std::int64_t r = k + 1; r < n; ++r) {
            const double factor = matrix[r * n + k] * inverse;
            for (std::int64_t c = k + 1; c < n; ++c) matrix[r * n + c] -= factor * matrix[k * n + c];
            rhs[r] -= factor * rhs[k];
        }
    }
    for (std::int64_t k = n - 1; k >= 0; --k) {
        for (std::int64_t c = k + 1; c < n; ++c) rhs[k] -= matrix[k * n + c] * rhs[c];
        rhs[k] /= matrix[k * n + k];
    }
}

}  // namespace detail

// Fills scores (rows of a, rows of b, 2) with f(i), f(j) of the models without i and j.
//
// across: A between the rows of a and of b; own_a, own_b: its diagonal; to_levels_a, to_levels_b: rows of AC.
inline void level_pair_scores(const LevelPair& pair, const double* across, std::int64_t n_a, std::int64_t n_b,
                              const double* own_a, const double* own_b, const double* to_levels_a,
                              const double* to_levels_b, double* scores, int n_threads) {
    const std::int64_t levels = pair.n_levels, n = levels + 2, a = pair.level_a, b = pair.level_b;
    run_threads(n_threads, [&](int thread) {
        std::vector<double> Q(static_cast<std::size_t>(n * n)), system(Q.size()), rhs(static_cast<std::size_t>(n));
        for (std::int64_t i = n_a * thread / n_threads; i < n_a * (thread + 1) / n_threads; ++i) {
            const double* c_i = to_levels_a + i * levels;
            for (std::int64_t j = 0; j < n_b; ++j) {
                const double* c_j = to_levels_b + j * levels;
                const double A_ii = own_a[i], A_ij = across[i * n_b + j], A_jj = own_b[j];
                Q[0] = A_ii;
                Q[1] = Q[static_cast<std::size_t>(n)] = A_ij;
                Q[static_cast<std::size_t>(n + 1)] = A_jj;
                for (std::int64_t l = 0; l < levels; ++l) {
                    const double is_a = l == a, is_b = l == b;
                    const double q_i = c_i[l] - is_a * A_ii - is_b * A_ij, q_j = c_j[l] - is_a * A_ij - is_b * A_jj;
                    Q[static_cast<std::size_t>(l + 2)] = Q[static_cast<std::size_t>((l + 2) * n)] = q_i;
                    Q[static_cast<std::size_t>(n + l + 2)] = Q[static_cast<std::size_t>((l + 2) * n + 1)] = q_j;
                    for (std::int64_t k = 0; k <= l; ++k) {
                        // C'AC' = C'AC with a row and a column less of each of the two levels.
                        double q = pair.level_products[l * levels + k] - is_a * c_i[k] - is_b * c_j[k];
                        q -= (k == a) * q_i + (k == b) * q_j;
                        Q[static_cast<std::size_t>((l + 2) * n + k + 2)] = q;
                        Q[static_cast<std::size_t>((k + 2) * n + l + 2)] = q;
                    }
                }
                for (std::int64_t c = 0; c < n; ++c) {
                    system[static_cast<std::size_t>(c)] = -pair.degree_a * Q[static_cast<std::size_t>(c)];
                    system[static_cast<std::size_t>(n + c)] = -pair.degree_b * Q[static_cast<std::size_t>(n + c)];
                }
                for (std::int64_t l = 0; l < levels; ++l)
                    for (std::int64_t c = 0; c < n; ++c) {
                        double sum = 0.0;
                        for (std::int64_t k = 0; k < levels; ++k)
                            sum += pair.coupling[l * levels + k] * Q[static_cast<std::size_t>((k + 2) * n + c)];
                        system[static_cast<std::size_t>((l + 2) * n + c)] = -sum;
                    }
                rhs[0] = rhs[1] = 0.0;
                for (std::int64_t k = 0; k < n; ++k) system[static_cast<std::size_t>(k * n + k)] += 1.0;
                for (std::int64_t l = 0; l < levels; ++l) rhs[static_cast<std::size_t>(l + 2)] = pair.pull[l];
                detail::solve_small(system.data(), rhs.data(), n);
                double f_i = 0.0, f_j = 0.0;
                for (std::int64_t c = 0; c < n; ++c) {
                    f_i += Q[static_cast<std::size_t>(c)] * rhs[static_cast<std::size_t>(c)];
                    f_j += Q[static_cast<std::size_t>(n + c)] * rhs[static_cast<std::size_t>(c)];
                }
                scores[(i * n_b + j) * 2] = f_i;
                scores[(i * n_b + j) * 2 + 1] = f_j;
            }
        }
    });
}

}  // namespace rankwise
