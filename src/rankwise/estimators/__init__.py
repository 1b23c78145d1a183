"""The scikit-learn classes: parameters, fit and fit_pairs, prediction."""
