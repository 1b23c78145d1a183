"""The score of a whole procedure, choice of its regularisation included: outer folds that take no part in it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from sklearn.base import clone

from rankwise.arrays import Floats, Matrix, RandomSource
from rankwise.data.queries import encode_queries
from rankwise.data.validation import read_seed
from rankwise.exceptions import InvalidInputError, MemoryLimitError
from rankwise.metrics import Metric
from rankwise.problems.training import PairData, TrainingData, TrainingProblem
from rankwise.runtime.memory import MemoryBudget
from rankwise.selection.folds import assigner_of

__all__ = ["check_can_nest", "nested_score"]

_OUTER_FOLDS = 5


def check_can_nest(data: TrainingProblem, eval_set: object) -> None:
    """Raise where outer folds cannot be made."""
    design = data.design
    if isinstance(data, PairData):
        raise InvalidInputError("nested is for labelled rows.", "use nested=False with fit_pairs.")
    if eval_set is not None or not design.has_rows:
        raise InvalidInputError(
            "nested makes outer folds of the rows of X, so it takes neither an eval_set nor a LinearOperator.",
            "use nested=False and score the model on rows of its own.",
        )
    if design.is_on_disk:
        needed = design.nnz * (design.dtype.itemsize + 4)
        if not MemoryBudget().allows(needed):
            raise MemoryLimitError(
                f"nested trains on copies of most of X, which take up to {needed / 2**30:.1f} GiB of memory.",
                "use nested=False, and score the model on rows of its own.",
            )


class _Chooser(Protocol):
    """An estimator that chooses, with the parameters that nesting looks at."""

    nested: bool | int
    random_state: RandomSource


def nested_score(
    estimator: _Chooser, X: Matrix, data: TrainingData, metric: Metric, *, is_kernel: bool = False
) -> float | Floats:
    """Choose and fit on all but one outer fold, and score on that fold; one value per output.

    X is that of the rows of `data`; with `is_kernel` the kernel between them.
    """
    queries, assigner = data.queries, assigner_of(data)
    n_outer = min(assigner.n_units, _OUTER_FOLDS if estimator.nested is True else int(estimator.nested))
    fold = assigner.folds(n_outer, read_seed(estimator.random_state) + 1)
    inner = clone(estimator).set_params(nested=False)
    scores = np.empty(data.y.shape)
    per_row = None if data.importance is None else data.importance[queries.codes]
    for number in range(n_outer):
        test, train = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
        model = inner.fit(
            X[np.ix_(train, train)] if is_kernel else X[train],
            data.y[train],
            queries.codes[train] if len(queries) > 1 else None,
            None if data.row_weight is None else data.row_weight[train],
            None if per_row is None else per_row[train],
        )
        scores[test] = model.predict(X[np.ix_(test, train)] if is_kernel else X[test])
    rows = np.flatnonzero(fold >= 0)
    groups = encode_queries((queries.codes if assigner.unit == "queries" else fold)[rows])
    own = None if data.row_weight is None or not metric.takes_weights else data.row_weight[rows]
    values = [
        metric.prepare(labels[rows], groups, sample_weight=own)(column[rows])
        for labels, column in zip(data.columns, scores.reshape(queries.n_rows, -1).T, strict=True)
    ]
    return np.array(values) if data.several_outputs else float(values[0])
