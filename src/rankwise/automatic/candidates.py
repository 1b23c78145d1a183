"""Candidates: methods with their own choice of regularisation, ways to scale columns, and estimated costs.

A candidate is a method with options on scaled columns. The `selector` of a method chooses the regularisation on the
splits it is given and fits all rows; `fixed` is the estimator of one fit with the same settings, to be fitted without
each fold in turn.

Costs are estimated from counts, not from the clock, so that a fit is reproducible. They are processor seconds of one
core of 2024, right within a factor of two or three; of the full additive search .5 to 4.4 times what it took on eight
tables of PMLB, and more where it stops early.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from rankwise.automatic.scaling import CODES, PRODUCTS
from rankwise.automatic.trees import BoostedTrees
from rankwise.estimators.additive import AUTO_COUNTS, AdditiveRanker, AdditiveRankerCV, affordable_knots
from rankwise.estimators.base import Ranker
from rankwise.estimators.kernel import KernelRankRLS
from rankwise.estimators.linear import RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.exporters.targets import TARGETS, Target

# Columns up to which converged models are compared; they then cost what stopping early costs, and are solved directly.
_CONVERGED_COLUMNS = 1000
_SVM_TOLERANCE = 1e-4
# Multiples of 1 / (number of columns).
_GAMMAS = {"laplacian": (0.3, 1.0), "rbf": (0.1, 0.5)}
# Kernels and their columns: the Laplacian kernel, which is rough as tables often are, on ranks, which have no tails.
KERNELS = {"laplacian": "rank", "rbf": "standard"}

# Parameters of methods that a caller may fix.
FIXED = ("ties", "cost", "query_weight", "gamma", "basis")

# Settings of the additive search, the most thorough first.
ADDITIVE: tuple[dict[str, Any], ...] = (
    {},
    {"interactions": (0, 20, 80)},
    {"interactions": (0, 20, 80), "n_knots": 8, "surface_knots": (5, 9), "adaptive": 0},
    {"interactions": (0, 20, 80), "n_knots": 8, "surface_knots": 5, "adaptive": 0},
    {"interactions": (0, 20), "n_knots": 8, "surface_knots": 5, "adaptive": 0},
    {"interactions": 0, "n_knots": 8, "adaptive": 0},
)


@dataclass(frozen=True)
class Size:
    """The counts that costs are estimated from.

    Attributes
    ----------
    n_rows, n_columns : int
    n_entries : int
        Numbers stored in X.
    n_folds : int
        The folds that score.
    """

    n_rows: int
    n_columns: int
    n_entries: int
    n_folds: int

    def rls(self) -> float:
        """Return the estimated cost of `RankRLSCV`."""
        n_columns = self.n_columns
        if n_columns <= _CONVERGED_COLUMNS:
            passes = n_columns + 30 * (1 + self.n_folds)
            return 1e-9 * (self.n_entries * passes + 30 * n_columns**3)
        return 4e-7 * self.n_entries * (1 + self.n_folds)

    def margins(self) -> float:
        """Return the estimated cost of `RankSVMCV`: about 50 products for each fold."""
        return (1 + self.n_folds) * (1e-7 * self.n_entries + 1e-6 * self.n_rows)

    def additive(self, settings: Mapping[str, Any]) -> float:
        """Return the estimated cost of `AdditiveRankerCV`: products of curves, coarse surfaces and fine ones."""
        most = int(np.max(settings.get("interactions", AUTO_COUNTS)))
        n_surfaces = min(most, self.n_columns * (self.n_columns - 1) // 2)
        auto = affordable_knots("surface_knots", self.n_rows, n_surfaces)
        coarse, *finer = np.atleast_1d(settings.get("surface_knots", auto)).tolist()
        seconds = 100 * self._product(0, 0)
        if n_surfaces:
            # Ranking the pairs of 600 columns took 0.8 s of 200 rows.
            ranking = (1e-9 * self.n_rows + 2.5e-6) * self.n_columns**2
            seconds += 120 * self._product(n_surfaces, coarse) + ranking
        if n_surfaces and finer:
            seconds += (100 if "adaptive" in settings else 200) * self._product(n_surfaces, finer[-1])
        return self.n_folds * seconds + 50 * self._product(n_surfaces, [coarse, *finer][-1])

    def _product(self, n_surfaces: int, n_knots: int) -> float:
        """Return the seconds of one product with codes of curves and surfaces."""
        return 3e-9 * self.n_rows * (self.n_columns + 4 * n_surfaces) + 4e-9 * n_surfaces * n_knots**3

    def kernel(self, basis: int, n_gammas: int) -> float:
        """Return the estimated cost of a kernel on a reduced set: for each gamma the features and factors of folds."""
        n, b = self.n_rows, min(basis, self.n_rows)
        features = 2e-9 * n * b * self.n_columns + 5e-11 * (10 * b**3 + 2 * n * b**2)
        return n_gammas * (features + 5e-11 * (1 + self.n_folds) * (2 * n * b**2 + 4 * b**3))

    def trees(self, n_trees: int, n_leaves: int) -> float:
        """Return the estimated cost of growing boosted trees once."""
        return 2e-9 * n_trees * (2 * self.n_entries + 3e4 * n_leaves)


# Makes a ranker from the counts of the data and the parameters that all candidates share, or that are its own.
MakeSelector = Callable[[Size, dict[str, Any]], Ranker]


@dataclass(frozen=True)
class Method:
    """One way to learn.

    Attributes
    ----------
    description : str
    complexity : int
        Simpler models have smaller numbers: linear models are 0.
    form : {"linear", "curves", "surfaces", "kernel", "trees"}
    selector : callable
        Makes the estimator that chooses its regularisation: ``selector(size, parameters)``.
    fixed : callable
        Makes the estimator of one fit from a fitted selector.
    takes : frozenset of {"rows", "pairs"}
        What it learns from: labels of rows, or listed pairs.
    """

    description: str
    complexity: int
    form: str
    selector: MakeSelector
    fixed: Callable[[Any], Ranker]
    takes: frozenset[str] = frozenset({"rows", "pairs"})


@dataclass(frozen=True)
class Candidate:
    """A method on scaled columns, or the mean of several of these.

    Attributes
    ----------
    method : str
        A key of `METHODS`, or `AVERAGE`.
    scaling : str
        "none", "codes", "standard", "rank", "products" or "query-standard".
    options : tuple of (str, value)
        Parameters of the method's estimators, such as ``(("kernel", "rbf"),)``.
    parts : tuple of Candidate
        The candidates of a mean.
    """

    method: str
    scaling: str = "none"
    options: tuple[tuple[str, Any], ...] = ()
    parts: tuple[Candidate, ...] = ()

    @property
    def form(self) -> str:
        """The form of the model."""
        return AVERAGE if self.parts else METHODS[self.method].form

    @property
    def complexity(self) -> float:
        """A number that is smaller for simpler models; means are the least simple ones."""
        more = 0.5 * (self.scaling == PRODUCTS)
        return len(METHODS) if self.parts else METHODS[self.method].complexity + more

    @property
    def needs_queries(self) -> bool:
        """Whether a row can only be scored together with the others of its query."""
        return "query" in self.scaling or any(part.needs_queries for part in self.parts)

    @property
    def is_coded(self) -> bool:
        """Whether it takes the columns of a table as they are."""
        return self.scaling == CODES or any(part.is_coded for part in self.parts)

    def describe(self) -> str:
        """Name it in words."""
        if self.parts:
            names = [part.form for part in self.parts]
            return f"mean of {', '.join(names[:-1])} and {names[-1]}"
        scaled = "query-scaled" if self.needs_queries else ""
        scaled = "products" if self.scaling == PRODUCTS else scaled
        words = [METHODS[self.method].description, *map(_words, self.options), scaled]
        return ", ".join(filter(None, words))


def _words(option: tuple[str, Any]) -> str:
    name, value = option
    if name == "basis":
        return "all rows" if value is None else f"{value:,} basis rows"
    return f"{value} leaves" if name == "n_leaves" else str(value)


def exportable_to(candidate: Candidate) -> tuple[str, ...]:
    """Name the targets of `rankwise.export` that can run such a model, given the caller's guarantees."""
    parts = candidate.parts or (candidate,)
    # Search engines take weights or trees of curves, and no mean of both.
    is_mixed = len({part.form == "linear" for part in parts}) > 1
    return tuple(
        name
        for name, target in TARGETS.items()
        if not (target.is_engine and is_mixed) and all(_runs(part, target) for part in parts)
    )


