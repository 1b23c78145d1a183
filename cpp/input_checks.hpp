// What is looked at in a caller's arrays before anything computes with them, one pass each.
//
// Kernels trust the numbers of columns and rows in a sparse matrix, and so does SciPy: one outside its range makes them read
// and write outside their vectors. Every loop here is made of additions and ors, which are vectorised on every processor and
// keep up with memory; what exactly is wrong is for the caller to find out, once something is.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "parallel.hpp"

namespace rankwise {

// Fewer entries than this are looked at by one thread.
constexpr int64_t many_entries = 1 << 20;

// Whether fits(first, last) holds for all parts of [0, n).
template <typename Fits>
bool all_parts_fit(int64_t n, int n_threads, Fits&& fits) {
    const int n_parts = n < many_entries ? 1 : std::max(n_threads, 1);
    std::atomic<bool> fit{true};
    run_threads(n_parts, [&](int t) {
        in_pieces(part_of(n, t, n_parts), part_of(n, t + 1, n_parts), many_entries, [&](int64_t first, int64_t last) {
            if (!fits(first, last)) fit = false;
        });
    });
    return fit;
}

// Whether the pointers of a compressed matrix start at 0, never fall and end within the entries.
template <typename Pointer>
bool pointers_fit(const Pointer* start, int64_t n_lines, int64_t n_entries) {
    bool falls = false;
    for (int64_t i = 0; i < n_lines; ++i) falls |= start[i + 1] < start[i];
    return !falls && start[0] == 0 && static_cast<int64_t>(start[n_lines]) <= n_entries;
}

// Whether all indices lie in [0, limit): the sign of (i | limit - 1 - i) is set where i does not.
template <typename Index>
bool indices_fit(const Index* indices, int64_t n_entries, int64_t limit, int n_threads) {
    using Bits = std::make_unsigned_t<Index>;
    constexpr Bits sign = Bits{1} << (8 * sizeof(Index) - 1);
    if (limit <= 0) return n_entries == 0;
    const Bits last = static_cast<Bits>(std::min<int64_t>(limit - 1, static_cast<Bits>(~sign)));
    return all_parts_fit(n_entries, n_threads, [=](int64_t first, int64_t end) {
        Bits outside = 0;
        for (int64_t e = first; e < end; ++e) {
            const Bits index = static_cast<Bits>(indices[e]);
            outside |= index | (last - index);
        }
        return (outside & sign) == 0;
    });
}

// Whether no value is NaN or larger than `limit` in size: without its sign, a number is ordered like its bits.
template <typename Value>
bool values_fit(const Value* values, int64_t n, Value limit, int n_threads) {
    using Bits = std::conditional_t<sizeof(Value) == 4, uint32_t, uint64_t>;
    constexpr Bits sign = Bits{1} << (8 * sizeof(Value) - 1);
    Bits last;
    std::memcpy(&last, &limit, sizeof last);
    return all_parts_fit(n, n_threads, [=](int64_t first, int64_t end) {
        Bits outside = 0;
        for (int64_t e = first; e < end; ++e) {
            Bits bits;
            std::memcpy(&bits, values + e, sizeof bits);
            outside |= last - (bits & ~sign);
        }
        return (outside & sign) == 0;
    });
}

}  // namespace rankwise
