// The steps of a dense Gram matrix X' L X that numpy cannot do in one pass over a block of rows.
//
// L does not see a shift inside a query, so rows are centred first: nothing large cancels later. Blocks are (rows, n)
// row-major doubles, copies made by the caller, and are changed in place.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "laplacian.hpp"

namespace rankwise {

inline double weight_of(const Blocks& blocks, int64_t p) { return blocks.row_weight ? blocks.row_weight[p] : 1.0; }

// out += the weighted sum of the rows; Z holds the grouped rows [from, to).
inline void add_rows(const Blocks& blocks, int64_t from, int64_t to, const double* Z, int64_t n, double* out) {
    for (int64_t p = from; p < to; ++p, Z += n) {
        const double w = weight_of(blocks, p);
        for (int64_t j = 0; j < n; ++j) out[j] += w * Z[j];
    }
}

// Subtracts `shift` from the grouped rows [from, to) in Z, adds them to the sums of their segments (rows of S, the first
// being segment `origin`; null: not wanted), and scales each by the square root of its weight times its degree.
inline void shift_rows(const Blocks& blocks, int64_t from, int64_t to, const double* shift, double* Z, int64_t n,
                       double* S, int64_t origin) {
    for_each_segment(blocks, from, to, [&](int64_t segment, int64_t a, int64_t b) {
        double* sum = S ? S + (segment - origin) * n : nullptr;
        for (int64_t p = a; p < b; ++p) {
            const double w = weight_of(blocks, p);
            const double root = std::sqrt(w * blocks.degree[segment]);
            double* z = Z + (p - from) * n;
            if (sum)
                for (int64_t j = 0; j < n; ++j) {
                    const double centred = z[j] - shift[j];
                    sum[j] += w * centred;
                    z[j] = root * centred;
                }
            else
                for (int64_t j = 0; j < n; ++j) z[j] = root * (z[j] - shift[j]);
        }
    });
}

// As shift_rows for whole queries [first, last), each shifted by its weighted mean.
inline void centre_queries(const Blocks& blocks, int64_t first, int64_t last, double* Z, int64_t n, double* S,
                           int n_threads) {
    const int64_t origin = blocks.query_start[first], segment = blocks.query_segment[first];
    run_threads(n_threads, [&](int t) {
        std::vector<double> mean(static_cast<std::size_t>(n));
        WorkCounter work;
        const int64_t end = first + part_of(last - first, t + 1, n_threads);
        for (int64_t q = first + part_of(last - first, t, n_threads); q < end; ++q) {
            const int64_t from = blocks.query_start[q], to = blocks.query_start[q + 1];
            double total = 0;
            for (int64_t p = from; p < to; ++p) total += weight_of(blocks, p);
            std::fill(mean.begin(), mean.end(), 0.0);
            double* rows = Z + (from - origin) * n;
            if (total > 0) {
                add_rows(blocks, from, to, rows, n, mean.data());
                for (double& entry : mean) entry /= total;
            }
            shift_rows(blocks, from, to, mean.data(), rows, n, S, segment);
            work.add((to - from) * n);
        }
    });
}

// T = scale * W S for the segments of whole queries [first, last), relative coupling; S and T are (segments, n).
inline void couple_relative(const Blocks& blocks, int64_t first, int64_t last, const double* S, double* T, int64_t n,
                            int n_threads) {
    const int64_t origin = blocks.query_segment[first];
    const int64_t segments = blocks.query_segment[last] - origin;
    std::fill(T, T + segments * n, 0.0);
    run_threads(n_threads, [&](int t) {
        WorkCounter work;
        const int64_t begin = origin + part_of(segments, t, n_threads);
        const int64_t end = origin + part_of(segments, t + 1, n_threads);
        for (int64_t q = first; q < last; ++q) {
            const int64_t low = blocks.query_segment[q], high = blocks.query_segment[q + 1];
            for (int64_t k = std::max(low, begin); k < std::min(high, end); ++k)
                for (int64_t l = low; l < high; ++l) {
                    if (l == k) continue;
                    const double difference = blocks.level_value[k] - blocks.level_value[l];
                    const double weight = blocks.scale[q] / (difference * difference);
                    for (int64_t j = 0; j < n; ++j) T[(k - origin) * n + j] += weight * S[(l - origin) * n + j];
                    work.add(n);
                }
        }
    });
}

}  // namespace rankwise
