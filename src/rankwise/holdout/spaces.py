"""Decompositions that give the models of all alphas, on all rows and without held-out groups.

Of labelled rows and of listed pairs, each in a space: columns of X, the features of a reduced set, or a kernel. RankRLS
on listed pairs is ridge regression of ``√ω z`` on the rows ``√ω (x_i - x_j)``, so any groups of pairs can be held out.
Where no two groups share a row, as in queries, the same holds in the coordinates of the rows, with a factor of each
component: a system of the size of the rows however many pairs there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from rankwise.arrays import Floats, Matrix, Rows
from rankwise.design import Design, matrix_rows
from rankwise.exceptions import MemoryLimitError
from rankwise.fitting.notices import DUAL_SCALES, Notice, notices_of_extremes, notices_of_scales
from rankwise.fitting.problem import KernelProblem
from rankwise.holdout.decomposition import DualHoldOut, HoldOut, PrimalHoldOut
from rankwise.kernels import FeatureMap, Kernel
from rankwise.pairs.factor import Factor
from rankwise.pairs.graph import PairGraph
from rankwise.runtime.decompositions import singular
from rankwise.runtime.memory import MemoryBudget, fits
from rankwise.solvers.choose import column_scale
from rankwise.solvers.direct import DualSpectrum
from rankwise.solvers.scales import EPS

ToModel = Callable[[Floats], Floats]  # makes the model of the coefficients of decomposed columns


@dataclass(frozen=True)
class Decomposition:
    """The models of all alphas of one graph, and those without any groups of its units.

    Attributes
    ----------
    hold_out : HoldOut
    target : (units, outputs) float64
        ``t`` with ``F't = r``; a unit is a row, or a listed pair.
    factor : Factor
    features : PrimalHoldOut
        ``ZW`` and σ of ``Z'Z = W diag(σ) W'``; of the dual, V and σ of ``FKF' = V diag(σ) V'``.
    vectors : (columns, rank) float64
        W; of the dual V.
    to_model : callable
        Makes the model, dual coefficients or those of the columns of a matrix, of the solution ``W (σ + α)^-1 (ZW)'t``.
    """

    hold_out: HoldOut
    target: Floats
    factor: Factor
    features: PrimalHoldOut
    vectors: Floats
    to_model: ToModel

    def model(self, output: int, alpha: float) -> Floats:
        """Return the model of an output and an alpha."""
        inverse = self.features.shrinkage(np.array([alpha]))[0]
        return self.to_model(
            self.vectors @ (inverse * (self.features.coordinates.T @ self.target[:, output]))
        )


def _target(factor: Factor, graph: PairGraph) -> Floats:
    target = factor.target(graph.pull)
    return target.reshape(target.shape[0], -1)


def _of_features(
    X: Matrix, graph: PairGraph, factor: Factor, to_model: ToModel, budget: MemoryBudget
) -> Decomposition:
    """Diagonalise ``X'LX``, if that fits."""
    target = _target(factor, graph)
    n_units, n_columns = target.shape[0], X.shape[1]
    n_bytes = 8 * (3 * n_units * n_columns + 3 * n_columns**2)
    if not budget.allows(n_bytes):
        raise MemoryLimitError(
            f"Exact hold-out from {n_units} rows or pairs and {n_columns} columns takes about "
            f"{n_bytes / 2**30:.2f} GiB, and {budget.free / 2**30:.2f} GiB may be used.",
            "use cv=5, a smaller basis, or groups that share no rows.",
        )
    X = as_dense(X) if factor.is_square else X
    Z = factor.apply(X)  # type: ignore[arg-type]
    hold_out, vectors = PrimalHoldOut.with_vectors(Z, X if factor.is_square else None)  # type: ignore[arg-type]
    return Decomposition(hold_out, target, factor, hold_out, vectors, to_model)


def _of_unlike(X: Floats, graph: PairGraph, factor: Factor, to_model: ToModel) -> Decomposition:
    """Take the singular values of at least as many columns as rows, whose coefficients cancel in dual ones."""
    left, values, right = singular(factor.apply(X))
    spectrum = DualSpectrum(np.square(values), left, 0.0, EPS**2)
    features = PrimalHoldOut(left * values, spectrum.values, rounding=EPS**2)
    hold_out, target = DualHoldOut.of_spectrum(spectrum), _target(factor, graph)
    return Decomposition(hold_out, target, factor, features, right, to_model)


