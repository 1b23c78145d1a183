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
    rows = []
    for part in sorted(Path(ROOT, "OHSUMED", variant).glob("S*.txt.gz")):
        with gzip.open(part, "rt") as text:
            rows += [re.split(r"[\s:]+", line.partition("#")[0].strip()) for line in text]
    y = np.array([row[0] for row in rows], float)
    qid = np.array([row[2] for row in rows])
    X = np.array([row[4::2] for row in rows], float)
    return X, y, qid
