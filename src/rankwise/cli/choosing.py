"""Choosing everything: a scaling, a method and its regularisation, judged by held-out queries.

First the scalings are compared by RankRLS, which searches all its alphas and iterations in one run; then RankSVM tries
the best scaling, with squared hinge and, if that helps, with hinge. Of equally good candidates the simpler one stays.
"""

from __future__ import annotations

import argparse
import inspect
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import scipy.sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from rankwise.cli.inputs import Rows
from rankwise.data.mapped import MappedMatrix
from rankwise.data.summary import is_graded
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.preprocessing import QueryScaler
from rankwise.progress import ProgressLine

__all__ = ["Candidate", "Choice", "choose"]

# Non-zeros up to which more is tried than least squares on two scalings; a few seconds of work.
_MUCH = 10_000_000
_KERNEL_BASIS = 500

_SCALINGS = {
    "none": "columns as they are",
    "standard": "standardised columns",
    "max-abs": "columns divided by their largest value",
    "query-minmax": "columns from 0 to 1 inside each query",
    "query-standard": "columns standardised inside each query",
    "query-rank": "columns ranked inside each query",
}
_METHODS = {
    "rls": "RankRLS",
    "svm": "RankSVM, hinge",
    "svm-squared": "RankSVM, squared hinge",
    "kernel": "kernel RankRLS, RBF",
}


@dataclass(frozen=True)
class Candidate:
    """One way to prepare columns and to learn, with what it achieved.

    Attributes
    ----------
    scaling, method : str
    model : Pipeline or ranker
        Fitted.
    value : float
        Of the metric, on what was held out.
    """

    scaling: str
    method: str
    model: Any
    value: float

    @property
    def ranker(self) -> Any:
        """The estimator at the end."""
        return self.model.steps[-1][1] if isinstance(self.model, Pipeline) else self.model

    def describe(self) -> str:
        """Name it in words."""
        return f"{_METHODS[self.method]}, {_SCALINGS[self.scaling]}"


@dataclass(frozen=True)
class Choice:
    """What was tried, and what was chosen."""

    tried: list[Candidate]
    best: Candidate
    metric: Metric
    judged_by: str


def choose(train: Rows, valid: Rows | None, options: argparse.Namespace) -> Choice:
    """Try what the options allow, and choose the best.

    Parameters
    ----------
    train, valid : Rows
        Without `valid`, folds of the training data judge.
    options : Namespace
        What the group "choosing" of the arguments holds.
    """
    metric = _metric(train, options.metric)
    with _interruptible() as interrupted, ProgressLine("choosing") as progress:
        tried: list[Candidate] = []

        def attempt(scaling: str, method: str) -> None:
            progress.update(f"{_METHODS[method]}, {_SCALINGS[scaling]}")
            tried.append(_fit(scaling, method, train, valid, metric, options))
            # Estimators keep what they have on Ctrl-C; here it means to stop.
            if interrupted():
                raise KeyboardInterrupt

        first = _METHODS_OF_SCALING[options.method]
        for scaling in _scalings(train, options):
            attempt(scaling, first)
        if _may_try_margins(train, options):
            scaling = _best(tried, metric).scaling
            attempt(scaling, "svm-squared")
            # The plain hinge costs several times as much; it is worth trying where margins help at all.
            if _best(tried, metric).method == "svm-squared":
                attempt(scaling, "svm")
    best = _best(tried, metric)
    judged_by = f"{valid.source}" if valid is not None else str(getattr(best.ranker, "cv_", "held-out rows"))
    return Choice(tried, best, metric, judged_by)


# The method that compares scalings: the one asked for, or the quickest.
_METHODS_OF_SCALING = {
    "auto": "rls",
    "rls": "rls",
    "svm": "svm",
    "svm-squared": "svm-squared",
    "kernel": "kernel",
}


def _metric(train: Rows, name: str | None) -> Metric:
    if train.y is None:
        metric = get_metric(name or "pairwise_error")
        if metric.base_name not in {"pairwise_error", "concordance"}:
            raise InvalidInputError(
                f"{metric.name} needs rows with labels, and preferences have none.",
                "use --metric pairwise_error.",
            )
        return metric
    graded = train.qid is not None and is_graded(train.y)
    return get_metric(name or ("ndcg@10" if graded else "pairwise_error"))


def _best(tried: list[Candidate], metric: Metric) -> Candidate:
    sign = 1.0 if metric.greater_is_better else -1.0
    return max(tried, key=lambda candidate: sign * candidate.value)  # of equals the first, which is simpler


def _size(X: Any) -> int:
    return int(X.nnz) if scipy.sparse.issparse(X) else int(X.size)


