"""``rankwise evaluate``: every metric with its interval and its convention; several models side by side."""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import sys
from dataclasses import asdict

import numpy as np
import numpy.typing as npt
import scipy.sparse

from rankwise.cli.applicable import check_applicable
from rankwise.cli.checks import check_ordered
from rankwise.cli.choosing import CONTRADICTED
from rankwise.cli.columns import recall
from rankwise.cli.inputs import Rows, read_rows
from rankwise.cli.mistakes import UsageError
from rankwise.cli.models import fit_columns, read_model, remark_on_queries
from rankwise.cli.outputs import output_stream
from rankwise.cli.printing import figure, print_facts, print_json, print_table, remark, show_warnings, write
from rankwise.cli.scoring import score
from rankwise.data.runs import judge_runs, load_judgements, load_run
from rankwise.data.summary import is_graded
from rankwise.data.wording import how_many
from rankwise.metrics import (
    Comparison,
    Interval,
    Metric,
    bootstrap_interval,
    compare_rankings,
    get_metric,
    holm,
)
from rankwise.metrics.comparison import compare_over_pairs, p_text
from rankwise.metrics.intervals import mean_over_pairs
from rankwise.metrics.pairwise import wrong_pairs

__all__ = ["run"]

Scores = dict[str, npt.NDArray[np.float64]]

_GRADED = (
    "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "ndcg", "map", "mrr", "precision@1", "precision@5", "precision@10",
    "err", "pairwise_error", "concordance", "kendall_tau",
)  # fmt: skip
_ANY = ("pairwise_error", "concordance", "kendall_tau")
_WITH_CONVENTION = ("ndcg", "map", "precision", "mean_ndcg")


def run(options: argparse.Namespace) -> int:
    """Evaluate one model, or several on the same rows."""
    show_warnings()
    _check_metrics(options)
    if options.run or options.qrels:
        rows, scores = _read_runs(options)
    else:
        rows, scores = _read_models(options)
    if rows.pairs is not None:
        figures, comparisons, conventions = _evaluate_pairs(rows, scores, options.level)
    else:
        metrics = _metrics(rows, options)
        conventions = {metric.name: metric.describe() for metric in metrics}
        figures = {
            metric.name: {
                name: bootstrap_interval(
                    rows.labels,
                    values,
                    rows.queries,
                    metric=metric,
                    sample_weight=rows.weight,
                    level=options.level,
                )
                for name, values in scores.items()
            }
            for metric in metrics
        }
        comparisons = _compare(metrics, rows, scores, options.level)
        if options.per_query is not None:
            _write_per_query(metrics, rows, scores, options.per_query)
    is_taken = options.per_query == "-"  # standard output holds the figures of the queries
    with contextlib.redirect_stdout(sys.stderr if is_taken else sys.stdout):
        if options.json:
            print_json(_as_json(rows, figures, comparisons, conventions))
            return 0
        _print(rows, figures, comparisons, conventions, options.level)
        if options.per_query is not None and not is_taken:
            write(f"\nwrote {options.per_query}")
    return 0


def _read_models(options: argparse.Namespace) -> tuple[Rows, Scores]:
    """Read models and rows, and score them."""
    check_applicable(options)
    saved = [read_model(path) for path in [options.model, *(options.against or [])]]
    reading = recall(options, *(one.notes for one in saved), encoders=[one.encoder for one in saved])
    rows = check_ordered(read_rows(options.data, reading, first_column=saved[0].notes.get("first_column")))
    remark_on_queries(rows, saved[0], reading.qid, "judged")
    names = _labels_of([one.path for one in saved])
    return rows, {name: score(one, fit_columns(rows, one)) for name, one in zip(names, saved, strict=True)}


def _read_runs(options: argparse.Namespace) -> tuple[Rows, Scores]:
    """Read what was returned and what is right; a model is not needed for that."""
    if not options.run or not options.qrels:
        raise UsageError("--run and --qrels go together.", "name a run and its judgements.")
    if options.model is not None or options.against:
        raise UsageError("A run is judged without a model.", "leave the model out, or --run.")
    judged = judge_runs([load_run(path) for path in options.run], load_judgements(options.qrels))
    if judged.n_left_out:
        are = "is not in every run, and does" if judged.n_left_out == 1 else "are not in every run, and do"
        remark(f"{how_many(judged.n_left_out, 'queries')} of {options.qrels} {are} not count")
    empty = scipy.sparse.csr_matrix((judged.labels.size, 0))
    rows = check_ordered(Rows(options.qrels, empty, judged.labels, judged.qid, None))
    return rows, dict(zip(_labels_of(options.run), judged.scores, strict=True))


