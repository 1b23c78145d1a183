// Converts numpy arrays to pointers, releases the GIL, and calls the headers that compute. Nothing else.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

namespace nb = nanobind;

NB_MODULE(_core, m) {
    m.doc() = "The compiled kernels of rankwise. Arguments are trusted: they were validated above.";
}
