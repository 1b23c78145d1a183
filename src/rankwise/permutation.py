"""Whether a ranker has learned anything: its cross-validated error against that of permuted labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from rankwise.arrays import ArrayLike, Floats, Ints, MatrixLike, RandomSource, is_sparse, shape_of
from rankwise.data.containers import as_rows
from rankwise.data.queries import Queries
from rankwise.data.validation import check_count, check_numbers, check_qid, read_seed
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.model_selection import fit_ranker, predict_scores
from rankwise.selection.result import resolve_scoring

__all__ = ["PermutationTest", "permutation_test"]

_FOLDS = 5


@dataclass(frozen=True)
class PermutationTest:
    """The outcome of `permutation_test`.

    Attributes
    ----------
    statistic : float
        The cross-validated value of the metric for the labels as they are.
    null_distribution : (permutations,) float64
        The same for permuted labels.
    p_value : float
        The share of all outcomes, the true one included, that are at least as good as the true one.
    metric : str

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLS
    >>> from rankwise.permutation import permutation_test
    >>> X = np.random.default_rng(0).normal(size=(30, 1))
    >>> found = permutation_test(RankRLS(), X, X[:, 0], n_permutations=20)
    >>> found.null_distribution.shape, found.p_value == 1 / 21
    ((20,), True)
    """

    statistic: float
    null_distribution: Floats
    p_value: float
    metric: str


def permutation_test(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: npt.ArrayLike,
    qid: ArrayLike | None = None,
    *,
    n_permutations: int = 1000,
    scoring: str | Metric = "pairwise_error",
    random_state: RandomSource = 0,
) -> PermutationTest:
    """Test whether a ranker finds more than chance, by permuting labels inside queries.

    Every permutation is one more output of a single fit: rankers whose graphs do not depend on the labels (ties
    included, magnitudes) share one decomposition among all of them, and the others decompose once a permutation.
    Rankers of one output, such as `AdditiveRanker`, are fitted again for each.

    Parameters
    ----------
    estimator : ranker or sklearn.pipeline.Pipeline
        One that chooses alpha (and has `cv_errors_`) chooses again for each permutation, and its best cross-validated
        value is the statistic. Any other is cross-validated on 5 folds of queries, or of rows.
    X, y, qid
        As for the estimator's `fit`; y has one column.
    n_permutations : int, default=1000
    scoring : str or Metric, default="pairwise_error"
        Not used where the estimator chooses alpha by its own `scoring`.
    random_state : int, RandomState, Generator or None, default=0

    Returns
    -------
    PermutationTest

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import KernelRankRLSCV
    >>> from rankwise.permutation import permutation_test
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 2))
    >>> result = permutation_test(KernelRankRLSCV("linear"), X, X[:, 0], n_permutations=50)
    >>> round(result.p_value, 3)
    0.02
    """
    X = as_rows("X", X)
    labels = check_numbers("y", y, shape_of(X)[0])
    queries = check_qid(qid, labels.size)
    check_count("n_permutations", n_permutations, optional=False)
    if isinstance(estimator, type) or not hasattr(estimator, "get_params") or not hasattr(estimator, "fit"):
        raise InvalidInputError(f"{estimator!r} is not an estimator.", "pass a ranker, such as RankRLS().")
    parameters = estimator.get_params()
    # AutoRanker has alphas too, but what it chooses among has no table of errors, and its metric is up to the labels.
    chooses_alpha = "alphas" in parameters and "methods" not in parameters
    loss = getattr(estimator, "loss", None)
    metric = resolve_scoring(estimator.scoring, loss) if chooses_alpha else get_metric(scoring)
    seed = read_seed(random_state)
    outputs = _permuted(labels, queries, int(n_permutations), seed)
    if chooses_alpha:
        values = _chosen_values(estimator, X, outputs, qid, metric)
    else:
        values = _fold_values(estimator, X, outputs, queries, metric, seed)
    better = np.greater_equal if metric.greater_is_better else np.less_equal
    as_good = better(values[1:], values[0])
    p_value = (1 + int(as_good.sum())) / (1 + n_permutations)
    return PermutationTest(float(values[0]), values[1:], p_value, metric.name)


def _permuted(labels: Floats, queries: Queries, n_permutations: int, seed: int) -> Floats:
    """Return the labels as they are, and permuted inside queries, as columns."""
    rng = np.random.default_rng(seed)
    outputs = np.empty((labels.size, n_permutations + 1))
    outputs[:, 0] = labels
    for column in range(1, n_permutations + 1):
        shuffled = np.lexsort((rng.random(labels.size), queries.codes))
        outputs[queries.order, column] = labels[shuffled]
    return outputs


def _chosen_values(
    estimator: BaseEstimator, X: MatrixLike, outputs: Floats, qid: ArrayLike | None, metric: Metric
) -> Floats:
    model = clone(estimator)
    if not _takes_outputs(model):
        return np.array([clone(model).fit(X, labels, qid=qid).best_score_ for labels in outputs.T])
    table = model.fit(X, outputs, qid=qid).cv_errors_
    table = table.reshape(-1, outputs.shape[1])  # gammas and alphas together
    best = np.nanmax if metric.greater_is_better else np.nanmin  # NaN: not tried
    return np.asarray(best(table, axis=0))


def _fold_values(
    estimator: BaseEstimator, X: MatrixLike, outputs: Floats, queries: Queries, metric: Metric, seed: int
) -> Floats:
    X = X.tocsr() if is_sparse(X) else X if hasattr(X, "iloc") else np.asarray(X)
    unit = queries.codes if len(queries) > 1 else np.arange(queries.n_rows)
    n_units = int(unit.max()) + 1
    fold = np.random.default_rng(seed).permutation(n_units)[unit] % min(_FOLDS, n_units)
    scores = np.empty_like(outputs)
    is_pairwise = bool(get_tags(estimator).input_tags.pairwise)
    at_once = [slice(None)] if _takes_outputs(estimator) else list(range(outputs.shape[1]))
    for number in range(int(fold.max()) + 1):
        test, train = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        others = train if is_pairwise else None
        known, asked = (queries.codes[rows] if len(queries) > 1 else None for rows in (train, test))
        for columns in at_once:
            model = fit_ranker(clone(estimator), _rows(X, train, others), outputs[train][:, columns], known)
            scores[test, columns] = predict_scores(model, _rows(X, test, others), asked)
    groups = queries if len(queries) > 1 else Queries(fold.astype(np.int64), np.arange(int(fold.max()) + 1))
    return np.array([metric.prepare(outputs[:, c], groups)(scores[:, c]) for c in range(outputs.shape[1])])


def _takes_outputs(estimator: BaseEstimator) -> bool:
    """Tell whether a ranker takes labels of several columns."""
    return bool(get_tags(estimator).target_tags.multi_output)


def _rows(X: Any, rows: Ints, columns: Ints | None) -> Any:
    """Return some rows; of a kernel between all rows, the columns of some."""
    if columns is not None:
        return X[np.ix_(rows, columns)]
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
