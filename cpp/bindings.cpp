// The Python module; bindings.hpp has the rules for its parts.
#include "bindings.hpp"

NB_MODULE(_core, m) {
    // A store that is still open when Python ends is no fault, and nobody could act on a warning about it.
    nanobind::set_leak_warnings(false);
    m.doc() = "The compiled kernels of rankwise. Shapes and types are checked, numbers of rows and columns are trusted.";
    bind_additive(m);
    bind_metrics(m);
    bind_order_statistics(m);
    bind_pairs(m);
    bind_products(m);
    bind_storage(m);
    bind_svmlight(m);
}
