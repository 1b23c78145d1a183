"""The candidates of a selection with their held-out values, as a table for readers and as records."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, overload

import numpy as np

from rankwise.automatic.candidates import exportable_to
from rankwise.automatic.search import YARDSTICK, Search, Trial
from rankwise.pairs.figures import Figure, paired_difference

UNCLEAR = "No candidate is clearly better than a constant score."
_CLEAR = 2.0  # standard errors of a difference from which it is clear
_WIDEST = 35  # characters of a description
_LISTS = ("exportable_to", "parts")


@dataclass(frozen=True)
class Entry:
    """One candidate.

    Attributes
    ----------
    description : str
        A description in words.
    method, scaling, form : str
    options : dict
        Further parameters of the method.
    value, standard_error : float
        The metric on held-out rows, and the standard error of that mean over queries, blocks or couples.
    difference, difference_error : float
        How much worse than the best value, and the standard error of that difference over the same units.
    alpha : float or None
    iterations : int or None
    seconds : float
        For choosing its regularisation, fitting it, and fitting it without each fold; 0 in tables from a file.
    exportable_to : tuple of str
    needs_queries : bool
        Whether a row can only be scored together with the others of its query.
    parts : tuple of str
        The models of a mean, each with its chosen regularisation.
    is_chosen, is_rival : bool
        Rivals are estimators of other packages, which are never chosen.
    """

    description: str
    method: str
    scaling: str
    value: float
    standard_error: float
    form: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    difference: float = 0.0
    difference_error: float = 0.0
    alpha: float | None = None
    iterations: int | None = None
    seconds: float = 0.0
    exportable_to: tuple[str, ...] = ()
    needs_queries: bool = False
    parts: tuple[str, ...] = ()
    is_chosen: bool = False
    is_rival: bool = False

    @property
    def summary(self) -> str:
        """The description with the chosen regularisation."""
        return ", ".join(filter(None, [self.description, self.regularisation]))

    @property
    def regularisation(self) -> str:
        """The chosen alpha, and the iteration where it was chosen."""
        if self.alpha is None:
            return ""
        ending = "s" * (self.iterations != 1)
        steps = "" if self.iterations is None else f", {self.iterations} iteration{ending}"
        return f"alpha {self.alpha:g}{steps}"

    @property
    def parameters(self) -> str:
        """The parameters of the candidate, by name."""
        found = {"method": self.method, "scaling": self.scaling, **self.options}
        if self.alpha is not None:
            found["alpha"] = f"{self.alpha:g}"
        if self.iterations is not None:
            found["iterations"] = self.iterations
        return ", ".join(f"{name}={value}" for name, value in found.items())


@dataclass(frozen=True, repr=False)
class CandidateTable(Sequence[Entry]):
    """The candidates, the best first. Printed, it is a table; ``list(candidates)`` are its entries.

    Attributes
    ----------
    entries : tuple of Entry
    metric : str
    greater_is_better : bool
    judged_by : str
        A description of the validation.
    constant : float or None
        The metric of scores that are all the same.
    is_clear : bool
        Whether the best candidate is ahead of that by more than two standard errors of the difference.
    remarks_on_others : list of str
        Whether boosted trees and rivals are ahead of the chosen candidate, a sentence each.
    """

    entries: tuple[Entry, ...]
    metric: str
    greater_is_better: bool
    judged_by: str
    constant: float | None = None
    is_clear: bool = True
    remarks_on_others: list[str] = field(default_factory=list)

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

    def header(self) -> list[str]:
        """Return the names of the printed columns."""
        return ["", "candidate", self.metric, "worse by", "time"]

    def lines(self, *, every: bool = True) -> list[list[str]]:
        """Return the cells of the printed table: every candidate, or the best of each form and the chosen one."""
        best_of_form: dict[str, Entry] = {}
        for entry in self.entries:
            best_of_form.setdefault(entry.description if entry.is_rival else entry.form, entry)
        shown = [one for one in self.entries if every or one.is_chosen or one in best_of_form.values()]
        cells = [
            [
                "*" if entry.is_chosen else "",
                _shortened(entry.description),
                _with_error(entry.value, entry.standard_error),
                "" if entry.difference == 0 else _with_error(entry.difference, entry.difference_error, "+"),
                f"{entry.seconds:.1f} s" if entry.seconds else "",
            ]
            for entry in shown
        ]
        others = [entry.difference for entry in self.entries if entry not in shown]
        if others:
            cells.append(["", f"{len(others)} more within {max(others):.4f} of the best", "", "", ""])
        return cells

    def remarks(self) -> list[str]:
        """Return the sentences below the printed table."""
        better = "Higher" if self.greater_is_better else "Lower"
        if self.constant is None:
            return list(self.remarks_on_others)
        known = f"{better} is better. A constant score has {self.metric} {self.constant:.4f}."
        return [known, *([] if self.is_clear else [UNCLEAR]), *self.remarks_on_others]

    def __str__(self) -> str:
        table = [self.header(), *self.lines(every=False)]
        widths = [max(len(line[at]) for line in table) for at in range(len(table[0]))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in table
        ]
        return "\n".join([*lines, *self.remarks()])

    def __repr__(self) -> str:
        best = self.chosen
        return f"<{len(self)} candidates; chosen: {best.description}, {self.metric} {best.value:.4f}>"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(name)}</th>" for name in self.header())
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in self.lines()
        )
        remarks = "".join(f"<p>{escape(line)}</p>" for line in self.remarks())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{remarks}"


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _with_error(value: float, error: float, sign: str = "") -> str:
    text = f"{value:{sign}.4f}"
    return text if math.isnan(error) else f"{text} ± {error:.4f}"


def candidate_table(search: Search, chosen: Trial, targets: Collection[str]) -> CandidateTable:
    """Make the table of a search, with estimators of other packages among its candidates.

    `targets` are those that can run the steps before the models.
    """
    metric = search.problem.metric
    best = search.best(search.trials)
    sign = -1.0 if metric.greater_is_better else 1.0
    found: dict[int, Entry] = {}
    summaries: dict[Any, str] = {}
    for number, trial in enumerate(search.trials):
        difference, error = paired_difference(trial.figure, best.figure)
        candidate = trial.candidate
        entry = Entry(
            candidate.describe(),
            candidate.method,
            candidate.scaling,
            trial.figure.value,
            trial.figure.standard_error,
            candidate.form,
            dict(candidate.options),
            sign * difference,
            error,
            trial.alpha,
            trial.iterations,
            trial.seconds,
            tuple(one for one in exportable_to(candidate) if one in targets),
            candidate.needs_queries,
            tuple(summaries[part] for part in candidate.parts),
            is_chosen=candidate == chosen.candidate,
        )
        found[number], summaries[candidate] = entry, entry.summary
    entries = list(found.values())
    remarks = []
    for name, figure, seconds in search.compared:
        difference, error = paired_difference(figure, best.figure)
        entries.append(
            Entry(
                name, "rival", "none", figure.value, figure.standard_error, "rival", difference=sign * difference,
                difference_error=error, seconds=seconds, is_rival=True,
            )
        )  # fmt: skip
        remarks += _remark(name, figure, chosen.figure, sign, is_used=search.prefer == "accuracy")
    trees = [trial.figure for trial in search.trials if trial.candidate.form == "trees"]
    if trees and "trees" not in {one.form for one in (chosen.candidate, *chosen.candidate.parts)}:
        remarks += _remark(YARDSTICK, trees[0], chosen.figure, sign, is_used=True)
    entries.sort(key=lambda entry: sign * entry.value)
    constant = search.problem.figure(np.zeros(chosen.held_out.size))
    behind, error = paired_difference(constant, best.figure)
    return CandidateTable(
        tuple(entries),
        metric.name,
        metric.greater_is_better,
        search.problem.describe(),
        constant.value,
        sign * behind > _CLEAR * error,
        remarks,
    )


def _remark(name: str, figure: Figure, chosen: Figure, sign: float, *, is_used: bool) -> list[str]:
    """Return a sentence where a rival is clearly ahead of the chosen candidate, and about boosted trees in any case."""
    difference, error = paired_difference(chosen, figure)
    ahead = sign * difference
    if ahead > _CLEAR * error:
        hint = "" if name != YARDSTICK or is_used else "; prefer='accuracy' uses them"
        verb = "are" if name == YARDSTICK else "is"
        return [f"{name[0].upper()}{name[1:]} {verb} ahead by {ahead:.4f} ± {error:.4f}{hint}."]
    return [f"Boosted trees are not ahead ({ahead:+.4f} ± {error:.4f})."] if name == YARDSTICK else []