@dataclass(frozen=True)
class ColumnSpace:
    """The columns of X under a `penalty_power`: from ``X'LX``, or for more columns than rows the linear kernel."""

    design: Design
    X: Matrix
    power: float

    @classmethod
    def of_design(cls, design: Design, power: float) -> ColumnSpace:
        """Take X as an array or a sparse matrix, if its decomposition fits in memory."""
        n_bytes = exact_bytes(design.shape)
        if not fits(n_bytes):
            raise MemoryLimitError(
                f"Exact hold-out from {design.shape[0]} rows and {design.shape[1]} columns takes about "
                f"{n_bytes / 2**30:.2f} GiB.",
                "use cv=5, which only multiplies by X.",
            )
        return cls(design, matrix_rows(design), power)

    def decompose(self, graph: PairGraph, factor: Factor) -> Decomposition:
        """Decompose the problem of a graph, in the units of its factor."""
        X: Matrix = self.X
        scale: Floats = np.ones(1)
        if self.power != 0:
            scale = column_scale(self.design, graph, self.power)
            X = _scaled(self.X, scale)
        to_model = partial(np.multiply, scale)
        if self.X.shape[1] <= self.X.shape[0] or graph.blocks is None:
            return _of_features(X, graph, factor, to_model, MemoryBudget())
        problem = KernelProblem(Kernel("linear"), X, None, MemoryBudget(), self.design.n_threads)
        if (unlike := problem.unlike_columns()) is not None:
            return _of_unlike(unlike, graph, factor, to_model)
        dual = KernelSpace(problem).decompose(graph, factor)
        return replace(dual, to_model=lambda b: _columns_of(X, dual.to_model(b)) * scale)

    @property
    def has_columns(self) -> bool:
        """Whether a model has a coefficient for each column of X."""
        return True

    def notices(self) -> list[Notice]:
        """Return the notices about the columns."""
        return notices_of_scales(self.X)


@dataclass(frozen=True)
class KernelSpace:
    """The space of a kernel: from the dual of all rows, or from the features of a reduced set.

    Attributes
    ----------
    extremes : dict of str to (float, float)
        The smallest and the largest eigenvalue that a decomposition found, by where it looked.
    """

    problem: KernelProblem
    extremes: dict[str, tuple[float, float]] = field(default_factory=dict)

    @cached_property
    def _features(self) -> tuple[FeatureMap, Floats]:
        """The features of the reduced set, or of all rows as one."""
        feature_map, Z = self.problem.mapped()
        self.extremes["between basis rows"] = feature_map.extremes
        return feature_map, Z

    def decompose(self, graph: PairGraph, factor: Factor) -> Decomposition:
        """Decompose the dual where units are rows, else the features of all rows or of a reduced set."""
        problem = self.problem
        if problem.basis is not None or not factor.is_square:
            feature_map, Z = self._features
            return _of_features(Z, graph, factor, feature_map.dual_coefficients, problem.budget)
        spectrum = problem.spectrum(factor, copies=4 if graph.blocks is not None else 6)
        self.extremes["on the pairs"] = spectrum.extremes
        features = PrimalHoldOut(spectrum.vectors, spectrum.values, spectrum.rounding)
        hold_out, target = DualHoldOut.of_spectrum(spectrum), _target(factor, graph)
        return Decomposition(hold_out, target, factor, features, spectrum.vectors, factor.transposed)

    @property
    def has_columns(self) -> bool:
        """Whether a model has a coefficient for each column of X."""
        return self.problem.kernel.name == "linear" and self.problem.basis is None

    def notices(self) -> list[Notice]:
        """Return the notices about the kernel, which must have been decomposed."""
        kernel = self.problem.kernel
        scales = notices_of_scales(self.problem.linear_rows, DUAL_SCALES)
        return [*notices_of_extremes(kernel, self.extremes), *scales]

    def refitted(self, rows: Rows, graph: PairGraph, factor: Factor) -> Decomposition:
        """Decompose the problem of some rows alone, with the same reduced set."""
        if self.problem.basis is None:
            return KernelSpace(self.problem.subset(rows)).decompose(graph, factor)
        Z = self._features[1][rows]
        return _of_features(Z, graph, factor, np.asarray, self.problem.budget)

    def scoring(self, rows: Rows, trained: Rows) -> Floats:
        """Return the matrix that maps models refitted to other rows to the scores of some rows."""
        return self.problem.between(rows, trained) if self.problem.basis is None else self._features[1][rows]


Space = ColumnSpace | KernelSpace


def exact_bytes(shape: tuple[int, int]) -> int:
    """Return the bytes of a matrix's decomposition: three copies of the smaller of it and its kernel, and more."""
    n_rows, n_columns = shape
    return 8 * (3 * n_rows * min(n_rows, n_columns) + 3 * min(n_rows, n_columns) ** 2)


def _columns_of(X: Matrix, dual: Floats) -> Floats:
    """Return the coefficients of columns whose scores are those of dual coefficients of their linear kernel."""
    transposed: Matrix = X.T  # type: ignore[attr-defined]
    return np.asarray(transposed @ dual, dtype=np.float64)


def _scaled(X: Matrix, scale: Floats) -> Matrix:
    if isinstance(X, np.ndarray):
        return np.asarray(X * scale)
    scaled: Matrix = X.multiply(scale).tocsr()  # type: ignore[attr-defined]
    return scaled


def as_dense(X: Matrix) -> Floats:
    """Return a matrix as an array."""
    dense = X if isinstance(X, np.ndarray) else X.toarray()  # type: ignore[attr-defined]
    return np.asarray(dense, dtype=np.float64)
