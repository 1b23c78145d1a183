// G = X' L X V in one pass over X.
//
// Rows are walked in grouped order, a chunk at a time: the scores of the chunk, L on them, and the scatter back, while
// the chunk's part of X is still in cache. A chunk is a run of whole queries, or a piece of a query that is too large
// for one. The pieces of a large query need each other's scores only through T, so with the weighted sum of each
// segment's rows, colsum_l = X'(w 1_l), known beforehand,
//
//     X_q' L_q X_q v = sum of w_i degree_i f_i x_i  -  sum over segments of T_l colsum_l
//
// and X is still read once.
//
// Of several vectors, four at a time are multiplied: eight packed ones take two to three times as long as four, for
// they leave a core's cache. So that X is still read once, the panels take turns over spans of chunks, whose part of X
// the next panel finds in the cache that cores share.
#pragma once

#include <memory>
#include <vector>

#include "csr.hpp"
#include "laplacian.hpp"

namespace rankwise {

struct Plan {
    int64_t chunks = 0;
    const int64_t* chunk_start = nullptr;  // (chunks + 1,) grouped rows
    const int64_t* chunk_query = nullptr;  // (chunks,) the first query, or the query a piece belongs to
    const int64_t* chunk_large = nullptr;  // (chunks,) -1, or for a piece the first entry of its query among the large segments
    const int64_t* chunk_work = nullptr;   // (chunks + 1,) non-zeros before the chunk
    int64_t large_queries = 0;
    const int64_t* large_query = nullptr;  // (large_queries,)
    const int64_t* large_start = nullptr;  // (large_queries + 1,) their first entries among the large segments
    const double* colsum = nullptr;        // (large segments, columns), or with folds (large segments, columns, k)
};

namespace detail {

// Non-zeros that are still in a core's cache when the next chunk has been fetched as well.
constexpr int64_t stays_in_cache = 1 << 16;

// Non-zeros that a panel works on before the next panel has its turn.
constexpr int64_t span_work = 1 << 18;
constexpr int fused_width = 4;

// The rows of the chunks that lie among the grouped rows [begin, end), read and written chunk after chunk: row by row here,
// and a storage that is not walked by rows has its own. `blocks` tells which row stands where.
template <int K, typename Matrix>
class ChunkRows {
public:
    ChunkRows(const Matrix& X, const Blocks& blocks, int64_t, int64_t, const double* v, double* g)
        : X_(X), blocks_(blocks), v_(v), g_(g) {}

    // f = X v for the rows of a chunk.
    void read(int64_t from, int64_t to, double* f) {
        for (int64_t p = from; p < to; ++p) row_dot<K>(X_, blocks_.order[p], v_, f + (p - from) * K);
    }

    // g += X'f for the same rows, which have so many non-zeros.
    //
    // Scattering leaves memory idle, and the next chunk is about to be read. Asking for it now saved 8 % (double) and
    // 3 to 5 % (float) of this loop alone; in the whole product the gain for double was within the noise.
    void write(int64_t from, int64_t to, int64_t work, const double* f) {
        const int64_t ahead = work <= stays_in_cache ? to - from : blocks_.rows;
        const int64_t length = (work + to - from - 1) / (to - from);
        for (int64_t p = from; p < to; ++p, f += K) {
            if (p + ahead < blocks_.rows) prefetch_row(X_, blocks_.order[p + ahead], length);
            row_scatter<K>(X_, blocks_.order[p], f, g_);
        }
    }

    void finish() {}

private:
    const Matrix& X_;
    const Blocks& blocks_;
    const double* v_;
    double* g_;
};

// Some of the vectors of a product.
template <typename Matrix>
class PanelProduct {
public:
    virtual ~PanelProduct() = default;
    // Called before the first span of part t.
    virtual void open(int t) = 0;
    // Adds the chunks [first, last), whose rows `view` holds, to what part t has.
    virtual void walk(int t, const Matrix& view, int64_t first, int64_t last) = 0;
    virtual void finish(int64_t k, double* G) = 0;
};

template <int K, bool Folded, typename Matrix>
class FusedProduct final : public PanelProduct<Matrix> {
public:
    FusedProduct(const Matrix& X, Rank rank, Panel<K, Folded> panel, const Plan& plan, const double* V, int64_t k,
                 int n_parts, int n_threads)
        : X_(X), rank_(rank), panel_(panel), plan_(plan), n_threads_(n_threads),
          g_(n_parts, X.columns * K), S_(n_parts, large_segments() * K), own_(static_cast<std::size_t>(n_parts)), v_(V) {
        if (rank_ || K != 1 || k != 1)
            v_ = (packed_ = pack<K>(V, X_.columns, k, panel_.first, panel_.width, rank_)).get();
    }

