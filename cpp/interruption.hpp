// A kernel that takes long ends early when its caller wants it to, as when a user presses Ctrl-C.
//
// Whoever calls a kernel opens an `Interruption` with a question, which only the calling thread asks, ten times a second
// at most; the other threads of the call read its flag. Kernels look between pieces of work (`check_interrupted`,
// `WorkCounter`), and leave by `Interrupted`: what they have written by then is of no use.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

namespace rankwise {

struct Interrupted {};

class Interruption {
public:
    // The call that this thread is working for; null where nobody would interrupt it.
    static Interruption*& current() {
        static thread_local Interruption* interruption = nullptr;
        return interruption;
    }

    explicit Interruption(bool (*is_wanted)()) : is_wanted_(is_wanted), outer_(current()) { current() = this; }
    Interruption(const Interruption&) = delete;
    Interruption& operator=(const Interruption&) = delete;
    ~Interruption() { current() = outer_; }

    bool has_come() const { return has_come_.load(std::memory_order_relaxed); }

    // Whether the call should end.
    bool look() {
        if (has_come()) return true;
        if (std::this_thread::get_id() != caller_ || Clock::now() < next_) return false;
        if (is_wanted_()) has_come_ = true;
        next_ = Clock::now() + interval;
        return has_come();
    }

    static constexpr std::chrono::milliseconds interval{100};

private:
    using Clock = std::chrono::steady_clock;
    bool (*is_wanted_)();
    Interruption* outer_;
    std::thread::id caller_ = std::this_thread::get_id();
    Clock::time_point next_ = Clock::now() + interval;
    std::atomic<bool> has_come_{false};
};

// Takes about 30 nanoseconds.
inline void check_interrupted() {
    Interruption* interruption = Interruption::current();
    if (interruption && interruption->look()) throw Interrupted{};
}

// Looks for an interruption once enough work was done: for loops whose turns are too short to look in each.
class WorkCounter {
public:
    // Work in units of a few nanoseconds.
    void add(int64_t work) {
        if ((left_ -= work) >= 0) return;
        left_ = enough;
        check_interrupted();
    }

    static constexpr int64_t enough = 1 << 16;

private:
    int64_t left_ = enough;
};

// Calls work(from, to) for [first, last) in pieces of so many, and looks for an interruption after each.
template <typename Work>
void in_pieces(int64_t first, int64_t last, int64_t size, Work&& work) {
    for (int64_t from = first; from < last; from += size) {
        work(from, std::min(from + size, last));
        check_interrupted();
    }
}

// The same for many such ranges, most of them short: `counter` is theirs together.
template <typename Work>
void in_pieces(int64_t first, int64_t last, WorkCounter& counter, Work&& work) {
    for (int64_t from = first, to; from < last; from = to) {
        to = std::min(from + WorkCounter::enough, last);
        work(from, to);
        counter.add(to - from);
    }
}

}  // namespace rankwise
