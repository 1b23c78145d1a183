"""From the parameters of a model to the minimum of an objective: which solver, with what options, and what to say."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
from sklearn.exceptions import ConvergenceWarning

from rankwise.design import Design
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError, caller_level
from rankwise.objectives import QuadraticObjective, ScaledObjective, prior_scale
from rankwise.solvers.choose import (
    SOLVERS,
    SolverOptions,
    choose_solver,
    fits_direct,
    matrix_bytes,
    require_diagonal,
)
from rankwise.solvers.solution import Monitor, Solution, Status

__all__ = ["out_of_range", "require_range", "resolve_solver", "solve", "solver_options"]


def resolve_solver(model: Any, design: Design, *, forms_matrix: bool) -> str:
    """Return the name of the solver that a model's parameters ask for; raise where it cannot be used."""
    n_features = design.shape[1]
    needs_diagonal = (
        model.precondition is not None or model.scaling != 0 or model.solver in {"gdm", "stochastic"}
    )
    if needs_diagonal:
        require_diagonal(design)
    if model.solver == "auto":
        return choose_solver(design, forms_matrix=forms_matrix)
    if model.solver in {"direct", "eigen"} and not fits_direct(n_features):
        raise UnsuitableSolverError(
            f"solver={model.solver!r} forms a matrix of {n_features} × {n_features}, which takes about "
            f"{matrix_bytes(n_features) / 2**30:.1f} GiB, more than is free.",
            "use solver='cg', which needs only a few vectors of that length.",
        )
    return str(model.solver)


def solver_options(model: Any, monitor: Monitor | None = None) -> SolverOptions:
    """Return what a model's parameters say about how to solve."""
    return SolverOptions(
        tol=model.tol,
        max_iter=model.max_iter,
        precondition=model.precondition,
        learning_rate=model.learning_rate,
        momentum=model.momentum,
        monitor=monitor,
    )


def solve(model: Any, solver: str, objective: QuadraticObjective) -> Solution:
    """Find the minimum of an objective plus the penalty; warn where it is not what was asked for."""
    scaled = objective
    if model.scaling != 0:
        scaled = ScaledObjective(objective, prior_scale(objective, model.scaling))
    with np.errstate(over="ignore", invalid="ignore"):  # the solvers notice, and say so by their status
        solution = SOLVERS[solver](scaled, float(model.alpha), solver_options(model))
    require_range(solution)
    if isinstance(scaled, ScaledObjective):
        solution = replace(solution, coef=scaled.to_coef(solution.coef))
    if solution.status is Status.SINGULAR:
        remedy = "alpha > 0" if model.alpha == 0 else "a larger alpha, or bring the columns to like scales"
        warnings.warn(
            f"X has no more than {solution.rank} independent directions inside queries, fewer than its "
            f"{objective.n_features} columns, and alpha={model.alpha} does not choose between the "
            f"solutions: the one of least norm was taken. Hint: use {remedy}.",
            scipy.linalg.LinAlgWarning,
            stacklevel=caller_level(),
        )
    elif not solution.status.is_good:
        warnings.warn(
            f"solver={solver!r} stopped after {solution.n_iter} iterations at a relative residual of "
            f"{solution.certificate:.1e} (tol={model.tol}): {solution.status.value}. Hint: raise max_iter "
            "or tol, use a larger alpha, or scale the columns.",
            ConvergenceWarning,
            stacklevel=caller_level(),
        )
    return solution


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
