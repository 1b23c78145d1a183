// diag(X' L X) of a sparse X in one pass:
//
//     sum of w_i degree_i x_ij^2  -  sum over queries of scale_q * sum over segments W(k, l) S_kj S_lj
//
// where S_kj is the weighted sum of column j over segment k. Only the columns that a query touches are visited.
#pragma once

#include <algorithm>
#include <vector>

#include "csr.hpp"
#include "laplacian.hpp"

namespace rankwise {

namespace detail {

template <typename Matrix>
class GramDiagonal {
public:
    GramDiagonal(int64_t columns, const Blocks& blocks, double* g)
        : blocks_(blocks), g_(g), squares_(columns), segment_(static_cast<std::size_t>(columns), 0.0),
          total_(segment_.size(), 0.0), seen_(segment_.size(), 0) {}

    void add_query(const Matrix& X, int64_t q) {
        for (int64_t s = blocks_.query_segment[q]; s < blocks_.query_segment[q + 1]; ++s) {
            sum_segment(X, s);
            for (const int64_t j : touched_) close_segment(q, s, j);
            touched_.clear();
        }
        subtract_relative(q);
        subtract_totals(q);
    }

private:
    struct Entry {
        int64_t column, segment;
        double sum;
    };

    enum : unsigned char { in_query = 1, in_segment = 2 };

    void sum_segment(const Matrix& X, int64_t s) {
        for (int64_t p = blocks_.segment_start[s]; p < blocks_.segment_start[s + 1]; ++p) {
            const int64_t row = blocks_.order[p];
            const double w = blocks_.row_weight ? blocks_.row_weight[p] : 1.0;
            squares_.add(X, row, w * blocks_.degree[s], g_);
            const auto* value = X.row_values(row);
            const auto* id = X.row_ids(row);
            for (int64_t e = 0; e < X.row_length(row); ++e) {
                const int64_t j = id[e];
                if (!(seen_[j] & in_segment)) touched_.push_back(j);
                seen_[j] |= in_segment;
                segment_[j] += w * value[e];
            }
            work_.add(X.row_length(row) + 1);
        }
    }

    // "all" subtracts total^2; "others" that minus the segments' own squares; "relative" waits for all segments.
    void close_segment(int64_t q, int64_t s, int64_t j) {
        const double sum = segment_[j];
        segment_[j] = 0.0;
        seen_[j] &= in_query;
        if (blocks_.coupling == Coupling::relative) {
            entries_.push_back({j, s, sum});
            return;
        }
        if (blocks_.coupling == Coupling::others) g_[j] += blocks_.scale[q] * sum * sum;
        if (!(seen_[j] & in_query)) touched_by_query_.push_back(j);
        seen_[j] |= in_query;
        total_[j] += sum;
    }

    void subtract_totals(int64_t q) {
        for (const int64_t j : touched_by_query_) {
            g_[j] -= blocks_.scale[q] * total_[j] * total_[j];
            total_[j] = 0.0;
            seen_[j] = 0;
        }
        touched_by_query_.clear();
    }

    void subtract_relative(int64_t q) {
        std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
            return a.column != b.column ? a.column < b.column : a.segment < b.segment;
        });
        for (auto a = entries_.begin(); a != entries_.end(); ++a)
            for (auto b = a + 1; b != entries_.end() && b->column == a->column; ++b) {
                const double difference = blocks_.level_value[a->segment] - blocks_.level_value[b->segment];
                g_[a->column] -= 2.0 * blocks_.scale[q] * a->sum * b->sum / (difference * difference);
            }
        entries_.clear();
    }

    const Blocks& blocks_;
    double* g_;
    RowSquares squares_;
    std::vector<double> segment_, total_;
    std::vector<unsigned char> seen_;
    std::vector<int64_t> touched_, touched_by_query_;
    std::vector<Entry> entries_;
    WorkCounter work_;
};

}  // namespace detail

// Queries are cut among threads by their rows.
template <typename Matrix>
void gram_diagonal(const Matrix& X, const Blocks& blocks, double* out, int n_threads) {
    Accumulators g(n_threads, X.columns);
    const auto cuts = split_lines(blocks.query_start, blocks.queries, n_threads);
    run_threads(n_threads, [&](int t) {
        detail::GramDiagonal<Matrix> diagonal(X.columns, blocks, g.open(t));
        const auto rows_of = [&](int64_t q) {
            return rows_among(blocks.order, blocks.query_start[q], blocks.query_start[q + 1]);
        };
        walk_units(X, cuts[t], cuts[t + 1], rows_of, [&](const Matrix& view, int64_t from, int64_t to) {
            for (int64_t q = from; q < to; ++q) diagonal.add_query(view, q);
        });
    });
    unpack_sum<1>(g, out, X.columns, 1, 0, 1, nullptr, n_threads);
}

}  // namespace rankwise