def _runs(candidate: Candidate, target: Target) -> bool:
    if candidate.form == "trees":
        return False
    if (candidate.form == "kernel" and not target.kernels) or (
        candidate.scaling == PRODUCTS and target.is_engine
    ):
        return False
    if not candidate.needs_queries:
        return True
    inside = candidate.scaling.removeprefix("query-")
    return inside in target.scales and (candidate.form == "linear" or target.goes_on)


def _least_squares(size: Size, parameters: dict[str, Any]) -> RankRLSCV:
    is_given = len(parameters.get("alphas", ())) == 1  # an alpha that was given means the converged model
    method = "tikhonov" if is_given or size.n_columns <= _CONVERGED_COLUMNS else "hybrid"
    return RankRLSCV(**{"method": method, **parameters})


def _same(chosen: Ranker, *names: str) -> dict[str, Any]:
    """Return parameters of a selector that its estimator of one fit shares."""
    return {name: getattr(chosen, name) for name in names}


def _fixed_least_squares(chosen: RankRLSCV) -> RankRLS:
    parameters = _same(chosen, "query_weight", "ties", "cost", "n_threads")
    if chosen.method_ == "tikhonov":
        return RankRLS(float(chosen.alpha_), **parameters)
    steps = int(chosen.best_iteration_)
    # The iterate itself, however far it is from converged.
    return RankRLS(float(chosen.alpha_), solver="cg", max_iter=steps, tol=1e-14, **parameters)


