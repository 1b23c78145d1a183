// The bindings of RankSVM's order statistics.
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <any>
#include <tuple>

#include "bindings.hpp"
#include "order_statistics.hpp"

using namespace bindings;

namespace {

using rankwise::Counting;
using Levels = Vector<const int32_t>;
using OptionalReals = std::optional<Reals>;

constexpr std::pair<const char*, Counting> counting_names[] = {
    {"no_pairs", Counting::no_pairs},
    {"brute", Counting::brute},
    {"levels", Counting::levels},
    {"fenwick", Counting::fenwick},
};

// The arrays of rankwise::RankedQueries, kept alive for as long as kernels may read them.
class Queries {
public:
    Queries(Ids start, Vector<const uint8_t> counting, Levels n_levels, Levels rank, OptionalReals weight,
            OptionalReals scale)
        : kept_(std::tuple(start, counting, n_levels, rank, weight, scale)), rows_(length(rank)),
          view_{length(counting), start.data(), counting.data(), n_levels.data(), rank.data(), pointer(weight), pointer(scale)} {
        const int64_t queries = length(counting);
        require_starts(start, queries, length(rank), "start must end with the rows");
        require_length(n_levels, queries, "n_levels and counting disagree");
        require_length(weight, length(rank), "weight and rank disagree");
        require_length(scale, queries, "scale and counting disagree");
        for (int64_t q = 0; q < queries; ++q) {
            const auto method = static_cast<Counting>(counting.data()[q]);
            require(method <= Counting::fenwick, "a way of counting that there is not");
            require(method != Counting::levels || n_levels.data()[q] <= rankwise::max_levels, "too many levels to count so");
        }
    }

    int64_t rows() const { return rows_; }
    const rankwise::RankedQueries& view() const { return view_; }

private:
    std::any kept_;
    int64_t rows_;
    rankwise::RankedQueries view_;
};

class Point {
public:
    Point(Reals score, Levels order, Reals sorted_score, Levels sorted_rank)
        : kept_(std::tuple(score, order, sorted_score, sorted_rank)), rows_(length(score)),
          view_{score.data(), order.data(), sorted_score.data(), sorted_rank.data()} {
        require_length(order, length(score), "order and score disagree");
        require_length(sorted_score, length(score), "sorted_score and score disagree");
        require_length(sorted_rank, length(score), "sorted_rank and score disagree");
    }

    const rankwise::SortedScores& view(const Queries& queries) const {
        require(rows_ == queries.rows(), "the scores and the queries disagree");
        return view_;
    }

private:
    std::any kept_;
    int64_t rows_;
    rankwise::SortedScores view_;
};

void sort_scores(const Queries& queries, Reals score, int64_t presorted_from, Vector<int32_t> order,
                 Vector<double> sorted_score, Vector<int32_t> sorted_rank, int n_threads) {
    require_length(score, queries.rows(), "score and the queries disagree");
    require_length(order, queries.rows(), "order and the queries disagree");
    require_length(sorted_score, queries.rows(), "sorted_score and the queries disagree");
    require_length(sorted_rank, queries.rows(), "sorted_rank and the queries disagree");
    without_gil([&] {
        rankwise::sort_scores(queries.view(), score.data(), presorted_from, order.data(), sorted_score.data(),
                              sorted_rank.data(), n_threads);
    });
}

void violation_counts(const Queries& queries, const Point& point, double margin, Vector<double> won, Vector<double> lost,
                      int n_threads) {
    require_length(won, queries.rows(), "won and the queries disagree");
    require_length(lost, queries.rows(), "lost and the queries disagree");
    const auto scores = point.view(queries);
    without_gil(
        [&] { rankwise::violation_counts(queries.view(), scores, margin, won.data(), lost.data(), n_threads); });
}

void violation_laplacian(const Queries& queries, const Point& point, double margin, Reals won, Reals lost,
                         Table<const double> V, Table<double> out, int n_threads) {
    require_length(won, queries.rows(), "won and the queries disagree");
    require_length(lost, queries.rows(), "lost and the queries disagree");
    require_length(V, queries.rows(), "V and the queries disagree");
    require_shape(out, length(V), length(V, 1), "out and V disagree");
    const auto scores = point.view(queries);
    without_gil([&] {
        rankwise::violation_laplacian(queries.view(), scores, margin, won.data(), lost.data(), V.data(), length(V, 1),
                                      out.data(), n_threads);
    });
}

void smoothed_violations(const Queries& queries, const Point& point, double margin, double delta, Vector<double> won,
                         Vector<double> lost, Vector<double> excess, int n_threads) {
    require_length(won, queries.rows(), "won and the queries disagree");
    require_length(lost, queries.rows(), "lost and the queries disagree");
    require_length(excess, queries.rows(), "excess and the queries disagree");
    const auto scores = point.view(queries);
    without_gil([&] {
        rankwise::smoothed_violations(queries.view(), scores, margin, delta, won.data(), lost.data(), excess.data(),
                                      n_threads);
    });
}

}  // namespace

void bind_order_statistics(nb::module_& m) {
    m.attr("MAX_LEVELS") = rankwise::max_levels;
    m.def(
        "counting_code", [](const char* name) { return static_cast<int>(by_name(counting_names, name)); }, "name"_a);
    nb::class_<Queries>(m, "RankedQueries")
        .def(nb::init<Ids, Vector<const uint8_t>, Levels, Levels, OptionalReals, OptionalReals>(), nb::kw_only(),
             "start"_a.noconvert(), "counting"_a.noconvert(), "n_levels"_a.noconvert(), "rank"_a.noconvert(),
             "weight"_a.noconvert().none(), "scale"_a.noconvert().none());
    nb::class_<Point>(m, "SortedScores")
        .def(nb::init<Reals, Levels, Reals, Levels>(), nb::kw_only(), "score"_a.noconvert(), "order"_a.noconvert(),
             "sorted_score"_a.noconvert(), "sorted_rank"_a.noconvert());
    m.def("sort_scores", &sort_scores, "queries"_a, "score"_a.noconvert(), "presorted_from"_a, "order"_a.noconvert(),
          "sorted_score"_a.noconvert(), "sorted_rank"_a.noconvert(), "n_threads"_a);
    m.def("violation_counts", &violation_counts, "queries"_a, "point"_a, "margin"_a, "won"_a.noconvert(),
          "lost"_a.noconvert(), "n_threads"_a);
    m.def("violation_laplacian", &violation_laplacian, "queries"_a, "point"_a, "margin"_a, "won"_a.noconvert(),
          "lost"_a.noconvert(), "V"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
    m.def("smoothed_violations", &smoothed_violations, "queries"_a, "point"_a, "margin"_a, "delta"_a,
          "won"_a.noconvert(), "lost"_a.noconvert(), "excess"_a.noconvert(), "n_threads"_a);
}
