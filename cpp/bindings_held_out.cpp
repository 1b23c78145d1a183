// The bindings of pairs judged by models that saw neither of their rows; see bindings.cpp for the rule.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <cstdint>
#include <utility>

#include "bindings.hpp"
#include "held_out_pairs.hpp"

namespace nb = nanobind;

namespace {

using In = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<double, nb::c_contig, nb::device::cpu>;

std::pair<double, double> count_ridge_pairs(In across, std::int64_t first_row, std::int64_t first_column, In label,
                                            In diagonal, In residual, In root_share, bool weighted, double rounding) {
    const rankwise::RidgeRows rows{label.data(), diagonal.data(), residual.data(), root_share.data()};
    const auto n_rows = static_cast<std::int64_t>(across.shape(0)), n_columns = static_cast<std::int64_t>(across.shape(1));
    nb::gil_scoped_release unlocked;
    const auto count = weighted ? rankwise::count_ridge_pairs<true> : rankwise::count_ridge_pairs<false>;
    const auto found = count(rows, across.data(), first_row, n_rows, first_column, n_columns, rounding);
    return {found.wrong, found.right};
}

void level_pair_scores(In across, In own_a, In own_b, In to_levels_a, In to_levels_b, In level_products, In coupling,
                       In pull, std::int64_t level_a, std::int64_t level_b, double degree_a, double degree_b,
                       Out scores, int n_threads) {
    const rankwise::LevelPair pair{static_cast<std::int64_t>(pull.size()), level_a, level_b, degree_a, degree_b,
                                   coupling.data(), pull.data(), level_products.data()};
    nb::gil_scoped_release unlocked;
    rankwise::level_pair_scores(pair, across.data(), static_cast<std::int64_t>(own_a.size()),
                                static_cast<std::int64_t>(own_b.size()), own_a.data(), own_b.data(),
                                to_levels_a.data(), to_levels_b.data(), scores.data(), n_threads);
}

}  // namespace

void bind_held_out(nb::module_& m) {
    m.def("count_ridge_pairs", &count_ridge_pairs);
    m.def("level_pair_scores", &level_pair_scores);
}
