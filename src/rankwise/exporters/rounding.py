"""How close single precision comes to changing an order, where an engine computes in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.arrays import ArrayLike, Floats, MatrixLike, shape_of
from rankwise.data.containers import as_rows
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.exporters.engines import is_linear, single_scores
from rankwise.exporters.exporting import limits_of
from rankwise.exporters.targets import check_exportable
from rankwise.formula.folding import folded
from rankwise.formula.reading import formula_of

__all__ = ["SinglePrecision", "single_precision"]


@dataclass(frozen=True)
class SinglePrecision:
    """What became of neighbours in the order of a sample.

    Attributes
    ----------
    n_neighbours : int
        Rows of a query that stand next to each other in its order and whose scores differ.
    n_swapped, n_tied : int
        Those that single precision puts the other way round, or no longer tells apart.
    largest_error : float
        Of a difference between neighbours.
    closest : float
        The smallest difference between neighbours, as a multiple of its error: below 1 an order changes.
    by_trees : bool
        Whether the model becomes trees, whose steps are most of the error.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(60, 2)), np.arange(60) // 6
    >>> model = rankwise.RankRLS().fit(X, X[:, 0] - 2 * X[:, 1], qid=qid)
    >>> from rankwise.exporters import single_precision
    >>> found = single_precision(model, X, qid)
    >>> found.n_neighbours, bool(found.largest_error < 1e-5)
    (50, True)
    """

    n_neighbours: int
    n_swapped: int
    n_tied: int
    largest_error: float
    closest: float
    by_trees: bool = False

    def describe(self) -> str:
        """Say it in a sentence."""
        changed = (
            "no two of them change places"
            if not self.n_swapped + self.n_tied
            else f"{self.n_swapped:,} change places and {self.n_tied:,} become equal"
        )
        how = "by the steps of trees" if self.by_trees else "in single precision"
        return (
            f"{how}, of {self.n_neighbours:,} neighbours {changed}; their differences are off by at most "
            f"{self.largest_error:.2g}; the closest two are {self.closest:.3g} times as far apart as they are off"
        )


def single_precision(
    model: BaseEstimator,
    X: MatrixLike,
    qid: ArrayLike | None = None,
    *,
    error: float | None = None,
    bounds: Mapping[str, tuple[float, float]] | None = None,
) -> SinglePrecision:
    """Compare the scores of a model with those that Solr and the plug-ins compute from floats, by weights or by trees.

    Parameters
    ----------
    model : estimator or sklearn.pipeline.Pipeline
        What becomes weights or trees, with columns that are not scaled inside queries.
    X : array-like of shape (rows, columns)
        A sample of the rows that will be ranked.
    qid : array-like of shape (rows,), optional
    error, bounds
        Of trees, as in `rankwise.export`.

    Examples
    --------
    >>> import numpy as np
    >>> import rankwise
    >>> rng = np.random.default_rng(0)
    >>> X, qid = rng.normal(size=(60, 2)), np.arange(60) // 6
    >>> model = rankwise.RankRLS().fit(X, X[:, 0] - 2 * X[:, 1], qid=qid)
    >>> from rankwise.exporters import single_precision
    >>> found = single_precision(model, X, qid)
    >>> found.n_swapped, bool(found.closest > 1)
    (0, True)
    """
    formula = formula_of(model)
    limits = limits_of(formula, bounds)
    check_exportable(formula, "solr", whole_query=False, filled=True, bounded=bool(limits))
    formula, X = folded(formula), as_rows("X", X)
    n_rows = shape_of(X)[0]
    if shape_of(X)[1] != len(formula.names):
        raise InvalidInputError(
            f"X has {shape_of(X)[1]} columns, and the model takes {len(formula.names)}.",
            "pass rows with the columns of the fit.",
        )
    if n_rows == 0:
        raise InvalidInputError("The sample has no rows.", "pass rows that will be ranked.")
    queries = check_qid(qid, n_rows)
    exact, single = formula.evaluate(X, qid), single_scores(formula, X, error, limits)
    order = np.lexsort((exact, queries.codes))
    together = np.diff(queries.codes[order]) == 0
    gap: Floats = np.diff(exact[order])[together]
    found: Floats = np.diff(single[order])[together]
    differ = gap > 0
    gap, found = gap[differ], found[differ]
    off = np.abs(found - gap)
    ratio = np.divide(gap, off, out=np.full_like(gap, np.inf), where=off > 0)
    return SinglePrecision(
        int(gap.size),
        int((found < 0).sum()),
        int((found == 0).sum()),
        float(off.max(initial=0.0)),
        float(ratio.min(initial=np.inf)),
        not is_linear(formula),
    )
