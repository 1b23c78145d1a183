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
#include <cstdint>
#include <vector>

#include "additive_terms.hpp"
#include "csr.hpp"
#include "fused.hpp"

namespace rankwise {

struct Additive {
    int64_t rows;
    int64_t columns;  // entries of the table
    const std::uint32_t* codes;
    CodeLayout layout;
    int64_t first;                    // where row 0 stands among the rows of the layout
    const std::int32_t* shift;        // (coded columns,)
    const std::int32_t* cells;        // (coded columns,)
    const int64_t* curve_start;       // (coded columns,) where the table of its curve begins; -1: it has none
    int64_t decoded;                  // sides [0, decoded) are those of surfaces; others are for expanding rows only
    const std::int32_t* side_column;  // (sides,) the coded column
    const int64_t* side_start;        // (sides,) where its cells begin in the three arrays below
    const std::int32_t* side_cell;    // cell of the side for each cell of the column
    const double* side_origin;        // position in it where the column's cell begins
    const double* side_slope;         // and what it gains for each step of the code's position
    const std::int32_t* side_cells;   // (sides,) how many cells the side has
    int64_t surfaces;
    const std::int32_t* surface_sides;  // (surfaces, 2)
    const int64_t* surface_start;       // (surfaces,)

    // Calls visit(from, to) for the parts of chunks among the rows [a, b).
    template <typename Visit>
    void for_each_piece(int64_t a, int64_t b, Visit&& visit) const {
        for (int64_t from = a; from < b;) {
            const int64_t in_chunk = layout.chunk_rows - (first + from) % layout.chunk_rows;
            const int64_t to = std::min(b, from + in_chunk);
            visit(from, to);
            from = to;
        }
    }

    const std::uint32_t* piece(int64_t row, int64_t column) const { return codes + layout.at(first + row, column); }
    std::uint32_t mask(int64_t column) const { return (std::uint32_t{1} << shift[column]) - 1; }

    static double position_of(std::uint32_t code, std::uint32_t mask) { return static_cast<std::int32_t>(code & mask); }

    // Where a code of its column stands on a side.
    Place place_of(int64_t side, std::uint32_t code) const {
        const int64_t j = side_column[side], c = side_start[side] + (code >> shift[j]);
        return {side_cell[c], side_origin[c] + side_slope[c] * position_of(code, mask(j))};
    }
    Place place_on(int64_t side, int64_t row) const { return place_of(side, *piece(row, side_column[side])); }
};

namespace detail {

// f += what a curve reads, for n rows of K scores.
template <int K>
void read_curve(const std::uint32_t* codes, int64_t n, int shift, const double* table, double* f) {
    const std::uint32_t mask = (std::uint32_t{1} << shift) - 1;
    for (int64_t i = 0; i < n; ++i) {
        const double* cell = table + static_cast<int64_t>(codes[i] >> shift) * 2 * K;
        const double p = Additive::position_of(codes[i], mask);
        for (int c = 0; c < K; ++c) f[i * K + c] += cell[c] + p * cell[K + c];
    }
}

// Many rows in the same cell make a chain of additions, each waiting for the last one's store: a few copies of a small
// table, which rows take in turn, are as many chains.
constexpr int table_copies = 4;
constexpr int64_t copied_cells = 32;

template <int K>
inline void add_to_cell(const std::uint32_t code, int shift, std::uint32_t mask, const double* u, double* table) {
    double* cell = table + static_cast<int64_t>(code >> shift) * 2 * K;
    const double p = Additive::position_of(code, mask);
    for (int c = 0; c < K; ++c) {
        cell[c] += u[c];
        cell[K + c] += p * u[c];
    }
}

template <int K>
void write_curve(const std::uint32_t* codes, int64_t n, int shift, int64_t cells, const double* u, double* table) {
    const std::uint32_t mask = (std::uint32_t{1} << shift) - 1;
    const int64_t size = cells * 2 * K;
    if (cells > copied_cells || n < 2 * cells) {
        for (int64_t i = 0; i < n; ++i) add_to_cell<K>(codes[i], shift, mask, u + i * K, table);
        return;
    }
    alignas(64) double copies[table_copies][copied_cells * 2 * K];
    for (auto& copy : copies) std::fill(copy, copy + size, 0.0);
    int64_t i = 0;
    for (; i + table_copies <= n; i += table_copies)
        for (int j = 0; j < table_copies; ++j) add_to_cell<K>(codes[i + j], shift, mask, u + (i + j) * K, copies[j]);
    for (; i < n; ++i) add_to_cell<K>(codes[i], shift, mask, u + i * K, copies[0]);
    for (int64_t e = 0; e < size; ++e) table[e] += (copies[0][e] + copies[1][e]) + (copies[2][e] + copies[3][e]);
}

template <int K>
inline void add_to_pair(double s, double t, const double* u, double* cell) {
    for (int c = 0; c < K; ++c) {
        cell[c] += u[c];
        cell[K + c] += s * u[c];
        cell[2 * K + c] += t * u[c];
        cell[3 * K + c] += s * t * u[c];
    }
}

// The sides of surfaces, decoded for the rows of a piece.
class DecodedSides {
public:
    void decode(const Additive& X, int64_t from, int64_t to) {
        const auto size = static_cast<std::size_t>(X.decoded * X.layout.chunk_rows);
        stride_ = X.layout.chunk_rows;
        if (cell_.size() < size) {
            cell_.resize(size);
            position_.resize(size);
        }
        for (int64_t s = 0; s < X.decoded; ++s) {
            const std::uint32_t* codes = X.piece(from, X.side_column[s]);
            for (int64_t i = 0; i < to - from; ++i) {
                const Place at = X.place_of(s, codes[i]);
                cell_[static_cast<std::size_t>(s * stride_ + i)] = static_cast<std::int32_t>(at.cell);
                position_[static_cast<std::size_t>(s * stride_ + i)] = at.position;
            }
        }
    }

