"""Choosing everything: a scaling, a method and its regularisation, by held-out queries.

First the scalings are compared by RankRLS, which searches all its alphas and iterations in one run; then RankSVM tries
the best scaling, with squared hinge and, if that helps, with hinge; on preferences also with the logistic loss. All are
compared on the same folds and held-out rows. Of equally good candidates the simpler one stays.
"""

from __future__ import annotations

import argparse
import inspect
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import scipy.sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from rankwise.arrays import Estimator, MatrixLike
from rankwise.cli.inputs import Rows
from rankwise.data.store.mapped import MappedMatrix
from rankwise.data.summary import is_graded
from rankwise.design import as_design
from rankwise.exceptions import InvalidInputError, NoPairsError, UndefinedMetricError
from rankwise.exporters.targets import TARGETS
from rankwise.losses import LOSSES
from rankwise.metrics import Metric, get_metric
from rankwise.preprocessing import QueryScaler
from rankwise.problems.folds import tell_apart_by
from rankwise.progress import ProgressLine

__all__ = ["CONTRADICTED", "Candidate", "Choice", "choose"]

# What the pairwise error and the concordance are of preferences, which have neither labels nor queries.
CONTRADICTED = "share of the listed preferences that the scores contradict; tied scores count one half"
_AGREED = "share of the listed preferences that the scores agree with; tied scores count one half"

# Non-zeros up to which more is tried than least squares on two scalings; a few seconds of work.
_MUCH = 10_000_000
_PAIR_COSTS = 10  # non-zeros that take as long as a pair that is listed
_KERNEL_BASIS = 500
_LEAST_SQUARES = ("rls", "kernel")
_OF_LABELS = ("ties", "cost")  # what least squares make of labels
_JUDGING = 20_000  # held-out rows that are scored at most, the same for every candidate

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
    "logistic": "pairwise logistic regression",
    "kernel": "kernel RankRLS, RBF",
    "curves": "curves and surfaces, squared hinge",
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
    of_preferences: bool

    @property
    def convention(self) -> str:
        """What exactly the metric counts, in words."""
        if not self.of_preferences:
            return self.metric.describe()
        return _AGREED if self.metric.greater_is_better else CONTRADICTED


def choose(train: Rows, valid: Rows | None, options: argparse.Namespace) -> Choice:
    """Try what the options allow, and choose the best.

    Parameters
    ----------
    train, valid : Rows
        Without `valid`, models are compared on folds of the training data.
    options : Namespace
        What the group "choosing" of the arguments holds.
    """
    metric = _metric(train, options.metric)
    if valid is None and not options.alpha and train.qid is not None and len(train.queries) < 2:
        raise NoPairsError(
            f"{train.source} has one query, and folds of whole queries take two.",
            "add --valid FILE with rows that judge, or train on more.",
            names_file=True,
        )
    same_folds = tell_apart_by(as_design(train.X, options.threads))
    with ProgressLine("choosing") as progress, same_folds:
        tried: list[Candidate] = []
        # Scalings are compared by the method asked for, or by the quickest.
        first = "rls" if options.method == "auto" else options.method
        scalings, margins = _scalings(train, options), _margins(train, options)
        total = len(scalings) + len(margins)

        def attempt(scaling: str, method: str) -> None:
            words = f"{_METHODS[method]}, {_SCALINGS[scaling]}"
            progress.update(f"{len(tried) + 1} of {total}, {words}", len(tried) / total)
            try:
                tried.append(_fit(scaling, method, train, valid, metric, options))
            except (NoPairsError, UndefinedMetricError) as error:
                raise _cannot_judge(error, train, valid) from error

        for scaling in scalings:
            attempt(scaling, first)
        scaling = _best(tried, metric).scaling
        for method in margins:
            # The plain hinge costs several times as much; it is worth trying where margins help at all.
            if method != "svm" or _best(tried, metric).method == "svm-squared":
                attempt(scaling, method)
    best = _best(tried, metric)
    judged_by = f"{valid.source}" if valid is not None else str(getattr(best.ranker, "cv_", "held-out rows"))
    return Choice(tried, best, metric, judged_by, train.pairs is not None)


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


