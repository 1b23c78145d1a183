"""What the objectives do not see changes no model and no choice: every estimator, one invariance at a time."""

from __future__ import annotations

import datetime as dt
import zlib
from dataclasses import replace
from functools import cache
from itertools import cycle, product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, Phase, assume, given, seed, settings
from hypothesis import strategies as st

from every_estimator import CASES
from optional import polars as pl
from rankwise import RankSVM, RankSVMCV
from rankwise.exceptions import NoPairsError

# Rounding, and what solvers leave at a residual of 1e-10, times the condition of these problems (below 100).
ROUNDING = 1e-7


def invariance(cases):
    """Test a check for every case, on one example; on many with `make test-long`."""

    def decorate(check):
        def test(case, examples):
            # Other examples for every case, and the same in every run.
            @seed(zlib.crc32(f"{check.__name__} {case}".encode()))
            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                phases=[Phase.generate],  # seeds have no simpler cousins
                suppress_health_check=list(HealthCheck),
            )
            @given(data=st.data())
            def run(data):
                check(case, data.draw)

            run()

        test.__doc__ = check.__doc__
        counts = [pytest.param(1, id="one"), pytest.param(60, id="many", marks=pytest.mark.long)]
        of_examples = pytest.mark.parametrize("examples", counts)
        return of_examples(pytest.mark.parametrize("case", cases, ids=str)(test))

    return decorate


seeds = st.integers(0, 999)


@cache
def fitted(case, number, weighted):
    """The problem as it comes, its model and its scores."""
    problem = case.problem(number, weighted=weighted)
    model = case.fit(problem)
    return problem, model, case.scores(model, problem)


def draw_fitted(case, draw, weighted=None):
    """Draw a problem; few different ones, of which every invariance then uses the same fits."""
    number = draw(st.integers(0, 3), label="problem")
    is_weighted = draw(st.booleans(), label="weighted") if weighted is None else weighted
    return fitted(case, number, is_weighted)


def assert_same(
    case,
    before,
    changed,
    *,
    model=None,
    factor=1.0,
    alpha_factor=1.0,
    outputs=slice(None),
    convert=None,
    skip=(),
):
    """Assert that the changed problem has the model and the choices of the one before.

    Parameters
    ----------
    before : tuple
        Of `fitted`.
    changed : Problem
    model : estimator, optional
        Its model, if it is not fitted in the usual way.
    factor, alpha_factor : float
        Of scores, and of alpha.
    outputs : index
        Which outputs of the model before are those of the changed problem.
    convert : callable
        Stores the rows to be scored.
    skip : attributes that may differ
    """
    problem, expected, scores = before
    if model is None:
        model = case.fit(changed)
    found = case.scores(model, changed, convert)
    scores = factor * scores[:, outputs]
    slack = factor * solver_slack(case, problem, expected) + solver_slack(case, changed, model)
    bound = ROUNDING * np.abs(scores).max(axis=0) + slack
    worst = np.abs(found - scores).max(axis=0)
    assert (worst <= bound).all(), f"scores differ by {worst / np.abs(scores).max(axis=0)} of the largest"

    def same(name, *, times=1.0, exactly=False):
        if name not in skip and hasattr(expected, name):
            one, other = (np.asarray(getattr(m, name), dtype=float) for m in (expected, model))
            one = one[..., outputs] if np.ndim(one) and case.outputs > 1 else one
            tolerance = 0.0 if exactly else 1e-9
            np.testing.assert_allclose(other, times * one, rtol=tolerance, atol=tolerance, err_msg=name)

    for name in ("n_queries_", "n_ignored_queries_", "n_pairs_", "n_components_", "n_unpaired_rows_"):
        same(name, exactly=True)
    if case.chooses:
        same("alpha_", times=alpha_factor)
        for name in ("best_iteration_", "best_score_", "cv_errors_", "penalty_power_", "n_knots_"):
            same(name)


