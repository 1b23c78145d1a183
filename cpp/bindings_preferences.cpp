// The bindings of explicit preferences; see bindings.cpp for the rule.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "bindings.hpp"
#include "preferences.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Wrong shapes would read or write outside the arrays; everything else about the arguments is trusted.
void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <typename Row>
void bind_laplacian(nb::module_& m) {
    m.def(
        "preference_laplacian",
        [](Vector<const std::int64_t> start, Vector<const Row> neighbour, std::optional<Vector<const double>> weight,
           Table<const double> F, Table<double> out, int n_threads) {
            const auto rows = static_cast<std::int64_t>(F.shape(0));
            require(start.size() == F.shape(0) + 1, "start and F disagree");
            require(static_cast<std::size_t>(start(F.shape(0))) == neighbour.size(), "start must end with the neighbours");
            require(!weight || weight->size() == neighbour.size(), "weight and neighbour disagree");
            require(out.shape(0) == F.shape(0) && out.shape(1) == F.shape(1), "out and F disagree");
            const rankwise::Neighbours<Row> graph{rows, start.data(), neighbour.data(), weight ? weight->data() : nullptr};
            nb::gil_scoped_release release;
            rankwise::preference_laplacian(graph, F.data(), static_cast<std::int64_t>(F.shape(1)), out.data(), n_threads);
        },
        "start"_a.noconvert(), "neighbour"_a.noconvert(), "weight"_a.noconvert().none(), "F"_a.noconvert(),
        "out"_a.noconvert(), "n_threads"_a);
}

}  // namespace

void bind_preferences(nb::module_& m) {
    bind_laplacian<std::int32_t>(m);
    bind_laplacian<std::int64_t>(m);
}
