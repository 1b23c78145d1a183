// Runs every kernel on random data and compares it with naive loops. Built with sanitizers by `make test-sanitize`:
// it needs no Python, so that nothing but the kernels is watched. Linux only, for the matrices on disk.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "csr.hpp"
#include "dense.hpp"
#include "dense_gram.hpp"
#include "fused.hpp"
#include "gram_diagonal.hpp"
#include "laplacian.hpp"

using namespace rankwise;
using Doubles = std::vector<double>;
using Integers = std::vector<int64_t>;

namespace {

std::mt19937 rng(7);

double normal() { return std::normal_distribution<double>()(rng); }
int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(rng); }

Doubles random_doubles(int64_t n) {
    Doubles out(static_cast<std::size_t>(n));
    for (double& x : out) x = normal();
    return out;
}

void require_close(const Doubles& actual, const Doubles& expected, const char* what) {
    double largest = 1.0;
    for (const double x : expected) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < expected.size(); ++i)
        if (!(std::abs(actual[i] - expected[i]) <= 1e-10 * largest)) {
            std::printf("%s: entry %zu is %.17g, not %.17g\n", what, i, actual[i], expected[i]);
            std::exit(1);
        }
}

template <typename Value, typename Column, typename Offset>
struct RandomMatrix {
    int64_t rows, columns;
    std::vector<Value> values;
    std::vector<Column> ids;
    std::vector<Offset> start{0};
    Doubles dense;

    RandomMatrix(int64_t m, int64_t n) : rows(m), columns(n), dense(static_cast<std::size_t>(m * n), 0.0) {
        for (int64_t i = 0; i < m; ++i) {
            for (int64_t e = n ? below(n + 1) : 0; e > 0; --e) {  // columns may repeat
                ids.push_back(static_cast<Column>(below(n)));
                values.push_back(static_cast<Value>(normal()));
                dense[static_cast<std::size_t>(i * n + ids.back())] += values.back();
            }
            start.push_back(static_cast<Offset>(ids.size()));
        }
    }

    Csr<Value, Column, Offset> view() const { return {rows, columns, values.data(), ids.data(), start.data()}; }

    Doubles times(const Doubles& V, int64_t k) const {
        Doubles out(static_cast<std::size_t>(rows * k), 0.0);
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
                for (int64_t c = 0; c < k; ++c) out[i * k + c] += dense[i * columns + j] * V[j * k + c];
        return out;
    }

    Doubles transposed_times(const Doubles& U, int64_t k) const {
        Doubles out(static_cast<std::size_t>(columns * k), 0.0);
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
                for (int64_t c = 0; c < k; ++c) out[j * k + c] += dense[i * columns + j] * U[i * k + c];
        return out;
    }
};

struct RandomBlocks {
    Integers order, query_start{0}, segment_start{0}, query_segment{0}, segment_of, query_of;
    Doubles degree, scale, weight, level;
    Coupling coupling;

    RandomBlocks(int64_t rows, Coupling kind) : weight(random_doubles(rows)), coupling(kind) {
        for (double& w : weight) w = std::abs(w);
        for (int64_t i = 0; i < rows; ++i) order.push_back(i);
        std::shuffle(order.begin(), order.end(), rng);
        for (int64_t p = 0; p < rows;) {
            const int64_t end = std::min(rows, p + 1 + below(rows));
            while (p < end) {
                const int64_t stop = kind == Coupling::all ? end : std::min(end, p + 1 + below(4));
                for (; p < stop; ++p) {
                    segment_of.push_back(static_cast<int64_t>(level.size()));
                    query_of.push_back(static_cast<int64_t>(scale.size()));
                }
                segment_start.push_back(p);
                level.push_back(static_cast<double>(level.size()) + 0.5 * normal() / 10);
            }
            query_start.push_back(p);
            query_segment.push_back(static_cast<int64_t>(level.size()));
            scale.push_back(0.1 + std::abs(normal()));
        }
        degree = degrees(weight);
    }

