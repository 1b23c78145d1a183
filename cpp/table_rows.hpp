// Columns of a table become rows of a matrix, and what is not finite is noticed on the way.
//
// A tile of rows stays in cache while column after column is written into it: one at a time over all rows, every write
// would fetch a cache line of which it fills an eighth. Eight columns are read side by side, which fill a line of doubles.
#pragma once

#include <algorithm>
#include <vector>

#include "parallel.hpp"

namespace rankwise {

constexpr int64_t table_tile_rows = 256;
constexpr int64_t table_tile_columns = 8;
// Fewer values than this are written by one thread.
constexpr int64_t many_table_values = 1 << 17;

// Adds 0 times what was written to odd[c]: NaN where it is NaN or infinite, and no sum can overflow.
template <typename Value, int width>
void write_table_tile(const double* const* columns, int64_t from, int64_t to, Value* out, int64_t stride, double* odd) {
    double found[width] = {};
    for (int64_t r = from; r < to; ++r) {
        Value* row = out + r * stride;
        for (int c = 0; c < width; ++c) {
            row[c] = static_cast<Value>(columns[c][r]);
            found[c] += 0.0 * static_cast<double>(row[c]);
        }
    }
    for (int c = 0; c < width; ++c) odd[c] += found[c];
}

// Writes columns of n_rows numbers side by side into rows that begin at `out`, `stride` values apart. is_finite[c] tells
// whether all of column c is finite as it was written: a double may be too large for a float.
template <typename Value>
void write_table_rows(const double* const* columns, int64_t n_columns, int64_t n_rows, Value* out, int64_t stride,
                      uint8_t* is_finite, int n_threads) {
    const int n_parts = n_columns * n_rows < many_table_values ? 1 : std::max(n_threads, 1);
    const auto width = static_cast<std::size_t>(n_columns);
    std::vector<double> odd(width * static_cast<std::size_t>(n_parts), 0.0);
    run_threads(n_parts, [&](int t) {
        const int64_t first = part_of(n_rows, t, n_parts), last = part_of(n_rows, t + 1, n_parts);
        double* own = odd.data() + width * static_cast<std::size_t>(t);
        for (int64_t from = first; from < last; from += table_tile_rows) {
            const int64_t to = std::min(last, from + table_tile_rows);
            int64_t c = 0;
            for (; c + table_tile_columns <= n_columns; c += table_tile_columns)
                write_table_tile<Value, table_tile_columns>(columns + c, from, to, out + c, stride, own + c);
            for (; c < n_columns; ++c) write_table_tile<Value, 1>(columns + c, from, to, out + c, stride, own + c);
            check_interrupted();
        }
    });
    for (int64_t c = 0; c < n_columns; ++c) {
        is_finite[c] = 1;
        for (int t = 0; t < n_parts; ++t) is_finite[c] &= odd[width * static_cast<std::size_t>(t) + static_cast<std::size_t>(c)] == 0.0;
    }
}

}  // namespace rankwise
