"""BradleyTerry against explicit rows, refits and enumeration."""

import csv
import io
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

import rankwise
from boards import board, curvature, explicit, explicit_covariance, loglik, rows, slopes
from model_changes import put_together, saved, taken_apart
from rankwise import BradleyTerry, RankSVM
from rankwise.exceptions import InvalidInputError, ModelFileError

# Order, style, Davidson, clusters, items with few points: all pairs of them.
KINDS = [
    (False, False, False, False, False),
    (True, True, False, False, True),
    (True, False, True, True, False),
    (False, True, True, False, True),
    (False, True, False, True, False),
    (True, False, False, True, True),
    (False, False, True, True, True),
]


@pytest.mark.parametrize(("order", "style", "davidson", "clustered", "few"), KINDS)
def test_strengths_effects_and_intervals_are_those_of_explicit_rows(order, style, davidson, clustered, few):
    battles, n, size = board(), 8, 300
    if few:
        battles["score"][battles["item_a"] == 3] = 1
        battles["score"][battles["item_b"] == 3] = 0
    rng = np.random.default_rng(1)
    columns = 50 * rng.normal(size=(size, 2))
    cluster = rng.integers(20, size=size) if clustered else None
    design = np.hstack(
        [rows(battles, n), *([np.ones((size, 1))] if order else []), *([columns] if style else [])]
    )
    w = explicit(design / np.r_[np.ones(n + order), [50, 50] * style], battles["score"], 0.1, n, davidson)
    w[n + order : n + order + 2 * style] /= 50
    covariance, part = explicit_covariance(w, design, battles, 0.1, n, cluster=cluster, davidson=davidson)
    model = BradleyTerry(ties="davidson" if davidson else "half", first_advantage=order)
    model.fit(battles, style=columns if style else None, cluster=cluster)
    np.testing.assert_allclose(model.strengths_, w[:n] - w[:n].mean(), atol=1e-5)
    np.testing.assert_allclose(model.effects_["value"], w[n:], atol=1e-5)
    np.testing.assert_allclose(model.covariance_, covariance[:n, :n], atol=1e-4)
    np.testing.assert_allclose(model.effects_["error"], np.sqrt(covariance.diagonal()[n:]), rtol=1e-3)

    def half(pick):
        """Return half of an interval of 95 %, with Satterthwaite's degrees of freedom."""
        variance, clustered = pick @ covariance @ pick, pick @ part @ pick
        degrees = (len(set(cluster)) - 1) * (variance / clustered) ** 2 if clustered else np.inf
        return stats.t.ppf(0.975, degrees) * np.sqrt(variance)

    unit, table = np.eye(len(w)), model.table_
    halves = [half(unit[item]) for item in table["item"]]
    np.testing.assert_allclose(table["high"] - table["strength"], halves, rtol=1e-3)
    effects = [half(one) for one in unit[n:]]
    np.testing.assert_allclose(model.effects_["high"] - model.effects_["value"], effects, rtol=1e-3)
    gap, low, high = model.difference([0, 1], [2, 3])
    halves = [half(unit[a] - unit[b]) for a, b in ((0, 2), (1, 3))]
    np.testing.assert_allclose((high - low) / 2, halves, rtol=1e-3)
    np.testing.assert_allclose(gap, model.strengths_[:2] - model.strengths_[2:4])
    effects = model.effects_["effect"].tolist()
    assert effects == ["first"] * order + ["style 0", "style 1"] * style + ["log_nu"] * davidson


def test_without_a_penalty_strengths_are_those_of_scikit_learn():
    battles, n = board(ties=0), 8
    design, regression = (
        rows(battles, n),
        LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12, max_iter=10_000),
    )
    coef = regression.fit(design[:, 1:], battles["score"]).coef_[0]
    expected = np.r_[0, coef] - coef.sum() / n
    np.testing.assert_allclose(BradleyTerry(0).fit(battles).strengths_, expected, atol=1e-6)


