"""Automatic model selection: scaling of columns, method, and regularisation."""
