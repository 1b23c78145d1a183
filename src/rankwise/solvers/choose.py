"""The table of solvers, and the rule for ``solver="auto"``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from rankwise.arrays import Floats
from rankwise.design import Design
from rankwise.exceptions import UnsuitableSolverError
from rankwise.losses import LOSSES, MARGIN_LOSSES, HingeLoss
from rankwise.objectives import QuadraticObjective, SquaredObjective, prior_scale
from rankwise.pairs.graph import MarginPairs, PairGraph
from rankwise.runtime.memory import fits
from rankwise.solvers.bundle import minimise_by_planes
from rankwise.solvers.direct import DirectFactor, solve_by_eigenvalues
from rankwise.solvers.krylov import conjugate_gradients
from rankwise.solvers.momentum import MOMENTUM, estimated_descent, gradient_descent
from rankwise.solvers.newton import minimise_by_newton, minimise_smoothed
from rankwise.solvers.scales import balancing
from rankwise.solvers.solution import Monitor, Solution
from rankwise.solvers.stochastic import stochastic


@dataclass(frozen=True)
class SolverOptions:
    """Options of solvers; each solver reads those that apply to it."""

    tol: float = 1e-5
    max_iter: int | None = None
    learning_rate: float | None = None
    momentum: float = MOMENTUM
    monitor: Monitor | None = None


Solver = Callable[[QuadraticObjective, float, SolverOptions], Solution]


_CLOSER = 1e-9  # a residual that needs no more care


def _balanced(minimise: Callable[..., Solution], *names: str, **fixed: object) -> Solver:
    """Return a solver that steps without the units of columns, where these differ: else it would crawl.

    It takes the named options and those that all have.
    """

    def solve(objective: QuadraticObjective, alpha: float, options: SolverOptions) -> Solution:
        tol, watch = options.tol, options.monitor
        own = {name: getattr(options, name) for name in ("max_iter", *names)} | fixed
        balanced = None if options.learning_rate is not None else balancing(objective, alpha)
        if balanced is None:
            return minimise(objective, alpha, tol=tol, monitor=watch, **own)

        def monitor(coef: Floats, gap: float, n_iter: int) -> bool:  # sees the columns' own coefficients
            return watch is not None and watch(balanced.to_coef(coef), gap, n_iter)

        tol = min(tol, max(tol / 10, _CLOSER))  # this norm counts small columns in full
        solution = minimise(balanced, balanced.floor, tol=tol, monitor=monitor if watch else None, **own)
        return replace(solution, coef=balanced.to_coef(solution.coef))

    return solve


# Those that tell a monitor, if there is one, about every iterate; the others have none.
ITERATIVE = ("cg", "gdm", "egdm", "egdm-power", "egdm-blocks", "stochastic")

SOLVERS: dict[str, Solver] = {
    "direct": lambda objective, alpha, _: DirectFactor(objective).solve(alpha),
    "eigen": lambda objective, alpha, _: solve_by_eigenvalues(objective, alpha),
    "cg": _balanced(conjugate_gradients),
    "gdm": _balanced(gradient_descent, "learning_rate", "momentum"),
    "egdm": _balanced(estimated_descent, estimator="lanczos"),
    "egdm-power": _balanced(estimated_descent, estimator="power"),
    "egdm-blocks": _balanced(estimated_descent, estimator="blocks"),
    "stochastic": _balanced(stochastic),
}

_FACTOR = 0.03  # nanoseconds for an entry of n³ in a Cholesky factorisation; `Design.work` has the others
_ITERATIONS = 50  # what conjugate gradients usually takes


def matrix_bytes(n_features: int) -> int:
    """How much memory the solvers that form ``X'LX`` need: the matrix, and a factor of it."""
    return 3 * 8 * n_features * n_features


def fits_direct(n_features: int) -> bool:
    """Tell whether ``X'LX`` and its factor fit comfortably into the memory that is free."""
    return fits(matrix_bytes(n_features))


def matrix_reads(design: Design, *, forms_matrix: bool = True) -> float:
    """Estimate how many reads of X cost as much as forming and factoring ``X'LX``; see `choose_solver`."""
    product, gram = _work(design, forms_matrix=forms_matrix)
    return (gram + _FACTOR * float(design.shape[1]) ** 3) / (max(product, 1.0) / 2)


