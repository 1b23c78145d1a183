// The bindings of the store; see bindings.cpp for the rule.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

#include "bindings.hpp"
#include "checksum.hpp"

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
}
