"""Interpretation of `cv`: numbers of folds, names, splitters and lists of splits become a plan of held-out sets.

A plan holds out rows that have labels, or listed pairs, as the pairs of the problem say; it is the same for every
estimator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from rankwise.arrays import Bools, Ints
from rankwise.data.queries import encode_queries
from rankwise.exceptions import InvalidInputError, MissingQueriesError
from rankwise.fitting.notices import Notice
from rankwise.holdout.leave_pair_out import refusal
from rankwise.metrics import Metric
from rankwise.pairs.pairs import Pairs
from rankwise.pairs.plan import Plan, Units
from rankwise.runtime.progress import in_words

_FOLDS_IN_CLOSED_FORM = 10  # there they cost nothing
_PAIR_METRICS = {"pairwise_error", "concordance", "auc"}
# Pairs times alphas: 300,000 rows with few columns and 21 alphas took 40 minutes.
_PAIRS_PER_SECOND = 4e8
_MANY_PAIRS = 1e10  # from so many on it is worth a word beforehand
# Held-out rows or pairs that score each iteration at most; whole queries of them. On 100,000 rows × 50 columns in 1,000
# queries a choice by 20,000 rows takes 0.4 s of processor time, by all of them 1.0 s, and both models have the same
# error on other rows to five digits; by 2,000 rows it is up to 9e-5 larger.
SCORED_ENTRIES = 20_000
_MANY_ROWS = 2000  # up to so many rows "auto" holds out every pair of one ranking
EXACT_CV = ("leave-query-out", "leave-pair-out")
NAMED_CV = ("auto", "time", *EXACT_CV)
FOLDS = 5  # what "auto" makes where it leaves out neither queries nor pairs
# How many of them score candidates of a long search, by the number of rows; with fewer queries than this, all.
_SCORED_FOLDS = ((10_000, 1), (3_000, 2), (1_000, 3))
_FEW_QUERIES = 100


class Exact(NamedTuple):
    """Exact hold-out from one decomposition: its size, the alphas, and whether it is made again for some folds."""

    rank: int
    n_alphas: int
    refits: bool
    is_pooled: bool = False  # whether rows of different folds are compared, so that a fold may hold one row


def plan_of(
    cv: object,
    pairs: Pairs,
    metric: Metric,
    seed: int,
    *,
    limit: int | None = None,
    exact: Exact | None = None,
    whole_components: bool = False,
) -> Plan:
    """Read `cv`.

    Parameters
    ----------
    limit : int or None
        By how many held-out rows or pairs folds are scored at most; None for all.
    exact : Exact or None
        The decomposition that "auto" and numbers of folds are to be exact by; None for methods that only iterate.
    whole_components : bool
        Whether "auto" divides no connected component of listed pairs either, where there are several.
    """
    if is_exact_name(cv) and exact is None:
        raise InvalidInputError(
            f"cv={cv!r} takes a decomposition, and this solver only multiplies.",
            "use cv=5 or an eval_set, or solver='eigen' where there is one.",
        )
    splitter, why_not = as_splitter(cv), ""
    units = None
    if splitter is not None:
        plan = _of_splitter(splitter, pairs)
    else:
        units = pairs.units(cv, whole_components=whole_components)
        if units is not None and isinstance(cv, str) and cv == "auto":
            cv, why_not = _by_default(pairs, units, metric, exact)
            units = None if cv == "leave-pair-out" else units
        if isinstance(cv, str) and exact is not None:
            return _one_at_a_time(cv, pairs, units, metric, exact)
        assert units is not None
        n_folds = count_folds(cv, units.n_units, units.name)
        together = ", equal ones together" if units.are_joined else ""
        words = f"{n_folds} folds of {units.name}{together}{why_not}"
        plan = Plan.of_folds(units.folds(n_folds, seed), words)
    if exact is not None and exact.refits and plan.repeats:
        raise InvalidInputError(
            f"cv={splitter} tests the same {pairs.entries} several times, and a decomposition scores each once.",
            "use a splitter whose test sets do not overlap, such as QueryKFold, or solver='cg'.",
        )
    has_closed_form = pairs.has_closed_form or pairs.exact_method(plan) == "units"
    is_exact = exact is not None and (exact.refits or has_closed_form) and not plan.repeats
    plan = replace(plan, is_scored=plan.is_scored & _weighs(pairs, plan.held), is_exact=is_exact)
    n_scored = int(plan.is_scored.sum())
    if is_exact or limit is None or n_scored <= limit:
        return plan
    units = pairs.units() if units is None else units
    assert units is not None
    is_scored = plan.is_scored & units.sample(limit, seed + 1)[plan.held]
    description = f"{plan.description}, scored by {int(is_scored.sum())} of {n_scored} {pairs.entries}"
    return replace(plan, is_scored=is_scored, description=description)


def scored_folds(cv: object, plan: Plan, pairs: Pairs) -> tuple[int, str]:
    """Return how many folds score the candidates of a long search, and a description of the plan.

    The large folds that "auto" makes tell candidates apart, and one of them is enough.
    """
    n_scored, n_queries = plan.n_folds, len(pairs.queries)
    if isinstance(cv, str) and cv == "auto" and not 1 < n_queries < _FEW_QUERIES:
        n_scored = next((n for least, n in _SCORED_FOLDS if pairs.n_rows >= least), n_scored)
    if plan.has_eval_set or n_scored >= plan.n_folds:
        return plan.n_folds, plan.description
    return n_scored, f"{n_scored} of {plan.description}"


def notices_of_time(plan: Plan, pairs: Pairs, exact: Exact | None) -> list[Notice]:
    """Say beforehand about how long leave-pair-out takes, where that is more than a minute or so."""
    n_pairs = int(np.sum(pairs.attributes["n_pairs_"]))  # type: ignore[call-overload]
    if exact is None or not plan.leaves_pairs or n_pairs * exact.n_alphas < _MANY_PAIRS:
        return []
    seconds = n_pairs * exact.n_alphas / _PAIRS_PER_SECOND
    what = f"cv='leave-pair-out' scores {n_pairs:,} pairs with each of {exact.n_alphas} alphas, which takes about "
    return [
        Notice(f"{what}{in_words(seconds)} or more", "use cv=10, which scores each row once", UserWarning)
    ]


def held_out_share(pairs: Pairs, share: float, seed: int) -> Plan:
    """Hold out a share of the queries, of the rows where there is one ranking, or of the pairs, as a single fold."""
    units = pairs.units("shares")
    assert units is not None
    if units.name == "pairs" and units.n_units < 2:
        raise InvalidInputError(
            "All pairs compare the same two rows, so none can be held out to tell when to stop.",
            "pass eval_set=(X_val, pairs_val), or set early_stopping=False.",
        )
    return Plan.of_folds(np.where(units.share(share, seed), 0, -1))


def _weighs(pairs: Pairs, entries: Ints) -> Bools:
    """Tell which entries weigh something: the others score nothing."""
    weight = pairs.entry_weight
    return np.ones(entries.size, dtype=np.bool_) if weight is None else weight[entries] > 0


def _of_splitter(splitter: Splitter, pairs: Pairs) -> Plan:
    X, y, groups = pairs.for_splitter(splitter, asks_for_groups=requests_groups(splitter))
    absent, is_tested = [], []
    for train, test in read_splits(splitter, X, y, groups, pairs.entries):
        absent.append(np.setdiff1d(np.arange(len(X)), train, assume_unique=True))
        is_tested.append(np.isin(absent[-1], test))
    fold = np.repeat(np.arange(len(absent)), [own.size for own in absent])
    held, is_scored = np.concatenate(absent), np.concatenate(is_tested)
    return Plan(held, fold, is_scored, len(X), len(absent), f"the test sets of {splitter}")


def _by_default(pairs: Pairs, units: Units, metric: Metric, exact: Exact | None) -> tuple[object, str]:
    """Return the plan of "auto", with the reason if leave-pair-out was possible but not chosen."""
    if exact is None:
        return min(FOLDS, units.n_units), ""
    if units.name == "pairs":
        return min(FOLDS, units.n_units), ""
    if units.name != "rows":  # queries, groups or components
        return "leave-query-out", ""
    why_not = ""
    may_leave_pairs = metric.base_name in _PAIR_METRICS and not units.are_joined
    if may_leave_pairs and 3 <= units.n_units <= _MANY_ROWS:
        refused = refusal(pairs.compared(), exact.rank, exact.n_alphas, is_asked_for=False)
        if refused is None:
            return "leave-pair-out", ""
        why_not = f" (leave-pair-out {refused})"
    n_folds = _FOLDS_IN_CLOSED_FORM if exact.refits or pairs.has_closed_form else FOLDS
    # A row alone cannot be compared: a fold that is scored alone holds two.
    return min(n_folds, units.n_units if exact.is_pooled else max(units.n_units // 2, 2)), why_not


def _one_at_a_time(cv: str, pairs: Pairs, units: Units | None, metric: Metric, exact: Exact) -> Plan:
    """Hold out each unit in turn, by one decomposition; or each pair of rows of one ranking."""
    if units is None:
        return _every_pair(pairs, metric, exact)
    if int(units.codes.max()) < 1 or units.name == "rows":
        raise InvalidInputError(
            f"cv={cv!r} needs at least two queries, or groups of pairs, got one.",
            "pass qid, or groups with fit_pairs; or use a number of folds.",
        )
    named = {"pairs": "couples of rows", "groups": "groups of pairs"}.get(units.name, units.name)
    plan = Plan.of_folds(units.codes, f"{cv} over {units.n_units} {named}", is_exact=True)
    return replace(plan, is_scored=_weighs(pairs, plan.held))


def _every_pair(pairs: Pairs, metric: Metric, exact: Exact) -> Plan:
    if len(pairs.queries) > 1:
        raise InvalidInputError(
            "cv='leave-pair-out' is for one global ranking, and qid names several queries.",
            "use cv='leave-query-out'.",
        )
    weight = pairs.row_weight
    n_rows = pairs.n_rows if weight is None else int(np.count_nonzero(weight > 0))
    if n_rows < 3:
        raise InvalidInputError(
            f"cv='leave-pair-out' leaves nothing to train on from {n_rows} rows.",
            "use three rows or more.",
        )
    if metric.base_name not in _PAIR_METRICS:
        raise InvalidInputError(
            f"cv='leave-pair-out' scores pairs, and scoring={metric.name!r} does not count them.",
            "use scoring='pairwise_error', or a number of folds.",
        )
    refused = refusal(pairs.compared(), exact.rank, exact.n_alphas, is_asked_for=True)
    if refused is not None:
        raise InvalidInputError(
            f"cv='leave-pair-out' {refused}.",
            "use cv=10, or ties='include' with cost='magnitude' or 'unit'.",
        )
    none = Plan.of_folds(np.full(pairs.n_rows, -1), f"leave-pair-out over {n_rows} rows", is_exact=True)
    return replace(none, leaves_pairs=True)


class Splitter(Protocol):
    """Anything with the method of scikit-learn's splitters."""

    def split(self, X: object, y: object = None, groups: object = None) -> Iterable[tuple[object, object]]:
        """Yield training and test positions."""


