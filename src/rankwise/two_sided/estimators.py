"""The estimators of two-sided ranking."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral
from os import PathLike
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, Ints, MatrixLike, RandomSource
from rankwise.data.queries import ranks_inside
from rankwise.data.validation import check_alphas
from rankwise.estimators.base import say
from rankwise.estimators.parameters import BaseEstimator, check_parameters, estimator, one_of, parameter
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.fitting.notices import Notice
from rankwise.metrics import Metric, bootstrap_mean, get_metric
from rankwise.persistence import save
from rankwise.runtime.progress import ShareProgress
from rankwise.selection.grids import POWERS_OF_TWO
from rankwise.two_sided.complete import Table, held_out_values
from rankwise.two_sided.gaps import Edges, Run, figures, make_folds, surface
from rankwise.two_sided.sides import Side, find_basis, read_matrix, require_memory

Kernel = str | Callable[..., Any]
_EQUAL = 1e-12  # held-out values that differ by less are equally good
_KINDS = {
    "leave-row-out": "rows",
    "leave-column-out": "columns",
    "leave-entry-out": "entries",
    "leave-both-out": "both",
}
_SPEED = 2e10  # operations per second and processor
_LARGE = 1000  # decompositions of leave-both-out above which folds are recommended


class _Problem(NamedTuple):
    """Validated training data."""

    rows: Floats
    columns: Floats
    row_map: Floats | None
    column_map: Floats | None
    Y: Any
    is_complete: bool


@estimator()
class _TwoSided(BaseEstimator):
    """Reading, prediction and ranking."""

    ranked: str = one_of(("rows", "both"), default="columns")
    row_kernel: Kernel = parameter(str, callable, default="linear")
    column_kernel: Kernel = parameter(str, callable, default="linear")
    row_kernel_params: Mapping[str, Any] | None = parameter(dict, None, default=None)
    column_kernel_params: Mapping[str, Any] | None = parameter(dict, None, default=None)
    pair_kernel: str = one_of(("symmetric", "antisymmetric"), default="kronecker")
    tol: float = parameter("positive", default=1e-8)

    def _side(self, name: str, kept: Any = None) -> Side:
        own = name if self.pair_kernel == "kronecker" else "row"
        return Side(name, getattr(self, f"{own}_kernel"), getattr(self, f"{own}_kernel_params") or {}, kept)

    def _read(self, rows: Any, columns: Any, Y: Any) -> _Problem:
        check_parameters(self)
        one_set = self.pair_kernel != "kronecker"
        if one_set != (columns is None):
            raise InvalidInputError(
                f"pair_kernel={self.pair_kernel!r} takes {'one set' if one_set else 'rows and columns'}.",
                "pass columns=None for one set, and features of both sides for pair_kernel='kronecker'.",
            )
        row_side, column_side = self._side("row"), self._side("column")
        left, row_map = row_side.fit(rows)
        right, column_map = (left, row_map) if one_set else column_side.fit(columns)
        self.row_fit_ = row_side.kept
        self.column_fit_ = row_side.kept if one_set else column_side.kept
        table = self._read_table(Y, (left.shape[0], right.shape[0]))
        is_complete = not one_set and not sp.issparse(table) and not np.isnan(table).any()
        return _Problem(left, right, row_map, column_map, table, is_complete)

    def _read_table(self, Y: Any, shape: tuple[int, int]) -> Any:
        table = read_matrix(Y, "Y", gaps=True)
        if table.shape != shape:
            raise InvalidInputError(
                f"Y has shape {table.shape}, but there are {shape[0]} rows and {shape[1]} columns.",
                "pass one row of Y per row, and one column of Y per column.",
            )
        edges = Edges.of(table, self.ranked)
        order = np.lexsort((edges.labels, edges.query))
        same = np.diff(edges.query[order]) == 0
        if not (same & (np.diff(edges.labels[order]) > 0)).any():
            unit = {"columns": "row", "rows": "column"}.get(self.ranked, "table")
            problem = f"No {unit} of Y has two different values that are not missing, so nothing is ranked."
            raise NoPairsError(problem, "check Y, or change ranked.")
        return table

    def _table(self, problem: _Problem, *, transposed: bool) -> Table:
        """Return a complete table in which columns are ranked; the transposed one exchanges the sides."""
        rows, columns, Y = problem.rows, problem.columns, problem.Y
        if transposed:
            rows, columns, Y = columns, rows, np.ascontiguousarray(Y.T)
        return Table(Y, columns, find_basis(rows, centred=False), one_ranking=self.ranked == "both")

    def _keep(self, problem: _Problem, theta: Floats) -> None:
        """Keep coefficients of features, or of kernel values with the training objects."""
        left = theta if problem.row_map is None else problem.row_map @ theta
        self.coef_ = np.asarray(left if problem.column_map is None else left @ problem.column_map.T)

    def predict(self, rows: MatrixLike, columns: MatrixLike | None = None) -> Floats:
        """Return the scores of known or new rows and columns, (rows, columns).

        Parameters
        ----------
        rows, columns : matrix
            Features as in `fit`; with kernel "precomputed", the kernel values between these and the training objects.
            For symmetric and antisymmetric kernels, `columns` may be left out: they are the rows then.
        """
        check_is_fitted(self)
        if columns is None:
            if self.pair_kernel == "kronecker":
                raise InvalidInputError("There are no columns.", "call predict(rows, columns).")
            columns = rows
        left = self._side("row", self.row_fit_).coordinates(rows, self.coef_.shape[0])
        right = self._side("column", self.column_fit_).coordinates(columns, self.coef_.shape[1])
        return np.asarray(left @ self.coef_ @ right.T)

    def rank(self, rows: MatrixLike, columns: MatrixLike | None = None) -> Ints:
        """Return ranks from 1, the best: inside each row, each column, or the whole table, as `ranked` says.

        Parameters
        ----------
        rows, columns : matrix
            As in `predict`.
        """
        scores = self.predict(rows, columns)
        row, column = np.indices(scores.shape)
        query = {"columns": row, "rows": column}.get(self.ranked, np.zeros_like(row))
        return np.asarray(ranks_inside(scores.ravel(), query.ravel()).reshape(scores.shape))

    def save(
        self, path: str | PathLike[str] | BinaryIO, *, notes: Mapping[str, object] | None = None
    ) -> None:
        """Write the fitted model to a file that `rankwise.load` reads; see `rankwise.save`.

        Parameters
        ----------
        path : path or binary stream
        notes : mapping, optional
            JSON values to keep beside the model.
        """
        save(self, path, notes=notes)


@estimator()
class TwoSidedRankRLS(_TwoSided):
    """Rank the columns of a table for each row, or the other way round, by features of both sides.

    The model is `KernelRankRLS` with the product of a kernel of rows and a kernel of columns, and each row of Y as a
    query. Targets are ranked for a drug, items for a user, labels for an object. Complete tables take two small
    decompositions. Tables with gaps take conjugate gradients on the known entries.

    Parameters
    ----------
    alpha : float, default=1.0
        The penalty; larger is simpler.
    ranked : {"columns", "rows", "both"}, default="columns"
        Rank columns for each row, rows for each column, or all entries in one ranking.
    row_kernel, column_kernel : str or callable, default="linear"
        A name of `sklearn.metrics.pairwise.pairwise_kernels`, "precomputed", or a function of two matrices that returns
        the kernel values between their rows. A linear kernel never makes a matrix of rows × rows where there are fewer
        features.
    row_kernel_params, column_kernel_params : dict, default=None
        Parameters of the kernels, such as ``{"gamma": 0.1}``.
    pair_kernel : {"kronecker", "symmetric", "antisymmetric"}, default="kronecker"
        For one set with itself (``columns=None``): symmetric scores, or scores with ``f(a, b) = -f(b, a)``, such as the
        margin by which a beats b, which may be intransitive. `row_kernel` is the kernel of the set.
    tol : float, default=1e-8
        The relative residual at which conjugate gradients stop.
    max_iter : int, default=500
        The most iterations of conjugate gradients.

    Attributes
    ----------
    coef_ : ndarray
        Coefficients of products of the two sides' features, or of their kernel values with the training objects.
    row_fit_, column_fit_ : matrix or None
        The training objects that a kernel compares new ones with.
    n_iter_ : int
        Iterations; 0 for complete tables.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import TwoSidedRankRLS
    >>> drugs, targets = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.array([[1.0], [2.0], [4.0]])
    >>> affinity = np.array([[1.0, 2.0, 4.0], [4.0, 2.0, 1.0], [2.0, 2.0, 2.0]])
    >>> model = TwoSidedRankRLS(0.1).fit(drugs, targets, affinity)
    >>> model.rank([[0.0, 2.0]], targets).tolist()
    [[3, 2, 1]]
    """

    alpha: float = parameter("positive", default=1.0, kw_only=False)
    max_iter: int = parameter("count", default=500)

    def fit(self, rows: MatrixLike, columns: MatrixLike | None, Y: MatrixLike) -> Self:
        """Learn from a table.

        Parameters
        ----------
        rows, columns : matrix
            Features of the rows and of the columns of Y, one object in each row of a matrix, or their kernel matrices.
            For symmetric and antisymmetric kernels, columns is None.
        Y : array or sparse matrix of shape (rows, columns)
            In an array NaN is a gap; a sparse matrix has its stored entries, and gaps elsewhere.
        """
        problem = self._read(rows, columns, Y)
        alpha = float(self.alpha)
        if problem.is_complete:
            transposed = self.ranked == "rows"
            theta = self._table(problem, transposed=transposed).model(alpha)
            self.n_iter_ = 0
            self._keep(problem, theta.T if transposed else theta)
            return self
        edges = Edges.of(problem.Y, self.ranked)
        run = Run(problem.rows, problem.columns, edges, self.pair_kernel, self.max_iter)
        with ShareProgress("fitting", f"{edges.labels.size:,} entries") as progress:
            for _ in run.steps(alpha, self.tol):
                progress.reach(run.n_steps / run.max_iter)
        if run.residual(alpha) > self.tol:
            say([Notice(f"{run.n_steps} iterations did not reach tol={self.tol:g}", "raise max_iter")])
        self.n_iter_ = run.n_steps
        self._keep(problem, run.model(alpha))
        return self


@estimator(TwoSidedRankRLS)
class TwoSidedRankRLSCV(_TwoSided):
    """`TwoSidedRankRLS` with alpha chosen on rows, columns or entries that the model did not see.

    For complete tables the hold-out is exact for every alpha and has no seed. Tables with gaps, and symmetric or
    antisymmetric kernels, are scored in folds, for every alpha after every iteration of one run in each fold.

    Parameters
    ----------
    alphas : array-like, default=2^-10, 2^-9, ..., 2^10
        The grid.
    cv : str or tuple, default="leave-row-out"
        "leave-row-out", "leave-column-out", "leave-entry-out" or "leave-both-out" (neither the row nor the column was
        seen). For tables with gaps these are 5 folds of the same units. Folds of one's own are ``("rows", 10)``,
        ``("columns", 10)``, ``("entries", 10)`` or ``("both", 3)``, which makes 3 × 3 folds.
    ranked : {"columns", "rows", "both"}, default="columns"
        As in `TwoSidedRankRLS`. A held-out row is a ranking of its columns. A held-out column or entry is compared with
        the other columns of each row, by the model that did not see it. With "rows" the roles are exchanged. With
        "both", a held-out row and a held-out column are rankings.
    scoring : str or Metric, default="pairwise_error"
        A metric of `rankwise.metrics`.
    row_kernel, column_kernel, row_kernel_params, column_kernel_params, pair_kernel, tol
        As in `TwoSidedRankRLS`.
    max_iter : int, default=100
        The most iterations of conjugate gradients.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the folds.

    Attributes
    ----------
    alpha_ : float
    alphas_ : ndarray of shape (alphas,)
    cv_ : str
        The hold-out in words.
    cv_errors_ : ndarray of shape (alphas,)
        The mean of `scoring` over held-out rankings; in folds, after the best number of iterations.
    best_score_ : float
    figures_ : ndarray
        The held-out value of each ranking at the chosen alpha: one per row, or per column; NaN where it is undefined.
    interval_ : tuple of float
        A 95 % interval of their mean.
    surface_ : ndarray of shape (alphas, iterations)
        In folds: the held-out value of every alpha after every iteration.
    best_iteration_ : int
        0 for the exact hold-out.
    coef_, row_fit_, column_fit_, n_iter_
        As in `TwoSidedRankRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import TwoSidedRankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> drugs, targets = rng.normal(size=(20, 3)), rng.normal(size=(15, 4))
    >>> affinity = drugs @ rng.normal(size=(3, 4)) @ targets.T + rng.normal(size=(20, 15))
    >>> model = TwoSidedRankRLSCV().fit(drugs, targets, affinity)
    >>> model.cv_, model.figures_.shape, bool(model.best_score_ < 0.25)
    ('exact leave-row-out over 20 rows', (20,), True)
    """

    alphas: ArrayLike = parameter(default=POWERS_OF_TWO, kw_only=False)
    cv: str | tuple[Any, ...] = parameter(StrOptions(set(_KINDS)), tuple, default="leave-row-out")
    scoring: str | Metric = parameter(str, Metric, default="pairwise_error")
    max_iter: int = parameter("count", default=100)
    random_state: RandomSource = parameter("random_state", default=0)

    def fit(self, rows: MatrixLike, columns: MatrixLike | None, Y: MatrixLike) -> Self:
        """Choose alpha on held-out predictions, and learn from the whole table.

        Parameters
        ----------
        rows, columns, Y
            As in `TwoSidedRankRLS.fit`.
        """
        problem = self._read(rows, columns, Y)
        self.alphas_ = check_alphas(self.alphas, positive=True)
        metric = get_metric(self.scoring)
        if problem.is_complete and isinstance(self.cv, str):
            self._fit_exact(problem, metric)
        else:
            self._fit_folds(problem, metric)
        known = self.figures_[~np.isnan(self.figures_)]
        mean = bootstrap_mean(known, bounds=metric.bounds)
        self.interval_ = (mean.low, mean.high)
        return self

    def _fit_exact(self, problem: _Problem, metric: Metric) -> None:
        cv = str(self.cv)
        # Tables rank columns for each row: rows that are ranked, or columns that are rankings, transpose them.
        transposed = self.ranked == "rows" or (self.ranked == "both" and cv == "leave-column-out")
        if transposed:
            cv = {"leave-row-out": "leave-column-out", "leave-column-out": "leave-row-out"}.get(cv, cv)
        table = self._table(problem, transposed=transposed)
        n, m = table.Y.shape
        n_alphas, folds = self.alphas_.size, f"use folds, such as cv=('{_KINDS[str(self.cv)]}', 5)."
        if cv != "leave-row-out":
            require_memory(8.0 * n * m * n_alphas, f"{self.cv} of {n_alphas} alphas", folds)
        if cv in {"leave-both-out", "leave-column-out"} and m > _LARGE:
            taken = m * (10.0 * m**3 + n_alphas * 4.0 * n * m * (n + m)) / _SPEED
            needs = f"{m:,} decompositions, about {taken:,.0f} s and {n * m * n_alphas / 2**27:.1f} GiB"
            say([Notice(f"{self.cv} takes {needs}", folds.removesuffix("."), UserWarning)])
        with ShareProgress("choosing alpha", str(self.cv)) as progress:
            values = held_out_values(table, cv, metric, self.alphas_, progress.reach)
        counted = ~np.isnan(values[0])
        self.cv_errors_ = values[:, counted].mean(axis=1)
        unit = "columns" if transposed else "rows"
        self.cv_ = f"exact {self.cv} over {int(counted.sum())} {unit}"
        place = self._best(self.cv_errors_, metric)
        self.alpha_, self.best_iteration_, self.n_iter_ = float(self.alphas_[place]), 0, 0
        self.best_score_, self.figures_ = float(self.cv_errors_[place]), values[place]
        theta = table.model(self.alpha_)
        self._keep(problem, theta.T if transposed else theta)

    def _fit_folds(self, problem: _Problem, metric: Metric) -> None:
        held_out, n_folds = self._folds()
        edges = Edges.of(problem.Y, self.ranked)
        one_set = self.pair_kernel != "kronecker"
        splits = make_folds(edges, held_out, n_folds, problem.Y.shape, self.random_state, one_set=one_set)
        by_column = self.ranked == "rows" or (self.ranked == "both" and held_out == "columns")
        query = edges.columns if by_column else edges.rows
        settings = (self.pair_kernel, int(self.max_iter), float(self.tol))
        with ShareProgress("choosing alpha", f"{len(splits)} folds") as progress:
            table, folds = surface(
                problem[:2], edges, splits, query, metric, self.alphas_, settings, progress.reach
            )
        best = table.max(axis=1) if metric.greater_is_better else table.min(axis=1)
        place = self._best(best, metric)
        step = int(np.flatnonzero(np.abs(table[place] - best[place]) <= _EQUAL)[0]) + 1
        self.surface_, self.cv_errors_, self.best_score_ = table, best, float(best[place])
        self.alpha_, self.best_iteration_ = float(self.alphas_[place]), step
        self.cv_ = f"{len(splits)} folds of {held_out}"
        self.figures_ = figures(folds, problem.Y.shape[int(by_column)], self.alpha_, step)
        run = Run(problem.rows, problem.columns, edges, self.pair_kernel, step)
        list(run.steps(self.alpha_, 0.0))
        self.n_iter_ = run.n_steps
        self._keep(problem, run.model(self.alpha_))

    def _folds(self) -> tuple[str, int]:
        """Return the units that folds leave out, and the number of folds."""
        if isinstance(self.cv, str):
            return _KINDS[self.cv], 3 if self.cv == "leave-both-out" else 5
        is_pair = len(self.cv) == 2 and self.cv[0] in _KINDS.values() and isinstance(self.cv[1], Integral)
        if not is_pair or self.cv[1] < 2:
            raise InvalidInputError(f"cv={self.cv!r} is unknown.", "use 'leave-row-out', or ('rows', 5).")
        return self.cv[0], int(self.cv[1])

    def _best(self, values: Floats, metric: Metric) -> int:
        """Return the place of the best value; of equally good ones the last, whose alpha is the largest."""
        errors = -values if metric.greater_is_better else values
        return int(np.flatnonzero(errors <= errors.min() + _EQUAL)[-1])
