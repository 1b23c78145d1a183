// Sums of g and h over the pairs of bins of two columns, for many pairs of columns: what choosing interactions needs.
//
// One pair of columns after the other, four at a time that share the first column: their tables stay in the nearest cache,
// and rows that fall in the same cell wait for each other only every fourth addition. Nothing of the size of all
// histograms exists unless the caller asks for it.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <vector>

#include "interruption.hpp"
#include "parallel.hpp"

namespace rankwise {

constexpr int most_bins = 16;
constexpr int pairs_at_once = 4;

// Bins are by columns: (columns, rows), each below most_bins.
struct BinnedRows {
    int64_t rows = 0;
    const uint8_t* bins = nullptr;
    const double* g = nullptr;
    const double* h = nullptr;

    const uint8_t* column(int64_t j) const { return bins + j * rows; }
};

// Sums of g and h side by side, by the bin of the first column and that of the second.
struct PairHistogram {
    double sum[most_bins * most_bins][2];
};

namespace detail {

template <int Width>
void add_to_histograms(const BinnedRows& X, int64_t first, const int64_t* second, PairHistogram* out) {
    const uint8_t* a = X.column(first);
    const uint8_t* b[Width];
    for (int w = 0; w < Width; ++w) b[w] = X.column(second[w]);
    std::fill_n(&out[0].sum[0][0], Width * 2 * most_bins * most_bins, 0.0);
    for (int64_t i = 0; i < X.rows; ++i) {
        const double g = X.g[i], h = X.h[i];
        const int64_t row = a[i] * most_bins;
        for (int w = 0; w < Width; ++w) {
            double* cell = out[w].sum[row + b[w][i]];
            const double sum_g = cell[0] + g, sum_h = cell[1] + h;
            cell[0] = sum_g;
            cell[1] = sum_h;
        }
    }
}

// Calls use(k, histogram) for the pairs (first, second[k]), k < n.
template <typename Use>
void for_each_histogram(const BinnedRows& X, int64_t first, const int64_t* second, int64_t n, Use&& use) {
    alignas(64) PairHistogram tables[pairs_at_once];
    int64_t k = 0;
    for (; k + pairs_at_once <= n; k += pairs_at_once) {
        add_to_histograms<pairs_at_once>(X, first, second + k, tables);
        for (int w = 0; w < pairs_at_once; ++w) use(k + w, tables[w]);
        check_interrupted();
    }
    for (; k < n; ++k) {
        add_to_histograms<1>(X, first, second + k, tables);
        use(k, tables[0]);
    }
}

inline double gain_of(const double* sum, double penalty) {
    const double weight = sum[1] + penalty;
    return weight > 0 ? sum[0] * sum[0] / weight : 0.0;
}

// What a pair explains beyond its two columns: the gain of its cells minus that of the rows and of the columns of the table.
inline double pair_gain(const PairHistogram& table, double penalty) {
    double gain = 0;
    double rows[most_bins][2] = {}, columns[most_bins][2] = {}, total[2] = {};
    for (int i = 0; i < most_bins; ++i)
        for (int j = 0; j < most_bins; ++j) {
            const double* cell = table.sum[i * most_bins + j];
            gain += gain_of(cell, penalty);
            for (int e = 0; e < 2; ++e) {
                rows[i][e] += cell[e];
                columns[j][e] += cell[e];
                total[e] += cell[e];
            }
        }
    for (int i = 0; i < most_bins; ++i) gain -= gain_of(rows[i], penalty) + gain_of(columns[i], penalty);
    return gain + gain_of(total, penalty);
}

}  // namespace detail

// out (columns, columns), symmetric, with zeros on the diagonal.
inline void pair_gains(const BinnedRows& X, int64_t columns, double penalty, double* out, int n_threads) {
    std::vector<int64_t> all(static_cast<std::size_t>(columns));
    for (int64_t j = 0; j < columns; ++j) all[static_cast<std::size_t>(j)] = j;
    run_parts(static_cast<int>(columns), n_threads, [&](int part) {
        const int64_t i = part;
        out[i * columns + i] = 0.0;
        detail::for_each_histogram(X, i, all.data() + i + 1, columns - i - 1, [&](int64_t k, const PairHistogram& table) {
            const int64_t j = i + 1 + k;
            out[i * columns + j] = out[j * columns + i] = detail::pair_gain(table, penalty);
        });
    });
}

// out (pairs, most_bins, most_bins, 2) for listed pairs.
inline void pair_histograms(const BinnedRows& X, const int64_t* first, const int64_t* second, int64_t pairs, double* out,
                            int n_threads) {
    constexpr int64_t size = 2 * most_bins * most_bins;
    run_threads(n_threads, [&](int t) {
        for (int64_t p = part_of(pairs, t, n_threads); p < part_of(pairs, t + 1, n_threads); ++p)
            detail::for_each_histogram(X, first[p], second + p, 1, [&](int64_t, const PairHistogram& table) {
                std::copy_n(&table.sum[0][0], size, out + p * size);
            });
    });
}

}  // namespace rankwise
