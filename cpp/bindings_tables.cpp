// The bindings of tables.
#include <vector>

#include "bindings.hpp"
#include "table_rows.hpp"

using namespace bindings;

namespace {

// A list, for which nanobind's own conversion would copy arrays of another type.
std::vector<Reals> columns_of(const nb::list& list, int64_t n_rows) {
    std::vector<Reals> columns;
    for (const nb::handle item : list) {
        Reals column;
        if (!nb::try_cast<Reals>(item, column, false)) throw nb::type_error("a column is no vector of float64");
        require_length(column, n_rows, "columns and rows disagree");
        columns.push_back(column);
    }
    return columns;
}

template <typename Value>
void bind_table_rows(nb::module_& m) {
    m.def(
        "write_table_rows",
        [](const nb::list& columns, Table<Value> out, int64_t first_column, int n_threads) {
            const auto vectors = columns_of(columns, length(out));
            const auto n_columns = static_cast<int64_t>(vectors.size());
            require(0 <= first_column && first_column + n_columns <= length(out, 1), "more columns than the matrix has");
            std::vector<const double*> pointers;
            for (const Reals& column : vectors) pointers.push_back(column.data());
            std::vector<uint8_t> is_finite(vectors.size());
            without_gil([&] {
                rankwise::write_table_rows(pointers.data(), n_columns, length(out), out.data() + first_column,
                                           length(out, 1), is_finite.data(), n_threads);
            });
            return nb::bytes(reinterpret_cast<const char*>(is_finite.data()), is_finite.size());
        },
        "columns"_a, "out"_a.noconvert(), "first_column"_a, "n_threads"_a);
}

}  // namespace

void bind_tables(nb::module_& m) {
    bind_table_rows<double>(m);
    bind_table_rows<float>(m);
}
