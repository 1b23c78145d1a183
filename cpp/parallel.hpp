// Running a function on several threads: plain std::thread, one set a call.
//
// No OpenMP: it deadlocks in a child forked after a parallel region, and needs its own library in the wheel.
// Starting threads costs about 30 microseconds, so callers ask for one thread when there is little work.
#pragma once

#include <exception>
#include <thread>
#include <vector>

namespace rankwise {

// Calls work(t) for t = 0 .. n_threads - 1; the calling thread takes t = 0. The first exception is rethrown.
template <typename Work>
void run_threads(int n_threads, Work&& work) {
    if (n_threads <= 1) {
        work(0);
        return;
    }
    std::vector<std::exception_ptr> errors(static_cast<std::size_t>(n_threads));
    auto guarded = [&](int t) {
        try {
            work(t);
        } catch (...) {
            errors[static_cast<std::size_t>(t)] = std::current_exception();
        }
    };
    std::vector<std::thread> threads;
    threads.reserve(static_cast<std::size_t>(n_threads) - 1);
    try {
        for (int t = 1; t < n_threads; ++t) threads.emplace_back(guarded, t);
    } catch (...) {
        // No more threads to be had: what was started finishes, and the rest is done here.
        for (int t = static_cast<int>(threads.size()) + 1; t < n_threads; ++t) guarded(t);
    }
    guarded(0);
    for (auto& thread : threads) thread.join();
    for (auto& error : errors)
        if (error) std::rethrow_exception(error);
}

}  // namespace rankwise