    void open(int t) override { own_[static_cast<std::size_t>(t)] = {g_.open(t), S_.open(t)}; }

    void walk(int t, const Matrix& view, int64_t first, int64_t last) override {
        const auto [g, S] = own_[static_cast<std::size_t>(t)];
        std::vector<double> f, segment_sum, segment_shift;
        ChunkRows<K, Matrix> rows(view, panel_.blocks, plan_.chunk_start[first], plan_.chunk_start[last], v_, g);
        for (int64_t chunk = first; chunk < last; ++chunk) {
            const int64_t from = plan_.chunk_start[chunk], to = plan_.chunk_start[chunk + 1];
            f.resize(std::max(f.size(), static_cast<std::size_t>((to - from) * K)));
            rows.read(from, to, f.data());
            if (plan_.chunk_large[chunk] >= 0)
                apply_to_piece(chunk, f.data(), S);
            else
                apply_to_queries(chunk, f.data(), segment_sum, segment_shift);
            rows.write(from, to, plan_.chunk_work[chunk + 1] - plan_.chunk_work[chunk], f.data());
            check_interrupted();
        }
        rows.finish();
    }

    void finish(int64_t k, double* G) override {
        couple_large();
        add_up(k, G);
    }

private:
    int64_t large_segments() const { return plan_.large_start[plan_.large_queries]; }

    void apply_to_queries(int64_t chunk, double* f, std::vector<double>& S, std::vector<double>& T) const {
        const int64_t* start = panel_.blocks.query_start;
        const int64_t from = plan_.chunk_start[chunk], to = plan_.chunk_start[chunk + 1];
        for (int64_t q = plan_.chunk_query[chunk]; q < panel_.blocks.queries && start[q] < to; ++q)
            apply_to_query(panel_, q, f + (start[q] - from) * K, S, T);
    }

    // The part of L that needs nothing of the other pieces, and this piece's share of the segment sums.
    void apply_to_piece(int64_t chunk, double* f, double* S) const {
        const int64_t from = plan_.chunk_start[chunk];
        S += (plan_.chunk_large[chunk] - panel_.blocks.query_segment[plan_.chunk_query[chunk]]) * K;
        for_each_segment(panel_.blocks, from, plan_.chunk_start[chunk + 1], [&](int64_t s, int64_t a, int64_t b) {
            add_to_segment(panel_, a, b, f + (a - from) * K, S + s * K);
            apply_to_segment(panel_, s, a, b, nullptr, f + (a - from) * K);
        });
    }

    void couple_large() {
        std::vector<double> S(static_cast<std::size_t>(large_segments() * K));
        T_.resize(S.size());
        for (std::size_t i = 0; i < S.size(); ++i) S[i] = S_.sum(static_cast<int64_t>(i));
        for (int64_t l = 0; l < plan_.large_queries; ++l) {
            const int64_t query = plan_.large_query[l], at = plan_.large_start[l] * K;
            const int64_t* first = panel_.blocks.query_segment + query;
            couple(panel_, query, first[0], first[1], S.data() + at, T_.data() + at);
        }
    }

    void add_up(int64_t k, double* G) const {
        unpack_sum<K>(g_, G, X_.columns, k, panel_.first, panel_.width, rank_, n_threads_);
        if (large_segments() == 0) return;
        const int64_t n = X_.columns, first = panel_.first;
        run_threads(n_threads_, [&](int t) {
            for (int64_t l = 0; l < large_segments(); ++l)
                for (int64_t j = part_of(n, t, n_threads_); j < part_of(n, t + 1, n_threads_); ++j)
                    for (int64_t c = 0; c < panel_.width; ++c) {
                        const double* colsum = plan_.colsum + (Folded ? (l * n + j) * k + first + c : l * n + j);
                        G[j * k + first + c] -= T_[static_cast<std::size_t>(l * K + c)] * *colsum;
                    }
        });
    }