def _cannot_judge(error: InvalidInputError, train: Rows, valid: Rows | None) -> NoPairsError:
    """Say of files that what was to judge cannot: there is something to learn, for that was looked at before."""
    if valid is not None:
        return NoPairsError(
            f"{valid.source} cannot judge: {error.problem}",
            "validate on rows with more labels.",
            names_file=True,
        )
    what = "rows" if train.qid is None else "queries"
    return NoPairsError(
        f"{train.source} has too few {what} to judge models by folds of them: {error.problem}",
        "add --valid FILE with rows that judge, or train on more.",
        names_file=True,
    )


def _best(tried: list[Candidate], metric: Metric) -> Candidate:
    sign = 1.0 if metric.greater_is_better else -1.0
    return max(tried, key=lambda candidate: sign * candidate.value)  # of equals the first, which is simpler


def _size(X: Any) -> int:
    return int(X.nnz) if scipy.sparse.issparse(X) else int(X.size)


def _servable(names: list[str], target: str | None) -> list[str]:
    """Return the scalings that a target can run."""
    if target is None:
        return names
    scales = TARGETS[target].scales
    return [name for name in names if not name.startswith("query-") or name.removeprefix("query-") in scales]


def _check_servable(options: argparse.Namespace) -> None:
    target = options.serve
    if target is None:
        return
    if options.method == "kernel" and not TARGETS[target].kernels:
        raise InvalidInputError(
            f"--for {target} and --method kernel: it cannot run kernels.", "leave one of the two out."
        )
    if options.scaling != "auto" and not _servable([options.scaling], target):
        raise InvalidInputError(
            f"--for {target} and --scaling {options.scaling}: it sees one row at a time.",
            "use --scaling standard, or leave one of the two out.",
        )


def _check_methods(options: argparse.Namespace) -> None:
    """Refuse options that the method would not look at."""
    of_kernels = [name for name in ("gamma", "basis") if getattr(options, name) is not None]
    of_labels = [name for name in _OF_LABELS if getattr(options, name) is not None]
    if of_kernels and options.method != "kernel":
        raise InvalidInputError(f"--{of_kernels[0]} is for kernels.", "add --method kernel, or leave it out.")
    if of_labels and options.method not in {"auto", *_LEAST_SQUARES}:
        raise InvalidInputError(
            f"--{of_labels[0]} is for least squares, and --method {options.method} asks for the order alone.",
            "use --method rls or kernel, or leave it out.",
        )


def _scalings(train: Rows, options: argparse.Namespace) -> list[str]:
    _check_servable(options)
    _check_methods(options)
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
    if options.method == "curves":
        plain = ["none"]  # knots go where the values are, whatever their unit
    if train.qid is None or scipy.sparse.issparse(train.X) or _size(train.X) > _MUCH:
        return plain
    return _servable([*plain, "query-minmax", "query-standard"], options.serve)


def _margins(train: Rows, options: argparse.Namespace) -> list[str]:
    """Return the methods that are tried with the best scaling."""
    n_pairs = 0 if train.pairs is None else len(train.pairs)
    says_of_labels = any(getattr(options, name) is not None for name in _OF_LABELS)
    if (
        options.method != "auto"
        or options.alpha
        or says_of_labels
        or max(_size(train.X), _PAIR_COSTS * n_pairs) > _MUCH
    ):
        return []
    # The logistic loss is a model of who wins, and says nothing of by how much.
    has_magnitudes = train.magnitude is not None and bool((train.magnitude != 1).any())
    return ["svm-squared", "svm", *(["logistic"] if train.pairs is not None and not has_magnitudes else [])]


def _scaler(name: str, X: MatrixLike) -> Any:
    if name == "standard":
        return StandardScaler(with_mean=not scipy.sparse.issparse(X))
    if name == "max-abs":
        return MaxAbsScaler()
    return QueryScaler(name.removeprefix("query-"))


def _fit(
    scaling: str, method: str, train: Rows, valid: Rows | None, metric: Metric, options: argparse.Namespace
) -> Candidate:
    ranker = _ranker(method, metric, options, train)
    X: Any = train.X
    judging: Any = None if valid is None else valid.X
    scaler = None if scaling == "none" else _scaler(scaling, X)
    if scaler is not None:
        X = _scale(scaler, X, train.qid, fit=True)
        judging = None if valid is None else _scale(scaler, judging, valid.qid, fit=False)
    _learn(ranker, X, train, judging, valid)
    model = ranker if scaler is None else Pipeline([("scaler", scaler), ("ranker", ranker)])
    value = getattr(ranker, "best_score_", None)
    if value is None or (valid is not None and not _takes_valid(ranker)):
        value = _scorer(ranker, X if valid is None else judging, train if valid is None else valid, metric)
    return Candidate(scaling, method, model, float(value))


