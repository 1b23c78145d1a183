// The bindings of the store; see bindings.cpp for the rule.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include <cstdint>
#include <memory>
#include <stdexcept>

#include "bindings.hpp"
#include "bus_error.hpp"
#include "checksum.hpp"
#include "disk.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

}  // namespace

void bind_store(nb::module_& m) {
    m.def(
        "checksum",
        [](Vector<std::uint8_t> content) {
            nb::gil_scoped_release release;
            return rankwise::checksum(content.data(), content.size());
        },
        "content"_a.noconvert());

    m.def(
        "watch_mapping",
        [](Vector<std::uint8_t> content, const char* name) {
            return rankwise::MappedFiles::all().watch(content.data(), content.size(), name);
        },
        "content"_a.noconvert(), "name"_a);
    m.def("forget_mapping", [](int slot) { rankwise::MappedFiles::all().forget(slot); }, "slot"_a);

    using rankwise::DirectFiles;
    using rankwise::Disk;

    nb::class_<DirectFiles>(m, "DirectFiles").def(nb::init<int, int>(), "values"_a, "ids"_a);

    nb::class_<Disk>(m, "Disk")
        .def(
            "__init__",
            [](Disk* self, std::shared_ptr<DirectFiles> files, std::int64_t first, std::int64_t window) {
                if (first < 0 || window < 1) throw std::invalid_argument("first or window");
                new (self) Disk{std::move(files), first, window};
            },
            "files"_a.none(), "first"_a, "window"_a)
        .def(
            "part", [](const Disk& self, std::int64_t first) { return Disk{self.files, self.first + first, self.window}; },
            "first"_a)
        .def("with_window", [](const Disk& self, std::int64_t window) { return Disk{self.files, self.first, window}; }, "window"_a)
        .def_ro("window", &Disk::window)
        .def_prop_ro("is_direct", [](const Disk& self) { return self.files != nullptr; });
}
