"""Real queries: OHSUMED of LETOR, one feature at a time as the scores."""

import gzip
import os
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import oracles
from rankwise.metrics import average_precision, get_metric, ndcg

DATA = os.environ.get("RANKWISE_DATA")
pytestmark = [
    pytest.mark.real_data,
    pytest.mark.skipif(DATA is None, reason="set RANKWISE_DATA to the folder that holds OHSUMED"),
]


@pytest.fixture(scope="module")
def ohsumed():
    """Labels, query ids and the first two features of all five parts."""
    line = re.compile(r"(\S+) qid:(\S+) 1:(\S+) 2:(\S+)")
    rows = []
    for part in sorted((Path(DATA) / "OHSUMED" / "QueryLevelNorm").glob("S*.txt.gz")):
        with gzip.open(part, "rt") as text:
            rows += [line.match(row).groups() for row in text]
    y, qid, *features = zip(*rows, strict=True)
    return np.array(y, float), qid, np.array(features, float)


def test_pairs(ohsumed):
    y, qid, _ = ohsumed
    assert (y.size, len(set(qid))) == (16_140, 106)
    assert get_metric("pairwise_error").prepare(y, qid)._pairs.ordered.sum() == 582_588


def test_letor_figures_equal_explicit_loops(ohsumed):
    y, qid, features = ohsumed
    for scores in features:
        for k in (1, 5, 10):
            twin = partial(oracles.ndcg_of_list, k=k, discount="letor")
            expected = oracles.mean_over_queries(twin, y, scores, qid, ties="stable", empty="zero")
            assert ndcg(y, scores, qid, k=k, convention="letor3") == pytest.approx(expected, abs=1e-12)
        twin = oracles.average_precision_of_list
        expected = oracles.mean_over_queries(twin, y, scores, qid, ties="stable", empty="zero")
        assert average_precision(y, scores, qid, convention="letor3") == pytest.approx(expected, abs=1e-12)
