// Runs the kernels of additive models on random codes and compares them with naive loops, with all instructions that the
// processor has. Built with sanitizers by `make test-sanitize`.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <vector>

#include "additive.hpp"
#include "additive_gram.hpp"
#include "additive_terms.hpp"
#include "pair_histograms.hpp"

using namespace rankwise;
using Doubles = std::vector<double>;

namespace {

std::mt19937 rng(11);

double normal() { return std::normal_distribution<double>()(rng); }
int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(rng); }

void require_close(const Doubles& actual, const Doubles& expected, const char* what) {
    double largest = 1.0;
    for (const double x : expected) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < expected.size(); ++i)
        if (!(std::abs(actual[i] - expected[i]) <= 1e-9 * largest)) {
            std::printf("%s: entry %zu is %.17g, not %.17g\n", what, i, actual[i], expected[i]);
            std::exit(1);
        }
}

// Columns of numbers with missing ones, their knots, codes, and two surfaces on the columns' own cells.
struct RandomAdditive {
    int64_t rows, first;
    int64_t columns = 5;
    Doubles X, knots;
    std::vector<int64_t> start{0}, used, column, curve_start, side_start, surface_start;
    bool is_levels[5] = {false, false, true, false, false};
    bool has_missing[5] = {true, true, true, true, true};
    std::vector<int32_t> shift, cells, side_column, side_cell, surface_sides{0, 1, 3, 2};
    Doubles side_origin, side_slope;
    std::unique_ptr<uint32_t[], void (*)(uint32_t*)> codes{nullptr, [](uint32_t* data) { ::operator delete[](data, cache_line); }};
    CodeLayout layout;
    int64_t entries = 0;

    RandomAdditive(int64_t m, int64_t offset, int64_t chunk_rows) : rows(m), first(offset), layout{columns, chunk_rows} {
        for (int64_t j = 0; j < columns; ++j) add_column(j);
        for (int64_t s = 0; s < 2; ++s) {
            surface_start.push_back(entries);
            entries += 4 * cells[surface_sides[2 * s]] * cells[surface_sides[2 * s + 1]];
        }
        for (int64_t i = 0; i < rows * columns; ++i) X.push_back(below(9) ? std::round(4 * normal()) / 4 : NAN);
        const int64_t chunks = (first + rows + chunk_rows - 1) / chunk_rows, size = chunks * columns * chunk_rows;
        codes.reset(static_cast<uint32_t*>(::operator new[](static_cast<std::size_t>(size) * sizeof(uint32_t), cache_line)));
        std::fill_n(codes.get(), size, 0u);
        const ArrayRows<double> source{X.data(), columns, 1, columns, used.data()};
        encode(source, rows, knots_view(), shift.data(), layout, first, codes.get(), 2);
    }

    void add_column(int64_t j) {
        const int64_t sizes[] = {8, 3, 4, 20, 1};
        for (int64_t k = 0; k < sizes[j]; ++k) knots.push_back(is_levels[j] ? k - 1 : -1.5 + 3.0 * k / sizes[j]);
        start.push_back(static_cast<int64_t>(knots.size()));
        used.push_back(j);
        column.push_back(j);
        shift.push_back(is_levels[j] ? 0 : 24);
        cells.push_back(static_cast<int32_t>(sizes[j] + 1));
        curve_start.push_back(j == 1 ? -1 : entries);
        if (j != 1) entries += 2 * cells.back();
        side_column.push_back(static_cast<int32_t>(j));
        side_start.push_back(static_cast<int64_t>(side_cell.size()));
        for (int32_t c = 0; c < cells.back(); ++c) {
            side_cell.push_back(c);
            side_origin.push_back(0.0);
            side_slope.push_back(std::ldexp(1.0, -shift.back()));
        }
    }

    Knots knots_view() const {
        Knots view;
        view.curves = columns;
        view.column = column.data();
        view.start = start.data();
        view.knots = knots.data();
        view.is_levels = is_levels;
        view.has_missing = has_missing;
        return view;
    }

