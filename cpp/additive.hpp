// Products with the matrix of an additive model, from codes (see additive_terms.hpp); every sum is kept in double.
//
// What products multiply is a table of *cells*. In cell c of a column, at the integer position p, a curve reads
//
//     table[2 c] + p table[2 c + 1]
//
// and a surface, in the pair of cells of its two sides at positions s and t inside them,
//
//     table[0] + s table[1] + t table[2] + s t table[3]
//
// so this is a matrix with an entry of the table for each of its columns. How the values at knots become such a table is
// a small sparse matrix of the caller's.
//
// A chunk of rows is walked column by column: the few cells of a column then stay in the nearest cache, and the scores
// of the chunk too.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "additive_kernels.hpp"
#include "additive_terms.hpp"
#include "csr.hpp"
#include "fused.hpp"

namespace rankwise {

struct Additive {
    int64_t rows = 0;
    int64_t columns = 0;  // entries of the table
    const uint32_t* codes = nullptr;
    CodeLayout layout{0, 1};
    int64_t first = 0;                      // where row 0 stands among the rows of the layout
    const int32_t* shift = nullptr;         // (coded columns,)
    const int32_t* cells = nullptr;         // (coded columns,)
    const int64_t* curve_start = nullptr;   // (coded columns,) where the table of its curve begins; -1: it has none
    int64_t decoded = 0;                    // sides [0, decoded) are those of surfaces; others are for expanding rows only
    const int32_t* side_column = nullptr;   // (sides,) the coded column
    const int64_t* side_start = nullptr;    // (sides,) where its cells begin in the three arrays below
    const int32_t* side_cell = nullptr;     // cell of the side for each cell of the column
    const double* side_origin = nullptr;    // position in it where the column's cell begins
    const double* side_slope = nullptr;     // and what it gains for each step of the code's position
    const int32_t* side_cells = nullptr;    // (sides,) how many cells the side has
    int64_t surfaces = 0;
    const int32_t* surface_sides = nullptr;  // (surfaces, 2)
    const int64_t* surface_start = nullptr;  // (surfaces,)
    Instructions instructions = Instructions::plain;

    // Calls visit(from, to, first, last) for the rows [first, last) of each chunk among the rows [a, b): they lie in the run
    // [from, to), which may begin and end with rows of somebody else. Rows may be negative, or beyond the last one, there.
    template <typename Visit>
    void for_each_run(int64_t a, int64_t b, Visit&& visit) const {
        for (int64_t next = a; next < b;) {
            const int64_t in_chunk = (first + next) % layout.chunk_rows;
            const int64_t last = std::min(b, next + layout.chunk_rows - in_chunk), from = next - in_chunk % run_unit;
            const int64_t to = from + (last - from + run_unit - 1) / run_unit * run_unit;
            visit(from, to, next, last);
            check_interrupted();
            next = last;
        }
    }

    const uint32_t* piece(int64_t row, int64_t column) const { return codes + layout.at(first + row, column); }

    CodeRun run(int64_t from, int64_t to, int64_t column) const {
        return {piece(from, column), to - from, static_cast<int>(shift[column]), cells[column]};
    }

    // Where a row stands on a side.
    Place place_on(int64_t side, int64_t row) const {
        const CodeRun code = run(row, row + 1, side_column[side]);
        const int64_t c = side_start[side] + code.cell(0);
        return {side_cell[c], side_origin[c] + side_slope[c] * code.position(0)};
    }
};

namespace detail {

// Room for the rows of a run: their scores, and the sides of surfaces, decoded. Each thread keeps its own, for asking for
// it again and again takes longer than filling it.
class RunRoom {
public:
    static RunRoom& of_thread(const Additive& X, int width) {
        thread_local RunRoom own;
        own.make_room(X, width);
        return own;
    }

    double* scores() { return scores_.get(); }

    void decode(const Additive& X, int64_t from, int64_t to) {
        for (int64_t side = 0; side < X.decoded; ++side) {
            const CodeRun run = X.run(from, to, X.side_column[side]);
            const int64_t start = X.side_start[side];
            decode_side(X.instructions, run, {X.side_cell + start, X.side_origin + start, X.side_slope + start},
                        cell_.data() + side * stride_, position_.get() + side * stride_);
        }
    }