def is_exact_name(cv: object) -> bool:
    """Tell whether `cv` names an exact hold-out, which takes a decomposition."""
    return isinstance(cv, str) and cv in EXACT_CV


def count_folds(cv: object, n_units: int, unit: str) -> int:
    """Return the number of folds for `n_units` units; raise if there are too few units."""
    n_folds = min(FOLDS, n_units) if cv == "auto" else int(str(cv))
    least = max(n_folds, 2)
    if n_units < least:
        raise InvalidInputError(
            f"cv={cv!r} needs at least {least} {unit}, got {n_units}.",
            f"use cv={n_units} or less." if n_units > 1 else "pass an eval_set.",
        )
    return n_folds


class _Listed:
    """Splits that the caller has made; scikit-learn's own class would cost a twentieth of `import rankwise`."""

    def __init__(self, splits: list[tuple[object, object]] | tuple[tuple[object, object], ...]) -> None:
        self._splits = splits

    def split(self, X: object, y: object = None, groups: object = None) -> Iterable[tuple[object, object]]:
        """Return the splits."""
        return self._splits

    def __str__(self) -> str:
        return f"{len(self._splits)} given splits"


class TimeFolds:
    """Blocks of queries in the order of their ids; each block but the first is a test set of those before it."""

    def split(self, X: object, y: object = None, groups: object = None) -> Iterator[tuple[Ints, Ints]]:
        """Yield training and test positions."""
        from sklearn.model_selection import TimeSeriesSplit  # noqa: PLC0415 - slow to import

        if groups is None:
            raise MissingQueriesError(
                "cv='time' sorts queries by their ids, and there are none.",
                "pass qid, or groups with fit_pairs: dates, or other ids that sort in the order of time.",
            )
        queries = encode_queries(np.asarray(groups))
        if len(queries) <= FOLDS:
            raise InvalidInputError(
                f"cv='time' needs {FOLDS + 1} queries or more, and there are {len(queries)}.",
                "use cv='leave-query-out' or an eval_set of later queries.",
            )
        for train, test in TimeSeriesSplit(FOLDS).split(queries.ids):
            yield np.flatnonzero(queries.codes < train.size), np.flatnonzero(np.isin(queries.codes, test))

    def __str__(self) -> str:
        return f"{FOLDS} expanding windows of queries"


