// Ranking metrics over ragged queries: one sort per query and score column, then one walk over the order.
//
// Labels come prepared, in grouped order (the rows of a query stand together); scores stay in the caller's
// order and are gathered through `rows`. Every (column, query) writes its own cell of the result, and the
// means are taken above, so figures do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "fenwick.hpp"
#include "merge_sort.hpp"
#include "parallel.hpp"

namespace rankwise::metrics {

struct Grouping {
    const int64_t* rows;
    const int64_t* offsets;
    int64_t n_queries;

    int64_t size(int64_t query) const { return offsets[query + 1] - offsets[query]; }
};

struct Scores {
    const double* data;
    int64_t row_stride;
    int64_t column_stride;
    int64_t n_columns;

    double at(int64_t row, int64_t column) const { return data[row * row_stride + column * column_stride]; }
};

// Calls body(column, query) for all of them. `make_body()` is called once per thread, so that a body can keep
// scratch memory. Threads draw blocks of about 4,000 rows: small queries come in bunches, long ones alone.
template <typename MakeBody>
void for_each_ranking(const Grouping& grouping, int64_t n_columns, int n_threads, MakeBody make_body) {
    constexpr int64_t block_rows = 4096;
    std::vector<int64_t> starts{0};
    for (int64_t query = 0; query < grouping.n_queries; ++query)
        if (grouping.offsets[query + 1] - grouping.offsets[starts.back()] >= block_rows || query + 1 == grouping.n_queries)
            starts.push_back(query + 1);
    const int64_t n_blocks = static_cast<int64_t>(starts.size()) - 1;
    const int64_t n_tasks = n_blocks * n_columns;
    std::atomic<int64_t> next{0};
    const int useful = static_cast<int>(std::min<int64_t>(n_threads, n_tasks));
    run_threads(useful, [&](int) {
        auto body = make_body();
        for (int64_t task = next++; task < n_tasks; task = next++) {
            const auto block = static_cast<std::size_t>(task % n_blocks);
            for (int64_t query = starts[block]; query < starts[block + 1]; ++query) body(task / n_blocks, query);
            check_interrupted();
        }
    });
}

// What the labels alone say about the pairs of one query, in weight s_i s_j.
struct PairTotals {
    double ordered;  // labels differ
    double all;
};

// Replaces the labels of each query by their dense ranks 0, 1, ... and adds up the pairs.
inline void level_pairs(const Grouping& grouping, const double* labels, const double* weights, int32_t* levels,
                        int64_t* n_levels, PairTotals* totals, int n_threads) {
    constexpr int max_grades = 64;
    struct Scratch {
        std::vector<double> distinct, level_weight;
    };
    for_each_ranking(grouping, 1, n_threads, [&] {
        return [&, scratch = Scratch()](int64_t, int64_t query) mutable {
            const int64_t begin = grouping.offsets[query], end = grouping.offsets[query + 1];
            // Labels are mostly a few small integers, which need no sort.
            int32_t rank_of_grade[max_grades] = {};
            bool grades = true;
            for (int64_t i = begin; i < end && grades; ++i) {
                const double label = labels[i];
                grades = label >= 0.0 && label < max_grades && label == static_cast<double>(static_cast<int>(label));
                if (grades) rank_of_grade[static_cast<int>(label)] = 1;
            }
            if (grades) {
                int32_t count = 0;
                for (auto& rank : rank_of_grade) {
                    const bool present = rank != 0;
                    rank = count;
                    count += present;
                }
                for (int64_t i = begin; i < end; ++i) levels[i] = rank_of_grade[static_cast<int>(labels[i])];
                n_levels[query] = count;
            } else {
                auto& distinct = scratch.distinct;
                distinct.assign(labels + begin, labels + end);
                std::sort(distinct.begin(), distinct.end());
                distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
                for (int64_t i = begin; i < end; ++i)
                    levels[i] = static_cast<int32_t>(
                        std::lower_bound(distinct.begin(), distinct.end(), labels[i]) - distinct.begin());
                n_levels[query] = static_cast<int64_t>(distinct.size());
            }
            // Running sums instead of differences of squares: nothing cancels.
            PairTotals total{0.0, 0.0};
            scratch.level_weight.assign(static_cast<std::size_t>(n_levels[query]), 0.0);
            double before = 0.0;
            for (int64_t i = begin; i < end; ++i) {
                const double s = weights ? weights[i] : 1.0;
                total.all += s * before;
                before += s;
                scratch.level_weight[static_cast<std::size_t>(levels[i])] += s;
            }
            double below = 0.0;
            for (const double weight : scratch.level_weight) {
                total.ordered += weight * below;
                below += weight;
            }
            totals[query] = total;
        };
    });
}

// What the scores do to the pairs of one query, in weight s_i s_j.
struct PairCounts {
    double wrong;        // labels differ, scores order them the other way
    double undecided;    // labels differ, scores are equal
    double equal_scores; // scores are equal, whatever the labels
};

struct LabelledScore {
    double score;
    int32_t level;
    int32_t place;
};

// Walks down the sorted scores; `higher` holds the weight at each level among the rows with larger scores.
template <typename Weight>
PairCounts walk_pairs(std::vector<LabelledScore>& sorted, Fenwick<double>& higher, int64_t n_levels, Weight weight) {
    PairCounts counts{0.0, 0.0, 0.0};
    higher.reset(n_levels);
    WorkCounter work;
    for (auto group = sorted.begin(); group != sorted.end();) {
        // One run of equal scores: pairs inside it, level by level, and against the rows above it.
        auto end = group + 1;
        while (end != sorted.end() && end->score == group->score) ++end;
        if (end - group > 1)
            std::sort(group, end, [](const LabelledScore& a, const LabelledScore& b) { return a.level < b.level; });
        work.add(10 * (end - group));
        double in_group = 0.0, below_level = 0.0;
        for (auto entry = group; entry != end; ++entry) {
            if (entry != group && entry->level != (entry - 1)->level) below_level = in_group;
            const double s = weight(*entry);
            counts.wrong += s * higher.below(entry->level);
            counts.undecided += s * below_level;
            counts.equal_scores += s * in_group;
            in_group += s;
        }
        for (; group != end; ++group) higher.add(group->level, weight(*group));
    }
    return counts;
}

inline void count_pairs(const Grouping& grouping, const Scores& scores, const int32_t* levels,
                        const int64_t* n_levels, const double* weights, PairCounts* out, int n_threads) {
    struct Scratch {
        std::vector<LabelledScore> entries, buffer;
        Fenwick<double> higher;
    };
    for_each_ranking(grouping, scores.n_columns, n_threads, [&] {
        return [&, scratch = Scratch()](int64_t column, int64_t query) mutable {
            const int64_t begin = grouping.offsets[query], n = grouping.size(query);
            auto& entries = scratch.entries;
            entries.resize(static_cast<std::size_t>(n));
            for (int64_t i = 0; i < n; ++i)
                entries[static_cast<std::size_t>(i)] = {scores.at(grouping.rows[begin + i], column),
                                                        levels[begin + i], static_cast<int32_t>(i)};
            sort_by_score(entries, scratch.buffer);
            const auto weight = [&](const LabelledScore& entry) { return weights ? weights[begin + entry.place] : 1.0; };
            out[column * grouping.n_queries + query] = walk_pairs(entries, scratch.higher, n_levels[query], weight);
        };
    });
}

}  // namespace rankwise::metrics