    PairRun pair(const Additive& X, int64_t surface, int64_t rows) const {
        const int64_t one = X.surface_sides[2 * surface], other = X.surface_sides[2 * surface + 1];
        return {cell_.data() + one * stride_, cell_.data() + other * stride_, position_.get() + one * stride_,
                position_.get() + other * stride_, rows, X.side_cells[other], X.side_cells[one] * X.side_cells[other]};
    }

private:
    void make_room(const Additive& X, int width) {
        stride_ = X.layout.chunk_rows;
        if (stride_ * width > scores_size_) scores_ = allocate(scores_size_ = stride_ * width);
        if (stride_ * X.decoded <= sides_size_) return;
        sides_size_ = stride_ * X.decoded;
        position_ = allocate(sides_size_);
        cell_.resize(static_cast<std::size_t>(sides_size_));
    }

    int64_t stride_ = 0, scores_size_ = 0, sides_size_ = 0;
    Buffer scores_, position_;
    std::vector<int32_t> cell_;
};

// f = X v for the rows [a, b); v and f are packed.
template <int K>
void range_dot(const Additive& X, int64_t a, int64_t b, const double* v, double* f) {
    RunRoom& room = RunRoom::of_thread(X, K);
    X.for_each_run(a, b, [&](int64_t from, int64_t to, int64_t first, int64_t last) {
        double* scores = room.scores();
        std::fill(scores, scores + (to - from) * K, 0.0);
        for (int64_t j = 0; j < X.layout.columns; ++j)
            if (X.curve_start[j] >= 0) read_column<K>(X.instructions, X.run(from, to, j), v + X.curve_start[j] * K, scores);
        if (X.surfaces) room.decode(X, from, to);
        for (int64_t s = 0; s < X.surfaces; ++s)
            read_surface<K>(X.instructions, room.pair(X, s, to - from), v + X.surface_start[s] * K, scores);
        std::copy(scores + (first - from) * K, scores + (last - from) * K, f + (first - a) * K);
    });
}

// g += X'u for the rows [a, b); u and g are packed.
template <int K>
void range_scatter(const Additive& X, int64_t a, int64_t b, const double* u, double* g) {
    RunRoom& room = RunRoom::of_thread(X, K);
    X.for_each_run(a, b, [&](int64_t from, int64_t to, int64_t first, int64_t last) {
        double* scores = room.scores();
        std::fill(scores, scores + (first - from) * K, 0.0);
        std::copy(u + (first - a) * K, u + (last - a) * K, scores + (first - from) * K);
        std::fill(scores + (last - from) * K, scores + (to - from) * K, 0.0);
        for (int64_t j = 0; j < X.layout.columns; ++j)
            if (X.curve_start[j] >= 0) add_column<K>(X.instructions, X.run(from, to, j), scores, g + X.curve_start[j] * K);
        if (X.surfaces) room.decode(X, from, to);
        for (int64_t s = 0; s < X.surfaces; ++s)
            add_surface<K>(X.instructions, room.pair(X, s, to - from), scores, g + X.surface_start[s] * K);
    });
}

// g += X'u for one row.
template <int K>
void row_scatter(const Additive& X, int64_t row, const double* u, double* g) {
    for (int64_t j = 0; j < X.layout.columns; ++j)
        if (X.curve_start[j] >= 0) add_cell<K>(X.run(row, row + 1, j), 0, u, g + X.curve_start[j] * K);
    for (int64_t s = 0; s < X.surfaces; ++s) {
        const int64_t one = X.surface_sides[2 * s], other = X.surface_sides[2 * s + 1];
        const Place a = X.place_on(one, row), b = X.place_on(other, row);
        const int64_t cell = X.surface_start[s] + (a.cell * X.side_cells[other] + b.cell) * 4;
        add_pair<K>(a.position, b.position, u, g + cell * K);
    }
}

// Codes are read and written by whole chunks of the storage, one after the other, which is how memory brings them soonest:
// in ns for each code, X v took 0.25 by whole chunks and 0.67 by the runs of rows that queries happen to be. What is read
// is ahead of the queries, and what is written behind them. Queries stand in the order of their first rows, so that no
// later one has a row before the first row of this one.
template <int K>
class ChunkRows<K, Additive> {
public:
    ChunkRows(const Additive& X, const Blocks& blocks, int64_t begin, int64_t end, const double* v, double* g)
        : X_(X), order_(blocks.order), v_(v), g_(g) {
        const RowRange all = rows_among(order_, begin, end);
        base_ = read_ = all.first;
        last_ = all.last;
    }

