"""Training data after validation: labelled rows, listed pairs, and a kernel with its rows and basis."""
