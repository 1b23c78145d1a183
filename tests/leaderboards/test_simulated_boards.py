"""Coverage of intervals, places and tiers on simulated boards; flips and suggestions; peers. These take minutes."""

import numpy as np
import pytest

from boards import board
from cases import leaderboards as bench
from rankwise import BradleyTerry

pytestmark = pytest.mark.long

BOARDS = 300
ERROR = 2 * np.sqrt(0.05 * 0.95 / BOARDS)


@pytest.mark.parametrize("kind", bench.COVERAGE, ids=str)
def test_intervals_of_strengths_and_differences_cover(kind):
    for covered in bench.coverage(kind, BOARDS):
        assert 0.93 <= covered <= 0.97


@pytest.mark.parametrize("kind", bench.PLACES, ids=str)
def test_intervals_of_places_cover(kind):
    assert bench.covered_places(kind, BOARDS, "draws")[0] >= 0.93


@pytest.mark.parametrize("kind", bench.TIED, ids=str)
def test_guaranteed_sets_contain_all_tied_places(kind):
    assert bench.covered_places(kind, BOARDS, "guaranteed")[0] >= 0.93


@pytest.mark.parametrize("kind", bench.EQUAL, ids=str)
def test_equal_items_are_in_one_tier(kind):
    assert bench.false_tiers(kind, BOARDS) <= 0.05 + ERROR


def test_flips_exchange_items_with_the_fewest_battles():
    found = [one for seed, kind in enumerate(bench.FLIPS) for one in bench.flips(kind, seed)]
    assert all(is_flipped for _, is_flipped, _ in found)
    assert np.mean([is_least for _, _, is_least in found]) >= 0.95
    assert sum(count > 100 for count, _, _ in found) >= 2


def test_suggestions_save_battles():
    for spread, least in ((1.0, 0.0), (2.0, 0.25), (3.0, 0.25)):
        random, chosen = (bench.next_pair(policy, spread, 100) for policy in ("random", "board"))
        assert bench.saving(random, chosen, 0) > least
        assert chosen[1][-1, 0] > random[1][-1, 0]
        if spread == 1.0:
            assert bench.saving(random, bench.next_pair("first", spread, 100), 1) >= 0.5
    random, chosen = (bench.next_pair(policy, 0.5, 100) for policy in ("random", "board"))
    error = np.hypot(random[2][-1, 0], chosen[2][-1, 0])
    assert chosen[1][-1, 0] >= random[1][-1, 0] - 2 * error


def centred(values):
    return np.asarray(values) - np.mean(values)


def test_without_a_penalty_strengths_are_those_of_choix():
    choix = pytest.importorskip("choix")
    battles = board(ties=0)
    won = battles["score"] == 1
    a, b = (np.where(won, battles[x], battles[y]) for x, y in (("item_a", "item_b"), ("item_b", "item_a")))
    theirs = choix.opt_pairwise(8, np.column_stack([a, b]).tolist(), tol=1e-12)
    np.testing.assert_allclose(BradleyTerry(0).fit(battles).strengths_, centred(theirs), atol=1e-6)


def test_without_a_penalty_strengths_are_those_of_evalica():
    evalica = pytest.importorskip("evalica")
    battles = board(ties=0.2)
    words = {1.0: evalica.Winner.X, 0.0: evalica.Winner.Y, 0.5: evalica.Winner.Draw}
    names = [[f"{item}" for item in battles[side]] for side in ("item_a", "item_b")]
    found = evalica.bradley_terry(
        *names, [words[one] for one in battles["score"]], tie_weight=0.5, tolerance=1e-14, limit=100_000
    )
    theirs = np.log(found.scores.sort_index().to_numpy())
    np.testing.assert_allclose(BradleyTerry(0).fit(battles).strengths_, centred(theirs), atol=1e-6)


def test_without_a_penalty_strengths_are_those_of_arena_rank():
    models = pytest.importorskip("arena_rank.models.bradley_terry")
    data = pytest.importorskip("arena_rank.utils.data_utils")
    pd = pytest.importorskip("pandas")
    battles = board(size=1000)
    words = np.select([battles["score"] == 1, battles["score"] == 0], ["model_a", "model_b"], "tie")
    table = pd.DataFrame({"model_a": battles["item_a"], "model_b": battles["item_b"], "winner": words})
    pairs = data.PairDataset.from_pandas(table)
    model = models.BradleyTerry(8, scale=1.0, base=np.e, init_rating=0.0, ftol=1e-14, gtol=1e-12)
    theirs = model.compute_ratings_and_cis(pairs)["ratings"]
    np.testing.assert_allclose(BradleyTerry(0).fit(battles).strengths_, centred(theirs), atol=1e-6)
