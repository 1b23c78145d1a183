"""Folds of whole queries, and of listed pairs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from numbers import Integral
from typing import ClassVar

import numpy as np
import sklearn
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupKFold

from rankwise.arrays import AnyArray, ArrayLike, Bools, Labels, MatrixLike, RandomSource, Rows
from rankwise.data.containers import as_array
from rankwise.data.validation import check_choice, check_pairs, check_qid, read_seed
from rankwise.exceptions import InvalidInputError, MissingQueriesError

ROUTING_HINT = (
    "pass qid= and call sklearn.set_config(enable_metadata_routing=True) first (scikit-learn drops qid "
    "silently otherwise), or use rankwise.model_selection.cross_validate_ranker"
)


class QueryKFold(GroupKFold):  # type: ignore[misc]
    """Split into folds of whole queries.

    A `GroupKFold` whose groups are the query ids: under metadata routing one ``qid=`` serves the estimator,
    the scorer and this splitter. Ids may be anything hashable.

    Without routing, scikit-learn's ``cross_val_score(..., groups=qid)`` and its relatives hand the ids to the splitter
    alone: a ranker is then fitted and scored without them, as if all rows were one ranking. This splitter warns of
    that; scikit-learn's own cannot.

    Parameters
    ----------
    n_splits : int, default=5
    shuffle : bool, default=False
        Whether queries are assigned at random instead of by size.
    random_state : int, default=None

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.model_selection import QueryKFold
    >>> qid = np.array(["a", "a", "b", "b", "c", "c"])
    >>> for train, test in QueryKFold(3).split(np.zeros((6, 1)), groups=qid):
    ...     print(sorted(set(qid[train].tolist())), sorted(set(qid[test].tolist())))
    ['a', 'b'] ['c']
    ['a', 'c'] ['b']
    ['b', 'c'] ['a']
    """

    __metadata_request__split: ClassVar[dict[str, str]] = {"groups": "qid"}

    def split(
        self, X: MatrixLike, y: Labels | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[Rows, Rows]]:
        """Return an iterator over training and test rows, with every query on one side.

        Parameters
        ----------
        X : array-like of shape (rows, features)
        y : ignored
        groups : array-like of shape (rows,)
            The query ids.
        """
        if groups is None:
            raise MissingQueriesError("QueryKFold got no query ids.", f"{ROUTING_HINT}.")
        # Who calls is all that can be known here: the estimator is out of sight, and so are the ids to an estimator.
        caller = str(sys._getframe(1).f_globals.get("__name__", ""))  # noqa: SLF001
        if caller.startswith("sklearn.") and not sklearn.get_config()["enable_metadata_routing"]:
            warnings.warn(
                "scikit-learn passes groups= to the splitter alone: rankers are fitted and scored without query ids, "
                f"as if all rows were one ranking. Hint: {ROUTING_HINT}.",
                UserWarning,
                stacklevel=2,
            )
        rows = X if hasattr(X, "shape") else as_array("X", X)
        n_rows = rows.shape[0] if rows.shape else 0
        queries = check_qid(groups, n_rows, name="groups")
        if len(queries) < self.n_splits:
            raise InvalidInputError(
                f"{len(queries)} queries cannot make {self.n_splits} folds.",
                f"use n_splits <= {len(queries)}."
                if len(queries) > 1
                else "with one query, split rows with sklearn.model_selection.KFold.",
            )
        folds: Iterator[tuple[Rows, Rows]] = super().split(np.zeros((n_rows, 1)), None, queries.codes)
        return folds


class PreferenceKFold(BaseEstimator):  # type: ignore[misc]
    """Split a list of pairs into folds whose test pairs are new to training.

    Parameters
    ----------
    n_splits : int, default=5
    by : {"pairs", "items", "components", "groups"}, default="pairs"
        The unit that is never split between training and test:

        - "pairs": all comparisons of the same two items. The items themselves are on both sides: it estimates how well
          new comparisons of known items are predicted.
        - "items": the items. They are assigned to folds; a fold tests the pairs inside it and trains on the pairs that
          have no item in it. Pairs between folds are in neither, so that only about one pair in `n_splits` is ever
          tested: it estimates how well comparisons of new items are predicted.
        - "components": connected components of the pairs. No pair is lost, but there must be enough components, as with
          answers that are compared only with other answers to the same prompt.
        - "groups": the groups given to `split`, such as prompts or annotators.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the assignment.

    Examples
    --------
    >>> from rankwise.model_selection import PreferenceKFold
    >>> pairs = [[0, 1], [1, 0], [2, 3], [4, 2], [5, 6]]
    >>> for train, test in PreferenceKFold(3, by="components").split(pairs):
    ...     print(train, test)
    [2 3 4] [0 1]
    [0 1 4] [2 3]
    [0 1 2 3] [4]
    """

    def __init__(self, n_splits: int = 5, *, by: str = "pairs", random_state: RandomSource = 0) -> None:
        self.n_splits = n_splits
        self.by = by
        self.random_state = random_state

    def get_n_splits(
        self, X: MatrixLike | None = None, y: Labels | None = None, groups: ArrayLike | None = None
    ) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: MatrixLike, y: Labels | None = None, groups: ArrayLike | None = None
    ) -> Iterator[tuple[Rows, Rows]]:
        """Yield training and test pairs, as positions in the list.

        Parameters
        ----------
        X : array-like of int of shape (pairs, 2)
            The list of pairs: row numbers of winner and loser.
        y : ignored
        groups : array-like of shape (pairs,), optional
            For ``by="groups"``; anything hashable.
        """
        check_choice("by", self.by, ("pairs", "items", "components", "groups"))
        if not isinstance(self.n_splits, Integral) or self.n_splits < 2:
            raise InvalidInputError(f"n_splits={self.n_splits!r} makes no folds.", "use 2 or more.")
        edges = as_array("pairs", X)
        are_numbers = edges.dtype.kind in "iuf" and np.isfinite(edges).all()
        preferences = check_pairs(edges, int(edges.max(initial=0)) + 1 if are_numbers else 0)
        ends = np.column_stack([preferences.winner, preferences.loser])
        items, ends = np.unique(ends, return_inverse=True)
        ends = ends.reshape(-1, 2)
        if self.by == "items":
            fold_of_item = self._assign(np.ones(items.size), "items")
            fold = fold_of_item[ends]
            for c in range(self.n_splits):
                inside = fold == c
                yield self._sides(~inside.any(axis=1), inside.all(axis=1))
            return
        unit = self._units(ends, items.size, groups)
        fold_of_pair = self._assign(np.bincount(unit), self.by)[unit]
        for c in range(self.n_splits):
            yield self._sides(fold_of_pair != c, fold_of_pair == c)

    def _units(self, ends: Rows, n_items: int, groups: ArrayLike | None) -> Rows:
        """Return the number of the unit that each pair belongs to."""
        if self.by == "groups":
            if groups is None:
                raise InvalidInputError("by='groups' needs groups.", "pass groups= to split.")
            return check_qid(groups, ends.shape[0], name="groups", what="group", beside="pairs").codes
        if self.by == "components":
            edges = coo_array((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(n_items, n_items))
            component: Rows = connected_components(edges, directed=False)[1][ends[:, 0]].astype(np.int64)
            return component
        low, high = ends.min(axis=1), ends.max(axis=1)
        same_two: Rows = np.unique(low * n_items + high, return_inverse=True)[1].reshape(-1)
        return same_two

    def _assign(self, sizes: AnyArray, what: str) -> Rows:
        """Assign units to folds, the largest first, each to the fold that has least; equals in random order."""
        if sizes.size < self.n_splits:
            raise InvalidInputError(
                f"{sizes.size} {what} cannot make {self.n_splits} folds.",
                f"use n_splits <= {sizes.size}." if sizes.size > 1 else "split by='items' or by='pairs'.",
            )
        order = np.random.default_rng(read_seed(self.random_state)).permutation(sizes.size)
        order = order[np.argsort(-sizes[order], kind="stable")]
        fold = np.empty(sizes.size, dtype=np.int64)
        load = np.zeros(self.n_splits)
        for unit in order:
            fold[unit] = least = load.argmin()
            load[least] += sizes[unit]
        return fold

    def _sides(self, train: Bools, test: Bools) -> tuple[Rows, Rows]:
        if not train.any() or not test.any():
            raise InvalidInputError(
                f"A fold has {int(test.sum())} pairs to test and {int(train.sum())} to train on.",
                "use fewer folds, or split by='pairs'.",
            )
        return np.flatnonzero(train), np.flatnonzero(test)
