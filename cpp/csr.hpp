// Products with a sparse matrix stored by rows. Values are float or double; every sum is kept in double.
//
// Several vectors at once are *packed*: the K entries of a column lie side by side, K is known when compiling (1, 2, 4
// or 8, the rest is zeros), so the loop over them is straight vector code and a row of X is read once for all of them.
// Eight vectors cost 4.5 single products and more, for their packed entries no longer fit in a core's cache.
#pragma once

#include <algorithm>
#include <type_traits>
#include <vector>

#include "buffer.hpp"
#include "parallel.hpp"
#include "windows.hpp"

namespace rankwise {


template <typename Value, typename Column, typename Offset>
struct Csr {
    using value_type = Value;
    using column_type = Column;

    int64_t rows;
    int64_t columns;
    const Value* values;
    const Column* ids;
    const Offset* start;
    const Disk* disk = nullptr;  // where the arrays are mapped from; null in memory
    int64_t base = 0;            // the entry that values and ids begin with, in a view of some rows

    const Value* row_values(int64_t i) const { return values + (start[i] - base); }
    const Column* row_ids(int64_t i) const { return ids + (start[i] - base); }
    int64_t row_length(int64_t i) const { return static_cast<int64_t>(start[i + 1] - start[i]); }
};

// Columns may be renamed: column j of the caller is called rank[j] inside; null where the names are the caller's.
using Rank = const int32_t*;

constexpr int widest_panel = 8;

// Calls work(std::integral_constant<int, K>, first, width) for panels of at most so many of the k vectors: 4 or 8.
template <int Widest = widest_panel, typename Work>
void for_each_panel(int64_t k, Work&& work) {
    for (int64_t first = 0; first < k; first += Widest) {
        const int64_t width = std::min<int64_t>(k - first, Widest);
        if (width == 1) work(std::integral_constant<int, 1>{}, first, width);
        else if (width == 2) work(std::integral_constant<int, 2>{}, first, width);
        else if (width <= 4) work(std::integral_constant<int, 4>{}, first, width);
        else if constexpr (Widest > 4) work(std::integral_constant<int, 8>{}, first, width);
    }
}

// Rows, or entries, between two looks for an interruption.
constexpr int64_t rows_at_once = 1 << 12;
constexpr int64_t entries_at_once = 1 << 20;

// Calls work(view, i) for the rows [first, last); see windows.hpp.
template <typename Matrix, typename Work>
inline void walk_rows(const Matrix& X, int64_t first, int64_t last, Work&& work) {
    const auto itself = [](int64_t i) { return RowRange{i, i + 1}; };
    walk_units(X, first, last, itself, [&](const Matrix& view, int64_t from, int64_t to) {
        in_pieces(from, to, rows_at_once, [&](int64_t a, int64_t b) {
            for (int64_t i = a; i < b; ++i) work(view, i);
        });
    });
}

// out[c] = x_i . v_c for K packed vectors.
template <int K, typename Value, typename Column, typename Offset>
inline void row_dot(const Csr<Value, Column, Offset>& X, int64_t i, const double* v, double* out) {
    const Value* value = X.row_values(i);
    const Column* id = X.row_ids(i);
    const int64_t length = X.row_length(i);
    if constexpr (K == 1) {
        // Four sums: with two, the product took .86 or .78 ms (20,000 rows of 39 entries), by where the loop was placed.
        double a = 0, b = 0, c = 0, d = 0;
        int64_t e = 0;
        for (; e + 4 <= length; e += 4) {
            a += value[e] * v[id[e]];
            b += value[e + 1] * v[id[e + 1]];
            c += value[e + 2] * v[id[e + 2]];
            d += value[e + 3] * v[id[e + 3]];
        }
        for (; e < length; ++e) a += value[e] * v[id[e]];
        out[0] = (a + b) + (c + d);
    } else {
        double sum[K] = {};
        for (int64_t e = 0; e < length; ++e) {
            const double x = value[e];
            const double* entry = v + static_cast<int64_t>(id[e]) * K;
            for (int c = 0; c < K; ++c) sum[c] += x * entry[c];
        }
        for (int c = 0; c < K; ++c) out[c] = sum[c];
    }
}

// g_c += u_c x_i for K packed vectors.
template <int K, typename Value, typename Column, typename Offset>
inline void row_scatter(const Csr<Value, Column, Offset>& X, int64_t i, const double* u, double* g) {
    const Value* value = X.row_values(i);
    const Column* id = X.row_ids(i);
    const int64_t length = X.row_length(i);
    double factor[K];
    for (int c = 0; c < K; ++c) factor[c] = u[c];
    int64_t e = 0;
    if constexpr (K == 1) {
        // Both values are read before g is written, for the compiler cannot know that g is not part of X:
        // 5 % for float, 1 % for double.
        for (; e + 2 <= length; e += 2) {
            const double a = factor[0] * value[e], b = factor[0] * value[e + 1];
            const int64_t at_a = static_cast<int64_t>(id[e]), at_b = static_cast<int64_t>(id[e + 1]);
            g[at_a] += a;
            g[at_b] += b;
        }
    }
    for (; e < length; ++e) {
        const double x = value[e];
        double* entry = g + static_cast<int64_t>(id[e]) * K;
        for (int c = 0; c < K; ++c) entry[c] += factor[c] * x;
    }
}

inline void prefetch([[maybe_unused]] const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address);
#endif
}

