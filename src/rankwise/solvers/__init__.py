"""How the minimum is found. Solvers neither validate, print nor warn; they return a `Solution`."""
