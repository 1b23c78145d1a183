// The bindings of additive models; see bindings.cpp for the rule.
//
// Part of bindings_products.cpp, whose arrays of blocks, folds and plans they take.

namespace {

using Codes = nb::ndarray<std::uint32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using ConstCodes = nb::ndarray<const std::uint32_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
template <typename Value>
using AnyOrder = nb::ndarray<const Value, nb::ndim<2>, nb::device::cpu>;
using Int32s = Vector<const std::int32_t>;
using Flags = Vector<const bool>;

// Curves, then two sides for each surface.
struct TermArrays {
    Ids used, column, start;
    Reals knots;
    Flags is_levels, has_missing;
    Ids offsets;
    int64_t curves;

    void check() const {
        const auto sides = static_cast<int64_t>(column.size());
        const int64_t surfaces = (sides - curves) / 2;
        require(0 <= curves && curves + 2 * surfaces == sides, "column and curves disagree");
        require_size(start.size(), sides + 1, "start and column disagree");
        require_size(knots.size(), start(sides), "start must end with the knots");
        require_size(is_levels.size(), sides, "is_levels and column disagree");
        require_size(has_missing.size(), sides, "has_missing and column disagree");
        require_size(offsets.size(), curves + surfaces + 1, "offsets and column disagree");
        for (int64_t s = 0; s < sides; ++s)
            require(0 <= column(s) && column(s) < static_cast<int64_t>(used.size()), "a column that is not in use");
    }

    Knots view() const {
        return {static_cast<int64_t>(column.size()), column.data(), start.data(), knots.data(),
                reinterpret_cast<const unsigned char*>(is_levels.data()),
                reinterpret_cast<const unsigned char*>(has_missing.data())};
    }

    int64_t surfaces() const { return (static_cast<int64_t>(column.size()) - curves) / 2; }
    int64_t n_values() const { return offsets(offsets.size() - 1); }
};

struct AdditiveArrays {
    ConstCodes codes;
    int64_t first, rows, columns, decoded;
    Int32s shift, cells;
    Ids curve_start;
    Int32s side_column;
    Ids side_start;
    Int32s side_cell;
    Reals side_origin, side_slope;
    Int32s side_cells, surface_sides;
    Ids surface_start;

    void check() const {
        const auto coded = static_cast<int64_t>(codes.shape(1)), sides = static_cast<int64_t>(side_column.size());
        require(codes.shape(2) > 0, "chunks without rows");
        require(0 <= first && 0 <= rows && first + rows <= static_cast<int64_t>(codes.shape(0) * codes.shape(2)),
                "more rows than codes");
        require_size(shift.size(), coded, "shift and codes disagree");
        require_size(cells.size(), coded, "cells and codes disagree");
        require_size(curve_start.size(), coded, "curve_start and codes disagree");
        for (int64_t j = 0; j < coded; ++j) {
            require(0 <= shift(j) && shift(j) < 32, "shift");
            require(curve_start(j) < 0 || curve_start(j) + 2 * cells(j) <= columns, "curve_start");
        }
        require(0 <= decoded && decoded <= sides, "decoded");
        require_size(side_start.size(), sides, "side_start and side_column disagree");
        require_size(side_cells.size(), sides, "side_cells and side_column disagree");
        require(side_origin.size() == side_cell.size() && side_slope.size() == side_cell.size(), "the sides' cells disagree");
        for (int64_t s = 0; s < sides; ++s) {
            require(0 <= side_column(s) && side_column(s) < coded, "side_column");
            require(0 <= side_start(s) && side_start(s) + cells(side_column(s)) <= static_cast<int64_t>(side_cell.size()),
                    "side_start");
        }
        require(surface_sides.size() == 2 * surface_start.size(), "surface_sides and surface_start disagree");
        for (std::size_t s = 0; s < surface_start.size(); ++s) {
            const int64_t one = surface_sides(2 * s), other = surface_sides(2 * s + 1);
            require(0 <= one && one < decoded && 0 <= other && other < decoded, "surface_sides");
            require(0 <= surface_start(s) && surface_start(s) + 4 * side_cells(one) * side_cells(other) <= columns,
                    "surface_start");
        }
    }