    double pair(int64_t a, int64_t b) const {
        const int64_t k = segment_of[a], l = segment_of[b];
        if (query_of[a] != query_of[b]) return 0.0;
        if (coupling == Coupling::all) return scale[query_of[a]];
        if (k == l) return 0.0;
        const double gap = coupling == Coupling::relative ? level[k] - level[l] : 1.0;
        return scale[query_of[a]] / (gap * gap);
    }

    Doubles degrees(const Doubles& w) const {
        Doubles out(level.size(), 0.0);
        for (std::size_t s = 0; s < level.size(); ++s)
            for (std::size_t b = 0; b < order.size(); ++b)
                out[s] += pair(segment_start[s], static_cast<int64_t>(b)) * w[b];
        return out;
    }

    // L F pair by pair; the rows of fold c weigh nothing in column c.
    Doubles apply(const Doubles& F, int64_t k, const std::vector<int32_t>* fold) const {
        Doubles out(F.size(), 0.0);
        for (std::size_t a = 0; a < order.size(); ++a)
            for (std::size_t b = 0; b < order.size(); ++b)
                for (int64_t c = 0; c < k; ++c) {
                    const int64_t i = order[a], j = order[b];
                    if (fold && ((*fold)[i] == c || (*fold)[j] == c)) continue;
                    const double w = weight[a] * weight[b] * pair(static_cast<int64_t>(a), static_cast<int64_t>(b));
                    out[i * k + c] += w * (F[i * k + c] - F[j * k + c]);
                }
        return out;
    }

    Blocks view() const {
        Blocks blocks;
        blocks.rows = static_cast<int64_t>(order.size());
        blocks.queries = static_cast<int64_t>(scale.size());
        blocks.segments = static_cast<int64_t>(level.size());
        blocks.order = order.data();
        blocks.query_start = query_start.data();
        blocks.segment_start = segment_start.data();
        blocks.query_segment = query_segment.data();
        blocks.degree = degree.data();
        blocks.scale = scale.data();
        blocks.row_weight = weight.data();
        blocks.level_value = level.data();
        blocks.coupling = coupling;
        return blocks;
    }
};

struct RandomFolds {
    std::vector<int32_t> fold;
    Doubles degree, scale, held_out;
    int64_t k;

    RandomFolds(const RandomBlocks& blocks, int64_t width) : k(width) {
        const auto rows = blocks.order.size();
        for (std::size_t i = 0; i < rows; ++i) fold.push_back(static_cast<int32_t>(below(k + 1)) - 1);
        held_out.assign(rows, 0.0);
        degree.resize(blocks.level.size() * static_cast<std::size_t>(k));
        for (int64_t c = 0; c < k; ++c) {
            Doubles w = blocks.weight;
            for (std::size_t p = 0; p < rows; ++p)
                if (fold[blocks.order[p]] == c) w[p] = 0.0;
            const Doubles column = blocks.degrees(w);
            for (std::size_t s = 0; s < column.size(); ++s) degree[s * k + c] = column[s];
        }
        for (const double s : blocks.scale) scale.insert(scale.end(), static_cast<std::size_t>(k), s);
    }

    Folds view() { return {fold.data(), degree.data(), scale.data(), k, held_out.data()}; }
};