def test_features_are_a_ridge_on_free_effects_and_coefficients():
    battles, n = board(), 8
    values = np.random.default_rng(2).normal(size=(n, 2)) * [1, 30]
    table = {"item": np.arange(n), "x": values[:, 0], "y": values[:, 1]}
    model = BradleyTerry().fit(battles, items=table)
    features = (values - values.mean(axis=0)) / values.std(axis=0)
    design = rows(battles, n)
    both = np.hstack([design, design @ features])
    w = explicit(both, battles["score"], 0.1, n + 2)
    strength = w[:n] + features @ w[n:]
    np.testing.assert_allclose(model.strengths_, strength - strength.mean(), atol=1e-5)
    np.testing.assert_allclose(model.effects_["value"] * values.std(axis=0), w[n:], atol=1e-5)
    inverse = np.linalg.inv(curvature(w, both, battles["score"]) + 0.1 * np.eye(n + 2))
    np.testing.assert_allclose(
        model.effects_["error"] * values.std(axis=0), np.sqrt(inverse.diagonal()[n:]), rtol=1e-4
    )
    assert model.effects_["effect"].tolist() == ["x", "y"]


def test_the_penalty_of_places_maximises_the_marginal_likelihood():
    battles, n = board(size=200, spread=0.4), 8
    model = BradleyTerry().fit(battles)
    design, score = rows(battles, n), battles["score"]
    hessian, bread = curvature(model.strengths_, design, score), model.model_covariance_
    bias = 0.1**2 * np.var(model.strengths_) * np.eye(n)
    effect = np.trace(model.covariance_) / np.trace(bread @ (hessian + bias) @ bread)

    def evidence(penalty):
        w = explicit(design, score, penalty * effect, n)
        z = design @ w
        matrix = curvature(w, design, score) / effect + penalty * np.eye(n)
        likelihood = (score @ z - np.logaddexp(0, z).sum()) / effect
        return likelihood - penalty / 2 * w @ w + n / 2 * np.log(penalty) - np.linalg.slogdet(matrix)[1] / 2

    grid = model.places_penalty_ * np.exp([-0.6, -0.3, 0, 0.3, 0.6])
    assert np.argmax([evidence(penalty) for penalty in grid]) == 2
    w = explicit(design, score, model.places_penalty_ * effect, n)
    np.testing.assert_allclose(model.shrunk_strengths_, w, atol=1e-5)


# Davidson's log ν is not updated, which adds about the same to every penalty.
@pytest.mark.parametrize(("ties", "error"), [("half", 0.005), ("davidson", 0.02)])
def test_held_out_battles_are_close_to_refits(ties, error):
    battles, n, davidson = board(size=80), 8, ties == "davidson"
    model = BradleyTerry(ties=ties).fit(battles)
    fitted = model._predicting
    design, loss = rows(battles, n), 0.0
    for out in range(80):
        keep = np.arange(80) != out
        w = explicit_start(design[keep], battles["score"][keep], fitted.penalty, n, davidson, fitted.theta)
        loss -= loglik(w, design[[out]], battles["score"][[out]], davidson)[0]
    contest = model._contest
    found = contest.weight @ contest.held_out(fitted)[0]
    assert found == pytest.approx(loss, rel=error)
    others = [contest.fit(penalty) for penalty in (0.01, 0.1, 1, 10, 100)]
    best = min(others, key=lambda one: contest.weight @ contest.held_out(one)[0])
    assert model.prediction_penalty_ == pytest.approx(best.penalty)
    np.testing.assert_allclose(model.prediction_, best.theta, atol=1e-4)


def explicit_start(design, score, penalty, n, davidson, w):
    """Refit from a start by Newton's method on explicit rows."""
    ridge = np.r_[np.full(n, penalty), np.zeros(len(w) - n)]
    for _ in range(3):
        hessian = curvature(w, design, score, davidson) + np.diag(ridge)
        w = w + np.linalg.solve(hessian, slopes(w, design, score, davidson).sum(axis=0) - ridge * w)
    return w


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


def test_davidson_has_another_scale_and_probabilities_of_three_results():
    battles = board(size=3000)
    model = BradleyTerry(ties="davidson").fit(battles)
    shares = model.predict_proba([0, 1], [2, 3])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    z, nu = model.prediction_[[0, 1]] - model.prediction_[[2, 3]], np.exp(model.prediction_[-1])
    np.testing.assert_allclose(shares[:, 0] / shares[:, 2], np.exp(z))
    np.testing.assert_allclose(shares[:, 1] ** 2 / (shares[:, 0] * shares[:, 2]), nu**2)
    half = BradleyTerry().fit(battles).strengths_ * (1 + nu / 2)
    assert np.abs(half / model.strengths_ - 1).max() < 0.15


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


