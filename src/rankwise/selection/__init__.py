"""Everything that chooses: alpha, the iteration, gamma and the solver, by held-out rows and pairs."""
