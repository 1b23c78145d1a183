"""What the metrics of the top of a list share: options, conventions and the evaluator."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rankwise.data.validation import check_choice
from rankwise.exceptions import Change, InvalidInputError, UndefinedMetricError
from rankwise.metrics.metric import Doubles, Evaluator, Metric

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rankwise.data.queries import Queries

__all__ = ["LETOR", "TopEvaluator", "TopMetric", "relevance"]

# Both scripts of the LETOR benchmarks agree on these; they differ in queries with fewer than k rows.
LETOR: Mapping[str, Mapping[str, str]] = {
    name: {"gain": "exp", "discount": "letor", "ties": "stable", "empty": "zero"}
    for name in ("letor3", "letor4")
}

_TIES = {
    "average": "tied scores averaged over all orders",
    "stable": "tied scores keep the order of the rows",
}
_EMPTY = {
    "skip": "queries without a relevant row skipped",
    "zero": "queries without a relevant row count 0",
    "one": "queries without a relevant row count 1",
}
_EMPTY_VALUE = {"skip": np.nan, "zero": 0.0, "one": 1.0}


class TopEvaluator(Evaluator):
    """Calls a compiled metric and divides by what depends on the labels alone.

    Parameters
    ----------
    metric : TopMetric
        The options.
    kernel : callable
        The compiled metric.
    values : (rows,) float64
        What each row is worth, in grouped order.
    denominators : (queries,) float64
        What the kernel's results are divided by.
    relevant : (queries,) bool
        Whether a query has a row that is worth something.
    zeroed : (queries,) bool, optional
        Queries that score 0 whatever the scores.
    """

    def __init__(
        self,
        metric: TopMetric,
        kernel: Callable[..., None],
        values: Doubles,
        denominators: Doubles,
        *,
        relevant: npt.NDArray[np.bool_],
        queries: Queries,
        n_threads: int,
        discount_sums: Doubles | None = None,
        zeroed: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        counted = relevant if metric.empty == "skip" else np.ones(len(queries), dtype=np.bool_)
        if not counted.any():
            raise UndefinedMetricError(
                f"no query has a relevant row, so {metric.name} is undefined.",
                "check y_true, or pass empty='zero' to count such queries as 0.",
                Change("y_true"),
            )
        super().__init__(queries, counted, n_threads)
        self._kernel, self._item_values = kernel, values
        self._longest = int(queries.sizes.max())
        self._k = self._longest if metric.k is None else min(metric.k, self._longest)
        self._stable = metric.ties == "stable"
        self._discount_sums = np.empty(0) if discount_sums is None else discount_sums
        self._denominators = np.where(relevant, denominators, 1.0)
        # The value of queries whose value the scores cannot change; NaN for the others.
        self._fixed = np.where(relevant, np.nan, _EMPTY_VALUE[metric.empty])
        if zeroed is not None:
            self._fixed[zeroed] = 0.0

    def _values(self, block: Doubles) -> Doubles:
        out = np.empty((block.shape[1], len(self.queries)))
        rows, offsets = self.queries.order, self.queries.offsets
        self._kernel(
            rows,
            offsets,
            block,
            self._item_values,
            self._discount_sums,
            self._k,
            self._stable,
            out,
            self._threads(block),
        )
        out /= self._denominators
        return np.where(np.isnan(self._fixed), out, self._fixed)


@dataclass(frozen=True, kw_only=True)
class TopMetric(Metric):
    """A metric that looks at the first k rows of a list."""

    k: int | None = None
    ties: str = "average"
    empty: str = "skip"
    convention: str | None = None

    def __post_init__(self) -> None:
        if self.k is not None and (
            isinstance(self.k, bool) or not isinstance(self.k, (int, np.integer)) or not 1 <= self.k < 2**63
        ):
            raise InvalidInputError(
                f"k={self.k!r}: the cutoff must be at least 1.",
                "pass a whole number, or None for the whole list.",
            )
        if self.convention is not None:
            self._apply(check_choice("convention", self.convention, LETOR))
        check_choice("ties", self.ties, _TIES)
        check_choice("empty", self.empty, _EMPTY)

    def _apply(self, convention: str) -> None:
        for field in fields(self):
            wanted = LETOR[convention].get(field.name)
            given = getattr(self, field.name)
            if wanted is None or given == wanted:
                continue
            if given != field.default:
                raise InvalidInputError(
                    f"convention={convention!r} means {field.name}={wanted!r}, not {given!r}.",
                    f"leave {field.name} out, or leave the convention out and set every option.",
                )
            object.__setattr__(self, field.name, wanted)

    def _tail(self) -> str:
        convention = "" if self.convention is None else f" (the script of {self.convention.upper()})"
        return f"{_TIES[self.ties]}; {_EMPTY[self.empty]}; mean over queries{convention}"

    def _title(self, name: str) -> str:
        return name if self.k is None else f"{name}@{self.k}"

    def _shorter_than_k(self, queries: Queries) -> npt.NDArray[np.bool_]:
        return queries.sizes < (self.k or 0)


def relevance(labels: Doubles, threshold: float, queries: Queries) -> tuple[Doubles, Doubles]:
    """Return 1 for relevant rows in grouped order, and the number of relevant rows of each query."""
    values = queries.group(labels >= threshold).astype(np.float64)
    return values, np.add.reduceat(values, queries.offsets[:-1])