    const std::int32_t* cells(int64_t side) const { return cell_.data() + side * stride_; }
    const double* positions(int64_t side) const { return position_.data() + side * stride_; }

private:
    int64_t stride_ = 0;
    std::vector<std::int32_t> cell_;
    std::vector<double> position_;
};

// Calls work(row, s, t, entry of the table) for n rows of a surface.
template <typename Work>
inline void walk_surface(const Additive& X, const DecodedSides& sides, int64_t surface, int64_t n, Work&& work) {
    const int64_t one = X.surface_sides[2 * surface], other = X.surface_sides[2 * surface + 1];
    const std::int32_t *a = sides.cells(one), *b = sides.cells(other);
    const double *s = sides.positions(one), *t = sides.positions(other);
    const int64_t width = X.side_cells[other], start = X.surface_start[surface];
    for (int64_t i = 0; i < n; ++i) work(i, s[i], t[i], start + (a[i] * width + b[i]) * 4);
}

// f = X v for the rows [a, b); v and f are packed.
template <int K>
void range_dot(const Additive& X, int64_t a, int64_t b, const double* v, double* f) {
    std::fill(f, f + (b - a) * K, 0.0);
    DecodedSides sides;
    X.for_each_piece(a, b, [&](int64_t from, int64_t to) {
        double* own = f + (from - a) * K;
        for (int64_t j = 0; j < X.layout.columns; ++j)
            if (X.curve_start[j] >= 0)
                read_curve<K>(X.piece(from, j), to - from, X.shift[j], v + X.curve_start[j] * K, own);
        if (X.surfaces == 0) return;
        sides.decode(X, from, to);
        for (int64_t surface = 0; surface < X.surfaces; ++surface)
            walk_surface(X, sides, surface, to - from, [&](int64_t i, double s, double t, int64_t entry) {
                const double* cell = v + entry * K;
                for (int c = 0; c < K; ++c)
                    own[i * K + c] += (cell[c] + s * cell[K + c]) + t * (cell[2 * K + c] + s * cell[3 * K + c]);
            });
    });
}

// g += X'u for the rows [a, b); u and g are packed.
template <int K>
void range_scatter(const Additive& X, int64_t a, int64_t b, const double* u, double* g) {
    DecodedSides sides;
    X.for_each_piece(a, b, [&](int64_t from, int64_t to) {
        const double* own = u + (from - a) * K;
        for (int64_t j = 0; j < X.layout.columns; ++j)
            if (X.curve_start[j] >= 0)
                write_curve<K>(X.piece(from, j), to - from, X.shift[j], X.cells[j], own, g + X.curve_start[j] * K);
        if (X.surfaces == 0) return;
        sides.decode(X, from, to);
        for (int64_t surface = 0; surface < X.surfaces; ++surface)
            walk_surface(X, sides, surface, to - from, [&](int64_t i, double s, double t, int64_t entry) {
                add_to_pair<K>(s, t, own + i * K, g + entry * K);
            });
    });
}

// g += X'u for one row.
template <int K>
void row_scatter(const Additive& X, int64_t row, const double* u, double* g) {
    for (int64_t j = 0; j < X.layout.columns; ++j)
        if (X.curve_start[j] >= 0) add_to_cell<K>(*X.piece(row, j), X.shift[j], X.mask(j), u, g + X.curve_start[j] * K);
    for (int64_t surface = 0; surface < X.surfaces; ++surface) {
        const auto one = X.place_on(X.surface_sides[2 * surface], row), other = X.place_on(X.surface_sides[2 * surface + 1], row);
        const int64_t width = X.side_cells[X.surface_sides[2 * surface + 1]];
        double* cell = g + (X.surface_start[surface] + (one.cell * width + other.cell) * 4) * K;
        add_to_pair<K>(one.position, other.position, u, cell);
    }
}

// The rows order[from .. to) lie in a range, and all of it is read: where nothing else lies there, in place.
inline bool is_run(const int64_t* order, int64_t from, int64_t to) {
    for (int64_t p = from + 1; p < to; ++p)
        if (order[p] != order[p - 1] + 1) return false;
    return true;
}

}  // namespace detail

template <int K>
void rows_dot(const Additive& X, const int64_t* order, int64_t from, int64_t to, const double* v, double* f) {
    if (from == to) return;
    if (detail::is_run(order, from, to)) return detail::range_dot<K>(X, order[from], order[from] + to - from, v, f);
    const RowRange range = rows_among(order, from, to);
    std::vector<double> all(static_cast<std::size_t>((range.last - range.first) * K));
    detail::range_dot<K>(X, range.first, range.last, v, all.data());
    for (int64_t p = from; p < to; ++p)
        for (int c = 0; c < K; ++c) f[(p - from) * K + c] = all[static_cast<std::size_t>((order[p] - range.first) * K + c)];
}

template <int K>
void rows_scatter(const Additive& X, const int64_t* order, int64_t from, int64_t to, int64_t, int64_t, const double* f,
                  double* g) {
    if (from == to) return;
    if (detail::is_run(order, from, to)) return detail::range_scatter<K>(X, order[from], order[from] + to - from, f, g);
    const RowRange range = rows_among(order, from, to);
    std::vector<double> all(static_cast<std::size_t>((range.last - range.first) * K), 0.0);
    for (int64_t p = from; p < to; ++p)
        for (int c = 0; c < K; ++c) all[static_cast<std::size_t>((order[p] - range.first) * K + c)] = f[(p - from) * K + c];
    detail::range_scatter<K>(X, range.first, range.last, all.data(), g);
}

// F = X V: V is (columns, k), F is (rows, k), both row-major.
inline void dot(const Additive& X, const double* V, int64_t k, double* F, int n_parts, int n_threads) {
    for_each_panel(k, [&](auto width_constant, int64_t first, int64_t width) {
        constexpr int K = decltype(width_constant)::value;
        const Buffer packed = pack<K>(V, X.columns, k, first, width, nullptr);
        run_parts(n_parts, n_threads, [&](int part) {
            std::vector<double> f(static_cast<std::size_t>(X.layout.chunk_rows * K));
            X.for_each_piece(part_of(X.rows, part, n_parts), part_of(X.rows, part + 1, n_parts), [&](int64_t a, int64_t b) {
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
            std::vector<double> u(static_cast<std::size_t>(X.layout.chunk_rows * K), 0.0);
            X.for_each_piece(part_of(X.rows, part, n_parts), part_of(X.rows, part + 1, n_parts), [&](int64_t a, int64_t b) {
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
    int64_t curves;
    int64_t surfaces;
    const std::int32_t* side;    // (curves + 2 surfaces,) the sides of the terms
    const int64_t* side_values;  // (sides,) how many values a side has
    const int64_t* side_knots;   // (sides,) without the one for what is missing
    const int64_t* offsets;      // (curves + surfaces + 1,)
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
