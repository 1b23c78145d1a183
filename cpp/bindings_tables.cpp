// The bindings of tables; see bindings.cpp for the rule.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bindings.hpp"
#include "table_rows.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using std::int64_t;

namespace {

using Column = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename Value>
void bind_table_rows(nb::module_& m) {
    m.def(
        "write_table_rows",
        [](const std::vector<Column>& columns, nb::ndarray<Value, nb::ndim<2>, nb::c_contig, nb::device::cpu> out, int64_t first_column,
           int n_threads) {
            const auto n_rows = static_cast<int64_t>(out.shape(0)), n_columns = static_cast<int64_t>(columns.size());
            const auto width = static_cast<int64_t>(out.shape(1));
            if (first_column < 0 || first_column + n_columns > width) throw std::invalid_argument("more columns than the matrix has");
            std::vector<const double*> pointers;
            for (const Column& column : columns) {
                if (static_cast<int64_t>(column.shape(0)) != n_rows) throw std::invalid_argument("columns and rows disagree");
                pointers.push_back(column.data());
            }
            std::vector<std::uint8_t> is_finite(columns.size());
            {
                nb::gil_scoped_release release;
                rankwise::write_table_rows(pointers.data(), n_columns, n_rows, out.data() + first_column, width,
                                           is_finite.data(), n_threads);
            }
            return nb::bytes(reinterpret_cast<const char*>(is_finite.data()), is_finite.size());
        },
        "columns"_a, "out"_a.noconvert(), "first_column"_a, "n_threads"_a);
}

}  // namespace

void bind_tables(nb::module_& m) {
    bind_table_rows<double>(m);
    bind_table_rows<float>(m);
}
