// The bindings of additive models: encoding, predicting, and products with codes.
#include <algorithm>
#include <any>
#include <tuple>

#include "additive.hpp"
#include "additive_gram.hpp"
#include "additive_terms.hpp"
#include "bindings.hpp"
#include "bindings_blocks.hpp"
#include "pair_histograms.hpp"

using namespace bindings;
using namespace rankwise;

namespace {

using Codes = nb::ndarray<uint32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using ConstCodes = nb::ndarray<const uint32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <typename Value>
using AnyOrder = nb::ndarray<const Value, nb::ndim<2>, nb::device::cpu>;
using Int32s = Vector<const int32_t>;
using Flags = Vector<const bool>;

constexpr std::pair<const char*, Instructions> instruction_names[] = {
    {"plain", Instructions::plain},
    {"avx2", Instructions::avx2},
    {"avx512", Instructions::avx512},
};

// The arrays of rankwise::Knots: curves, then two sides for each surface.
class TermArrays {
public:
    TermArrays(Ids used, Ids column, Ids start, Reals knots, Flags is_levels, Flags has_missing, Ids offsets, int64_t curves)
        : kept_(std::tuple(column, start, knots, is_levels, has_missing, offsets)), used_(used) {
        const int64_t sides = length(column), surfaces = (sides - curves) / 2;
        require(0 <= curves && curves <= sides && (sides - curves) % 2 == 0, "column and curves disagree");
        require_starts(start, sides, length(knots), "start must end with the knots");
        require_length(is_levels, sides, "is_levels and column disagree");
        require_length(has_missing, sides, "has_missing and column disagree");
        require_length(offsets, curves + surfaces + 1, "offsets and column disagree");
        for (int64_t s = 0; s < sides; ++s)
            require(0 <= column.data()[s] && column.data()[s] < length(used), "a column that is not in use");
        for (int64_t c = 0; c < length(used); ++c) {
            require(used.data()[c] >= 0, "a negative column");
            columns_needed_ = std::max(columns_needed_, used.data()[c] + 1);
        }
        view_.knots.curves = sides;
        view_.knots.column = column.data();
        view_.knots.start = start.data();
        view_.knots.knots = knots.data();
        view_.knots.is_levels = is_levels.data();
        view_.knots.has_missing = has_missing.data();
        view_.curves = curves;
        view_.surfaces = surfaces;
        view_.offsets = offsets.data();
    }

    int64_t sides() const { return view_.knots.curves; }
    int64_t used() const { return length(used_); }
    int64_t n_values() const { return view_.offsets[view_.curves + view_.surfaces]; }
    const Knots& knots() const { return view_.knots; }
    const TermValues& values() const { return view_; }

    template <typename Value>
    ArrayRows<Value> rows(const AnyOrder<Value>& X) const {
        require(columns_needed_ <= length(X, 1), "the terms read columns that X has not");
        return {X.data(), X.stride(0), X.stride(1), used(), used_.data()};
    }

