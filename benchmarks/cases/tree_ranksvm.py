"""The RankSVM paper's Figure 1: cost of an evaluation, training time and test error against rows.

alpha 1e-5, an absolute gap of 1e-3, scores that are similarities to one document. TreeRSVM and PairRSVM are the
paper's methods written for this comparison (plain cutting planes; its red-black tree, or every pair), not its
authors' programs.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import data
import rcv1like
from cases.published import PUBLISHED, markdown
from drawing import panels
from harness import HERE, Case, Figure, Results, measured
from rankwise import RankSVM
from rankwise.metrics import pairwise_error

ALPHA, GAP = 1e-5, 1e-3
SIZES = {
    "generated text": tuple(1000 * 2**k for k in range(10)),
    "Reuters-21578": tuple(1000 * 2**k for k in range(5)),
}
CLAIM = "TreeRSVM paper"
OURS, TREE, PAIRS = "RankSVM", "TreeRSVM, written here", "PairRSVM, written here"
LARGEST = {OURS: 10**9, TREE: 128_000, PAIRS: 8_000}


@cache
def load(name: str) -> tuple:
    """Return rows in a random order with real scores, of which the last 20,000 (or a quarter) are for testing."""
    if name == "generated text":
        return None
    reuters = data.reuters()
    order = np.random.default_rng(0).permutation(reuters.X.shape[0])
    X = reuters.X[order[1:]]
    y = np.asarray((X @ reuters.X[order[0]].T).todense()).ravel().astype(float)
    return X, y


def split(name: str, rows: int, tested: int) -> tuple:
    if name == "generated text":
        return rcv1like.make(rows, "real")[:2], rcv1like.make(tested, "real", seed=1)[:2]
    X, y = load(name)
    return (X[:rows], y[:rows]), (X[-5_000:], y[-5_000:])


@cache
def red_black_tree() -> Callable | None:
    """Compile the paper's algorithm 1; None without a compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    library = Path(tempfile.mkdtemp()) / "red_black_tree.so"
    subprocess.run(
        [compiler, "-O3", "-std=c++17", "-shared", "-fPIC", HERE / "red_black_tree.cpp", "-o", library],
        check=True,
    )
    function = ctypes.CDLL(str(library)).red_black_counts
    doubles, integers = (np.ctypeslib.ndpointer(kind, flags="C") for kind in (np.float64, np.int64))
    function.argtypes = [doubles, integers, ctypes.c_int64, doubles, doubles]
    function.restype = None
    return function


def by_tree(scores: np.ndarray, ranks: np.ndarray) -> tuple:
    """Count for each row the violated pairs that it should win and those that it should lose."""
    lost, won = np.empty_like(scores), np.empty_like(scores)
    red_black_tree()(np.ascontiguousarray(scores), ranks, scores.size, lost, won)
    return won, lost


def by_pairs(scores: np.ndarray, ranks: np.ndarray) -> tuple:
    """The same by looking at every pair, in blocks."""
    won, lost = np.zeros_like(scores), np.zeros_like(scores)
    for first in range(0, scores.size, 256):
        rows = slice(first, first + 256)
        violated = (ranks[rows, None] > ranks) & (scores[rows, None] - scores < 1.0)
        won[rows] = violated.sum(axis=1)
        lost += violated.sum(axis=0)
    return won, lost


class CuttingPlanes:
    """The bundle method of the paper: minimise ``alpha w'w + max_t (a_t'w + b_t)`` over the planes so far."""

    def __init__(self, X, y: np.ndarray, count: Callable) -> None:
        self.X, self.count = X.astype(np.float64), count
        self.ranks = np.unique(y, return_inverse=True)[1].astype(np.int64)
        sizes = np.bincount(self.ranks).astype(float)
        self.n_pairs = (y.size**2 - sizes @ sizes) / 2

    def plane(self, w: np.ndarray) -> tuple[float, np.ndarray, float]:
        """Return the mean hinge at w, its subgradient, and the plane's offset."""
        scores = self.X @ w
        won, lost = self.count(scores, self.ranks)
        slope = self.X.T @ (lost - won) / self.n_pairs
        offset = won.sum() / self.n_pairs
        return offset + slope @ w, slope, offset

    def fit(self, most: int = 2000) -> CuttingPlanes:
        w = np.zeros(self.X.shape[1])
        slopes, offsets = [], []
        gram, weight, best = np.zeros((0, 0)), np.zeros(0), (np.inf, w)
        for _ in range(most):
            risk, slope, offset = self.plane(w)
            value = risk + ALPHA * w @ w
            best = min(best, (value, w), key=lambda one: one[0])
            products = np.array([slope @ other for other in slopes])
            slopes.append(slope)
            offsets.append(offset)
            gram = np.block([[gram, products[:, None]], [products[None], np.array([[slope @ slope]])]])
            weight = maximise(
                gram / (4 * ALPHA), np.array(offsets), np.r_[weight, 0.0 if weight.size else 1.0]
            )
            w = -(weight @ np.array(slopes)) / (2 * ALPHA)
            lower = weight @ offsets - weight @ gram @ weight / (4 * ALPHA)
            if best[0] - lower < GAP:
                break
        self.coef_ = best[1]
        return self


