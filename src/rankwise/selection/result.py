"""Results of a selection: the candidates, the choice, notices about it, and its fitted attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import Floats
from rankwise.fitting.notices import Notice
from rankwise.losses import LOSSES
from rankwise.metrics import Metric, get_metric
from rankwise.metrics.pairwise import LOG_LOSS
from rankwise.pairs.plan import oriented

EQUAL = 1e-12  # errors that differ by less are equally good: sums of weights round in the order of the rows


class Choice(NamedTuple):
    """An alpha, an iteration (0 where models have converged), and the held-out error there."""

    alpha: float
    step: int
    error: float


# Whatever a selection may have written; what another one does not write is forgotten.
WRITTEN = (
    "alpha_",
    "alphas_",
    "best_iteration_",
    "best_score_",
    "choices_",
    "cv_errors_",
    "history_",
    "keeps_basis_",
    "n_iter_",
    "n_products_",
    "penalty_power_",
    "surface_",
    "unpenalised_",
)


@dataclass(frozen=True)
class Selection:
    """A choice for every output. All values are errors: lower is better.

    Attributes
    ----------
    models : sequence of (columns or rows,) float64
        Coefficients, or dual coefficients, output by output.
    chosen : sequence of Choice
        Output by output.
    alphas : (alphas,) float64 or None
        The grid, which may have grown; None where iterations alone were chosen among.
    errors : (alphas, outputs) float64, or (gammas, alphas, outputs), or None
        As the method that chose reads them; NaN where an alpha was not tried.
    tables : (outputs, alphas, iterations) float64 or None
        After every iteration, where there are iterations; NaN from where an output ended before the others.
    unpenalised : (outputs, iterations) float64 or None
        The same for alpha = 0.
    choices : dict of str to sequence of Choice, or None
        The choice of each method.
    histories : sequence of list of float, or None
        After every iteration of early stopping, output by output.
    facts : dict
        Further attributes of the estimator, such as ``n_iter_``.
    notices : sequence of Notice
    """

    models: Sequence[Floats]
    chosen: Sequence[Choice]
    alphas: Floats | None = None
    errors: Floats | None = None
    tables: Floats | None = None
    unpenalised: Floats | None = None
    choices: Mapping[str, Sequence[Choice]] | None = None
    histories: Sequence[list[float]] | None = None
    facts: Mapping[str, object] = field(default_factory=dict)
    notices: Sequence[Notice] = ()

    @property
    def error(self) -> float:
        """The mean over outputs of the errors of the choice."""
        return float(np.mean([choice.error for choice in self.chosen]))

    @property
    def table(self) -> tuple[Floats, Floats]:
        """The grid and its errors, where alphas were chosen among."""
        assert self.alphas is not None
        assert self.errors is not None
        return self.alphas, self.errors

    def attributes(self, metric: Metric, *, several: bool) -> dict[str, object]:
        """Return the fitted attributes, which hold values of the metric; `several` keeps an axis of outputs."""
        flip = partial(oriented, greater_is_better=metric.greater_is_better)
        found: dict[str, object] = dict(self.facts)
        if self.alphas is not None and self.errors is not None:
            table = flip(self.errors)
            found["alphas_"] = self.alphas
            found["cv_errors_"] = table if several else table[..., 0]
            found["alpha_"] = one_or_all([choice.alpha for choice in self.chosen], several)
            found["best_score_"] = one_or_all([flip(choice.error) for choice in self.chosen], several)
        if self.tables is not None and self.unpenalised is not None:
            found["surface_"] = one_or_all(flip(self.tables), several)
            found["unpenalised_"] = one_or_all(flip(self.unpenalised), several)
        if self.histories is not None:
            histories = [[flip(error) for error in errors] for errors in self.histories]
            found["history_"] = histories if several else histories[0]
        if self.tables is not None or self.histories is not None:
            found["best_iteration_"] = one_or_all([choice.step for choice in self.chosen], several)
        if self.choices is not None:
            named = {
                method: [(choice.alpha, choice.step, flip(choice.error)) for choice in choices]
                for method, choices in self.choices.items()
            }
            found["choices_"] = named if several else {method: one[0] for method, one in named.items()}
        return found

    @classmethod
    def of_model(cls, model: Any) -> Selection | None:
        """Read the attributes of a fitted estimator back; None where it has chosen no alpha."""
        if not hasattr(model, "alphas_") or not hasattr(model, "cv_errors_"):
            return None
        several = np.ndim(model.alpha_) > 0
        metric = resolve_scoring(model.scoring, getattr(model, "loss", None))
        flip = partial(oriented, greater_is_better=metric.greater_is_better)
        alphas, scores = np.atleast_1d(model.alpha_), np.atleast_1d(model.best_score_)
        steps = np.atleast_1d(getattr(model, "best_iteration_", np.zeros(alphas.size, dtype=np.int64)))
        tables, unpenalised = (
            None if table is None else flip(table if several else table[None])
            for table in (getattr(model, "surface_", None), getattr(model, "unpenalised_", None))
        )
        choices = {
            method: [Choice(alpha, step, flip(value)) for alpha, step, value in (made if several else [made])]
            for method, made in getattr(model, "choices_", {}).items()
        }
        errors = np.asarray(model.cv_errors_)
        return cls(
            [],
            [Choice(float(a), int(s), flip(float(v))) for a, s, v in zip(alphas, steps, scores, strict=True)],
            np.asarray(model.alphas_),
            flip(errors if several else errors[..., None]),
            tables,
            unpenalised,
            choices or None,
        )

    def with_facts(self, **facts: object) -> Selection:
        """Return the same with further attributes."""
        return replace(self, facts={**self.facts, **facts})


def one_or_all(values: Any, several: bool) -> Any:
    """Return an array over outputs, or the value of the only one."""
    return np.array(values) if several else values[0]


def outputs_of(solutions: Sequence[Floats]) -> list[Floats]:
    """Return the coefficients of every output; a solution may hold those of several, as columns."""
    return [column for one in solutions for column in one.reshape(one.shape[0], -1).T]


def on_one_grid(tried: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, list[Floats]]:
    """Bring grids with their tables (alphas, ...) to the union; NaN where an alpha is in another grid only."""
    union = np.unique(np.concatenate([grid for grid, _ in tried]))
    tables = []
    for grid, table in tried:
        tables.append(np.full((union.size, *table.shape[1:]), np.nan))
        tables[-1][np.searchsorted(union, grid)] = table
    return union, tables


def resolve_scoring(scoring: str | Metric, loss: str | None = None) -> Metric:
    """Return the metric that `scoring` names; "auto" is the log-loss for a loss of probabilities, else the order."""
    if not isinstance(scoring, str) or scoring != "auto":
        return get_metric(scoring)
    is_probability = loss is not None and LOSSES[loss].is_probability
    return LOG_LOSS if is_probability else get_metric("pairwise_error")
