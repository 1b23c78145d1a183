// What a caller's arrays are looked at for, against plain comparisons. Built with sanitizers by `make test-sanitize`.
#include "input_checks.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

using namespace rankwise;

namespace {

std::mt19937 rng(3);

int64_t between(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); }

void require(bool holds, const char* what) {
    if (holds) return;
    std::printf("%s\n", what);
    std::exit(1);
}

template <typename Integer>
void test_indices() {
    const std::vector<Integer> extremes{std::numeric_limits<Integer>::min(), std::numeric_limits<Integer>::max(), -1, 0};
    for (int trial = 0; trial < 200; ++trial) {
        const int64_t limit = between(0, 6);
        std::vector<Integer> indices(static_cast<std::size_t>(between(0, 40)));
        bool fits = true;
        for (Integer& index : indices) {
            const bool odd = between(0, 60) == 0;
            index = odd ? extremes[static_cast<std::size_t>(between(0, 3))] : static_cast<Integer>(between(0, std::max<int64_t>(limit - 1, 0)));
            fits = fits && index >= 0 && static_cast<int64_t>(index) < limit;
        }
        const auto n = static_cast<int64_t>(indices.size());
        require(indices_fit(indices.data(), n, limit, 1) == fits, "indices");
    }
    const Integer largest = std::numeric_limits<Integer>::max();
    require(indices_fit(&largest, 1, std::numeric_limits<int64_t>::max(), 1) == (sizeof(Integer) == 4), "the largest index");
    // Large enough for threads, with one index in the wrong place.
    std::vector<Integer> many(static_cast<std::size_t>(2 * many_entries), 3);
    require(indices_fit(many.data(), 2 * many_entries, 4, 3), "many indices");
    many[static_cast<std::size_t>(between(0, 2 * many_entries - 1))] = 4;
    require(!indices_fit(many.data(), 2 * many_entries, 4, 3), "one index of many");
}

template <typename Integer>
void test_pointers() {
    for (int trial = 0; trial < 500; ++trial) {
        const int64_t n_lines = between(0, 4), n_entries = between(0, 6);
        std::vector<Integer> start(static_cast<std::size_t>(n_lines + 1));
        for (Integer& at : start) at = static_cast<Integer>(between(-1, 7));
        if (between(0, 1)) std::sort(start.begin(), start.end());
        if (between(0, 2)) start[0] = 0;
        const bool fits = start[0] == 0 && std::is_sorted(start.begin(), start.end()) && start.back() <= n_entries;
        require(pointers_fit(start.data(), n_lines, n_entries) == fits, "pointers");
    }
}

template <typename Value>
void test_values(Value limit) {
    const Value inf = std::numeric_limits<Value>::infinity(), nan = std::numeric_limits<Value>::quiet_NaN();
    const std::vector<Value> within{0, -limit, limit, std::numeric_limits<Value>::denorm_min(), 1, -1};
    const std::vector<Value> beyond{inf, -inf, nan, -nan, std::nextafter(limit, inf), -std::nextafter(limit, inf)};
    for (std::size_t size = 1; size < 70; ++size) {
        std::vector<Value> values(size);
        for (Value& value : values) value = within[static_cast<std::size_t>(between(0, 5))];
        require(values_fit(values.data(), static_cast<int64_t>(size), limit, 1), "values within");
        values[static_cast<std::size_t>(between(0, static_cast<int64_t>(size) - 1))] = beyond[static_cast<std::size_t>(between(0, 5))];
        require(!values_fit(values.data(), static_cast<int64_t>(size), limit, 1), "values beyond");
    }
}

}  // namespace

int main() {
    test_indices<int32_t>();
    test_indices<int64_t>();
    test_pointers<int32_t>();
    test_pointers<int64_t>();
    test_values<double>(1e150);
    test_values<double>(std::numeric_limits<double>::max());
    test_values<float>(std::numeric_limits<float>::max());
    std::puts("checks of input agree with plain comparisons");
}
