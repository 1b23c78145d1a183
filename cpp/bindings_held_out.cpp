// The bindings of pairs that are scored by models which saw neither of their rows.
#include <nanobind/stl/pair.h>

#include <utility>

#include "bindings.hpp"
#include "held_out_pairs.hpp"

using namespace bindings;

namespace {

std::pair<double, double> count_ridge_pairs(Table<const double> across, int64_t first_row, int64_t first_column,
                                            Reals label, Reals diagonal, Reals residual, Reals root_share,
                                            bool weighted, double rounding) {
    const int64_t rows = length(label), n_rows = length(across), n_columns = length(across, 1);
    require_length(diagonal, rows, "diagonal and label disagree");
    require_length(residual, rows, "residual and label disagree");
    require_length(root_share, rows, "root_share and label disagree");
    require(0 <= first_row && first_row + n_rows <= rows, "across has rows that label has not");
    require(0 <= first_column && first_column + n_columns <= rows, "across has columns that label has not");
    rankwise::RidgeRows ridge;
    ridge.label = label.data();
    ridge.diagonal = diagonal.data();
    ridge.residual = residual.data();
    ridge.root_share = root_share.data();
    const auto count = weighted ? rankwise::count_ridge_pairs<true> : rankwise::count_ridge_pairs<false>;
    const auto found = without_gil(
        [&] { return count(ridge, across.data(), first_row, n_rows, first_column, n_columns, rounding); });
    return {found.wrong, found.right};
}

rankwise::LevelRows level_rows(const Reals& own, const Table<const double>& to, const Reals& pulled, int64_t vectors) {
    require_shape(to, length(own), vectors, "to and own disagree, or to and pulled_vectors");
    require_length(pulled, length(own), "pulled and own disagree");
    rankwise::LevelRows rows;
    rows.size = length(own);
    rows.own = own.data();
    rows.to = to.data();
    rows.pulled = pulled.data();
    return rows;
}

void level_pair_scores(Table<const double> across, Reals own_a, Reals own_b, Table<const double> to_a,
                       Table<const double> to_b, Table<const double> vector_products, Reals pulled_a, Reals pulled_b,
                       Reals pulled_vectors, Table<const double> correction, double pull_a, double pull_b,
                       Table<double> scores, int n_threads) {
    const int64_t vectors = length(pulled_vectors);
    require(vectors == 2 || vectors == 4, "two vectors or four");
    const auto a = level_rows(own_a, to_a, pulled_a, vectors), b = level_rows(own_b, to_b, pulled_b, vectors);
    require_shape(across, a.size, b.size, "across and the levels disagree");
    require_shape(vector_products, vectors, vectors, "vector_products and pulled_vectors disagree");
    require_shape(correction, vectors + 2, vectors + 2, "correction and pulled_vectors disagree");
    require_shape(scores, a.size * b.size, 2, "scores and across disagree");
    rankwise::PairUpdate update;
    update.correction = correction.data();
    update.vector_products = vector_products.data();
    update.pulled_vectors = pulled_vectors.data();
    update.pull_a = pull_a;
    update.pull_b = pull_b;
    const auto fill = vectors == 2 ? rankwise::level_pair_scores<2> : rankwise::level_pair_scores<4>;
    without_gil([&] { fill(update, across.data(), a, b, scores.data(), n_threads); });
}

void multipartite_pair_scores(nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu> B,
                              Table<const double> pulled, Table<const int64_t> sizes, Table<const double> pulls,
                              int64_t n_rows, Table<double> scores) {
    const int64_t groups = length(B), width = length(B, 1);
    require(length(B, 2) == width, "B is not square");
    require_shape(pulled, groups, width, "pulled and B disagree");
    require_shape(sizes, groups, 2, "sizes and B disagree");
    require_shape(pulls, groups, 2, "pulls and B disagree");
    int64_t n_pairs = 0;
    for (int64_t g = 0; g < groups; ++g) {
        const int64_t n_a = sizes.data()[2 * g], n_b = sizes.data()[2 * g + 1];
        require(n_a >= 0 && n_b >= 0 && n_a + n_b <= width, "sizes are larger than B");
        n_pairs += n_a * n_b;
    }
    require_shape(scores, n_pairs, 2, "scores and sizes disagree");
    without_gil([&] {
        rankwise::multipartite_pair_scores(groups, width, B.data(), pulled.data(), sizes.data(), pulls.data(), n_rows,
                                           scores.data());
    });
}

}  // namespace

void bind_held_out(nb::module_& m) {
    m.def("count_ridge_pairs", &count_ridge_pairs, "across"_a.noconvert(), "first_row"_a, "first_column"_a,
          "label"_a.noconvert(), "diagonal"_a.noconvert(), "residual"_a.noconvert(), "root_share"_a.noconvert(),
          "weighted"_a, "rounding"_a);
    m.def("level_pair_scores", &level_pair_scores, nb::kw_only(), "across"_a.noconvert(), "own_a"_a.noconvert(),
          "own_b"_a.noconvert(), "to_a"_a.noconvert(), "to_b"_a.noconvert(), "vector_products"_a.noconvert(),
          "pulled_a"_a.noconvert(), "pulled_b"_a.noconvert(), "pulled_vectors"_a.noconvert(), "correction"_a.noconvert(),
          "pull_a"_a, "pull_b"_a, "scores"_a.noconvert(), "n_threads"_a);
    m.def("multipartite_pair_scores", &multipartite_pair_scores, "B"_a.noconvert(), "pulled"_a.noconvert(),
          "sizes"_a.noconvert(), "pulls"_a.noconvert(), "n_rows"_a, "scores"_a.noconvert());
}
