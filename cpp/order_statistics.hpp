// Order statistics of linear RankSVM: sums over the violated pairs of each query, in O(m log m), never pair by pair.
//
// Rows i, j of one query form a pair won by i when rank_i > rank_j; it weighs scale_q * weight_i * weight_j. At
// scores f the pair is *violated* when it lies strictly inside the margin. The one predicate, everywhere in this form:
//
//     f_i - f_j < margin                       (a pair at f_i - f_j == margin is satisfied)
//
// Rounding is monotone, so the rounded difference never falls as f_i grows nor rises as f_j grows. The pairs a row wins
// are therefore violated on a suffix of the rows sorted by score, those it loses on a prefix, and two pointers that
// evaluate this predicate find the very pairs that explicit enumeration finds, for ties and for differences within one
// unit in the last place of the margin. (f_i < f_j + margin rounds differently; do not mix the two.)
//
// Each quantity is then, for each row, a sum of values of the rows in its window whose rank is lower (higher): a sweep
// over the sorted rows inserts rows into a tally as the window grows, and the tally sums over lower ranks. This is
// Algorithm 1 of Airola, Pahikkala and Salakoski (2011) with their search tree replaced (see the tallies below).
// Won and lost sums are swept in opposite directions and only ever add, so nothing cancels: a row without violated
// pairs gets an exact zero. The two directions are also what two threads share in one huge query; no sum is split
// between threads, so no result depends on their number.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "fenwick.hpp"
#include "merge_sort.hpp"
#include "parallel.hpp"

namespace rankwise {

// How a query is counted. The caller chooses by shape: rankwise/pairs/violations.py states the measurements.
enum class Counting : uint8_t {
    no_pairs = 0,  // a single level
    brute = 1,     // all pairs, branch-free; the rows of the query stand in ascending order of rank
    levels = 2,    // sweep with a counter per level; at most max_levels of them
    fenwick = 3,   // sweep with a Fenwick tree over ranks
};

constexpr int max_levels = 8;

// What does not depend on the scores. Rows are grouped by query.
struct RankedQueries {
    int64_t n_queries = 0;
    const int64_t* start = nullptr;     // (n_queries + 1)
    const uint8_t* counting = nullptr;  // (n_queries) of Counting
    const int32_t* n_levels = nullptr;  // (n_queries)
    const int32_t* rank = nullptr;      // (rows) 0 .. n_levels - 1
    const double* weight = nullptr;     // (rows), or null where every row weighs 1
    const double* scale = nullptr;      // (n_queries), or null where every query's scale is 1

