"""A second model, and duels in the report."""

import re

import numpy as np
import pytest

from rankwise import AutoRanker, RankRLS, RankSVM
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import bootstrap_interval, compare_rankings, preference_error
from rankwise.metrics.intervals import mean_over_pairs
from rankwise.report import Report
from rankwise.report.evidence import record_errors, reliability
from report.test_report import balanced, searches, visible_words

RNG = np.random.default_rng(4)
X, Y, QID = searches()
MODEL = RankRLS().fit(X, Y, qid=QID)
WORSE = RankRLS().fit(X, RNG.permutation(Y), qid=QID)


def section(page, identity):
    return re.search(f'<section id="{identity}">(.*?)</section>', page, re.DOTALL)[1]


def test_two_models_stand_side_by_side():
    page = Report(
        MODEL, X, Y, QID, metrics=["ndcg@10", "average_precision"], against=WORSE, against_name="old.rw"
    ).html()
    balanced(page)
    shown = section(page, "against")
    expected = compare_rankings(Y, MODEL.predict(X), WORSE.predict(X), QID, metric="ndcg@10")
    other = bootstrap_interval(Y, WORSE.predict(X), QID, metric="ndcg@10")
    assert f"{expected.difference.value:+.4f}" in shown
    assert f"[{expected.difference.low:.3f}, {expected.difference.high:.3f}]" in shown
    assert f"{other.value:.4f}" in shown
    assert f"{expected.wins} to {expected.losses} queries" in shown
    assert "<strong>ranks better than</strong> <bdi>old.rw</bdi>" in shown
    assert 'href="#against"' in page


def test_scores_will_do_and_the_worse_model_is_told_so():
    by_model = Report(WORSE, X, Y, QID, against=MODEL).html()
    by_scores = Report(WORSE, X, Y, QID, against=MODEL.predict(X), against_name="RankRLS (the other)").html()
    assert "ranks worse than" in section(by_model, "against")
    assert "RankRLS (this one)" in section(by_model, "against")
    # Cells are labelled by the names of the models, which differ: the figures are the same.
    own, other = (
        re.sub(' data-label="[^"]*"', "", section(page, "against")) for page in (by_model, by_scores)
    )
    rows = re.compile("<tbody>.*?</tbody>", re.DOTALL)
    assert rows.findall(own) == rows.findall(other)
    with pytest.raises(InvalidInputError, match="against"):
        Report(MODEL, X, Y, QID, against=[1.0, 2.0])


def test_a_model_is_no_different_from_itself():
    shown = section(Report(MODEL, X, Y, QID, against=MODEL).html(), "against")
    assert "cannot be told apart from" in shown
    assert "order 100% of the pairs of rows alike" in shown


def tournament(n_items=15, n_duels=300, seed=0):
    rng = np.random.default_rng(seed)
    items = rng.normal(size=(n_items, 3))
    pairs = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n_duels)])
    lost = rng.random(n_duels) > 1 / (
        1 + np.exp(-2 * (items[pairs[:, 0]] - items[pairs[:, 1]]) @ [1, 0.5, 0])
    )
    pairs[lost] = pairs[lost][:, ::-1]
    return items, pairs


def test_wins_and_losses_are_counted():
    items, pairs = tournament()
    model = RankSVM(loss="logistic", alpha=1e-3).fit_pairs(items, pairs)
    report = Report(model, items, pairs=pairs, row_names=[f"item {i}" for i in range(15)])
    page = report.html()
    balanced(page)
    chance = model.predict_pairs(items, pairs)
    shown = section(page, "duels")
    cells = [
        re.sub(r"<[^>]*>", "", cell)
        for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", shown.partition("<tbody>")[2])
    ]
    for at in range(0, 6 * 15, 6):
        _, called, _, won, lost, expected = cells[at : at + 6]
        item = int(called.removeprefix("item "))
        assert int(won) == (pairs[:, 0] == item).sum()
        assert int(lost) == (pairs[:, 1] == item).sum()
        wanted = chance[pairs[:, 0] == item].sum() + (1 - chance[pairs[:, 1] == item]).sum()
        assert float(expected) == pytest.approx(wanted, abs=0.051)
    assert f"Log-loss {-np.log(chance).mean():.4f}" in shown
    bins = reliability(chance, np.ones(300))
    assert sum(count for _, _, count, _, _ in bins) == 300
    assert "wins expected" in section(page, "duels")
    assert "Can its probabilities be believed?" in visible_words(page)


def test_intervals_know_that_pairs_share_items():
    items, pairs = tournament()
    model = RankRLS().fit_pairs(items, pairs)
    figure = Report(model, items, pairs=pairs).evidence.figures[0]
    wrong = (model.predict_pairs(items, pairs) < 0).astype(float)
    assert figure.model == mean_over_pairs(wrong, pairs)
    assert figure.model.value == preference_error(pairs, model.predict(items))
    assert figure.random.value == 0.5


def test_the_baseline_bets_on_whoever_won_more_of_the_others():
    items, pairs = tournament(6, 40)
    found = record_errors(pairs, np.ones(40), 6)
    for at, (winner, loser) in enumerate(pairs):
        others = np.delete(pairs, at, axis=0)
        share = []
        for item in (winner, loser):
            won, lost = (others[:, 0] == item).sum(), (others[:, 1] == item).sum()
            share.append(won / (won + lost) if won + lost else 0.5)
        expected = 0.5 if share[0] == pytest.approx(share[1]) else float(share[0] < share[1])
        assert found[at] == expected
    assert record_errors(np.arange(8).reshape(4, 2), np.ones(4), 8) is None
    assert (
        "Who won more of its other duels"
        in Report(RankRLS().fit_pairs(items, pairs), items, pairs=pairs).html()
    )


def test_two_models_of_duels():
    items, pairs = tournament()
    first = AutoRanker(methods=["logistic", "rls"]).fit_pairs(items, pairs[:200])
    second = RankRLS(alpha=1e6).fit_pairs(items, RNG.permuted(pairs[:200], axis=1))
    page = Report(first, items, pairs=pairs[200:], against=second).html()
    balanced(page)
    assert "share an item count as dependent" in section(page, "against")
    assert "pairs" in section(page, "against")
    assert "Can its probabilities be believed?" in section(page, "duels")  # AutoRanker's are calibrated
    plain = Report(RankRLS().fit_pairs(items, pairs), items, pairs=pairs).html()
    assert "Can its probabilities be believed?" not in plain


def test_small_p_values_are_no_tags():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(800, 3)), np.arange(800) // 10
    y = np.digitize(X.sum(axis=1), [0, 1])
    model = RankRLS().fit(X, y, qid=qid)
    page = Report(model, X, y, qid, against=-X[:, 0]).html()
    seen = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert seen.count("&lt;\N{NO-BREAK SPACE}0.001") + seen.count("&lt; 0.001") >= 2
    assert re.findall(r"<(?![a-zA-Z/!]).{20}", seen) == []
