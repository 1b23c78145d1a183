// Kernels end early once their caller wants it, on however many threads, and run to their end where nobody asks.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "csr.hpp"
#include "interruption.hpp"
#include "order_statistics.hpp"
#include "parallel.hpp"

namespace {

using namespace rankwise;

void require(bool is_true, const char* what) {
    if (is_true) return;
    std::puts(what);
    std::exit(1);
}

template <typename Work>
bool is_interrupted(bool (*is_wanted)(), Work&& work) {
    Interruption interruption(is_wanted);
    try {
        work();
    } catch (const Interrupted&) {
        return true;
    }
    return interruption.has_come();
}

// Never ends by itself.
void work_for_ever() {
    WorkCounter work;
    for (;;) work.add(1000);
}

void check_every_thread_ends() {
    for (const int n_threads : {1, 2, 5}) {
        require(is_interrupted([] { return true; }, [&] { run_threads(n_threads, [](int) { work_for_ever(); }); }),
                "not interrupted");
        // Only the calling thread may ask; here it is done at once, and waits for the others.
        std::atomic<bool> has_begun{false};
        const auto caller = std::this_thread::get_id();
        require(is_interrupted([] { return true; },
                               [&] {
                                   run_threads(n_threads, [&](int) {
                                       if (std::this_thread::get_id() != caller) {
                                           has_begun = true;
                                           work_for_ever();
                                       }
                                       if (n_threads == 1) work_for_ever();
                                       for (int wait = 0; wait < 1000 && !has_begun; ++wait)
                                           std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                   });
                                   check_interrupted();
                               }) || !has_begun,
                "a caller that waits was not interrupted");
    }
}

void check_nobody_asks() {
    int done = 0;
    in_pieces(0, 10, 3, [&](int64_t from, int64_t to) { done += static_cast<int>(to - from); });
    require(done == 10, "pieces got lost");
    check_interrupted();
    require(!is_interrupted([] { return false; },
                            [] {
                                WorkCounter work;
                                const auto end = std::chrono::steady_clock::now() + 3 * Interruption::interval;
                                while (std::chrono::steady_clock::now() < end) work.add(1 << 12);
                            }),
            "interrupted by nobody");
    require(Interruption::current() == nullptr, "an interruption was left behind");
}

// Real kernels: a question that is answered by yes ends them, later than they would end by themselves otherwise.
void check_kernels() {
    const int64_t rows = 1 << 15;
    std::vector<double> values(rows, 1.0), v(1, 1.0), out(rows);
    std::vector<int32_t> ids(rows, 0);
    std::vector<int64_t> start(rows + 1);
    for (int64_t i = 0; i <= rows; ++i) start[static_cast<std::size_t>(i)] = i;
    const Csr<double, int32_t, int64_t> X{rows, 1, values.data(), ids.data(), start.data()};
    require(is_interrupted([] { return true; },
                           [&] {
                               for (;;) dot(X, nullptr, v.data(), 1, out.data(), 2);
                           }),
            "a product was not interrupted");
}

}  // namespace

int main() {
    check_every_thread_ends();
    check_nobody_asks();
    check_kernels();
    std::puts("interruption: ok");
}
