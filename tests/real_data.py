"""The real data sets, found through RANKWISE_DATA; what needs them is skipped, visibly, where it is not set."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = os.environ.get("RANKWISE_DATA")


NEEDS_REAL_DATA = [
    pytest.mark.real_data,
    pytest.mark.skipif(ROOT is None, reason="set RANKWISE_DATA to the folder of the data sets"),
]


def housing():
    """506 houses, shuffled as the published figures have them; the first 250 are for training."""
    table = np.loadtxt(Path(ROOT, "boston-housing", "boston_house_prices.csv"), delimiter=",", skiprows=2)
    np.random.seed(1)
    np.random.shuffle(table)
    return table[:, :-1], table[:, -1]


def ohsumed(variant="QueryLevelNorm"):
    """Features, labels and query ids of all five parts."""
    return _joined([_ohsumed_part(number, variant) for number in range(1, 6)])


def ohsumed_folds():
    """LETOR's five folds: training, validation and test rows, each (X, y, qid)."""
    parts = [_ohsumed_part(number) for number in range(1, 6)]
    for first in range(5):
        own = parts[first:] + parts[:first]
        yield _joined(own[:3]), own[3], own[4]


def _ohsumed_part(number, variant="QueryLevelNorm"):
    with gzip.open(Path(ROOT, "OHSUMED", variant, f"S{number}.txt.gz"), "rt") as text:
        rows = [re.split(r"[\s:]+", line.partition("#")[0].strip()) for line in text]
    X = np.array([row[4::2] for row in rows], float)
    return X, np.array([row[0] for row in rows], float), np.array([row[2] for row in rows])


def _joined(parts):
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))
