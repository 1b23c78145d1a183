"""Flips against refits, and suggestions against brute force."""

import numpy as np
import pytest

import rankwise
from rankwise import BradleyTerry
from rankwise.exceptions import InvalidInputError


def board(seed=0, n=8, size=400):
    rng = np.random.default_rng(seed)
    strength = rng.normal(size=n)
    a = rng.integers(n, size=size)
    b = (a + 1 + rng.integers(n - 1, size=size)) % n
    score = (rng.random(size) < 1 / (1 + np.exp(strength[b] - strength[a]))).astype(float)
    return {"item_a": a, "item_b": b, "score": score}


def test_removing_the_named_battles_exchanges_the_items():
    battles = board()
    model = BradleyTerry().fit(battles)
    found = model.find_flips()
    assert found
    for (upper, lower), rows in found.items():
        keep = np.setdiff1d(np.arange(400), rows)
        rest = BradleyTerry().fit({key: column[keep] for key, column in battles.items()})
        assert rest.strengths_[lower] > rest.strengths_[upper]


def test_suggestions_follow_refitted_information():
    model = BradleyTerry().fit(board(size=60))
    chosen = model.suggest(5)
    assert len({frozenset(pair) for pair in chosen}) == 5
    t = model.strengths_
    inverse = np.linalg.inv(model._fitted.hessian + 0.1 * np.eye(8))

    def gain(i, j):
        p = 1 / (1 + np.exp(t[j] - t[i]))
        return p * (1 - p) * (inverse[i, i] + inverse[j, j] - 2 * inverse[i, j])

    best = max(((i, j) for i in range(8) for j in range(i)), key=lambda pair: gain(*pair))
    assert set(chosen[0]) == set(best)
    assert len(model.suggest(3, goal="first")) == len(model.suggest(3, goal=2)) == 3


def test_suggest_for_rankers():
    X = np.random.default_rng(0).normal(size=(10, 3))
    pairs = np.array([[0, 1], [2, 3], [4, 5]])
    for model in (rankwise.RankRLS(), rankwise.RankSVM(0.1, loss="logistic")):
        assert rankwise.suggest(model.fit_pairs(X, pairs), X, pairs, 4).shape == (4, 2)


def test_davidson_is_refused():
    battles = board()
    battles["score"][:50] = 0.5
    model = BradleyTerry(ties="davidson").fit(battles)
    for method in (model.find_flips, model.suggest):
        with pytest.raises(InvalidInputError, match="ties='half'"):
            method()
