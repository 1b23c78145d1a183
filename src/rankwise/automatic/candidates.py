"""What there is to choose from: methods, each with its own choice of regularisation, and ways to scale columns.

A candidate is a method with options on scaled columns. Its `selector` chooses the regularisation on the splits it is
given and fits all rows; `fixed` is the estimator of one fit with what the selector chose, to be fitted without each
fold in turn. A method is one entry of `METHODS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwise.arrays import Splits
from rankwise.estimators.additive import AdditiveRanker
from rankwise.estimators.additive_cv import AdditiveRankerCV
from rankwise.estimators.base import Ranker
from rankwise.estimators.kernel_rls import KernelRankRLS
from rankwise.estimators.kernel_rls_cv import KernelRankRLSCV
from rankwise.estimators.rank_rls import RankRLS
from rankwise.estimators.rank_rls_cv import RankRLSCV
from rankwise.estimators.rank_svm import RankSVM
from rankwise.estimators.rank_svm_cv import RankSVMCV
from rankwise.metrics import Metric

__all__ = [
    "AVERAGE",
    "BASIS",
    "FIXED",
    "KERNELS",
    "METHODS",
    "SCALINGS",
    "Candidate",
    "Method",
    "Setting",
    "complexity",
]

# Columns up to which converged models are compared; they then cost what stopping early costs, and are solved directly.
_CONVERGED_COLUMNS = 1000
# Multiples of 1 / (number of columns) on standardised columns. Tables are rough: on six sets that were developed on,
# 300 basis rows of the Laplacian kernel were ahead of 500 of the RBF kernel on four and beside it on two, in a quarter
# of the time, and all rows were ahead on all six.
_GAMMAS = {"laplacian": (0.3, 1.0), "rbf": (0.1, 0.5)}
KERNELS = tuple(_GAMMAS)
BASIS = 200  # rows of a reduced set, at first
_SVM_TOLERANCE = 1e-4
_SMALLEST_FOLD = 0.4  # of the rows, that some split may train on
# Fewer steps than `AdditiveRankerCV` takes by itself: 10,000 x 50 are to take five seconds.
_CURVE_KNOTS: dict[str, Any] = {"n_knots": (8, 32), "surface_knots": (5, 12)}
_SCREENED_KNOTS: dict[str, Any] = {"n_knots": 8, "surface_knots": 5}
_MANY_ROWS = 2000  # for finer curves

# Parameters of methods that a caller may fix.
FIXED = ("ties", "cost", "query_weight", "gamma")

SCALINGS: Mapping[str, str] = {
    "none": "columns as they are",
    "standard": "standardised columns",
    "max-abs": "columns divided by their largest value",
    "rank": "columns by rank among all rows",
    "query-minmax": "columns from 0 to 1 inside each query",
    "query-standard": "columns standardised inside each query",
    "query-rank": "columns ranked inside each query",
    "standard+query-standard": "standardised columns beside the same inside each query",
    "standard+query-rank": "standardised columns beside their ranks inside each query",
}


@dataclass(frozen=True)
class Setting:
    """What every candidate of one choice shares.

    Attributes
    ----------
    metric : Metric
    cv : list of (train, test), or None
        None where an evaluation set scores.
    alphas : tuple of float, optional
        A grid of the caller's, instead of the method's own.
    n_columns : int
        Of the scaled columns.
    n_rows : int
    basis : int
        Rows of a reduced set.
    found : float, optional
        The alpha that a sample of the rows chose, as it would be for all of them.
    gamma : float, optional
        What a sample chose.
    is_sample : bool
        Whether these rows are to find finalists only.
    """

    metric: Metric
    cv: Splits | None
    alphas: tuple[float, ...] | None
    n_columns: int
    n_rows: int
    basis: int
    random_state: int
    n_threads: int | None
    found: float | None = None
    gamma: float | None = None
    is_sample: bool = False

    @property
    def shared(self) -> dict[str, Any]:
        """Parameters of every selector."""
        found = {"scoring": self.metric, "random_state": self.random_state, "n_threads": self.n_threads}
        if self.cv is not None:
            found["cv"] = self.cv
        if self.alphas is not None:
            found["alphas"] = self.alphas
        return found


def complexity(candidate: Candidate) -> int:
    """Return a number that is smaller for what is simpler; a mean is less simple than everything."""
    if candidate.parts:
        return 1 + max(method.complexity for method in METHODS.values())
    return METHODS[candidate.method].complexity


MakeSelector = Callable[[Setting, dict[str, Any]], Ranker]


@dataclass(frozen=True)
class Method:
    """One way to learn.

    Attributes
    ----------
    description : str
    complexity : int
        What is simpler is smaller: linear models are 0.
    cost : float
        Roughly how long it takes, in times of least squares.
    selector : callable
        Makes the estimator that chooses its regularisation: ``selector(setting, options)``.
    fixed : callable
        Makes the estimator of one fit from a fitted selector.
    takes : frozenset of {"labels", "pairs"}
    form : str
        What the fitted model is: "linear", "curves" or "kernel".
    is_mean : bool
        Whether its loss is a mean over pairs, so that the best alpha falls as rows are added.
    """

    description: str
    complexity: int
    cost: float
    selector: MakeSelector
    fixed: Callable[[Any], Ranker]
    takes: frozenset[str]
    form: str
    is_mean: bool = False


@dataclass(frozen=True)
class Candidate:
    """A method on scaled columns, or the mean of several of these.

    Attributes
    ----------
    method : str
        A key of `METHODS`.
    scaling : str
        A key of `SCALINGS`.
    options : tuple of (str, value)
        Parameters of the method's estimators, such as ``(("ties", "exclude"),)``; and ``("labels", "ranks")``, where
        models are fitted to the ranks of labels.
    parts : tuple of Candidate
        Of a mean.
    """

    method: str
    scaling: str = "none"
    options: tuple[tuple[str, Any], ...] = ()
    parts: tuple[Candidate, ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the method's estimators."""
        return {name: value for name, value in self.options if name != "labels"}

    @property
    def ranks_labels(self) -> bool:
        """Whether models are fitted to the ranks of labels."""
        return ("labels", "ranks") in self.options

    @property
    def needs_queries(self) -> bool:
        """Whether a row can only be scored together with the others of its query."""
        return "query" in self.scaling or any(part.needs_queries for part in self.parts)

    @property
    def is_readable(self) -> bool:
        """Whether it is one model that columns explain: neither a mean nor a kernel, which is explained by rows."""
        return not self.parts and METHODS[self.method].form != "kernel"

    def describe(self) -> str:
        """Name it in words."""
        if self.parts:
            forms = [_FORM_DESCRIPTIONS[METHODS[part.method].form] for part in self.parts]
            return f"the mean of the best {', '.join(forms[:-1])} and {forms[-1]}"
        options = [_OPTION_DESCRIPTIONS[name, value] for name, value in self.options if name != "gamma"]
        return ", ".join([METHODS[self.method].description, *options, SCALINGS[self.scaling]])


