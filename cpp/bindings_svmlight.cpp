// The bindings of svmlight/LETOR text; see bindings.cpp for the rule.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "bindings.hpp"
#include "svmlight.hpp"
#include "svmlight_writer.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using std::int64_t;

namespace {

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// The array goes to numpy as it is.
template <typename T>
nb::ndarray<nb::numpy, T> hand_over(rankwise::Growing<T>& array) {
    const auto size = static_cast<std::size_t>(array.size());
    T* data = array.release();
    nb::capsule owner(data, [](void* memory) noexcept { std::free(memory); });
    return nb::ndarray<nb::numpy, T>(data, {size}, owner);
}

template <typename Value>
void bind_rows(nb::module_& m, const char* name) {
    using Rows = rankwise::text::Rows<Value>;
    nb::class_<Rows>(m, name)
        .def(nb::init<>())
        .def_prop_ro("rows", &Rows::rows)
        .def_prop_ro("entries", [](const Rows& rows) { return rows.values.size(); })
        .def_prop_ro("has_qid", &Rows::has_qid)
        .def_prop_ro("last_run", [](const Rows& rows) { return rows.run_start.size() ? rows.run_start.back() : 0; })
        .def_ro("smallest", &Rows::smallest)
        .def_ro("largest", &Rows::largest)
        .def_ro("lines", &Rows::lines)
        .def(
            "append",
            [](Rows& rows, Vector<std::uint8_t> block, int64_t size, int64_t base, bool base_is_sure, int64_t last_column,
               int missing, int n_threads) -> std::optional<std::tuple<int, int64_t, int64_t>> {
                require(0 <= size && size + rankwise::text::padding <= static_cast<int64_t>(block.size()),
                        "the block lacks its padding");
                require(last_column <= INT32_MAX, "column numbers have 31 bits");
                const rankwise::text::Format format{base, base_is_sure, last_column,
                                                    static_cast<rankwise::text::Missing>(missing)};
                nb::gil_scoped_release release;
                const auto error = rows.append(reinterpret_cast<char*>(block.data()), size, format, n_threads);
                if (error.problem == rankwise::text::Problem::none) return std::nullopt;
                return std::tuple{static_cast<int>(error.problem), error.at, error.length};
            },
            "block"_a.noconvert(), "size"_a, "base"_a, "base_is_sure"_a, "last_column"_a, "missing"_a, "n_threads"_a)
        .def("shift_columns", &Rows::shift_columns, nb::call_guard<nb::gil_scoped_release>())
        .def(
            "take",
            [](Rows& rows, int64_t n_rows) {
                require(0 <= n_rows && n_rows <= rows.rows(), "more rows than there are");
                Rows rest = rows.split(n_rows);
                auto taken = nb::make_tuple(hand_over(rows.values), hand_over(rows.columns), hand_over(rows.start),
                                            hand_over(rows.labels), hand_over(rows.run_start),
                                            nb::bytes(rows.run_text.data(), static_cast<std::size_t>(rows.run_text.size())),
                                            hand_over(rows.run_text_end));
                rows = std::move(rest);
                return taken;
            },
            "n_rows"_a);
}

template <typename Value, typename Column, typename Offset>
void bind_writer(nb::module_& m) {
    m.def(
        "write_svmlight",
        [](Vector<const Value> values, Vector<const Column> columns, Vector<const Offset> start, Vector<const double> labels,
           Vector<const int64_t> run_start, nb::bytes run_text, Vector<const int64_t> run_text_end, int64_t base,
           int n_threads) {
            const auto rows = static_cast<int64_t>(labels.size());
            require(start.size() == labels.size() + 1, "start and labels disagree");
            require(static_cast<int64_t>(start(labels.size())) <= static_cast<int64_t>(values.size()) &&
                        values.size() == columns.size(), "start must end with the values");
            require(run_start.size() == run_text_end.size(), "runs and their texts disagree");
            const rankwise::Csr<Value, Column, Offset> X{rows, 0, values.data(), columns.data(), start.data()};
            const rankwise::text::Ids ids{static_cast<int64_t>(run_start.size()), run_start.data(), run_text_end.data(),
                                          run_text.c_str()};
            std::vector<rankwise::Growing<char>> pieces;
            {
                nb::gil_scoped_release release;
                pieces = rankwise::text::write_rows(X, labels.data(), ids, base, n_threads);
            }
            nb::list texts;
            for (auto& piece : pieces) {
                const auto size = static_cast<std::size_t>(piece.size());
                auto* data = reinterpret_cast<std::uint8_t*>(piece.release());
                nb::capsule owner(data, [](void* memory) noexcept { std::free(memory); });
                texts.append(nb::ndarray<nb::numpy, std::uint8_t>(data, {size}, owner));
            }
            return texts;
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "start"_a.noconvert(), "labels"_a.noconvert(),
        "run_start"_a.noconvert(), "run_text"_a, "run_text_end"_a.noconvert(), "base"_a, "n_threads"_a);
}

}  // namespace

void bind_svmlight(nb::module_& m) {
    m.attr("TEXT_PADDING") = rankwise::text::padding;
    bind_rows<float>(m, "TextRows32");
    bind_rows<double>(m, "TextRows64");
    bind_writer<float, std::int32_t, std::int32_t>(m);
    bind_writer<float, std::int32_t, int64_t>(m);
    bind_writer<float, int64_t, int64_t>(m);
    bind_writer<double, std::int32_t, std::int32_t>(m);
    bind_writer<double, std::int32_t, int64_t>(m);
    bind_writer<double, int64_t, int64_t>(m);
}
