// X' L X and X' r of a dense matrix, in one pass over its rows.
//
// L does not see a shift inside a query, so each query is copied to a buffer in cache and centred there before anything
// is squared; X' r does not see one either, for r sums to zero in every query. Of centred rows z, with segment sums S,
//
//     coupling "all"      X' L X = sum of w degree z z'
//     coupling "others"   the same plus the sum over segments of scale S S'
//
// so both are rows to multiply, and BLAS multiplies a buffer of them at a time.
//
// A query larger than a buffer (only with "all") is cut into pieces, each centred on its own: what is missing then is
// the scatter of the pieces' means, as many rows as there are pieces.
//
// Rows are walked in stripes, whose number depends on the shape alone, and the stripes' sums are added in order: the
// bits of the result do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "dense.hpp"

namespace rankwise {

// BLAS's C = alpha A A' + beta C, one triangle of it.
using Dsyrk = void (*)(char* uplo, char* trans, int* n, int* k, double* alpha, double* A, int* lda, double* beta,
                       double* C, int* ldc);

// In any memory order: strides count values.
template <typename Value>
struct DenseMatrix {
    const Value* values;
    int64_t columns;
    int64_t row_stride;
    int64_t column_stride;
};

// The linear term: r is (rows, outputs) in the caller's order.
struct Pull {
    const double* values;
    int64_t outputs;
};

namespace detail {

// The sums of one stripe: squares (n, n), one triangle of it, and rhs (n, outputs).
template <typename Value>
class GramStripe {
public:
    GramStripe(const DenseMatrix<Value>& X, const Blocks& blocks, const Pull& pull, int64_t buffer_rows, Dsyrk dsyrk)
        : X_(X), blocks_(blocks), pull_(pull), n_(X.columns), piece_rows_(buffer_rows), dsyrk_(dsyrk) {}

    // Adds up the pieces that begin among the grouped rows [begin, end); a buffer serves many stripes.
    void walk(int64_t begin, int64_t end, std::vector<double>& buffer) {
        const int64_t* start = blocks_.query_start;
        buffer_ = &buffer;
        start_sums();
        int64_t q = std::upper_bound(start, start + blocks_.queries + 1, begin) - start - 1;
        for (; q < blocks_.queries && start[q] < end; ++q) {
            const int64_t size = start[q + 1] - start[q];
            const bool is_cut = blocks_.coupling == Coupling::all && size > piece_rows_;
            const int64_t step = is_cut ? piece_rows_ : std::max<int64_t>(size, 1);
            int64_t from = start[q];
            if (from < begin) from += (begin - from + step - 1) / step * step;
            for (; from < std::min(start[q + 1], end); from += step) {
                add_piece(q, from, std::min(from + step, start[q + 1]), is_cut);
            }
        }
        multiply();
    }

    // Adds what another stripe has summed, and takes its pieces' means over.
    void add(const GramStripe& other) {
        for (std::size_t i = 0; i < squares.size(); ++i) squares[i] += other.squares[i];
        for (std::size_t i = 0; i < rhs.size(); ++i) rhs[i] += other.rhs[i];
        pieces_.insert(pieces_.end(), other.pieces_.begin(), other.pieces_.end());
        means_.insert(means_.end(), other.means_.begin(), other.means_.end());
        pulls_.insert(pulls_.end(), other.pulls_.begin(), other.pulls_.end());
    }

