// The Laplacian of pairs inside queries, as src/rankwise/pairs/blocks.py defines it:
//
//     (L f)_i = w_i (degree_k f_i - T_k)   for a row i of segment k,   S_l = sum of w_i f_i over l
//     T_k     = scale_q * sum over segments l of q of  W(k, l) S_l
//
// With folds, column c of a block of vectors sees the rows of fold c with weight 0: `degree` and `scale` then differ
// from column to column, and the scores that a fold does not see are its held-out predictions.
#pragma once

#include <vector>

#include "csr.hpp"
#include "parallel.hpp"

namespace rankwise {

enum class Coupling { all, others, relative };

// Pairs inside queries; the arrays are those of src/rankwise/pairs/blocks.py.
struct Blocks {
    int64_t rows = 0;
    int64_t queries = 0;
    int64_t segments = 0;
    const int64_t* order = nullptr;
    const int64_t* query_start = nullptr;
    const int64_t* segment_start = nullptr;
    const int64_t* query_segment = nullptr;
    const double* degree = nullptr;
    const double* scale = nullptr;
    const double* row_weight = nullptr;   // grouped order; null: all weigh 1
    const double* level_value = nullptr;  // only for the relative coupling
    Coupling coupling = Coupling::all;
};

struct Folds {
    const int32_t* fold = nullptr;   // the caller's order; -1: never held out
    const double* degree = nullptr;  // (segments, k)
    const double* scale = nullptr;   // (queries, k)
    int64_t k = 0;
    double* held_out = nullptr;  // (rows,) the caller's order
};

// The Laplacian as the vectors first .. first + width - 1 of a block see it; K is the packed width.
template <int K, bool Folded>
struct Panel {
    const Blocks& blocks;
    const Folds* folds;
    int64_t first;
    int64_t width;

    // The weight of grouped row p in each column; in the column that holds it out, 0.
    void weights(int64_t p, double* w) const {
        const double weight = blocks.row_weight ? blocks.row_weight[p] : 1.0;
        for (int c = 0; c < K; ++c) w[c] = weight;
        if constexpr (Folded) {
            const int64_t c = folds->fold[blocks.order[p]] - first;
            if (c >= 0 && c < width) w[c] = 0.0;
        }
    }

    void degree(int64_t segment, double* out) const { spread(blocks.degree, Folded ? folds->degree : nullptr, segment, out); }
    void scale(int64_t query, double* out) const { spread(blocks.scale, Folded ? folds->scale : nullptr, query, out); }

