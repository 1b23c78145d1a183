// Products with X and with the Laplacian.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>
#include <thread>

#include "additive.hpp"
#include "bindings.hpp"
#include "csr.hpp"
#include "dense.hpp"
#include "dense_gram.hpp"
#include "fused.hpp"
#include "gram_diagonal.hpp"
#include "laplacian.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace rankwise;

namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ids = Vector<const int64_t>;
using Reals = Vector<const double>;
using Ranks = std::optional<Vector<const std::int32_t>>;

// Wrong shapes would read or write outside the arrays; everything else about the arguments is trusted.
void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

void require_size(std::size_t size, int64_t wanted, const char* what) {
    require(static_cast<int64_t>(size) == wanted, what);
}

template <typename Array>
auto pointer(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

// The arrays of a QueryBlocks; holding them keeps the memory alive.
struct BlockArrays {
    Ids order, query_start, segment_start, query_segment;
    Reals degree, scale;
    std::optional<Reals> row_weight, level_value;
    Coupling coupling;

    Blocks view() const {
        return {static_cast<int64_t>(order.size()), static_cast<int64_t>(scale.size()), static_cast<int64_t>(degree.size()),
                order.data(), query_start.data(), segment_start.data(), query_segment.data(), degree.data(), scale.data(),
                pointer(row_weight), pointer(level_value), coupling};
    }

    void check() const {
        const auto rows = static_cast<int64_t>(order.size());
        require_size(query_start.size(), static_cast<int64_t>(scale.size()) + 1, "query_start and scale disagree");
        require_size(query_segment.size(), static_cast<int64_t>(scale.size()) + 1, "query_segment and scale disagree");
        require_size(segment_start.size(), static_cast<int64_t>(degree.size()) + 1, "segment_start and degree disagree");
        require(query_start(scale.size()) == rows && segment_start(degree.size()) == rows, "starts must end with the rows");
        require_size(degree.size(), query_segment(scale.size()), "query_segment must end with the segments");
        if (row_weight) require_size(row_weight->size(), rows, "row_weight and order disagree");
        require(coupling != Coupling::relative || (level_value && level_value->size() == degree.size()),
                "the relative coupling needs a level_value for each segment");
    }
};

struct FoldArrays {
    Vector<const std::int32_t> fold;
    Table<const double> degree, scale;
    Vector<double> held_out;

    Folds view(const BlockArrays& blocks, int64_t k) const {
        require_size(degree.shape(1), k, "one column per fold");
        require_size(scale.shape(1), k, "one column per fold");
        require(degree.shape(0) == blocks.degree.size() && scale.shape(0) == blocks.scale.size(), "folds and blocks disagree");
        require(held_out.size() == fold.size(), "held_out and fold disagree");
        return {fold.data(), degree.data(), scale.data(), k, held_out.data()};
    }
};

struct PlanArrays {
    Ids chunk_start, chunk_query, chunk_large, chunk_work, large_query, large_start;
    Reals colsum;

    Plan view() const {
        return {static_cast<int64_t>(chunk_query.size()), chunk_start.data(), chunk_query.data(), chunk_large.data(),
                chunk_work.data(), static_cast<int64_t>(large_query.size()), large_query.data(), large_start.data(),
                colsum.data()};
    }

    void check(int64_t columns, int64_t k) const {
        const auto chunks = static_cast<int64_t>(chunk_query.size());
        require_size(chunk_start.size(), chunks + 1, "chunk_start");
        require_size(chunk_large.size(), chunks, "chunk_large");
        require_size(chunk_work.size(), chunks + 1, "chunk_work");
        require_size(large_start.size(), static_cast<int64_t>(large_query.size()) + 1, "large_start");
        require_size(colsum.size(), large_start(large_query.size()) * columns * k, "colsum");
    }
};

template <typename Value, typename Column, typename Offset>
Csr<Value, Column, Offset> matrix(const Vector<const Value>& values, const Vector<const Column>& ids,
                                  const Vector<const Offset>& start, int64_t columns, const Disk* disk) {
    require(start.size() > 0 && values.size() == ids.size(), "values, ids and start disagree");
    const auto rows = static_cast<int64_t>(start.size()) - 1;
    require(static_cast<std::size_t>(start(start.size() - 1)) <= values.size(), "start ends after the values");
    return {rows, columns, values.data(), ids.data(), start.data(), disk};
}

void check_rank(const Ranks& rank, int64_t columns) {
    if (rank) require_size(rank->size(), columns, "rank and columns disagree");
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
            const auto X = matrix(values, ids, start, static_cast<int64_t>(V.shape(0)), disk);
            check_rank(rank, X.columns);
            require_size(out.shape(0), X.rows, "out and rows disagree");
            require(out.shape(1) == V.shape(1), "out and V disagree");
            nb::gil_scoped_release release;
            dot(X, pointer(rank), V.data(), static_cast<int64_t>(V.shape(1)), out.data(), n_threads);
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "rank"_a.noconvert().none(),
        "V"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a, "disk"_a.none() = nb::none());

    m.def(
        "csr_transposed_dot",
        [](Values values, Columns ids, Starts start, Ranks rank, Table<const double> U, Table<double> out, int n_threads,
           const Disk* disk) {
            const auto X = matrix(values, ids, start, static_cast<int64_t>(out.shape(0)), disk);
            check_rank(rank, X.columns);
            require_size(U.shape(0), X.rows, "U and rows disagree");
            require(out.shape(1) == U.shape(1), "out and U disagree");
            nb::gil_scoped_release release;
            transposed_dot(X, pointer(rank), U.data(), static_cast<int64_t>(U.shape(1)), out.data(), n_threads);
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "rank"_a.noconvert().none(),
        "U"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a, "disk"_a.none() = nb::none());

    m.def(
        "csr_fused",
        [](Values values, Columns ids, Starts start, Ranks rank, const BlockArrays& blocks, const FoldArrays* folds,
           const PlanArrays& plan, Table<const double> V, Table<double> out, int n_threads,
           const Disk* disk) {
            const auto X = matrix(values, ids, start, static_cast<int64_t>(V.shape(0)), disk);
            const auto k = static_cast<int64_t>(V.shape(1));
            check_rank(rank, X.columns);
            require(out.shape(0) == V.shape(0) && out.shape(1) == V.shape(1), "out and V disagree");
            plan.check(X.columns, folds ? k : 1);
            const Folds fold_view = folds ? folds->view(blocks, k) : Folds{};
            const Blocks block_view = blocks.view();
            const Plan plan_view = plan.view();
            nb::gil_scoped_release release;
            fused(X, pointer(rank), block_view, folds ? &fold_view : nullptr, plan_view, V.data(), k, out.data(), n_threads, n_threads);
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "rank"_a.noconvert().none(), "blocks"_a,
        "folds"_a.none(), "plan"_a, "V"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a, "disk"_a.none() = nb::none());
}

// What is done once a fit: with the caller's own ids only.
template <typename Value, typename Column, typename Offset>
void bind_csr_once(nb::module_& m) {
    using Values = Vector<const Value>;
    using Columns = Vector<const Column>;
    using Starts = Vector<const Offset>;

    m.def(
        "csr_squared_norms",
        [](Values values, Columns ids, Starts start, Reals weight, Vector<double> out, int n_threads, const Disk* disk) {
            const auto X = matrix(values, ids, start, static_cast<int64_t>(out.size()), disk);
            require_size(weight.size(), X.rows, "weight and rows disagree");
            nb::gil_scoped_release release;
            squared_norms(X, weight.data(), out.data(), n_threads);
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "weight"_a.noconvert(),
        "out"_a.noconvert(), "n_threads"_a, "disk"_a.none() = nb::none());

    m.def(
        "csr_gram_diagonal",
        [](Values values, Columns ids, Starts start, const BlockArrays& blocks, Vector<double> out, int n_threads,
           const Disk* disk) {
            const auto X = matrix(values, ids, start, static_cast<int64_t>(out.size()), disk);
            const Blocks view = blocks.view();
            nb::gil_scoped_release release;
            gram_diagonal(X, view, out.data(), n_threads);
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "blocks"_a, "out"_a.noconvert(), "n_threads"_a,
        "disk"_a.none() = nb::none());

    m.def(
        "csr_weighted_sum",
        [](Values values, Columns ids, Starts start, const BlockArrays& blocks, const FoldArrays* folds, int64_t first,
           int64_t last, Table<double> out, int n_threads, const Disk* disk) {
            const auto X = matrix(values, ids, start, static_cast<int64_t>(out.shape(0)), disk);
            const auto k = static_cast<int64_t>(out.shape(1));
            require(0 <= first && last <= static_cast<int64_t>(blocks.order.size()), "rows outside the blocks");
            require(folds || k == 1, "one column without folds");
            const Folds fold_view = folds ? folds->view(blocks, k) : Folds{};
            const Blocks view = blocks.view();
            nb::gil_scoped_release release;
            weighted_sum(X, view, folds ? &fold_view : nullptr, first, last, out.data(), n_threads);
        },
        "values"_a.noconvert(), "ids"_a.noconvert(), "start"_a.noconvert(), "blocks"_a, "folds"_a.none(), "first"_a,
        "last"_a, "out"_a.noconvert(), "n_threads"_a, "disk"_a.none() = nb::none());
}

template <typename Column, typename Narrow>
void bind_rename(nb::module_& m) {
    m.def(
        "rename_columns",
        [](Vector<const Column> ids, Vector<const std::int32_t> rank, Vector<Narrow> out, int n_threads) {
            require(ids.size() == out.size(), "ids and out disagree");
            nb::gil_scoped_release release;
            rename_columns(ids.data(), static_cast<int64_t>(ids.size()), rank.data(), out.data(), n_threads);
        },
        "ids"_a.noconvert(), "rank"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

template <typename Column>
void bind_count(nb::module_& m) {
    m.def(
        "count_columns",
        [](Vector<const Column> ids, Vector<int64_t> out, int n_threads) {
            nb::gil_scoped_release release;
            count_columns(ids.data(), static_cast<int64_t>(ids.size()), static_cast<int64_t>(out.size()), out.data(),
                          n_threads);
        },
        "ids"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

template <typename Value>
void bind_value(nb::module_& m) {
    bind_csr<Value, std::uint16_t, std::int32_t>(m);
    bind_csr<Value, std::uint16_t, int64_t>(m);
    bind_csr<Value, std::int32_t, std::int32_t>(m);
    bind_csr<Value, std::int32_t, int64_t>(m);
    bind_csr<Value, int64_t, int64_t>(m);
    bind_csr_once<Value, std::int32_t, std::int32_t>(m);
    bind_csr_once<Value, std::int32_t, int64_t>(m);
    bind_csr_once<Value, int64_t, int64_t>(m);
}

void bind_blocks(nb::module_& m) {
    nb::class_<BlockArrays>(m, "Blocks")
        .def(
            "__init__",
            [](BlockArrays* self, Ids order, Ids query_start, Ids segment_start, Ids query_segment, Reals degree,
               Reals scale, int coupling, std::optional<Reals> row_weight, std::optional<Reals> level_value) {
                new (self) BlockArrays{order, query_start, segment_start, query_segment, degree, scale, row_weight,
                                       level_value, static_cast<Coupling>(coupling)};
                self->check();
            },
            "order"_a.noconvert(), "query_start"_a.noconvert(), "segment_start"_a.noconvert(),
            "query_segment"_a.noconvert(), "degree"_a.noconvert(), "scale"_a.noconvert(), "coupling"_a,
            "row_weight"_a.noconvert().none(), "level_value"_a.noconvert().none());

    nb::class_<FoldArrays>(m, "Folds")
        .def(
            "__init__",
            [](FoldArrays* self, Vector<const std::int32_t> fold, Table<const double> degree, Table<const double> scale,
               Vector<double> held_out) { new (self) FoldArrays{fold, degree, scale, held_out}; },
            "fold"_a.noconvert(), "degree"_a.noconvert(), "scale"_a.noconvert(), "held_out"_a.noconvert());

    nb::class_<PlanArrays>(m, "Plan")
        .def(
            "__init__",
            [](PlanArrays* self, Ids chunk_start, Ids chunk_query, Ids chunk_large, Ids chunk_work, Ids large_query,
               Ids large_start, Reals colsum) {
                new (self) PlanArrays{chunk_start, chunk_query, chunk_large, chunk_work, large_query, large_start, colsum};
            },
            "chunk_start"_a.noconvert(), "chunk_query"_a.noconvert(), "chunk_large"_a.noconvert(),
            "chunk_work"_a.noconvert(), "large_query"_a.noconvert(), "large_start"_a.noconvert(), "colsum"_a.noconvert());

    m.def(
        "laplacian",
        [](const BlockArrays& blocks, const FoldArrays* folds, Table<const double> F, Table<double> out, int n_threads) {
            const auto k = static_cast<int64_t>(F.shape(1));
            require(F.shape(0) >= blocks.order.size(), "fewer scores than rows");
            require(out.shape(0) == F.shape(0) && out.shape(1) == F.shape(1), "out and F disagree");
            const Folds fold_view = folds ? folds->view(blocks, k) : Folds{};
            const Blocks view = blocks.view();
            nb::gil_scoped_release release;
            laplacian(view, folds ? &fold_view : nullptr, F.data(), k, out.data(), n_threads);
        },
        "blocks"_a, "folds"_a.none(), "F"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

// Whether the user wants a long kernel to end: asked by every thread while it works without the lock of the interpreter,
// answered by the one that called, ten times a second.
class Signals {
public:
    bool operator()() {
        if (arrived_) return true;
        if (std::this_thread::get_id() != caller_ || Clock::now() < next_) return false;
        next_ = Clock::now() + std::chrono::milliseconds(100);
        nb::gil_scoped_acquire acquire;
        if (PyErr_CheckSignals()) arrived_ = true;
        return arrived_;
    }

    // To be called with the lock held: raises what the handler of the signal raised.
    void rethrow() const {
        if (arrived_) throw nb::python_error();
    }

private:
    using Clock = std::chrono::steady_clock;
    std::thread::id caller_ = std::this_thread::get_id();
    Clock::time_point next_ = Clock::now() + std::chrono::milliseconds(100);
    std::atomic<bool> arrived_{false};
};

template <typename Value>
void bind_dense_gram(nb::module_& m) {
    m.def(
        "dense_gram",
        [](nb::ndarray<const Value, nb::ndim<2>, nb::device::cpu> X, const BlockArrays& blocks, Table<const double> pull,
           Table<double> out, Table<double> rhs, int64_t buffer_rows, int n_stripes, nb::capsule dsyrk, int n_threads) {
            const Blocks view = blocks.view();
            const auto n = static_cast<int64_t>(X.shape(1));
            const auto outputs = static_cast<int64_t>(pull.shape(1));
            const auto rows = static_cast<int64_t>(X.shape(0));
            require(std::all_of(view.order, view.order + view.rows, [&](int64_t row) { return 0 <= row && row < rows; }),
                    "the blocks have rows that X has not");
            require(pull.shape(0) == X.shape(0), "pull and X disagree");
            require(out.shape(0) == X.shape(1) && out.shape(1) == X.shape(1), "out and X disagree");
            require(rhs.shape(0) == X.shape(1) && rhs.shape(1) == pull.shape(1), "rhs disagrees with X or pull");
            require(buffer_rows > 0 && n_stripes > 0, "no room");
            require(view.coupling != Coupling::relative, "the relative coupling has no such form");
            const DenseMatrix<Value> matrix{X.data(), n, X.stride(0), X.stride(1)};
            const Pull linear{pull.data(), outputs};
            const auto multiply = reinterpret_cast<Dsyrk>(dsyrk.data());
            Signals signals;
            {
                nb::gil_scoped_release release;
                dense_gram(matrix, view, linear, buffer_rows, n_stripes, multiply, out.data(), rhs.data(), n_threads, signals);
            }
            signals.rethrow();
        },
        "X"_a.noconvert(), "blocks"_a, "pull"_a.noconvert(), "out"_a.noconvert(), "rhs"_a.noconvert(), "buffer_rows"_a,
        "n_stripes"_a, "dsyrk"_a, "n_threads"_a);
}

void bind_dense(nb::module_& m) {
    bind_dense_gram<float>(m);
    bind_dense_gram<double>(m);
    m.def(
        "centre_queries",
        [](const BlockArrays& blocks, int64_t first, int64_t last, Table<double> Z, std::optional<Table<double>> sums,
           int n_threads) {
            const Blocks view = blocks.view();
            require(0 <= first && first <= last && last <= view.queries, "queries outside the blocks");
            require_size(Z.shape(0), view.query_start[last] - view.query_start[first], "Z and rows disagree");
            if (sums) {
                require_size(sums->shape(0), view.query_segment[last] - view.query_segment[first], "sums and segments disagree");
                require(sums->shape(1) == Z.shape(1), "sums and Z disagree");
            }
            nb::gil_scoped_release release;
            centre_queries(view, first, last, Z.data(), static_cast<int64_t>(Z.shape(1)), pointer(sums), n_threads);
        },
        "blocks"_a, "first"_a, "last"_a, "Z"_a.noconvert(), "sums"_a.noconvert().none(), "n_threads"_a);

    m.def(
        "shift_rows",
        [](const BlockArrays& blocks, int64_t first, int64_t last, Reals shift, Table<double> Z,
           std::optional<Table<double>> sums, int64_t origin) {
            const Blocks view = blocks.view();
            require(0 <= first && first <= last && last <= view.rows, "rows outside the blocks");
            require_size(Z.shape(0), last - first, "Z and rows disagree");
            require(shift.size() == Z.shape(1) && (!sums || sums->shape(1) == Z.shape(1)), "columns disagree");
            nb::gil_scoped_release release;
            shift_rows(view, first, last, shift.data(), Z.data(), static_cast<int64_t>(Z.shape(1)), pointer(sums), origin);
        },
        "blocks"_a, "first"_a, "last"_a, "shift"_a.noconvert(), "Z"_a.noconvert(), "sums"_a.noconvert().none(), "origin"_a);

    m.def(
        "couple_relative",
        [](const BlockArrays& blocks, int64_t first, int64_t last, Table<const double> sums, Table<double> out,
           int n_threads) {
            const Blocks view = blocks.view();
            require(0 <= first && first <= last && last <= view.queries, "queries outside the blocks");
            require_size(sums.shape(0), view.query_segment[last] - view.query_segment[first], "sums and segments disagree");
            require(out.shape(0) == sums.shape(0) && out.shape(1) == sums.shape(1), "out and sums disagree");
            nb::gil_scoped_release release;
            couple_relative(view, first, last, sums.data(), out.data(), static_cast<int64_t>(sums.shape(1)), n_threads);
        },
        "blocks"_a, "first"_a, "last"_a, "sums"_a.noconvert(), "out"_a.noconvert(), "n_threads"_a);
}

}  // namespace

#include "bindings_additive.hpp"

void bind_products(nb::module_& m) {
    bind_blocks(m);
    bind_additive(m);
    bind_dense(m);
    bind_value<float>(m);
    bind_value<double>(m);
    bind_count<std::int32_t>(m);
    bind_count<int64_t>(m);
    bind_rename<std::int32_t, std::uint16_t>(m);
    bind_rename<std::int32_t, std::int32_t>(m);
    bind_rename<int64_t, std::uint16_t>(m);
    bind_rename<int64_t, std::int32_t>(m);
}
