"""Least squares at one alpha: which solver, with what options, and what to say about what it found."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from rankwise.design import Design
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError, caller_level
from rankwise.interrupts import tell_interrupted
from rankwise.objectives import QuadraticObjective, ScaledObjective, prior_scale
from rankwise.solvers.choose import (
    SOLVERS,
    SolverOptions,
    choose_solver,
    fits_direct,
    matrix_bytes,
    require_diagonal,
    widest_matrix,
)
from rankwise.solvers.solution import Solution, Status

__all__ = ["LeastSquares", "out_of_range", "require_range", "warn_unsolved"]


@dataclass(frozen=True)
class LeastSquares:
    """How a least-squares model is fitted at one alpha.

    Attributes
    ----------
    solver : str
        A name of `SOLVERS`, or "auto".
    alpha : float
    scaling : float
    options : SolverOptions
    """

    solver: str
    alpha: float
    scaling: float = 0.0
    options: SolverOptions = field(default_factory=SolverOptions)

    def resolved(self, design: Design, *, forms_matrix: bool) -> LeastSquares:
        """Return the same with "auto" decided; raise where the solver cannot be used."""
        n_features = design.shape[1]
        by_diagonal = self.solver in {"gdm", "stochastic"}
        if self.options.precondition is not None or self.scaling != 0 or by_diagonal:
            require_diagonal(design)
        if self.solver == "auto":
            return replace(self, solver=choose_solver(design, forms_matrix=forms_matrix))
        if self.solver in {"direct", "eigen"} and not fits_direct(n_features):
            raise UnsuitableSolverError(
                f"solver={self.solver!r} forms a matrix of {n_features} × {n_features}, which takes about "
                f"{matrix_bytes(n_features) / 2**30:.1f} GiB, more than is free.",
                "use solver='cg', which needs only a few vectors of that length.",
            )
        if self.solver in {"direct", "eigen"} and n_features > widest_matrix(design):
            raise UnsuitableSolverError(
                f"solver={self.solver!r} adds up a matrix of {n_features} × {n_features} from every worker, and "
                f"{widest_matrix(design):.0f} columns are the most that is done for.",
                "use solver='cg', which exchanges vectors.",
            )
        return self

    def scaled(self, objective: QuadraticObjective) -> QuadraticObjective:
        """Return an objective in the units of columns that `scaling` gives them."""
        if self.scaling == 0:
            return objective
        return ScaledObjective(objective, prior_scale(objective, self.scaling))

    def solve(self, objective: QuadraticObjective) -> Solution:
        """Find the minimum of an objective plus the penalty; warn where it is not what was asked for."""
        scaled = self.scaled(objective)
        with np.errstate(over="ignore", invalid="ignore"):  # the solvers notice, and say so by their status
            solution = SOLVERS[self.solver](scaled, self.alpha, self.options)
        require_range(solution)
        if isinstance(scaled, ScaledObjective):
            solution = replace(solution, coef=scaled.to_coef(solution.coef))
        if solution.status is Status.SINGULAR:
            remedy = "alpha > 0" if self.alpha == 0 else "a larger alpha, or bring the columns to like scales"
            warnings.warn(
                f"X has no more than {solution.rank} independent directions inside queries, fewer than its "
                f"{objective.n_features} columns, and alpha={self.alpha} does not choose between the "
                f"solutions: the one of least norm was taken. Hint: use {remedy}.",
                scipy.linalg.LinAlgWarning,
                stacklevel=caller_level(),
            )
        elif not solution.status.is_good:
            warn_unsolved(self.solver, solution, self.options.tol, "use a larger alpha, or scale the columns")
        return solution


def warn_unsolved(solver: str, solution: Solution, tol: float, remedy: str) -> None:
    """Say that an iterative solver did not meet its tolerance."""
    what = (
        f"solver={solver!r} stopped after {solution.n_iter} iterations at a relative residual of "
        f"{solution.certificate:.1e} (tol={tol}): {solution.status.value}"
    )
    if solution.status is Status.INTERRUPTED:
        tell_interrupted(what, "fit again")
    else:
        words = f"{what}. Hint: raise max_iter or tol, {remedy}."
        warnings.warn(words, ConvergenceWarning, stacklevel=caller_level())


def require_range(solution: Solution) -> None:
    """Raise where floating-point numbers could not hold what a solver had to compute with."""
    if solution.status is Status.OUT_OF_RANGE:
        raise out_of_range()


def out_of_range() -> InvalidInputError:
    """Return the error that says so."""
    return InvalidInputError(
        f"X cannot be fitted as it is: {Status.OUT_OF_RANGE.value}.",
        "bring X to values around 1, for example with sklearn.preprocessing.MaxAbsScaler, and divide alpha by "
        "the square of what X is divided by.",
    )
