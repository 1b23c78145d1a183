"""Additive models: knots, penalties, selection of surfaces, fitting and fitted shapes."""