// Every query large and cut in pieces of a few rows, or every query a chunk.
template <typename Matrix>
void check_fused(const Matrix& X, const RandomBlocks& blocks, RandomFolds* folds, bool large, Rank rank, int64_t k,
                 int n_threads, const Doubles& V, const Doubles& expected) {
    const Blocks view = blocks.view();
    Folds fold_view{};
    if (folds) fold_view = folds->view();
    Integers start, query, first, work, large_query, large_start{0};
    Doubles colsum;
    for (int64_t q = 0; q < view.queries; ++q) {
        const int64_t step = large ? 3 : view.rows + 1;
        for (int64_t p = view.query_start[q]; p < view.query_start[q + 1]; p += step) {
            start.push_back(p);
            query.push_back(q);
            first.push_back(large ? large_start.back() : -1);
        }
        if (!large) continue;
        large_query.push_back(q);
        large_start.push_back(view.query_segment[q + 1]);
        for (int64_t s = view.query_segment[q]; s < view.query_segment[q + 1]; ++s) {
            Doubles sum(static_cast<std::size_t>(X.columns * (folds ? k : 1)));
            Csr plain = X.view();
            weighted_sum(plain, view, folds ? &fold_view : nullptr, view.segment_start[s], view.segment_start[s + 1],
                         sum.data(), n_threads);
            colsum.insert(colsum.end(), sum.begin(), sum.end());
        }
    }
    start.push_back(view.rows);
    for (const int64_t p : start) work.push_back(10 * p);
    const Plan plan{static_cast<int64_t>(query.size()), start.data(), query.data(), first.data(), work.data(),
                    static_cast<int64_t>(large_query.size()), large_query.data(), large_start.data(), colsum.data()};
    auto renamed = X.ids;
    auto matrix = X.view();
    if (rank) {
        rename_columns(X.ids.data(), static_cast<int64_t>(X.ids.size()), rank, renamed.data(), n_threads);
        matrix.ids = renamed.data();
        matrix.disk = nullptr;
    }
    Doubles G(static_cast<std::size_t>(X.columns * k));
    fused(matrix, rank, view, folds ? &fold_view : nullptr, plan, V.data(), k, G.data(), n_threads, n_threads);
    require_close(G, expected, "fused");
}

template <typename Matrix>
void check_products(const Matrix& X, int64_t k, int n_threads) {
    const Doubles V = random_doubles(X.columns * k), U = random_doubles(X.rows * k);
    Doubles F(static_cast<std::size_t>(X.rows * k)), G(static_cast<std::size_t>(X.columns * k));
    dot(X.view(), nullptr, V.data(), k, F.data(), n_threads);
    require_close(F, X.times(V, k), "dot");
    transposed_dot(X.view(), nullptr, U.data(), k, G.data(), n_threads);
    require_close(G, X.transposed_times(U, k), "transposed_dot");

    Integers count(static_cast<std::size_t>(X.columns)), naive(count.size(), 0);
    count_columns(X.ids.data(), static_cast<int64_t>(X.ids.size()), X.columns, count.data(), n_threads);
    for (const auto id : X.ids) ++naive[id];
    if (count != naive) std::exit(1);
}

template <typename Matrix>
void check_graph(const Matrix& X, Coupling coupling, int64_t k, int n_threads) {
    const RandomBlocks blocks(X.rows, coupling);
    const Doubles V = random_doubles(X.columns * k);
    const Doubles F = X.times(V, k);
    std::vector<int32_t> rank;
    for (int64_t j = 0; j < X.columns; ++j) rank.push_back(static_cast<int32_t>(X.columns - 1 - j));
    RandomFolds folds(blocks, k);
    for (const bool folded : {false, true}) {
        if (folded && coupling == Coupling::relative) continue;
        const Doubles LF = blocks.apply(F, k, folded ? &folds.fold : nullptr);
        Doubles U(F.size());
        const Folds view = folds.view();
        laplacian(blocks.view(), folded ? &view : nullptr, F.data(), k, U.data(), n_threads);
        require_close(U, LF, "laplacian");
        for (const bool large : {false, true})
            for (const Rank names : {Rank(nullptr), Rank(rank.data())})
                check_fused(X, blocks, folded ? &folds : nullptr, large, names, k, n_threads, V,
                            X.transposed_times(LF, k));
    }
    const Doubles LX = blocks.apply(X.dense, X.columns, nullptr);
    Doubles diagonal(static_cast<std::size_t>(X.columns)), expected(diagonal.size(), 0.0);
    for (int64_t i = 0; i < X.rows; ++i)
        for (int64_t j = 0; j < X.columns; ++j) expected[j] += X.dense[i * X.columns + j] * LX[i * X.columns + j];
    gram_diagonal(X.view(), blocks.view(), diagonal.data(), n_threads);
    require_close(diagonal, expected, "gram_diagonal");

    // The same diagonal from dense rows.
    const Blocks view = blocks.view();
    const int64_t n = X.columns;
    Doubles Z, S(static_cast<std::size_t>(view.segments * n), 0.0), T(S.size(), 0.0);
    for (const int64_t i : blocks.order) Z.insert(Z.end(), X.dense.begin() + i * n, X.dense.begin() + (i + 1) * n);
    centre_queries(view, 0, view.queries, Z.data(), n, S.data(), n_threads);
    if (coupling == Coupling::relative) couple_relative(view, 0, view.queries, S.data(), T.data(), n, n_threads);
    if (coupling == Coupling::others)
        for (int64_t s = 0; s < view.segments; ++s)
            for (int64_t j = 0; j < n; ++j) T[s * n + j] = -blocks.scale[blocks.query_of[view.segment_start[s]]] * S[s * n + j];
    std::fill(diagonal.begin(), diagonal.end(), 0.0);
    for (std::size_t e = 0; e < Z.size(); ++e) diagonal[e % n] += Z[e] * Z[e];
    for (std::size_t e = 0; e < S.size(); ++e) diagonal[e % n] -= S[e] * T[e];
    require_close(diagonal, expected, "centre_queries");
}