def _ranker(method: str, metric: Metric, options: argparse.Namespace, train: Rows) -> Any:
    from rankwise.estimators.additive_cv import AdditiveRankerCV  # noqa: PLC0415 - as below
    from rankwise.estimators.kernel_rls_cv import KernelRankRLSCV  # noqa: PLC0415 - a second of imports
    from rankwise.estimators.rank_rls_cv import RankRLSCV  # noqa: PLC0415
    from rankwise.estimators.rank_svm_cv import RankSVMCV  # noqa: PLC0415

    shared: dict[str, Any] = {"scoring": metric, "random_state": options.seed, "n_threads": options.threads}
    if options.alpha:
        shared["alphas"] = options.alpha
    if options.folds is not None:
        shared["cv"] = options.folds
    if options.query_weight is not None:
        shared["query_weight"] = options.query_weight
    if method in _LEAST_SQUARES:
        shared |= {name: getattr(options, name) for name in _OF_LABELS if getattr(options, name) is not None}
    if method == "rls":
        if options.alpha and len(options.alpha) == 1:
            shared["method"] = "tikhonov"  # an alpha that was given means the converged model
        return RankRLSCV(judge_rows=_JUDGING, **shared)
    if method == "kernel":
        size = options.basis or _KERNEL_BASIS
        basis = size if train.X.shape[0] > size else None
        if options.gamma:
            shared["gamma"] = options.gamma
        return KernelRankRLSCV("rbf", basis=basis, **shared)
    if method == "curves":
        return AdditiveRankerCV(judge_rows=_JUDGING, **shared)
    loss = next(name for name, loss in LOSSES.items() if loss.method == method)
    return RankSVMCV(loss=loss, judge_rows=_JUDGING, **shared)


def _takes_valid(ranker: Estimator) -> bool:
    return "eval_set" in inspect.signature(ranker.fit).parameters


def _learn(ranker: Estimator, X: MatrixLike, train: Rows, judging: object, valid: Rows | None) -> None:
    if train.pairs is not None:
        if not hasattr(ranker, "fit_pairs"):
            raise InvalidInputError(
                f"{type(ranker).__name__} does not learn from preferences.",
                "use --method rls, or leave --method out.",
            )
        ranker.fit_pairs(X, train.pairs, train.magnitude, train.weight, eval_set=_eval_set(judging, valid))
    elif hasattr(ranker, "loss") and LOSSES[ranker.loss].is_probability:
        raise InvalidInputError(
            f"--method logistic learns from preferences, and {train.source} has labels.",
            "use --method svm-squared, or name the items of a list of preferences with --items.",
        )
    elif valid is None or not _takes_valid(ranker):
        ranker.fit(X, train.y, qid=train.qid, sample_weight=train.weight)
    else:
        ranker.fit(X, train.y, train.qid, sample_weight=train.weight, eval_set=_eval_set(judging, valid))


def _eval_set(judging: object, valid: Rows | None) -> tuple[Any, ...] | None:
    if valid is None:
        return None
    if valid.pairs is None:
        parts: tuple[Any, ...] = (judging, valid.y, valid.qid)
    else:
        # A magnitude of 0 is a tie: nobody won, so nothing can be contradicted.
        decided = slice(None) if valid.magnitude is None else valid.magnitude > 0
        parts = (judging, valid.pairs[decided], None if valid.weight is None else valid.weight[decided])
    return parts if parts[2] is not None else parts[:2]


def _scale(scaler: Any, X: MatrixLike, qid: npt.ArrayLike | None, *, fit: bool) -> Any:
    takes_qid = isinstance(scaler, QueryScaler)
    if fit:
        scaler.fit(X, qid=qid) if takes_qid else scaler.fit(X)
    return scaler.transform(X, qid=qid) if takes_qid else scaler.transform(X)


def _scorer(ranker: Any, X: Any, rows: Rows, metric: Metric) -> float:
    return metric(rows.labels, ranker.predict(X), rows.qid)