def solver_slack(case, problem, model):
    """How far scores may be from those of the minimum that the model is proved to be near.

    An objective with the penalty ``α‖w‖²`` is at least ``α‖w - w*‖²`` above its minimum, and the duality gap is at
    least that; differences of scores are at most ``‖w - w*‖`` times the distance of two rows.
    """
    if not case.is_margin or getattr(case.model, "early_stopping", False):
        return 0.0
    if case.is_additive:
        distance = 2 * np.sqrt(len(model.terms_.all_terms))  # no coordinate of a row is above 1
    elif case.is_kernel and case.model.kernel != "linear":
        distance = np.sqrt(2)  # of any two rows, where k(x, x) = 1
    else:
        distance = 2 * np.linalg.norm(problem.new - problem.new.mean(axis=0), axis=1).max()
    alpha = getattr(model, "alpha_", getattr(model, "alpha", None))
    return distance * np.sqrt(np.max(np.maximum(model.duality_gap_, 1e-15) / alpha))


def grid_or_alpha(case, factor):
    """Return the parameter that multiplies every alpha of a case."""
    if hasattr(case.model, "alphas"):
        return {"alphas": [factor * alpha for alpha in case.model.alphas]}
    return {"alpha": factor * case.model.alpha}


# --- rows, columns, outputs, queries ------------------------------------------------------------------------------


@invariance([case for case in CASES if not case.splits_itself])
def test_order_of_rows(case, draw):
    """Rows may come in any order, and so may listed pairs, given the same folds."""
    before = draw_fitted(case, draw)
    rng = np.random.default_rng(draw(seeds))
    problem = before[0].rows(rng.permutation(len(before[0].X)))
    assert_same(case, before, problem.listed(rng.permutation(len(problem.pairs))))


@invariance([case for case in CASES if not case.splits_itself])
def test_order_of_rows_that_repeat(case, draw):
    """Equal rows tie, whatever formula scores them: neither rounding nor their order decides between them."""
    rng = np.random.default_rng(draw(seeds))
    problem = case.problem(draw(st.integers(0, 3)))
    X, *labels = problem.judging
    problem = replace(
        problem, X=problem.X[rng.integers(6, size=24)], judging=(X[rng.integers(3, size=12)], *labels)
    )
    assume(not ties_on_kinks(case, problem))
    model = case.fit(problem)
    before = (problem, model, case.scores(model, problem))
    assert_same(case, before, problem.rows(rng.permutation(24)))


def ties_on_kinks(case, problem):
    """Whether the minimum of a hinge on some split gives different rows one score, between which rounding decides."""
    if not isinstance(case.model, RankSVMCV) or case.judged != "splits" or case.data != "ranking":
        return False
    options = {name: getattr(case.model, name) for name in ("loss", "solver", "tol")}
    different = np.unique(problem.X, axis=0)
    for fold in np.unique(problem.fold):
        trained = problem.fold != fold
        for alpha in case.model.alphas:
            model = RankSVM(alpha, **options).fit(problem.X[trained], problem.y[trained])
            if np.diff(np.sort(model.predict(different))).min() < 1e-9:
                return True
    return False


@invariance([case for case in CASES if not case.is_precomputed])
def test_order_of_columns(case, draw):
    before = draw_fitted(case, draw)
    order = np.array(draw(st.permutations(range(4))))
    assert_same(case, before, before[0].columns(lambda X: np.ascontiguousarray(X[:, order])))


@invariance([case for case in CASES if case.outputs > 1])
def test_order_of_outputs(case, draw):
    before = draw_fitted(case, draw)
    order = np.arange(case.outputs)[::-1]
    assert_same(case, before, before[0].labels(lambda y: np.ascontiguousarray(y[:, order])), outputs=order)


@invariance([case for case in CASES if case.outputs > 1 and not case.splits_itself])
def test_outputs_do_not_see_each_other(case, draw):
    """An output fitted alone has the model that it has beside others."""
    before = draw_fitted(case, draw)
    alone = draw(st.integers(0, case.outputs - 1))
    changed = before[0].labels(lambda y: np.ascontiguousarray(y[:, [alone]]))
    assert_same(case, before, changed, outputs=[alone])


