"""Options of ``rankwise fit`` and ``rankwise select`` as parameters of the ranker that chooses everything."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rankwise.cli.inputs import Rows
from rankwise.exceptions import InvalidInputError, NoPairsError, UndefinedMetricError
from rankwise.exporters.targets import TARGETS
from rankwise.metrics import Metric, get_metric

if TYPE_CHECKING:
    from rankwise.automatic.candidate_table import Entry
    from rankwise.automatic.ranker import AutoRanker

__all__ = ["CONTRADICTED", "Choice", "choose"]

# What the pairwise error and the concordance are of preferences, which have neither labels nor queries.
CONTRADICTED = "share of the listed preferences that the scores contradict; tied scores count one half"
_OF_LABELS = ("ties", "cost")  # what least squares make of labels
_AGREED = "share of the listed preferences that the scores agree with; tied scores count one half"


@dataclass(frozen=True)
class Choice:
    """What was tried, and what was chosen."""

    ranker: AutoRanker
    scored_by: str
    of_preferences: bool

    @property
    def metric(self) -> Metric:
        """What scored."""
        return self.ranker.metric_

    @property
    def best(self) -> Entry:
        """What was chosen."""
        return self.ranker.candidates_.chosen

    @property
    def convention(self) -> str:
        """What exactly the metric counts, in words."""
        if not self.of_preferences:
            return self.metric.describe()
        return _AGREED if self.metric.greater_is_better else CONTRADICTED


def choose(train: Rows, valid: Rows | None, options: argparse.Namespace) -> Choice:
    """Try what the options allow, and choose.

    Parameters
    ----------
    train, valid : Rows
        Without `valid`, models are compared on folds of the training data.
    options : Namespace
        What the group "choosing" of the arguments holds.
    """
    from rankwise.automatic.ranker import AutoRanker, check_encoder  # noqa: PLC0415 - a second of imports

    check_encoder(train.encoder, options.serve)
    _check(train, valid, options)
    # One alpha has different meanings in different methods, and margins know neither ties nor costs.
    is_of_rls = options.alpha or any(getattr(options, name) is not None for name in _OF_LABELS)
    methods = options.method if options.method != "auto" or not is_of_rls else "rls"
    given = {name: getattr(options, name) for name in (*_OF_LABELS, "query_weight", "gamma", "basis")}
    ranker = AutoRanker(
        options.metric or "auto",
        methods=methods,
        alphas=options.alpha,
        target=options.serve,
        cv="auto" if options.folds is None else options.folds,
        fixed={name: value for name, value in given.items() if value is not None} or None,
        time_limit=options.time,
        nested=options.nested,
        random_state=options.seed,
        n_threads=options.threads,
    )
    try:
        if train.pairs is not None:
            ranker.fit_pairs(train.X, train.pairs, train.magnitude, train.weight, eval_set=_eval_set(valid))
        else:
            assert train.y is not None
            ranker.fit(train.X, train.y, train.qid, sample_weight=train.weight, eval_set=_eval_set(valid))
    except (NoPairsError, UndefinedMetricError) as error:
        raise _cannot_score(error, train, valid) from error
    scored_by = ranker.cv_ if valid is None else valid.source
    return Choice(ranker, scored_by, train.pairs is not None)


def _check_target(options: argparse.Namespace) -> None:
    if options.serve is None:
        return
    target = TARGETS[options.serve]
    if options.method == "kernel" and not target.kernels:
        raise InvalidInputError(
            f"--for {options.serve} and --method kernel: it cannot run kernels.", "leave one of the two out."
        )
    inside = options.scaling.rpartition("+")[2]
    if inside.startswith("query-") and inside.removeprefix("query-") not in target.scales:
        raise InvalidInputError(
            f"--for {options.serve} and --scaling {options.scaling}: it sees one row at a time.",
            "use --scaling standard, or leave one of the two out.",
        )


def _check_methods(options: argparse.Namespace) -> None:
    """Refuse options that the method would not look at."""
    of_kernels = [name for name in ("gamma", "basis") if getattr(options, name) is not None]
    of_labels = [name for name in _OF_LABELS if getattr(options, name) is not None]
    if of_kernels and options.method != "kernel":
        raise InvalidInputError(f"--{of_kernels[0]} is for kernels.", "add --method kernel, or leave it out.")
    if of_labels and options.method not in {"auto", "rls", "kernel"}:
        raise InvalidInputError(
            f"--{of_labels[0]} is for least squares, and --method {options.method} asks for the order alone.",
            "use --method rls or kernel, or leave it out.",
        )


def _check(train: Rows, valid: Rows | None, options: argparse.Namespace) -> None:
    _check_target(options)
    _check_methods(options)
    if train.y is None and options.metric is not None:
        metric = get_metric(options.metric)
        if metric.base_name not in {"pairwise_error", "concordance"}:
            raise InvalidInputError(
                f"{metric.name} needs rows with labels, and preferences have none.",
                "use --metric pairwise_error.",
            )
    if options.scaling != "auto" and "query" in options.scaling and train.qid is None:
        raise InvalidInputError(
            f"--scaling {options.scaling} needs query ids, and {train.source} has none.",
            "use --scaling standard.",
        )
    if options.method == "logistic" and train.pairs is None:
        raise InvalidInputError(
            f"--method logistic learns from preferences, and {train.source} has labels.",
            "use --method svm-squared, or name the items of a list of preferences with --items.",
        )
    if options.nested and (valid is not None or train.pairs is not None):
        raise InvalidInputError(
            "--nested makes outer folds of labelled rows.", "leave it out, or leave --valid and --items out."
        )
    if valid is None and not options.alpha and train.qid is not None and len(train.queries) < 2:
        raise NoPairsError(
            f"{train.source} has one query, and folds of whole queries take two.",
            "add --valid FILE with rows to score by, or train on more.",
            names_file=True,
        )


def _cannot_score(error: InvalidInputError, train: Rows, valid: Rows | None) -> NoPairsError:
    """Say of files that what was to score cannot: there is something to learn, for that was looked at before."""
    if valid is not None:
        return NoPairsError(
            f"{valid.source} cannot score: {error.problem}",
            "validate on rows with more labels.",
            names_file=True,
        )
    what = "rows" if train.qid is None else "queries"
    return NoPairsError(
        f"{train.source} has too few {what} to score models by folds of them: {error.problem}",
        "add --valid FILE with rows to score by, or train on more.",
        names_file=True,
    )


def _eval_set(valid: Rows | None) -> tuple[object, ...] | None:
    if valid is None:
        return None
    if valid.pairs is None:
        parts: tuple[Any, ...] = (valid.X, valid.y, valid.qid)
    else:
        # A magnitude of 0 is a tie: nobody won, so nothing can be contradicted.
        decided = slice(None) if valid.magnitude is None else valid.magnitude > 0
        parts = (valid.X, valid.pairs[decided], None if valid.weight is None else valid.weight[decided])
    return parts if parts[2] is not None else parts[:2]
