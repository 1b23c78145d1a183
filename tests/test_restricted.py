"""Signs, a prior and penalties of columns: against reference solvers on explicit pairs, and by their conditions."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import LinearConstraint, lsq_linear, minimize

from all_pairs import pairwise
from rankwise import RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.exceptions import InvalidInputError

STORAGES = {
    "dense": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "csr": sp.csr_matrix,
    "fortran": np.asfortranarray,
}


def rows(seed, n_rows=60, n_columns=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)).astype(np.float32).astype(float) * 2.0 ** rng.integers(
        -2, 3, n_columns
    )
    y = np.digitize(X @ rng.normal(size=n_columns) + rng.normal(size=n_rows), [-1, 0.5, 2])
    return X, y, np.arange(n_rows) // 10


def listed(X, y, qid):
    """Return every pair i > j inside queries."""
    return np.array(
        [(i, j) for i in range(len(y)) for j in range(len(y)) if qid[i] == qid[j] and y[i] > y[j]]
    )


def restriction(seed, n_columns=6):
    rng = np.random.default_rng(seed + 100)
    return {
        "positive": rng.integers(-1, 2, n_columns),
        "prior": rng.normal(size=n_columns),
        "column_penalty": rng.uniform(0.2, 5, n_columns),
        "unpenalised": rng.uniform(0.2, 5, n_columns) * (np.arange(n_columns) % 3 != seed % 3),
    }


def parameters_of(names, seed, n_columns=6):
    """Return the parameters of these names; "unpenalised" are penalties of which some are 0."""
    known = restriction(seed, n_columns)
    return {"column_penalty" if name == "unpenalised" else name: known[name] for name in names}


def bounds_of(signs):
    return np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)


def least_squares(X, pairs, z, alpha, *, positive=None, prior=None, column_penalty=None, weight=None):
    """Solve on explicit pairs by SciPy."""
    n = X.shape[1]
    root = np.ones(len(pairs)) if weight is None else np.sqrt(weight)
    penalty = np.sqrt(alpha * (np.ones(n) if column_penalty is None else column_penalty))
    A = np.vstack([(X[pairs[:, 0]] - X[pairs[:, 1]]) * root[:, None], np.diag(penalty)])
    b = np.concatenate([z * root, penalty * (np.zeros(n) if prior is None else prior)])
    if positive is None:
        return np.linalg.lstsq(A, b, rcond=None)[0]
    return lsq_linear(A, b, bounds_of(np.asarray(positive)), tol=1e-14, lsmr_tol="auto", max_iter=1000).x


SquaredSVM = partial(RankSVM, loss="squared_hinge")  # the hinge takes no signs
SquaredSVMCV = partial(RankSVMCV, loss="squared_hinge")

CASES = [
    ("positive",),
    ("prior",),
    ("column_penalty",),
    ("positive", "prior", "column_penalty"),
    ("positive", "prior"),
    ("unpenalised",),
    ("positive", "unpenalised"),
    ("positive", "prior", "unpenalised"),
]


@pairwise(storage=STORAGES, names=CASES, alpha=[0.01, 3.0])
def test_least_squares_agree_with_scipy(names, storage, alpha):
    for seed in range(2):
        X, y, qid = rows(seed)
        own = parameters_of(names, seed)
        pairs = listed(X, y, qid)
        wanted = least_squares(X, pairs, y[pairs[:, 0]] - y[pairs[:, 1]], alpha, **own)
        made = {"ties": "exclude", "query_weight": "pairs", "tol": 1e-9}
        model = RankRLS(alpha, **made, **own).fit(STORAGES[storage](X), y, qid)
        np.testing.assert_allclose(model.coef_, wanted, atol=2e-6 * max(1, np.abs(wanted).max()))
        by_pairs = RankRLS(alpha, tol=1e-9, **own).fit_pairs(
            STORAGES[storage](X), pairs, magnitude=y[pairs[:, 0]] - y[pairs[:, 1]]
        )
        np.testing.assert_allclose(by_pairs.coef_, wanted, atol=2e-6 * max(1, np.abs(wanted).max()))
        if "positive" in names:
            assert (model.coef_ * own["positive"] >= 0).all()
            assert model.solver_ == "bounded"


@pytest.mark.parametrize("solver", ["direct", "eigen", "cg", "gdm", "egdm"])
def test_every_solver_finds_the_same_model(solver):
    X, y, qid = rows(1)
    own = {name: restriction(1)[name] for name in ("prior", "column_penalty")}
    free = np.array([0, 1, 1, 0, 2, 1.0])
    for more in (own, {**own, "column_penalty": free}, {"column_penalty": free}):
        wanted = RankRLS(2.0, **more).fit(X, y, qid).coef_
        found = RankRLS(2.0, **more, solver=solver, tol=1e-9, max_iter=20_000).fit(X, y, qid).coef_
        np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_columns_without_a_penalty_are_fitted_freely():
    X, y, qid = rows(2)
    pairs = listed(X, y, qid)
    z = y[pairs[:, 0]] - y[pairs[:, 1]]
    penalty = np.array([0, 3.0, 0, 1, 1, 0.5])
    wanted = least_squares(X, pairs, z, 50.0, column_penalty=penalty)
    for solver in ("direct", "cg"):
        model = RankRLS(
            50.0, solver=solver, tol=1e-10, column_penalty=penalty, ties="exclude", query_weight="pairs"
        )
        np.testing.assert_allclose(model.fit(X, y, qid).coef_, wanted, atol=1e-7)
    two = np.column_stack([X[:, 0], X[:, 0], X[:, 1:]])  # the same column twice: of least norm
    model = RankRLS(50.0, column_penalty=np.concatenate([[0], penalty]), ties="exclude", query_weight="pairs")
    found = model.fit(two, y, qid).coef_
    np.testing.assert_allclose(found[:2], wanted[0] / 2, atol=1e-6)


@pytest.mark.parametrize("solver", ["direct", "eigen", "cg", "gdm", "egdm"])
def test_free_columns_that_resemble_each_other_are_as_exact_as_others(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    X[:, 1] = X[:, 0] + 0.03 * X[:, 1]
    y = X @ rng.normal(size=6) + rng.normal(size=300)
    penalty = np.array([0, 0, 1, 1, 1, 1.0])
    centred = np.vstack([X - X.mean(axis=0), np.diag(np.sqrt(2 * penalty))])
    wanted = np.linalg.lstsq(centred, np.append(y - y.mean(), np.zeros(6)))[0]
    found = RankRLS(2.0, column_penalty=penalty, solver=solver, tol=1e-12).fit(X, y).coef_
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:solver='bounded' stopped")  # no gap can be proved with such an alpha
def test_equal_columns_that_lose_their_penalty_beside_their_size():
    rng = np.random.default_rng(0)
    X, y = 1e6 * rng.normal(size=(100, 3)), rng.normal(size=100)
    repeated, signs = np.column_stack([X, X[:, 0], X[:, 1], np.ones(100)]), [1, 0, 0, 1, 0, 0]
    found = RankRLS(1e-10, positive=signs).fit(repeated, y).coef_
    wanted = RankRLS(1.0, positive=signs).fit(repeated, y).coef_
    np.testing.assert_allclose(repeated[:, :5] @ found[:5], repeated[:, :5] @ wanted[:5], rtol=1e-6)


def fit_svm(X, y, qid, loss, penalty, alpha=0.1, tol=1e-3):
    """Fit pairs of labels; the logistic loss wants them listed."""
    return RankSVM(alpha, loss=loss, tol=tol, column_penalty=penalty).fit_pairs(X, listed(X, y, qid))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_column_without_a_penalty_has_no_units(loss):
    """Whatever a free column is measured in, and whatever is added to it query by query, the model orders alike."""
    X, y, qid = rows(3)
    penalty = np.array([0, 1, 1, 0, 1, 1.0])
    plain = fit_svm(X, y, qid, loss, penalty, tol=1e-8)
    assert plain.solver_ == "newton"
    # Listed pairs are not centred by query: an offset of 1e6 leaves too few digits for this tolerance.
    shift = 1e4 if loss == "logistic" else 1e6
    for unit, offset in ((1e-5, 0.0), (1e5, 0.0), (1.0, 1e3), (1.0, shift * qid)):
        other = X.copy()
        other[:, 0] = other[:, 0] * unit + offset
        found = fit_svm(other, y, qid, loss, penalty, tol=1e-8)
        np.testing.assert_allclose(found.coef_[0] * unit, plain.coef_[0], rtol=2e-3, atol=1e-4)
        np.testing.assert_allclose(found.coef_[1:], plain.coef_[1:], rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("solver", ["direct", "cg", "bounded", "bounded-cg"])
@pytest.mark.parametrize("storage", STORAGES)
def test_columns_of_least_squares_without_a_penalty_have_no_units(solver, storage, monkeypatch):
    if solver == "bounded-cg":
        monkeypatch.setattr("rankwise.fitting.squares.choose_solver", lambda *_, **__: "cg")
    X, y, qid = rows(3)
    X[:, 3] = qid / 3  # says nothing inside queries, but for its rounding
    penalty = np.array([0, 1, 1, 0, 0, 1.0])
    signs = [0, 0, 0, 1, 1, 0] if "bounded" in solver else False
    own = {"positive": signs, "column_penalty": penalty, "tol": 1e-9}
    own["solver"] = "auto" if "bounded" in solver else solver

    def fit(X):
        model = RankRLS(10.0, **own).fit(STORAGES[storage](X), y, qid)
        assert model.solver_ == solver
        return model.coef_

    plain = fit(X)
    assert abs(plain[3]) <= 1e-6
    left_out = X.copy()
    left_out[:, 3] = 0
    np.testing.assert_allclose(plain, fit(left_out), atol=1e-6)
    for unit in (1e-9, 1e-3, 1e9):
        other = X.copy()
        other[:, 0] *= unit
        found = fit(other)
        found[0] *= unit
        np.testing.assert_allclose(found, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_free_columns_that_separate_repeat_or_say_nothing(loss):
    X, y, qid = rows(1)
    rng = np.random.default_rng(0)
    columns = {
        "separates": y + 1e-3 * rng.normal(size=y.size),
        "constant": np.full(y.size, 3.0),
        "constant inside queries": qid.astype(float),
        "repeats": X[:, 1],
    }
    for column in columns.values():
        wide = np.column_stack([column, X])
        for penalty in ([0, 1, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 1, 1]):
            model = fit_svm(wide, y, qid, loss, penalty)
            others = [fit_svm(wide, y, qid, loss, np.ones(7)).coef_, np.zeros(7), 3 * model.coef_]
            values = [
                hinge_value(
                    w,
                    wide,
                    listed(wide, y, qid),
                    0.1,
                    loss=loss,
                    prior=np.zeros(7),
                    penalty=np.array(penalty),
                )
                for w in (model.coef_, *others)
            ]
            # No worse than models that it might have been, by more than what is proved.
            assert values[0] <= min(values[1:]) + model.duality_gap_ + 1e-12


@pytest.mark.parametrize("as_cg", [False, True])
def test_signs_satisfy_the_optimality_conditions(as_cg, monkeypatch):
    if as_cg:
        monkeypatch.setattr("rankwise.fitting.squares.choose_solver", lambda *_, **__: "cg")
    for seed in range(5):
        X, y, qid = rows(seed, 80, 10)
        signs = restriction(seed, 10)["positive"]
        penalty = restriction(seed, 10)["unpenalised"] if seed % 2 else np.ones(10)
        own = {"positive": signs, "column_penalty": penalty}
        model = RankRLS(0.5, **own, ties="exclude", query_weight="pairs").fit(X, y, qid)
        assert model.solver_ == ("bounded-cg" if as_cg else "bounded")
        pairs = listed(X, y, qid)
        D = X[pairs[:, 0]] - X[pairs[:, 1]]
        w = model.coef_
        gradient = D.T @ (D @ w - (y[pairs[:, 0]] - y[pairs[:, 1]])) + 0.5 * penalty * w
        scale = np.abs(D.T @ (y[pairs[:, 0]] - y[pairs[:, 1]])).max()
        free = (signs == 0) | (w != 0)
        assert np.abs(gradient[free]).max() <= 1e-4 * scale
        assert (gradient[~free] * signs[~free] >= -1e-4 * scale).all()
        assert (w * signs >= 0).all()


def hinge_value(w, X, pairs, alpha, *, loss, prior, penalty):
    t = 1 - (X[pairs[:, 0]] - X[pairs[:, 1]]) @ w
    cost = {
        "hinge": np.maximum(t, 0),
        "squared_hinge": np.maximum(t, 0) ** 2,
        "logistic": np.logaddexp(0, t - 1),
    }[loss]
    return cost.mean() + alpha * (penalty * (w - prior) ** 2).sum()


def reference(X, pairs, alpha, *, loss, signs, prior, penalty):
    """Minimise by SciPy; the hinge as a quadratic program with a slack per pair."""
    n, low, high = X.shape[1], *bounds_of(signs)
    if loss != "hinge":
        start = np.clip(prior, low, high)
        found = minimize(
            lambda w: hinge_value(w, X, pairs, alpha, loss=loss, prior=prior, penalty=penalty),
            start,
            method="L-BFGS-B",
            bounds=list(zip(low, high, strict=True)),
            options={"ftol": 1e-15, "gtol": 1e-9, "maxfun": 100_000},
        )
        return found.fun
    m = len(pairs)
    D = X[pairs[:, 0]] - X[pairs[:, 1]]
    x0 = np.concatenate([np.clip(prior, low, high), np.maximum(1 - D @ np.clip(prior, low, high), 0) + 0.1])

    def value(x):
        w, slack = x[:n], x[n:]
        gradient = np.concatenate([2 * alpha * penalty * (w - prior), np.full(m, 1 / m)])
        return slack.mean() + alpha * (penalty * (w - prior) ** 2).sum(), gradient

    constraint = LinearConstraint(np.hstack([D, np.eye(m)]), 1, np.inf)
    limits = list(
        zip(np.concatenate([low, np.zeros(m)]), np.concatenate([high, np.full(m, np.inf)]), strict=True)
    )
    found = minimize(value, x0, jac=True, method="SLSQP", bounds=limits, constraints=[constraint],
                     options={"maxiter": 500, "ftol": 1e-12})  # fmt: skip
    return hinge_value(
        np.clip(found.x[:n], low, high), X, pairs, alpha, loss=loss, prior=prior, penalty=penalty
    )


def is_taken(*, loss, names, **_):
    """Tell what a loss takes: the hinge neither signs nor columns without a penalty."""
    return loss != "hinge" or not {"positive", "unpenalised"} & set(names)


@pairwise(is_taken, loss=["hinge", "squared_hinge", "logistic"], names=CASES, storage=["dense", "csr"])
def test_margins_agree_with_scipy(loss, names, storage):
    for seed, alpha in ((0, 1e-3), (1, 0.1)):
        X, y, qid = rows(seed, 30, 4)
        pairs = listed(X, y, qid)[:: 4 if loss == "hinge" else 2]
        own = parameters_of(names, seed, 4)
        model = RankSVM(alpha, loss=loss, tol=1e-6, **own).fit_pairs(STORAGES[storage](X), pairs)
        full = {
            "signs": np.asarray(own.get("positive", np.zeros(4))),
            "prior": own.get("prior", np.zeros(4)),
            "penalty": own.get("column_penalty", np.ones(4)),
        }
        wanted = reference(X, pairs, alpha, loss=loss, **full)
        found = hinge_value(
            model.coef_, X, pairs, alpha, loss=loss, prior=full["prior"], penalty=full["penalty"]
        )
        assert (model.coef_ * full["signs"] >= 0).all()
        start = np.clip(full["prior"], *bounds_of(full["signs"]))
        before = hinge_value(start, X, pairs, alpha, loss=loss, prior=full["prior"], penalty=full["penalty"])
        assert found - wanted <= model.duality_gap_ + 1e-9  # the gap is proved
        assert model.duality_gap_ <= 2e-6 * before


def test_labels_give_the_model_of_their_pairs():
    for seed in range(3):
        X, y, qid = rows(seed)
        own = parameters_of(("positive", "prior", "unpenalised" if seed else "column_penalty"), seed)
        options = {"loss": "squared_hinge", "tol": 1e-8, **own}
        by_labels = RankSVM(0.01, query_weight="pairs", **options).fit(X, y, qid)
        by_pairs = RankSVM(0.01, **options).fit_pairs(X, listed(X, y, qid))
        np.testing.assert_allclose(by_labels.coef_, by_pairs.coef_, atol=2e-3)
        assert by_labels.solver_ == "bounded"


@pytest.mark.parametrize("solver", ["smoothing", "bundle"])
def test_a_prior_is_the_same_in_every_margin_solver(solver):
    X, y, qid = rows(4)
    own = {name: restriction(4)[name] for name in ("prior", "column_penalty")}
    wanted = RankSVM(0.01, tol=1e-7, **own).fit(X, y, qid).coef_
    found = RankSVM(0.01, tol=1e-7, solver=solver, **own).fit(X, y, qid)
    np.testing.assert_allclose(found.coef_, wanted, atol=2e-3)
    squared = [
        RankSVM(0.01, loss="squared_hinge", tol=1e-9, solver=own_solver, **own).fit(X, y, qid).coef_
        for own_solver in ("newton", "bundle")
    ]
    np.testing.assert_allclose(*squared, atol=1e-3)


@pytest.mark.parametrize("kind", [RankRLS, SquaredSVM])
def test_what_changes_nothing_changes_nothing(kind):
    X, y, qid = rows(5)
    tight = {"tol": 1e-8}
    plain = kind(0.1, **tight).fit(X, y, qid).coef_
    signs = np.sign(plain).astype(int)
    for own in ({"positive": signs}, {"prior": np.zeros(6)}, {"column_penalty": np.ones(6)}):
        np.testing.assert_allclose(kind(0.1, **tight, **own).fit(X, y, qid).coef_, plain, atol=1e-3)
    same = kind(0.1, **tight, positive=False, prior=None, column_penalty=None).fit(X, y, qid).coef_
    assert same.tolist() == plain.tolist()


@pytest.mark.parametrize("kind", [RankRLS, SquaredSVM])
def test_a_large_alpha_gives_the_prior_and_signs_hold_there(kind):
    X, y, qid = rows(6)
    prior = np.array([1.0, -2, 0.5, -0.1, 3, 0])
    np.testing.assert_allclose(kind(1e9, prior=prior).fit(X, y, qid).coef_, prior, atol=1e-4)
    signed = kind(1e9, prior=prior, positive=True).fit(X, y, qid).coef_
    np.testing.assert_allclose(signed, np.maximum(prior, 0), atol=1e-4)


@pytest.mark.parametrize("make", [RankRLS, RankRLSCV, SquaredSVM])
def test_no_coefficient_has_the_other_sign_by_rounding(make):
    """From a prior, a coefficient comes back to 0 by ``w₀ + s (-w₀ / s)``."""
    for seed in range(20):
        X, y, qid = rows(seed)
        known = restriction(seed)
        signs, penalty = known["positive"], known["column_penalty"]
        model = make(positive=signs, prior=-3 * signs * np.abs(known["prior"]), column_penalty=penalty)
        assert (model.fit(X, y, qid).coef_ * signs >= 0).all()


def test_several_outputs_have_the_same_restriction():
    X, y, qid = rows(7)
    other = np.random.default_rng(0).integers(0, 3, y.size)
    own = {name: restriction(7)[name] for name in ("positive", "prior")}
    both = RankRLS(1.0, **own).fit(X, np.column_stack([y, other]), qid).coef_
    for output, labels in enumerate((y, other)):
        np.testing.assert_allclose(both[output], RankRLS(1.0, **own).fit(X, labels, qid).coef_, atol=1e-6)


@pytest.mark.parametrize("kind", [RankRLSCV, SquaredSVMCV])
@pytest.mark.parametrize("names", CASES, ids="+".join)
def test_choosing_fits_every_alpha_by_itself(kind, names):
    X, y, qid = rows(8, 120)
    own = parameters_of(names, 8) | {"tol": 1e-7}
    alphas = [0.01, 0.1, 1.0]
    model = kind(alphas, cv=3, **own).fit(X, y, qid)
    single = RankRLS if kind is RankRLSCV else SquaredSVM
    np.testing.assert_allclose(
        model.coef_,
        single(model.alpha_, **own).fit(X, y, qid).coef_,
        atol=1e-6 if kind is RankRLSCV else 0.005,
    )
    assert model.cv_errors_.shape == (3,)
    held = kind(alphas, **own).fit(X[:80], y[:80], qid[:80], eval_set=(X[80:], y[80:], qid[80:]))
    errors = [
        1 - single(alpha, **own).fit(X[:80], y[:80], qid[:80]).score(X[80:], y[80:], qid=qid[80:])
        for alpha in alphas
    ]
    assert held.best_score_ == pytest.approx(min(errors), abs=0.02)
    pairs = listed(X, y, qid)[::3]
    chosen = kind(alphas, cv=3, **own).fit_pairs(X, pairs)
    assert (chosen.coef_ * np.asarray(own.get("positive", 0)) >= 0).all()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RankRLS(positive=[1, 2]), "6 are expected"),
        (lambda: RankRLS(prior=[1.0]), "6 are expected"),
        (lambda: RankRLS(column_penalty=-np.ones(6)), "is negative"),
        (lambda: RankRLS(column_penalty=np.zeros(6)), "0 everywhere"),
        (lambda: RankSVM(column_penalty=[0, 1, 1, 1, 1, 1]), "columns without a penalty.*squared_hinge"),
        (lambda: RankRLS(positive=True, solver="cg"), "solver='auto'"),
        (lambda: RankSVM(positive=True), "hinge.*signs.*squared_hinge"),
        (lambda: RankSVM(positive=True, loss="squared_hinge", solver="bundle"), "solver='auto'"),
        (lambda: RankRLS(0, positive=True), "small alpha"),
        (lambda: RankRLS(prior=np.ones(6), solver="stochastic"), "stochastic.*solver='auto'"),
        (lambda: RankRLS(prior=np.ones(6), early_stopping=True), "early_stopping=False"),
        (lambda: RankRLSCV(prior=np.ones(6), cv="leave-query-out"), "cv=5"),
        (lambda: RankRLSCV([0, 1], positive=True), "positive values"),
    ],
)
def test_mistakes_have_remedies(make, words):
    X, y, qid = rows(0)
    with pytest.raises(InvalidInputError, match=words):
        make().fit(X, y, qid)


def test_a_stream_refuses_a_restriction():
    X, y, qid = rows(0)
    with pytest.raises(InvalidInputError, match="partial_fit does not support positive"):
        RankRLS(positive=True).partial_fit(X, y, qid)


@pytest.mark.parametrize("name", ["prior", "column_penalty"])
@pytest.mark.parametrize("value", [True, False])
def test_only_signs_are_given_as_a_boolean(name, value):
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
    with pytest.raises(InvalidInputError, match=name):
        RankRLS(**{name: value}).fit(X, y)


def test_exact_hold_out_with_signs_names_the_reason():
    X, y = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20.0)
    with pytest.raises(InvalidInputError, match="With positive"):
        RankRLSCV(cv="leave-pair-out", positive=True).fit(X, y)
