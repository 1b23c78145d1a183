"""One query of some rows takes a short way through `predict`: the same bits, and the same refusals."""

import numpy as np
import pytest

from rankwise import RankRLS
from rankwise.exceptions import InvalidInputError


def fitted(n_columns=7, outputs=1, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(60, n_columns)), rng.normal(size=(60, outputs) if outputs > 1 else 60)
    return RankRLS().fit(X, y), X


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_short_way_gives_the_bits_of_the_long_one(outputs, monkeypatch):
    model, X = fitted(outputs=outputs)
    for rows in (X, X[:1], X[3:23].copy()):
        quick = model._quick_scores(rows)
        assert quick is not None
        with monkeypatch.context() as patch:
            patch.setattr(RankRLS, "_quick_scores", lambda *_: None)
            np.testing.assert_array_equal(model.predict(rows), quick)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_refused_even_where_its_weight_is_zero(value):
    model, X = fitted()
    model.coef_[2] = 0.0
    rows = X[:5].copy()
    rows[1, 2] = value
    with pytest.raises(InvalidInputError):
        model.predict(rows)