_FORM_DESCRIPTIONS = {"linear": "linear model", "curves": "curves", "kernel": "kernel"}
_OPTION_DESCRIPTIONS = {
    ("labels", "ranks"): "labels by rank",
    ("kernel", "laplacian"): "Laplacian",
    ("kernel", "rbf"): "RBF",
    ("basis", 1000): "1,000 basis rows",
    ("basis", "all"): "all rows",
    ("ties", "exclude"): "ties left out",
    ("cost", "unit"): "every pair 1 apart",
    ("query_weight", "size"): "queries weigh by their rows",
    ("query_weight", "equal"): "queries weigh alike",
}


def _least_squares(setting: Setting, options: dict[str, Any]) -> RankRLSCV:
    method = "tikhonov" if setting.n_columns <= _CONVERGED_COLUMNS else "hybrid"
    if setting.alphas is not None and len(setting.alphas) == 1:
        method = "tikhonov"  # an alpha that was given means the converged model
    return RankRLSCV(method=method, **setting.shared, **options)


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
    return lambda setting, options: RankSVMCV(loss=loss, tol=_SVM_TOLERANCE, **setting.shared, **options)


def _fixed_margins(chosen: RankSVMCV) -> RankSVM:
    return RankSVM(float(chosen.alpha_), **_same(chosen, "loss", "query_weight", "tol", "n_threads"))