def _check_metrics(options: argparse.Namespace) -> None:
    """Refuse, before anything is read, what would be overlooked."""
    names = [] if options.metrics is None else [get_metric(name) for name in options.metrics.split(",")]
    if options.items is not None:
        if options.per_query is not None:
            raise UsageError("Preferences have no queries.", "leave --per-query out.")
        if options.convention is not None or any(one.name != "pairwise_error" for one in names):
            option = "--convention" if options.convention is not None else "--metrics"
            raise UsageError(
                f"{option}: preferences are scored by the pairwise error alone.", f"leave {option} out."
            )
    elif options.convention is not None and names and all(n.base_name not in _WITH_CONVENTION for n in names):
        raise UsageError(
            f"--convention {options.convention} says nothing about {', '.join(one.name for one in names)}.",
            f"leave it out; it is for {', '.join(_WITH_CONVENTION)}.",
        )
    for one in names if "weight" in options.given else ():
        if options.items is None and not one.takes_weights:
            raise UsageError(
                f"--weight: {one.name} does not weigh rows.",
                f"leave one of them out; {', '.join(_ANY)} do.",
            )


def _labels_of(paths: list[str]) -> list[str]:
    names: list[str] = []
    for path in paths:
        names.append(path if path not in names else f"{path} ({names.count(path) + 1})")
    return names


def _metrics(rows: Rows, options: argparse.Namespace) -> list[Metric]:
    assert rows.y is not None
    # Of the usual metrics only those that count pairs weigh rows.
    names = _GRADED if is_graded(rows.y) and rows.weight is None else _ANY
    if options.metrics is not None:
        names = tuple(options.metrics.split(","))
    elif options.convention == "letor4":
        names = (*names, "mean_ndcg")
    found = []
    for name in names:
        metric = get_metric(name)
        if options.convention is not None and metric.base_name in _WITH_CONVENTION:
            metric = get_metric(name, convention=options.convention)
        found.append(metric)
    return found


def _compare(
    metrics: list[Metric], rows: Rows, scores: Scores, level: float
) -> dict[str, dict[str, Comparison]]:
    """Compare the first model with each of the others."""
    first, *others = scores
    return {
        metric.name: {
            other: compare_rankings(
                rows.labels,
                scores[first],
                scores[other],
                rows.queries,
                metric=metric,
                level=level,
                sample_weight=rows.weight,
            )
            for other in others
        }
        for metric in metrics
    }


def _evaluate_pairs(
    rows: Rows, scores: Scores, level: float
) -> tuple[dict[str, dict[str, Interval]], dict[str, dict[str, Comparison]], dict[str, str]]:
    assert rows.pairs is not None
    winner, loser = rows.pairs[:, 0], rows.pairs[:, 1]
    share = np.ones(len(rows.pairs)) if rows.weight is None else rows.weight
    # A magnitude of 0 is a tie: nobody won, so nothing can be contradicted.
    decided = np.ones(len(share), dtype=bool) if rows.magnitude is None else rows.magnitude > 0
    winner, loser, share = winner[decided], loser[decided], share[decided]
    edges = np.column_stack([winner, loser])
    wrong = {name: wrong_pairs(values, edges) for name, values in scores.items()}
    figures = {name: mean_over_pairs(values, edges, share, level=level) for name, values in wrong.items()}
    first, *others = wrong
    comparisons = {
        other: compare_over_pairs(wrong[first], wrong[other], edges, share, level=level) for other in others
    }
    return {"pairwise_error": figures}, {"pairwise_error": comparisons}, {"pairwise_error": CONTRADICTED}


