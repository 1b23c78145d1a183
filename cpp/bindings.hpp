// The parts of the Python module, one function a topic.
#pragma once

#include <nanobind/nanobind.h>

void bind_held_out(nanobind::module_& m);
void bind_input(nanobind::module_& m);
void bind_metrics(nanobind::module_& m);
void bind_order_statistics(nanobind::module_& m);
void bind_preferences(nanobind::module_& m);
void bind_products(nanobind::module_& m);
void bind_store(nanobind::module_& m);
void bind_svmlight(nanobind::module_& m);
void bind_tables(nanobind::module_& m);
