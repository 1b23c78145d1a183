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
using Ints = nb::ndarray<const std::int64_t, nb::c_contig, nb::device::cpu>;
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

void level_pair_scores(In across, In own_a, In own_b, In to_a, In to_b, In vector_products, In pulled_a, In pulled_b,
                       In pulled_vectors, In correction, double pull_a, double pull_b, Out scores, int n_threads) {
    const rankwise::PairUpdate update{correction.data(), vector_products.data(), pulled_vectors.data(), pull_a, pull_b};
    nb::gil_scoped_release unlocked;
    const auto fill = pulled_vectors.size() == 2 ? rankwise::level_pair_scores<2> : rankwise::level_pair_scores<4>;
    fill(update, across.data(), static_cast<std::int64_t>(own_a.size()), static_cast<std::int64_t>(own_b.size()),
         own_a.data(), own_b.data(), to_a.data(), to_b.data(), pulled_a.data(), pulled_b.data(), scores.data(),
         n_threads);
}

void multipartite_pair_scores(In B, In pulled, Ints sizes, In pulls, std::int64_t n_rows, Out scores) {
    nb::gil_scoped_release unlocked;
    rankwise::multipartite_pair_scores(static_cast<std::int64_t>(B.shape(0)), static_cast<std::int64_t>(B.shape(1)),
                                       B.data(), pulled.data(), sizes.data(), pulls.data(), n_rows, scores.data());
}

}  // namespace

void bind_held_out(nb::module_& m) {
    m.def("count_ridge_pairs", &count_ridge_pairs);
    m.def("level_pair_scores", &level_pair_scores);
    m.def("multipartite_pair_scores", &multipartite_pair_scores);
}
