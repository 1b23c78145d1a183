// The bindings of RankSVM's order statistics; see bindings.cpp for the rule.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>

#include "bindings.hpp"
#include "order_statistics.hpp"

namespace nb = nanobind;

namespace {

template <typename T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
using MaybeIn = std::optional<In<double>>;

// The arrays of rankwise::RankedQueries, kept alive for as long as kernels may read them.
struct Queries {
    In<std::int64_t> start;
    In<std::uint8_t> counting;
    In<std::int32_t> n_levels, rank;
    MaybeIn weight, scale;

    rankwise::RankedQueries view() const {
        return {static_cast<std::int64_t>(counting.size()), start.data(), counting.data(), n_levels.data(),
                rank.data(), weight ? weight->data() : nullptr, scale ? scale->data() : nullptr};
    }
};

struct Point {
    In<double> score;
    In<std::int32_t> order;
    In<double> sorted_score;
    In<std::int32_t> sorted_rank;

    rankwise::SortedScores view() const {
        return {score.data(), order.data(), sorted_score.data(), sorted_rank.data()};
    }
};

void sort_scores(const Queries& queries, In<double> score, std::int64_t presorted_from, Out<std::int32_t> order,
                 Out<double> sorted_score, Out<std::int32_t> sorted_rank, int n_threads) {
    nb::gil_scoped_release unlocked;
    rankwise::sort_scores(queries.view(), score.data(), presorted_from, order.data(), sorted_score.data(),
                          sorted_rank.data(), n_threads);
}

void violation_counts(const Queries& queries, const Point& point, double margin, Out<double> won, Out<double> lost,
                      int n_threads) {
    nb::gil_scoped_release unlocked;
    rankwise::violation_counts(queries.view(), point.view(), margin, won.data(), lost.data(), n_threads);
}

void violation_laplacian(const Queries& queries, const Point& point, double margin, In<double> won, In<double> lost,
                         In<double> v, Out<double> out, int n_threads) {
    const auto n_columns = v.ndim() == 1 ? 1 : static_cast<std::int64_t>(v.shape(1));
    nb::gil_scoped_release unlocked;
    rankwise::violation_laplacian(queries.view(), point.view(), margin, won.data(), lost.data(), v.data(), n_columns,
                                  out.data(), n_threads);
}

void smoothed_violations(const Queries& queries, const Point& point, double margin, double delta, Out<double> won,
                         Out<double> lost, Out<double> excess, int n_threads) {
    nb::gil_scoped_release unlocked;
    rankwise::smoothed_violations(queries.view(), point.view(), margin, delta, won.data(), lost.data(),
                                  excess.data(), n_threads);
}

}  // namespace

void bind_order_statistics(nb::module_& m) {
    nb::class_<Queries>(m, "RankedQueries")
        .def(nb::init<In<std::int64_t>, In<std::uint8_t>, In<std::int32_t>, In<std::int32_t>, MaybeIn, MaybeIn>(),
             nb::arg("start"), nb::arg("counting"), nb::arg("n_levels"), nb::arg("rank"), nb::arg("weight").none(),
             nb::arg("scale").none());
    nb::class_<Point>(m, "SortedScores")
        .def(nb::init<In<double>, In<std::int32_t>, In<double>, In<std::int32_t>>());
    m.def("sort_scores", &sort_scores);
    m.def("violation_counts", &violation_counts);
    m.def("violation_laplacian", &violation_laplacian);
    m.def("smoothed_violations", &smoothed_violations);
}
