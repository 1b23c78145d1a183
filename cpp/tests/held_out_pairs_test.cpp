// Pairs scored without their rows, against naive loops and a dense solution. Built with sanitizers by
// `make test-sanitize`.
#include "held_out_pairs.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

using namespace rankwise;
using Doubles = std::vector<double>;

namespace {

std::mt19937 rng(5);

Doubles normals(std::size_t n) {
    std::normal_distribution<double> normal;
    Doubles out(n);
    for (double& x : out) x = normal(rng);
    return out;
}

void require(bool holds, const char* what) {
    if (holds) return;
    std::printf("%s\n", what);
    std::exit(1);
}

void test_counts() {
    const int64_t m = 37, first = 5, rows = 9;
    const Doubles label = [&] {
        Doubles y = normals(m);
        for (double& x : y) x = std::round(2 * x);
        return y;
    }();
    Doubles diagonal = normals(m), residual = normals(m), share = normals(m), across = normals(rows * (m - first));
    for (double& x : diagonal) x = 2 + std::abs(x);
    for (double& x : share) x = 0.1 + std::abs(x);
    const RidgeRows ridge{label.data(), diagonal.data(), residual.data(), share.data()};
    PairCounts expected;
    for (int64_t i = first; i < first + rows; ++i)
        for (int64_t j = i + 1; j < m; ++j) {
            if (label[i] == label[j]) continue;
            const double t = across[(i - first) * (m - first) + j - first];
            const double det = diagonal[i] * diagonal[j] - t * t;
            const double e_i = (diagonal[j] * residual[i] - t * residual[j]) / det;
            const double e_j = (diagonal[i] * residual[j] - t * residual[i]) / det;
            const double gap = label[i] - label[j];
            const double success = gap * (gap - (e_i / share[i] - e_j / share[j])) * det;
            const double weight = std::pow(share[i] * share[j], 2);
            (success > 0 ? expected.right : expected.wrong) += weight;
        }
    const PairCounts found =
        count_ridge_pairs<true>(ridge, across.data(), first, rows, first, m - first, 1e-11);
    require(std::abs(found.wrong - expected.wrong) < 1e-9, "weight of wrong pairs");
    require(std::abs(found.right - expected.right) < 1e-9, "weight of right pairs");
}

template <int64_t n>
void test_small_system() {
    const Doubles matrix = normals(static_cast<std::size_t>(n * n)), rhs = normals(static_cast<std::size_t>(n));
    Doubles work = matrix, x = rhs;
    detail::solve_small<n>(work.data(), x.data());
    for (int64_t r = 0; r < n; ++r) {
        double sum = -rhs[r];
        for (int64_t c = 0; c < n; ++c) sum += matrix[r * n + c] * x[c];
        require(std::abs(sum) < 1e-8, "a small system");
    }
}

void test_threads() {
    constexpr int64_t vectors = 4, n_a = 7, n_b = 5;
    const Doubles products = normals(vectors * vectors), correction = normals((vectors + 2) * (vectors + 2)),
                  pulled = normals(vectors), across = normals(n_a * n_b), own_a = normals(n_a), own_b = normals(n_b),
                  to_a = normals(n_a * vectors), to_b = normals(n_b * vectors), pulled_a = normals(n_a),
                  pulled_b = normals(n_b);
    const PairUpdate update{correction.data(), products.data(), pulled.data(), 0.3, 0.4};
    Doubles one(n_a * n_b * 2), several(one.size());
    for (auto [threads, out] : {std::pair<int, Doubles*>{1, &one}, {3, &several}})
        level_pair_scores<vectors>(update, across.data(), {n_a, own_a.data(), to_a.data(), pulled_a.data()},
                                   {n_b, own_b.data(), to_b.data(), pulled_b.data()}, out->data(), threads);
    require(one == several, "scores on several threads");
}

// Groups that are padded to one width, against each of them by itself with its vectors and correction written out.
void test_multipartite() {
    const int64_t width = 9, n_rows = 20, sizes[] = {3, 4, 1, 1, 2, 7};
    const Doubles B = normals(3 * width * width), pulled = normals(3 * width), pulls = normals(6);
    Doubles found((12 + 1 + 14) * 2);
    multipartite_pair_scores(3, width, B.data(), pulled.data(), sizes, pulls.data(), n_rows, found.data());
    const double* next = found.data();
    for (int64_t g = 0; g < 3; ++g) {
        const int64_t n_a = sizes[2 * g], n_b = sizes[2 * g + 1], n = n_a + n_b;
        const auto entry = [&](int64_t r, int64_t c) { return B[(g * width + r) * width + c]; };
        Doubles to(2 * n), products(4), sums(2), across, own, own_pulled;
        for (int64_t r = 0; r < n; ++r) {
            for (int64_t c = 0; c < n; ++c) {
                to[2 * r + (c >= n_a)] += entry(r, c);
                products[2 * (r >= n_a) + (c >= n_a)] += entry(r, c);
                if (r < n_a && c >= n_a) across.push_back(entry(r, c));
            }
            own.push_back(entry(r, r));
            own_pulled.push_back(pulled[g * width + r]);
            sums[r >= n_a] += own_pulled.back();
        }
        Doubles M(16);
        M[0] = double(n_a - n_rows + 1), M[5] = double(n_b - n_rows + 1);
        M[1] = M[4] = M[2] = M[8] = M[7] = M[13] = -1;
        const PairUpdate update{M.data(), products.data(), sums.data(), pulls[2 * g], pulls[2 * g + 1]};
        Doubles expected(n_a * n_b * 2);
        level_pair_scores<2>(update, across.data(), {n_a, own.data(), to.data(), own_pulled.data()},
                             {n_b, own.data() + n_a, to.data() + 2 * n_a, own_pulled.data() + n_a}, expected.data(), 1);
        for (const double score : expected)
            require(std::abs(score - *next++) < 1e-7 * (1 + std::abs(score)), "levels of a multipartite graph");
    }
}

}  // namespace

int main() {
    test_counts();
    test_small_system<1>();
    test_small_system<4>();
    test_small_system<6>();
    test_small_system<11>();
    test_threads();
    test_multipartite();
    std::puts("held-out pairs: fine");
}
