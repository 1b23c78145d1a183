"""What is to be said about a fit: data, which estimators make warnings of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from sklearn.exceptions import ConvergenceWarning

from rankwise.exceptions import InvalidInputError
from rankwise.kernels import Kernel
from rankwise.solvers.dual import indefiniteness, is_indefinite
from rankwise.solvers.solution import Solution, Status

__all__ = [
    "Notice",
    "interrupted",
    "notices_of_extremes",
    "notices_of_residual",
    "out_of_range",
    "require_range",
]


class Notice(NamedTuple):
    """What the estimator is to say about a fit: what happened (a sentence without its end), and what helps.

    The category is that of a warning, or KeyboardInterrupt where Ctrl-C ended the fit and the best so far is kept.
    """

    what: str
    remedy: str
    category: type[BaseException] = ConvergenceWarning


def interrupted(what: str) -> Notice:
    """Say that Ctrl-C ended a search, and what is left of it."""
    remedy = "call fit again without interrupting it for the final one"
    return Notice(f"Interrupted {what}", remedy, KeyboardInterrupt)


def notices_of_residual(solver: str, solution: Solution, tol: float, remedy: str) -> list[Notice]:
    """Return what is to be said where an iterative solver did not meet its tolerance."""
    if solution.status.is_good:
        return []
    what = (
        f"solver={solver!r} stopped after {solution.n_iter} iterations at a relative residual of "
        f"{solution.certificate:.1e} (tol={tol}): {solution.status.value}"
    )
    if solution.status is Status.INTERRUPTED:
        return [Notice(what, "fit again", KeyboardInterrupt)]
    return [Notice(what, f"raise max_iter or tol, {remedy}")]


def notices_of_extremes(kernel: Kernel, extremes: Mapping[str, tuple[float, float]]) -> list[Notice]:
    """Return what is to be said of a kernel with such extreme eigenvalues, by where they were found."""
    return [
        Notice(
            f"The kernel is indefinite {where}: its eigenvalues go down to {smallest:.3g}, "
            f"{100 * indefiniteness(smallest, largest):.2g} % of the largest in size ({largest:.3g}); the directions "
            "without a positive eigenvalue were left out",
            "use a positive semidefinite kernel",
            UserWarning,
        )
        for where, (smallest, largest) in extremes.items()
        if not kernel.is_surely_positive and is_indefinite(smallest, largest)
    ]


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