NAMES = {
    "reversed": lambda code: 100 - 3 * code,
    "negative": lambda code: -code,
    "float": lambda code: code / 4 - 1,
    "text": lambda code: f"query {code * 7 % 11}",
    "bytes": lambda code: b"%d" % (code * 7 % 11),
    "tuple": lambda code: ("day", code % 2, code),
    "date": lambda code: dt.date(2020, 1, 1 + code * 7 % 11),
    "mixed": lambda code: [code, str(code), (code,)][code % 3],
}


@invariance([case for case in CASES if case.data == "queries"])
def test_names_of_queries(case, draw):
    """Query ids may be anything, and their order means nothing."""
    before = draw_fitted(case, draw)
    name = NAMES[draw(st.sampled_from(sorted(NAMES)))]
    assert_same(case, before, replace(before[0], qid=[name(int(code)) for code in before[0].qid]))


# --- offsets and scales ---------------------------------------------------------------------------------------------


def sees_no_offsets(case):
    """Pairs see differences of rows: so do linear models, and kernels of distances with a given width."""
    if case.is_precomputed:
        return False
    return not case.is_kernel or case.model.kernel == "linear" or case.model.gamma != "scale"


SIZES_AND_STORAGES = cycle(product([1e3, 1e6, 1e9], ["dense", "sparse"]))


@pytest.mark.parametrize(
    ("case", "size", "storage"),
    [(case, *next(SIZES_AND_STORAGES)) for case in CASES if sees_no_offsets(case)],
    ids=str,
)
def test_offsets_of_columns(case, size, storage):
    before = fitted(case, 0, False)
    offset = np.array([size, 0.0, -np.floor(size / 3), 7.0])
    changed = before[0].columns(lambda X: X + offset)
    convert = None if storage == "dense" else sp.csr_matrix
    assert_same(case, before, changed, model=case.fit(changed, convert))


def scaled_columns(case, c):
    """Return the parameters with which X times c has the scores of X, or None: alpha c², or the kernel's width."""
    if np.any(np.asarray(getattr(case.model, "penalty_power", 0))) or case.is_precomputed:
        return None
    if case.is_additive:
        return {}, 1.0  # knots move along
    if not case.is_kernel or case.model.kernel == "linear":
        return grid_or_alpha(case, c**2), c**2
    if case.model.gamma == "scale":
        return {}, 1.0
    return {"gamma": (np.asarray(case.model.gamma) / c**2).tolist()}, 1.0


@invariance([case for case in CASES if scaled_columns(case, 2.0) is not None])
def test_scale_of_columns(case, draw):
    """X times c with alpha times c² gives the same scores: w becomes w/c."""
    before = draw_fitted(case, draw)
    c = 2.0 ** draw(st.sampled_from([-20, -10, -1, 1, 10, 20]))
    parameters, alpha_factor = scaled_columns(case, c)
    changed = before[0].columns(lambda X: c * X)
    assert_same(case, before, changed, model=case.fit(changed, **parameters), alpha_factor=alpha_factor)


def scaled_labels(case, c):
    """Return what labels (or magnitudes) times c do: the parameters to keep the model, factors of scores and alpha."""
    if case.is_margin:
        if case.data != "pairs" or case.model.loss == "logistic":
            return {}, 1.0, 1.0  # only the order of labels counts
        if case.model.loss == "squared_hinge":
            return {}, c, 1.0
        return grid_or_alpha(case, 1 / c), c, 1 / c  # c · mean(...) + c² α‖w‖²
    if case.model.cost == "unit":
        return {}, 1.0, 1.0
    if case.model.cost == "relative":
        return grid_or_alpha(case, 1 / c**2), c, 1 / c**2
    return {}, c, 1.0


@invariance([case for case in CASES if getattr(case.model, "scoring", "") != "ndcg@3"])
def test_scale_of_labels(case, draw):
    """Labels times c: scores are c times as large where magnitudes count, the same where only the order does."""
    before = draw_fitted(case, draw)
    c = draw(st.sampled_from([2.0**-20, 0.25, 2.0, 3.0, 2.0**20]))
    parameters, factor, alpha_factor = scaled_labels(case, c)
    changed = replace(before[0].labels(lambda y: c * y), magnitude=c * before[0].magnitude)
    model = case.fit(changed, **parameters)
    assert_same(case, before, changed, model=model, factor=factor, alpha_factor=alpha_factor)


