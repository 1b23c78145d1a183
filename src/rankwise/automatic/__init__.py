"""Choosing everything: how columns are scaled, which method learns, and how it is regularised."""
