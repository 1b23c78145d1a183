// Sums of products of the rows of an additive model, from codes: what its Gram matrix is made of.
//
// Two columns meet in the pair of cells that a row lies in, at positions p and q: there are sums of d, d q, d p and d p q,
// d the row's weight, which are the products of two curves' entries of the table (see additive.hpp). So a row adds four
// numbers for each pair of columns, side by side, where the product of expanded rows would add 64 for eight knots.
//
// Some columns meet some others, a tile, for all rows: their sums stay in the cache of a core, and a chunk of rows is
// decoded once for all of the tile. On an EPYC with AVX2, a pair of columns took 1.0 to 1.4 ns a row with two of them at a
// time, 5 to 20 % more with four or eight, whose places no longer fit the nearest cache.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "additive.hpp"

namespace rankwise {

namespace detail {

constexpr int64_t tile_lines = 8, tile_columns = 16;
constexpr int columns_met = 2;

// The rows of a chunk in one column.
struct MetRows {
    const double* factors;  // 1 and q, side by side
    const int32_t* cell;    // times four
    double* sums;
};

template <int Width>
void meet_plain(const double* entries, const int64_t* line, int64_t rows, const MetRows* met) {
    for (int64_t i = 0; i < rows; ++i)
        for (int w = 0; w < Width; ++w) {
            double* sum = met[w].sums + line[i] + met[w].cell[i];
            double added[4];
            for (int e = 0; e < 4; ++e) added[e] = sum[e] + entries[4 * i + e] * met[w].factors[2 * i + e % 2];
            std::copy_n(added, 4, sum);
        }
}

#if defined(RANKWISE_WIDE)
template <int Width>
RANKWISE_AVX2 void meet_avx2(const double* entries, const int64_t* line, int64_t rows, const MetRows* met) {
    MetRows own[Width];
    std::copy_n(met, Width, own);
    for (int64_t i = 0; i < rows; ++i) {
        const __m256d first = _mm256_loadu_pd(entries + 4 * i);
        const int64_t at = line[i];
        for (int w = 0; w < Width; ++w) {
            const __m256d second = _mm256_broadcast_pd(reinterpret_cast<const __m128d*>(own[w].factors + 2 * i));
            double* sum = own[w].sums + at + own[w].cell[i];
            _mm256_storeu_pd(sum, _mm256_fmadd_pd(first, second, _mm256_loadu_pd(sum)));
        }
    }
}
#endif

template <int Width>
void meet(Instructions instructions, const double* entries, const int64_t* line, int64_t rows, const MetRows* met) {
#if defined(RANKWISE_WIDE)
    if (instructions != Instructions::plain) return meet_avx2<Width>(entries, line, rows, met);
#endif
    (void)instructions;
    meet_plain<Width>(entries, line, rows, met);
}

// The columns [line, line_end) meet [column, column_end), each pair once.
class Tile {
public:
    Tile(const Additive& X, int64_t line, int64_t column)
        : X_(X), line_(line), line_end_(std::min(line + tile_lines, X.layout.columns)), column_(column),
          column_end_(std::min(column + tile_columns, X.layout.columns)),
          stride_(4 * *std::max_element(X.cells + column, X.cells + column_end_)) {
        for (int64_t j = line_; j < line_end_; ++j) {
            start_.push_back(static_cast<int64_t>(sums_.size()));
            sums_.resize(sums_.size() + static_cast<std::size_t>(X.cells[j] * stride_ * (column_end_ - column_)));
        }
        const auto rows = static_cast<std::size_t>(X.layout.chunk_rows);
        entries_.resize(4 * rows);
        places_.resize(rows);
        factors_.resize(2 * rows * tile_columns);
        cells_.resize(rows * tile_columns);
    }

    void add_rows(const double* weight) {
        X_.for_each_run(0, X_.rows, [&](int64_t, int64_t, int64_t first, int64_t last) {
            for (int64_t k = column_; k < column_end_; ++k) decode_met(k, first, last);
            for (int64_t j = line_; j < line_end_; ++j) {
                decode_own(j, first, last, weight);
                for (int64_t k = std::max(j, column_); k < column_end_; k += columns_met) meet_some(j, k, last - first);
            }
        });
    }

