"""Fit one model at one alpha: choice of the solver, coordinates, and notices about the solution."""
