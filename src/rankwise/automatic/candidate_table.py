"""What was tried, with its figures: a table for readers, rows for machines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, overload

import numpy as np

from rankwise.automatic.candidates import Candidate
from rankwise.automatic.figures import Figure, paired_difference
from rankwise.automatic.search import JUDGED, Search, Trial
from rankwise.automatic.targets import exportable_to

__all__ = ["UNCLEAR", "CandidateTable", "Entry", "candidate_table"]

_NAMED = 3  # targets in a line of the table
UNCLEAR = "No candidate is clearly better than a constant score."
_CLEAR = 2.0  # standard errors of the difference to a constant score
_LISTS = ("exportable_to", "parts")
_JUDGED_BY = {"fold": " (one fold)", "sample": " (sample)"}


@dataclass(frozen=True)
class Entry:
    """One candidate.

    Attributes
    ----------
    description : str
        What it is, in words.
    method, scaling : str
    options : dict
        Further parameters of the method.
    value, standard_error : float
        The metric on what was held out, and the standard error of that mean over queries, blocks or couples.
    difference, difference_error : float
        How much worse than the best value, and the standard error of that difference over the same units.
    alpha : float or None
    iterations : int or None
    seconds : float
        For choosing its regularisation, fitting it, and fitting it without each fold, or of all parts of a mean; 0 in
        what comes from a file.
    judged : {"all", "fold", "sample"}
        Whether all held-out rows scored it, those of one fold, or those of a sample; what fewer rows ruled out, more
        did not score.
    exportable_to : tuple of str
    needs_queries : bool
        Whether a row can only be scored together with the others of its query.
    parts : tuple of str
        Of a mean: its models, each with what was chosen inside it.
    is_chosen, is_rival : bool
        Rivals are estimators of other packages, which are never chosen.
    """

    description: str
    method: str
    scaling: str
    value: float
    standard_error: float
    options: dict[str, Any] = field(default_factory=dict)
    difference: float = 0.0
    difference_error: float = 0.0
    alpha: float | None = None
    iterations: int | None = None
    seconds: float = 0.0
    judged: str = "all"
    exportable_to: tuple[str, ...] = ()
    needs_queries: bool = False
    parts: tuple[str, ...] = ()
    is_chosen: bool = False
    is_rival: bool = False

    @property
    def is_readable(self) -> bool:
        """Whether it is one model that columns explain: neither a mean nor a kernel, nor a rival."""
        return not self.parts and self.method != "kernel" and not self.is_rival

    @property
    def summary(self) -> str:
        """Name it with what was chosen inside it."""
        return ", ".join(filter(None, [self.description, self.regularisation]))

    @property
    def regularisation(self) -> str:
        """Name what was chosen inside the candidate."""
        if self.alpha is None:
            return ""
        steps = (
            "" if self.iterations is None else f", {self.iterations} iteration{'s' * (self.iterations != 1)}"
        )
        return f"alpha {self.alpha:g}{steps}"


@dataclass(frozen=True, repr=False)
class CandidateTable(Sequence[Entry]):
    """The candidates, the best first; those that only one fold or a sample scored come after the others.

    Printed, it is a table. ``list(candidates)`` are its entries.

    Attributes
    ----------
    entries : tuple of Entry
    metric : str
    greater_is_better : bool
    judged_by : str
        What scored, in words.
    constant : float or None
        The metric of scores that are all the same, on the rows that scored the best candidates; None in what comes from
        an older file.
    is_clear : bool
        Whether the best candidate is ahead of that by more than two standard errors of the difference.
    """

    entries: tuple[Entry, ...]
    metric: str
    greater_is_better: bool
    judged_by: str
    constant: float | None = None
    is_clear: bool = True

    @overload
    def __getitem__(self, at: int) -> Entry: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[Entry]: ...
    def __getitem__(self, at: int | slice) -> Entry | Sequence[Entry]:
        return self.entries[at]

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    @property
    def chosen(self) -> Entry:
        """The candidate that was chosen."""
        return next(entry for entry in self.entries if entry.is_chosen)

    @property
    def best_single(self) -> Entry | None:
        """The best candidate that is no mean of others, nor a rival."""
        return next((entry for entry in self.entries if not (entry.parts or entry.is_rival)), None)

    @property
    def reason(self) -> str:
        """Why the rule "best" chose a mean or a kernel, or passed one over that has a better value; else empty."""
        chosen = self.chosen
        if chosen.is_readable:
            is_first = chosen.difference == 0
            return "" if is_first else "no mean or kernel is ahead of it by more than a standard error"
        beside = any(entry.is_readable and entry.judged == chosen.judged for entry in self.entries)
        return "ahead of what columns explain by more than a standard error" if beside else ""

    def limited_to(self, targets: Sequence[str]) -> CandidateTable:
        """Return the table for models behind a step that only these targets can run."""
        entries = [
            replace(entry, exportable_to=tuple(one for one in entry.exportable_to if one in targets))
            for entry in self.entries
        ]
        return replace(self, entries=tuple(entries))

    def as_dicts(self, *, times: bool = True) -> list[dict[str, Any]]:
        """Return the entries as plain values, as JSON takes them, or ``pandas.DataFrame``.

        Parameters
        ----------
        times : bool
            Without them, the same data give the same values.
        """
        rows = [
            {**asdict(entry), **{name: list(getattr(entry, name)) for name in _LISTS}}
            for entry in self.entries
        ]
        return rows if times else [{k: v for k, v in row.items() if k != "seconds"} for row in rows]

    @classmethod
    def from_dicts(cls, rows: Sequence[Mapping[str, Any]], **facts: Any) -> CandidateTable:
        """Make a table from the result of `as_dicts`."""
        known = {one.name for one in fields(Entry)}
        entries = []
        for row in rows:
            kept = {name: value for name, value in row.items() if name in known}
            entries.append(Entry(**{**kept, **{name: tuple(kept.get(name, ())) for name in _LISTS}}))
        return cls(tuple(entries), **facts)

    def lines(self) -> list[list[str]]:
        """Return the cells of the printed table, line by line."""
        return [
            [
                "*" if entry.is_chosen else "",
                entry.description + _JUDGED_BY.get(entry.judged, ""),
                _with_error(entry.value, entry.standard_error),
                "" if entry.difference == 0 else _with_error(entry.difference, entry.difference_error, "+"),
                entry.regularisation,
                f"{entry.seconds:.2g} s" if entry.seconds else "",
                _targets(entry.exportable_to),
            ]
            for entry in self.entries
        ]

    def header(self) -> list[str]:
        """Return the names of the printed columns."""
        better = "higher" if self.greater_is_better else "lower"
        return [
            "",
            "tried",
            f"{self.metric} ({better} is better)",
            "worse by",
            "with",
            "time",
            "exportable to",
        ]

    def remarks(self) -> list[str]:
        """Return what stands below the printed table: how good scores are that are all the same."""
        if self.constant is None:
            return []
        known = f"A constant score has {self.metric} {self.constant:.4f}."
        return [known] if self.is_clear else [known, UNCLEAR]

    def __str__(self) -> str:
        table = [self.header(), *self.lines()]
        widths = [max(len(line[at]) for line in table) for at in range(len(table[0]))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in table
        ]
        return "\n".join([*lines, *self.remarks()])

    __repr__ = __str__


def _targets(names: Sequence[str]) -> str:
    return ", ".join(names) if 0 < len(names) <= _NAMED else f"{len(names)} targets" if names else "-"


def _with_error(value: float, error: float, sign: str = "") -> str:
    text = f"{value:{sign}.4f}"
    return text if math.isnan(error) else f"{text} ± {error:.4f}"


def candidate_table(
    search: Search, chosen: Trial, rivals: Sequence[tuple[str, Figure, float]]
) -> CandidateTable:
    """Make the table of a search, with estimators of other packages among its candidates."""
    metric = search.problem.metric
    best = search.best(search.final_trials)
    sign = -1.0 if metric.greater_is_better else 1.0
    found: dict[Candidate, Entry] = {}
    last = {trial.candidate: trial for trial in search.trials}  # which more rows scored than those before
    for trial in last.values():
        other = search.best([one for one in search.trials if one.judged == trial.judged])
        difference, error = paired_difference(trial.figure, other.figure)
        ranker = trial.ranker
        found[trial.candidate] = Entry(
            trial.candidate.describe(),
            trial.candidate.method,
            trial.candidate.scaling,
            trial.figure.value,
            trial.figure.standard_error,
            # The gamma that a larger reduced set took over was chosen, not asked for.
            {name: value for name, value in trial.candidate.options if name != "gamma"},
            sign * difference,
            error,
            None if trial.candidate.parts else float(np.squeeze(ranker.alpha_)),
            int(ranker.best_iteration_) if getattr(ranker, "method_", "") == "hybrid" else None,
            trial.seconds,
            trial.judged,
            exportable_to(trial.candidate),
            trial.candidate.needs_queries,
            tuple(found[part].summary for part in trial.candidate.parts),
            is_chosen=trial.candidate == chosen.candidate,
        )
    entries = list(found.values())
    for name, figure, seconds in rivals:
        difference, error = paired_difference(figure, best.figure)
        entries.append(
            Entry(
                name, "rival", "none", figure.value, figure.standard_error,
                difference=sign * difference, difference_error=error, seconds=seconds, judged=best.judged,
                is_rival=True,
            )
        )  # fmt: skip
    entries.sort(key=lambda entry: (JUDGED.index(entry.judged), sign * entry.value))
    constant = search.scored_on.constant_figure()
    behind, error = paired_difference(constant, best.figure)
    return CandidateTable(
        tuple(entries),
        metric.name,
        metric.greater_is_better,
        search.judged_by,
        constant.value,
        sign * behind > _CLEAR * error,
    )
