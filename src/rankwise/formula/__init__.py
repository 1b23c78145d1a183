"""A fitted model as a formula in the user's columns: what exporters write down and explanations add up."""