def maximise(Q: np.ndarray, b: np.ndarray, a: np.ndarray, most: int = 20_000) -> np.ndarray:
    """Maximise ``b'a - a'Qa`` over the simplex, two weights at a time, from a point of it."""
    gradient = b - 2 * Q @ a
    for _ in range(most):
        up = int(np.argmax(gradient))
        down = int(np.argmin(np.where(a > 0, gradient, np.inf)))
        gain = gradient[up] - gradient[down]
        if gain < GAP * 1e-2:
            break
        bend = 2 * (Q[up, up] + Q[down, down] - 2 * Q[up, down])
        step = min(a[down], gain / max(bend, 1e-300))
        a[up] += step
        a[down] -= step
        gradient -= 2 * step * (Q[:, up] - Q[:, down])
    return a


def measure(name: str, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    red_black_tree()  # compiled before anything is timed
    for contender in contenders:
        for rows in (100, 200) if quick else SIZES[name]:
            if rows > LARGEST[contender]:
                continue
            (X, y), (test, truth) = split(name, rows, 200 if quick else 20_000)
            with threadpool_limits(1), measured() as cost:
                if contender == OURS:
                    coef = RankSVM(ALPHA, tol=GAP, n_threads=1).fit(X, y).coef_
                else:
                    planes = CuttingPlanes(X, y, by_tree if contender == TREE else by_pairs)
                    coef = planes.fit().coef_
            spent = {"processor_seconds": cost.processor_seconds, "peak_memory": cost.memory}
            yield Figure(contender, f"seconds at {rows}", cost.processor_seconds, **spent)
            yield Figure(
                contender, f"test error at {rows}", float(pairwise_error(truth, test @ coef)), n=truth.size
            )
            if contender != OURS:
                with threadpool_limits(1), measured() as one:
                    planes.plane(coef)
                yield Figure(contender, f"seconds of an evaluation at {rows}", one.processor_seconds)


CONTENDERS = (OURS, TREE, PAIRS)
CASES = [
    Case(CLAIM, name, CONTENDERS, partial(measure, name), needs, minutes, name == "generated text",
         goals={(OURS, "seconds at 512000"): ("<=", 30.0)} if name == "generated text" else {})
    for name, needs, minutes in (("generated text", (), 3.0), ("Reuters-21578", ("reuters21578",), 1.0))
]  # fmt: skip


def table(results: Results) -> str:
    rows = []
    for name, sizes in SIZES.items():
        for size in sizes:
            cells = []
            for metric in ("seconds of an evaluation", "seconds", "test error"):
                for contender in CONTENDERS[metric == "seconds of an evaluation" :]:
                    text = results.show("{value:.3g}", CLAIM, name, contender, f"{metric} at {size}")
                    cells.append("" if size > LARGEST[contender] else text)
            rows.append([name if size == sizes[0] else "", f"{size:,}", *cells])
    published = PUBLISHED["TreeRSVM Figure 1, seconds at 512,000 rows"]
    own = [f"{published[name]:,}" for name in ("TreeRSVM", "PairRSVM")]
    rows.append(["in the paper, on RCV1", "512,000", "", "", "", *own, "", "", ""])
    heads = ["evaluation, s: TreeRSVM", "PairRSVM", "training, s: ours", "TreeRSVM", "PairRSVM"]
    return markdown(["data", "rows", *heads, "test error: ours", "TreeRSVM", "PairRSVM"], rows)


def figure(results: Results) -> str:
    """Figure 1 as three panels for each data set."""
    parts: dict = {}
    for name, sizes in SIZES.items():
        for metric in ("seconds of an evaluation", "seconds", "test error"):
            lines = {}
            for contender in CONTENDERS:
                found = {size: results.find(CLAIM, name, contender, f"{metric} at {size}") for size in sizes}
                found = {size: line["value"] for size, line in found.items() if line}
                if found:
                    lines[contender] = (list(found), list(found.values()))
            parts[f"{name}: {metric}"] = (lines, "rows", metric, "x" if metric == "test error" else "xy")
    return panels("tree-ranksvm", "Figure 1 of the TreeRSVM paper", parts)


TABLES = {"tree-ranksvm": table, "tree-ranksvm-figure": figure}