// Asks memory for the first bytes of row i: as many lines in every row, for a loop of varying length would mispredict.
template <typename Value, typename Column, typename Offset>
inline void prefetch_row(const Csr<Value, Column, Offset>& X, int64_t i, int64_t length) {
    constexpr int64_t line = 64;
    const int64_t left = static_cast<int64_t>(X.start[X.rows] - X.start[i]);
    if (left < length + line || X.start[i] < X.base) return;  // no addresses outside the arrays
    const char* values = reinterpret_cast<const char*>(X.row_values(i));
    const char* ids = reinterpret_cast<const char*>(X.row_ids(i));
    for (int64_t at = 0; at < length * static_cast<int64_t>(sizeof(Value)); at += line) prefetch(values + at);
    for (int64_t at = 0; at < length * static_cast<int64_t>(sizeof(Column)); at += line) prefetch(ids + at);
}

// Vectors first .. first + width - 1 of the row-major (n, k) array V, packed and with columns renamed.
template <int K>
Buffer pack(const double* V, int64_t n, int64_t k, int64_t first, int64_t width, Rank rank) {
    Buffer packed = allocate(n * K);
    for (int64_t j = 0; j < n; ++j) {
        double* entry = packed.get() + (rank ? rank[j] : j) * K;
        for (int64_t c = 0; c < K; ++c) entry[c] = c < width ? V[j * k + first + c] : 0.0;
    }
    return packed;
}

// One packed gradient per thread, so that scattering needs no locks; the sum goes in the order of threads.
class Accumulators {
public:
    Accumulators(int n_threads, int64_t size) : size_(size), parts_(static_cast<std::size_t>(n_threads)) {}

    // Called by thread t itself, so that its memory is touched by it first.
    double* open(int t) {
        auto& part = parts_[static_cast<std::size_t>(t)];
        part = allocate(size_);
        std::fill(part.get(), part.get() + size_, 0.0);
        return part.get();
    }

    double sum(int64_t at) const {
        double total = 0;
        for (const auto& part : parts_) total += part[static_cast<std::size_t>(at)];
        return total;
    }

private:
    int64_t size_;
    std::vector<Buffer> parts_;
};

// G = the sum of accumulators, unpacked and with the caller's names of columns.
template <int K>
void unpack_sum(const Accumulators& g, double* G, int64_t n, int64_t k, int64_t first, int64_t width, Rank rank,
                int n_threads) {
    run_threads(n_threads, [&](int t) {
        for (int64_t j = part_of(n, t, n_threads); j < part_of(n, t + 1, n_threads); ++j)
            for (int64_t c = 0; c < width; ++c) G[j * k + first + c] = g.sum((rank ? rank[j] : j) * K + c);
    });
}

// F = X V: V is (columns, k), F is (rows, k), both row-major.
template <typename Matrix>
void dot(const Matrix& X, Rank rank, const double* V, int64_t k, double* F, int n_threads) {
    const auto cuts = split_lines(X.start, X.rows, n_threads);
    for_each_panel(k, [&](auto width_constant, int64_t first, int64_t width) {
        constexpr int K = decltype(width_constant)::value;
        Buffer packed;
        const double* v = V;
        if (rank || K != 1 || k != 1) v = (packed = pack<K>(V, X.columns, k, first, width, rank)).get();
        run_threads(n_threads, [&](int t) {
            double f[K];
            walk_rows(X, cuts[t], cuts[t + 1], [&](const Matrix& view, int64_t i) {
                row_dot<K>(view, i, v, f);
                for (int64_t c = 0; c < width; ++c) F[i * k + first + c] = f[c];
            });
        });
    });
}

// G = X'U: U is (rows, k), G is (columns, k), both row-major.
template <typename Matrix>
void transposed_dot(const Matrix& X, Rank rank, const double* U, int64_t k, double* G, int n_threads) {
    const auto cuts = split_lines(X.start, X.rows, n_threads);
    for_each_panel(k, [&](auto width_constant, int64_t first, int64_t width) {
        constexpr int K = decltype(width_constant)::value;
        Accumulators g(n_threads, X.columns * K);
        run_threads(n_threads, [&](int t) {
            double* mine = g.open(t);
            double u[K] = {};
            walk_rows(X, cuts[t], cuts[t + 1], [&](const Matrix& view, int64_t i) {
                for (int64_t c = 0; c < width; ++c) u[c] = U[i * k + first + c];
                row_scatter<K>(view, i, u, mine);
            });
        });
        unpack_sum<K>(g, G, X.columns, k, first, width, rank, n_threads);
    });
}

// How often each column occurs.
template <typename Column>
void count_columns(const Column* ids, int64_t nnz, int64_t columns, int64_t* out, int n_threads) {
    std::vector<std::vector<int64_t>> counts(static_cast<std::size_t>(n_threads));
    run_threads(n_threads, [&](int t) {
        auto& mine = counts[static_cast<std::size_t>(t)];
        mine.assign(static_cast<std::size_t>(columns), 0);
        in_pieces(part_of(nnz, t, n_threads), part_of(nnz, t + 1, n_threads), entries_at_once, [&](int64_t from, int64_t to) {
            for (int64_t e = from; e < to; ++e) ++mine[ids[e]];
        });
    });
    for (int64_t j = 0; j < columns; ++j) {
        out[j] = 0;
        for (const auto& part : counts) out[j] += part[static_cast<std::size_t>(j)];
    }
}

// Renamed column ids, in as few bytes as they need.
template <typename Column, typename Narrow>
void rename_columns(const Column* ids, int64_t nnz, Rank rank, Narrow* out, int n_threads) {
    run_threads(n_threads, [&](int t) {
        in_pieces(part_of(nnz, t, n_threads), part_of(nnz, t + 1, n_threads), entries_at_once, [&](int64_t from, int64_t to) {
            for (int64_t e = from; e < to; ++e) out[e] = static_cast<Narrow>(rank[ids[e]]);
        });
    });
}

}  // namespace rankwise
