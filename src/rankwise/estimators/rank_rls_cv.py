"""Linear RankRLS that chooses its own regularisation, for little more than the price of one fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import ArrayLike, Floats, RandomSource
from rankwise.data.containers import as_array
from rankwise.data.validation import check_alphas, check_number
from rankwise.estimators.linear import LinearRanker
from rankwise.exceptions import InvalidInputError
from rankwise.fitting.problem import Problem, Restriction
from rankwise.fitting.squares import LeastSquares
from rankwise.holdout.spaces import ColumnSpace
from rankwise.metrics import Metric
from rankwise.pairs.plan import Plan
from rankwise.selection.exact import choose_exactly, exact_for_columns
from rankwise.selection.grids import POWERS_OF_TWO
from rankwise.selection.krylov import Columns, Coordinates, Surface
from rankwise.selection.path import choose_on_paths, paths_of, squared_problems
from rankwise.selection.plan import is_exact_name
from rankwise.selection.surface import Reading, table_tolerance
from rankwise.solvers.choose import SolverOptions

__all__ = ["RankRLSCV"]


class RankRLSCV(LinearRanker):
    """`RankRLS` with its regularisation chosen on held-out rows.

    Every alpha of the grid and every iteration of conjugate gradients share one Krylov space, so one run
    gives the validation error of them all. The three methods of the large-scale RankRLS paper are three ways
    to read that table.

    Parameters
    ----------
    alphas : array-like, default=2^-10, 2^-9, ..., 2^10
        The grid; order and duplicates do not matter. The default grid goes on where the best value lies at its end
        and still becomes better, by at most as many values again on either side; another one is taken as it is, and a
        best alpha at its end is warned of.
    cv : "auto", "time", "leave-query-out", "leave-pair-out", int, splitter or list of (train, test), default="auto"
        Folds of whole queries, of rows where there is one ranking, or of pairs in `fit_pairs`. "time" sorts queries by
        their ids, such as dates, and scores each of 5 folds by a model of earlier queries alone; the first sixth of the
        queries only trains. The two names after it are exact and take one decomposition for every alpha: each query, or
        each pair of rows of one global ranking, is scored by the converged models that did not see it.
        Leave-pair-out takes time in proportion to the square of the rows: it shows its progress on a terminal, warns
        beforehand from 10,000,000,000 pairs times alphas on (about 31,000 rows for the default grid), and ``cv=10`` is
        the alternative. "auto" makes 5 folds; with ``method="tikhonov"`` and
        few columns or rows it is exact instead, and leaves out queries, pairs up to 2000 rows, else 10 folds of rows.
        Leave-pair-out has a closed form for every `query_weight` and any row weights, but not with ties left out or
        ``cost="relative"``: "auto" then makes folds, and `cv_` says so. Not used where there is an `eval_set`.
    scoring : str or Metric, default="pairwise_error"
        A name of `rankwise.metrics.METRICS`. Errors are minimised and gains maximised.
    method : {"auto", "hybrid", "tikhonov", "early-stopping"}, default="auto"
        "tikhonov" lets every alpha converge and chooses among them; "early-stopping" uses no penalty and chooses the
        iteration; "hybrid" chooses both, and is the fastest. "auto" is "tikhonov" where hold-out is exact, which
        knows no other, and else "hybrid".
    averaging : {"folds", "pooled"}, default="folds"
        For folds of rows of one ranking, and of pairs: average the folds' errors, or score all that was held out
        together. With ``cv="leave-pair-out"`` of listed pairs, a fold is all comparisons of two rows, and "folds"
        counts every two rows alike: the `weight` of their pairs matters between them only when pooled. Pooled scores of
        rows are shifted so that a fold's training rows have the same mean score as mean label.
    penalty_power : float or list of float, default=0.0
        As in `RankRLS`; from a list the best is chosen.
    query_weight, ties, cost
        As in `RankRLS`.
    patience : int, default=10
        Stop after this many iterations in which no cell of the table improved.
    tol : float, default=1e-5
        The relative residual at which an alpha has converged.
    max_iter : int, default=None
        The most iterations; by default 1000.
    positive, prior, column_penalty : default=False, None, None
        As in `RankRLS`. With one of these three, every alpha is fitted separately, on folds or on an eval set: there is
        no surface, and ``method`` is "tikhonov".
    random_state : int, RandomState, Generator or None, default=0
        Seeds the folds and the choice of scoring rows.
    n_threads : int, default=None
        As in `RankRLS`.

    Attributes
    ----------
    alpha_ : float, or ndarray of shape (outputs,)
        The chosen alpha; 0 after early stopping.
    best_iteration_ : int, or ndarray of shape (outputs,)
    best_score_ : float, or ndarray of shape (outputs,)
        The value of `scoring` in the chosen cell. It is optimistic: the choice was made on the same rows. The score
        of the whole procedure is that of `rankwise.model_selection.cross_validate_ranker`.
    alphas_ : ndarray of shape (alphas,)
        The grid, in increasing order, with its extensions.
    surface_ : ndarray of shape (alphas, iterations), or (outputs, alphas, iterations)
        The value of `scoring` for every alpha after every iteration. Exact hold-out has no iterations, and so neither
        this, nor `unpenalised_`, `best_iteration_` and `keeps_basis_`.
    unpenalised_ : ndarray of shape (iterations,), or (outputs, iterations)
        The same without penalty (alpha = 0), whether or not 0 is in the grid; early stopping uses it.
    cv_errors_ : ndarray of shape (alphas,), or (alphas, outputs)
        The value of `scoring` for each alpha, at the iteration the method would choose for it.
    choices_ : dict
        For each method, the ``(alpha, iteration, value)`` it reads from the surface; a list over outputs if
        there are several. "tikhonov" is exact only where the run went on until every alpha converged.
    penalty_power_ : float
    method_ : str
    cv_ : str
        A description of the validation. With folds, at most about 20,000 held-out rows (whole queries) or pairs score.
    n_iter_ : int
        Iterations of the selection.
    n_products_ : int
        Products of the Hessian with a vector, in selection and refit together.
    keeps_basis_ : bool
        Whether the Krylov basis was stored; if it would not have fitted in memory, a short recurrence ran.
    coef_, n_queries_, n_pairs_, n_ignored_queries_, n_features_in_, feature_names_in_
        As in `RankRLS`; after `fit_pairs` also ``n_components_`` and ``n_unpaired_rows_``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise import RankRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = X[:, 0] - 2 * X[:, 1] + rng.normal(size=300)
    >>> model = RankRLSCV().fit(X, y, qid=np.arange(300) // 10)
    >>> model.surface_.shape[0]
    21
    >>> bool(model.best_score_ < 0.3)
    True
    """

    def __init__(
        self,
        alphas: ArrayLike = POWERS_OF_TWO,
        *,
        cv: object = "auto",
        scoring: str | Metric = "pairwise_error",
        method: str = "auto",
        averaging: str = "folds",
        penalty_power: ArrayLike = 0.0,
        query_weight: str = "size",
        ties: str = "include",
        cost: str = "magnitude",
        patience: int = 10,
        tol: float = 1e-5,
        max_iter: int | None = None,
        positive: bool | ArrayLike = False,
        prior: ArrayLike | None = None,
        column_penalty: ArrayLike | None = None,
        random_state: RandomSource = 0,
        n_threads: int | None = None,
    ) -> None:
        self._store(locals())

    # Of each output, the surface and the column of it that hold its Krylov space; not part of copies and files.
    _runs: Sequence[tuple[Surface, int]] = ()

    def _learn(self, problem: Problem, eval_set: Plan | None) -> None:
        """Choose by a decomposition where hold-out is exact, else on the regularisation surface."""
        restriction = self._restriction()
        if restriction is not None:
            self._choose_restricted(problem, eval_set, restriction)
        else:
            self._choose_freely(problem, eval_set)

    def _choose_freely(self, problem: Problem, eval_set: Plan | None) -> None:
        alphas, powers, metric = check_alphas(self.alphas), self._powers(), self._metric
        exact = exact_for_columns(self.cv, self.method, problem, alphas.size, self.averaging)
        plan = self._held_out(problem, eval_set, exact)
        self.cv_ = plan.description
        if plan.is_exact:
            spaces = [ColumnSpace.of_design(problem.design, power) for power in powers]
            tried = [choose_exactly(space, problem, plan, metric, self.averaging, alphas) for space in spaces]
            best = int(np.argmin([one.error for one in tried]))
            selection = replace(tried[best], choices={"tikhonov": tried[best].chosen})
            selection = selection.with_facts(penalty_power_=powers[best], n_iter_=0, n_products_=0)
            self.method_, self._runs = "tikhonov", ()
        else:
            self.method_ = "hybrid" if self.method == "auto" else self.method
            tol = table_tolerance(problem.design, self.method_, self.tol)
            reading = Reading(metric, self.method_, self.averaging, self.patience, tol, self.max_iter)
            coordinates: list[Coordinates] = [Columns(problem.design, power) for power in powers]
            selection, best_one = reading.choose(problem, plan, alphas, coordinates)
            selection = selection.with_facts(penalty_power_=powers[coordinates.index(best_one.coordinates)])
            self._runs = best_one.columns
        self._keep(selection, problem)

    def _choose_restricted(self, problem: Problem, eval_set: Plan | None, restriction: Restriction) -> None:
        """Fit every alpha separately."""
        alphas, powers = check_alphas(self.alphas, positive=True), self._powers()
        if is_exact_name(self.cv) or self.method not in {"auto", "tikhonov"} or len(powers) > 1:
            raise InvalidInputError(
                "positive, prior and column_penalty have models that are fitted one by one: there is neither a surface "
                "nor a closed form.",
                "use cv=5 or an eval_set, method='auto' and one value of penalty_power.",
            )
        plan = self._held_out(problem, eval_set)
        options = SolverOptions(tol=self.tol, max_iter=self.max_iter)
        fit = LeastSquares("auto", 1.0, powers[0], options, restriction)
        fit = fit.resolved(problem.design, forms_matrix=problem.pairs.has_blocks)
        paths = paths_of(squared_problems(fit, problem), problem, plan, self._metric)
        selection, solutions = choose_on_paths(paths, alphas, POWERS_OF_TWO)
        self.cv_, self.method_, self._runs = plan.description, "tikhonov", ()
        n_iter = max(one.n_iter for one in solutions)
        notices = fit.notices(solutions)
        selection = replace(selection, choices={"tikhonov": selection.chosen}, notices=notices)
        self._keep(selection.with_facts(penalty_power_=powers[0], n_iter_=n_iter, n_products_=0), problem)

    def _powers(self) -> list[float]:
        powers = np.atleast_1d(as_array("penalty_power", self.penalty_power))
        if powers.size == 0 or powers.dtype.kind not in "iuf" or not np.isfinite(powers).all():
            raise InvalidInputError(
                f"penalty_power={self.penalty_power!r} is not a number or a list of numbers.",
                "use 0 (off) or 0.25.",
            )
        return [float(power) for power in powers]

    def coef_path(self, alpha: float, output: int = 0) -> Floats:
        """Return the coefficients of any alpha after every iteration, (iterations, features).

        They are formed on demand from the Krylov space of the fit, which is not saved with the model.

        Parameters
        ----------
        alpha : float
            Need not be in the grid.
        output : int, default=0
        """
        check_is_fitted(self)
        if not self._runs:
            raise InvalidInputError(
                "There is no Krylov space: this model was loaded or copied, or chosen by exact hold-out.",
                "call fit with cv=5, or RankRLS(alpha, solver='cg', max_iter=iteration).fit for one vector.",
            )
        check_number("alpha", alpha, minimum=0, remedy="use 0 or a positive number")
        if not isinstance(output, Integral) or not 0 <= output < len(self._runs):
            raise InvalidInputError(
                f"output={output!r} is not one of the {len(self._runs)} outputs.", "outputs count from 0."
            )
        surface, column = self._runs[output]
        return surface.path(column, float(alpha))

    def __getstate__(self) -> dict[str, object]:
        state: dict[str, object] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_runs"}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if is_exact_name(self.cv) and self.method not in {"auto", "tikhonov"}:
            raise InvalidInputError(
                f"cv={self.cv!r} knows the converged models only, and method={self.method!r} stops early.",
                "use method='auto' or 'tikhonov', or a number of folds.",
            )
