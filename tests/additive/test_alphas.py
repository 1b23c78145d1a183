"""The alphas of curves: a grid by number, and how it goes on."""

import numpy as np
import pytest

from rankwise import AdditiveRankerCV
from rankwise.additive.choosing import DEFAULT_ALPHAS, Candidate, Ladder, Search, Wanted, is_worth
from rankwise.additive.coordinates import PLAIN


def test_the_default_grid_goes_on_at_both_ends_and_stops():
    ladder = Ladder(DEFAULT_ALPHAS)
    steps = np.array([ladder.at(step) for step in range(-6, 15)])
    assert steps[6:15].tolist() == list(DEFAULT_ALPHAS)
    np.testing.assert_allclose(steps[:-1] / steps[1:], np.sqrt(10), rtol=0.1)
    assert ladder.at(-7) is ladder.at(15) is None
    assert [ladder.is_beyond(step) for step in (-1, 0, 8, 9)] == [True, False, False, True]


def test_a_grid_that_somebody_chose_ends_where_it_ends():
    ladder = Ladder([1e-1, 1e-2, 1e-3])
    assert [ladder.at(step) for step in range(-1, 4)] == [None, 1e-1, 1e-2, 1e-3, None]


@pytest.mark.parametrize("before", [0.1, -0.8])
def test_a_gain_must_be_noticeable(before):
    assert is_worth(before - 0.01, before)
    assert not is_worth(before, before)
    assert not is_worth(before - 1e-5, before)


class _Scripted(Search):
    """A search whose errors are given: one per step of the ladder."""

    errors: dict[int, float]

    def _try(self, knots, step, count, rounds=PLAIN):
        found = Candidate(self.errors[step], count, knots, rounds, -self.wanted.ladder.at(step), step)
        if found not in self.tried:
            self.tried.append(found)
        return found


def test_gains_that_hardly_matter_do_not_lead_curves_to_ever_smaller_alphas():
    # As NDCG fell on 60,000 rows of benchmarks/letor_like.py: products at 1e-7 cost a hundred times those at 1e-3.
    search = _Scripted(None, [], Wanted(Ladder(DEFAULT_ALPHAS), [8], [5]))
    search.errors = {2: -0.7488, 4: -0.7531, 6: -0.7526, 8: -0.7541, 10: -0.7556, 12: -0.7568, 14: -0.7568}
    chosen = search._choose_curves(0)
    assert max(one.step for one in search.tried) == 8
    assert chosen.step == 4


def test_every_row_of_the_scored_fold_scores():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24_000, 2))
    model = AdditiveRankerCV(alphas=[1e-2], n_knots=4, interactions=0, adaptive=0)
    assert model.fit(X, X[:, 0], qid=np.arange(24_000) // 10).cv_ == "1 of 5 folds of queries"
