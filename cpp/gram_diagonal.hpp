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
        : blocks_(blocks), g_(g), columns_(static_cast<std::size_t>(columns)), total_(columns_.size(), 0.0),
          is_in_query_(columns_.size(), 0), touched_(columns_.size() + 1) {}

    void add_query(const Matrix& X, int64_t q) {
        for (int64_t s = blocks_.query_segment[q]; s < blocks_.query_segment[q + 1]; ++s) {
            sum_segment(X, s);
            for (int64_t k = 0; k < n_touched_; ++k) close_segment(q, s, touched_[static_cast<std::size_t>(k)]);
            n_touched_ = 0;
        }
        subtract_relative(q);
        subtract_totals(q);
    }

private:
    // The sums of a column over the row and the segment that were read last.
    struct Column {
        int64_t row = -1, segment = -1;
        double of_row = 0.0, of_segment = 0.0;
    };

    struct Entry {
        int64_t column, segment;
        double sum;
    };

    void sum_segment(const Matrix& X, int64_t s) {
        for (int64_t p = blocks_.segment_start[s]; p < blocks_.segment_start[s + 1]; ++p) {
            const int64_t row = blocks_.order[p], length = X.row_length(row);
            const double w = blocks_.row_weight ? blocks_.row_weight[p] : 1.0, of_square = w * blocks_.degree[s];
            const auto* value = X.row_values(row);
            const auto* id = X.row_ids(row);
            for (int64_t e = 0; e < length; ++e) {
                const double x = value[e];
                Column& column = columns_[id[e]];
                if (column.row != p) {
                    column.row = p;
                    column.of_row = 0.0;
                }
                // A column that occurs twice in a row counts with its sum.
                g_[id[e]] += of_square * x * (2.0 * column.of_row + x);
                column.of_row += x;
                // Without a branch: whether a column is new to a query is as good as random.
                const bool is_new = column.segment != s;
                touched_[static_cast<std::size_t>(n_touched_)] = id[e];
                n_touched_ += is_new;
                column.segment = s;
                column.of_segment = (is_new ? 0.0 : column.of_segment) + w * x;
            }
            work_.add(length + 1);
        }
    }

    // "all" subtracts total^2; "others" that minus the segments' own squares; "relative" waits for all segments.
    void close_segment(int64_t q, int64_t s, int64_t j) {
        const double sum = columns_[j].of_segment;
        if (blocks_.coupling == Coupling::relative) {
            entries_.push_back({j, s, sum});
            return;
        }
        if (blocks_.coupling == Coupling::others) g_[j] += blocks_.scale[q] * sum * sum;
        if (!is_in_query_[j]) touched_by_query_.push_back(j);
        is_in_query_[j] = 1;
        total_[j] += sum;
    }

    void subtract_totals(int64_t q) {
        for (const int64_t j : touched_by_query_) {
            g_[j] -= blocks_.scale[q] * total_[j] * total_[j];
            total_[j] = 0.0;
            is_in_query_[j] = 0;
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
    std::vector<Column> columns_;
    std::vector<double> total_;
    std::vector<unsigned char> is_in_query_;
    std::vector<int64_t> touched_;  // a place more than columns
    int64_t n_touched_ = 0;
    std::vector<int64_t> touched_by_query_;
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
