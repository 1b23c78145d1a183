"""Choosing alpha and iterations: the reader of cv, the surface, exact hold-out, the path, and the result."""
