"""BradleyTerry against explicit rows, refits and enumeration."""

import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

from rankwise import BradleyTerry, RankSVM
from rankwise.exceptions import InvalidInputError


def board(seed=0, n=8, size=300, ties=0.2, spread=1.0):
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=n) * spread
    a = rng.integers(n, size=size)
    b = (a + 1 + rng.integers(n - 1, size=size)) % n
    score = (rng.random(size) < 1 / (1 + np.exp(strength[b] - strength[a]))).astype(float)
    score[rng.random(size) < ties] = 0.5
    return {"item_a": a, "item_b": b, "score": score}


def rows(battles, n):
    design = np.zeros((len(battles["score"]), n))
    at = np.arange(len(design))
    design[at, battles["item_a"]], design[at, battles["item_b"]] = 1, -1
    return design


def explicit(design, score, penalty, n):
    """Minimise the objective on explicit rows; the ridge is on the first n columns."""

    def value(w):
        z = design @ w
        ridge = penalty * np.r_[w[:n], np.zeros(len(w) - n)]
        gradient = design.T @ (1 / (1 + np.exp(-z)) - score) + ridge
        return np.logaddexp(0, z).sum() - score @ z + 0.5 * ridge @ w, gradient

    return minimize(value, np.zeros(design.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9}).x


@pytest.mark.parametrize("kind", ["plain", "order", "style", "no penalty"])
def test_strengths_are_those_of_a_logistic_regression_on_rows(kind):
    battles, n = board(), 8
    style = np.random.default_rng(1).normal(size=(300, 2))
    design = rows(battles, n)
    beside = {"order": np.ones((300, 1)), "style": style}.get(kind, np.empty((300, 0)))
    penalty = 0.0 if kind == "no penalty" else 0.1
    expected = explicit(np.hstack([design, beside]), battles["score"], penalty, n)
    model = BradleyTerry(penalty, first_advantage=kind == "order")
    model.fit(battles, style=style if kind == "style" else None)
    np.testing.assert_allclose(model.strengths_, expected[:n] - expected[:n].mean(), atol=1e-6)
    np.testing.assert_allclose(model.effects_["value"], expected[n:], atol=1e-6)


def test_the_covariance_is_the_sandwich_of_explicit_rows():
    battles, n = board(), 8
    model = BradleyTerry().fit(battles)
    design = rows(battles, n)
    p = 1 / (1 + np.exp(-design @ model.strengths_))
    residual = battles["score"] - p
    bread = np.linalg.inv(design.T @ (design * (p * (1 - p))[:, None]) + 0.1 * np.eye(n))
    centre = np.eye(n) - 1 / n
    bread = centre @ bread @ centre
    meat = design.T @ (design * (residual**2)[:, None]) + 0.1 * np.eye(n)
    np.testing.assert_allclose(model.covariance_, bread @ meat @ bread, atol=1e-8)
    cluster = np.arange(300) % 20
    model = BradleyTerry().fit(battles, cluster=cluster)
    sums = np.array([(design * residual[:, None])[cluster == g].sum(axis=0) for g in range(20)])
    meat = 20 / 19 * sums.T @ sums + 0.1 * np.eye(n)
    np.testing.assert_allclose(model.covariance_, bread @ meat @ bread, atol=1e-8)
    half = stats.t.ppf(0.975, 19) * np.sqrt(model.covariance_[0, 0])
    at = model.table_["item"].tolist().index(0)
    assert model.table_["high"][at] - model.table_["strength"][at] == pytest.approx(half)


def test_equals_rank_svm_with_one_column_per_item():
    battles = board(ties=0)
    won = battles["score"] == 1
    pairs = np.where(
        won[:, None],
        *(np.c_[battles[x], battles[y]] for x, y in (("item_a", "item_b"), ("item_b", "item_a"))),
    )
    svm = RankSVM(0.1 / (2 * 300), loss="logistic", tol=1e-10).fit_pairs(np.eye(8), pairs)
    model = BradleyTerry().fit({"winner": pairs[:, 0], "loser": pairs[:, 1]})
    np.testing.assert_allclose(svm.coef_ - svm.coef_.mean(), model.strengths_, atol=1e-5)


