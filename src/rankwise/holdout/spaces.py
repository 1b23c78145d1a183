"""One decomposition that knows the models of all alphas, and those without what is held out.

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

from rankwise.arrays import Floats, Ints, Matrix, Rows
from rankwise.design import Design, matrix_rows
from rankwise.exceptions import MemoryLimitError
from rankwise.fitting.notices import Notice, notices_of_extremes, notices_of_linear, notices_of_scales
from rankwise.holdout.decomposition import DualHoldOut, HoldOut, PrimalHoldOut
from rankwise.kernels import FeatureMap, Kernel
from rankwise.pairs.factor import Factor, LabelFactor
from rankwise.pairs.labels import LabelGraph
from rankwise.pairs.preference_factor import ComponentFactor
from rankwise.pairs.preferences import PreferenceGraph
from rankwise.problems.kernel import KernelProblem
from rankwise.runtime.decompositions import singular
from rankwise.runtime.memory import MemoryBudget, fits
from rankwise.solvers.choose import column_scale
from rankwise.solvers.direct import DualSpectrum
from rankwise.solvers.scales import EPS

__all__ = [
    "ColumnSpace",
    "KernelSpace",
    "PairDecomposition",
    "RowDecomposition",
    "Space",
    "exact_bytes",
]

Finish = Callable[[Floats], Floats]  # makes the model of the coefficients of decomposed columns
Solve = Callable[[Floats, float], Floats]  # makes the model of a column of the target, and an alpha


@dataclass(frozen=True)
class _Models:
    """The models of all alphas, from a decomposition.

    Attributes
    ----------
    hold_out : HoldOut
    target : (units, outputs) float64
        ``t`` with ``F't = r``; a unit is a row, or a pair.
    coefficients : callable
        Takes a column of the target and an alpha; gives dual coefficients, or those of the columns of a matrix.
    """

    hold_out: HoldOut
    target: Floats
    coefficients: Solve

    def model(self, output: int, alpha: float) -> Floats:
        """Return the model of an output and an alpha."""
        return self.coefficients(self.target[:, output], alpha)


@dataclass(frozen=True)
class RowDecomposition(_Models):
    """Of labelled rows.

    Attributes
    ----------
    factor : LabelFactor
    """

    factor: LabelFactor


@dataclass(frozen=True)
class PairDecomposition(_Models):
    """Of listed pairs.

    Attributes
    ----------
    group : (units,) int64
        What is held out together; -1 for rows in no pair.
    root : (pairs,) float64 or None
        ``√ω`` where units are pairs.
    factor : ComponentFactor or None
        Where they are rows.
    """

    group: Ints
    graph: PreferenceGraph
    root: Floats | None = None
    factor: ComponentFactor | None = None

    def differences(self, predicted: Floats) -> Floats:
        """Return winner minus loser, (alphas, pairs), from predictions (alphas, units)."""
        if self.root is not None:
            return predicted * np.divide(1.0, self.root, out=np.zeros_like(self.root), where=self.root > 0)
        assert self.factor is not None
        scores = self.factor.solve(np.ascontiguousarray(predicted.T)).T
        return np.asarray(scores[:, self.graph.winner] - scores[:, self.graph.loser])


def _primal(hold_out: PrimalHoldOut, vectors: Floats, finish: Finish, target: Floats, alpha: float) -> Floats:
    """Return a model from ``Z'Z = W diag(σ) W'``."""
    inverse = hold_out.shrinkage(np.array([alpha]))[0]
    return finish(vectors @ (inverse * (hold_out.features.T @ target)))


def _dual(spectrum: DualSpectrum, factor: Factor, target: Floats, alpha: float) -> Floats:
    """Return dual coefficients from ``FKF' = V diag(σ) V'``."""
    return factor.transposed(spectrum.solve(target, alpha))


def _rows_of_features(X: Floats, graph: LabelGraph, finish: Finish) -> RowDecomposition:
    """Diagonalise ``X'LX``."""
    factor = LabelFactor(graph.blocks, graph.n_threads)
    hold_out, vectors = PrimalHoldOut.with_vectors(factor.apply(X), X)
    target = factor.target(graph.pull).reshape(graph.n_rows, -1)
    coefficients = partial(_primal, hold_out, vectors, finish)
    return RowDecomposition(hold_out, target, coefficients, factor)


