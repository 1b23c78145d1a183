// A matrix that is mapped from disk is asked for before it is reached.
//
// Faulting pages in one by one leaves the disk idle most of the time: the system reads ahead 128 KiB by itself, and two
// arrays walked by several threads are too many streams for that to suffice. Each thread asks for a window of its
// non-zeros while it works on the one before. What lies behind is let go of, so that the pages that the system takes
// back first are those that are needed last. A matrix in memory (window 0) costs one comparison a row or chunk.
#pragma once

#include <algorithm>
#include <cstdint>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace rankwise {

namespace detail {

// Advice on the whole pages of [from, to): outwards when asking, inwards when letting go.
inline void advise([[maybe_unused]] const void* from, [[maybe_unused]] const void* to, [[maybe_unused]] bool wanted) {
#if defined(__unix__) || defined(__APPLE__)
    static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    auto first = reinterpret_cast<std::uintptr_t>(from), last = reinterpret_cast<std::uintptr_t>(to);
    first = (wanted ? first : first + page - 1) / page * page;
    if (!wanted) last = last / page * page;
    // Advice may be refused, and then costs time only.
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, wanted ? MADV_WILLNEED : MADV_DONTNEED);
#endif
}

}  // namespace detail

template <typename Matrix>
class ReadAhead {
public:
    // Of the non-zeros [first, last), which are about to be walked in this order.
    ReadAhead(const Matrix& X, std::int64_t first, std::int64_t last)
        : X_(X), next_(X.window == 0 ? INT64_MAX : first), asked_(first), first_(first), last_(last) {}

    ~ReadAhead() {
        if (next_ != INT64_MAX) let_go(last_);
    }

    void reach(std::int64_t at) {
        if (at < next_) return;
        const std::int64_t wanted = std::min(at + 2 * X_.window, last_);
        if (wanted > asked_) advise(asked_, wanted, true);
        asked_ = std::max(asked_, wanted);
        let_go(at - X_.window);
        next_ = at + X_.window;
    }

private:
    void let_go(std::int64_t to) {
        if (to <= first_) return;
        advise(first_, to, false);
        first_ = to;
    }

    void advise(std::int64_t from, std::int64_t to, bool wanted) const {
        detail::advise(X_.values + from, X_.values + to, wanted);
        detail::advise(X_.ids + from, X_.ids + to, wanted);
    }

    const Matrix& X_;
    std::int64_t next_, asked_, first_, last_;
};

}  // namespace rankwise
