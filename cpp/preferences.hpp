// The Laplacian of explicit preferences: a sparse graph, stored as the neighbours of each row.
//
// Every edge stands twice, once at each end: rows are then written once and read by index, so that threads never meet,
// and the result does not depend on their number. Summing differences, instead of degree * f_i - sum, keeps the digits
// of scores that have a large common part.
#pragma once


#include "parallel.hpp"

namespace rankwise {

template <typename Row>
struct Neighbours {
    int64_t rows;
    const int64_t* start;  // (rows + 1,)
    const Row* neighbour;       // (2 * edges,)
    const double* weight;       // (2 * edges,); null: every edge weighs 1
};

namespace detail {

// Columns first .. first + K - 1 of the rows [begin, end); K is fixed so that the sums stay in registers.
template <int K, bool Weighted, typename Row>
void sum_differences(const Neighbours<Row>& graph, int64_t begin, int64_t end, const double* F, int64_t k,
                     int64_t first, double* U) {
    for (int64_t row = begin; row < end; ++row) {
        double own[K], sum[K] = {};
        for (int c = 0; c < K; ++c) own[c] = F[row * k + first + c];
        for (int64_t e = graph.start[row]; e < graph.start[row + 1]; ++e) {
            const double* other = F + static_cast<int64_t>(graph.neighbour[e]) * k + first;
            for (int c = 0; c < K; ++c)
                sum[c] += Weighted ? graph.weight[e] * (own[c] - other[c]) : own[c] - other[c];
        }
        for (int c = 0; c < K; ++c) U[row * k + first + c] = sum[c];
    }
}

template <bool Weighted, typename Row>
void sum_differences_by_panels(const Neighbours<Row>& graph, int64_t begin, int64_t end, const double* F,
                               int64_t k, double* U) {
    int64_t first = 0;
    for (; first + 8 <= k; first += 8) sum_differences<8, Weighted>(graph, begin, end, F, k, first, U);
    if (first + 4 <= k) {
        sum_differences<4, Weighted>(graph, begin, end, F, k, first, U);
        first += 4;
    }
    for (; first < k; ++first) sum_differences<1, Weighted>(graph, begin, end, F, k, first, U);
}

}  // namespace detail

// U = L F for row-major (rows, k) arrays.
template <typename Row>
void preference_laplacian(const Neighbours<Row>& graph, const double* F, int64_t k, double* U, int n_threads) {
    // Rows are cut where their edges are even: a popular item may have most of the pairs.
    const auto cuts = split_lines(graph.start, graph.rows, n_threads);
    run_threads(n_threads, [&](int t) {
        in_pieces(cuts[static_cast<std::size_t>(t)], cuts[static_cast<std::size_t>(t) + 1], 1 << 12, [&](int64_t begin, int64_t end) {
            if (graph.weight)
                detail::sum_differences_by_panels<true>(graph, begin, end, F, k, U);
            else
                detail::sum_differences_by_panels<false>(graph, begin, end, F, k, U);
        });
    });
}

}  // namespace rankwise
