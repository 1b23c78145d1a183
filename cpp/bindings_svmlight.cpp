// The bindings of svmlight/LETOR text.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <tuple>
#include <vector>

#include "bindings.hpp"
#include "svmlight.hpp"
#include "svmlight_writer.hpp"

using namespace bindings;

namespace {

namespace text = rankwise::text;

constexpr std::pair<const char*, text::Missing> missing_names[] = {
    {"error", text::Missing::error},
    {"nan", text::Missing::nan},
    {"zero", text::Missing::zero},
};

// In the order of text::Problem; Python has a sentence for each.
constexpr const char* problem_names[] = {
    "none", "label", "label_missing", "qid_empty", "qid_missing", "qid_unexpected", "entry", "column_zero",
    "column_too_large", "value", "value_missing", "infinite", "duplicate",
};

// Numpy becomes the owner of the array as it is.
template <typename T, typename Array = T>
nb::ndarray<nb::numpy, Array> give_to_numpy(rankwise::Growing<T>& array) {
    static_assert(sizeof(Array) == sizeof(T));
    const auto size = static_cast<std::size_t>(array.size());
    auto* data = reinterpret_cast<Array*>(array.release());
    nb::capsule owner(data, [](void* memory) noexcept { std::free(memory); });
    return nb::ndarray<nb::numpy, Array>(data, {size}, owner);
}

template <typename Value>
void bind_rows(nb::module_& m, const char* name) {
    using Rows = text::Rows<Value>;
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
            [](Rows& rows, Vector<uint8_t> block, int64_t size, int64_t base, bool base_is_sure, int64_t last_column,
               const char* missing, int n_threads) -> std::optional<std::tuple<const char*, int64_t, int64_t>> {
                require(0 <= size && size + text::padding <= length(block), "the block lacks its padding");
                require(base == 0 || base == 1, "columns count from 0 or from 1");
                require(-1 <= last_column && last_column <= INT32_MAX, "column numbers have 31 bits");
                const text::Format format{base, base_is_sure, last_column, by_name(missing_names, missing)};
                const auto error = without_gil(
                    [&] { return rows.append(reinterpret_cast<char*>(block.data()), size, format, n_threads); });
                if (error.problem == text::Problem::none) return std::nullopt;
                return std::tuple{problem_names[static_cast<int>(error.problem)], error.at, error.length};
            },
            "block"_a.noconvert(), "size"_a, "base"_a, "base_is_sure"_a, "last_column"_a, "missing"_a, "n_threads"_a)
        .def("shift_columns", &Rows::shift_columns, nb::call_guard<nb::gil_scoped_release>(), "by"_a)
        .def(
            "take",
            [](Rows& rows, int64_t n_rows) {
                require(0 <= n_rows && n_rows <= rows.rows(), "more rows than there are");
                Rows rest = rows.split(n_rows);
                auto taken = nb::make_tuple(
                    give_to_numpy(rows.values), give_to_numpy(rows.columns), give_to_numpy(rows.start),
                    give_to_numpy(rows.labels), give_to_numpy(rows.run_start),
                    nb::bytes(rows.run_text.data(), static_cast<std::size_t>(rows.run_text.size())),
                    give_to_numpy(rows.run_text_end));
                rows = std::move(rest);
                return taken;
            },
            "n_rows"_a);
}

template <typename Value, typename Column, typename Offset>
void bind_writer(nb::module_& m) {
    m.def(
        "write_svmlight",
        [](Vector<const Value> values, Vector<const Column> columns, Vector<const Offset> start, Reals labels,
           Ids run_start, nb::bytes run_text, Ids run_text_end, int64_t base, int n_threads) {
            const int64_t rows = length(labels);
            require_length(start, rows + 1, "start and labels disagree");
            require(start.data()[rows] <= length(values), "start ends after the values");
            require_length(columns, length(values), "columns and values disagree");
            require_length(run_text_end, length(run_start), "runs and their texts disagree");
            require(length(run_start) == 0 || static_cast<std::size_t>(run_text_end.data()[length(run_start) - 1]) <= run_text.size(),
                    "run_text_end ends after the text");
            const rankwise::Csr<Value, Column, Offset> X{rows, 0, values.data(), columns.data(), start.data()};
            const text::Ids ids{length(run_start), run_start.data(), run_text_end.data(), run_text.c_str()};
            auto pieces = without_gil([&] { return text::write_rows(X, labels.data(), ids, base, n_threads); });
            nb::list texts;
            for (auto& piece : pieces) texts.append(give_to_numpy<char, uint8_t>(piece));
            return texts;
        },
        "values"_a.noconvert(), "columns"_a.noconvert(), "start"_a.noconvert(), "labels"_a.noconvert(),
        "run_start"_a.noconvert(), "run_text"_a, "run_text_end"_a.noconvert(), "base"_a, "n_threads"_a);
}

}  // namespace

void bind_svmlight(nb::module_& m) {
    m.attr("TEXT_PADDING") = text::padding;
    bind_rows<float>(m, "TextRows32");
    bind_rows<double>(m, "TextRows64");
    bind_writer<float, int32_t, int32_t>(m);
    bind_writer<float, int32_t, int64_t>(m);
    bind_writer<float, int64_t, int64_t>(m);
    bind_writer<double, int32_t, int32_t>(m);
    bind_writer<double, int32_t, int64_t>(m);
    bind_writer<double, int64_t, int64_t>(m);
}