def _rows_of_unlike(X: Floats, graph: LabelGraph, finish: Finish) -> RowDecomposition:
    """Take the singular values of at least as many columns as rows, whose coefficients cancel in dual ones."""
    factor = LabelFactor(graph.blocks, graph.n_threads)
    left, values, right = singular(factor.apply(X))
    spectrum = DualSpectrum(np.square(values), left, 0.0, EPS**2)
    features = PrimalHoldOut(left * values, spectrum.values, rounding=EPS**2)
    target = factor.target(graph.pull).reshape(graph.n_rows, -1)
    coefficients = partial(_primal, features, right, finish)
    return RowDecomposition(DualHoldOut.of_spectrum(spectrum), target, coefficients, factor)


def _pairs_of_features(
    X: Matrix, graph: PreferenceGraph, group: Ints, budget: MemoryBudget, finish: Finish
) -> PairDecomposition:
    """Diagonalise the Gram matrix of the differences of rows, or of rows where no two groups share one."""
    of_row = _group_of_rows(graph, group)
    if of_row is None:
        _demand(budget, graph.winner.size, X.shape[1])
        root: Floats = np.sqrt(graph.pair_weight)
        Z = _array(X[graph.winner] - X[graph.loser])
        Z *= root[:, None]
        hold_out, vectors = PrimalHoldOut.with_vectors(Z)
        coefficients = partial(_primal, hold_out, vectors, finish)
        target = root * graph.difference
        return PairDecomposition(hold_out, target[:, None], coefficients, group, graph, root=root)
    _demand(budget, *X.shape)
    factor = ComponentFactor(graph)
    X = _array(X)
    hold_out, vectors = PrimalHoldOut.with_vectors(factor.apply(X), X)
    coefficients = partial(_primal, hold_out, vectors, finish)
    target = factor.target(graph.pull)
    return PairDecomposition(hold_out, target[:, None], coefficients, of_row, graph, factor=factor)


@dataclass(frozen=True)
class ColumnSpace:
    """The columns of X under a value of `scaling`: from ``X'LX``, or for more columns than rows the linear kernel."""

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

    def of_rows(self, graph: LabelGraph) -> RowDecomposition:
        """Decompose the problem of labelled rows."""
        scale = None if self.power == 0 else column_scale(self.design, graph, self.power)
        if self.X.shape[1] <= self.X.shape[0]:
            return _rows_of_features(_array(_scaled(self.X, scale)), graph, partial(_unscaled, scale))
        X = _scaled(self.X, scale)
        problem = KernelProblem(Kernel("linear"), X, None, MemoryBudget(), self.design.n_threads)
        if (unlike := problem.unlike_columns()) is not None:
            return _rows_of_unlike(unlike, graph, partial(_unscaled, scale))
        dual = KernelSpace(problem).of_rows(graph)
        return replace(dual, coefficients=partial(_of_columns, X, scale, dual.coefficients))

    def of_pairs(self, graph: PreferenceGraph, group: Ints) -> PairDecomposition:
        """Decompose the problem of listed pairs."""
        scale = None if self.power == 0 else column_scale(self.design, graph, self.power)
        X = _scaled(self.X, scale)
        return _pairs_of_features(X, graph, group, MemoryBudget(), partial(_unscaled, scale))

    def notices(self) -> list[Notice]:
        """Return what is to be said of the columns."""
        return notices_of_scales(self.X)


def _unscaled(scale: Floats | None, w: Floats) -> Floats:
    """Return coefficients of the caller's columns from those of scaled ones."""
    return w if scale is None else w * scale