// What BLAS's dsyrk does with 'U' and 'N'.
void plain_dsyrk(char*, char*, int* n, int* k, double* alpha, double* A, int* lda, double* beta, double* C, int* ldc) {
    for (int j = 0; j < *n; ++j)
        for (int i = 0; i <= j; ++i) {
            double sum = 0;
            for (int l = 0; l < *k; ++l) sum += A[l * *lda + i] * A[l * *lda + j];
            C[j * *ldc + i] = *alpha * sum + *beta * C[j * *ldc + i];
        }
}

// X' L X and X' r of a dense matrix in either order, in stripes and buffers of few rows.
void check_dense_gram(int64_t rows, int64_t n, Coupling coupling, int64_t outputs, int n_threads) {
    const RandomBlocks blocks(rows, coupling);
    const Doubles X = random_doubles(rows * n), LX = blocks.apply(X, n, nullptr);
    const Doubles r = blocks.apply(random_doubles(rows * outputs), outputs, nullptr);
    Doubles expected(static_cast<std::size_t>(n * n), 0.0), pulled(static_cast<std::size_t>(n * outputs), 0.0);
    Doubles transposed(X.size());
    for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < n; ++j) {
            transposed[j * rows + i] = X[i * n + j];
            for (int64_t l = 0; l < n; ++l) expected[j * n + l] += X[i * n + j] * LX[i * n + l];
            for (int64_t c = 0; c < outputs; ++c) pulled[j * outputs + c] += X[i * n + j] * r[i * outputs + c];
        }
    for (const int64_t buffer : {1, 4, 100})
        for (const int stripes : {1, 3, 7})
            for (const bool by_rows : {true, false}) {
                Doubles G(expected.size(), -1.0), rhs(pulled.size(), -1.0);
                const DenseMatrix<double> matrix{by_rows ? X.data() : transposed.data(), n, by_rows ? n : 1,
                                                 by_rows ? 1 : rows};
                dense_gram(matrix, blocks.view(), Pull{r.data(), outputs}, buffer, stripes, plain_dsyrk, G.data(),
                           rhs.data(), n_threads);
                require_close(G, expected, "dense_gram");
                require_close(rhs, pulled, "the right-hand side of dense_gram");
            }
}

template <typename Value, typename Column, typename Offset>
void check_storage() {
    for (const int64_t rows : {0, 1, 23})
        for (const int64_t columns : {1, 9})
            for (const int64_t k : {1, 2, 3, 8, 10})
                for (const int n_threads : {1, 2, 3}) {
                    const RandomMatrix<Value, Column, Offset> X(rows, columns);
                    check_products(X, k, n_threads);
                    for (const Coupling coupling : {Coupling::all, Coupling::others, Coupling::relative})
                        check_graph(X, coupling, k, n_threads);
                }
}