# Folds are assigned by the labels themselves, so that only splits which the caller makes stay the same.
@invariance(
    [
        case
        for case in CASES
        if (case.is_margin or case.model.cost == "unit")
        and not (hasattr(case.model, "cv") and case.judged == "itself")
    ]
)
def test_order_of_labels_is_all_that_counts(case, draw):
    before = draw_fitted(case, draw)
    if case.data == "pairs" and not case.is_margin:
        changed = replace(before[0], magnitude=before[0].magnitude ** 2 + 5)
    else:
        changed = before[0].labels(lambda y: 10 * np.exp(y))
    assert_same(case, before, changed)


@invariance(
    [case for case in CASES if case.data != "pairs" and getattr(case.model, "scoring", "") != "ndcg@3"]
)
def test_shift_of_labels(case, draw):
    """A constant added to all labels changes nothing; nor one for each query, unless it changes the folds."""
    before = draw_fitted(case, draw)
    problem = before[0]
    by_query = np.zeros(7)
    if problem.qid is not None and not case.splits_itself:
        by_query = np.random.default_rng(draw(seeds)).integers(-8, 9, size=7)
    shift = draw(st.sampled_from([-8.0, 2.0, 100.0]))

    def shifted(y, qid):
        own = shift + (by_query[qid] if problem.qid is not None else 0.0)
        return y + (own if y.ndim == 1 or np.ndim(own) == 0 else own[:, None])

    X, y, qid = problem.judging
    changed = replace(problem, y=shifted(problem.y, problem.qid), judging=(X, shifted(y, qid), qid))
    assert_same(case, before, changed)


# --- weights --------------------------------------------------------------------------------------------


def holds_out_single_rows(case):
    """Leave-pair-out over rows takes one copy of a row and leaves the other."""
    return case.data == "ranking" and getattr(case.model, "cv", None) == "leave-pair-out"


def deals(case):
    return case.splits_itself and not (
        case.data == "pairs" and getattr(case.model, "cv", 5) == "leave-pair-out"
    )


@invariance([case for case in CASES if not holds_out_single_rows(case) and not deals(case)])
def test_weight_2_is_twice(case, draw):
    """A row of weight k is k rows, and so is a listed pair, where those that are held out together are the same."""
    before = draw_fitted(case, draw, weighted=True)
    problem = before[0]
    if case.data == "pairs":
        changed = problem.listed(np.repeat(np.arange(len(problem.pairs)), problem.pair_weight.astype(int)))
    else:
        changed = problem.rows(np.repeat(np.arange(len(problem.X)), problem.weight.astype(int)))
    changed = replace(changed, weight=None, pair_weight=None)
    assert_same(case, before, changed, skip=("n_pairs_",))


@invariance(CASES)
def test_weight_0_is_absent(case, draw):
    """Rows and listed pairs of weight 0 might as well be absent, whatever judges; so may whole queries."""
    is_weighted = draw(st.booleans())
    problem = case.problem(draw(st.integers(0, 3)), weighted=is_weighted)
    rng = np.random.default_rng(draw(seeds))
    if case.data == "pairs":
        weight = np.ones(len(problem.pairs)) if problem.pair_weight is None else problem.pair_weight.copy()
        weight[rng.permutation(weight.size)[:6]] = 0.0
        removed = replace(problem, pair_weight=weight)
        absent = removed.listed(np.flatnonzero(weight))
    else:
        weight = np.ones(len(problem.X)) if problem.weight is None else problem.weight.copy()
        weight[np.setdiff1d(rng.permutation(np.arange(12, 24))[:5], problem.basis)] = 0.0
        if problem.qid is not None and not hasattr(case.model, "basis"):
            crowded = np.bincount(problem.fold[:6]).argmax()  # every fold keeps a query
            weight[problem.qid == np.flatnonzero(problem.fold[:6] == crowded)[0]] = 0.0
        removed = replace(problem, weight=weight)
        absent = removed.rows(np.flatnonzero(weight))
    if not is_weighted:
        absent = replace(absent, weight=None, pair_weight=None)
    try:
        model = case.fit(absent)
    except NoPairsError:  # what early stopping would hold out may have no pair
        with pytest.raises(NoPairsError):
            case.fit(removed)
        return
    before = (absent, model, case.scores(model, absent))
    assert_same(
        case, before, removed, skip=("n_queries_", "n_ignored_queries_")
    )  # they count what was passed