    template <typename Value, typename Column, typename Offset>
    SparseRows<Value, Column, Offset> rows(const Vector<const Value>& values, const Vector<const Column>& ids,
                                           const Vector<const Offset>& start, const Int32s& place) const {
        require(length(start) > 0, "no row pointers");
        require_length(ids, length(values), "values and ids disagree");
        require(start.data()[length(start) - 1] <= length(values), "start ends after the values");
        for (int64_t c = 0; c < length(place); ++c) require(place.data()[c] < used(), "a place that is not in use");
        bool fits = true;
        for (int64_t e = 0; e < length(ids); ++e)
            fits &= static_cast<uint64_t>(ids.data()[e]) < static_cast<uint64_t>(length(place));
        require(fits, "a column that has no place");
        return {values.data(), ids.data(), start.data(), used(), place.data()};
    }

private:
    std::any kept_;
    Ids used_;
    TermValues view_;
    int64_t columns_needed_ = 0;
};

// The arrays of rankwise::Additive.
class AdditiveArrays {
public:
    AdditiveArrays(ConstCodes codes, int64_t first, int64_t rows, int64_t columns, int64_t decoded, Int32s shift, Int32s cells,
                   Ids curve_start, Int32s side_column, Ids side_start, Int32s side_cell, Reals side_origin,
                   Reals side_slope, Int32s side_cells, Int32s surface_sides, Ids surface_start, const char* instructions)
        : kept_(std::tuple(codes, shift, cells, curve_start, side_column, side_start, side_cell, side_origin, side_slope,
                           side_cells, surface_sides, surface_start)) {
        view_.rows = rows;
        view_.columns = columns;
        view_.codes = codes.data();
        view_.layout = {length(codes, 1), length(codes, 2)};
        view_.first = first;
        view_.shift = shift.data();
        view_.cells = cells.data();
        view_.curve_start = curve_start.data();
        view_.decoded = decoded;
        view_.side_column = side_column.data();
        view_.side_start = side_start.data();
        view_.side_cell = side_cell.data();
        view_.side_origin = side_origin.data();
        view_.side_slope = side_slope.data();
        view_.side_cells = side_cells.data();
        view_.surfaces = length(surface_start);
        view_.surface_sides = surface_sides.data();
        view_.surface_start = surface_start.data();
        view_.instructions = by_name(instruction_names, instructions);
        sides_ = length(side_column);
        require(length(codes, 2) > 0 && length(codes, 2) % run_unit == 0, "chunks that runs do not fill");
        require(0 <= first && 0 <= rows && first + rows <= length(codes) * length(codes, 2), "more rows than codes");
        require(view_.instructions <= widest_instructions(), "instructions that this processor has not");
        const int64_t coded = length(codes, 1), side_cells_total = length(side_cell);
        require_length(shift, coded, "shift and codes disagree");
        require_length(cells, coded, "cells and codes disagree");
        require_length(curve_start, coded, "curve_start and codes disagree");
        for (int64_t j = 0; j < coded; ++j) {
            require(0 <= shift.data()[j] && shift.data()[j] < 32, "shift is no number of bits");
            require(curve_start.data()[j] + 2 * cells.data()[j] <= columns, "a curve lies outside the table");
        }
        require(0 <= decoded && decoded <= sides_, "decoded and sides disagree");
        require_length(side_start, sides_, "side_start and side_column disagree");
        require_length(side_cells, sides_, "side_cells and side_column disagree");
        require_length(side_origin, side_cells_total, "side_origin and side_cell disagree");
        require_length(side_slope, side_cells_total, "side_slope and side_cell disagree");
        for (int64_t s = 0; s < sides_; ++s) {
            const int64_t column = side_column.data()[s], start = side_start.data()[s];
            require(0 <= column && column < coded, "a side of a column that has no codes");
            require(0 <= start && start + cells.data()[column] <= side_cells_total, "side_start and side_cell disagree");
            for (int64_t c = start; c < start + cells.data()[column]; ++c)
                require(0 <= side_cell.data()[c] && side_cell.data()[c] < side_cells.data()[s], "a cell its side has not");
        }
        require_length(surface_sides, 2 * view_.surfaces, "surface_sides and surface_start disagree");
        for (int64_t s = 0; s < view_.surfaces; ++s) {
            const int64_t one = surface_sides.data()[2 * s], other = surface_sides.data()[2 * s + 1];
            require(0 <= one && one < decoded && 0 <= other && other < decoded, "a side that is not decoded");
            const int64_t entries = 4 * static_cast<int64_t>(side_cells.data()[one]) * side_cells.data()[other];
            require(0 <= surface_start.data()[s] && surface_start.data()[s] + entries <= columns,
                    "a surface lies outside the table");
        }
    }