def require_diagonal(design: Design) -> None:
    """Raise where ``diag(X'LX)`` would take the whole matrix, and that does not fit."""
    n_features = design.shape[1]
    if not design.has_rows and not fits_direct(n_features):
        raise UnsuitableSolverError(
            "penalty_power and the solvers 'gdm' and 'stochastic' need the diagonal of X'LX, which for a "
            f"LinearOperator comes only with the whole matrix of {n_features} × {n_features}.",
            "use penalty_power=0 and solver='cg', or pass a dense or sparse X.",
        )


def column_scale(design: Design, graph: PairGraph, power: float) -> Floats:
    """Return the units of the columns under a value of `penalty_power`."""
    require_diagonal(design)
    return prior_scale(SquaredObjective(design, graph), power)


def choose_solver(design: Design, *, forms_matrix: bool = True, n_alphas: int = 1) -> str:
    """Choose between forming ``X'LX`` and iterating, by an estimate of the work.

    Where both cost about the same, the direct solver wins: its answer is exact.

    Parameters
    ----------
    design : Design
    forms_matrix : bool
        Whether the graph has query blocks, from which ``X'LX`` is formed at once. Else it takes a product per column.
    n_alphas : int
        How many alphas share the matrix.
    """
    n_features = design.shape[1]
    if not design.has_rows or not fits_direct(n_features) or n_features > design.widest_matrix:
        return "cg"
    product, gram = _work(design, forms_matrix=forms_matrix)
    direct = gram + n_alphas * _FACTOR * float(n_features) ** 3
    iterate = n_alphas * _ITERATIONS * product
    small = 64  # columns: forming X'LX is instant whatever the estimate says
    return "direct" if n_features <= small or direct <= iterate else "cg"


def _work(design: Design, *, forms_matrix: bool) -> tuple[float, float]:
    """Estimate the time of a product ``X'LXv`` and of ``X'LX``."""
    product, gram = design.work
    if forms_matrix:
        return product, gram
    # BLAS makes the columns of dense products as cheap as the matrix itself; sparse ones cost what they cost.
    return product, 2 * gram if design.is_dense else design.shape[1] * product


@dataclass(frozen=True)
class MarginSolver:
    """A solver of losses with margins, and the losses that it supports.

    Attributes
    ----------
    minimise : callable
        ``(objective, alpha, *, tol, is_absolute, max_iter, start, curvature, monitor) -> Solution``; `tol` is a share
        of the possible gain over 0 (`rankwise.solvers.newton`).
    losses : tuple of str
        Names in `rankwise.losses.LOSSES`.
    """

    minimise: Callable[..., Solution]
    losses: tuple[str, ...]


MARGIN_SOLVERS: dict[str, MarginSolver] = {
    "smoothing": MarginSolver(minimise_smoothed, (HingeLoss.name,)),
    "bundle": MarginSolver(minimise_by_planes, MARGIN_LOSSES),
    "newton": MarginSolver(
        minimise_by_newton, tuple(name for name in MARGIN_LOSSES if LOSSES[name].is_smooth)
    ),
}


# Where one ranking has so many rows, cutting planes search their lines on a sample and are cheaper per step.
_LARGE_RANKING = 20_000
_LOOSE = 1e-4  # tolerances down to which they need no more steps than smoothing


def choose_margin_solver(loss: str, pairs: MarginPairs, tol: float) -> str:
    """Choose by the loss, the pairs and the gap.

    For the hinge, smoothing took the least time from 5 rows to 100,000 and for gaps from 1e-3 to 1e-9, but for one
    large ranking with many levels at a loose gap: 400,000 real-valued rows at alpha 1e-5 took cutting planes 1.8 s and
    smoothing 3.5 s for a gap of 1e-3, plain planes four times as many reads; 100,000 took both 1.5 s for 1e-6.
    """
    if LOSSES[loss].is_smooth:
        return "newton"
    is_large = pairs.thinned(_LARGE_RANKING // 2) is not None
    return "bundle" if is_large and tol >= _LOOSE else "smoothing"