    Additive view(Instructions instructions) const {
        Additive view;
        view.rows = rows;
        view.columns = entries;
        view.codes = codes.get();
        view.layout = layout;
        view.first = first;
        view.shift = shift.data();
        view.cells = cells.data();
        view.curve_start = curve_start.data();
        view.decoded = columns;
        view.side_column = side_column.data();
        view.side_start = side_start.data();
        view.side_cell = side_cell.data();
        view.side_origin = side_origin.data();
        view.side_slope = side_slope.data();
        view.side_cells = cells.data();
        view.surfaces = 2;
        view.surface_sides = surface_sides.data();
        view.surface_start = surface_start.data();
        view.instructions = instructions;
        return view;
    }

    // A continuous curve for each column, as tables of cells are.
    Doubles table(int64_t k) const {
        Doubles out(static_cast<std::size_t>(entries * k), 0.0);
        for (int64_t e = 0; e < entries * k; ++e) out[e] = normal();
        for (int64_t j = 0; j < columns; ++j) {
            if (curve_start[j] < 0) continue;
            const double unit = std::ldexp(1.0, shift[j]);
            for (int64_t c = 0; c < cells[j]; ++c)
                for (int64_t w = 0; w < k; ++w) {
                    double* cell = out.data() + (curve_start[j] + 2 * c) * k + w;
                    const bool is_interval = !is_levels[j] && c + 2 < cells[j];
                    cell[k] = is_interval ? (cell[2 * k] - cell[0]) / unit : 0.0;
                }
        }
        return out;
    }

    // The row of the matrix of cells, from the numbers; positions to the precision of the codes.
    Doubles row(int64_t i) const {
        Doubles out(static_cast<std::size_t>(entries), 0.0);
        std::vector<Place> at;
        for (int64_t j = 0; j < columns; ++j) {
            Place place = locate(knots.data() + start[j], start[j + 1] - start[j], is_levels[j], X[i * columns + j]);
            const double unit = std::ldexp(1.0, shift[j]);
            place.position = std::floor(place.position * unit + 0.5);
            if (place.position == unit) place = {place.cell + 1, 0.0};
            at.push_back(place);
            if (curve_start[j] < 0) continue;
            out[curve_start[j] + 2 * place.cell] += 1.0;
            out[curve_start[j] + 2 * place.cell + 1] += place.position;
        }
        for (int64_t s = 0; s < 2; ++s) {
            const int64_t one = surface_sides[2 * s], other = surface_sides[2 * s + 1];
            const double p = std::ldexp(at[one].position, -shift[one]), q = std::ldexp(at[other].position, -shift[other]);
            double* cell = out.data() + surface_start[s] + 4 * (at[one].cell * cells[other] + at[other].cell);
            cell[0] = 1.0, cell[1] = p, cell[2] = q, cell[3] = p * q;
        }
        return out;
    }
};

// What sums over cells are worth to tables of continuous curves: the products with some of them.
Doubles with_curves(const RandomAdditive& X, const Doubles& sums, int64_t k) {
    std::mt19937 before = rng;
    rng.seed(5);
    Doubles out;
    for (int repeat = 0; repeat < 20; ++repeat) {
        const Doubles table = X.table(1);
        for (int64_t c = 0; c < k; ++c) {
            double total = 0;
            for (int64_t e = 0; e < X.entries; ++e) total += table[e] * sums[e * k + c];
            out.push_back(total);
        }
    }
    rng = before;
    return out;
}

