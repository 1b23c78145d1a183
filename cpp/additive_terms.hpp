// The terms of an additive model, as src/rankwise/design/terms.py defines them: where a number stands among knots, what a model
// reads there (exactly, in double), and the codes that products work on.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "parallel.hpp"

namespace rankwise {

// Columns that become knots. `column` numbers the columns in use, not those of the matrix.
struct Knots {
    int64_t curves = 0;
    const int64_t* column = nullptr;        // (curves,)
    const int64_t* start = nullptr;         // (curves + 1,)
    const double* knots = nullptr;          // one curve after the other
    const bool* is_levels = nullptr;        // (curves,)
    const bool* has_missing = nullptr;      // (curves,)

    int64_t size(int64_t curve) const { return start[curve + 1] - start[curve]; }
};

// The value at a position between two knots, so rounded that a curve which never falls at its knots never falls between.
inline double between(double left, double right, double position) {
    const double value = left + position * (right - left);
    return left <= right ? std::min(value, right) : std::max(value, right);
}

// The interval that begins with knot `cell`, and how far into it; what is missing has the number of knots as its cell.
struct Place {
    int64_t cell;
    double position;
};

inline Place locate(const double* knots, int64_t size, bool is_levels, double x) {
    if (std::isnan(x) || size == 0) return {size, 0.0};
    int64_t cell = 0;
    if (size <= 16)  // comparing with all of them costs no mispredicted branch
        for (int64_t k = 1; k < size; ++k) cell += knots[k] <= x;
    else
        cell = std::max<int64_t>(std::upper_bound(knots, knots + size, x) - knots - 1, 0);
    if (is_levels) return {knots[cell] == x ? cell : size, 0.0};
    if (cell == size - 1 || x <= knots[0]) return {cell, 0.0};
    // Halves keep the widest intervals finite.
    const double left = 0.5 * knots[cell];
    return {cell, (0.5 * x - left) / (0.5 * knots[cell + 1] - left)};
}

// Rows of an array in any memory order; strides count values.
template <typename Value>
struct ArrayRows {
    const Value* values;
    int64_t row_stride;
    int64_t column_stride;
    int64_t used;           // how many columns are in use
    const int64_t* column;  // (used,) which

    // x[c * width + r] = the used column c of row first + r.
    void fetch(int64_t first, int64_t last, int64_t width, double* x) const {
        for (int64_t c = 0; c < used; ++c) {
            const Value* from = values + column[c] * column_stride;
            for (int64_t r = first; r < last; ++r) x[c * width + r - first] = static_cast<double>(from[r * row_stride]);
        }
    }
};

// Rows of a sparse matrix; what is absent is zero, and a column that occurs twice in a row counts with its sum.
template <typename Value, typename Column, typename Offset>
struct SparseRows {
    const Value* values;
    const Column* ids;
    const Offset* start;
    int64_t used;
    const int32_t* place;  // (columns of the matrix,) where a column stands among those in use; -1: nowhere

    void fetch(int64_t first, int64_t last, int64_t width, double* x) const {
        std::fill(x, x + used * width, 0.0);
        for (int64_t r = first; r < last; ++r)
            for (Offset e = start[r]; e < start[r + 1]; ++e)
                if (const auto c = place[ids[e]]; c >= 0) x[c * width + r - first] += static_cast<double>(values[e]);
    }
};

namespace detail {

// Rows that are fetched at once.
constexpr int64_t fetched_rows = 64;

// Calls work(x, first, last) for runs of the rows [0, rows), cut among threads; x holds them by columns.
template <typename Rows, typename Work>
void walk_fetched(const Rows& X, int64_t rows, int n_threads, Work&& work) {
    const int64_t runs = (rows + fetched_rows - 1) / fetched_rows;
    run_threads(n_threads, [&](int t) {
        std::vector<double> x(static_cast<std::size_t>(X.used * fetched_rows));
        for (int64_t run = runs * t / n_threads; run < runs * (t + 1) / n_threads; ++run) {
            const int64_t first = run * fetched_rows, last = std::min(first + fetched_rows, rows);
            X.fetch(first, last, fetched_rows, x.data());
            work(x.data(), first, last);
            check_interrupted();
        }
    });
}

}  // namespace detail

// The sides of a surface are curves of their own, which stand behind the curves of the model.
struct TermValues {
    Knots knots;
    int64_t curves = 0;                // those that are terms
    int64_t surfaces = 0;              // surface s has the sides curves + 2 s and curves + 2 s + 1
    const int64_t* offsets = nullptr;  // (curves + surfaces + 1,)

