"""Solvers of the ranking objectives. Solvers neither validate, print nor warn; they return a `Solution`."""
