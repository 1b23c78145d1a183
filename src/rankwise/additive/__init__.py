"""Additive models above their storage: where knots go, what is penalised, which pairs of columns, what is shown."""
