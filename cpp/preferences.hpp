// The Laplacian of explicit preferences: a sparse graph, stored as the neighbours of each row.
//
// Every edge stands twice, once at each end: rows are then written once and read by index, so that threads never meet,
// and the result does not depend on their number. Summing differences, instead of degree * f_i - sum, keeps the digits
// of scores that have a large common part.
#pragma once

#include <cstdint>

#include "parallel.hpp"

namespace rankwise {

template <typename Row>
struct Neighbours {
    std::int64_t rows;
    const std::int64_t* start;  // (rows + 1,)
    const Row* neighbour;       // (2 * edges,)
    const double* weight;       // (2 * edges,); null: every edge weighs 1
};

namespace detail {

// Columns first .. first + K - 1 of the rows [begin, end); K is fixed so that the sums stay in registers.
template <int K, bool Weighted, typename Row>
void sum_differences(const Neighbours<Row>& graph, std::int64_t begin, std::int64_t end, const double* F, std::int64_t k,
                     std::int64_t first, double* U) {
    for (std::int64_t row = begin; row < end; ++row) {
        double own[K], sum[K] = {};
        for (int c = 0; c < K; ++c) own[c] = F[row * k + first + c];
        for (std::int64_t e = graph.start[row]; e < graph.start[row + 1]; ++e) {
            const double* other = F + static_cast<std::int64_t>(graph.neighbour[e]) * k + first;
            for (int c = 0; c < K; ++c)
                sum[c] += Weighted ? graph.weight[e] * (own[c] - other[c]) : own[c] - other[c];
        }
        for (int c = 0; c < K; ++c) U[row * k + first + c] = sum[c];
    }
}

template <bool Weighted, typename Row>
void sum_differences_by_panels(const Neighbours<Row>& graph, std::int64_t begin, std::int64_t end, const double* F,
                               std::int64_t k, double* U) {
    std::int64_t first = 0;
    for (; first + 8 <= k; first += 8) sum_differences<8, Weighted>(graph, begin, end, F, k, first, U);
    if (first + 4 <= k) {
        sum_differences<4, Weighted>(graph, begin, end, F, k, first, U);
        first += 4;
    }
    for (; first < k; ++first) sum_differences<1, Weighted>(graph, begin, end, F, k, first, U);
}

// The first row of thread t. Rows are cut where their edges are even: a popular item may have most of the pairs.
template <typename Row>
std::int64_t first_row_of(const Neighbours<Row>& graph, int t, int n_threads) {
    const std::int64_t work = graph.start[graph.rows] + graph.rows;
    const std::int64_t wanted = work / n_threads * t;
    std::int64_t low = 0, high = graph.rows;
    while (low < high) {
        const std::int64_t middle = low + (high - low) / 2;
        if (graph.start[middle] + middle < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

}  // namespace detail

// U = L F for row-major (rows, k) arrays.
template <typename Row>
void preference_laplacian(const Neighbours<Row>& graph, const double* F, std::int64_t k, double* U, int n_threads) {
    run_threads(n_threads, [&](int t) {
        const std::int64_t begin = detail::first_row_of(graph, t, n_threads);
        const std::int64_t end = t + 1 == n_threads ? graph.rows : detail::first_row_of(graph, t + 1, n_threads);
        if (graph.weight)
            detail::sum_differences_by_panels<true>(graph, begin, end, F, k, U);
        else
            detail::sum_differences_by_panels<false>(graph, begin, end, F, k, U);
    });
}

}  // namespace rankwise
