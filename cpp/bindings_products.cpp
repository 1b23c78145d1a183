// Products with X and with the Laplacian.
#include <nanobind/stl/optional.h>

#include <algorithm>

#include "bindings.hpp"
#include "bindings_blocks.hpp"
#include "csr.hpp"
#include "dense.hpp"
#include "dense_gram.hpp"
#include "fused.hpp"
#include "gram_diagonal.hpp"
#include "laplacian.hpp"

using namespace bindings;
using namespace rankwise;

namespace {

using Ranks = std::optional<Vector<const int32_t>>;
using OptionalTable = std::optional<Table<double>>;

template <typename Value, typename Column, typename Offset>
Csr<Value, Column, Offset> matrix(const Vector<const Value>& values, const Vector<const Column>& ids,
                                  const Vector<const Offset>& start, int64_t columns, const Disk* disk) {
    require(length(start) > 0, "no row pointers");
    require_length(ids, length(values), "values and ids disagree");
    const int64_t rows = length(start) - 1;
    require(start.data()[rows] <= length(values), "start ends after the values");
    return {rows, columns, values.data(), ids.data(), start.data(), disk};
}

template <typename Value, typename Column, typename Offset>
void bind_csr(nb::module_& m) {
    using Values = Vector<const Value>;
    using Columns = Vector<const Column>;
    using Starts = Vector<const Offset>;

    m.def(
        "csr_dot",
        [](Values values, Columns ids, Starts start, Ranks rank, Table<const double> V, Table<double> out, int n_threads,
           const Disk* disk) {
            const auto X = matrix(values, ids, start, length(V), disk);
            require_length(rank, X.columns, "rank and columns disagree");
            require_shape(out, X.rows, length(V, 1), "out disagrees with V or with the rows");
            without_gil([&] { dot(X, pointer(rank), V.data(), length(V, 1), out.data(), n_threads); });
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "rank"_a.noconvert().none(),
        "V"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a, "disk"_a.none() = nb::none());

    m.def(
        "csr_transposed_dot",
        [](Values values, Columns ids, Starts start, Ranks rank, Table<const double> U, Table<double> out, int n_threads,
           const Disk* disk) {
            const auto X = matrix(values, ids, start, length(out), disk);
            require_length(rank, X.columns, "rank and columns disagree");
            require_length(U, X.rows, "U and rows disagree");
            require_shape(out, X.columns, length(U, 1), "out and U disagree");
            without_gil([&] { transposed_dot(X, pointer(rank), U.data(), length(U, 1), out.data(), n_threads); });
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "rank"_a.noconvert().none(),
        "U"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a, "disk"_a.none() = nb::none());

    m.def(
        "csr_fused",
        [](Values values, Columns ids, Starts start, Ranks rank, const BlockArrays& blocks, const FoldArrays* folds,
           const PlanArrays& plan, Table<const double> V, Table<double> out, int n_threads,
           const Disk* disk) {
            const auto X = matrix(values, ids, start, length(V), disk);
            const int64_t k = length(V, 1);
            require_length(rank, X.columns, "rank and columns disagree");
            require_shape(out, length(V), k, "out and V disagree");
            blocks.require_rows(X.rows);
            const Folds fold_view = folds ? folds->view(blocks, k) : Folds{};
            const Blocks block_view = blocks.view();
            const Plan plan_view = plan.view(blocks, X.columns, folds ? k : 1);
            without_gil([&] {
                fused(X, pointer(rank), block_view, folds ? &fold_view : nullptr, plan_view, V.data(), k, out.data(), n_threads,
                      n_threads);
            });
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "rank"_a.noconvert().none(), "blocks"_a,
        "folds"_a.none(), "plan"_a, "V"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a, "disk"_a.none() = nb::none());
}

// What is done once per fit: with the caller's own ids only.
template <typename Value, typename Column, typename Offset>
void bind_csr_once(nb::module_& m) {
    using Values = Vector<const Value>;
    using Columns = Vector<const Column>;
    using Starts = Vector<const Offset>;

    m.def(
        "csr_gram_diagonal",
        [](Values values, Columns ids, Starts start, const BlockArrays& blocks, Vector<double> out, int n_threads,
           const Disk* disk) {
            const auto X = matrix(values, ids, start, length(out), disk);
            blocks.require_rows(X.rows);
            const Blocks view = blocks.view();
            without_gil([&] { gram_diagonal(X, view, out.data(), n_threads); });
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "blocks"_a, "out"_a.noconvert(), "n_threads"_a,
        "disk"_a.none() = nb::none());

    m.def(
        "csr_weighted_sum",
        [](Values values, Columns ids, Starts start, const BlockArrays& blocks, const FoldArrays* folds, int64_t first,
           int64_t last, Table<double> out, int n_threads, const Disk* disk) {
            const auto X = matrix(values, ids, start, length(out), disk);
            const int64_t k = length(out, 1);
            require(0 <= first && first <= last && last <= blocks.rows(), "rows outside the blocks");
            require(folds || k == 1, "one column without folds");
            blocks.require_rows(X.rows);
            const Folds fold_view = folds ? folds->view(blocks, k) : Folds{};
            const Blocks view = blocks.view();
            without_gil([&] { weighted_sum(X, view, folds ? &fold_view : nullptr, first, last, out.data(), n_threads); });
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "blocks"_a, "folds"_a.none(), "first"_a,
        "last"_a, "out"_a.noconvert(), "n_threads"_a, "disk"_a.none() = nb::none());
}

template <typename Column, typename Narrow>
void bind_rename(nb::module_& m) {
    m.def(
        "rename_columns",
        [](Vector<const Column> ids, Vector<const int32_t> rank, Vector<Narrow> out, int n_threads) {
            require_length(out, length(ids), "ids and out disagree");
            without_gil([&] { rename_columns(ids.data(), length(ids), rank.data(), out.data(), n_threads); });
        },
        "ids"_a.noconvert(), "rank"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

template <typename Column>
void bind_count(nb::module_& m) {
    m.def(
        "count_columns",
        [](Vector<const Column> ids, Vector<int64_t> out, int n_threads) {
            without_gil([&] { count_columns(ids.data(), length(ids), length(out), out.data(), n_threads); });
        },
        "ids"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

template <typename Value>
void bind_value(nb::module_& m) {
    bind_csr<Value, uint16_t, int32_t>(m);
    bind_csr<Value, uint16_t, int64_t>(m);
    bind_csr<Value, int32_t, int32_t>(m);
    bind_csr<Value, int32_t, int64_t>(m);
    bind_csr<Value, int64_t, int64_t>(m);
    bind_csr_once<Value, int32_t, int32_t>(m);
    bind_csr_once<Value, int32_t, int64_t>(m);
    bind_csr_once<Value, int64_t, int64_t>(m);
}

void bind_blocks(nb::module_& m) {
    nb::class_<BlockArrays>(m, "Blocks")
        .def(nb::init<Ids, Ids, Ids, Ids, Reals, Reals, const char*, OptionalReals, OptionalReals>(), nb::kw_only(),
             "order"_a.noconvert(), "query_start"_a.noconvert(), "segment_start"_a.noconvert(),
             "query_segment"_a.noconvert(), "degree"_a.noconvert(), "scale"_a.noconvert(), "coupling"_a,
             "row_weight"_a.noconvert().none(), "level_value"_a.noconvert().none());

    nb::class_<FoldArrays>(m, "Folds")
        .def(nb::init<Vector<const int32_t>, Table<const double>, Table<const double>, Vector<double>>(), nb::kw_only(),
             "fold"_a.noconvert(), "degree"_a.noconvert(), "scale"_a.noconvert(), "held_out"_a.noconvert());

    nb::class_<PlanArrays>(m, "Plan")
        .def(nb::init<Ids, Ids, Ids, Ids, Ids, Ids, Reals>(), nb::kw_only(), "chunk_start"_a.noconvert(),
             "chunk_query"_a.noconvert(), "chunk_large"_a.noconvert(), "chunk_work"_a.noconvert(),
             "large_query"_a.noconvert(), "large_start"_a.noconvert(), "colsum"_a.noconvert());

    m.def(
        "laplacian",
        [](const BlockArrays& blocks, const FoldArrays* folds, Table<const double> F, Table<double> out, int n_threads) {
            const int64_t k = length(F, 1);
            blocks.require_rows(length(F));
            require_shape(out, length(F), k, "out and F disagree");
            const Folds fold_view = folds ? folds->view(blocks, k) : Folds{};
            const Blocks view = blocks.view();
            without_gil([&] { laplacian(view, folds ? &fold_view : nullptr, F.data(), k, out.data(), n_threads); });
        },
        "blocks"_a, "folds"_a.none(), "F"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

template <typename Value>
void bind_dense_gram(nb::module_& m) {
    m.def(
        "dense_gram",
        [](nb::ndarray<const Value, nb::ndim<2>, nb::device::cpu> X, const BlockArrays& blocks, Table<const double> pull,
           Table<double> out, Table<double> rhs, int64_t buffer_rows, int n_stripes, nb::capsule dsyrk, int n_threads) {
            const Blocks view = blocks.view();
            const int64_t n = length(X, 1), outputs = length(pull, 1);
            blocks.require_rows(length(X));
            require_length(pull, length(X), "pull and X disagree");
            require_shape(out, n, n, "out and X disagree");
            require_shape(rhs, n, outputs, "rhs disagrees with X or pull");
            require(buffer_rows > 0 && n_stripes > 0, "no room");
            require(view.coupling != Coupling::relative, "the relative coupling has no such form");
            const DenseMatrix<Value> matrix{X.data(), n, X.stride(0), X.stride(1)};
            const Pull linear{pull.data(), outputs};
            const auto multiply = reinterpret_cast<Dsyrk>(dsyrk.data());
            without_gil([&] {
                dense_gram(matrix, view, linear, buffer_rows, n_stripes, multiply, out.data(), rhs.data(), n_threads);
            });
        },
        "X"_a.noconvert(), "blocks"_a, "pull"_a.noconvert(), "out"_a.noconvert(), "rhs"_a.noconvert(), "buffer_rows"_a,
        "n_stripes"_a, "dsyrk"_a, "n_threads"_a);
}

void centre(const BlockArrays& blocks, int64_t first, int64_t last, Table<double> Z, OptionalTable sums, int n_threads) {
    blocks.require_queries(first, last);
    const Blocks view = blocks.view();
    require_length(Z, view.query_start[last] - view.query_start[first], "Z and rows disagree");
    if (sums)
        require_shape(*sums, view.query_segment[last] - view.query_segment[first], length(Z, 1),
                      "sums disagrees with the segments, or with Z");
    without_gil([&] { centre_queries(view, first, last, Z.data(), length(Z, 1), pointer(sums), n_threads); });
}

void shift(const BlockArrays& blocks, int64_t first, int64_t last, Reals by, Table<double> Z, OptionalTable sums,
           int64_t origin) {
    const Blocks view = blocks.view();
    require(0 <= first && first <= last && last <= view.rows, "rows outside the blocks");
    require_length(Z, last - first, "Z and rows disagree");
    require_length(by, length(Z, 1), "shift and Z disagree");
    if (sums && first < last) {
        const int64_t* const start = view.segment_start;
        const auto segment_of = [&](int64_t p) { return std::upper_bound(start, start + view.segments + 1, p) - start - 1; };
        require(length(*sums, 1) == length(Z, 1), "sums and Z disagree");
        require(0 <= origin && origin <= segment_of(first) && segment_of(last - 1) - origin < length(*sums),
                "sums lacks segments of the rows");
    }
    without_gil([&] { shift_rows(view, first, last, by.data(), Z.data(), length(Z, 1), pointer(sums), origin); });
}

void couple(const BlockArrays& blocks, int64_t first, int64_t last, Table<const double> sums, Table<double> out,
            int n_threads) {
    blocks.require_queries(first, last);
    const Blocks view = blocks.view();
    require(view.coupling == Coupling::relative, "only the relative coupling needs this");
    require_length(sums, view.query_segment[last] - view.query_segment[first], "sums and segments disagree");
    require_shape(out, length(sums), length(sums, 1), "out and sums disagree");
    without_gil([&] { couple_relative(view, first, last, sums.data(), out.data(), length(sums, 1), n_threads); });
}

void bind_dense(nb::module_& m) {
    bind_dense_gram<float>(m);
    bind_dense_gram<double>(m);
    m.def("centre_queries", &centre, "blocks"_a, "first"_a, "last"_a, "Z"_a.noconvert(), "sums"_a.noconvert().none(),
          "n_threads"_a);
    m.def("shift_rows", &shift, "blocks"_a, "first"_a, "last"_a, "shift"_a.noconvert(), "Z"_a.noconvert(),
          "sums"_a.noconvert().none(), "origin"_a);
    m.def("couple_relative", &couple, "blocks"_a, "first"_a, "last"_a, "sums"_a.noconvert(), "out"_a.noconvert(),
          "n_threads"_a);
}

}  // namespace

void bind_products(nb::module_& m) {
    bind_blocks(m);
    bind_dense(m);
    bind_value<float>(m);
    bind_value<double>(m);
    bind_count<int32_t>(m);
    bind_count<int64_t>(m);
    bind_rename<int32_t, uint16_t>(m);
    bind_rename<int32_t, int32_t>(m);
    bind_rename<int64_t, uint16_t>(m);
    bind_rename<int64_t, int32_t>(m);
}
