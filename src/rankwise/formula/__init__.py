"""A fitted model as a formula in the user's columns, which exporters write and explanations decompose."""
