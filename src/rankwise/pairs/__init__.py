"""Which pairs are compared."""
