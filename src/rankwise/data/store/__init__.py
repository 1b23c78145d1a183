"""The store: rows on disk that are trained on without being loaded."""