    // Keeps the score of a row in the column that holds it out.
    void keep_held_out(int64_t p, const double* f) const {
        if constexpr (Folded) {
            const int64_t row = blocks.order[p];
            const int64_t c = folds->fold[row] - first;
            if (c >= 0 && c < width) folds->held_out[row] = f[c];
        }
    }

private:
    void spread(const double* shared, const double* own, int64_t at, double* out) const {
        if constexpr (Folded)
            for (int c = 0; c < K; ++c) out[c] = c < width ? own[at * folds->k + first + c] : 0.0;
        else
            for (int c = 0; c < K; ++c) out[c] = shared[at];
    }
};

// T of the segments [from, to) of one query; S and T hold K numbers per segment, starting with the query's first one.
template <int K, bool Folded>
void couple(const Panel<K, Folded>& panel, int64_t query, int64_t from, int64_t to, const double* S, double* T) {
    const Blocks& blocks = panel.blocks;
    const int64_t begin = blocks.query_segment[query], end = blocks.query_segment[query + 1];
    double scale[K];
    panel.scale(query, scale);
    if (blocks.coupling == Coupling::relative) {
        for (int64_t k = from; k < to; ++k) {
            double total[K] = {};
            for (int64_t l = begin; l < end; ++l) {
                if (l == k) continue;
                const double difference = blocks.level_value[k] - blocks.level_value[l];
                const double weight = 1.0 / (difference * difference);
                for (int c = 0; c < K; ++c) total[c] += weight * S[(l - begin) * K + c];
            }
            for (int c = 0; c < K; ++c) T[(k - begin) * K + c] = scale[c] * total[c];
        }
        return;
    }
    double total[K] = {};
    for (int64_t l = begin; l < end; ++l)
        for (int c = 0; c < K; ++c) total[c] += S[(l - begin) * K + c];
    const double own = blocks.coupling == Coupling::others ? 1.0 : 0.0;
    for (int64_t k = from; k < to; ++k)
        for (int c = 0; c < K; ++c) T[(k - begin) * K + c] = scale[c] * (total[c] - own * S[(k - begin) * K + c]);
}

// S += w_p f_p over grouped rows [from, to) of one segment; f holds the K scores of grouped row `from` first.
template <int K, bool Folded>
void add_to_segment(const Panel<K, Folded>& panel, int64_t from, int64_t to, const double* f, double* S) {
    double w[K], sum[K] = {};
    for (int64_t p = from; p < to; ++p, f += K) {
        panel.weights(p, w);
        for (int c = 0; c < K; ++c) sum[c] += w[c] * f[c];
    }
    for (int c = 0; c < K; ++c) S[c] += sum[c];
}

// f_p becomes w_p (degree f_p - T) for grouped rows [from, to) of one segment; T may be null for zero.
template <int K, bool Folded>
void apply_to_segment(const Panel<K, Folded>& panel, int64_t segment, int64_t from, int64_t to, const double* T,
                      double* f) {
    double w[K], degree[K], shift[K] = {};
    panel.degree(segment, degree);
    if (T)
        for (int c = 0; c < K; ++c) shift[c] = T[c];
    for (int64_t p = from; p < to; ++p, f += K) {
        panel.keep_held_out(p, f);
        panel.weights(p, w);
        for (int c = 0; c < K; ++c) f[c] = w[c] * (degree[c] * f[c] - shift[c]);
    }
}

// L on one whole query in place; f holds the K scores of the query's first row first. S and T are room to work in.
template <int K, bool Folded>
void apply_to_query(const Panel<K, Folded>& panel, int64_t query, double* f, std::vector<double>& S,
                    std::vector<double>& T) {
    const Blocks& blocks = panel.blocks;
    const int64_t begin = blocks.query_segment[query], end = blocks.query_segment[query + 1];
    const int64_t origin = blocks.query_start[query];
    S.assign(static_cast<std::size_t>((end - begin) * K), 0.0);
    T.resize(S.size());
    const int64_t* start = blocks.segment_start;
    for (int64_t s = begin; s < end; ++s)
        add_to_segment(panel, start[s], start[s + 1], f + (start[s] - origin) * K, S.data() + (s - begin) * K);
    couple(panel, query, begin, end, S.data(), T.data());
    for (int64_t s = begin; s < end; ++s)
        apply_to_segment(panel, s, start[s], start[s + 1], T.data() + (s - begin) * K, f + (start[s] - origin) * K);
}

// Calls visit(segment, from, to) for the parts of segments among the grouped rows [from, to).
template <typename Visit>
void for_each_segment(const Blocks& blocks, int64_t from, int64_t to, Visit&& visit) {
    const int64_t* start = blocks.segment_start;
    int64_t segment = std::upper_bound(start, start + blocks.segments + 1, from) - start - 1;
    for (; from < to; ++segment) {
        const int64_t end = std::min(start[segment + 1], to);
        if (from < end) visit(segment, from, end);
        from = std::max(from, end);
    }
}

namespace detail {

// Rows are cut evenly among threads wherever queries end, so that one global ranking is as parallel as many queries.
// A segment cut by a border is summed in parts, added in the order of threads.
template <int K, bool Folded>
class WholeLaplacian {
public:
    WholeLaplacian(Panel<K, Folded> panel, const double* F, int64_t k, double* U, int n_threads)
        : panel_(panel), F_(F), k_(k), U_(U), n_threads_(n_threads), S_(size(), 0.0), T_(size(), 0.0) {}

    void run() {
        sum_segments();
        couple_segments();
        apply();
    }

private:
    std::size_t size() const { return static_cast<std::size_t>(panel_.blocks.segments) * K; }