// An array in a file of its own, after some entries that are not part of it.
template <typename T>
class StoredArray {
public:
    static constexpr std::size_t before = 1500;  // an odd place: neither a page nor a block begins there

    explicit StoredArray(const std::vector<T>& content) {
        const int file = mkstemp(path_);
        std::vector<T> all(before, T(7));
        all.insert(all.end(), content.begin(), content.end());
        size_ = all.size() * sizeof(T);
        if (file < 0 || write(file, all.data(), size_) != static_cast<ssize_t>(size_)) fail("a temporary file");
        mapping_ = mmap(nullptr, size_, PROT_READ, MAP_SHARED, file, 0);
        if (mapping_ == MAP_FAILED) fail("a mapping");
        close(file);
    }
    StoredArray(const StoredArray&) = delete;
    ~StoredArray() {
        munmap(mapping_, size_);
        unlink(path_);
    }

    const T* data() const { return static_cast<const T*>(mapping_) + before; }

    // Direct where the file system has that; the same code reads from any file.
    int open_again() const {
        int file = open(path_, O_RDONLY | O_DIRECT);
        if (file < 0) file = open(path_, O_RDONLY);
        return file;
    }

private:
    static void fail(const char* what) {
        std::perror(what);
        std::exit(1);
    }

    char path_[32] = "/tmp/rankwise-test-XXXXXX";
    std::size_t size_ = 0;
    void* mapping_ = nullptr;
};

enum class Reading { mapped, direct, refused };

template <typename Value, typename Column, typename Offset>
struct StoredMatrix : RandomMatrix<Value, Column, Offset> {
    using Base = RandomMatrix<Value, Column, Offset>;
    StoredArray<Value> stored_values;
    StoredArray<Column> stored_ids;
    Disk disk;

    StoredMatrix(int64_t m, int64_t n, int64_t window, Reading reading)
        : Base(m, n), stored_values(this->values), stored_ids(this->ids),
          disk{nullptr, static_cast<int64_t>(StoredArray<Value>::before), window} {
        if (reading == Reading::mapped) return;
        const bool works = reading == Reading::direct;
        disk.files = std::make_shared<DirectFiles>(works ? stored_values.open_again() : -1,
                                                       works ? stored_ids.open_again() : -1, 0, 0);
    }

    Csr<Value, Column, Offset> view() const {
        return {this->rows, this->columns, stored_values.data(), stored_ids.data(), this->start.data(), &disk};
    }
};

// Windows of less than a row, of some rows, and of all of them, however they are fetched.
template <typename Value, typename Column, typename Offset>
void check_stored() {
    for (const Reading reading : {Reading::mapped, Reading::direct, Reading::refused})
        for (const int64_t rows : {0, 1, 23, 400})
            for (const int64_t window : {1, 40, 100000})
                for (const int n_threads : {1, 2}) {
                    const int64_t k = n_threads == 1 ? 5 : 1;
                    if (rows == 400 && window == 1) continue;
                    const StoredMatrix<Value, Column, Offset> X(rows, 9, window, reading);
                    check_products(X, k, n_threads);
                    if (rows < 400) check_graph(X, Coupling::others, k, n_threads);
                }
}

}  // namespace

int main() {
    for (const int64_t rows : {0, 1, 23})
        for (const int64_t outputs : {0, 1, 3})
            for (const Coupling coupling : {Coupling::all, Coupling::others})
                for (const int n_threads : {1, 3}) check_dense_gram(rows, 5, coupling, outputs, n_threads);
    check_storage<float, int32_t, int32_t>();
    check_storage<double, uint16_t, int32_t>();
    check_storage<double, int64_t, int64_t>();
    check_stored<float, int32_t, int64_t>();
    check_stored<double, int32_t, int32_t>();
    std::puts("all kernels agree with naive loops");
}