def _of_columns(X: Matrix, scale: Floats | None, dual: Solve, target: Floats, alpha: float) -> Floats:
    """Return coefficients of columns from dual ones."""
    transposed: Matrix = X.T  # type: ignore[attr-defined]
    return _unscaled(scale, np.asarray(transposed @ dual(target, alpha), dtype=np.float64))


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
        problem = self.problem if self.problem.basis is not None else self.problem.with_all_rows()
        feature_map = problem.feature_map()
        self.extremes["between basis rows"] = feature_map.extremes
        return feature_map, problem.features(feature_map)

    def of_rows(self, graph: LabelGraph) -> RowDecomposition:
        """Decompose the problem of labelled rows."""
        problem = self.problem
        if problem.basis is not None:
            feature_map, Z = self._features
            return _rows_of_features(Z, graph, feature_map.dual_coefficients)
        factor = LabelFactor(graph.blocks)
        target = factor.target(graph.pull).reshape(graph.n_rows, -1)
        spectrum = problem.spectrum(factor, copies=4)
        self.extremes["on the pairs"] = spectrum.extremes
        coefficients = partial(_dual, spectrum, factor)
        return RowDecomposition(DualHoldOut.of_spectrum(spectrum), target, coefficients, factor)

    def of_pairs(self, graph: PreferenceGraph, group: Ints) -> PairDecomposition:
        """Decompose the dual where no two groups share a row, else the features of all rows or of a reduced set."""
        of_row, problem = _group_of_rows(graph, group), self.problem
        if problem.basis is not None or of_row is None:
            feature_map, Z = self._features
            return _pairs_of_features(Z, graph, group, problem.budget, feature_map.dual_coefficients)
        factor = ComponentFactor(graph)
        spectrum = problem.spectrum(factor, copies=6)
        self.extremes["on the pairs"] = spectrum.extremes
        coefficients = partial(_dual, spectrum, factor)
        target = factor.target(graph.pull)[:, None]
        hold_out = DualHoldOut.of_spectrum(spectrum)
        return PairDecomposition(hold_out, target, coefficients, of_row, graph, factor=factor)

    def notices(self) -> list[Notice]:
        """Return what is to be said of the kernel, once it has been decomposed."""
        kernel = self.problem.kernel
        return [*notices_of_extremes(kernel, self.extremes), *notices_of_linear(self.problem)]

    def refitted(self, rows: Rows, graph: LabelGraph) -> RowDecomposition:
        """Decompose the problem of some rows alone, with the same reduced set."""
        if self.problem.basis is None:
            return KernelSpace(self.problem.subset(rows)).of_rows(graph)
        return _rows_of_features(self._features[1][rows], graph, partial(_unscaled, None))

    def scoring(self, rows: Rows, trained: Rows) -> Floats:
        """Return what gives some rows their scores when it multiplies a model that was refitted to others."""
        return self.problem.between(rows, trained) if self.problem.basis is None else self._features[1][rows]


Space = ColumnSpace | KernelSpace


def exact_bytes(shape: tuple[int, int]) -> int:
    """Return what the decomposition of a matrix takes: three copies of the smaller of it and its kernel, and more."""
    n_rows, n_columns = shape
    return 8 * (3 * n_rows * min(n_rows, n_columns) + 3 * min(n_rows, n_columns) ** 2)


def _group_of_rows(graph: PreferenceGraph, group: Ints) -> Ints | None:
    """Return the group of each row's pairs, -1 without pairs; None where groups share a row, or pairs are fewer."""
    if graph.winner.size < graph.n_rows:
        return None
    of_row = np.full(graph.n_rows, -1, dtype=np.int64)
    of_row[graph.winner] = group
    of_row[graph.loser] = group
    is_whole = (of_row[graph.winner] == group).all() and (of_row[graph.loser] == group).all()
    return of_row if is_whole else None


def _scaled(X: Matrix, scale: Floats | None) -> Matrix:
    if scale is None:
        return X
    if isinstance(X, np.ndarray):
        return np.asarray(X * scale)
    scaled: Matrix = X.multiply(scale).tocsr()  # type: ignore[attr-defined]
    return scaled


def _array(X: Matrix) -> Floats:
    dense = X if isinstance(X, np.ndarray) else X.toarray()  # type: ignore[attr-defined]
    return np.asarray(dense, dtype=np.float64)


def _demand(budget: MemoryBudget, n_units: int, n_columns: int) -> None:
    n_bytes = 8 * (3 * n_units * n_columns + 3 * n_columns**2)
    if not budget.allows(n_bytes):
        raise MemoryLimitError(
            f"Exact hold-out from {n_units} rows or pairs and {n_columns} columns takes about "
            f"{n_bytes / 2**30:.2f} GiB, and {budget.free / 2**30:.2f} GiB may be used.",
            "use cv=5, a smaller basis, or groups that share no rows.",
        )