def _additive(interactions: int | str) -> MakeSelector:
    def selector(setting: Setting, options: dict[str, Any]) -> AdditiveRankerCV:
        # The grid of the method, which goes on where its end is best; adapting the penalty takes twice as long.
        given: dict[str, Any] = {"adaptive": 0, "selective": 0}
        if setting.found is not None:
            # What a sample found, and less: penalties of more rows were the same or smaller.
            given["alphas"] = tuple(float(f"{setting.found * part:.2g}") for part in (1.0, 0.3, 0.1))
        if setting.n_rows >= _MANY_ROWS:
            given |= _SCREENED_KNOTS if setting.is_sample else _CURVE_KNOTS
        given |= setting.shared
        return AdditiveRankerCV(interactions=interactions, **given, **options)

    return selector


def _fixed_additive(chosen: AdditiveRankerCV) -> AdditiveRanker:
    return AdditiveRanker(
        chosen.alpha_,
        n_knots=chosen.n_knots_,
        surface_knots=chosen.surface_knots_,
        adaptive=chosen.adaptive_,
        selective=chosen.selective_,
        interactions=len(chosen.interactions_),  # each fold ranks the pairs of columns by its own rows
        **_same(chosen, "loss", "query_weight", "tol", "random_state", "n_threads"),
    )


def _kernel(setting: Setting, options: dict[str, Any]) -> KernelRankRLSCV:
    kernel = options.pop("kernel", KERNELS[0])
    wanted = options.pop("basis", setting.basis)
    # Rows that train without a fold.
    basis = wanted if wanted != "all" and _SMALLEST_FOLD * setting.n_rows > wanted else None
    gammas = [float(factor / setting.n_columns) for factor in _GAMMAS[kernel]]
    if setting.gamma is not None:
        gammas = [setting.gamma]
    given = {"gamma": gammas, "basis": basis, **setting.shared, **options}
    return KernelRankRLSCV(kernel, **given)


def _fixed_kernel(chosen: KernelRankRLSCV) -> KernelRankRLS:
    return KernelRankRLS(
        chosen.kernel,
        gamma=float(chosen.gamma_),
        alpha=float(np.squeeze(chosen.alpha_)),
        **_same(chosen, "basis", "query_weight", "ties", "cost", "random_state", "n_threads"),
    )


_BOTH = frozenset({"labels", "pairs"})

METHODS: Mapping[str, Method] = {
    "rls": Method("RankRLS", 0, 1.0, _least_squares, _fixed_least_squares, _BOTH, "linear"),
    "svm-squared": Method(
        "RankSVM, squared hinge",
        0,
        3.0,
        _margins("squared_hinge"),
        _fixed_margins,
        _BOTH,
        "linear",
        is_mean=True,
    ),
    "svm": Method("RankSVM, hinge", 0, 6.0, _margins("hinge"), _fixed_margins, _BOTH, "linear", is_mean=True),
    "logistic": Method(
        "pairwise logistic regression",
        0,
        3.0,
        _margins("logistic"),
        _fixed_margins,
        frozenset({"pairs"}),
        "linear",
        is_mean=True,
    ),
    "curves": Method(
        "a curve for each column", 1, 4.0, _additive(0), _fixed_additive, _BOTH, "curves", is_mean=True
    ),
    "surfaces": Method(
        "curves and surfaces of two columns",
        2,
        30.0,
        _additive("auto"),
        _fixed_additive,
        _BOTH,
        "curves",
        is_mean=True,
    ),
    "kernel": Method("kernel RankRLS", 3, 12.0, _kernel, _fixed_kernel, _BOTH, "kernel"),
}
# Of the best of each form, as far as they are close: what takes no fit of its own is no method.
AVERAGE = "average"
