// The bindings of the metrics; see bindings.cpp for the rule.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>

#include "bindings.hpp"
#include "metrics.hpp"
#include "metrics_top.hpp"

namespace nb = nanobind;

namespace {

namespace metrics = rankwise::metrics;

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ScoreBlock = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
using MetricBlock = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

metrics::Grouping grouping_of(const Vector<const std::int64_t>& rows, const Vector<const std::int64_t>& offsets) {
    return {rows.data(), offsets.data(), static_cast<std::int64_t>(offsets.shape(0)) - 1};
}

metrics::Scores scores_of(const ScoreBlock& scores) {
    return {scores.data(), scores.stride(0), scores.stride(1), static_cast<std::int64_t>(scores.shape(1))};
}

template <typename Metric>
void def_top_metric(nb::module_& m, const char* name) {
    m.def(
        name,
        [](const Vector<const std::int64_t>& rows, const Vector<const std::int64_t>& offsets, const ScoreBlock& scores,
           const Vector<const double>& values, const Vector<const double>& discount_sums, std::int64_t k, bool stable,
           const MetricBlock& out, int n_threads) {
            const auto grouping = grouping_of(rows, offsets);
            const metrics::Settings settings{k, discount_sums.data(), stable};
            nb::gil_scoped_release unlocked;
            metrics::score_top<Metric>(grouping, scores_of(scores), values.data(), settings, out.data(), n_threads);
        },
        nb::arg("rows"), nb::arg("offsets"), nb::arg("scores"), nb::arg("values"), nb::arg("discount_sums"),
        nb::arg("k"), nb::arg("stable"), nb::arg("out"), nb::arg("n_threads"));
}

}  // namespace

void bind_metrics(nb::module_& m) {
    m.def(
        "level_pairs",
        [](const Vector<const std::int64_t>& rows, const Vector<const std::int64_t>& offsets,
           const Vector<const double>& labels, std::optional<Vector<const double>> weights,
           const Vector<std::int32_t>& levels, const Vector<std::int64_t>& n_levels, const MetricBlock& totals,
           int n_threads) {
            static_assert(sizeof(metrics::PairTotals) == 2 * sizeof(double));
            nb::gil_scoped_release unlocked;
            metrics::level_pairs(grouping_of(rows, offsets), labels.data(), weights ? weights->data() : nullptr,
                                 levels.data(), n_levels.data(),
                                 reinterpret_cast<metrics::PairTotals*>(totals.data()), n_threads);
        },
        nb::arg("rows"), nb::arg("offsets"), nb::arg("labels"), nb::arg("weights").none(), nb::arg("levels"),
        nb::arg("n_levels"), nb::arg("totals"), nb::arg("n_threads"));
    m.def(
        "best_gains",
        [](const Vector<const std::int64_t>& rows, const Vector<const std::int64_t>& offsets,
           const Vector<const double>& values, const Vector<const double>& discount_sums, std::int64_t k,
           const Vector<double>& out, int n_threads) {
            nb::gil_scoped_release unlocked;
            metrics::best_gains(grouping_of(rows, offsets), values.data(), {k, discount_sums.data(), true}, out.data(),
                                n_threads);
        },
        nb::arg("rows"), nb::arg("offsets"), nb::arg("values"), nb::arg("discount_sums"), nb::arg("k"), nb::arg("out"),
        nb::arg("n_threads"));
    m.def(
        "count_pairs",
        [](const Vector<const std::int64_t>& rows, const Vector<const std::int64_t>& offsets, const ScoreBlock& scores,
           const Vector<const std::int32_t>& levels, const Vector<const std::int64_t>& n_levels,
           std::optional<Vector<const double>> weights,
           const nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>& out, int n_threads) {
            static_assert(sizeof(metrics::PairCounts) == 3 * sizeof(double));
            nb::gil_scoped_release unlocked;
            metrics::count_pairs(grouping_of(rows, offsets), scores_of(scores), levels.data(), n_levels.data(),
                                 weights ? weights->data() : nullptr,
                                 reinterpret_cast<metrics::PairCounts*>(out.data()), n_threads);
        },
        nb::arg("rows"), nb::arg("offsets"), nb::arg("scores"), nb::arg("levels"), nb::arg("n_levels"),
        nb::arg("weights").none(), nb::arg("out"), nb::arg("n_threads"));
    def_top_metric<metrics::DiscountedGain>(m, "discounted_gain");
    def_top_metric<metrics::MeanNormalisedGain>(m, "mean_normalised_gain");
    def_top_metric<metrics::RelevantAtTop>(m, "relevant_at_top");
    def_top_metric<metrics::SummedPrecision>(m, "summed_precision");
    def_top_metric<metrics::ReciprocalRank>(m, "reciprocal_rank");
    def_top_metric<metrics::ExpectedReciprocalRank>(m, "expected_reciprocal_rank");
}