    void load(int64_t p, double* f) const {
        const double* from = F_ + panel_.blocks.order[p] * k_ + panel_.first;
        for (int64_t c = 0; c < K; ++c) f[c] = c < panel_.width ? from[c] : 0.0;
    }

    void sum_segments() {
        struct Border {
            int64_t segment = -1;
            double sum[K] = {};
        };
        // Only the first segment of a thread can have begun with an earlier one.
        std::vector<Border> borders(static_cast<std::size_t>(n_threads_));
        const Blocks& blocks = panel_.blocks;
        run_threads(n_threads_, [&](int t) {
            const int64_t begin = part_of(blocks.rows, t, n_threads_), end = part_of(blocks.rows, t + 1, n_threads_);
            WorkCounter work;
            for_each_segment(blocks, begin, end, [&](int64_t segment, int64_t from, int64_t to) {
                Border& border = borders[static_cast<std::size_t>(t)];
                double* S = S_.data() + segment * K;
                if (from == begin && blocks.segment_start[segment] < begin) {
                    border.segment = segment;
                    S = border.sum;
                }
                double f[K], sum[K] = {};
                in_pieces(from, to, work, [&](int64_t a, int64_t b) {
                    for (int64_t p = a; p < b; ++p) {
                        load(p, f);
                        add_to_segment(panel_, p, p + 1, f, sum);
                    }
                });
                for (int c = 0; c < K; ++c) S[c] += sum[c];
            });
        });
        for (const Border& border : borders)
            if (border.segment >= 0)
                for (int c = 0; c < K; ++c) S_[static_cast<std::size_t>(border.segment * K + c)] += border.sum[c];
    }

    void couple_segments() {
        const Blocks& blocks = panel_.blocks;
        // Only the relative coupling has more work here than a single pass.
        const int n_threads = blocks.coupling == Coupling::relative ? n_threads_ : 1;
        run_threads(n_threads, [&](int t) {
            const int64_t end = part_of(blocks.segments, t + 1, n_threads);
            int64_t from = part_of(blocks.segments, t, n_threads);
            const int64_t* first = blocks.query_segment;
            int64_t query = std::upper_bound(first, first + blocks.queries + 1, from) - first - 1;
            WorkCounter work;
            for (; from < end; ++query) {
                const int64_t to = std::min(first[query + 1], end);
                couple(panel_, query, from, to, S_.data() + first[query] * K, T_.data() + first[query] * K);
                work.add(to - from);
                from = to;
            }
        });
    }

    void apply() {
        const Blocks& blocks = panel_.blocks;
        run_threads(n_threads_, [&](int t) {
            const int64_t begin = part_of(blocks.rows, t, n_threads_), end = part_of(blocks.rows, t + 1, n_threads_);
            WorkCounter work;
            for_each_segment(blocks, begin, end, [&](int64_t segment, int64_t from, int64_t to) {
                double f[K];
                in_pieces(from, to, work, [&](int64_t a, int64_t b) {
                    for (int64_t p = a; p < b; ++p) {
                        load(p, f);
                        apply_to_segment(panel_, segment, p, p + 1, T_.data() + segment * K, f);
                        double* out = U_ + blocks.order[p] * k_ + panel_.first;
                        for (int64_t c = 0; c < panel_.width; ++c) out[c] = f[c];
                    }
                });
            });
        });
    }

    Panel<K, Folded> panel_;
    const double* F_;
    int64_t k_;
    double* U_;
    int n_threads_;
    std::vector<double> S_, T_;
};

}  // namespace detail

// U = L F for row-major (rows, k) arrays in the caller's order; folds may be null.
inline void laplacian(const Blocks& blocks, const Folds* folds, const double* F, int64_t k, double* U, int n_threads) {
    for_each_panel(k, [&](auto width_constant, int64_t first, int64_t width) {
        constexpr int K = decltype(width_constant)::value;
        if (folds)
            detail::WholeLaplacian<K, true>({blocks, folds, first, width}, F, k, U, n_threads).run();
        else
            detail::WholeLaplacian<K, false>({blocks, folds, first, width}, F, k, U, n_threads).run();
    });
}

}  // namespace rankwise