    Additive view() const {
        return {rows, columns, codes.data(),
                {static_cast<int64_t>(codes.shape(1)), static_cast<int64_t>(codes.shape(2))}, first, shift.data(), cells.data(),
                curve_start.data(), decoded, side_column.data(), side_start.data(), side_cell.data(), side_origin.data(),
                side_slope.data(), side_cells.data(), static_cast<int64_t>(surface_start.size()), surface_sides.data(),
                surface_start.data()};
    }
};

template <typename Value>
ArrayRows<Value> array_rows(const AnyOrder<Value>& X, const TermArrays& terms) {
    for (std::size_t c = 0; c < terms.used.size(); ++c)
        require(0 <= terms.used(c) && terms.used(c) < static_cast<int64_t>(X.shape(1)), "a column that X has not");
    return {X.data(), X.stride(0), X.stride(1), static_cast<int64_t>(terms.used.size()), terms.used.data()};
}

template <typename Value, typename Column, typename Offset>
SparseRows<Value, Column, Offset> sparse_rows(const Vector<const Value>& values, const Vector<const Column>& ids,
                                              const Vector<const Offset>& start, const Int32s& place, const TermArrays& terms) {
    matrix(values, ids, start, static_cast<int64_t>(place.size()), nullptr);
    for (std::size_t c = 0; c < place.size(); ++c)
        require(place(c) < static_cast<std::int32_t>(terms.used.size()), "a place that is not in use");
    return {values.data(), ids.data(), start.data(), static_cast<int64_t>(terms.used.size()), place.data()};
}

template <typename Rows>
void run_predict(const Rows& X, int64_t rows, const TermArrays& terms, const Table<const double>& V, const Table<double>& out,
                 int n_threads) {
    require_size(V.shape(0), terms.n_values(), "V and the terms disagree");
    require_size(out.shape(0), rows, "out and rows disagree");
    require(out.shape(1) == V.shape(1), "out and V disagree");
    const Knots knots = terms.view();
    const TermValues values{knots, terms.curves, terms.surfaces(), terms.offsets.data()};
    nb::gil_scoped_release release;
    additive_predict(X, rows, values, V.data(), static_cast<int64_t>(V.shape(1)), out.data(), n_threads);
}

template <typename Rows>
void run_encode(const Rows& X, int64_t rows, const TermArrays& terms, const Int32s& shift, const Codes& out, int64_t first_row,
                int n_threads) {
    const CodeLayout layout{static_cast<int64_t>(out.shape(1)), static_cast<int64_t>(out.shape(2))};
    require(terms.column.size() == out.shape(1) && shift.size() == out.shape(1), "codes and columns disagree");
    require(0 <= first_row && first_row + rows <= static_cast<int64_t>(out.shape(0) * out.shape(2)), "more rows than codes");
    const Knots knots = terms.view();
    nb::gil_scoped_release release;
    encode(X, rows, knots, shift.data(), layout, first_row, out.data(), n_threads);
}

template <typename Value>
void bind_additive_array(nb::module_& m) {
    m.def(
        "additive_predict",
        [](AnyOrder<Value> X, const TermArrays& terms, Table<const double> V, Table<double> out, int n_threads) {
            run_predict(array_rows(X, terms), static_cast<int64_t>(X.shape(0)), terms, V, out, n_threads);
        },
        "X"_a.noconvert(), "terms"_a, "V"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
    m.def(
        "additive_encode",
        [](AnyOrder<Value> X, const TermArrays& terms, Int32s shift, Codes out, int64_t first_row, int n_threads) {
            run_encode(array_rows(X, terms), static_cast<int64_t>(X.shape(0)), terms, shift, out, first_row, n_threads);
        },
        "X"_a.noconvert(), "terms"_a, "shift"_a.noconvert(), "out"_a.noconvert(), "first_row"_a, "n_threads"_a);
}

template <typename Value, typename Column, typename Offset>
void bind_additive_csr(nb::module_& m) {
    using Values = Vector<const Value>;
    using Columns = Vector<const Column>;
    using Starts = Vector<const Offset>;
    m.def(
        "additive_predict_csr",
        [](Values values, Columns ids, Starts start, Int32s place, const TermArrays& terms, Table<const double> V,
           Table<double> out, int n_threads) {
            const auto X = sparse_rows(values, ids, start, place, terms);
            run_predict(X, static_cast<int64_t>(start.size()) - 1, terms, V, out, n_threads);
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "place"_a.noconvert(), "terms"_a,
        "V"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
    m.def(
        "additive_encode_csr",
        [](Values values, Columns ids, Starts start, Int32s place, const TermArrays& terms, Int32s shift, Codes out,
           int64_t first_row, int n_threads) {
            const auto X = sparse_rows(values, ids, start, place, terms);
            run_encode(X, static_cast<int64_t>(start.size()) - 1, terms, shift, out, first_row, n_threads);
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "place"_a.noconvert(), "terms"_a,
        "shift"_a.noconvert(), "out"_a.noconvert(), "first_row"_a, "n_threads"_a);
}

void bind_additive_products(nb::module_& m) {
    m.def(
        "additive_dot",
        [](const AdditiveArrays& arrays, Table<const double> V, Table<double> out, int n_parts, int n_threads) {
            const Additive X = arrays.view();
            require_size(V.shape(0), X.columns, "V and the table disagree");
            require_size(out.shape(0), X.rows, "out and rows disagree");
            require(out.shape(1) == V.shape(1) && n_parts > 0, "out and V disagree");
            nb::gil_scoped_release release;
            dot(X, V.data(), static_cast<int64_t>(V.shape(1)), out.data(), n_parts, n_threads);
        },
        "X"_a, "V"_a.noconvert(), "out"_a.noconvert(), "n_parts"_a, "n_threads"_a);

    m.def(
        "additive_transposed_dot",
        [](const AdditiveArrays& arrays, Table<const double> U, Table<double> out, int n_parts, int n_threads) {
            const Additive X = arrays.view();
            require_size(out.shape(0), X.columns, "out and the table disagree");
            require_size(U.shape(0), X.rows, "U and rows disagree");
            require(out.shape(1) == U.shape(1) && n_parts > 0, "out and U disagree");
            nb::gil_scoped_release release;
            transposed_dot(X, U.data(), static_cast<int64_t>(U.shape(1)), out.data(), n_parts, n_threads);
        },
        "X"_a, "U"_a.noconvert(), "out"_a.noconvert(), "n_parts"_a, "n_threads"_a);

    m.def(
        "additive_fused",
        [](const AdditiveArrays& arrays, const BlockArrays& blocks, const FoldArrays* folds, const PlanArrays& plan,
           Table<const double> V, Table<double> out, int n_parts, int n_threads) {
            const Additive X = arrays.view();
            const auto k = static_cast<int64_t>(V.shape(1));
            require_size(V.shape(0), X.columns, "V and the table disagree");
            require(out.shape(0) == V.shape(0) && out.shape(1) == V.shape(1) && n_parts > 0, "out and V disagree");
            plan.check(X.columns, folds ? k : 1);
            const Folds fold_view = folds ? folds->view(blocks, k) : Folds{};
            const Blocks block_view = blocks.view();
            const Plan plan_view = plan.view();
            nb::gil_scoped_release release;
            fused<widest_panel>(X, nullptr, block_view, folds ? &fold_view : nullptr, plan_view, V.data(), k, out.data(),
                                n_parts, n_threads);
        },
        "X"_a, "blocks"_a, "folds"_a.none(), "plan"_a, "V"_a.noconvert(), "out"_a.noconvert(), "n_parts"_a, "n_threads"_a);

    m.def(
        "additive_weighted_sum",
        [](const AdditiveArrays& arrays, const BlockArrays& blocks, const FoldArrays* folds, int64_t first, int64_t last,
           Table<double> out, int n_parts, int n_threads) {
            const Additive X = arrays.view();
            const auto k = static_cast<int64_t>(out.shape(1));
            const Folds fold_view = folds ? folds->view(blocks, k) : Folds{};
            const Blocks view = blocks.view();
            require_size(out.shape(0), X.columns, "out and the table disagree");
            require(0 <= first && first <= last && last <= view.rows, "rows outside the blocks");
            require((folds || k == 1) && n_parts > 0, "one column without folds");
            nb::gil_scoped_release release;
            weighted_sum(X, view, folds ? &fold_view : nullptr, first, last, out.data(), n_parts, n_threads);
        },
        "X"_a, "blocks"_a, "folds"_a.none(), "first"_a, "last"_a, "out"_a.noconvert(), "n_parts"_a, "n_threads"_a);

    m.def(
        "additive_expand",
        [](const AdditiveArrays& arrays, Int32s side, Ids side_values, Ids side_knots, Ids offsets, int64_t curves, Ids rows,
           Table<double> out, int n_threads) {
            const Additive X = arrays.view();
            const auto terms = static_cast<int64_t>(offsets.size()) - 1;
            require(0 <= curves && curves <= terms, "offsets and curves disagree");
            require_size(side.size(), curves + 2 * (terms - curves), "side and offsets disagree");
            require(side_values.size() == arrays.side_column.size() && side_knots.size() == side_values.size(), "sides disagree");
            require_size(out.shape(1), offsets(static_cast<std::size_t>(terms)), "out and offsets disagree");
            require(out.shape(0) == rows.size(), "out and rows disagree");
            const Expansion expansion{curves, terms - curves, side.data(), side_values.data(), side_knots.data(), offsets.data()};
            nb::gil_scoped_release release;
            expand(X, expansion, rows.data(), static_cast<int64_t>(rows.size()), out.data(), n_threads);
        },
        "X"_a, "side"_a.noconvert(), "side_values"_a.noconvert(), "side_knots"_a.noconvert(), "offsets"_a.noconvert(),
        "curves"_a, "rows"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

void bind_additive(nb::module_& m) {
    nb::class_<TermArrays>(m, "Terms")
        .def(
            "__init__",
            [](TermArrays* self, Ids used, Ids column, Ids start, Reals knots, Flags is_levels, Flags has_missing, Ids offsets,
               int64_t curves) {
                new (self) TermArrays{used, column, start, knots, is_levels, has_missing, offsets, curves};
                self->check();
            },
            "used"_a.noconvert(), "column"_a.noconvert(), "start"_a.noconvert(), "knots"_a.noconvert(),
            "is_levels"_a.noconvert(), "has_missing"_a.noconvert(), "offsets"_a.noconvert(), "curves"_a);

    nb::class_<AdditiveArrays>(m, "Additive")
        .def(
            "__init__",
            [](AdditiveArrays* self, ConstCodes codes, int64_t first, int64_t rows, int64_t columns, int64_t decoded,
               Int32s shift, Int32s cells, Ids curve_start, Int32s side_column, Ids side_start, Int32s side_cell,
               Reals side_origin, Reals side_slope, Int32s side_cells, Int32s surface_sides, Ids surface_start) {
                new (self) AdditiveArrays{codes, first, rows, columns, decoded, shift, cells, curve_start, side_column,
                                          side_start, side_cell, side_origin, side_slope, side_cells, surface_sides,
                                          surface_start};
                self->check();
            },
            "codes"_a.noconvert(), "first"_a, "rows"_a, "columns"_a, "decoded"_a, "shift"_a.noconvert(), "cells"_a.noconvert(),
            "curve_start"_a.noconvert(), "side_column"_a.noconvert(), "side_start"_a.noconvert(), "side_cell"_a.noconvert(),
            "side_origin"_a.noconvert(), "side_slope"_a.noconvert(), "side_cells"_a.noconvert(),
            "surface_sides"_a.noconvert(), "surface_start"_a.noconvert());

    bind_additive_array<float>(m);
    bind_additive_array<double>(m);
    bind_additive_csr<float, std::int32_t, std::int32_t>(m);
    bind_additive_csr<float, std::int32_t, int64_t>(m);
    bind_additive_csr<float, int64_t, int64_t>(m);
    bind_additive_csr<double, std::int32_t, std::int32_t>(m);
    bind_additive_csr<double, std::int32_t, int64_t>(m);
    bind_additive_csr<double, int64_t, int64_t>(m);
    bind_additive_products(m);
}

}  // namespace