def _margins(loss: str) -> MakeSelector:
    return lambda _, parameters: RankSVMCV(loss=loss, tol=_SVM_TOLERANCE, **parameters)


def _fixed_margins(chosen: RankSVMCV) -> RankSVM:
    return RankSVM(float(chosen.alpha_), **_same(chosen, "loss", "query_weight", "tol", "n_threads"))


def _additive(size: Size, parameters: dict[str, Any]) -> AdditiveRankerCV:
    return AdditiveRankerCV(**parameters)


def _fixed_additive(chosen: AdditiveRankerCV) -> AdditiveRanker:
    return AdditiveRanker(
        float(chosen.alpha_),
        n_knots=chosen.n_knots_,
        surface_knots=chosen.surface_knots_,
        adaptive=chosen.adaptive_,
        selective=chosen.selective_,
        interactions=len(chosen.interactions_),  # each fold ranks the pairs of columns by its own rows
        **_same(chosen, "loss", "query_weight", "categorical", "tol", "random_state", "n_threads"),
    )


def gammas_of(kernel: str, n_columns: int) -> list[float]:
    """Return the gammas that are tried."""
    return [factor / n_columns for factor in _GAMMAS[kernel]]


def _kernel(size: Size, parameters: dict[str, Any]) -> KernelRankRLS:
    known = ("kernel", "basis", "random_state", "n_threads")
    return KernelRankRLS(**{name: parameters[name] for name in known})


def _trees(size: Size, parameters: dict[str, Any]) -> BoostedTrees:
    known = ("n_leaves", "random_state", "n_threads")
    return BoostedTrees(**{name: parameters[name] for name in known})


def _fixed_trees(chosen: BoostedTrees) -> BoostedTrees:
    fixed: BoostedTrees = clone(chosen).set_params(n_trees=chosen.n_trees_)
    return fixed


METHODS: Mapping[str, Method] = {
    "rls": Method("linear, squared loss", 0, "linear", _least_squares, _fixed_least_squares),
    "svm-squared": Method("linear, squared hinge", 0, "linear", _margins("squared_hinge"), _fixed_margins),
    "svm": Method("linear, hinge", 0, "linear", _margins("hinge"), _fixed_margins),
    "logistic": Method(
        "linear, logistic loss", 0, "linear", _margins("logistic"), _fixed_margins, frozenset({"pairs"})
    ),
    "curves": Method("curves", 1, "curves", _additive, _fixed_additive),
    "surfaces": Method("curves and surfaces", 2, "surfaces", _additive, _fixed_additive),
    "kernel": Method("kernel", 3, "kernel", _kernel, clone),  # gamma and alpha are chosen by the search
    "trees": Method("boosted trees", 4, "trees", _trees, _fixed_trees, frozenset({"rows"})),
}
# Of the best of each form: what takes no fit of its own is no method.
AVERAGE = "average"
