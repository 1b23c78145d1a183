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

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

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
        job.finished.wait(lock, [&] { return job.in_progress == 0; });
    }

private:
    static std::atomic<Pool*>& current() {
        static std::atomic<Pool*> pool{nullptr};
        return pool;
    }

    // As many threads as all open jobs want together; the parts that find none are done by the callers.
    void start_workers() {
        try {
            for (; n_workers_ < wanted_; ++n_workers_) std::thread([this] { work(); }).detach();
        } catch (const std::system_error&) {
            return;
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
            try {
                job.run(job.work, part);
            } catch (...) {
                error = std::current_exception();
            }
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
                    std::vector<std::exception_ptr>(static_cast<std::size_t>(n_threads))};
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

}  // namespace rankwise
