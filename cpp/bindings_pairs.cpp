// The bindings of listed pairs: their Laplacian, and pairs scored by models that saw neither of their rows.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include <utility>

#include "bindings.hpp"
#include "held_out_pairs.hpp"
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

std::pair<double, double> count_ridge_pairs(Table<const double> across, int64_t first_row, int64_t first_column,
                                            Reals label, Reals diagonal, Reals residual, Reals root_share,
                                            bool weighted, double rounding) {
    const int64_t rows = length(label), n_rows = length(across), n_columns = length(across, 1);
    require_length(diagonal, rows, "diagonal and label disagree");
    require_length(residual, rows, "residual and label disagree");
    require_length(root_share, rows, "root_share and label disagree");
    require(0 <= first_row && first_row + n_rows <= rows, "across has rows that label has not");
    require(0 <= first_column && first_column + n_columns <= rows, "across has columns that label has not");
    const rankwise::RidgeRows ridge{label.data(), diagonal.data(), residual.data(), root_share.data()};
    const auto count = weighted ? rankwise::count_ridge_pairs<true> : rankwise::count_ridge_pairs<false>;
    const auto found = without_gil(
        [&] { return count(ridge, across.data(), first_row, n_rows, first_column, n_columns, rounding); });
    return {found.wrong, found.right};
}

}  // namespace

void bind_pairs(nb::module_& m) {
    bind_laplacian<int32_t>(m);
    bind_laplacian<int64_t>(m);
    m.def("count_ridge_pairs", &count_ridge_pairs, "across"_a.noconvert(), "first_row"_a, "first_column"_a,
          "label"_a.noconvert(), "diagonal"_a.noconvert(), "residual"_a.noconvert(), "root_share"_a.noconvert(),
          "weighted"_a, "rounding"_a);
}
