// order_statistics.hpp against naive loops over pairs; meant to run under the sanitizers.
#include "order_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

using namespace rankwise;

namespace {

constexpr double kMargin = 1.0, kDelta = 0.3;

struct Problem {
    std::vector<int64_t> start{0};
    std::vector<uint8_t> counting;
    std::vector<int32_t> n_levels, rank;
    std::vector<double> weight, scale, score;
    bool weighted = false;

    RankedQueries view() const {
        RankedQueries queries;
        queries.n_queries = static_cast<int64_t>(counting.size());
        queries.start = start.data();
        queries.counting = counting.data();
        queries.n_levels = n_levels.data();
        queries.rank = rank.data();
        queries.weight = weighted ? weight.data() : nullptr;
        queries.scale = weighted ? scale.data() : nullptr;
        return queries;
    }
};

void expect_near(double got, double wanted, double size, const char* what) {
    if (std::abs(got - wanted) <= 1e-10 * (std::abs(wanted) + size)) return;
    std::fprintf(stderr, "%s: got %.17g, wanted %.17g\n", what, got, wanted);
    std::exit(1);
}

// A query of n rows; labels come in ascending order, as brute force needs them.
void add_query(Problem& problem, std::mt19937& random, int64_t n, int32_t levels, Counting counting) {
    std::vector<int32_t> rank;
    for (int64_t i = 0; i < n; ++i) rank.push_back(static_cast<int32_t>(i * levels / n));
    const int32_t present = n == 0 ? 0 : rank.back() + 1;
    const auto method = present > 1 ? counting : Counting::no_pairs;
    std::uniform_int_distribution<int> step(-6, 6);
    std::uniform_real_distribution<double> positive(0.1, 2.0);
    for (int64_t i = 0; i < n; ++i) {
        problem.rank.push_back(rank[static_cast<std::size_t>(i)]);
        problem.score.push_back(0.25 * step(random));  // many ties, and differences of exactly the margin
        problem.weight.push_back(positive(random));
    }
    problem.start.push_back(problem.start.back() + n);
    problem.counting.push_back(static_cast<uint8_t>(method));
    problem.n_levels.push_back(present);
    problem.scale.push_back(positive(random));
}

struct Sums {
    std::vector<double> won, lost, product, smooth_won, smooth_lost, excess;
    Sums(std::size_t rows, std::size_t columns)
        : won(rows), lost(rows), product(rows * columns), smooth_won(rows), smooth_lost(rows), excess(rows) {}
};

Sums fast(const Problem& problem, const std::vector<double>& v, int64_t n_columns, int n_threads) {
    const std::size_t rows = problem.score.size();
    Sums sums(rows, static_cast<std::size_t>(n_columns));
    std::vector<int32_t> order(rows), sorted_rank(rows);
    std::vector<double> sorted_score(rows);
    const RankedQueries queries = problem.view();
    sort_scores(queries, problem.score.data(), int64_t{1} << 40, order.data(), sorted_score.data(),
                sorted_rank.data(), n_threads);
    const SortedScores point{problem.score.data(), order.data(), sorted_score.data(), sorted_rank.data()};
    violation_counts(queries, point, kMargin, sums.won.data(), sums.lost.data(), n_threads);
    violation_laplacian(queries, point, kMargin, sums.won.data(), sums.lost.data(), v.data(), n_columns,
                        sums.product.data(), n_threads);
    smoothed_violations(queries, point, kMargin, kDelta, sums.smooth_won.data(), sums.smooth_lost.data(),
                        sums.excess.data(), n_threads);
    return sums;
}

Sums naive(const Problem& problem, const std::vector<double>& v, int64_t n_columns) {
    Sums sums(problem.score.size(), static_cast<std::size_t>(n_columns));
    const RankedQueries queries = problem.view();
    for (int64_t q = 0; q < queries.n_queries; ++q)
        for (int64_t i = queries.start[q]; i < queries.start[q + 1]; ++i)
            for (int64_t j = queries.start[q]; j < queries.start[q + 1]; ++j) {
                const double difference = problem.score[i] - problem.score[j], t = kMargin - difference;
                if (queries.rank[i] <= queries.rank[j] || !(difference < kMargin)) continue;
                const double weight = queries.query_scale(q) * queries.row_weight(i) * queries.row_weight(j);
                sums.won[i] += weight;
                sums.lost[j] += weight;
                sums.smooth_won[i] += weight * std::min(t / kDelta, 1.0);
                sums.smooth_lost[j] += weight * std::min(t / kDelta, 1.0);
                sums.excess[i] += weight * std::max(t - kDelta, 0.0);
                for (int64_t c = 0; c < n_columns; ++c) {
                    const double pull = weight * (v[i * n_columns + c] - v[j * n_columns + c]);
                    sums.product[i * n_columns + c] += pull;
                    sums.product[j * n_columns + c] -= pull;
                }
            }
    return sums;
}

void compare(const Sums& got, const Sums& wanted, double size) {
    for (std::size_t i = 0; i < got.won.size(); ++i) {
        expect_near(got.won[i], wanted.won[i], 0.0, "won");
        expect_near(got.lost[i], wanted.lost[i], 0.0, "lost");
        expect_near(got.smooth_won[i], wanted.smooth_won[i], size, "smoothed won");
        expect_near(got.smooth_lost[i], wanted.smooth_lost[i], size, "smoothed lost");
        expect_near(got.excess[i], wanted.excess[i], size, "excess");
    }
    for (std::size_t i = 0; i < got.product.size(); ++i)
        expect_near(got.product[i], wanted.product[i], size, "product");
}

std::vector<double> random_block(std::mt19937& random, std::size_t size) {
    std::normal_distribution<double> normal;
    std::vector<double> block(size);
    for (double& entry : block) entry = normal(random);
    return block;
}

void test_against_naive(Counting counting, int32_t levels, bool weighted) {
    std::mt19937 random(7);
    Problem problem;
    problem.weighted = weighted;
    for (int q = 0; q < 60; ++q) add_query(problem, random, q, levels, counting);
    add_query(problem, random, 400, levels, counting);
    const int64_t n_columns = 5;
    const auto v = random_block(random, problem.score.size() * static_cast<std::size_t>(n_columns));
    const Sums wanted = naive(problem, v, n_columns);
    for (int n_threads : {1, 2, 3}) compare(fast(problem, v, n_columns, n_threads), wanted, 400.0);
}

// Beyond shared_query_rows the two sides of one query run on two threads: same results, bit for bit.
void test_shared_query(Counting counting, int32_t levels, bool weighted) {
    std::mt19937 random(8);
    Problem problem;
    problem.weighted = weighted;
    add_query(problem, random, shared_query_rows + 5, levels, counting);
    add_query(problem, random, 50, levels, counting);
    const auto v = random_block(random, problem.score.size());
    const Sums one = fast(problem, v, 1, 1), two = fast(problem, v, 1, 2);
    if (one.won != two.won || one.lost != two.lost || one.product != two.product ||
        one.smooth_won != two.smooth_won || one.smooth_lost != two.smooth_lost) {
        std::fprintf(stderr, "results depend on the number of threads\n");
        std::exit(1);
    }
}

}  // namespace

int main() {
    for (bool weighted : {false, true}) {
        for (int32_t levels : {1, 2, 5, 8}) {
            test_against_naive(Counting::brute, levels, weighted);
            test_against_naive(Counting::levels, levels, weighted);
            test_against_naive(Counting::fenwick, levels, weighted);
        }
        for (int32_t levels : {40, 1000}) {
            test_against_naive(Counting::brute, levels, weighted);
            test_against_naive(Counting::fenwick, levels, weighted);
        }
        test_shared_query(Counting::levels, 5, weighted);
        test_shared_query(Counting::fenwick, 1 << 15, weighted);
    }
    std::puts("order statistics: all as the naive loops");
    return 0;
}
