// The bindings of the checks of input; see bindings.cpp for the rule.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>

#include "bindings.hpp"
#include "input_checks.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using std::int64_t;

namespace {

template <typename T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Says what does not fit, and None where all does.
template <typename Pointer, typename Index>
void bind_misfit(nb::module_& m) {
    m.def(
        "compressed_misfit",
        [](Vector<Pointer> start, Vector<Index> indices, int64_t limit, int n_threads) -> const char* {
            if (start.size() == 0) throw std::invalid_argument("no pointers");
            nb::gil_scoped_release release;
            const auto n_lines = static_cast<int64_t>(start.size()) - 1;
            if (!rankwise::pointers_fit(start.data(), n_lines, static_cast<int64_t>(indices.size()))) return "pointers";
            const auto n_entries = static_cast<int64_t>(start.data()[n_lines]);
            return rankwise::indices_fit(indices.data(), n_entries, limit, n_threads) ? nullptr : "indices";
        },
        "start"_a.noconvert(), "indices"_a.noconvert(), "limit"_a, "n_threads"_a);
}

template <typename Value>
void bind_values_fit(nb::module_& m) {
    m.def(
        "values_fit",
        [](Vector<Value> values, Value limit, int n_threads) {
            nb::gil_scoped_release release;
            return rankwise::values_fit(values.data(), static_cast<int64_t>(values.size()), limit, n_threads);
        },
        "values"_a.noconvert(), "limit"_a, "n_threads"_a);
}

}  // namespace

void bind_input(nb::module_& m) {
    bind_misfit<std::int32_t, std::int32_t>(m);
    bind_misfit<int64_t, int64_t>(m);
    bind_misfit<int64_t, std::int32_t>(m);
    bind_misfit<std::int32_t, int64_t>(m);
    bind_values_fit<double>(m);
    bind_values_fit<float>(m);
}
