"""Thin scikit-learn classes: validate, build the graph and the objective, solve."""
