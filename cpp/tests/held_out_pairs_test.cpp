// Pairs judged without their rows, against naive loops and a dense solution. Built with sanitizers by
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
    const std::int64_t m = 37, first = 5, rows = 9;
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
    for (std::int64_t i = first; i < first + rows; ++i)
        for (std::int64_t j = i + 1; j < m; ++j) {
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

void test_small_systems() {
    for (std::int64_t n = 1; n < 12; ++n) {
        const Doubles matrix = normals(static_cast<std::size_t>(n * n)), rhs = normals(static_cast<std::size_t>(n));
        Doubles work = matrix, x = rhs;
        detail::solve_small(work.data(), x.data(), n);
        for (std::int64_t r = 0; r < n; ++r) {
            double sum = -rhs[r];
            for (std::int64_t c = 0; c < n; ++c) sum += matrix[r * n + c] * x[c];
            require(std::abs(sum) < 1e-8, "a small system");
        }
    }
}

void test_threads() {
    const std::int64_t levels = 3, n_a = 7, n_b = 5;
    Doubles products = normals(levels * levels), coupling = normals(levels * levels), pull = normals(levels);
    for (std::int64_t l = 0; l < levels; ++l)
        for (std::int64_t k = 0; k < l; ++k) products[l * levels + k] = products[k * levels + l];
    const Doubles across = normals(n_a * n_b), own_a = normals(n_a), own_b = normals(n_b),
                  to_a = normals(n_a * levels), to_b = normals(n_b * levels);
    const LevelPair pair{levels, 0, 2, 0.3, 0.4, coupling.data(), pull.data(), products.data()};
    Doubles one(n_a * n_b * 2), several(one.size());
    for (auto [threads, out] : {std::pair<int, Doubles*>{1, &one}, {3, &several}})
        level_pair_scores(pair, across.data(), n_a, n_b, own_a.data(), own_b.data(), to_a.data(), to_b.data(),
                          out->data(), threads);
    require(one == several, "scores on several threads");
}

}  // namespace

int main() {
    test_counts();
    test_small_systems();
    test_threads();
    std::puts("held-out pairs: fine");
}