def _scalings(train: Rows, options: argparse.Namespace) -> list[str]:
    if options.scaling != "auto":
        if options.scaling.startswith("query") and train.qid is None:
            raise InvalidInputError(
                f"--scaling {options.scaling} needs query ids, and {train.source} has none.",
                "use --scaling standard.",
            )
        return [options.scaling]
    if isinstance(train.X, MappedMatrix):
        return ["none"]  # a store that does not fit in memory is read where it lies
    plain = ["none", "max-abs" if scipy.sparse.issparse(train.X) else "standard"]
    if train.qid is None or scipy.sparse.issparse(train.X) or _size(train.X) > _MUCH:
        return plain
    return [*plain, "query-minmax", "query-standard"]


def _may_try_margins(train: Rows, options: argparse.Namespace) -> bool:
    return options.method == "auto" and train.pairs is None and not options.alpha and _size(train.X) <= _MUCH


def _scaler(name: str, X: Any) -> Any:
    if name == "standard":
        return StandardScaler(with_mean=not scipy.sparse.issparse(X))
    if name == "max-abs":
        return MaxAbsScaler()
    return QueryScaler(name.removeprefix("query-"))


def _fit(
    scaling: str, method: str, train: Rows, valid: Rows | None, metric: Metric, options: argparse.Namespace
) -> Candidate:
    ranker = _ranker(method, metric, options, train)
    X, judging = train.X, None if valid is None else valid.X
    scaler = None if scaling == "none" else _scaler(scaling, X)
    if scaler is not None:
        X = _scale(scaler, X, train.qid, fit=True)
        judging = None if valid is None else _scale(scaler, judging, valid.qid, fit=False)
    _learn(ranker, X, train, judging, valid)
    model = ranker if scaler is None else Pipeline([("scaler", scaler), ("ranker", ranker)])
    value = getattr(ranker, "best_score_", None)
    if value is None or (valid is not None and not _takes_valid(ranker)):
        value = _judge(ranker, X if valid is None else judging, train if valid is None else valid, metric)
    return Candidate(scaling, method, model, float(value))


def _ranker(method: str, metric: Metric, options: argparse.Namespace, train: Rows) -> Any:
    from rankwise import KernelRankRLSCV, RankRLSCV, RankSVMCV  # noqa: PLC0415 - a second of imports

    shared: dict[str, Any] = {"scoring": metric, "random_state": options.seed, "n_threads": options.threads}
    if options.alpha:
        shared["alphas"] = options.alpha
    if method == "rls":
        if options.alpha and len(options.alpha) == 1:
            shared["method"] = "tikhonov"  # an alpha that was given means the converged model
        return RankRLSCV(**shared)
    if method == "kernel":
        basis = _KERNEL_BASIS if train.X.shape[0] > _KERNEL_BASIS else None
        return KernelRankRLSCV("rbf", basis=basis, **shared)
    return RankSVMCV(loss="hinge" if method == "svm" else "squared_hinge", **shared)


def _takes_valid(ranker: Any) -> bool:
    return "eval_set" in inspect.signature(ranker.fit).parameters


def _learn(ranker: Any, X: Any, train: Rows, judging: Any, valid: Rows | None) -> None:
    if train.pairs is not None:
        if not hasattr(ranker, "fit_pairs"):
            raise InvalidInputError(
                f"{type(ranker).__name__} does not learn from preferences.",
                "use --method rls, or leave --method out.",
            )
        ranker.fit_pairs(X, train.pairs, train.magnitude, train.weight, eval_set=_eval_set(judging, valid))
    elif valid is None or not _takes_valid(ranker):
        ranker.fit(X, train.y, qid=train.qid)
    else:
        ranker.fit(X, train.y, qid=train.qid, eval_set=_eval_set(judging, valid))


def _eval_set(judging: Any, valid: Rows | None) -> tuple[Any, ...] | None:
    if valid is None:
        return None
    parts = (judging, valid.y, valid.qid) if valid.pairs is None else (judging, valid.pairs, valid.weight)
    return parts if parts[2] is not None else parts[:2]


def _scale(scaler: Any, X: Any, qid: Any, *, fit: bool) -> Any:
    takes_qid = isinstance(scaler, QueryScaler)
    if fit:
        scaler.fit(X, qid=qid) if takes_qid else scaler.fit(X)
    return scaler.transform(X, qid=qid) if takes_qid else scaler.transform(X)


def _judge(ranker: Any, X: Any, rows: Rows, metric: Metric) -> float:
    return metric(rows.y, ranker.predict(X), rows.qid)


@contextmanager
def _interruptible() -> Iterator[Any]:
    """Tell whether Ctrl-C was pressed, even where it was caught meanwhile."""
    pressed: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)
