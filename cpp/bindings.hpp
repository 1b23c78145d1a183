// What the parts of the Python module share: one function for each topic, the array types, and the checks of shapes.
//
// A binding converts nothing: an array of another type or order is refused (every array argument is `noconvert`), for a
// copy of an output would be filled and thrown away. It checks shapes, for wrong ones would read or write outside the
// arrays; numbers of rows and columns inside arrays were validated above and are trusted, but for what a class of arrays
// finds when it is made. Then it releases the lock of the interpreter by `without_gil`, and calls a header that computes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdint.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "interruption.hpp"

void bind_additive(nanobind::module_& m);
void bind_metrics(nanobind::module_& m);
void bind_order_statistics(nanobind::module_& m);
void bind_pairs(nanobind::module_& m);
void bind_products(nanobind::module_& m);
void bind_storage(nanobind::module_& m);
void bind_svmlight(nanobind::module_& m);

namespace bindings {

namespace nb = nanobind;
using namespace nb::literals;

template <typename T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Table = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ids = Vector<const int64_t>;
using Reals = Vector<const double>;

inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

template <typename Array>
int64_t length(const Array& array, std::size_t axis = 0) {
    return static_cast<int64_t>(array.shape(axis));
}

template <typename Array>
void require_length(const Array& array, int64_t wanted, const char* what) {
    require(length(array) == wanted, what);
}

template <typename Array>
void require_length(const std::optional<Array>& array, int64_t wanted, const char* what) {
    if (array) require_length(*array, wanted, what);
}

template <typename Array>
void require_shape(const Array& array, int64_t rows, int64_t columns, const char* what) {
    require(length(array) == rows && length(array, 1) == columns, what);
}

// Whether an array of so many starts and one more begins at 0, never falls and ends at `end`.
template <typename Array>
void require_starts(const Array& start, int64_t n, int64_t end, const char* what) {
    require_length(start, n + 1, what);
    const auto* at = start.data();
    bool falls = false;
    for (int64_t i = 0; i < n; ++i) falls |= at[i + 1] < at[i];
    require(!falls && at[0] == 0 && static_cast<int64_t>(at[n]) == end, what);
}

template <typename Array>
auto pointer(const std::optional<Array>& array) {
    return array ? array->data() : nullptr;
}

// The enumerator of a name, so that Python needs no copy of an enumeration.
template <typename Enum, std::size_t n>
Enum by_name(const std::pair<const char*, Enum> (&names)[n], const char* name) {
    for (const auto& [known, value] : names)
        if (std::string(known) == name) return value;
    throw std::invalid_argument("'" + std::string(name) + "' is not among the names that are known");
}

// Calls work() without the lock of the interpreter. A signal that arrives meanwhile ends the kernel within a fraction of a
// second, and raises here what its handler raised: KeyboardInterrupt, as a rule.
template <typename Work>
auto without_gil(Work&& work) {
    rankwise::Interruption signals([] {
        nb::gil_scoped_acquire acquired;
        return PyErr_CheckSignals() != 0;
    });
    const auto raise = [&] {
        if (signals.has_come()) throw nb::python_error();
    };
    try {
        if constexpr (std::is_void_v<decltype(work())>) {
            {
                nb::gil_scoped_release released;
                work();
            }
            raise();
        } else {
            auto result = [&] {
                nb::gil_scoped_release released;
                return work();
            }();
            raise();
            return result;
        }
    } catch (const rankwise::Interrupted&) {
        throw nb::python_error();
    }
}

}  // namespace bindings
