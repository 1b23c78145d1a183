// Pairs scored without their rows, against naive loops. Built with sanitizers by
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

}  // namespace

int main() {
    test_counts();
}
