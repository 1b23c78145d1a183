// Metrics of the top of the list. `values` holds what a row is worth: its gain, its relevance (0 or 1), or
// the probability that it satisfies. Each metric below receives the best rows as runs of equal scores and returns
// its expectation over all orders inside the runs; with stable ties every run has one row.
#pragma once

#include <algorithm>
#include <vector>

#include "merge_sort.hpp"
#include "metrics.hpp"

namespace rankwise::metrics {

struct Entry {
    double score;
    double value;
};

struct Run {
    const Entry* begin;
    const Entry* end;
    int64_t before;  // rows ranked above the run

    int64_t size() const { return end - begin; }
    double sum() const {
        double sum = 0.0;
        for (const Entry* entry = begin; entry != end; ++entry) sum += entry->value;
        return sum;
    }
};

// What a metric may look up: the cutoff, and the sums of the discounts of the first 0, 1, 2, ... positions.
struct Settings {
    int64_t k;
    const double* discount_sums;
    bool stable;
};

// The rows that can stand among the first k, best first: the k best and everything equal to the k-th.
inline void best_rows(const Grouping& grouping, const Scores& scores, const double* values, int64_t column, int64_t query,
                      int64_t k, std::vector<double>& copy, std::vector<Entry>& best, std::vector<Entry>& buffer) {
    const int64_t begin = grouping.offsets[query], n = grouping.size(query);
    // Selecting first pays once the cutoff is well below the length (1.6 times as fast at 100 rows and k = 10).
    double threshold = 0.0;
    const bool select = 3 * k < n;
    if (select) {
        copy.resize(static_cast<std::size_t>(n));
        for (int64_t i = 0; i < n; ++i) copy[static_cast<std::size_t>(i)] = scores.at(grouping.rows[begin + i], column);
        const auto kth = copy.begin() + (k - 1);
        std::nth_element(copy.begin(), kth, copy.end(), [](double a, double b) { return a > b; });
        threshold = *kth;
    }
    best.resize(static_cast<std::size_t>(n));
    std::size_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
        const double score = scores.at(grouping.rows[begin + i], column);
        best[kept] = {score, values[begin + i]};
        kept += !select || score >= threshold;
    }
    best.resize(kept);
    sort_by_score(best, buffer);
}

// Calls visit(run) for runs that start above the cutoff, best first, until it returns false.
template <typename Visit>
void for_each_run(const std::vector<Entry>& best, const Settings& settings, Visit visit) {
    const Entry* const start = best.data();
    const Entry* const stop = start + best.size();
    for (const Entry* begin = start; begin != stop && begin - start < settings.k;) {
        const Entry* end = begin + 1;
        if (!settings.stable)
            while (end != stop && end->score == begin->score) ++end;
        if (!visit(Run{begin, end, begin - start})) return;
        begin = end;
    }
}

// Sum of gain times discount: each row of a run expects the run's mean discount.
struct DiscountedGain {
    double operator()(const std::vector<Entry>& best, const Settings& settings) const {
        double sum = 0.0;
        for_each_run(best, settings, [&](const Run& run) {
            const int64_t last = std::min(run.before + run.size(), settings.k);
            sum += run.sum() * (settings.discount_sums[last] - settings.discount_sums[run.before]) /
                   static_cast<double>(run.size());
            return true;
        });
        return sum;
    }
};

// The mean over all cutoffs of the discounted gain divided by the best possible one; needs the whole list.
struct MeanNormalisedGain {
    std::vector<double> ideal{};

    double operator()(const std::vector<Entry>& best, const Settings& settings) {
        ideal.clear();
        for (const Entry& entry : best) ideal.push_back(entry.value);
        std::sort(ideal.begin(), ideal.end(), [](double a, double b) { return a > b; });
        double gain = 0.0, best_gain = 0.0, sum = 0.0;
        for_each_run(best, settings, [&](const Run& run) {
            const double mean = run.sum() / static_cast<double>(run.size());
            for (int64_t i = run.before; i < run.before + run.size(); ++i) {
                const double discount = settings.discount_sums[i + 1] - settings.discount_sums[i];
                gain += mean * discount;
                best_gain += ideal[static_cast<std::size_t>(i)] * discount;
                if (best_gain > 0.0) sum += gain / best_gain;
            }
            return true;
        });
        return best.empty() ? 0.0 : sum / static_cast<double>(best.size());
    }
};

// The number of relevant rows among the first k.
struct RelevantAtTop {
    double operator()(const std::vector<Entry>& best, const Settings& settings) const {
        double sum = 0.0;
        for_each_run(best, settings, [&](const Run& run) {
            const int64_t inside = std::min(run.size(), settings.k - run.before);
            sum += run.sum() * static_cast<double>(inside) / static_cast<double>(run.size());
            return true;
        });
        return sum;
    }
};

