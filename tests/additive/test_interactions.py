"""The gain of every pair of columns, against a least-squares fit cell by cell."""

import numpy as np

from rankwise.additive.fitting import cells_of, rank_pairs
from rankwise.additive.knots import plan_knots
from rankwise.data.validation import check_qid


def plain_gain(one, other, slope, curvature, width):
    """Half of what the best moves of the cells gain over the best moves of the lines, with curvature as weight."""
    cell = one * width + other
    crossed = np.eye(width * width)[cell]
    lines = np.hstack([np.eye(width)[one], np.eye(width)[other]])
    root = np.sqrt(curvature)

    def gain(design):
        moves = np.linalg.lstsq(design * root[:, None], -slope / root, rcond=None)[0]
        fitted = design @ moves * root
        return fitted @ fitted / 2

    return gain(crossed) - gain(lines)


def test_gains_are_those_of_cells_beyond_lines():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(300, 3)), rng.integers(2, size=300)])
    slope, curvature = rng.normal(size=300), rng.uniform(0.5, 2, size=300)
    sides = plan_knots(X, check_qid(None, 300), 8, 4).sides
    cells = np.stack([cells_of(side, X[:, side.column]) for side in sides])
    ranked = rank_pairs(sides, np.zeros(4, bool), cells, slope, curvature)
    assert (np.diff(ranked.gains) <= 0).all()
    for (a, b), gain in zip(ranked.pairs, ranked.gains, strict=True):
        np.testing.assert_allclose(gain, plain_gain(cells[a], cells[b], slope, curvature, 4), rtol=1e-5)


def test_the_pair_that_acts_together_comes_first():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(2000, 5))
    slope = X[:, 1] * X[:, 4] + 3 * X[:, 0] + rng.normal(size=2000)  # a strong main effect that was left over
    sides = plan_knots(X, check_qid(None, 2000), 8, 5).sides
    cells = np.stack([cells_of(side, X[:, side.column]) for side in sides])
    varies, of_query = np.zeros(5, bool), np.arange(5) >= 3
    ranked = [rank_pairs(sides, which, cells, slope, np.ones(2000)) for which in (varies, of_query)]
    assert [one.pairs[0].tolist() for one in ranked] == [[1, 4]] * 2
    assert [3, 4] in ranked[0].pairs.tolist()
    assert [3, 4] not in ranked[1].pairs.tolist()  # no pair of rows sees two columns of the query
