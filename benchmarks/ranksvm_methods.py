"""RankSVM the published ways, for comparison: the same objective and bundle method, other ways to count pairs."""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from rankwise.data.queries import encode_queries, one_query
from rankwise.design import CsrDesign, as_design
from rankwise.objectives import HingeObjective
from rankwise.pairs.labels import find_levels, pair_scale
from rankwise.pairs.margins import PreferenceMargins
from rankwise.pairs.violations import ViolationSweep

HERE = Path(__file__).parent


@functools.cache
def red_black_counts():
    """Compile the paper's algorithm 1 (red_black_tree.cpp); None without a compiler."""
    compiler = shutil.which("g++")
    if compiler is None:
        return None
    library = Path(tempfile.mkdtemp()) / "red_black_tree.so"
    source = HERE / "red_black_tree.cpp"
    subprocess.run([compiler, "-O3", "-std=c++17", "-shared", "-fPIC", source, "-o", library], check=True)
    function = ctypes.CDLL(str(library)).red_black_counts
    doubles = np.ctypeslib.ndpointer(np.float64, flags="C")
    integers = np.ctypeslib.ndpointer(np.int64, flags="C")
    function.argtypes = [doubles, integers, ctypes.c_int64, doubles, doubles]
    function.restype = None
    return function


@dataclass
class CountedPairs:
    """All pairs of one ranking, counted by a function of scores and label ranks."""

    ranks: np.ndarray
    count: object

    @property
    def n_rows(self):
        return self.ranks.size

    @cached_property
    def weight(self):
        counts = np.bincount(self.ranks)
        return (self.n_rows**2 - float(counts.astype(float) @ counts)) / 2

    def at(self, scores):
        return CountedViolations(scores, *self.count(scores, self.ranks))

    def thinned(self, n_rows):
        return None


@dataclass
class CountedViolations:
    scores: np.ndarray
    won: np.ndarray
    lost: np.ndarray

    @property
    def net_wins(self):
        return self.won - self.lost

    @property
    def active(self):
        return float(self.won.sum())

    def hinge(self):
        return float(self.won.sum() - self.net_wins @ self.scores)


def by_red_black_tree(scores, ranks):
    lost, won = np.empty_like(scores), np.empty_like(scores)
    red_black_counts()(np.ascontiguousarray(scores), ranks, scores.size, lost, won)
    return won, lost


def by_enumeration(scores, ranks):
    """PairRSVM: look at every pair, in blocks, in memory that does not grow with their number."""
    won, lost = np.zeros_like(scores), np.zeros_like(scores)
    for first in range(0, scores.size, 256):
        rows = slice(first, first + 256)
        violated = (ranks[rows, None] > ranks) & (scores[rows, None] - scores < 1.0)
        won[rows] = violated.sum(axis=1)
        lost += violated.sum(axis=0)
    return won, lost


def label_ranks(y):
    return np.unique(y, return_inverse=True)[1].astype(np.int64)


def make_design(X, threads):
    design = as_design(X, threads)
    if isinstance(design, CsrDesign):
        design.relabel_columns()
    return design


def our_pairs(y, qid=None, threads=1):
    queries = one_query(y.size) if qid is None else encode_queries(qid)
    levels = find_levels(y, queries)
    return ViolationSweep.from_levels(levels, queries, scale=pair_scale(levels, "equal"), n_threads=threads)


def our_hinge(design, y, qid=None):
    return HingeObjective(design, our_pairs(y, qid, design.n_threads))


def listed_pairs(y):
    """All pairs as a list: the memory of PRSVM."""
    winner, loser = np.nonzero(y[:, None] > y)
    ones = np.ones(winner.size)
    return PreferenceMargins(y.size, winner, loser, ones, ones)