    int64_t sides() const { return sides_; }
    const Additive& view() const { return view_; }

private:
    std::any kept_;
    Additive view_;
    int64_t sides_;
};

template <typename Rows>
void run_predict(const Rows& X, int64_t rows, const TermArrays& terms, const Table<const double>& V, const Table<double>& out,
                 int n_threads) {
    require_length(V, terms.n_values(), "V and the terms disagree");
    require_shape(out, rows, length(V, 1), "out disagrees with V or with the rows");
    without_gil([&] { additive_predict(X, rows, terms.values(), V.data(), length(V, 1), out.data(), n_threads); });
}

template <typename Rows>
void run_encode(const Rows& X, int64_t rows, const TermArrays& terms, const Int32s& shift, const Codes& out, int64_t first_row,
                int n_threads) {
    require(terms.sides() == length(out, 1) && length(shift) == length(out, 1), "codes and columns disagree");
    require(0 <= first_row && first_row + rows <= length(out) * length(out, 2), "more rows than codes");
    const CodeLayout layout{length(out, 1), length(out, 2)};
    without_gil([&] { encode(X, rows, terms.knots(), shift.data(), layout, first_row, out.data(), n_threads); });
}

template <typename Value>
void bind_array(nb::module_& m) {
    m.def(
        "additive_predict",
        [](AnyOrder<Value> X, const TermArrays& terms, Table<const double> V, Table<double> out, int n_threads) {
            run_predict(terms.rows(X), length(X), terms, V, out, n_threads);
        },
        "X"_a.noconvert(), "terms"_a, "V"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
    m.def(
        "additive_encode",
        [](AnyOrder<Value> X, const TermArrays& terms, Int32s shift, Codes out, int64_t first_row, int n_threads) {
            run_encode(terms.rows(X), length(X), terms, shift, out, first_row, n_threads);
        },
        "X"_a.noconvert(), "terms"_a, "shift"_a.noconvert(), "out"_a.noconvert(), "first_row"_a, "n_threads"_a);
}

template <typename Value, typename Column, typename Offset>
void bind_sparse(nb::module_& m) {
    using Values = Vector<const Value>;
    using Columns = Vector<const Column>;
    using Starts = Vector<const Offset>;
    m.def(
        "additive_predict_csr",
        [](Values values, Columns ids, Starts start, Int32s place, const TermArrays& terms, Table<const double> V,
           Table<double> out, int n_threads) {
            run_predict(terms.rows(values, ids, start, place), length(start) - 1, terms, V, out, n_threads);
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "place"_a.noconvert(), "terms"_a,
        "V"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
    m.def(
        "additive_encode_csr",
        [](Values values, Columns ids, Starts start, Int32s place, const TermArrays& terms, Int32s shift, Codes out,
           int64_t first_row, int n_threads) {
            run_encode(terms.rows(values, ids, start, place), length(start) - 1, terms, shift, out, first_row, n_threads);
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "place"_a.noconvert(), "terms"_a,
        "shift"_a.noconvert(), "out"_a.noconvert(), "first_row"_a, "n_threads"_a);
}

void bind_arrays(nb::module_& m) {
    nb::class_<TermArrays>(m, "Terms")
        .def(nb::init<Ids, Ids, Ids, Reals, Flags, Flags, Ids, int64_t>(), nb::kw_only(), "used"_a.noconvert(),
             "column"_a.noconvert(), "start"_a.noconvert(), "knots"_a.noconvert(), "is_levels"_a.noconvert(),
             "has_missing"_a.noconvert(), "offsets"_a.noconvert(), "curves"_a);

    nb::class_<AdditiveArrays>(m, "Additive")
        .def(nb::init<ConstCodes, int64_t, int64_t, int64_t, int64_t, Int32s, Int32s, Ids, Int32s, Ids, Int32s, Reals, Reals,
                      Int32s, Int32s, Ids, const char*>(),
             nb::kw_only(), "codes"_a.noconvert(), "first"_a, "rows"_a, "columns"_a, "decoded"_a, "shift"_a.noconvert(),
             "cells"_a.noconvert(), "curve_start"_a.noconvert(), "side_column"_a.noconvert(), "side_start"_a.noconvert(),
             "side_cell"_a.noconvert(), "side_origin"_a.noconvert(), "side_slope"_a.noconvert(), "side_cells"_a.noconvert(),
             "surface_sides"_a.noconvert(), "surface_start"_a.noconvert(), "instructions"_a);

    m.def("widest_instructions", [] { return instruction_names[static_cast<int>(widest_instructions())].first; });
}

void bind_additive_products(nb::module_& m) {
    m.def(
        "additive_dot",
        [](const AdditiveArrays& arrays, Table<const double> V, Table<double> out, int n_parts, int n_threads) {
            const Additive& X = arrays.view();
            require_length(V, X.columns, "V and the table disagree");
            require_shape(out, X.rows, length(V, 1), "out disagrees with V or with the rows");
            require(n_parts > 0, "no parts");
            without_gil([&] { dot(X, V.data(), length(V, 1), out.data(), n_parts, n_threads); });
        },
        "X"_a, "V"_a.noconvert(), "out"_a.noconvert(), "n_parts"_a, "n_threads"_a);

    m.def(
        "additive_transposed_dot",
        [](const AdditiveArrays& arrays, Table<const double> U, Table<double> out, int n_parts, int n_threads) {
            const Additive& X = arrays.view();
            require_length(U, X.rows, "U and rows disagree");
            require_shape(out, X.columns, length(U, 1), "out disagrees with U or with the table");
            require(n_parts > 0, "no parts");
            without_gil([&] { transposed_dot(X, U.data(), length(U, 1), out.data(), n_parts, n_threads); });
        },
        "X"_a, "U"_a.noconvert(), "out"_a.noconvert(), "n_parts"_a, "n_threads"_a);

    m.def(
        "additive_fused",
        [](const AdditiveArrays& arrays, const BlockArrays& blocks, const FoldArrays* folds, const PlanArrays& plan,
           Table<const double> V, Table<double> out, int n_parts, int n_threads) {
            const Additive& X = arrays.view();
            const int64_t k = length(V, 1);
            require_length(V, X.columns, "V and the table disagree");
            require_shape(out, X.columns, k, "out and V disagree");
            require(n_parts > 0, "no parts");
            blocks.require_rows(X.rows);
            const Folds fold_view = folds ? folds->view(blocks, k) : Folds{};
            const Blocks block_view = blocks.view();
            const Plan plan_view = plan.view(blocks, X.columns, folds ? k : 1);
            // Eight at once take as long as six in panels of four and two.
            const auto multiply = k > 6 ? fused<8, Additive> : fused<4, Additive>;
            without_gil([&] {
                multiply(X, nullptr, block_view, folds ? &fold_view : nullptr, plan_view, V.data(), k, out.data(), n_parts,
                         n_threads);
            });
        },
        "X"_a, "blocks"_a, "folds"_a.none(), "plan"_a, "V"_a.noconvert(), "out"_a.noconvert(), "n_parts"_a, "n_threads"_a);

    m.def(
        "additive_weighted_sum",
        [](const AdditiveArrays& arrays, const BlockArrays& blocks, const FoldArrays* folds, int64_t first, int64_t last,
           Table<double> out, int n_parts, int n_threads) {
            const Additive& X = arrays.view();
            const int64_t k = length(out, 1);
            require_length(out, X.columns, "out and the table disagree");
            require(0 <= first && first <= last && last <= blocks.rows(), "rows outside the blocks");
            require(folds || k == 1, "one column without folds");
            require(n_parts > 0, "no parts");
            blocks.require_rows(X.rows);
            const Folds fold_view = folds ? folds->view(blocks, k) : Folds{};
            const Blocks view = blocks.view();
            without_gil(
                [&] { weighted_sum(X, view, folds ? &fold_view : nullptr, first, last, out.data(), n_parts, n_threads); });
        },
        "X"_a, "blocks"_a, "folds"_a.none(), "first"_a, "last"_a, "out"_a.noconvert(), "n_parts"_a, "n_threads"_a);

    m.def(
        "additive_expand",
        [](const AdditiveArrays& arrays, Int32s side, Ids side_values, Ids side_knots, Ids offsets, int64_t curves, Ids rows,
           Table<double> out, int n_threads) {
            const Additive& X = arrays.view();
            const int64_t terms = length(offsets) - 1;
            require(0 <= curves && curves <= terms, "offsets and curves disagree");
            require_length(side, curves + 2 * (terms - curves), "side and offsets disagree");
            require_length(side_values, arrays.sides(), "side_values and the sides disagree");
            require_length(side_knots, arrays.sides(), "side_knots and the sides disagree");
            require_shape(out, length(rows), offsets.data()[terms], "out disagrees with rows or with offsets");
            for (int64_t s = 0; s < length(side); ++s)
                require(0 <= side.data()[s] && side.data()[s] < arrays.sides(), "a side that is not there");
            for (int64_t i = 0; i < length(rows); ++i)
                require(0 <= rows.data()[i] && rows.data()[i] < X.rows, "a row that is not there");
            Expansion expansion;
            expansion.curves = curves;
            expansion.surfaces = terms - curves;
            expansion.side = side.data();
            expansion.side_values = side_values.data();
            expansion.side_knots = side_knots.data();
            expansion.offsets = offsets.data();
            without_gil([&] { expand(X, expansion, rows.data(), length(rows), out.data(), n_threads); });
        },
        "X"_a, "side"_a.noconvert(), "side_values"_a.noconvert(), "side_knots"_a.noconvert(), "offsets"_a.noconvert(),
        "curves"_a, "rows"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

void bind_additive_gram(nb::module_& m) {
    m.def(
        "additive_squares",
        [](const AdditiveArrays& arrays, Reals weight, Table<double> out, int n_threads) {
            const Additive& X = arrays.view();
            require(X.surfaces == 0, "squares are of curves alone");
            require_length(weight, X.rows, "weight and rows disagree");
            require_shape(out, X.columns, X.columns, "out and the table disagree");
            without_gil([&] { squares(X, weight.data(), out.data(), n_threads); });
        },
        "X"_a, "weight"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);

    m.def(
        "additive_sums_of_units",
        [](const AdditiveArrays& arrays, Ids rows, OptionalReals weight, Ids start, Table<double> out, int n_threads) {
            const Additive& X = arrays.view();
            const int64_t units = length(out);
            require_starts(start, units, length(rows), "start must end with the rows");
            require_shape(out, units, X.columns, "out and the table disagree");
            require(!weight.has_value() || length(*weight) == length(rows), "weight and rows disagree");
            for (int64_t i = 0; i < length(rows); ++i)
                require(0 <= rows.data()[i] && rows.data()[i] < X.rows, "a row that is not there");
            without_gil([&] {
                sums_of_units(X, rows.data(), pointer(weight), start.data(), units, out.data(), n_threads);
            });
        },
        "X"_a, "rows"_a.noconvert(), "weight"_a.noconvert().none(), "start"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

BinnedRows binned_rows(const Table<const uint8_t>& bins, const Reals& g, const Reals& h) {
    const BinnedRows X{length(bins, 1), bins.data(), g.data(), h.data()};
    require_length(g, X.rows, "g and bins disagree");
    require_length(h, X.rows, "h and bins disagree");
    bool fits = true;
    for (int64_t i = 0; i < length(bins) * X.rows; ++i) fits &= X.bins[i] < most_bins;
    require(fits, "more than sixteen bins");
    return X;
}

void bind_histograms(nb::module_& m) {
    m.def(
        "pair_histograms",
        [](Table<const uint8_t> bins, Reals g, Reals h, Ids first, Ids second, Table<double> out, int n_threads) {
            const BinnedRows X = binned_rows(bins, g, h);
            const int64_t pairs = length(first);
            require_length(second, pairs, "first and second disagree");
            require_shape(out, pairs, 2 * most_bins * most_bins, "out and the pairs disagree");
            for (const auto* columns : {first.data(), second.data()})
                for (int64_t p = 0; p < pairs; ++p)
                    require(0 <= columns[p] && columns[p] < length(bins), "a column that is not there");
            without_gil([&] { pair_histograms(X, first.data(), second.data(), pairs, out.data(), n_threads); });
        },
        "bins"_a.noconvert(), "g"_a.noconvert(), "h"_a.noconvert(), "first"_a.noconvert(), "second"_a.noconvert(),
        "out"_a.noconvert(), "n_threads"_a);
}

}  // namespace

void bind_additive(nb::module_& m) {
    bind_arrays(m);
    bind_array<float>(m);
    bind_array<double>(m);
    bind_sparse<float, int32_t, int32_t>(m);
    bind_sparse<float, int32_t, int64_t>(m);
    bind_sparse<float, int64_t, int64_t>(m);
    bind_sparse<double, int32_t, int32_t>(m);
    bind_sparse<double, int32_t, int64_t>(m);
    bind_sparse<double, int64_t, int64_t>(m);
    bind_additive_products(m);
    bind_additive_gram(m);
    bind_histograms(m);
}