void check_products(const RandomAdditive& random, Instructions instructions, int64_t k, int n_threads) {
    const Additive X = random.view(instructions);
    const Doubles V = random.table(k);
    Doubles U(static_cast<std::size_t>(X.rows * k)), F(U.size()), G(V.size()), expected_F(U.size()), expected_G(V.size());
    for (double& u : U) u = normal();
    std::vector<Doubles> rows;
    for (int64_t i = 0; i < X.rows; ++i) {
        rows.push_back(random.row(i));
        for (int64_t e = 0; e < X.columns; ++e)
            for (int64_t c = 0; c < k; ++c) {
                expected_F[i * k + c] += rows.back()[e] * V[e * k + c];
                expected_G[e * k + c] += rows.back()[e] * U[i * k + c];
            }
    }
    dot(X, V.data(), k, F.data(), 3, n_threads);
    require_close(F, expected_F, "dot");
    transposed_dot(X, U.data(), k, G.data(), 3, n_threads);
    require_close(with_curves(random, G, k), with_curves(random, expected_G, k), "transposed_dot");

    // Queries of seven rows; each row meets the others of its query.
    std::vector<int64_t> order, starts;
    Doubles degree, scale;
    for (int64_t i = 0; i < X.rows; ++i) {
        if (i % 7 == 0) starts.push_back(i);
        order.push_back(i / 7 * 7 + std::min<int64_t>(7, X.rows - i / 7 * 7) - 1 - i % 7);
    }
    starts.push_back(X.rows);
    const auto queries = static_cast<int64_t>(starts.size()) - 1;
    std::vector<int64_t> segment(static_cast<std::size_t>(queries) + 1), large(static_cast<std::size_t>(queries), -1), number, work;
    for (int64_t q = 0; q <= queries; ++q) segment[q] = q;
    for (int64_t q = 0; q < queries; ++q) {
        degree.push_back(static_cast<double>(starts[q + 1] - starts[q]));
        scale.push_back(1.0);
        number.push_back(q);
    }
    for (const int64_t s : starts) work.push_back(s * X.layout.columns);
    Blocks blocks;
    blocks.rows = X.rows;
    blocks.queries = blocks.segments = queries;
    blocks.order = order.data();
    blocks.query_start = blocks.segment_start = starts.data();
    blocks.query_segment = segment.data();
    blocks.degree = degree.data();
    blocks.scale = scale.data();
    blocks.coupling = Coupling::all;
    const int64_t none = 0;
    Plan plan;
    plan.chunks = queries;
    plan.chunk_start = starts.data();
    plan.chunk_query = number.data();
    plan.chunk_large = large.data();
    plan.chunk_work = work.data();
    plan.large_start = &none;
    fused<4>(X, nullptr, blocks, nullptr, plan, V.data(), k, G.data(), 3, n_threads);
    std::fill(expected_G.begin(), expected_G.end(), 0.0);
    for (int64_t i = 0; i < X.rows; ++i)
        for (int64_t j = i / 7 * 7; j < std::min(i / 7 * 7 + 7, X.rows); ++j)
            for (int64_t c = 0; c < k; ++c)
                for (int64_t e = 0; e < X.columns; ++e)
                    expected_G[e * k + c] += rows[i][e] * (expected_F[i * k + c] - expected_F[j * k + c]);
    require_close(with_curves(random, G, k), with_curves(random, expected_G, k), "fused");

    std::fill(expected_G.begin(), expected_G.end(), 0.0);
    for (int64_t i = 0; i < X.rows; ++i)
        for (int64_t e = 0; e < X.columns; ++e) expected_G[e] += rows[i][e];
    G.resize(static_cast<std::size_t>(X.columns));
    expected_G.resize(G.size());
    weighted_sum(X, blocks, nullptr, 0, X.rows, G.data(), 2, n_threads);
    require_close(G, expected_G, "weighted_sum");
}