    int64_t size(int64_t q) const { return start[q + 1] - start[q]; }
    Counting method(int64_t q) const { return static_cast<Counting>(counting[q]); }
    const double* weights_of(int64_t q) const { return weight ? weight + start[q] : nullptr; }
    double row_weight(int64_t row) const { return weight ? weight[row] : 1.0; }
    double query_scale(int64_t q) const { return scale ? scale[q] : 1.0; }
};

// A point: the scores, and the rows of every swept query in ascending order of score. Sorting is the part worth
// keeping: finding a window again while sweeping costs no more than reading where it was.
struct SortedScores {
    const double* score = nullptr;         // (rows), grouped
    const int32_t* order = nullptr;        // (rows) position inside the query; brute queries leave the last three unset
    const double* sorted_score = nullptr;  // (rows)
    const int32_t* sorted_rank = nullptr;  // (rows)
};

// ---- tallies: insert values at ranks, sum over the ranks below one -------------------------------------------------

// A few numbers that are summed together.
template <int K>
struct Channels {
    std::array<double, K> at{};
    Channels& operator+=(const Channels& other) {
        for (int k = 0; k < K; ++k) at[k] += other.at[k];
        return *this;
    }
};

// One running sum for each level and channel: inserting adds a multiple of a row of zeros and ones, summing is a load.
// Always all max_levels, aligned: each vector load then finds what one vector store left. (Seven integers a row took
// 46 ns instead of 24 at 10,000 rows; a version without the sweep's branches was slower still.)
template <typename T>
class LevelTally;

template <int K>
class LevelTally<Channels<K>> {
public:
    void reset(int32_t) {
        for (auto& sums : below_) sums.fill(0.0);
    }
    void add(int32_t rank, const Channels<K>& value) {
        const double* above = is_above.data() + max_levels - rank;
        for (int k = 0; k < K; ++k)
            for (int level = 0; level < max_levels; ++level) below_[k][level] += above[level] * value.at[k];
    }
    Channels<K> below(int32_t rank) const {
        Channels<K> sum;
        for (int k = 0; k < K; ++k) sum.at[k] = below_[k][rank];
        return sum;
    }

private:
    // From entry max_levels - rank on: 1 for the levels above rank, else 0.
    static constexpr std::array<double, 2 * max_levels> is_above{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1};
    alignas(64) std::array<std::array<double, max_levels>, K> below_{};
};

// Many levels have a Fenwick tree. (A tree of nodes like the tally above, eight or sixteen to a node, was no faster at
// 10,000 ranks and slower at a million: it writes whole cache lines where a Fenwick tree writes one entry.)

// ---- the sweep -----------------------------------------------------------------------------------------------------

// The sorted rows of one query.
struct SortedQuery {
    int64_t size;
    int32_t n_levels;
    const int32_t* order;
    const double* score;
    const int32_t* rank;
};

enum class Side { won, lost };

// Rows between two looks for an interruption: a counter for each row would take a tenth of a sweep over few levels.
constexpr int64_t sweep_rows_at_once = 1 << 14;

// For each sorted position p, emit(p, sum of value(other)) over the violated pairs that p wins, or loses.
template <typename Tally, typename Value, typename Emit>
void sweep(const SortedQuery& query, double margin, Side side, Tally& tally, Value&& value, Emit&& emit) {
    const double* f = query.score;
    const int64_t n = query.size;
    tally.reset(query.n_levels);
    if (side == Side::won) {
        int64_t first = n;  // the window is [first, n)
        for (int64_t p = n - 1; p >= 0; check_interrupted()) {
            for (const int64_t stop = std::max<int64_t>(p - sweep_rows_at_once, -1); p > stop; --p) {
                while (first > 0 && f[p] - f[first - 1] < margin) {
                    --first;
                    tally.add(query.rank[first], value(first));
                }
                emit(p, tally.below(query.rank[p]));
            }
        }
    } else {
        const int32_t top = query.n_levels - 1;  // ranks are reflected: higher becomes lower
        int64_t end = 0;                         // the window is [0, end)
        for (int64_t p = 0; p < n; check_interrupted()) {
            for (const int64_t stop = std::min(p + sweep_rows_at_once, n); p < stop; ++p) {
                while (end < n && f[end] - f[p] < margin) {
                    tally.add(top - query.rank[end], value(end));
                    ++end;
                }
                emit(p, tally.below(top - query.rank[p]));
            }
        }
    }
}

template <typename T, typename Value, typename Emit>
void sweep(Counting counting, const SortedQuery& query, double margin, Side side, Value&& value, Emit&& emit) {
    if (counting == Counting::levels) {
        LevelTally<T> tally;
        sweep(query, margin, side, tally, value, emit);
    } else {
        Fenwick<T> tally;
        sweep(query, margin, side, tally, value, emit);
    }
}

// ---- running over queries ------------------------------------------------------------------------------------------

// From this many rows on, two threads share a query (one side each) instead of taking one query each: waking a
// thread costs 10 microseconds, a sweep of this size about a millisecond.
constexpr int64_t shared_query_rows = 1 << 15;
constexpr int64_t rows_worth_a_thread = 1 << 10;  // 30 microseconds of work, at 30 ns per row
constexpr int64_t most_queries_at_once = 16;

template <typename Work>
void both_sides(int n_threads, Work&& work) {
    if (n_threads > 1) {
        run_threads(2, [&](int t) { work(t == 0 ? Side::won : Side::lost); });
    } else {
        work(Side::won);
        work(Side::lost);
    }
}

// Calls body(q, threads the body may use) once for each query.
template <typename Body>
void for_each_query(const RankedQueries& queries, int n_threads, Body&& body) {
    const auto is_shared = [&](int64_t q) { return n_threads > 1 && queries.size(q) >= shared_query_rows; };
    int64_t n_small = 0, rows_in_small = 0;
    for (int64_t q = 0; q < queries.n_queries; ++q) {
        if (is_shared(q)) {
            body(q, n_threads);
        } else {
            ++n_small;
            rows_in_small += queries.size(q);
        }
    }
    if (n_small == 0) return;
    const int64_t useful = std::min(n_small, 1 + rows_in_small / rows_worth_a_thread);
    const int team = static_cast<int>(std::min<int64_t>(n_threads, useful));
    // Several turns for each thread, so that a long query at the end delays little.
    const int64_t at_once = std::clamp<int64_t>(n_small / (8 * team), 1, most_queries_at_once);
    std::atomic<int64_t> next{0};
    run_threads(team, [&](int) {
        for (;;) {
            const int64_t begin = next.fetch_add(at_once);
            if (begin >= queries.n_queries) return;
            const int64_t end = std::min(begin + at_once, queries.n_queries);
            for (int64_t q = begin; q < end; ++q)
                if (!is_shared(q)) body(q, 1);
            check_interrupted();
        }
    });
}

inline SortedQuery sorted_query(const RankedQueries& queries, const SortedScores& point, int64_t q) {
    const int64_t start = queries.start[q];
    return {queries.size(q), queries.n_levels[q], point.order + start, point.sorted_score + start,
            point.sorted_rank + start};
}

// ---- sorting -------------------------------------------------------------------------------------------------------

struct ScoredRow {
    double score;
    int32_t row;
};

inline void sort_rows(const double* score, int64_t n, int32_t* order) {
    std::vector<ScoredRow> rows(static_cast<std::size_t>(n)), buffer;
    for (int64_t i = 0; i < n; ++i) rows[static_cast<std::size_t>(i)] = {-score[i], static_cast<int32_t>(i)};
    sort_by_score(rows, buffer);
    for (int64_t p = 0; p < n; ++p) order[p] = rows[static_cast<std::size_t>(p)].row;
}

// Fills sorted_score, sorted_rank and order; the caller has filled the latter for queries from `presorted_from` rows
// on, because numpy's vectorised argsort takes 12 ns per row at 10,000 rows and 29 at a million, std::sort 52 and 81.
inline void sort_scores(const RankedQueries& queries, const double* score, int64_t presorted_from,
                        int32_t* order, double* sorted_score, int32_t* sorted_rank, int n_threads) {
    for_each_query(queries, n_threads, [&](int64_t q, int threads) {
        if (queries.method(q) < Counting::levels) return;
        const int64_t start = queries.start[q], n = queries.size(q);
        if (n < presorted_from) sort_rows(score + start, n, order + start);
        const auto gather = [&](int64_t begin, int64_t end) {
            for (int64_t p = begin; p < end; ++p) {
                const int64_t row = start + order[start + p];
                sorted_score[start + p] = score[row];
                sorted_rank[start + p] = queries.rank[row];
            }
        };
        run_threads(threads, [&](int t) { gather(part_of(n, t, threads), part_of(n, t + 1, threads)); });
    });
}

// ---- brute force ---------------------------------------------------------------------------------------------------
//
// Rows stand in ascending order of rank, so the rows a row beats are those before its level. Two passes, one for each
// side, keep every inner loop free of branches and of floating-point reductions, and -fno-trapping-math turns the
// comparison into a select: the compiler then vectorises (Laplacian of queries of 70 rows: 226 -> 40 ns per row).
// Captures are copies, so that no store can alias a loop's bounds.

// loser(i, first) for each row that rows [first, n) beat; winner(i, end) for each that beats rows [0, end).
template <typename Loser, typename Winner>
void for_each_row(const int32_t* rank, int64_t n, Loser&& loser, Winner&& winner) {
    for (int64_t begin = 0, end = 0; begin < n; begin = end) {
        while (end < n && rank[end] == rank[begin]) ++end;
        for (int64_t i = begin; i < end; ++i) {
            if (end < n) loser(i, end);
            if (begin > 0) winner(i, begin);
        }
    }
}

// won_i, lost_i += weights of the other rows; sums of ones are exact.
inline void brute_counts(const double* f, const int32_t* rank, const double* weight, int64_t n,
                         double margin, double* won, double* lost) {
    for_each_row(
        rank, n,
        [=](int64_t i, int64_t first) {
            const double f_i = f[i], weight_i = weight ? weight[i] : 1.0;
            for (int64_t j = first; j < n; ++j) won[j] += f[j] - f_i < margin ? weight_i : 0.0;
        },
        [=](int64_t i, int64_t end) {
            const double f_i = f[i], weight_i = weight ? weight[i] : 1.0;
            for (int64_t j = 0; j < end; ++j) lost[j] += f_i - f[j] < margin ? weight_i : 0.0;
        });
}

// out_i += sum over violated pairs of weight_j (v_i - v_j).
inline void brute_laplacian(const double* f, const int32_t* rank, const double* weight, int64_t n,
                            double margin, const double* v, double* out) {
    for_each_row(
        rank, n,
        [=](int64_t i, int64_t first) {
            const double f_i = f[i], v_i = v[i], weight_i = weight ? weight[i] : 1.0;
            for (int64_t j = first; j < n; ++j) {
                const double pull = weight_i * (v[j] - v_i);
                out[j] += f[j] - f_i < margin ? pull : 0.0;
            }
        },
        [=](int64_t i, int64_t end) {
            const double f_i = f[i], v_i = v[i], weight_i = weight ? weight[i] : 1.0;
            for (int64_t j = 0; j < end; ++j) {
                const double pull = weight_i * (v[j] - v_i);
                out[j] += f_i - f[j] < margin ? pull : 0.0;
            }
        });
}

// With t = margin - (f_i - f_j): sums of clip(t / delta, 0, 1) for both sides, of max(t - delta, 0) for winners.
inline void brute_smoothed(const double* f, const int32_t* rank, const double* weight, int64_t n,
                           double margin, double delta, double* won, double* lost, double* excess) {
    const double slope = 1.0 / delta;
    for_each_row(
        rank, n,
        [=](int64_t i, int64_t first) {
            const double f_i = f[i], weight_i = weight ? weight[i] : 1.0;
            for (int64_t j = first; j < n; ++j) {
                const double t = margin - (f[j] - f_i), ramp = t * slope, over = t - delta;
                const double capped = ramp < 1.0 ? ramp : 1.0;
                won[j] += weight_i * (capped > 0.0 ? capped : 0.0);
                excess[j] += weight_i * (over > 0.0 ? over : 0.0);
            }
        },
        [=](int64_t i, int64_t end) {
            const double f_i = f[i], weight_i = weight ? weight[i] : 1.0;
            for (int64_t j = 0; j < end; ++j) {
                const double t = margin - (f_i - f[j]), ramp = t * slope;
                const double capped = ramp < 1.0 ? ramp : 1.0;
                lost[j] += weight_i * (capped > 0.0 ? capped : 0.0);
            }
        });
}

// ---- counts --------------------------------------------------------------------------------------------------------

inline void scale_rows(const RankedQueries& queries, int64_t q, double* values) {
    if (!queries.weight && !queries.scale) return;
    const double scale = queries.query_scale(q);
    for (int64_t row = queries.start[q]; row < queries.start[q + 1]; ++row)
        values[row] *= scale * queries.row_weight(row);
}

// Unweighted pairs of many levels, for one thread. Integers may be subtracted without loss, so one tree of the rows
// before a position in score order answers for both sides, and every row enters it once instead of twice.
inline void count_both_sides(const SortedQuery& query, double margin, double* won, double* lost) {
    const double* f = query.score;
    const int64_t n = query.size;
    const bool is_distinct = query.n_levels == n;  // then as many rows are below a rank as it says
    std::vector<int32_t> below;
    if (!is_distinct) {
        below.assign(static_cast<std::size_t>(query.n_levels) + 1, 0);
        for (int64_t p = 0; p < n; ++p) ++below[static_cast<std::size_t>(query.rank[p]) + 1];
        for (std::size_t level = 1; level < below.size(); ++level) below[level] += below[level - 1];
    }
    Fenwick<int32_t> before;
    before.reset(query.n_levels);
    WorkCounter work;
    int64_t winner = 0, loser = 0;  // the next rows whose window starts, and ends, at a position
    for (int64_t position = 0; position <= n; ++position) {
        for (; winner < n && (position == n || f[winner] - f[position] < margin); ++winner) {
            const int32_t rank = query.rank[winner], lower = is_distinct ? rank : below[static_cast<std::size_t>(rank)];
            won[query.order[winner]] = lower - before.below(rank);
        }
        for (; loser < n && (position == n || !(f[position] - f[loser] < margin)); ++loser) {
            lost[query.order[loser]] = static_cast<int32_t>(position) - before.below(query.rank[loser] + 1);
        }
        if (position < n) before.add(query.rank[position], 1);
        work.add(4);
    }
}

inline void sweep_counts(const RankedQueries& queries, const SortedScores& point, int64_t q, double margin,
                         double* won, double* lost, int n_threads) {
    const SortedQuery query = sorted_query(queries, point, q);
    const int64_t start = queries.start[q];
    if (n_threads == 1 && !queries.weight && queries.method(q) == Counting::fenwick)
        return count_both_sides(query, margin, won + start, lost + start);
    both_sides(n_threads, [&](Side side) {
        double* out = (side == Side::won ? won : lost) + start;
        const auto emit = [&](int64_t p, const Channels<1>& sum) { out[query.order[p]] = sum.at[0]; };
        if (queries.weight) {
            const double* weight = queries.weight + start;
            sweep<Channels<1>>(
                queries.method(q), query, margin, side,
                [&](int64_t p) { return Channels<1>{{weight[query.order[p]]}}; }, emit);
        } else if (queries.method(q) == Counting::levels) {
            LevelTally<Channels<1>> tally;
            sweep(query, margin, side, tally, [](int64_t) { return Channels<1>{{1.0}}; }, emit);
        } else {
            Fenwick<int32_t> tally;  // half the memory of doubles, and so fewer cache misses
            sweep(query, margin, side, tally, [](int64_t) { return int32_t{1}; },
                  [&](int64_t p, int32_t count) { out[query.order[p]] = count; });
        }
    });
}

// For each row the weight of the violated pairs that it wins, and that it loses. Without weights: exact integers.
inline void violation_counts(const RankedQueries& queries, const SortedScores& point, double margin, double* won,
                             double* lost, int n_threads) {
    for_each_query(queries, n_threads, [&](int64_t q, int threads) {
        const int64_t start = queries.start[q], n = queries.size(q);
        std::fill_n(won + start, n, 0.0);
        std::fill_n(lost + start, n, 0.0);
        if (queries.method(q) == Counting::no_pairs) return;
        if (queries.method(q) == Counting::brute) {
            const double* f = point.score + start;
            const int32_t* rank = queries.rank + start;
            brute_counts(f, rank, queries.weights_of(q), n, margin, won + start, lost + start);
        } else {
            sweep_counts(queries, point, q, margin, won, lost, threads);
        }
        scale_rows(queries, q, won);
        scale_rows(queries, q, lost);
    });
}

// ---- Laplacian of the violated pairs -------------------------------------------------------------------------------

// K columns of v at once, the first of them `column`; v and out are (rows, n_columns), row by row.
template <int K>
void sweep_laplacian(const RankedQueries& queries, const SortedScores& point, int64_t q, double margin,
                     const double* won, const double* lost, const double* v, int64_t n_columns,
                     int64_t column, double* out, int n_threads) {
    const SortedQuery query = sorted_query(queries, point, q);
    const int64_t start = queries.start[q];
    const auto entry = [&](int64_t p) { return (start + query.order[p]) * n_columns + column; };

    // L 1 = 0: subtracting the same number from a column changes nothing but the rounding, and a column with a
    // large offset would lose its digits in degree * v - sum.
    const double* middle = v + entry(query.size / 2);
    const auto weighted = [&](int64_t p) {
        const double* row = v + entry(p);
        const double weight = queries.row_weight(start + query.order[p]);
        Channels<K> value;
        for (int k = 0; k < K; ++k) value.at[k] = weight * (row[k] - middle[k]);
        return value;
    };
    std::vector<Channels<K>> sum_lost(static_cast<std::size_t>(query.size));
    both_sides(n_threads, [&](Side side) {
        if (side == Side::lost)
            sweep<Channels<K>>(queries.method(q), query, margin, side, weighted,
                               [&](int64_t p, const Channels<K>& sum) { sum_lost[p] = sum; });
        else
            sweep<Channels<K>>(queries.method(q), query, margin, side, weighted,
                               [&](int64_t p, const Channels<K>& sum) {
                                   for (int k = 0; k < K; ++k) out[entry(p) + k] = sum.at[k];
                               });
    });
    const double scale = queries.query_scale(q);
    for (int64_t p = 0; p < query.size; ++p) {
        const int64_t row = start + query.order[p], at = entry(p);
        const double degree = won[row] + lost[row], factor = scale * queries.row_weight(row);
        for (int k = 0; k < K; ++k)
            out[at + k] = degree * (v[at + k] - middle[k]) - factor * (out[at + k] + sum_lost[p].at[k]);
    }
}

inline void brute_laplacian_columns(const RankedQueries& queries, const SortedScores& point, int64_t q,
                                    double margin, const double* v, int64_t n_columns, double* out) {
    const int64_t start = queries.start[q], n = queries.size(q);
    const double* weight = queries.weights_of(q);
    std::vector<double> column(static_cast<std::size_t>(n)), product(static_cast<std::size_t>(n));
    for (int64_t c = 0; c < n_columns; ++c) {
        for (int64_t i = 0; i < n; ++i) column[i] = v[(start + i) * n_columns + c];
        std::fill(product.begin(), product.end(), 0.0);
        brute_laplacian(point.score + start, queries.rank + start, weight, n, margin, column.data(), product.data());
        for (int64_t i = 0; i < n; ++i)
            out[(start + i) * n_columns + c] = queries.query_scale(q) * queries.row_weight(start + i) * product[i];
    }
}

// out = L_V v, where (L_V v)_i sums weight_ij (v_i - v_j) over the violated pairs of i; won and lost are their counts.
inline void violation_laplacian(const RankedQueries& queries, const SortedScores& point, double margin,
                                const double* won, const double* lost, const double* v, int64_t n_columns,
                                double* out, int n_threads) {
    for_each_query(queries, n_threads, [&](int64_t q, int threads) {
        if (queries.method(q) == Counting::no_pairs) {
            std::fill_n(out + queries.start[q] * n_columns, queries.size(q) * n_columns, 0.0);
        } else if (queries.method(q) == Counting::brute) {
            brute_laplacian_columns(queries, point, q, margin, v, n_columns, out);
        } else {
            int64_t c = 0;
            for (; c + 4 <= n_columns; c += 4)
                sweep_laplacian<4>(queries, point, q, margin, won, lost, v, n_columns, c, out, threads);
            for (; c < n_columns; ++c)
                sweep_laplacian<1>(queries, point, q, margin, won, lost, v, n_columns, c, out, threads);
        }
    });
}

// ---- Huberised hinge -----------------------------------------------------------------------------------------------
//
// With t = margin - (f_i - f_j), and the hinge sums of a row H(margin) = sum over violated pairs of weight_j t,
//
//     sum of weight_j clip(t / delta, 0, 1) = (H(margin) - H(margin - delta)) / delta,
//
// and both are sums of 1 and f over a window: H = (margin - f_i) sum 1 + sum f_j for the winner i, and
// (margin + f_j) sum 1 - sum f_i for the loser j. Scores enter relative to the query's middle one.

inline void sweep_smoothed(const RankedQueries& queries, const SortedScores& point, int64_t q, double margin,
                           double delta, double* won, double* lost, double* excess, int n_threads) {
    const SortedQuery query = sorted_query(queries, point, q);
    const int64_t start = queries.start[q];
    const double middle = query.score[query.size / 2];
    const auto value = [&](int64_t p) {
        const double weight = queries.row_weight(start + query.order[p]);
        return Channels<2>{{weight, weight * (query.score[p] - middle)}};
    };
    both_sides(n_threads, [&](Side side) {
        const double sign = side == Side::won ? 1.0 : -1.0;
        double* out = side == Side::won ? won : lost;
        const auto hinge_sum = [&](int64_t p, double at_margin, const Channels<2>& sum) {
            return (at_margin - sign * (query.score[p] - middle)) * sum.at[0] + sign * sum.at[1];
        };
        sweep<Channels<2>>(queries.method(q), query, margin, side, value,
                           [&](int64_t p, const Channels<2>& sum) {
                               out[start + query.order[p]] = hinge_sum(p, margin, sum);
                           });
        const double inner = margin - delta;
        sweep<Channels<2>>(queries.method(q), query, inner, side, value,
                           [&](int64_t p, const Channels<2>& sum) {
                               const int64_t row = start + query.order[p];
                               const double beyond = hinge_sum(p, inner, sum);
                               out[row] = (out[row] - beyond) / delta;
                               if (side == Side::won) excess[row] = beyond;
                           });
    });
}

// For each row: weighted sums of clip(t / delta, 0, 1) over the pairs that it wins, and that it loses, and of
// max(t - delta, 0) over those that it wins.
inline void smoothed_violations(const RankedQueries& queries, const SortedScores& point, double margin, double delta,
                                double* won, double* lost, double* excess, int n_threads) {
    for_each_query(queries, n_threads, [&](int64_t q, int threads) {
        const int64_t start = queries.start[q], n = queries.size(q);
        for (double* out : {won, lost, excess}) std::fill_n(out + start, n, 0.0);
        if (queries.method(q) == Counting::no_pairs) return;
        if (queries.method(q) == Counting::brute)
            brute_smoothed(point.score + start, queries.rank + start, queries.weights_of(q), n, margin, delta,
                           won + start, lost + start, excess + start);
        else
            sweep_smoothed(queries, point, q, margin, delta, won, lost, excess, threads);
        for (double* out : {won, lost, excess}) scale_rows(queries, q, out);
    });
}

}  // namespace rankwise
