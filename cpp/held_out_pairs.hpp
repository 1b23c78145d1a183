// Pairs of rows scored by the models that saw neither of them: what src/rankwise/holdout derives, a pair at a time.
#pragma once

#include <algorithm>
#include <cmath>
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

// What leaves with rows i of level a and j of level b, once B answers for all rows (src/rankwise/holdout/level_pairs.py):
// the system without them is B^-1 + V M V' with V = (e_i, e_j, h_1, ..., h_p), and its right-hand side g - rho_a e_i -
// rho_b e_j. With Q = V'BV the scores of i and j are the first two entries of (I + Q M)^-1 (V'Bg - Q (rho_a, rho_b, 0, ...)).
struct PairUpdate {
    const double* correction;      // M, (p + 2, p + 2)
    const double* vector_products; // h'Bh, (p, p)
    const double* pulled_vectors;  // h'Bg, (p,)
    double pull_a, pull_b;         // rho
};

namespace detail {

// Solves a small system in place by elimination with partial pivoting; the matrix is row by row.
template <int64_t n>
void solve_small(double* matrix, double* rhs) {
    for (int64_t k = 0; k < n; ++k) {
        int64_t pivot = k;
        for (int64_t r = k + 1; r < n; ++r)
            if (std::abs(matrix[r * n + k]) > std::abs(matrix[pivot * n + k])) pivot = r;
        if (pivot != k) {
            for (int64_t c = k; c < n; ++c) std::swap(matrix[k * n + c], matrix[pivot * n + c]);
            std::swap(rhs[k], rhs[pivot]);
        }
        const double inverse = 1.0 / matrix[k * n + k];
        for (int64_t r = k + 1; r < n; ++r) {
            const double factor = matrix[r * n + k] * inverse;
            for (int64_t c = k + 1; c < n; ++c) matrix[r * n + c] -= factor * matrix[k * n + c];
            rhs[r] -= factor * rhs[k];
        }
    }
    for (int64_t k = n - 1; k >= 0; --k) {
        for (int64_t c = k + 1; c < n; ++c) rhs[k] -= matrix[k * n + c] * rhs[c];
        rhs[k] /= matrix[k * n + k];
    }
}

}  // namespace detail

// Writes f(i), f(j) of the model without i and j. to_i, to_j: the entries of Bh at i and j; pulled: those of Bg.
// For two vectors or four: a number that the compiler knows unrolls the loops.
template <int64_t P>
void held_out_scores(const PairUpdate& update, double B_ii, double B_ij, double B_jj, const double* to_i,
                     const double* to_j, double pulled_i, double pulled_j, double* scores) {
    constexpr int64_t n = P + 2;
    double Q[n * n], system[n * n], rhs[n];
    Q[0] = B_ii;
    Q[1] = Q[n] = B_ij;
    Q[n + 1] = B_jj;
    for (int64_t k = 0; k < P; ++k) {
        Q[k + 2] = Q[(k + 2) * n] = to_i[k];
        Q[n + k + 2] = Q[(k + 2) * n + 1] = to_j[k];
        for (int64_t l = 0; l < P; ++l) Q[(k + 2) * n + l + 2] = update.vector_products[k * P + l];
    }
    for (int64_t r = 0; r < n; ++r) {
        for (int64_t c = 0; c < n; ++c) {
            double sum = r == c;
            for (int64_t k = 0; k < n; ++k) sum += Q[r * n + k] * update.correction[k * n + c];
            system[r * n + c] = sum;
        }
        const double pulled = r == 0 ? pulled_i : r == 1 ? pulled_j : update.pulled_vectors[r - 2];
        rhs[r] = pulled - update.pull_a * Q[r * n] - update.pull_b * Q[r * n + 1];
    }
    detail::solve_small<n>(system, rhs);
    scores[0] = rhs[0];
    scores[1] = rhs[1];
}

// The rows of one level.
struct LevelRows {
    int64_t size;
    const double* own;     // (size,) the diagonal of B
    const double* to;      // (size, p) rows of Bh
    const double* pulled;  // (size,) entries of Bg
};

// Fills scores (rows of a, rows of b, 2) for two levels; across: B between their rows.
template <int64_t P>
void level_pair_scores(const PairUpdate& update, const double* across, const LevelRows& a, const LevelRows& b,
                       double* scores, int n_threads) {
    run_threads(n_threads, [&](int t) {
        WorkCounter work;
        for (int64_t i = part_of(a.size, t, n_threads); i < part_of(a.size, t + 1, n_threads); ++i) {
            for (int64_t j = 0; j < b.size; ++j)
                held_out_scores<P>(update, a.own[i], across[i * b.size + j], b.own[j], a.to + i * P, b.to + j * P,
                                   a.pulled[i], b.pulled[j], scores + (i * b.size + j) * 2);
            work.add(32 * b.size);
        }
    });
}

// The same for several pairs of levels of a complete multipartite graph of n_rows rows; B and Bg hold the rows of the
// first level, then those of the second, padded to one width. Here h are the indicators of the two levels, and
// M = ((n_a - n_rows + 1, -1, -1, 0), (-1, n_b - n_rows + 1, 0, -1), (-1, 0, 0, 0), (0, -1, 0, 0)).
inline void multipartite_pair_scores(int64_t n_groups, int64_t width, const double* B, const double* pulled,
                                     const int64_t* sizes, const double* pulls, int64_t n_rows,
                                     double* scores) {
    std::vector<double> to_levels(static_cast<std::size_t>(2 * width));
    double* to = to_levels.data();
    WorkCounter work;
    for (int64_t g = 0; g < n_groups; ++g) {
        const int64_t n_a = sizes[2 * g], n_b = sizes[2 * g + 1];
        const double* matrix = B + g * width * width;
        const double* own_pulled = pulled + g * width;
        double products[4] = {0.0, 0.0, 0.0, 0.0}, sums[2] = {0.0, 0.0};
        for (int64_t r = 0; r < n_a + n_b; ++r) {
            to[2 * r] = to[2 * r + 1] = 0.0;
            for (int64_t c = 0; c < n_a; ++c) to[2 * r] += matrix[r * width + c];
            for (int64_t c = n_a; c < n_a + n_b; ++c) to[2 * r + 1] += matrix[r * width + c];
            products[2 * (r >= n_a)] += to[2 * r];
            products[2 * (r >= n_a) + 1] += to[2 * r + 1];
            sums[r >= n_a] += own_pulled[r];
        }
        const double m_a = static_cast<double>(n_a - n_rows + 1), m_b = static_cast<double>(n_b - n_rows + 1);
        const double M[16] = {m_a, -1, -1, 0, -1, m_b, 0, -1, -1, 0, 0, 0, 0, -1, 0, 0};
        const PairUpdate update{M, products, sums, pulls[2 * g], pulls[2 * g + 1]};
        for (int64_t i = 0; i < n_a; ++i)
            for (int64_t b = n_a; b < n_a + n_b; ++b, scores += 2)
                held_out_scores<2>(update, matrix[i * width + i], matrix[i * width + b], matrix[b * width + b],
                                   to + 2 * i, to + 2 * b, own_pulled[i], own_pulled[b], scores);
        work.add(32 * n_a * n_b);
    }
}

}  // namespace rankwise
