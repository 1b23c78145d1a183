"""Notices about a fit, as data that estimators turn into warnings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from rankwise.arrays import Matrix, is_sparse
from rankwise.exceptions import InvalidInputError
from rankwise.kernels import Kernel
from rankwise.solvers.direct import indefiniteness, is_indefinite
from rankwise.solvers.scales import squared_lengths
from rankwise.solvers.solution import Solution

DUAL_SCALES = 1e7  # 1e6 leaves six digits of a minimum, 1e8 none
_NAMED = 5  # so many columns are named


class Notice(NamedTuple):
    """A notice about a fit: what happened (a sentence without its period), and a remedy."""

    what: str
    remedy: str
    category: type[Warning] = ConvergenceWarning


def notices_of_residual(solver: str, solution: Solution, tol: float, remedy: str) -> list[Notice]:
    """Return a notice if an iterative solver did not meet its tolerance."""
    if solution.status.is_good:
        return []
    what = (
        f"solver={solver!r} stopped after {solution.n_iter} iterations at a relative residual of "
        f"{solution.certificate:.1e} (tol={tol}): {solution.status.value}"
    )
    return [Notice(what, f"raise max_iter or tol, {remedy}")]


def notices_of_extremes(kernel: Kernel, extremes: Mapping[str, tuple[float, float]]) -> list[Notice]:
    """Return a notice for each place where the extreme eigenvalues show an indefinite kernel."""
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


def notices_of_scales(X: Matrix | None, most: float = 1e14) -> list[Notice]:
    """Return a notice if the norms of columns differ by more than the given factor; constant ones order nothing."""
    if X is None:
        return []
    lengths = np.sqrt(squared_lengths(X))
    small = np.flatnonzero((lengths > 0) & (most * lengths < lengths.max(initial=0.0)))
    if not is_sparse(X):  # such as the rounding that StandardScaler leaves of a constant column
        small = small[np.ptp(np.asarray(X)[:, small], axis=0) > 0]
    if small.size == 0:
        return []
    large = np.flatnonzero(lengths > most * lengths[small].min())
    named = ", ".join(map(str, large[:_NAMED])) + (", ..." if large.size > _NAMED else "")
    what = (
        f"Columns of X (numbers {named}, counted from 0) are more than {most:.0e} times as large as others, and the "
        "coefficients of these have lost their precision"
    )
    return [Notice(what, "scale the columns, for example with sklearn.preprocessing.StandardScaler")]


def require_range(solution: Solution) -> None:
    """Raise if a solver's values left the range of floating-point numbers."""
    if not (np.isfinite(solution.certificate) and np.isfinite(solution.coef).all()):
        raise InvalidInputError(
            "The numbers in X, y or the margins of the pairs are so large that their squares overflow.",
            "bring them to values around 1, for example with sklearn.preprocessing.MaxAbsScaler, and divide alpha by "
            "the square of what X is divided by.",
        )