    // Adds the scatter of the means of the queries that were cut.
    void join_pieces(std::vector<double>& buffer) {
        buffer_ = &buffer;
        for (std::size_t first = 0, last; first < pieces_.size(); first = last) {
            double total = 0;
            std::fill(mean_.begin(), mean_.end(), 0.0);
            for (last = first; last < pieces_.size() && pieces_[last].query == pieces_[first].query; ++last) {
                total += pieces_[last].weight;
                for (int64_t j = 0; j < n_; ++j) mean_[j] += pieces_[last].weight * means_[last * n_ + j];
            }
            if (total > 0)
                for (double& entry : mean_) entry /= total;
            const double degree = blocks_.degree[blocks_.query_segment[pieces_[first].query]];
            for (std::size_t b = first; b < last; ++b) {
                double* z = next_rows(1);
                for (int64_t j = 0; j < n_; ++j) z[j] = means_[b * n_ + j] - mean_[j];
                add_to_rhs(pulls_.data() + b * pull_.outputs, z);
                const double root = std::sqrt(pieces_[b].weight * degree);
                for (int64_t j = 0; j < n_; ++j) z[j] *= root;
            }
        }
        multiply();
    }

    std::vector<double> squares, rhs;

private:
    struct Piece {
        int64_t query;
        double weight;
    };

    void start_sums() {
        squares.assign(static_cast<std::size_t>(n_ * n_), 0.0);
        rhs.assign(static_cast<std::size_t>(n_ * pull_.outputs), 0.0);
        mean_.resize(static_cast<std::size_t>(n_));
    }

    void add_piece(int64_t q, int64_t from, int64_t to, bool is_cut) {
        const bool needs_sums = blocks_.coupling == Coupling::others;
        const int64_t origin = blocks_.query_segment[q];
        const int64_t segments = needs_sums ? blocks_.query_segment[q + 1] - origin : 0;
        double* Z = next_rows(to - from + segments);
        double* S = needs_sums ? Z + (to - from) * n_ : nullptr;
        if (S) std::fill(S, S + segments * n_, 0.0);
        fetch(from, to, Z);
        double total = 0;
        for (int64_t p = from; p < to; ++p) total += weight_of(blocks_, p);
        std::fill(mean_.begin(), mean_.end(), 0.0);
        if (total > 0) {
            add_rows(blocks_, from, to, Z, n_, mean_.data());
            for (double& entry : mean_) entry /= total;
        }
        if (is_cut) {
            pieces_.push_back({q, total});
            means_.insert(means_.end(), mean_.begin(), mean_.end());
            pulls_.resize(pulls_.size() + static_cast<std::size_t>(pull_.outputs), 0.0);
            for (int64_t p = from; p < to; ++p)
                for (int64_t c = 0; c < pull_.outputs; ++c)
                    *(pulls_.end() - pull_.outputs + c) += pull_.values[blocks_.order[p] * pull_.outputs + c];
        }
        for_each_segment(blocks_, from, to, [&](int64_t segment, int64_t a, int64_t b) {
            for (int64_t p = a; p < b; ++p) centre(p, segment, Z + (p - from) * n_, S ? S + (segment - origin) * n_ : nullptr);
        });
        const double root = std::sqrt(blocks_.scale[q]);
        for (int64_t i = 0; i < segments * n_; ++i) S[i] *= root;
    }

    void centre(int64_t p, int64_t segment, double* z, double* sum) {
        const double w = weight_of(blocks_, p);
        for (int64_t j = 0; j < n_; ++j) z[j] -= mean_[j];
        if (pull_.outputs) add_to_rhs(pull_.values + blocks_.order[p] * pull_.outputs, z);
        if (sum)
            for (int64_t j = 0; j < n_; ++j) sum[j] += w * z[j];
        const double root = std::sqrt(w * blocks_.degree[segment]);
        if (root != 1.0)
            for (int64_t j = 0; j < n_; ++j) z[j] *= root;
    }

    void add_to_rhs(const double* r, const double* z) {
        double* out = rhs.data();
        if (pull_.outputs == 1) {
            for (int64_t j = 0; j < n_; ++j) out[j] += r[0] * z[j];
            return;
        }
        for (int64_t j = 0; j < n_; ++j, out += pull_.outputs)
            for (int64_t c = 0; c < pull_.outputs; ++c) out[c] += r[c] * z[j];
    }

