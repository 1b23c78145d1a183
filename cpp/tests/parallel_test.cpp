// The pool of threads: every part once, whoever calls, and no caller waits for a thread that has not begun.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "parallel.hpp"

#if defined(__SANITIZE_THREAD__)
#define NO_FORK  // this sanitizer does not follow threads that a forked child starts
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define NO_FORK
#endif
#endif
#if (defined(__unix__) || defined(__APPLE__)) && !defined(NO_FORK)
#include <sys/wait.h>
#include <unistd.h>
#define CAN_FORK
#endif

namespace {

using rankwise::run_threads;

void require(bool is_true, const char* what) {
    if (is_true) return;
    std::puts(what);
    std::exit(1);
}

void check_every_part_once() {
    for (const int n_parts : {0, 1, 2, 3, 17})
        for (int round = 0; round < 200; ++round) {
            std::vector<int> done(static_cast<std::size_t>(n_parts < 1 ? 1 : n_parts), 0);  // no atomics: parts are apart
            run_threads(n_parts, [&](int t) { ++done[static_cast<std::size_t>(t)]; });
            for (const int times : done) require(times == 1, "a part was not done once");
        }
}

void check_many_callers() {
    std::vector<std::thread> callers;
    std::atomic<int> done{0};
    for (int c = 0; c < 6; ++c)
        callers.emplace_back([&] {
            for (int round = 0; round < 100; ++round)
                run_threads(3, [&](int) { run_threads(2, [&](int) { ++done; }); });  // nested as well
        });
    for (auto& caller : callers) caller.join();
    require(done == 6 * 100 * 3 * 2, "parts of several callers got lost");
}

void check_exceptions() {
    std::atomic<int> done{0};
    std::string said;
    try {
        run_threads(5, [&](int t) {
            ++done;
            if (t >= 2) throw std::runtime_error(std::to_string(t));
        });
    } catch (const std::runtime_error& error) {
        said = error.what();
    }
    require(said == "2" && done == 5, "not the first exception, or parts were left");
    run_threads(5, [&](int) { ++done; });
    require(done == 10, "the pool did not survive an exception");
}

// However many parts somebody asks for, the pool has a number of threads that a system can have.
void check_the_pool_has_a_limit() {
    constexpr int n_parts = 100000;
    std::vector<std::thread::id> by(n_parts);
    run_threads(n_parts, [&](int t) { by[static_cast<std::size_t>(t)] = std::this_thread::get_id(); });
    const std::set<std::thread::id> threads(by.begin(), by.end());
    require(threads.count(std::thread::id()) == 0, "a part of very many was not done");
    require(threads.size() <= 1 + std::max(64u, 4 * std::thread::hardware_concurrency()), "too many threads were started");
}

// Whatever the other threads are at, a caller with fewer helpers than parts comes to its end alone.
void check_caller_needs_nobody() {
    std::atomic<bool> is_over{false};
    std::thread holds_workers([&] {
        run_threads(4, [&](int) {
            while (!is_over) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
    });
    for (int round = 0; round < 100; ++round) {
        int done[2] = {};
        run_threads(2, [&](int t) { done[t] = 1; });
        require(done[0] + done[1] == 2, "a caller beside busy workers lost a part");
    }
    is_over = true;
    holds_workers.join();
}

void check_fork() {
#if defined(CAN_FORK)
    const pid_t child = fork();
    if (child == 0) {
        std::atomic<int> done{0};
        for (int round = 0; round < 10; ++round) run_threads(3, [&](int) { ++done; });
        _exit(done == 30 ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    require(status == 0, "a forked child cannot use the pool");
#endif
}

}  // namespace

int main() {
    check_every_part_once();
    check_many_callers();
    check_exceptions();
    check_the_pool_has_a_limit();
    check_caller_needs_nobody();
    check_fork();
    check_every_part_once();
    std::puts("the pool does every part once");
}