    void read(int64_t from, int64_t to, double* f) {
        if (from == to) return;
        const RowRange own = rows_among(order_, from, to);
        write_before(own.first);
        while (read_ < own.last) read_chunk();
        for (int64_t p = from; p < to; ++p) std::copy_n(scores_.data() + (order_[p] - base_) * K, K, f + (p - from) * K);
    }

    void write(int64_t from, int64_t to, int64_t, const double* f) {
        for (int64_t p = from; p < to; ++p) std::copy_n(f + (p - from) * K, K, written_.data() + (order_[p] - base_) * K);
    }

    void finish() { write_before(last_); }

private:
    // The end of the chunk of the storage that a row lies in.
    int64_t chunk_end(int64_t row) const {
        const int64_t size = X_.layout.chunk_rows;
        return std::min(last_, ((X_.first + row) / size + 1) * size - X_.first);
    }

    void read_chunk() {
        const int64_t end = chunk_end(read_);
        scores_.resize(static_cast<std::size_t>((end - base_) * K));
        written_.resize(scores_.size(), 0.0);
        range_dot<K>(X_, read_, end, v_, scores_.data() + (read_ - base_) * K);
        read_ = end;
    }

    void write_before(int64_t row) {
        int64_t from = base_;
        for (int64_t end = chunk_end(from); from < read_ && end <= row; from = end, end = chunk_end(from))
            range_scatter<K>(X_, from, end, written_.data() + (from - base_) * K, g_);
        if (from == base_) return;
        scores_.erase(scores_.begin(), scores_.begin() + (from - base_) * K);
        written_.erase(written_.begin(), written_.begin() + (from - base_) * K);
        base_ = from;
    }