    void write(double* out) const {
        for (int64_t j = line_; j < line_end_; ++j)
            for (int64_t k = std::max(j, column_); k < column_end_; ++k) {
                const int64_t line = X_.curve_start[j], column = X_.curve_start[k];
                if (line < 0 || column < 0) continue;
                for (int64_t c = 0; c < X_.cells[j]; ++c)
                    for (int64_t e = 0; e < 4 * X_.cells[k]; ++e) {
                        const int64_t one = line + 2 * c + e % 4 / 2, other = column + e / 4 * 2 + e % 2;
                        out[one * X_.columns + other] = out[other * X_.columns + one] = sums_[place_of(j, k) + static_cast<std::size_t>(c * stride_ + e)];
                    }
            }
    }

private:
    std::size_t place_of(int64_t j, int64_t k) const {
        return static_cast<std::size_t>(start_[static_cast<std::size_t>(j - line_)] + (k - column_) * X_.cells[j] * stride_);
    }

    void decode_met(int64_t k, int64_t first, int64_t last) {
        const CodeRun run = X_.run(first, last, k);
        double* factors = factors_.data() + 2 * (k - column_) * X_.layout.chunk_rows;
        int32_t* cell = cells_.data() + (k - column_) * X_.layout.chunk_rows;
        for (int64_t i = 0; i < run.size; ++i) {
            factors[2 * i] = 1.0;
            factors[2 * i + 1] = run.position(i);
            cell[i] = static_cast<int32_t>(4 * run.cell(i));
        }
    }

    void decode_own(int64_t j, int64_t first, int64_t last, const double* weight) {
        const CodeRun run = X_.run(first, last, j);
        for (int64_t i = 0; i < run.size; ++i) {
            double* entry = entries_.data() + 4 * i;
            entry[0] = entry[1] = weight[first + i];
            entry[2] = entry[3] = weight[first + i] * run.position(i);
            places_[static_cast<std::size_t>(i)] = run.cell(i) * stride_;
        }
    }

    void meet_some(int64_t j, int64_t k, int64_t rows) {
        MetRows met[columns_met];
        const int64_t n = std::min<int64_t>(columns_met, column_end_ - k);
        for (int64_t w = 0; w < n; ++w) {
            const int64_t at = (k + w - column_) * X_.layout.chunk_rows;
            met[w] = {factors_.data() + 2 * at, cells_.data() + at, sums_.data() + place_of(j, k + w)};
        }
        const auto meet_all = n == columns_met ? meet<columns_met> : meet<1>;
        meet_all(X_.instructions, entries_.data(), places_.data(), rows, met);
    }

    const Additive& X_;
    int64_t line_, line_end_, column_, column_end_;
    int64_t stride_;  // entries of a line of cells
    std::vector<int64_t> start_, places_;
    std::vector<double> sums_, entries_, factors_;
    std::vector<int32_t> cells_;
};

}  // namespace detail

// out (columns, columns) = sum of weight_i x_i x_i', of curves alone; no sum depends on the number of threads.
inline void squares(const Additive& X, const double* weight, double* out, int n_threads) {
    std::vector<std::pair<int64_t, int64_t>> tiles;
    for (int64_t line = 0; line < X.layout.columns; line += detail::tile_lines)
        for (int64_t column = line; column < X.layout.columns; column += detail::tile_columns) tiles.emplace_back(line, column);
    run_parts(static_cast<int>(tiles.size()), n_threads, [&](int part) {
        const auto [line, column] = tiles[static_cast<std::size_t>(part)];
        detail::Tile tile(X, line, column);
        tile.add_rows(weight);
        tile.write(out);
    });
}

// out (units, columns): the weighted sums of the rows order[p], start[u] <= p < start[u + 1], of each unit.
inline void sums_of_units(const Additive& X, const int64_t* order, const double* weight, const int64_t* start, int64_t units,
                          double* out, int n_threads) {
    run_threads(n_threads, [&](int t) {
        for (int64_t u = part_of(units, t, n_threads); u < part_of(units, t + 1, n_threads); ++u) {
            double* sums = out + u * X.columns;
            std::fill_n(sums, X.columns, 0.0);
            for (int64_t p = start[u]; p < start[u + 1]; ++p) {
                const double w = weight ? weight[p] : 1.0;
                detail::row_scatter<1>(X, order[p], &w, sums);
            }
        }
    });
}

}  // namespace rankwise