def test_davidson_is_a_multinomial_fit():
    battles, n = board(), 8
    model = BradleyTerry(ties="davidson").fit(battles)
    design = rows(battles, n)
    which = np.searchsorted([0, 0.5, 1], battles["score"])

    def value(w):
        z = design @ w[:n]
        logits = np.stack([-z / 2, np.full(300, w[n]), z / 2])
        return (np.logaddexp.reduce(logits) - logits[which, np.arange(300)]).sum() + 0.05 * w[:n] @ w[:n]

    found = minimize(value, np.zeros(n + 1), options={"gtol": 1e-6}).x
    np.testing.assert_allclose(model.strengths_, found[:n], atol=1e-4)
    assert model.effects_["value"][0] == pytest.approx(found[n], abs=1e-4)
    shares = model.predict_proba([0, 1], [2, 3])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    half = BradleyTerry().fit(battles).strengths_ * (1 + np.exp(found[n]) / 2)
    assert np.abs(half / found[:n] - 1).max() < 0.15


def test_formats_agree():
    battles = board()
    expected = BradleyTerry().fit(battles)
    words = np.select([battles["score"] == 1, battles["score"] == 0], ["model_a", "model_b"], "tie (bothbad)")
    arena = {"model_a": battles["item_a"], "model_b": battles["item_b"], "winner": words}
    pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    counts = pd.DataFrame(battles)
    for name, score in (("wins_a", 1), ("ties", 0.5), ("wins_b", 0)):
        counts[name] = (counts["score"] == score).astype(int)
    counts = counts.drop(columns="score").groupby(["item_a", "item_b"], as_index=False).sum()
    weighted = {key: np.concatenate([column, column]) for key, column in battles.items()} | {
        "weight": np.full(600, 0.5)
    }
    for table in (arena, pd.DataFrame(arena), pa.table(arena), counts, weighted):
        model = BradleyTerry().fit(table)
        np.testing.assert_allclose(model.strengths_, expected.strengths_, atol=1e-8)
        np.testing.assert_allclose(model.covariance_, expected.covariance_, atol=1e-8)
        pd.DataFrame(model.table_)
    won = np.array([["x", "y"], ["y", "z"], ["z", "x"], ["x", "y"]])
    assert BradleyTerry().fit(won).table_["item"].tolist() == ["x", "z", "y"]


def test_features_give_strengths_to_items_that_never_played():
    battles = board()
    features = {item: [float(item)] for item in range(10)}
    model = BradleyTerry().fit(battles, items=features)
    width = dict(zip(model.table_["item"], model.table_["high"] - model.table_["low"], strict=True))
    assert min(width[8], width[9]) > max(width[item] for item in range(8))
    assert model.diagnostics_["never_played"] == [8, 9]


def holm(p, error):
    """Reject in the order of p-values, one at a time."""
    rejected = set()
    for at, key in enumerate(sorted(p, key=p.get)):
        if p[key] > error / (len(p) - at):
            break
        rejected.add(key)
    return rejected


def test_tiers_and_guaranteed_places_by_enumeration():
    battles = board(size=600, spread=2)
    model = BradleyTerry(places="guaranteed").fit(battles)
    t, V = model.strengths_, model.covariance_
    p = {
        (i, j): 2 * stats.norm.sf(abs(t[i] - t[j]) / np.sqrt(V[i, i] + V[j, j] - 2 * V[i, j]))
        for i, j in combinations(range(8), 2)
    }
    different = holm(p, 0.05)
    tier = {}
    for item in np.argsort(-t):
        above = [tier[o] for o in tier if (min(o, item), max(o, item)) in different]
        tier[item] = 1 + max(above, default=0)
    table = model.table_
    assert dict(zip(table["item"].tolist(), table["tier"].tolist(), strict=True)) == tier
    assert max(tier.values()) > 2
    for at, item in enumerate(table["item"].tolist()):
        own = {pair: value for pair, value in p.items() if item in pair}
        others = [sum(pair) - item for pair in holm(own, 0.05)]
        better = sum(t[other] > t[item] for other in others)
        assert table["place_low"][at] == 1 + better
        assert table["place_high"][at] == 8 - (len(others) - better)


def test_places_of_clear_and_of_tied_boards():
    clear = BradleyTerry().fit(board(size=20_000, spread=2)).table_
    assert (clear["place_low"] <= clear["place"]).all()
    assert (clear["place_high"] >= clear["place"]).all()
    assert (clear["place_high"] - clear["place_low"]).mean() < 1.5
    tied = BradleyTerry().fit(board(size=300, spread=0)).table_
    assert (tied["place_high"] - tied["place_low"]).mean() > 4
    assert tied["p_first"].sum() == pytest.approx(1)