TWICE = {"winner": [1, 2], "loser": [2, 1]}


@pytest.mark.parametrize(
    ("battles", "options", "message"),
    [
        ({"a": [1], "b": [2]}, {}, "do not describe battles"),
        ({"winner": ["x"], "loser": ["y"]}, {}, "fewer than two"),
        ({"item_a": [1, 2], "item_b": [2, 3], "score": [0.5, 0.5]}, {}, "ties"),
        ({"item_a": [1, 2], "item_b": [2, 3], "score": [0.3, 0.5]}, {}, "score 0.3"),
        ({"model_a": [1, 2], "model_b": [2, 3], "winner": ["model_a", "hm"]}, {}, "'hm'"),
        ({"winner": [1, 2], "loser": [2, 3], "weight": [1, -1]}, {}, "weight -1"),
        ({"winner": ["x", "y"], "loser": ["y"]}, {}, "loser has 1 rows"),
        ({"item_a": [1, 2], "item_b": [2, 1], "wins_a": [3, -1], "wins_b": [1, 1]}, {}, "negative"),
        ({**TWICE, "x": ["a", "b"]}, {"style": "x"}, "not numbers"),
        (TWICE, {"cluster": ["j", "j"]}, "one cluster"),
        (TWICE, {"cluster": ["j", None]}, "missing values"),
        (TWICE, {"cluster": ["j"]}, "cluster has 1 rows"),
        (TWICE, {"items": {1: [1.0]}}, "Item 2 has no features"),
        (TWICE, {"items": {1: [1.0], 2: [np.nan]}}, "features that are missing"),
        (TWICE, {"items": {"item": [1, 1], "x": [1, 2]}}, "an item twice"),
    ],
)
def test_bad_input_raises_one_clear_error(battles, options, message):
    with pytest.raises(InvalidInputError, match=f"(?s){message}.*Hint: "):
        BradleyTerry().fit(battles, **options)


def test_rows_that_are_left_out_are_reported():
    battles = {"winner": ["x", "y", None, "x"], "loser": ["y", "x", "x", "x"]}
    with pytest.warns(UserWarning, match="1 because an item id is missing; 1 because an item meets itself"):
        model = BradleyTerry().fit(battles)
    assert sum(model.diagnostics_["left_out"].values()) == 2


def columns_of(name):
    """Read a data set of the R package BradleyTerry2, as text."""
    root = os.environ.get("RANKWISE_DATA")
    path = Path(root or "", "pairwise-r-cran", "BradleyTerry2", f"{name}.csv")
    if root is None or not path.exists():
        pytest.skip("set RANKWISE_DATA to the folder of the data sets")
    with path.open(encoding="utf-8") as stream:
        head, *lines = csv.reader(stream)
    return dict(zip(head, np.array(lines).T, strict=True))


@pytest.mark.real_data
def test_agrestis_baseball():
    home, away, *games = columns_of("baseball").values()
    won, lost = (one.astype(int) for one in games)
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


@pytest.mark.real_data
def test_kousgaards_sound_fields_for_flutes():
    """Table 3 of Kousgaard (1984) has Davidson's model, on half our scale."""
    table = columns_of("sound.fields.comparisons")
    flute = table.pop("instrument") == "flute"
    names = {"item_a": "field1", "item_b": "field2", "wins_a": "win1", "wins_b": "win2", "ties": "tie"}
    counts = {ours: table[theirs][flute] for ours, theirs in names.items()}
    published = [-0.581, -1.039, 0.347, 0.205, 0.276, 0.347, 0.311, 0.135]
    model = BradleyTerry(0, ties="davidson").fit(counts)
    np.testing.assert_allclose(model.strengths_ / 2, published, atol=7e-4)


