// The bindings of the metrics.
#include <nanobind/stl/optional.h>

#include "bindings.hpp"
#include "metrics.hpp"
#include "metrics_top.hpp"

using namespace bindings;

namespace {

namespace metrics = rankwise::metrics;

using ScoreBlock = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
using Cube = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using OptionalReals = std::optional<Reals>;

metrics::Grouping grouping_of(const Ids& rows, const Ids& offsets) {
    require(length(offsets) > 0, "no offsets");
    require_starts(offsets, length(offsets) - 1, length(rows), "offsets must end with the rows");
    return {rows.data(), offsets.data(), length(offsets) - 1};
}

metrics::Scores scores_of(const ScoreBlock& scores, const Ids& rows) {
    require_length(scores, length(rows), "scores and rows disagree");
    return {scores.data(), scores.stride(0), scores.stride(1), length(scores, 1)};
}

// How far a metric looks up the sums of discounts.
enum class Discounts { none, to_cutoff, to_end };

metrics::Settings settings_of(const metrics::Grouping& grouping, const Reals& discount_sums, int64_t k, bool stable,
                              Discounts discounts) {
    require(k >= 1, "k is not positive");
    int64_t longest = 0;
    for (int64_t q = 0; q < grouping.n_queries; ++q) longest = std::max(longest, grouping.size(q));
    const int64_t last = discounts == Discounts::to_end ? longest : std::min(k, longest);
    require(discounts == Discounts::none || length(discount_sums) > last, "too few discount_sums");
    return {k, discount_sums.data(), stable};
}

template <typename Metric, Discounts discounts = Discounts::none>
void def_top_metric(nb::module_& m, const char* name) {
    m.def(
        name,
        [](Ids rows, Ids offsets, ScoreBlock scores, Reals values, Reals discount_sums, int64_t k, bool stable,
           Table<double> out, int n_threads) {
            const auto grouping = grouping_of(rows, offsets);
            const auto block = scores_of(scores, rows);
            require_length(values, length(rows), "values and rows disagree");
            require_shape(out, block.n_columns, grouping.n_queries, "out disagrees with scores or offsets");
            const auto settings = settings_of(grouping, discount_sums, k, stable, discounts);
            without_gil(
                [&] { metrics::score_top<Metric>(grouping, block, values.data(), settings, out.data(), n_threads); });
        },
        "rows"_a.noconvert(), "offsets"_a.noconvert(), "scores"_a.noconvert(), "values"_a.noconvert(),
        "discount_sums"_a.noconvert(), "k"_a, "stable"_a, "out"_a.noconvert(), "n_threads"_a);
}

void level_pairs(Ids rows, Ids offsets, Reals labels, OptionalReals weights, Vector<int32_t> levels,
                 Vector<int64_t> n_levels, Table<double> totals, int n_threads) {
    static_assert(sizeof(metrics::PairTotals) == 2 * sizeof(double));
    const auto grouping = grouping_of(rows, offsets);
    require_length(labels, length(rows), "labels and rows disagree");
    require_length(weights, length(rows), "weights and rows disagree");
    require_length(levels, length(rows), "levels and rows disagree");
    require_length(n_levels, grouping.n_queries, "n_levels and offsets disagree");
    require_shape(totals, grouping.n_queries, 2, "totals and offsets disagree");
    auto* const pair_totals = reinterpret_cast<metrics::PairTotals*>(totals.data());
    without_gil([&] {
        metrics::level_pairs(grouping, labels.data(), pointer(weights), levels.data(), n_levels.data(), pair_totals,
                             n_threads);
    });
}

void best_gains(Ids rows, Ids offsets, Reals values, Reals discount_sums, int64_t k, Vector<double> out, int n_threads) {
    const auto grouping = grouping_of(rows, offsets);
    require_length(values, length(rows), "values and rows disagree");
    require_length(out, grouping.n_queries, "out and offsets disagree");
    const auto settings = settings_of(grouping, discount_sums, k, true, Discounts::to_cutoff);
    without_gil([&] { metrics::best_gains(grouping, values.data(), settings, out.data(), n_threads); });
}

void count_pairs(Ids rows, Ids offsets, ScoreBlock scores, Vector<const int32_t> levels, Ids n_levels,
                 OptionalReals weights, Cube out, int n_threads) {
    static_assert(sizeof(metrics::PairCounts) == 3 * sizeof(double));
    const auto grouping = grouping_of(rows, offsets);
    const auto block = scores_of(scores, rows);
    require_length(levels, length(rows), "levels and rows disagree");
    require_length(n_levels, grouping.n_queries, "n_levels and offsets disagree");
    require_length(weights, length(rows), "weights and rows disagree");
    require_shape(out, block.n_columns, grouping.n_queries, "out disagrees with scores or offsets");
    require(length(out, 2) == 3, "out needs three numbers per query");
    auto* const counts = reinterpret_cast<metrics::PairCounts*>(out.data());
    without_gil([&] {
        metrics::count_pairs(grouping, block, levels.data(), n_levels.data(), pointer(weights), counts, n_threads);
    });
}

}  // namespace

void bind_metrics(nb::module_& m) {
    m.def("level_pairs", &level_pairs, "rows"_a.noconvert(), "offsets"_a.noconvert(), "labels"_a.noconvert(),
          "weights"_a.noconvert().none(), "levels"_a.noconvert(), "n_levels"_a.noconvert(), "totals"_a.noconvert(),
          "n_threads"_a);
    m.def("best_gains", &best_gains, "rows"_a.noconvert(), "offsets"_a.noconvert(), "values"_a.noconvert(),
          "discount_sums"_a.noconvert(), "k"_a, "out"_a.noconvert(), "n_threads"_a);
    m.def("count_pairs", &count_pairs, "rows"_a.noconvert(), "offsets"_a.noconvert(), "scores"_a.noconvert(),
          "levels"_a.noconvert(), "n_levels"_a.noconvert(), "weights"_a.noconvert().none(), "out"_a.noconvert(),
          "n_threads"_a);
    def_top_metric<metrics::DiscountedGain, Discounts::to_cutoff>(m, "discounted_gain");
    def_top_metric<metrics::MeanNormalisedGain, Discounts::to_end>(m, "mean_normalised_gain");
    def_top_metric<metrics::RelevantAtTop>(m, "relevant_at_top");
    def_top_metric<metrics::SummedPrecision>(m, "summed_precision");
    def_top_metric<metrics::ReciprocalRank>(m, "reciprocal_rank");
    def_top_metric<metrics::ExpectedReciprocalRank>(m, "expected_reciprocal_rank");
}
