"""Models of every estimator on public data are what they were: a change that alters them must be meant, and listed."""

import json

import numpy as np
import pytest

from golden import CLOSE, FILE, results

WRITTEN = json.loads(FILE.read_text())


@pytest.fixture(scope="module")
def found():
    return results()


def test_all_are_there(found):
    assert set(found) == set(WRITTEN)


@pytest.mark.parametrize("name", WRITTEN)
def test_scores_are_what_they_were(name, found):
    before = np.array(WRITTEN[name])
    closeness = CLOSE.get(name.partition(":")[0], 1e-6)
    np.testing.assert_allclose(found[name], before, rtol=0, atol=closeness * np.ptp(before))