@pytest.mark.real_data
def test_ratings_of_college_hockey():
    """KRACH of 2009-10: a team of rating 100 would win half of a round robin."""
    table = columns_of("icehockey")
    games = {"item_a": table["visitor"], "item_b": table["opponent"], "score": table["result"]}
    model = BradleyTerry(0).fit(games)
    t = model.strengths_
    middle = brentq(lambda s: expit(s - t).mean() - 0.5, t.min(), t.max())
    rating = dict(zip(model.items_, 100 * np.exp(t - middle), strict=True))
    published = {"Denver": 543.0, "Miami": 488.2, "Wisconsin": 481.3, "North Dakota": 434.2, "Yale": 159.4}
    assert {name: rating[name] for name in published} == pytest.approx(published, rel=5e-4)
    wins = {name: (expit(t[at] - t).sum() - 0.5) / (t.size - 1) for at, name in enumerate(model.items_)}
    assert (wins["Denver"], wins["Miami"]) == pytest.approx((0.8145, 0.7991), abs=1e-4)


def test_citations_of_journals():
    """The first example of BradleyTerry2's vignette."""
    names = np.array(["Biometrika", "Comm Statist", "JASA", "JRSS-B"])
    cited = np.array([[714, 730, 498, 221], [33, 425, 68, 17], [320, 813, 1072, 142], [284, 276, 325, 188]])
    a, b = np.triu_indices(4, 1)
    counts = {"item_a": names[a], "item_b": names[b], "wins_a": cited[a, b], "wins_b": cited[b, a]}
    t = BradleyTerry(0).fit(counts).strengths_
    np.testing.assert_allclose(t[1:] - t[0], [-2.9491, -0.4796, 0.2690], atol=5e-5)


@pytest.mark.parametrize("ties", ["half", "davidson"])
def test_a_saved_board_answers_as_before(ties):
    battles = board(size=500, ties=0.2)
    battles["item_a"] = [("model", int(item)) for item in battles["item_a"]]  # ids may be tuples
    battles["item_b"] = [("model", int(item)) for item in battles["item_b"]]
    model, file = BradleyTerry(ties=ties, first_advantage=True, level=0.9).fit(battles), io.BytesIO()
    model.save(file, notes={"from": "test"})
    again = rankwise.load(io.BytesIO(file.getvalue()))
    assert again.get_params() == model.get_params()
    for key, column in model.table_.items():
        np.testing.assert_array_equal(again.table_[key], column)
    a, b = ("model", 1), ("model", 2)
    np.testing.assert_array_equal(again.predict_proba(a, b), model.predict_proba(a, b))
    np.testing.assert_array_equal(again.difference(a, b), model.difference(a, b))
    np.testing.assert_array_equal(again.elo(a)["rating"], model.elo(a)["rating"])
    assert again.diagnostics_ == model.diagnostics_
    if ties == "half":
        assert again.suggest(5, goal=3) == model.suggest(5, goal=3)


def test_a_damaged_board_is_refused():
    header, members = taken_apart(saved(BradleyTerry().fit(board())))
    header["model"]["attributes"]["covariance_"] = header["model"]["attributes"]["strengths_"]
    with pytest.raises(ModelFileError, match="damaged"):
        rankwise.load(io.BytesIO(put_together(header, members)))


@pytest.mark.parametrize("columns", [np.ones((300, 1)), np.tile(np.arange(300.0)[:, None], 2)])
def test_contest_columns_that_repeat_each_other_raise_a_clear_error(columns):
    with pytest.raises(InvalidInputError, match="no finite estimate"):
        BradleyTerry(first_advantage=True).fit(board(), style=columns)


def test_items_without_battles_are_not_on_the_board():
    battles = {"item_a": ["x", "y", "z", "w"], "item_b": ["y", "x", "z", "x"], "score": [1, 1, 1, None]}
    with pytest.warns(UserWarning, match="itself; 1 because the outcome is missing"):
        model = BradleyTerry().fit(battles)
    assert model.items_.tolist() == ["x", "y"]
    with pytest.raises(InvalidInputError, match="'z' is not on the board"):
        model.predict_proba("x", "z")


def test_repeated_and_contradictory_battles_are_counted():
    battles = {"winner": ["x", "y", "x", "x", "z"], "loser": ["y", "x", "y", "z", "y"]}
    alone = BradleyTerry().fit(battles).diagnostics_
    assert (alone["contradictory"], alone["repeated"]) == (1, 1)
    judged = BradleyTerry().fit(battles, cluster=[1, 1, 2, 1, 2]).diagnostics_
    assert (judged["contradictory"], judged["repeated"]) == (1, 0)