    const Matrix& X_;
    Rank rank_;
    Panel<K, Folded> panel_;
    const Plan& plan_;
    int n_threads_;
    Accumulators g_, S_;
    std::vector<std::pair<double*, double*>> own_;  // each part's own
    std::vector<double> T_;
    Buffer packed_;
    const double* v_;
};

// The chunks of part t begin here: about the same number of non-zeros each, and the same ones in every call.
inline int64_t first_chunk(const Plan& plan, int t, int n_threads) {
    const int64_t* work = plan.chunk_work;
    const int64_t target = part_of(work[plan.chunks], t, n_threads);
    return t == n_threads ? plan.chunks : std::lower_bound(work, work + plan.chunks, target) - work;
}

template <typename Matrix>
void walk_spans(const Matrix& X, const Blocks& blocks, const Plan& plan, int t, int n_threads,
                std::vector<std::unique_ptr<PanelProduct<Matrix>>>& panels) {
    for (auto& panel : panels) panel->open(t);
    const int64_t first = first_chunk(plan, t, n_threads), last = first_chunk(plan, t + 1, n_threads);
    if (first == last) return;
    const auto rows_of = [&](int64_t chunk) {
        return rows_among(blocks.order, plan.chunk_start[chunk], plan.chunk_start[chunk + 1]);
    };
    walk_units(X, first, last, rows_of, [&](const Matrix& view, int64_t begin, int64_t end) {
        for (int64_t from = begin, to; from < end; from = to) {
            const int64_t* work = plan.chunk_work;
            to = std::upper_bound(work + from, work + end, work[from] + span_work) - work;
            to = panels.size() == 1 ? end : std::min(std::max(to, from + 1), end);
            for (auto& panel : panels) panel->walk(t, view, from, to);
        }
    });
}

}  // namespace detail

// G = X' L X V: V and G are row-major (columns, k); folds may be null. Sums are kept by parts: as many as there are
// threads, or a fixed number, and then the bits of the result do not depend on the number of threads.
template <int Widest = detail::fused_width, typename Matrix>
void fused(const Matrix& X, Rank rank, const Blocks& blocks, const Folds* folds, const Plan& plan, const double* V,
           int64_t k, double* G, int n_parts, int n_threads) {
    std::vector<std::unique_ptr<detail::PanelProduct<Matrix>>> panels;
    for_each_panel<Widest>(k, [&](auto width_constant, int64_t first, int64_t width) {
        constexpr int K = decltype(width_constant)::value;
        if (folds)
            panels.push_back(std::make_unique<detail::FusedProduct<K, true, Matrix>>(
                X, rank, Panel<K, true>{blocks, folds, first, width}, plan, V, k, n_parts, n_threads));
        else
            panels.push_back(std::make_unique<detail::FusedProduct<K, false, Matrix>>(
                X, rank, Panel<K, false>{blocks, folds, first, width}, plan, V, k, n_parts, n_threads));
    });
    run_parts(n_parts, n_threads, [&](int t) { detail::walk_spans(X, blocks, plan, t, n_parts, panels); });
    for (auto& panel : panels) panel->finish(k, G);
}

// out_c = sum of w_i x_i over the grouped rows [from, to); with folds one sum per column c, which leaves out the rows of
// fold c: out is then (columns, k).
template <typename Matrix>
void weighted_sum(const Matrix& X, const Blocks& blocks, const Folds* folds, int64_t from, int64_t to, double* out,
                  int n_threads) {
    const int64_t k = folds ? folds->k : 1;
    for_each_panel(k, [&](auto width_constant, int64_t first, int64_t width) {
        constexpr int K = decltype(width_constant)::value;
        Accumulators g(n_threads, X.columns * K);
        run_threads(n_threads, [&](int t) {
            double* mine = g.open(t);
            double w[K];
            const int64_t begin = from + part_of(to - from, t, n_threads), end = from + part_of(to - from, t + 1, n_threads);
            const auto rows_of = [&](int64_t p) { return RowRange{blocks.order[p], blocks.order[p] + 1}; };
            walk_units(X, begin, end, rows_of, [&](const Matrix& view, int64_t a, int64_t b) {
                in_pieces(a, b, rows_at_once, [&](int64_t piece_begin, int64_t piece_end) {
                    for (int64_t p = piece_begin; p < piece_end; ++p) {
                        if (folds) Panel<K, true>{blocks, folds, first, width}.weights(p, w);
                        else Panel<K, false>{blocks, folds, first, width}.weights(p, w);
                        row_scatter<K>(view, blocks.order[p], w, mine);
                    }
                });
            });
        });
        unpack_sum<K>(g, out, X.columns, k, first, width, nullptr, n_threads);
    });
}

}  // namespace rankwise
