"""Boards for tests, and the slow, obvious twin of their fit: explicit rows, one per battle."""

import numpy as np
from scipy.optimize import minimize


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


def loglik(w, design, score, davidson):
    """Return the log-likelihood of every row; the last parameter of Davidson's model is log ν."""
    z = design @ (w[:-1] if davidson else w)
    if not davidson:
        return score * z - np.logaddexp(0, z)
    logits = np.stack([-z / 2, np.full(len(z), w[-1]), z / 2])
    which = np.searchsorted([0, 0.5, 1], score)
    return logits[which, np.arange(len(z))] - np.logaddexp.reduce(logits)


def explicit(design, score, penalty, n, davidson=False):
    """Minimise the objective on explicit rows; the ridge is on the first n columns."""
    size = design.shape[1] + davidson

    def value(w):
        return -loglik(w, design, score, davidson).sum() + 0.5 * penalty * w[:n] @ w[:n]

    w = minimize(value, np.zeros(size), options={"gtol": 1e-6}).x
    for _ in range(5):  # Newton's method by finite differences sharpens it
        gradients = slopes(w, design, score, davidson)
        ridge = np.r_[np.full(n, penalty), np.zeros(size - n)]
        hessian = curvature(w, design, score, davidson) + np.diag(ridge)
        w = w + np.linalg.lstsq(hessian, gradients.sum(axis=0) - ridge * w, rcond=1e-12)[0]
    return w


def slopes(w, design, score, davidson=False, step=1e-5):
    """Return the gradient of every row's log-likelihood by central differences."""
    moves = step * np.eye(len(w))
    sides = [[loglik(w + sign * move, design, score, davidson) for move in moves] for sign in (1, -1)]
    return ((np.array(sides[0]) - sides[1]) / (2 * step)).T


def curvature(w, design, score, davidson=False, step=1e-4):
    """Return minus the Hessian of the log-likelihood by central differences."""
    moves = step * np.eye(len(w))
    sums = [
        [slopes(w + sign * move, design, score, davidson).sum(axis=0) for move in moves] for sign in (1, -1)
    ]
    return -(np.array(sums[0]) - sums[1]) / (2 * step)


def explicit_covariance(w, design, battles, penalty, n, *, cluster=None, davidson=False):
    """Return the sandwich of explicit rows, and its part from clusters.

    Where an item has few points, the model's variance takes the place of squared slopes: the expected squares of the
    slopes of a row are their mean over its outcomes, by the model's probabilities.
    """
    score = battles["score"]
    gradients = slopes(w, design, score, davidson)
    won, lost = np.zeros(n), np.zeros(n)
    for a, b, y in zip(battles["item_a"], battles["item_b"], score, strict=True):
        won[a], lost[a] = won[a] + y, lost[a] + 1 - y
        won[b], lost[b] = won[b] + 1 - y, lost[b] + y
    few = (won < 5) | (lost < 5)
    replaced = few[battles["item_a"]] | few[battles["item_b"]]
    expected = 0
    for outcome in (0.0, 0.5, 1.0) if davidson else (0.0, 1.0):
        every = np.full(len(score), outcome)
        chance = np.exp(loglik(w, design, every, davidson)) * replaced
        own = slopes(w, design, every, davidson)
        expected = expected + own.T @ (own * chance[:, None])
    if not davidson:  # the variance of scores 1, ½ and 0 is that of wins and losses minus P(tie)/4
        p = 1 / (1 + np.exp(-design @ w))
        expected *= 1 - np.sum(score == 0.5) / (4 * p @ (1 - p))
    kept = gradients * ~replaced[:, None]
    groups = np.arange(len(score)) if cluster is None else cluster
    sums = np.array([kept[groups == g].sum(axis=0) for g in np.unique(groups)])
    meat = sums.T @ sums * (1.0 if cluster is None else len(sums) / (len(sums) - 1))
    ridge = np.diag(np.r_[np.full(n, penalty), np.zeros(len(w) - n)])
    bias = ridge**2 * np.var(w[:n])
    bread = np.linalg.inv(curvature(w, design, score, davidson) + ridge)
    centre = np.eye(len(w))
    centre[:n, :n] -= 1 / n
    sides = centre @ bread
    return sides @ (meat + expected + bias) @ sides.T, sides @ meat @ sides.T * (cluster is not None)