// Sum of the precisions at the relevant rows (McSherry and Najork 2008, for the expectation over ties): a relevant
// row at the j-th place of a run sees, on average, its share of the run's other relevant rows above it.
struct SummedPrecision {
    double operator()(const std::vector<Entry>& best, const Settings& settings) const {
        double sum = 0.0, relevant_before = 0.0;
        for_each_run(best, settings, [&](const Run& run) {
            const double relevant = run.sum(), n = static_cast<double>(run.size());
            if (relevant > 0.0) {
                const int64_t inside = std::min(run.size(), settings.k - run.before);
                const double others = n > 1.0 ? (relevant - 1.0) / (n - 1.0) : 0.0;
                for (int64_t j = 0; j < inside; ++j)
                    sum += relevant / n * (relevant_before + 1.0 + static_cast<double>(j) * others) /
                           static_cast<double>(run.before + j + 1);
            }
            relevant_before += relevant;
            return true;
        });
        return sum;
    }
};

// One over the position of the first relevant row.
struct ReciprocalRank {
    double operator()(const std::vector<Entry>& best, const Settings& settings) const {
        double sum = 0.0;
        for_each_run(best, settings, [&](const Run& run) {
            const double relevant = run.sum(), n = static_cast<double>(run.size());
            if (relevant == 0.0) return true;
            const int64_t inside = std::min(run.size(), settings.k - run.before);
            double none_yet = 1.0;  // the probability that the run's first j rows are all irrelevant
            for (int64_t j = 0; j < inside && none_yet > 0.0; ++j) {
                const double here = relevant / (n - static_cast<double>(j));
                sum += none_yet * here / static_cast<double>(run.before + j + 1);
                none_yet *= 1.0 - std::min(here, 1.0);
            }
            return false;
        });
        return sum;
    }
};

// Expected reciprocal rank (Chapelle et al. 2009): the reader goes down and stops at a row with probability `value`.
struct ExpectedReciprocalRank {
    std::vector<double> survival{};

    double operator()(const std::vector<Entry>& best, const Settings& settings) {
        double sum = 0.0, reading = 1.0;
        for_each_run(best, settings, [&](const Run& run) {
            const int64_t inside = std::min(run.size(), settings.k - run.before);
            // survival[j]: the mean, over the ways to choose j rows of the run, of the probability that none of them
            // satisfies. Rows enter one at a time: the next one is among the j chosen with probability j / rows. That
            // is quadratic in the length of a run (or length times k), and free of cancellation.
            survival.assign(static_cast<std::size_t>(inside) + 1, 0.0);
            survival[0] = 1.0;
            double rows = 0.0;
            for (const Entry* entry = run.begin; entry != run.end; ++entry) {
                rows += 1.0;
                for (int64_t j = std::min(inside, static_cast<int64_t>(rows)); j > 0; --j) {
                    const double chosen = static_cast<double>(j) / rows;
                    const auto at = static_cast<std::size_t>(j);
                    survival[at] = (1.0 - chosen) * survival[at] + chosen * (1.0 - entry->value) * survival[at - 1];
                }
            }
            for (int64_t j = 0; j < inside; ++j) {
                const auto at = static_cast<std::size_t>(j);
                sum += reading * (survival[at] - survival[at + 1]) / static_cast<double>(run.before + j + 1);
            }
            reading *= survival[static_cast<std::size_t>(inside)];
            return reading > 0.0;
        });
        return sum;
    }
};

// The largest discounted gain of each query: its k largest values, in order.
inline void best_gains(const Grouping& grouping, const double* values, const Settings& settings, double* out,
                       int n_threads) {
    for_each_ranking(grouping, 1, n_threads, [&] {
        return [&, copy = std::vector<double>()](int64_t, int64_t query) mutable {
            copy.assign(values + grouping.offsets[query], values + grouping.offsets[query + 1]);
            const auto larger = [](double a, double b) { return a > b; };
            const int64_t k = std::min(settings.k, grouping.size(query));
            if (k < grouping.size(query)) std::nth_element(copy.begin(), copy.begin() + k, copy.end(), larger);
            std::sort(copy.begin(), copy.begin() + k, larger);
            double sum = 0.0;
            for (int64_t i = 0; i < k; ++i)
                sum += copy[static_cast<std::size_t>(i)] * (settings.discount_sums[i + 1] - settings.discount_sums[i]);
            out[query] = sum;
        };
    });
}

template <typename Metric>
void score_top(const Grouping& grouping, const Scores& scores, const double* values, const Settings& settings,
               double* out, int n_threads) {
    struct Scratch {
        std::vector<double> copy;
        std::vector<Entry> best, buffer;
        Metric metric;
    };
    for_each_ranking(grouping, scores.n_columns, n_threads, [&] {
        return [&, scratch = Scratch()](int64_t column, int64_t query) mutable {
            best_rows(grouping, scores, values, column, query, settings.k, scratch.copy, scratch.best,
                      scratch.buffer);
            out[column * grouping.n_queries + query] = scratch.metric(scratch.best, settings);
        };
    });
}

}  // namespace rankwise::metrics
