"""The search: candidates on the same folds within a budget, and the choice among them.

Linear models come first, then curves, then curves and surfaces, both from one additive search. ``prefer="accuracy"``
goes on with kernels, boosted trees and means. A candidate is tried where its estimated cost fits in the rest of the
budget; a time limit, if there is one, replaces the budget and reads the clock.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from rankwise.arrays import Floats, Ints, is_sparse
from rankwise.automatic.average import AverageRanker, mean_of
from rankwise.automatic.candidates import (
    ADDITIVE,
    AVERAGE,
    KERNELS,
    METHODS,
    Candidate,
    Size,
    exportable_to,
    gammas_of,
)
from rankwise.automatic.problems import SplitProblem
from rankwise.automatic.scaling import CODES, PRODUCTS, Scaler, chain
from rankwise.automatic.trees import BoostedTrees
from rankwise.data.mapped import MappedMatrix
from rankwise.estimators.additive import MOST_COLUMNS, AdditiveRankerCV, Watch
from rankwise.exceptions import InvalidInputError, MemoryLimitError
from rankwise.kernels import FeatureMap, Kernel, choose_basis, resolve_gamma
from rankwise.model_selection import fit_ranker, predict_scores
from rankwise.pairs.figures import Figure, paired_difference
from rankwise.runtime.memory import MemoryBudget
from rankwise.runtime.progress import ProgressLine

PREFERENCES = ("readable", "accuracy")
_BUDGET = 15.0  # processor seconds
_TIMES_RLS = 30  # the budget is at least as many times the cost of RankRLSCV
_USED = 0.9  # share of a time limit that estimates may fill
_LITTLE = 0.1  # share of a time limit that all estimates are taken to have been right for
_SEARCHED = 0.5  # share of the time left for the additive search; its final fit takes .3 to .7 of that
_NEAR = 0.5  # standard errors of the difference within which a simpler model is chosen
_CLOSE = 4.0  # standard errors within which a candidate may be part of a mean
_DRAWS = 200  # of units, that repeat the choice
_BASES = (1000, 500, 200)  # rows of reduced sets, the most accurate first
_KERNEL_ALPHAS = tuple(4.0**power for power in range(-6, 4))
_LEAVES, _TREES = (8, 31), 200  # of boosted trees; early stopping needs about so many
_TREES_SHARE = 0.25  # of the budget that boosted trees may take, whatever the others took
# Of the budget that products of columns may take: on LightGBM's example, of 300 columns, they took most of the time and
# lost.
_PRODUCTS_SHARE = 0.25
YARDSTICK = "boosted trees"
# A candidate, its estimator of one fit, held-out scores, and the ranker of all rows if there is one already.
Found = tuple[Candidate, BaseEstimator, Floats, BaseEstimator | None]
_EDGE = "The best alpha is the"  # the warning of a method whose best alpha lies at the end of its grid


@dataclass
class Trial:
    """A candidate that was tried.

    Attributes
    ----------
    candidate : Candidate
    figure : Figure
    held_out : ndarray
        The scores of held-out rows, or the differences of held-out pairs.
    seconds : float
    scalers : list
        Fitted.
    estimator : estimator
        Not fitted, with the settings that the candidate chose.
    ranker : estimator or None
        Fitted to all rows; None where that waits until it is chosen.
    warned : list
        Warnings of the fit.
    """

    candidate: Candidate
    figure: Figure
    held_out: Floats
    seconds: float
    scalers: list[Scaler]
    estimator: BaseEstimator
    ranker: BaseEstimator | None
    warned: list[warnings.WarningMessage] = field(default_factory=list)

    @property
    def alpha(self) -> float | None:
        """The chosen penalty; None for means and trees."""
        alpha = self.estimator.get_params(deep=False).get("alpha")
        return None if alpha is None else float(np.squeeze(alpha))

    @property
    def iterations(self) -> int | None:
        """The chosen iteration, where stopping early regularises."""
        is_hybrid = getattr(self.ranker, "method_", "") == "hybrid"
        return int(self.ranker.best_iteration_) if self.ranker is not None and is_hybrid else None

    @property
    def model(self) -> BaseEstimator:
        """The whole fitted model: a ranker, or a pipeline of a scaler and a ranker."""
        assert self.ranker is not None
        return chain(self.scalers, self.ranker)


@dataclass
class Search:
    """Candidates to be tried, and those that were.

    Attributes
    ----------
    problem : SplitProblem
    methods : sequence of str or None
        Exactly these are tried, whatever they cost.
    prefer : str
        One of `PREFERENCES`.
    alphas : tuple of float or None
    fixed : mapping
        Parameters that are not chosen, for every method that has them.
    target : str or None
        Where the model must be able to run.
    effort : float
        A factor of the budget.
    time_limit : float or None
        In seconds.
    rivals : sequence of estimators
        Scored, and never chosen.
    has_yardstick : bool
        Whether boosted trees are scored, too.
    verbose : bool
        Whether progress is printed where there is no terminal.
    trials : list of Trial
    skipped : list of str
        Candidates that were not tried, with reasons.
    compared : list of (str, Figure, seconds)
        Rivals.
    """

    problem: SplitProblem
    methods: Sequence[str] | None
    prefer: str
    alphas: tuple[float, ...] | None
    fixed: Mapping[str, object]
    target: str | None
    effort: float
    time_limit: float | None
    rivals: Sequence[BaseEstimator]
    has_yardstick: bool
    random_state: int
    n_threads: int | None
    verbose: bool = False
    trials: list[Trial] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    compared: list[tuple[str, Figure, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        X, cv = self.problem.columns.X, self.problem.cv
        self._is_sparse, self._is_mapped = is_sparse(X), isinstance(X, MappedMatrix)
        n_entries = int(X.nnz if is_sparse(X) else X.shape[0] * X.shape[1])
        self.size = Size(int(X.shape[0]), int(X.shape[1]), n_entries, 1 if cv is None else len(cv))
        coded = self.problem.columns.coded
        self._of_table, self._table_size = "none", self.size  # what curves and trees take
        if coded is not None:
            self._of_table = CODES
            self._table_size = replace(self.size, n_columns=coded.codes.shape[1], n_entries=coded.codes.size)
        self.budget = self.effort * max(_BUDGET, _TIMES_RLS * self.size.rls())
        self._estimated = self._taken = 0.0
        self._start, self._processor = time.monotonic(), time.process_time()

    def run(self) -> Trial:
        """Try candidates; return the chosen one, fitted to all rows."""
        if self.rivals and (self.problem.cv is None or not self.problem.pairs.has_blocks):
            raise InvalidInputError(
                "rivals are compared on folds of labelled rows.",
                "leave rivals out, or fit without an eval_set.",
            )
        most = self.budget if self.methods is None and self.time_limit is None else self.time_limit
        with ProgressLine("choosing", most, verbose=self.verbose) as self._progress:
            self._try_linear()
            self._try_additive()
            self._try_trees()
            self._try_kernels()
            self._try_means()
            self._try_rivals()
            if not self.trials:
                raise InvalidInputError(
                    f"No candidate can run in {self.target!r}."
                    if self.target is not None
                    else "None of the methods can learn from these data.",
                    "allow more methods, or leave the target out.",
                )
            chosen = self._fitted(self.chosen)
        for warning in chosen.warned:
            # The methods' own grids have gone on as far as they go.
            if self.alphas is not None or not str(warning.message).startswith(_EDGE):
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
        return chosen

    # --- the choice ---

    @property
    def chosen(self) -> Trial:
        """The chosen trial."""
        return self._choose(self.trials)

    def _choose(self, trials: Sequence[Trial]) -> Trial:
        """Return the best trial, or where models are to be readable the simplest one that is nearly as good.

        Scaling inside queries, after which rows can only be scored together with their query, has to be ahead of
        everything else by a standard error.
        """
        alone = [trial for trial in trials if not trial.candidate.needs_queries]
        if alone:
            best_alone = self.best(alone)
            ahead = [trial for trial in trials if self.is_ahead(trial, best_alone)]
            trials = alone + [trial for trial in ahead if trial.candidate.needs_queries]
        best = self.best(trials)
        if self.prefer == "accuracy":
            return best
        near = [trial for trial in trials if self.is_close(trial, best, _NEAR)]
        return min(near, key=lambda trial: (trial.candidate.complexity, self.loss(trial.figure)))

    def expected(self) -> Figure:
        """Return the figure of the choice, corrected for being chosen by it.

        The choice is repeated on units that are drawn with replacement, and scored by the units that were not drawn.
        """
        chosen, rng, values = self.chosen.figure, np.random.default_rng(self.random_state), list[float]()
        n_units = chosen.per_unit.size
        for _ in range(_DRAWS):
            count = np.bincount(rng.integers(n_units, size=n_units), minlength=n_units)
            out = chosen.share * (count == 0)
            if out.sum() > 0:
                drawn = [replace(trial, figure=_drawn(trial.figure, count)) for trial in self.trials]
                winner = self._choose(drawn).candidate
                own = next(trial for trial in self.trials if trial.candidate == winner)
                values.append(float(np.average(own.figure.per_unit, weights=out)))
        optimism = float(np.mean(values)) - float(chosen.share @ chosen.per_unit) if values else 0.0
        return replace(chosen, value=chosen.value + optimism)

    def best(self, trials: Sequence[Trial]) -> Trial:
        """Return the trial with the best value; of equals the first, which is simpler."""
        return min(trials, key=lambda trial: self.loss(trial.figure))

    def is_close(self, trial: Trial, best: Trial, errors: float) -> bool:
        """Tell whether a trial is within a given number of standard errors of the best."""
        difference, error = paired_difference(trial.figure, best.figure)
        # False where the standard error is not known.
        return trial is best or abs(difference) <= errors * error

    def is_ahead(self, trial: Trial, other: Trial) -> bool:
        """Tell whether a trial is better than another by more than a standard error of the difference."""
        _, error = paired_difference(trial.figure, other.figure)
        return self.loss(other.figure) - self.loss(trial.figure) > error

    def loss(self, figure: Figure) -> float:
        """Return the value, turned so that less is better."""
        return -figure.value if self.problem.metric.greater_is_better else figure.value

    # --- candidates ---

    def _is_wanted(self, method: str, *, default: bool = True) -> bool:
        if method != AVERAGE and self.problem.pairs.entries not in METHODS[method].takes:
            return False
        return default if self.methods is None else method in self.methods

    def _try_linear(self) -> None:
        """Try linear models; the best of them also on columns scaled inside queries, and with products."""
        problem, plain = self.problem, "none" if self._is_sparse or self._is_mapped else "standard"
        # Magnitudes say by how much a pair is won, which the logistic loss would ignore.
        is_even = not problem.pairs.has_magnitudes
        defaults = {"rls": True, "svm-squared": True, "svm": False, "logistic": is_even}
        for method, default in defaults.items():
            if self._is_wanted(method, default=default):
                cost = self.size.rls() if method == "rls" else self.size.margins()
                self._try(Candidate(method, plain), cost)
        if problem.columns.qid is None or plain == "none" or not self.trials or self.methods is not None:
            return
        method, n_own = self.best(self.trials).candidate.method, int(problem.columns.of_queries.sum())
        n_columns = (self.size.n_columns - n_own) * (1 + n_own)
        more = replace(self.size, n_columns=n_columns, n_entries=self.size.n_rows * n_columns)
        products = {PRODUCTS: more} if n_own and n_columns else {}
        for scaling, size in {"query-standard": self.size, **products}.items():
            candidate, cost = Candidate(method, scaling), size.rls() if method == "rls" else size.margins()
            if scaling == PRODUCTS and cost > _PRODUCTS_SHARE * self.budget:
                self.skipped.append(f"{candidate.describe()}: more than a quarter of the budget")
            else:
                self._try(candidate, cost)

    def _try_additive(self) -> None:
        """Try curves, and curves and surfaces, as thoroughly as the budget allows."""
        wanted = [method for method in ("curves", "surfaces") if self._is_wanted(method)]
        if not wanted:
            return
        if self._is_sparse:
            self.skipped.append("curves and surfaces: X is sparse")
            return
        n_columns = self._table_size.n_columns
        if n_columns > MOST_COLUMNS and self.trials:
            self.skipped.append(
                f"curves and surfaces: X has {n_columns:,} columns, and they are for at most {MOST_COLUMNS:,}"
            )
            return
        scalings = [self._of_table]
        if self._of_table != "none" and self._is_wanted(AVERAGE, default=False):
            scalings.append("none")  # for a mean with linear models and kernels
        linear = [trial for trial in self.trials if trial.candidate.needs_queries]
        if linear and self.chosen is linear[0]:
            scalings.append(linear[0].candidate.scaling)
        levels = list(ADDITIVE if "surfaces" in wanted else [{"interactions": 0}, ADDITIVE[-1]])
        for scaling in scalings:
            size = self._table_size if scaling == CODES else self.size
            costs = [size.additive(level) for level in levels]
            least = len(costs)
            while least and (level := self._affordable(costs[:least])) is not None:
                least = level
                method = wanted[-1] if levels[level].get("interactions", 1) != 0 else "curves"
                self._try(Candidate(method, scaling), costs[level], levels[level])
                if self.time_limit is None:
                    break
            if least:
                words = "the full search for curves and surfaces" if least < len(costs) else "curves"
                inside = " inside queries" if "query" in scaling else ""
                self._skip(words + inside, costs[0 if least < len(costs) else -1])

    def _affordable(self, costs: Sequence[float]) -> int | None:
        """Return the first that fits in the budget; the last of what was asked for, or where nothing was tried."""
        room, is_asked = self._room(), self.methods is not None and self.time_limit is None
        none = len(costs) - 1 if is_asked or not self.trials else None
        return next((number for number, cost in enumerate(costs) if cost <= room), none)

    def _try_kernels(self) -> None:
        """Try both kernels on few basis rows, and the better one on the largest reduced set that fits in the budget."""
        if not self._is_wanted("kernel", default=self.prefer == "accuracy"):
            return
        basis: Any = self.fixed.get("basis")
        *larger, least = _BASES if basis is None else (basis,)
        for kernel, scaling in KERNELS.items():
            if not self._is_sparse or kernel == "rbf":
                self._try_kernel(kernel, "none" if self._is_sparse else scaling, least)
        affordable = [n for n in larger if self.size.kernel(n, 1) <= self._room()]
        tried = [trial for trial in self.trials if trial.candidate.form == "kernel"]
        if tried and affordable and least < self.size.n_rows:
            best = self.best(tried)
            options = dict(best.candidate.options)
            gamma = best.estimator.get_params()["gamma"]
            self._try_kernel(options["kernel"], best.candidate.scaling, affordable[0], {"gamma": gamma})

    def _try_kernel(
        self, kernel: str, scaling: str, basis: int, settings: Mapping[str, Any] | None = None
    ) -> None:
        options = (("kernel", kernel), ("basis", basis if basis < self.size.n_rows else None))
        n_gammas = 2 if settings is None else 1
        self._try(Candidate("kernel", scaling, options), self.size.kernel(basis, n_gammas), settings)

    def _try_trees(self) -> None:
        """Try boosted trees; or, as a yardstick that is never chosen, a hundred trees of one size."""
        problem, seed, threads = self.problem, self.random_state, self.n_threads
        size, share = self._table_size, _TREES_SHARE * self.budget
        if self._is_wanted("trees", default=self.prefer == "accuracy") and not self._is_sparse:
            cost = sum(size.trees(_TREES, n_leaves) for n_leaves in _LEAVES)
            cost += size.n_folds * size.trees(_TREES, _LEAVES[-1])
            self._try(Candidate("trees", self._of_table), cost, reserved=share)
        has_trees = any(trial.candidate.form == "trees" for trial in self.trials)
        if not self.has_yardstick or self.methods is not None or self.time_limit is not None or has_trees:
            return
        cost = (1 + size.n_folds) * size.trees(100, 31)
        is_taken, reason = problem.pairs.entries in METHODS["trees"].takes, ""
        if self._is_sparse:
            reason = "sparse X"
        elif not is_taken or cost > share:
            reason = "more than a quarter of the budget" if is_taken else "listed pairs"
        if reason:
            self.skipped.append(f"boosted trees as a yardstick: {reason}")
            return
        self._show("boosted trees, as a yardstick")
        start, estimator = time.monotonic(), BoostedTrees(random_state=seed, n_threads=threads)
        _, X, scored = problem.columns.get(self._of_table)
        model = problem.fit(clone(estimator), X) if scored is not None else estimator
        figure = problem.figure(problem.held_out(estimator, model, X, scored))
        self.compared.append((YARDSTICK, figure, time.monotonic() - start))

    def _try_means(self) -> None:
        """Score the means of the best two and of the best three forms that come close to the best candidate."""
        if not self.trials or not self._is_wanted(AVERAGE, default=self.prefer == "accuracy"):
            return
        order = sorted(self.trials, key=lambda trial: self.loss(trial.figure))
        for is_coded in (False, True):
            best_of_form: dict[str, Trial] = {}
            for trial in order:
                form = trial.candidate.form
                if trial.candidate.is_coded == is_coded and self.is_close(trial, order[0], _CLOSE):
                    best_of_form.setdefault("curves" if form == "surfaces" else form, trial)
            parts = list(best_of_form.values())
            for number in range(2, len(parts) + 1):
                self._try_mean(parts[:number])

    def _try_mean(self, parts: Sequence[Trial]) -> None:
        candidate = Candidate(AVERAGE, parts=tuple(part.candidate for part in parts))
        spreads = [self.problem.spread(part.held_out) for part in parts]
        if not all(spreads) or (self.target is not None and self.target not in exportable_to(candidate)):
            return
        held_out = np.sum(
            [part.held_out / spread for part, spread in zip(parts, spreads, strict=True)], axis=0
        )
        seconds = sum(part.seconds for part in parts)
        estimator = AverageRanker([part.estimator for part in parts])
        figure = self.problem.figure(held_out)
        self.trials.append(Trial(candidate, figure, held_out, seconds, [], estimator, None))

    def _try_rivals(self) -> None:
        """Fit estimators of other packages without each fold, and score them."""
        problem, pairs = self.problem, self.problem.pairs
        X, ids = problem.columns.X, problem.columns.qid
        for rival in self.rivals:
            start, scores = time.monotonic(), np.zeros(pairs.n_rows)
            for train, test in problem.cv or ():
                rows, given = pairs.training(X, train)
                seen, tested = (None if ids is None else ids[own] for own in (train, test))
                fitted = fit_ranker(clone(rival), rows, **(given | {"qid": seen}))
                scores[test] = predict_scores(fitted, X[test], tested)
            name = type(rival).__name__
            self.compared.append((name, problem.figure(scores), time.monotonic() - start))

    # --- one candidate ---

    def _try(
        self,
        candidate: Candidate,
        cost: float,
        settings: Mapping[str, Any] | None = None,
        *,
        reserved: float = 0.0,
    ) -> None:
        """Try a candidate, if it fits in the budget, or in its reserved part, and can run where it must."""
        if self.target is not None and self.target not in exportable_to(candidate):
            return
        is_asked = self.methods is not None and self.time_limit is None
        room = self._room() if self.time_limit is not None else max(self._room(), reserved)
        if self.trials and not is_asked and cost > room:
            self._skip(candidate.describe(), cost)
            return
        self._show(candidate.describe())
        start = time.monotonic()
        parameters = {**dict(candidate.options), **(settings or {})}
        run = {"trees": self._grow_trees, "kernel": self._choose_kernel, "linear": self._choose_alpha}
        try:
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                found = run.get(candidate.form, self._search_additive)(candidate, parameters)
        except MemoryLimitError as error:
            if not self.trials:
                raise
            self.skipped.append(f"{candidate.describe()}: {error.problem}")
            return
        seconds = time.monotonic() - start
        self._estimated, self._taken = self._estimated + cost, self._taken + seconds
        scalers = self.problem.columns.get(candidate.scaling)[0]
        for own, estimator, held_out, ranker in found:
            figure = self.problem.figure(held_out)
            trial = Trial(own, figure, held_out, seconds, scalers, estimator, ranker, list(warned))
            seconds = 0.0  # the others are a by-product
            same = [*(one for one in self.trials if one.candidate == own), trial]  # of less thorough searches
            kept = self.best(same)
            kept.seconds = sum(one.seconds for one in same)
            self.trials = [*(one for one in self.trials if one.candidate != own), kept]

    def _choose_alpha(self, candidate: Candidate, parameters: dict[str, Any]) -> list[Found]:
        """Choose the regularisation of a linear model."""
        _, X, scored = self.problem.columns.get(candidate.scaling)
        selector = self._selector(candidate.method, parameters)
        self.problem.fit(selector, X, scored)
        estimator = METHODS[candidate.method].fixed(selector)
        held_out = self.problem.held_out(clone(estimator), selector, X, scored)
        return [(candidate, estimator, held_out, selector)]

    def _search_additive(self, candidate: Candidate, parameters: dict[str, Any]) -> list[Found]:
        """Run the additive search; its best setting and its best curves are two candidates."""
        _, X, scored = self.problem.columns.get(candidate.scaling)
        coded = self.problem.columns.coded if candidate.is_coded else None
        categories = {} if coded is None else {"categorical": coded.categories}
        selector = self._selector(candidate.method, parameters | categories)
        assert isinstance(selector, AdditiveRankerCV)
        selector.watch = watch = Watch(self._deadline())
        self.problem.fit(selector, X, scored)
        del selector.watch
        estimator, search = METHODS[candidate.method].fixed(selector), watch.search
        assert search is not None
        only_curves, best = Candidate("curves", candidate.scaling), search.best
        found = self.problem.assembled(search.held_out[best.key])
        if found is None:
            found = self.problem.held_out(clone(estimator), selector, X, scored)
        if not self._is_wanted("curves"):
            return [(candidate, estimator, found, selector)]
        if not best.n_pairs:
            return [(only_curves, estimator, found, selector)]
        curves = min(one for one in search.tried if one.n_pairs == 0)
        simpler = clone(estimator).set_params(
            alpha=curves.alpha, n_knots=curves.knots.curve, interactions=0,
            adaptive=curves.rounds.steps, selective=curves.rounds.terms,
        )  # fmt: skip
        of_curves = self.problem.assembled(search.held_out[curves.key])
        beside = [] if of_curves is None else [(only_curves, simpler, of_curves, None)]
        return [(candidate, estimator, found, selector), *beside]

    def _choose_kernel(self, candidate: Candidate, parameters: dict[str, Any]) -> list[Found]:
        """Choose gamma and alpha on the features of one reduced set, which all folds share.

        On the features ``Z`` the model is linear: a fold takes one matrix ``Z'LZ`` and a factor for each alpha.
        """
        problem = self.problem.with_ranks
        _, X, scored = problem.columns.get(candidate.scaling)
        estimator, weight = self._selector("kernel", parameters), problem.columns.weight
        name, basis = str(estimator.kernel), self.size.n_rows if estimator.basis is None else estimator.basis
        n_rows = self.size.n_rows
        MemoryBudget().demand(8 * 2 * n_rows * basis, n_rows, f"A kernel on {basis} basis rows")
        rows = choose_basis(basis, Kernel(name), X, self.random_state, weight)
        given = parameters.get("gamma", self.fixed.get("gamma"))
        gammas: Any = gammas_of(name, self.size.n_columns) if given is None else given
        tried = []
        for gamma in np.atleast_1d(gammas).tolist():
            width = resolve_gamma(gamma, X, weight)
            features = FeatureMap.of_basis(Kernel(name, {"gamma": width}), X[rows])
            Z, Z_scored = features.transform(X), None if scored is None else features.transform(scored)
            # The features are few, however many columns X has; kernels have no iterations to choose.
            parameters = {"method": "tikhonov", "alphas": _KERNEL_ALPHAS, "prior": np.zeros(Z.shape[1])}
            selector = self._selector("rls", parameters)
            problem.fit(selector, Z, Z_scored)
            linear = METHODS["rls"].fixed(selector)
            held_out = problem.held_out(linear, selector, Z, Z_scored)
            own = clone(estimator).set_params(gamma=width, alpha=linear.alpha)
            tried.append((self.loss(problem.figure(held_out)), own, held_out))
        _, chosen, held_out = min(tried, key=lambda one: one[0])
        return [(candidate, chosen, held_out, None)]

    def _grow_trees(self, candidate: Candidate, parameters: dict[str, Any]) -> list[Found]:
        """Choose the size and the number of trees on one fold, and grow them without each fold."""
        problem = self.problem
        _, X, scored = problem.columns.get(candidate.scaling)
        tried = []
        for n_leaves in _LEAVES:
            trees = self._selector("trees", parameters | {"n_leaves": n_leaves})
            first, figure = problem.stopped_early(trees, X, scored)
            tried.append((self.loss(figure), trees, first))
        _, trees, first = min(tried, key=lambda one: one[0])
        fixed = METHODS["trees"].fixed(trees)
        held_out = first if scored is not None else problem.held_out(clone(fixed), trees, X, None, first)
        own = replace(candidate, options=(("n_leaves", trees.n_leaves),))
        return [(own, fixed, held_out, None if scored is None else trees)]

    def _selector(self, method: str, parameters: dict[str, Any]) -> Any:
        """Make the estimator that chooses the regularisation of a method."""
        shared = {
            "scoring": self.problem.metric,
            "random_state": self.random_state,
            "n_threads": self.n_threads,
            **({} if self.problem.cv is None else {"cv": self.problem.cv}),
            **parameters,
            **({} if self.alphas is None else {"alphas": self.alphas}),
        }
        made = METHODS[method].selector(self.size, shared)
        known = made.get_params(deep=False)
        own = {k: v for k, v in self.fixed.items() if k in known and k not in {"basis", "gamma"}}
        return made.set_params(**own)

    def _fitted(self, trial: Trial) -> Trial:
        """Return a trial whose model is fitted to all rows."""
        if trial.ranker is not None:
            return trial
        if trial.candidate.parts:
            tried = {one.candidate: one for one in self.trials}
            parts = [tried[part] for part in trial.candidate.parts]
            spreads = [self.problem.spread(part.held_out) for part in parts]
            return replace(trial, ranker=mean_of([self._fitted(part).model for part in parts], spreads))
        self._show(f"fitting {trial.candidate.describe()} to all rows")
        _, X, _ = self.problem.columns.get(trial.candidate.scaling)
        problem = self.problem.with_ranks if trial.candidate.form == "kernel" else self.problem
        trial.ranker = problem.fit(clone(trial.estimator), X)
        return trial

    # --- budget ---

    def _room(self) -> float:
        """Return the estimated seconds that are left."""
        if self.time_limit is None:
            return self.budget - self._estimated
        elapsed = time.monotonic() - self._start
        # Other processes may take a part of the processor. Estimates are corrected by the processor time that
        # candidates took so far; small ones tell little.
        own = min((time.process_time() - self._processor) / max(elapsed, 1e-9), 1.0)
        left, little = own * (_USED * self.time_limit - elapsed), _LITTLE * self.time_limit
        return left * (self._estimated + little) / max(own * self._taken + little, 1e-9)

    def _deadline(self) -> float | None:
        """Return when a search has to end to leave time for the fit to all rows."""
        if self.time_limit is None:
            return None
        now = time.monotonic()
        return now + _SEARCHED * (_USED * self.time_limit - (now - self._start))

    def _skip(self, words: str, cost: float) -> None:
        room = max(self._room(), 0.0)
        if self.time_limit is not None:
            reason = f"the time limit of {self.time_limit:g} s leaves less than it is expected to take"
        else:
            larger = int(np.ceil(self.effort * (self._estimated + cost) / self.budget))
            reason = (
                f"about {cost:.1f} s, and {room:.1f} s of the budget are left; effort={larger} includes it"
            )
        self.skipped.append(f"{words}: {reason}")

    def _show(self, words: str) -> None:
        best = f"best {self.best(self.trials).figure.value:.4f}, " if self.trials else ""
        self._progress.update(best + words)


def _drawn(figure: Figure, count: Ints) -> Figure:
    """Return the figure of resampled units, given how often each one was drawn."""
    share = figure.share * count
    share = share / share.sum()
    return Figure(float(share @ figure.per_unit), figure.per_unit, share)