def as_splitter(cv: object) -> Splitter | None:
    """Return a splitter: "time" and a list of (train, test) as one; None for other names and numbers."""
    if isinstance(cv, (list, tuple)):
        return _Listed(cv)
    if isinstance(cv, str) and cv == "time":
        return TimeFolds()
    found: Splitter | None = cv if not isinstance(cv, str) and hasattr(cv, "split") else None
    return found


def requests_groups(splitter: Splitter, *, unknown: bool = False) -> bool:
    """Tell whether a splitter looks at groups; `unknown` where it does not say.

    Those of scikit-learn that do not look warn about groups.
    """
    if isinstance(splitter, _Listed):
        return False
    routing = getattr(splitter, "get_metadata_routing", None)
    return unknown if routing is None else "groups" in routing().split.requests


def read_splits(
    splitter: Splitter, X: object, y: object, groups: object, unit: str
) -> Iterator[tuple[Ints, Ints]]:
    """Yield training and test positions, in increasing order and none of them on both sides."""
    n_units = len(X)  # type: ignore[arg-type]
    given = groups if requests_groups(splitter, unknown=True) else None
    try:
        splits = list(splitter.split(X, y, given))
    except InvalidInputError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"cv={splitter} cannot split {n_units} {unit} ({error}).",
            "pass the groups that it asks for, or use cv=5, KFold or PreferenceKFold.",
        ) from error
    if not splits:
        raise InvalidInputError(f"cv={splitter} makes no folds.", "use cv=5.")
    for split in splits:
        try:
            train, test = (_positions(side, n_units) for side in split)
        except (IndexError, TypeError, ValueError) as error:
            raise InvalidInputError(
                f"cv={splitter} holds a split that is not a pair of positions of {unit} ({error}).",
                f"make every split (train, test), two arrays of positions from 0 to {n_units - 1}, or two masks.",
            ) from error
        if not test.size:
            raise InvalidInputError(
                f"cv={splitter} has an empty test set.", f"test some {unit} in every split."
            )
        if np.intersect1d(train, test, assume_unique=True).size:
            raise InvalidInputError(
                f"cv={splitter} trains on {unit} that it tests.", "use KFold, GroupKFold or PreferenceKFold."
            )
        yield train, test


def _positions(side: object, n_units: int) -> Ints:
    chosen = np.asarray(side)
    if chosen.size == 0:
        return np.empty(0, dtype=np.int64)
    if chosen.ndim != 1:
        raise ValueError(f"an array of shape {chosen.shape}")
    return np.unique(np.arange(n_units)[chosen])
