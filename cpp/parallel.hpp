// Running a function on several threads: a pool that lives as long as the process, and callers that never wait for a
// thread that has not begun.
//
// Work comes in numbered parts, which the caller and the threads of the pool take one after the other. On a busy machine
// a thread may wait ten milliseconds for its turn: by then the caller has done all parts itself and is gone. It waits only
// for parts that somebody is working on. Which thread takes a part changes nothing, for sums are kept by part.
//
// No OpenMP: it deadlocks in a child forked after a parallel region, and needs its own library in the wheel. A forked
// child has none of the pool's threads, and begins a new pool. Waking a thread costs about 10 microseconds, so callers
// ask for one part when there is little work.
#pragma once

#include <stdint.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "interruption.hpp"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace rankwise {
namespace detail {

// One call of run_threads; lives on the stack of its caller, and is only touched under the mutex of the pool.
struct Job {
    void (*run)(const void* work, int part);
    const void* work;
    int n_parts;
    std::vector<std::exception_ptr> errors;
    Interruption* interruption;
    int next = 0;         // the first part that nobody has taken
    int in_progress = 0;  // parts taken and not finished
    std::condition_variable finished{};
};

class Pool {
public:
    // Made when first asked for, and never destroyed: its threads outlive whatever ends with the process.
    static Pool& instance() {
        Pool* pool = current().load();
        if (pool) return *pool;
#if defined(__unix__) || defined(__APPLE__)
        static const int registered = pthread_atfork(nullptr, nullptr, [] { current().store(nullptr); });
        (void)registered;
#endif
        auto* made = new Pool;
        if (current().compare_exchange_strong(pool, made)) return *made;
        delete made;
        return *pool;
    }

    void run(Job& job) {
        std::unique_lock<std::mutex> lock(mutex_);
        open_.push_back(&job);
        wanted_ += job.n_parts - 1;
        start_workers();
        lock.unlock();
        for (int t = 1; t < job.n_parts; ++t) work_arrived_.notify_one();
        lock.lock();
        take_parts(job, lock);
        open_.erase(std::find(open_.begin(), open_.end(), &job));
        wanted_ -= job.n_parts - 1;
        wait_for_the_rest(job, lock);
    }

private:
    static std::atomic<Pool*>& current() {
        static std::atomic<Pool*> pool{nullptr};
        return pool;
    }

    // As many threads as all open jobs want together, up to a limit that no number of jobs or parts lifts: a system without
    // room for another thread may end the process. The parts that find none are done by the callers.
    void start_workers() {
        static const int most = std::max(64, 4 * static_cast<int>(std::thread::hardware_concurrency()));
        try {
            for (; n_workers_ < std::min(wanted_, most); ++n_workers_) std::thread([this] { work(); }).detach();
        } catch (const std::exception&) {
        }
    }

    // The parts that others work on; only the caller learns of an interruption, so it looks while it waits.
    static void wait_for_the_rest(Job& job, std::unique_lock<std::mutex>& lock) {
        const auto is_finished = [&] { return job.in_progress == 0; };
        if (!job.interruption) return job.finished.wait(lock, is_finished);
        while (!job.finished.wait_for(lock, Interruption::interval, is_finished)) {
            lock.unlock();
            job.interruption->look();
            lock.lock();
        }
    }

    void work() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            const auto job = std::find_if(open_.begin(), open_.end(), [](const Job* j) { return j->next < j->n_parts; });
            if (job == open_.end()) work_arrived_.wait(lock);
            else take_parts(**job, lock);
        }
    }

    // Called, and returns, with the lock held. A job does not end before what this took is finished.
    static void take_parts(Job& job, std::unique_lock<std::mutex>& lock) {
        while (job.next < job.n_parts) {
            const int part = job.next++;
            ++job.in_progress;
            lock.unlock();
            std::exception_ptr error;
            Interruption* const own = std::exchange(Interruption::current(), job.interruption);
            try {
                check_interrupted();
                job.run(job.work, part);
            } catch (...) {
                error = std::current_exception();
            }
            Interruption::current() = own;
            lock.lock();
            job.errors[static_cast<std::size_t>(part)] = error;
            if (--job.in_progress == 0) job.finished.notify_one();
        }
    }

    std::mutex mutex_;
    std::condition_variable work_arrived_;
    std::vector<Job*> open_;
    int wanted_ = 0;
    int n_workers_ = 0;
};

}  // namespace detail

// Calls work(t) for t = 0 .. n_threads - 1, on up to so many threads; work must not wait for another part. The first
// exception is rethrown.
template <typename Work>
void run_threads(int n_threads, Work&& work) {
    if (n_threads <= 1) {
        work(0);
        return;
    }
    using Plain = std::remove_reference_t<Work>;
    detail::Job job{[](const void* own, int t) { (*static_cast<Plain*>(const_cast<void*>(own)))(t); }, &work, n_threads,
                    std::vector<std::exception_ptr>(static_cast<std::size_t>(n_threads)), Interruption::current()};
    detail::Pool::instance().run(job);
    for (auto& error : job.errors)
        if (error) std::rethrow_exception(error);
}

// Calls work(part) for the parts 0 .. n_parts - 1, on up to so many threads: sums that are kept by parts and added in their
// order do not depend on the number of threads.
template <typename Work>
void run_parts(int n_parts, int n_threads, Work&& work) {
    std::atomic<int> next{0};
    run_threads(std::min(n_threads, n_parts), [&](int) {
        for (int part = next++; part < n_parts; part = next++) work(part);
    });
}

// Where part t of n pieces of work begins.
inline int64_t part_of(int64_t n, int t, int n_parts) { return n / n_parts * t + std::min<int64_t>(n % n_parts, t); }

// Lines [cuts[t], cuts[t + 1]) hold about the same number of entries (a line counts as one more).
template <typename Offset>
std::vector<int64_t> split_lines(const Offset* start, int64_t lines, int n_parts) {
    std::vector<int64_t> cuts(static_cast<std::size_t>(n_parts) + 1, lines);
    cuts[0] = 0;
    const int64_t total = lines == 0 ? 0 : static_cast<int64_t>(start[lines] - start[0]) + lines;
    for (int t = 1; t < n_parts; ++t) {
        const int64_t target = total / n_parts * t;
        int64_t low = cuts[static_cast<std::size_t>(t) - 1], high = lines;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (static_cast<int64_t>(start[middle] - start[0]) + middle < target) low = middle + 1;
            else high = middle;
        }
        cuts[static_cast<std::size_t>(t)] = low;
    }
    return cuts;
}

}  // namespace rankwise