@invariance([case for case in CASES if case.data == "queries" and not case.stream])
def test_importance_0_is_absent(case, draw):
    """A query of importance 0 neither trains nor judges."""
    problem = case.problem(draw(st.integers(0, 3)))
    crowded = np.bincount(problem.fold[:6]).argmax()  # every fold keeps a query
    gone = int(np.flatnonzero(problem.fold[:6] == crowded)[0])
    problem = replace(problem, basis=np.setdiff1d(problem.basis, np.flatnonzero(problem.qid == gone)))
    absent = problem.rows(np.flatnonzero(problem.qid != gone))
    model = case.fit(absent)
    before = (absent, model, case.scores(model, absent))
    changed = replace(problem, importance={gone: 0.0})
    assert_same(case, before, changed, skip=("n_queries_", "n_ignored_queries_"))


# --- storage --------------------------------------------------------------------------------------------


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def in_pieces(X):
    """Two entries for each number, in no order of columns: scipy adds up whatever stands in one place."""
    half = np.floor(X / 2)
    columns = np.tile(np.arange(X.shape[1])[::-1], 2)
    data = np.concatenate([half[:, ::-1], (X - half)[:, ::-1]], axis=1)
    start = np.arange(0, data.size + 1, columns.size)
    return sp.csr_matrix((data.ravel(), np.tile(columns, len(X)), start), shape=X.shape)


STORAGES = {
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "int64": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "big-endian": lambda X: X.astype(">f8"),
    "object": lambda X: X.astype(object),
    "columns": np.asfortranarray,
    "slice": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards": lambda X: X[::-1].copy()[::-1],
    "read-only": read_only,
    "list": lambda X: X.tolist(),
    "csr": sp.csr_matrix,
    "csr float32": lambda X: sp.csr_matrix(X.astype(np.float32)),
    "csr int": lambda X: sp.csr_matrix(X.astype(np.int64)),
    "csr in pieces": in_pieces,
    "csc": sp.csc_matrix,
    "csc array": sp.csc_array,
    "coo": sp.coo_matrix,
    "lil": sp.lil_matrix,
    "pandas": pd.DataFrame,
    "pandas mixed": lambda X: pd.DataFrame(X).astype({0: "float32", 1: "int64"}),
    "polars": lambda X: pl.DataFrame(X, schema=[f"c{i}" for i in range(X.shape[1])]),
}


@invariance([case for case in CASES if not case.is_precomputed])
def test_storage(case, draw):
    """The same numbers give the same model however they are stored."""
    problem = case.problem(draw(st.integers(0, 3)))
    whole = problem.columns(lambda X: np.round(8 * X))  # within int8
    parameters = {}
    if case.is_kernel and case.model.kernel == "rbf" and case.model.gamma != "scale":
        parameters = {"gamma": (np.asarray(case.model.gamma) / 64).tolist()}
    convert = STORAGES[draw(st.sampled_from(sorted(STORAGES)))]
    expected = case.fit(whole, **parameters)
    model = case.fit(whole, convert, **parameters)
    before = (whole, expected, case.scores(expected, whole))
    assert_same(case, before, whole, model=model, convert=convert)


@invariance(CASES)
def test_number_of_threads(case, draw):
    before = draw_fitted(case, draw)
    assert_same(case, before, before[0], model=case.fit(before[0], n_threads=2 + draw(st.integers(0, 1))))