    // Copies the grouped rows [from, to); of columns that stand together a few rows at a time, so that both stay in cache.
    void fetch(int64_t from, int64_t to, double* Z) const {
        if (X_.column_stride == 1) {
            for (int64_t p = from; p < to; ++p, Z += n_) {
                const Value* x = X_.values + blocks_.order[p] * X_.row_stride;
                for (int64_t j = 0; j < n_; ++j) Z[j] = static_cast<double>(x[j]);
            }
            return;
        }
        constexpr int64_t at_once = 32;
        for (int64_t a = from; a < to; a += at_once)
            for (int64_t j = 0; j < n_; ++j)
                for (int64_t p = a; p < std::min(a + at_once, to); ++p)
                    Z[(p - from) * n_ + j] =
                        static_cast<double>(X_.values[blocks_.order[p] * X_.row_stride + j * X_.column_stride]);
    }

    // Returns room for some rows in the buffer, which is emptied first where it is full.
    double* next_rows(int64_t rows) {
        if (used_ + rows > piece_rows_) multiply();
        const auto needed = static_cast<std::size_t>((used_ + rows) * n_);
        if (buffer_->size() < needed)
            buffer_->resize(std::max(needed, static_cast<std::size_t>(std::min(piece_rows_, blocks_.rows) * n_)));
        double* out = buffer_->data() + used_ * n_;
        used_ += rows;
        return out;
    }

    void multiply() {
        if (used_ == 0) return;
        char upper = 'U', plain = 'N';
        int n = static_cast<int>(n_), k = static_cast<int>(used_);
        double one = 1.0;
        // Rows that stand one after the other are the columns of a matrix in BLAS's order.
        check_interrupted();
        dsyrk_(&upper, &plain, &n, &k, &one, buffer_->data(), &n, &one, squares.data(), &n);
        used_ = 0;
    }

    const DenseMatrix<Value>& X_;
    const Blocks& blocks_;
    const Pull& pull_;
    int64_t n_, piece_rows_, used_ = 0;
    Dsyrk dsyrk_;
    std::vector<double>* buffer_ = nullptr;
    std::vector<double> mean_;
    // Of queries that are cut: a mean (n,) and a sum of r (outputs,) for each piece.
    std::vector<Piece> pieces_;
    std::vector<double> means_, pulls_;
};

}  // namespace detail

// Writes X' L X to G (n, n) and X' r to rhs (n, outputs); r sums to zero in every query. Not for the relative coupling;
// with "others", every query fits a buffer.
template <typename Value>
void dense_gram(const DenseMatrix<Value>& X, const Blocks& blocks, const Pull& pull, int64_t buffer_rows, int n_stripes,
                Dsyrk dsyrk, double* G, double* rhs, int n_threads) {
    const int64_t n = X.columns;
    std::vector<detail::GramStripe<Value>> stripes;
    stripes.reserve(static_cast<std::size_t>(n_stripes));
    for (int s = 0; s < n_stripes; ++s) stripes.emplace_back(X, blocks, pull, buffer_rows, dsyrk);
    std::atomic<int> next{0};
    run_threads(std::min(n_threads, n_stripes), [&](int) {
        std::vector<double> buffer;
        for (int s = next++; s < n_stripes; s = next++)
            stripes[static_cast<std::size_t>(s)].walk(part_of(blocks.rows, s, n_stripes),
                                                      part_of(blocks.rows, s + 1, n_stripes), buffer);
    });
    auto& whole = stripes[0];
    for (std::size_t s = 1; s < stripes.size(); ++s) whole.add(stripes[s]);
    std::vector<double> buffer;
    whole.join_pieces(buffer);
    // BLAS's upper triangle is the lower one of rows.
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j <= i; ++j) G[i * n + j] = G[j * n + i] = whole.squares[static_cast<std::size_t>(i * n + j)];
    std::copy(whole.rhs.begin(), whole.rhs.end(), rhs);
}

}  // namespace rankwise