def _print(
    rows: Rows,
    figures: dict[str, dict[str, Interval]],
    comparisons: dict[str, dict[str, Comparison]],
    conventions: dict[str, str],
    level: float,
) -> None:
    models = list(next(iter(figures.values())))
    some = next(iter(figures.values()))[models[0]]
    kind = {"pairs": ", where pairs that share an item count as dependent", "rows": ", bootstrap"}
    over = f"{level:.0%}, over {how_many(some.n, some.unit)}{kind.get(some.unit, '')}"
    print_facts({"data": rows.describe(), "intervals": over})
    write()
    if len(models) == 1:
        lines = [
            [name, figure(own[models[0]].value), _brackets(own[models[0]])] for name, own in figures.items()
        ]
        print_table(["metric", "value", "interval"], lines)
    else:
        lines = [
            [name, *(f"{figure(own[model].value)} {_brackets(own[model])}" for model in models)]
            for name, own in figures.items()
        ]
        print_table(["metric", *models], lines)
        write(
            f"\n{models[0]} against the others; p of the paired randomisation test, alone and adjusted for the number "
            "of comparisons (Holm):"
        )
        print_table(
            ["metric", "against", "difference", "interval", "better/worse/same", "p", "adjusted"],
            _comparison_lines(comparisons),
            left=(0, 1),
        )
    write("\nconventions")
    for words, names in _by_convention(conventions).items():
        write(f"  {', '.join(names)}: {words}")


def _by_convention(conventions: dict[str, str]) -> dict[str, list[str]]:
    """Gather the metrics that differ in their cutoff alone."""
    gathered: dict[str, list[str]] = {}
    for name, words in conventions.items():
        shared = (words.partition(": ")[2] or words).replace(
            f"the first {name.partition('@')[2]};", "the first k;"
        )
        gathered.setdefault(shared, []).append(name)
    return gathered


def _comparison_lines(comparisons: dict[str, dict[str, Comparison]]) -> list[list[str]]:
    found = [(metric, other, one) for metric, own in comparisons.items() for other, one in own.items()]
    adjusted = holm([one.p_value for _, _, one in found])
    return [
        [
            metric,
            other,
            f"{one.difference.value:+.4f}",
            _brackets(one.difference, sign=True),
            f"{one.wins}/{one.losses}/{one.ties}" if one.wins + one.losses + one.ties else "-",
            *(p_text(value).removeprefix("= ") for value in (one.p_value, p)),
        ]
        for (metric, other, one), p in zip(found, adjusted, strict=True)
    ]


def _brackets(interval: Interval, *, sign: bool = False) -> str:
    if not np.isfinite(interval.low):
        return ""
    return (
        f"[{interval.low:+.3f}, {interval.high:+.3f}]"
        if sign
        else f"[{interval.low:.3f}, {interval.high:.3f}]"
    )


def _as_json(
    rows: Rows,
    figures: dict[str, dict[str, Interval]],
    comparisons: dict[str, dict[str, Comparison]],
    conventions: dict[str, str],
) -> dict[str, object]:
    found = [(metric, other, one) for metric, own in comparisons.items() for other, one in own.items()]
    adjusted = holm([one.p_value for _, _, one in found])
    return {
        "data": rows.facts(),
        "conventions": conventions,
        "models": {
            model: {metric: asdict(own[model]) for metric, own in figures.items()}
            for model in next(iter(figures.values()))
        },
        "comparisons": [
            {**asdict(one), "against": other, "p_adjusted": float(p)}
            for (_, other, one), p in zip(found, adjusted, strict=True)
        ],
    }


def _write_per_query(metrics: list[Metric], rows: Rows, scores: Scores, target: str) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    queries = rows.queries
    assert rows.y is not None
    several = len(scores) > 1
    heads = [f"{name} {metric.name}" if several else metric.name for name in scores for metric in metrics]
    writer.writerow(["qid", "rows", *heads])
    columns = [
        metric.prepare(rows.labels, queries, sample_weight=rows.weight).per_query(scores[name]).values
        for name in scores
        for metric in metrics
    ]
    for position, identity in enumerate(queries.ids.tolist()):
        values = ["" if np.isnan(column[position]) else repr(float(column[position])) for column in columns]
        writer.writerow([identity, int(queries.sizes[position]), *values])
    with output_stream(target) as stream:
        stream.write(text.getvalue().encode())
