// The bindings of the checks of input.
#include "bindings.hpp"
#include "input_checks.hpp"

using namespace bindings;

namespace {

// Says what does not fit, and None where all does.
template <typename Pointer, typename Index>
void bind_misfit(nb::module_& m) {
    m.def(
        "compressed_misfit",
        [](Vector<const Pointer> start, Vector<const Index> indices, int64_t limit, int n_threads) -> const char* {
            require(length(start) > 0, "no pointers");
            return without_gil([&]() -> const char* {
                const int64_t n_lines = length(start) - 1;
                if (!rankwise::pointers_fit(start.data(), n_lines, length(indices))) return "pointers";
                const auto n_entries = static_cast<int64_t>(start.data()[n_lines]);
                return rankwise::indices_fit(indices.data(), n_entries, limit, n_threads) ? nullptr : "indices";
            });
        },
        "start"_a.noconvert(), "indices"_a.noconvert(), "limit"_a, "n_threads"_a);
}

template <typename Value>
void bind_values_fit(nb::module_& m) {
    m.def(
        "values_fit",
        [](Vector<const Value> values, Value limit, int n_threads) {
            return without_gil([&] { return rankwise::values_fit(values.data(), length(values), limit, n_threads); });
        },
        "values"_a.noconvert(), "limit"_a, "n_threads"_a);
}

}  // namespace

void bind_input(nb::module_& m) {
    bind_misfit<int32_t, int32_t>(m);
    bind_misfit<int64_t, int64_t>(m);
    bind_misfit<int64_t, int32_t>(m);
    bind_misfit<int32_t, int64_t>(m);
    bind_values_fit<double>(m);
    bind_values_fit<float>(m);
}
