// The bindings of explicit preferences.
#include <nanobind/stl/optional.h>

#include "bindings.hpp"
#include "preferences.hpp"

using namespace bindings;

namespace {

template <typename Row>
void bind_laplacian(nb::module_& m) {
    m.def(
        "preference_laplacian",
        [](Ids start, Vector<const Row> neighbour, std::optional<Reals> weight, Table<const double> F, Table<double> out,
           int n_threads) {
            require_length(start, length(F) + 1, "start and F disagree");
            require(start.data()[length(F)] == length(neighbour), "start must end with the neighbours");
            require_length(weight, length(neighbour), "weight and neighbour disagree");
            require_shape(out, length(F), length(F, 1), "out and F disagree");
            const rankwise::Neighbours<Row> graph{length(F), start.data(), neighbour.data(), pointer(weight)};
            without_gil([&] { rankwise::preference_laplacian(graph, F.data(), length(F, 1), out.data(), n_threads); });
        },
        "start"_a.noconvert(), "neighbour"_a.noconvert(), "weight"_a.noconvert().none(), "F"_a.noconvert(),
        "out"_a.noconvert(), "n_threads"_a);
}

}  // namespace

void bind_preferences(nb::module_& m) {
    bind_laplacian<int32_t>(m);
    bind_laplacian<int64_t>(m);
}