    const Additive& X_;
    const int64_t* order_;
    const double* v_;
    double* g_;
    int64_t base_, read_, last_;  // rows before base_ are done, those before read_ are read
    std::vector<double> scores_, written_;
};

}  // namespace detail

// F = X V: V is (columns, k), F is (rows, k), both row-major.
inline void dot(const Additive& X, const double* V, int64_t k, double* F, int n_parts, int n_threads) {
    for_each_panel(k, [&](auto width_constant, int64_t first, int64_t width) {
        constexpr int K = decltype(width_constant)::value;
        const Buffer packed = pack<K>(V, X.columns, k, first, width, nullptr);
        run_parts(n_parts, n_threads, [&](int part) {
            std::vector<double> f(static_cast<std::size_t>(rows_at_once * K));
            in_pieces(part_of(X.rows, part, n_parts), part_of(X.rows, part + 1, n_parts), rows_at_once, [&](int64_t a, int64_t b) {
                detail::range_dot<K>(X, a, b, packed.get(), f.data());
                for (int64_t i = a; i < b; ++i)
                    for (int64_t c = 0; c < width; ++c) F[i * k + first + c] = f[static_cast<std::size_t>((i - a) * K + c)];
            });
        });
    });
}

// G = X'U: U is (rows, k), G is (columns, k), both row-major. Sums are kept by parts and added in their order.
inline void transposed_dot(const Additive& X, const double* U, int64_t k, double* G, int n_parts, int n_threads) {
    for_each_panel(k, [&](auto width_constant, int64_t first, int64_t width) {
        constexpr int K = decltype(width_constant)::value;
        Accumulators g(n_parts, X.columns * K);
        run_parts(n_parts, n_threads, [&](int part) {
            double* mine = g.open(part);
            std::vector<double> u(static_cast<std::size_t>(rows_at_once * K), 0.0);
            in_pieces(part_of(X.rows, part, n_parts), part_of(X.rows, part + 1, n_parts), rows_at_once, [&](int64_t a, int64_t b) {
                for (int64_t i = a; i < b; ++i)
                    for (int64_t c = 0; c < width; ++c) u[static_cast<std::size_t>((i - a) * K + c)] = U[i * k + first + c];
                detail::range_scatter<K>(X, a, b, u.data(), mine);
            });
        });
        unpack_sum<K>(g, G, X.columns, k, first, width, nullptr, 1);
    });
}

// A matrix of codes is all in memory.
template <typename RowsOf, typename Work>
void walk_units(const Additive& X, int64_t first, int64_t last, const RowsOf&, Work&& work) {
    work(X, first, last);
}

// out_c = sum of w_i x_i over the grouped rows [from, to), as for other matrices.
inline void weighted_sum(const Additive& X, const Blocks& blocks, const Folds* folds, int64_t from, int64_t to, double* out,
                         int n_parts, int n_threads) {
    const int64_t k = folds ? folds->k : 1;
    for_each_panel(k, [&](auto width_constant, int64_t first, int64_t width) {
        constexpr int K = decltype(width_constant)::value;
        Accumulators g(n_parts, X.columns * K);
        run_parts(n_parts, n_threads, [&](int part) {
            double* mine = g.open(part);
            double w[K];
            for (int64_t p = from + part_of(to - from, part, n_parts); p < from + part_of(to - from, part + 1, n_parts); ++p) {
                if (folds) Panel<K, true>{blocks, folds, first, width}.weights(p, w);
                else Panel<K, false>{blocks, folds, first, width}.weights(p, w);
                detail::row_scatter<K>(X, blocks.order[p], w, mine);
            }
        });
        unpack_sum<K>(g, out, X.columns, k, first, width, nullptr, 1);
    });
}

// What expanding rows to values at knots takes beside the codes.
struct Expansion {
    int64_t curves = 0;
    int64_t surfaces = 0;
    const int32_t* side = nullptr;         // (curves + 2 surfaces,) the sides of the terms
    const int64_t* side_values = nullptr;  // (sides,) how many values a side has
    const int64_t* side_knots = nullptr;   // (sides,) without the one for what is missing
    const int64_t* offsets = nullptr;      // (curves + surfaces + 1,)
};

// out (n, values) = rows of E.
inline void expand(const Additive& X, const Expansion& terms, const int64_t* rows, int64_t n, double* out, int n_threads) {
    const int64_t values = terms.offsets[terms.curves + terms.surfaces];
    struct Weights {
        int64_t at;
        double weight[2];
    };
    const auto weights_of = [&](int64_t side, int64_t row) -> Weights {
        const Place place = X.place_on(side, row);
        if (place.cell >= terms.side_values[side]) return {0, {0.0, 0.0}};
        return {place.cell, {1.0 - place.position, place.cell + 1 < terms.side_knots[side] ? place.position : 0.0}};
    };
    run_threads(n_threads, [&](int t) {
        for (int64_t i = part_of(n, t, n_threads); i < part_of(n, t + 1, n_threads); ++i) {
            double* row = out + i * values;
            std::fill(row, row + values, 0.0);
            for (int64_t term = 0; term < terms.curves; ++term) {
                const Weights w = weights_of(terms.side[term], rows[i]);
                for (int a = 0; a < 2; ++a)
                    if (w.weight[a] != 0.0) row[terms.offsets[term] + w.at + a] += w.weight[a];
            }
            for (int64_t s = 0; s < terms.surfaces; ++s) {
                const int64_t one = terms.side[terms.curves + 2 * s], other = terms.side[terms.curves + 2 * s + 1];
                const Weights w = weights_of(one, rows[i]), v = weights_of(other, rows[i]);
                for (int a = 0; a < 2; ++a)
                    for (int b = 0; b < 2; ++b)
                        if (const double weight = w.weight[a] * v.weight[b]; weight != 0.0)
                            row[terms.offsets[terms.curves + s] + (w.at + a) * terms.side_values[other] + v.at + b] += weight;
            }
        }
    });
}

}  // namespace rankwise
