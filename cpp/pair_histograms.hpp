// Sums of g and h over the pairs of bins of two columns, for listed pairs of columns: what choosing interactions needs.
#pragma once

#include <stdint.h>

#include <algorithm>

#include "interruption.hpp"
#include "parallel.hpp"

namespace rankwise {

constexpr int most_bins = 16;

// Bins are by columns: (columns, rows), each below most_bins.
struct BinnedRows {
    int64_t rows = 0;
    const uint8_t* bins = nullptr;
    const double* g = nullptr;
    const double* h = nullptr;

    const uint8_t* column(int64_t j) const { return bins + j * rows; }
};

// out (pairs, most_bins, most_bins, 2): sums of g and h side by side, by the bin of the first column and that of the second.
inline void pair_histograms(const BinnedRows& X, const int64_t* first, const int64_t* second, int64_t pairs, double* out,
                            int n_threads) {
    constexpr int64_t size = 2 * most_bins * most_bins;
    run_threads(n_threads, [&](int t) {
        for (int64_t p = part_of(pairs, t, n_threads); p < part_of(pairs, t + 1, n_threads); ++p) {
            const uint8_t *a = X.column(first[p]), *b = X.column(second[p]);
            double* sums = std::fill_n(out + p * size, size, 0.0) - size;
            for (int64_t i = 0; i < X.rows; ++i) {
                double* cell = sums + 2 * (a[i] * most_bins + b[i]);
                cell[0] += X.g[i];
                cell[1] += X.h[i];
            }
            check_interrupted();
        }
    });
}

}  // namespace rankwise