    int64_t n_values(int64_t curve) const { return knots.size(curve) + knots.has_missing[curve]; }
};

// F = E V, exactly: V is (values, k), F is (rows, k), both row-major.
template <typename Rows>
void additive_predict(const Rows& X, int64_t rows, const TermValues& terms, const double* V, int64_t k, double* F,
                      int n_threads) {
    const Knots& knots = terms.knots;
    std::fill(F, F + rows * k, 0.0);
    const auto place_of = [&](int64_t curve, const double* x, int64_t r) {
        return locate(knots.knots + knots.start[curve], knots.size(curve), knots.is_levels[curve],
                      x[knots.column[curve] * detail::fetched_rows + r]);
    };
    const auto reads = [&](int64_t curve, const Place& place) {
        return place.cell < knots.size(curve) || knots.has_missing[curve];
    };
    detail::walk_fetched(X, rows, n_threads, [&](const double* x, int64_t first, int64_t last) {
        for (int64_t term = 0; term < terms.curves; ++term)
            for (int64_t r = 0; r < last - first; ++r) {
                const Place at = place_of(term, x, r);
                if (!reads(term, at)) continue;
                const double* v = V + (terms.offsets[term] + at.cell) * k;
                double* f = F + (first + r) * k;
                if (at.position > 0)
                    for (int64_t c = 0; c < k; ++c) f[c] += between(v[c], v[k + c], at.position);
                else
                    for (int64_t c = 0; c < k; ++c) f[c] += v[c];
            }
        for (int64_t s = 0; s < terms.surfaces; ++s) {
            const int64_t one = terms.curves + 2 * s, other = one + 1, stride = terms.n_values(other);
            for (int64_t r = 0; r < last - first; ++r) {
                const Place a = place_of(one, x, r), b = place_of(other, x, r);
                if (!reads(one, a) || !reads(other, b)) continue;
                const double* v = V + (terms.offsets[terms.curves + s] + a.cell * stride + b.cell) * k;
                double* f = F + (first + r) * k;
                for (int i = 0; i <= (a.position > 0); ++i)
                    for (int j = 0; j <= (b.position > 0); ++j) {
                        const double weight = (i ? a.position : 1.0 - a.position) * (j ? b.position : 1.0 - b.position);
                        const double* corner = v + (i * stride + j) * k;
                        for (int64_t c = 0; c < k; ++c) f[c] += weight * corner[c];
                    }
            }
        }
    });
}

// Codes lie in chunks of rows, in a chunk column by column. A code has the cell in its high bits and the position in the
// `shift` low ones, rounded to the nearest; what rounds to the end of an interval stands at the beginning of the next.
struct CodeLayout {
    int64_t columns;
    int64_t chunk_rows;

    int64_t at(int64_t row, int64_t column) const {
        return (row / chunk_rows * columns + column) * chunk_rows + row % chunk_rows;
    }
};

template <typename Rows>
void encode(const Rows& X, int64_t rows, const Knots& knots, const int32_t* shift, const CodeLayout& layout,
            int64_t first_row, uint32_t* codes, int n_threads) {
    detail::walk_fetched(X, rows, n_threads, [&](const double* x, int64_t first, int64_t last) {
        int64_t place[detail::fetched_rows];
        for (int64_t r = first; r < last; ++r) place[r - first] = layout.at(first_row + r, 0);
        for (int64_t j = 0; j < knots.curves; ++j) {
            const double* own = knots.knots + knots.start[j];
            const double* from = x + knots.column[j] * detail::fetched_rows;
            const int64_t size = knots.size(j);
            const bool is_levels = knots.is_levels[j];
            const double scale = std::ldexp(1.0, shift[j]);
            uint32_t* out = codes + j * layout.chunk_rows;
            for (int64_t r = 0; r < last - first; ++r) {
                const Place at = locate(own, size, is_levels, from[r]);
                const auto position = static_cast<int64_t>(at.position * scale + 0.5);
                out[place[r]] = static_cast<uint32_t>((at.cell << shift[j]) + position);
            }
        }
    });
}

}  // namespace rankwise
