// The bindings of how matrices are stored: checks of their arrays, and matrices on disk.
#include <nanobind/stl/shared_ptr.h>

#include <memory>

#include "bindings.hpp"
#include "disk.hpp"
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

void bind_storage(nb::module_& m) {
    bind_misfit<int32_t, int32_t>(m);
    bind_misfit<int64_t, int64_t>(m);
    bind_misfit<int64_t, int32_t>(m);
    bind_misfit<int32_t, int64_t>(m);
    bind_values_fit<double>(m);
    bind_values_fit<float>(m);
    using rankwise::DirectFiles;
    using rankwise::Disk;

    nb::class_<DirectFiles>(m, "DirectFiles")
        .def(nb::init<int, int, int64_t, int64_t>(), "values"_a, "ids"_a, "values_begin"_a, "ids_begin"_a);

    nb::class_<Disk>(m, "Disk")
        .def(
            "__init__",
            [](Disk* self, std::shared_ptr<DirectFiles> files, int64_t first, int64_t window) {
                require(first >= 0, "first is negative");
                require(window >= 1, "window is empty");
                new (self) Disk{std::move(files), first, window};
            },
            "files"_a.none(), "first"_a, "window"_a)
        .def(
            "part",
            [](const Disk& self, int64_t first) {
                require(first >= 0, "first is negative");
                return Disk{self.files, self.first + first, self.window};
            },
            "first"_a)
        .def(
            "with_window",
            [](const Disk& self, int64_t window) {
                require(window >= 1, "window is empty");
                return Disk{self.files, self.first, window};
            },
            "window"_a)
        .def_ro("window", &Disk::window)
        .def_prop_ro("is_direct", [](const Disk& self) { return self.files != nullptr; });
}