void check_squares(const RandomAdditive& random, Instructions instructions, int n_threads) {
    Additive X = random.view(instructions);
    X.surfaces = 0;
    X.columns = random.surface_start[0];  // the tables of curves stand first
    const auto n = static_cast<std::size_t>(X.columns);
    Doubles weight, out(n * n), expected(n * n), sums(2 * n), expected_sums(2 * n);
    std::vector<int64_t> order;
    const std::vector<int64_t> start{0, X.rows / 3, X.rows};
    for (int64_t i = 0; i < X.rows; ++i) {
        weight.push_back(normal());
        order.push_back(X.rows - 1 - i);
    }
    for (int64_t i = 0; i < X.rows; ++i) {
        const Doubles row = random.row(i);
        const std::size_t unit = X.rows - 1 - i < start[1] ? 0 : 1;
        for (std::size_t e = 0; e < n; ++e) {
            expected_sums[unit * n + e] += weight[static_cast<std::size_t>(X.rows - 1 - i)] * row[e];
            for (std::size_t f = 0; f < n; ++f) expected[e * n + f] += weight[static_cast<std::size_t>(i)] * row[e] * row[f];
        }
    }
    squares(X, weight.data(), out.data(), n_threads);
    require_close(out, expected, "squares");
    sums_of_units(X, order.data(), weight.data(), start.data(), 2, sums.data(), n_threads);
    require_close(sums, expected_sums, "sums_of_units");
}

void check_predict(const RandomAdditive& random, int n_threads) {
    // The curves of all columns but the last two, which are the sides of a surface.
    std::vector<int64_t> offsets{0};
    const auto values_of = [&](int64_t j) { return random.start[j + 1] - random.start[j] + 1; };
    for (int64_t j = 0; j < 3; ++j) offsets.push_back(offsets.back() + values_of(j));
    offsets.push_back(offsets.back() + values_of(3) * values_of(4));
    TermValues terms;
    terms.knots = random.knots_view();
    terms.curves = 3;
    terms.surfaces = 1;
    terms.offsets = offsets.data();
    const Doubles values(static_cast<std::size_t>(offsets.back()), 1.0);
    Doubles F(static_cast<std::size_t>(random.rows));
    const ArrayRows<double> source{random.X.data(), random.columns, 1, random.columns, random.used.data()};
    additive_predict(source, random.rows, terms, values.data(), 1, F.data(), n_threads);
    require_close(F, Doubles(F.size(), 4.0), "weights add up to one");
}

void check_pairs(int n_threads) {
    const int64_t columns = 7, rows = 100;
    std::vector<uint8_t> bins;
    for (int64_t i = 0; i < columns * rows; ++i) bins.push_back(static_cast<uint8_t>(below(most_bins)));
    const std::vector<int64_t> first{0, 2, 6, 1}, second{1, 5, 3, 4};
    Doubles g, h, out(4 * 2 * most_bins * most_bins), expected(out.size());
    for (int64_t i = 0; i < rows; ++i) g.push_back(normal()), h.push_back(1.0);
    BinnedRows X;
    X.rows = rows;
    X.bins = bins.data();
    X.g = g.data();
    X.h = h.data();
    pair_histograms(X, first.data(), second.data(), 4, out.data(), n_threads);
    for (int64_t p = 0; p < 4; ++p)
        for (int64_t r = 0; r < rows; ++r) {
            const int64_t cell = (p * most_bins + bins[first[p] * rows + r]) * most_bins + bins[second[p] * rows + r];
            expected[2 * cell] += g[r];
            expected[2 * cell + 1] += h[r];
        }
    require_close(out, expected, "pair_histograms");
}

}  // namespace

int main() {
    for (const int64_t rows : {1, 16, 45, 150})
        for (const int64_t offset : {0, 5})
            for (const int64_t chunk_rows : {16, 48}) {
                const RandomAdditive random(rows, offset, chunk_rows);
                for (int level = 0; level <= static_cast<int>(widest_instructions()); ++level) {
                    for (const int64_t k : {1, 2, 3, 9}) check_products(random, static_cast<Instructions>(level), k, 1 + level);
                    check_squares(random, static_cast<Instructions>(level), 1 + level);
                }
                check_predict(random, 2);
            }
    check_pairs(1);
    check_pairs(3);
    std::puts("additive kernels: ok");
    return 0;
}
