"""The eGDM paper's figures: estimates of the ends of the spectrum, and time and error against gamma.

The paper's data (RCV1, CCAT against the rest) cannot be obtained as a whole: generated text of its shape,
Reuters-21578 and the sample of RCV1 stand in. Gamma is `alpha`. GDM's step and momentum, which the paper leaves
open, are the library's defaults.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh
from threadpoolctl import threadpool_limits

import data
import rcv1like
from cases.published import markdown
from drawing import panels
from harness import Case, Figure, Results, measured, short
from rankwise import RankRLS
from rankwise.metrics import pairwise_error

GAMMAS = (0.1, 1.0, 10.0, 100.0, 1000.0)
SOLVERS = ("cg", "egdm", "egdm-power", "egdm-blocks", "gdm")
MOST = 1000  # iterations of those that would take all day
CLAIM = "eGDM paper"
ESTIMATES = "SciPy, power iteration of the paper"


def load(name: str, quick: bool) -> tuple:
    """Return rows to train and to test on."""
    if name == "generated text":
        rows, tested = (1_000, 500) if quick else (100_000, 20_000)
        return rcv1like.make(rows)[:2], rcv1like.make(tested, seed=1)[:2]
    if name == "RCV1 sample":
        X, y = data.rcv1_sample()
        order = np.random.default_rng(0).permutation(y.size)
        return tuple((X[rows], y[rows]) for rows in np.split(order, [y.size * 8 // 10]))
    reuters = data.reuters()
    y = reuters.labels("acq")
    parts = [np.flatnonzero(reuters.split == side) for side in ("train", "test")]
    return tuple((reuters.X[rows[:: 10 if quick else 1]], y[rows[:: 10 if quick else 1]]) for rows in parts)


def hessian(X) -> LinearOperator:
    """Return X'LX of one ranking."""
    X = X.astype(np.float64)
    mean = np.asarray(X.mean(axis=0)).ravel()
    n = X.shape[1]
    return LinearOperator(
        (n, n), matvec=lambda v: X.T @ (X @ v) - X.shape[0] * mean * (mean @ v), dtype=float
    )


def power_iteration(H: LinearOperator, gamma: float, steps: int = 20) -> tuple[list, list]:
    """Algorithm 1, corrected: estimates of both ends after every step."""
    rng = np.random.default_rng(0)
    v, w = (u / np.linalg.norm(u) for u in rng.normal(size=(2, H.shape[0])))
    largest, smallest = [], []
    for _ in range(steps):
        v = H @ v + gamma * v
        largest.append(float(np.linalg.norm(v)))
        v /= largest[-1]
        image = H @ w + gamma * w
        smallest.append(float(w @ image))
        w = image - largest[-1] * w
        w /= np.linalg.norm(w)
    return largest, smallest


def measure(name: str, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    (X, y), (test, truth) = load(name, quick)
    for contender in contenders:
        if contender == ESTIMATES:
            H = hessian(X)
            largest, smallest = power_iteration(H, 1.0)
            true = float(eigsh(H, k=1, return_eigenvectors=False, tol=1e-8)[0]) + 1.0
            product, ratio = (f(largest, smallest).tolist() for f in (np.multiply, np.divide))
            yield Figure(contender, "largest times smallest eigenvalue", product[-1], n=20, values=product)
            yield Figure(contender, "largest over smallest eigenvalue", ratio[-1], n=20, values=ratio)
            yield Figure(contender, "largest eigenvalue, true", true)
            continue
        for gamma in GAMMAS[:: 2 if quick else 1]:
            model = RankRLS(gamma, solver=contender.removeprefix("RankRLS "), max_iter=MOST, n_threads=1)
            with threadpool_limits(1), measured() as cost:
                model.fit(X, y)
            spent = {"processor_seconds": cost.processor_seconds, "n": int(model.n_iter_)}
            yield Figure(contender, f"seconds at gamma {gamma:g}", cost.processor_seconds, **spent)
            yield Figure(contender, f"iterations at gamma {gamma:g}", float(model.n_iter_))
            error = float(pairwise_error(truth, model.predict(test)))
            yield Figure(contender, f"test error at gamma {gamma:g}", error, n=truth.size)


SETS = {"generated text": (), "Reuters-21578 acq": ("reuters21578",), "RCV1 sample": ("rcv1-small",)}
CONTENDERS = (*(f"RankRLS {name}" for name in SOLVERS), ESTIMATES)
CASES = [
    Case(CLAIM, name, CONTENDERS, partial(measure, name), needs, 1.0, name == "generated text")
    for name, needs in SETS.items()
]


def table(results: Results) -> str:
    rows = []
    for name in SETS:
        for gamma in GAMMAS:
            cells = []
            for contender in CONTENDERS[:-1]:
                key = CLAIM, name, contender
                steps = results.show("{value:.0f}", *key, f"iterations at gamma {gamma:g}")
                most = "+" if steps == str(MOST) else ""
                line = results.find(*key, f"seconds at gamma {gamma:g}")
                cells.append(f"{steps}{most}, {short(line['value'])} s" if line else "not run")
            error = results.show("{value:.4f}", CLAIM, name, "RankRLS cg", f"test error at gamma {gamma:g}")
            rows.append([name if gamma == GAMMAS[0] else "", f"{gamma:g}", error, *cells])
    solvers = [name.removeprefix("RankRLS ") for name in CONTENDERS[:-1]]
    return markdown(["data", "gamma", "test error", *solvers], rows)


def figures(results: Results) -> str:
    """Figures 1 and 2 (estimates against steps), and seconds and error against gamma."""
    parts: dict = {}
    for title, metric in (
        ("Figure 1: κ₁κₙ", "largest times smallest"),
        ("Figure 2: κ₁/κₙ", "largest over smallest"),
    ):
        lines = {}
        for name in SETS:
            line = results.find(CLAIM, name, ESTIMATES, f"{metric} eigenvalue")
            if line:
                lines[name] = (range(1, 21), line["values"])
        parts[title] = (lines, "steps of the power iteration, γ = 1", "estimate", "y")
    for title, what in (("time", "seconds"), ("error", "test error")):
        lines = {}
        for contender in CONTENDERS[:-1]:
            found = [
                results.find(CLAIM, "Reuters-21578 acq", contender, f"{what} at gamma {g:g}") for g in GAMMAS
            ]
            if all(found):
                lines[contender.removeprefix("RankRLS ")] = (GAMMAS, [line["value"] for line in found])
        parts[f"{title} against γ, Reuters acq"] = (lines, "γ", what, "xy" if what == "seconds" else "x")
    return panels("egdm", "The eGDM paper's figures", parts)


TABLES = {"egdm": table, "egdm-figures": figures}