def test_components_are_ranked_apart():
    battles = board()
    other = {key: column.copy() for key, column in board(1).items()}
    other["item_a"] += 8
    other["item_b"] += 8
    both = {key: np.concatenate([battles[key], other[key]]) for key in battles}
    model, alone = BradleyTerry().fit(both), BradleyTerry().fit(battles)
    np.testing.assert_allclose(model.strengths_[:8], alone.strengths_, atol=1e-8)
    assert sorted(model.table_["place"].tolist()) == sorted(2 * list(range(1, 9)))
    assert set(model.table_["component"]) == {1, 2}
    with pytest.raises(InvalidInputError, match="different components"):
        model.predict_proba([0], [9])


def test_items_that_never_lost_are_finite_and_named():
    battles = np.array([["x", "y"], ["x", "z"], ["y", "z"], ["z", "y"]])
    model = BradleyTerry().fit(battles)
    assert model.diagnostics_["never_lost"] == ["x"]
    assert np.isfinite(model.table_["high"]).all()
    with pytest.raises(InvalidInputError, match="x never lost"):
        BradleyTerry(0).fit(battles)


def test_elo_moves_and_stretches():
    model = BradleyTerry().fit(board())
    rated = model.elo(anchor=3, rating=1200)
    at = rated["item"].tolist().index(3)
    assert rated["rating"][at] == rated["low"][at] == 1200
    assert np.ptp(rated["rating"]) == pytest.approx(400 / np.log(10) * np.ptp(model.strengths_))


@pytest.mark.parametrize(
    ("battles", "message"),
    [
        ({"a": [1], "b": [2]}, "do not describe battles"),
        ({"winner": ["x"], "loser": ["y"]}, "fewer than two"),
        ({"item_a": [1, 2], "item_b": [2, 3], "score": [0.5, 0.5]}, "ties"),
        ({"item_a": [1, 2], "item_b": [2, 3], "score": [0.3, 0.5]}, "score 0.3"),
        ({"model_a": [1, 2], "model_b": [2, 3], "winner": ["model_a", "hm"]}, "'hm'"),
        ({"winner": [1, 2], "loser": [2, 3], "weight": [1, -1]}, "weight -1"),
    ],
)
def test_bad_battles_raise_one_clear_error(battles, message):
    with pytest.raises(InvalidInputError, match=f"(?s){message}.*Hint: "):
        BradleyTerry().fit(battles)


def test_rows_that_are_left_out_are_reported():
    battles = {"winner": ["x", "y", None, "x"], "loser": ["y", "x", "x", "x"]}
    with pytest.warns(UserWarning, match="1 because an item id is missing; 1 because an item meets itself"):
        model = BradleyTerry().fit(battles)
    assert sum(model.diagnostics_["left_out"].values()) == 2


def test_davidson_refuses_features():
    with pytest.raises(InvalidInputError, match="ties='half'"):
        BradleyTerry(ties="davidson").fit(board(), items={item: [item] for item in range(8)})


@pytest.mark.real_data
def test_agrestis_baseball():
    root = os.environ.get("RANKWISE_DATA")
    path = Path(root or "", "pairwise-r-cran", "BradleyTerry2", "baseball.csv")
    if root is None or not path.exists():
        pytest.skip("set RANKWISE_DATA to the folder of the data sets")
    home, away, won, lost = np.genfromtxt(path, delimiter=",", dtype=str, skip_header=1, unpack=True)
    won, lost = won.astype(int), lost.astype(int)
    counts = {"item_a": home, "item_b": away, "wins_a": won, "wins_b": lost}
    total = won + lost
    with np.errstate(divide="ignore", invalid="ignore"):
        full = sum(np.where(x > 0, x * np.log(x / total), 0).sum() for x in (won, lost))
    model = BradleyTerry(0, first_advantage=True).fit(counts)
    assert model.effects_["value"][0] == pytest.approx(0.302, abs=5e-4)
    error = np.sqrt(model._fitted.inverse[-1, -1])  # the published standard error is the model's
    assert error == pytest.approx(0.131, abs=5e-4)
    assert model.deviance_ + 2 * full == pytest.approx(38.64, abs=5e-3)
    assert BradleyTerry(0).fit(counts).deviance_ + 2 * full == pytest.approx(44.05, abs=5e-3)
