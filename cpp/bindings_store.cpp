// The bindings of matrices on disk.
#include <nanobind/stl/shared_ptr.h>

#include <memory>

#include "bindings.hpp"
#include "disk.hpp"

using namespace bindings;

void bind_store(nb::module_& m) {
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
