// Converts numpy arrays to pointers, releases the GIL, and calls the headers that compute. Nothing else.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>

#include "preferences.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace rankwise;

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
void bind_preferences(nb::module_& m) {
    m.def(
        "preference_laplacian",
        [](Vector<const int64_t> start, Vector<const Row> neighbour, std::optional<Vector<const double>> weight,
           Table<const double> F, Table<double> out, int n_threads) {
            require(start.size() == F.shape(0) + 1, "start and F disagree");
            require(static_cast<std::size_t>(start(F.shape(0))) == neighbour.size(), "start must end with the neighbours");
            require(!weight || weight->size() == neighbour.size(), "weight and neighbour disagree");
            require(out.shape(0) == F.shape(0) && out.shape(1) == F.shape(1), "out and F disagree");
            const Neighbours<Row> graph{static_cast<int64_t>(F.shape(0)), start.data(), neighbour.data(),
                                        weight ? weight->data() : nullptr};
            nb::gil_scoped_release release;
            preference_laplacian(graph, F.data(), static_cast<int64_t>(F.shape(1)), out.data(), n_threads);
        },
        "start"_a.noconvert(), "neighbour"_a.noconvert(), "weight"_a.noconvert().none(), "F"_a.noconvert(),
        "out"_a.noconvert(), "n_threads"_a);
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The compiled kernels of rankwise. Arguments are trusted: they were validated above.";
    bind_preferences<std::int32_t>(m);
    bind_preferences<int64_t>(m);
}
