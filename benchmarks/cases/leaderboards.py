"""Leaderboards by simulation: coverage of intervals, places and tiers; flips, the next pair, time beside arena-rank.

arena-rank pins other versions of NumPy than the peers of the `[bench]` extra: install it into a folder of its own
(`pip install --target DIR arena-rank`) and name that folder in PYTHONPATH.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations

import numpy as np
from scipy.special import expit
from scipy.stats import kendalltau
from threadpoolctl import threadpool_limits

from cases.published import markdown
from harness import Case, Figure, Results, in_turns, measured
from rankwise import BradleyTerry

CLAIM, OURS, PEER = "leaderboards", "BradleyTerry", "arena-rank"
BOARDS = 300


@dataclass(frozen=True)
class Kind:
    """A kind of board: who meets whom, how often results tie, and how far judges differ."""

    battles: int = 300
    items: int = 30
    spread: float = 1.0
    popularity: str = "balanced"
    nu: float = 0.5  # Davidson's: .35 gives 15 % ties between equals, .5 20 %, .85 30 %
    judges: int = 0
    taste: float = 0.5  # standard deviation of a judge's own strengths around the common ones
    levels: int = 0  # strengths take so many values only, so that items tie exactly

    def __str__(self):
        ties = f"{self.nu / (2 + self.nu):.0%} ties"
        judges = f", {self.judges} judges" if self.judges else ""
        levels = f", {self.levels} levels" if self.levels else ""
        items = f"{self.items} items, " if self.items != 30 else ""
        return f"{self.popularity}, {items}{self.battles:,} battles, spread {self.spread:g}, {ties}{judges}{levels}"


def chances(z, nu):
    """Return the probabilities of win, tie and loss of Davidson's model."""
    parts = np.stack([np.exp(z / 2), np.full(np.shape(z), nu), np.exp(-z / 2)])
    return parts / parts.sum(axis=0)


def draw(rng, kind):
    """Draw a board: battles, judges or None, and the strengths of the population fit of half-win strengths."""
    n = kind.items
    strength = kind.spread * rng.normal(size=n)
    if kind.levels:
        strength = kind.spread * rng.integers(kind.levels, size=n).astype(float)
    share = np.ones(n) if kind.popularity == "balanced" else 1 / np.arange(1, n + 1)
    share = rng.permutation(share / share.sum())
    pairs = np.outer(share, share) * ~np.eye(n, dtype=bool)
    drawn = rng.choice(n * n, kind.battles, p=(pairs / pairs.sum()).ravel())
    a, b = drawn // n, drawn % n
    judge = rng.integers(kind.judges, size=kind.battles) if kind.judges else None
    own = kind.taste * rng.normal(size=(max(kind.judges, 1), n)) * bool(kind.judges)
    which = np.zeros(kind.battles, int) if judge is None else judge
    z = strength[a] + own[which, a] - strength[b] - own[which, b]
    win, tie, _ = chances(z, kind.nu)
    u = rng.random(kind.battles)
    score = np.where(u < win, 1.0, np.where(u < win + tie, 0.5, 0.0))
    battles = {"item_a": a, "item_b": b, "score": score}
    # The population: every pair with its share, its expected score a mean over judges.
    nodes, weights = np.polynomial.hermite_e.hermegauss(21)
    noise = kind.taste * np.sqrt(2) * bool(kind.judges) * nodes
    gap = strength[:, None, None] - strength[:, None] + noise
    win, tie, _ = chances(gap, kind.nu)
    expected = (win + tie / 2) @ (weights / weights.sum())
    first, second = np.triu_indices(n, 1)
    count = 1e6 * (pairs / pairs.sum())[first, second]
    won = count * expected[first, second]
    return battles, judge, population(n, first, second, won, count - won)


def population(n, a, b, won, lost):
    """Return maximum-likelihood strengths of expected results, by Newton's method on explicit pairs."""
    design = np.zeros((a.size, n))
    design[np.arange(a.size), a], design[np.arange(a.size), b] = 1, -1
    strength = np.zeros(n)
    for _ in range(50):
        p = expit(design @ strength)
        hessian = design.T @ (design * ((won + lost) * p * (1 - p))[:, None]) + 1 / n
        step = np.linalg.solve(hessian, design.T @ (won - (won + lost) * p))
        strength = strength + step
        if np.abs(step).max() < 1e-10:
            break
    return strength


COVERAGE = [
    Kind(200, nu=0.35),
    Kind(500, nu=0.85),
    Kind(200, popularity="zipf", nu=0.85),
    Kind(500, popularity="zipf", nu=0.35),
    Kind(200, nu=0.85, judges=50),
    Kind(500, nu=0.35, judges=10),
    Kind(500, popularity="zipf", nu=0.85, judges=50),
    Kind(200, popularity="zipf", nu=0.35, judges=10),
]


def coverage(kind, n_boards, seed=0):
    """Return the shares of strengths and of differences that their 95 % intervals contain."""
    rng, strengths, differences = np.random.default_rng(seed), [], []
    for _ in range(n_boards):
        battles, judge, truth = draw(rng, kind)
        model = BradleyTerry().fit(battles, cluster=judge)
        truth = truth[model.items_.astype(int)]
        for one in np.unique(model.component_):
            own = model.component_ == one
            truth[own] -= truth[own].mean()
        table = model.table_
        order = np.argsort(model.items_)[np.searchsorted(model.items_.astype(int), table["item"].astype(int))]
        known = truth[order]
        strengths.append(np.mean((table["low"] <= known) & (known <= table["high"])))
        pairs = [
            (i, j)
            for i, j in combinations(range(len(truth)), 2)
            if model.component_[i] == model.component_[j]
        ]
        a, b = np.array(pairs).T
        _, low, high = model.difference(model.items_[a], model.items_[b])
        gap = truth[a] - truth[b]
        differences.append(np.mean((low <= gap) & (gap <= high)))
    return float(np.mean(strengths)), float(np.mean(differences))


PLACES = [
    Kind(300, spread=0.03),
    Kind(300, spread=0.1),
    Kind(500, spread=0.3, popularity="zipf"),
    Kind(300, spread=1.0),
    Kind(500, spread=0.1, judges=20),
    Kind(500, spread=1.0, popularity="zipf", nu=0.85, judges=50),
]
TIED = [Kind(300, levels=3), Kind(500, levels=2, popularity="zipf"), Kind(500, levels=3, judges=20)]


def place_sets(strength, component):
    """Return the first and last place that an item may have: ties make it a set."""
    close = 1e-9
    same = component[:, None] == component
    better = (strength > strength[:, None] + close) & same
    worse = (strength < strength[:, None] - close) & same
    return 1 + better.sum(axis=1), same.sum(axis=1) - worse.sum(axis=1)


def covered_places(kind, n_boards, places, seed=0):
    """Return the share of items whose place, or set of places, is inside the interval, and its mean width."""
    rng, inside, width = np.random.default_rng(seed), [], []
    for _ in range(n_boards):
        battles, judge, truth = draw(rng, kind)
        model = BradleyTerry(places=places).fit(battles, cluster=judge)
        first, last = place_sets(truth[model.items_.astype(int)], model.component_)
        table = model.table_
        order = np.searchsorted(model.items_.astype(int), table["item"].astype(int))
        inside.append(np.mean((table["place_low"] <= first[order]) & (last[order] <= table["place_high"])))
        width.append(np.mean(table["place_high"] - table["place_low"] + 1))
    return float(np.mean(inside)), float(np.mean(width))


EQUAL = [
    Kind(300, spread=0.0),
    Kind(500, spread=0.0, judges=10),
    Kind(500, spread=0.0, judges=50, popularity="zipf"),
]


def false_tiers(kind, n_boards, seed=0):
    """Return the share of boards of equal items that have more than one tier."""
    rng, wrong = np.random.default_rng(seed), 0
    for _ in range(n_boards):
        battles, judge, _ = draw(rng, kind)
        wrong += BradleyTerry().fit(battles, cluster=judge).table_["tier"].max() > 1
    return wrong / n_boards


FLIPS = [Kind(size, spread=spread) for size in (300, 1000, 3000, 10_000) for spread in (0.5, 1.5)]
FLIPS += [Kind(20_000, items=10, spread=2.0), Kind(30_000, items=12, spread=1.0, popularity="zipf")]


def flips(kind, seed=0):
    """Return for all neighbours: the number of battles, whether they flip them, and whether 5 % (or 1) fewer do not."""
    battles, _, _ = draw(np.random.default_rng(seed), kind)
    found = []
    for (upper, lower), removed in BradleyTerry().fit(battles).find_flips().items():
        fewer = removed.size - max(2, int(0.05 * removed.size) + 1)
        # Refits that need no places: counts of the pairs that are left.
        is_flipped, is_not = (
            strengths_without(battles, removed[:count], kind.items)[[lower, upper]] @ [1, -1] > 0
            if count > 0
            else False
            for count in (removed.size, fewer)
        )
        found.append((removed.size, bool(is_flipped), not is_not))
    return found


def strengths_without(battles, removed, n, penalty=0.1):
    """Refit without some battles, by Newton's method on counts of pairs."""
    keep = np.ones(len(battles["score"]), bool)
    keep[removed] = False
    a, b, score = (battles[name][keep] for name in ("item_a", "item_b", "score"))
    points = np.bincount(a * n + b, score, n * n).reshape(n, n)
    points += np.bincount(b * n + a, 1 - score, n * n).reshape(n, n)
    total, strength = points + points.T, np.zeros(n)
    for _ in range(30):
        p = expit(strength[:, None] - strength)
        weight = total * p * (1 - p)
        hessian = np.diag(weight.sum(axis=1) + penalty) - weight
        step = np.linalg.solve(hessian, (points - total * p).sum(axis=1) - penalty * strength)
        strength = strength + step
    return strength


def next_pair(policy, spread, n_boards, *, n=30, budget=480, batch=30):
    """Run a policy on boards; return battles, and the mean and standard error of tau and of finding the first item."""
    runs = []
    for seed in range(n_boards):
        rng = np.random.default_rng(seed)
        strength = spread * rng.normal(size=n)
        a, b = np.arange(n), (np.arange(n) + 1) % n
        score, out = np.empty(0), []
        while True:
            met = slice(score.size, None)
            score = np.append(score, rng.random(a[met].size) < expit(strength[a[met]] - strength[b[met]]))
            model = BradleyTerry().fit({"item_a": a, "item_b": b, "score": score.astype(float)})
            # Kendall's tau, and whether the first item is the best one.
            tau = kendalltau(strength, model.strengths_).statistic
            out.append((tau, np.argmax(model.strengths_) == np.argmax(strength)))
            if score.size >= budget:
                break
            if policy == "random":
                one = rng.integers(n, size=batch)
                chosen = np.column_stack([one, (one + 1 + rng.integers(n - 1, size=batch)) % n])
            else:
                chosen = np.array(model.suggest(batch, goal=policy))
            a, b = np.append(a, chosen[:, 0]), np.append(b, chosen[:, 1])
        runs.append(out)
    runs = np.array(runs, dtype=float)
    return n + batch * np.arange(runs.shape[1]), runs.mean(axis=0), runs.std(axis=0) / np.sqrt(n_boards)


def saving(random, policy, column):
    """Return the share of battles that a policy saves until it is as good as random pairs after all battles.

    Means over boards are smoothed to be increasing before they are compared.
    """
    battles, base, _ = random
    target = np.mean(base[-3:, column])  # reached by random pairs one batch before the end
    reached = np.maximum.accumulate(policy[1][:, column])
    return 1 - float(np.interp(target, reached, battles)) / battles[-2]


def arena(size=137_912, n=120, seed=0):
    """Return battles like those of an arena, with four style columns and an advantage of the first."""
    import pandas as pd  # noqa: PLC0415

    rng = np.random.default_rng(seed)
    strength, share = 0.6 * rng.normal(size=n), rng.dirichlet(np.full(n, 1.5))
    a = rng.choice(n, size, p=share)
    b = (a + 1 + rng.integers(n - 1, size=size)) % n
    style = rng.normal(size=(size, 4))
    win, tie, _ = chances(strength[a] - strength[b] + style @ [0.4, 0.05, 0.1, 0.05] + 0.05, 0.5)
    u = rng.random(size)
    winner = np.where(u < win, "model_a", np.where(u < win + tie, "tie", "model_b"))
    names = np.array([f"model {item:03}" for item in range(n)])
    columns = {f"style {at}": style[:, at] for at in range(4)}
    return pd.DataFrame({"model_a": names[a], "model_b": names[b], "winner": winner, "first": 1.0, **columns})


def beside_arena_rank(contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Time both in turns on the same table: ours with intervals, places and tiers, arena-rank's with intervals."""
    table = arena(2_000 if quick else 137_912, n=20 if quick else 120)
    style = [name for name in table if name.startswith("style")]

    def theirs():
        from arena_rank.models.contextual_bradley_terry import ContextualBradleyTerry  # noqa: PLC0415
        from arena_rank.utils.data_utils import ContextualPairDataset  # noqa: PLC0415

        data = ContextualPairDataset.from_pandas(table, feature_cols=["first", *style], reweighted=False)
        ContextualBradleyTerry(len(data.competitors), 5).compute_ratings_and_cis(data)

    calls = {OURS: lambda: BradleyTerry(first_advantage=True).fit(table, style=style), PEER: theirs}
    yield from in_turns({name: calls[name] for name in contenders}, 1 if quick else 5)


def growth(contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Yield the processor seconds of a fit with intervals and places for growing numbers of battles."""
    rng, n = np.random.default_rng(0), 30 if quick else 1000
    strength = rng.normal(size=n)
    for size in BATTLES[: 1 if quick else None]:
        a = rng.integers(n, size=size // (100 if quick else 1))
        b = (a + 1 + rng.integers(n - 1, size=a.size)) % n
        score = (rng.random(a.size) < expit(strength[a] - strength[b])).astype(float)
        with threadpool_limits(1), measured() as cost:
            BradleyTerry().fit({"item_a": a, "item_b": b, "score": score})
        yield Figure(OURS, f"seconds at {size}", cost.processor_seconds, peak_memory=cost.memory)


def measure(what: str, kind: Kind, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Yield the figures of simulated boards of one kind."""
    boards = 2 if quick else BOARDS
    if what == "coverage":
        found = dict(zip(("strengths", "differences"), coverage(kind, boards), strict=True))
    elif what == "tiers":
        found = {"more than one tier": false_tiers(kind, boards)}
    elif what == "flips":
        each = flips(replace(kind, battles=300) if quick else kind, FLIPS.index(kind))
        counts, flipped, least = zip(*each, strict=True)
        boards = len(each)
        found = {
            "fewest": min(counts),
            "most": max(counts),
            "exchanged": np.mean(flipped),
            "least": np.mean(least),
        }
    else:
        inside, width = covered_places(kind, boards, what)
        found = {"covered": inside, "mean number of places": width}
    for metric, value in found.items():
        yield Figure(OURS, metric, float(value), n=boards)


def next_pairs(spread: float, goal: str, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Yield what random and suggested pairs reach, and the share of battles that suggestions save."""
    boards, column = 2 if quick else 100, int(goal == "first")
    budget = {"budget": 90} if quick else {}
    random, chosen = (next_pair(policy, spread, boards, **budget) for policy in ("random", goal))
    ends = {name: one[1][-1, column] for name, one in (("random pairs", random), ("suggested pairs", chosen))}
    error = np.hypot(random[2][-1, column], chosen[2][-1, column])
    for metric, value in (
        ends | {"standard error": error, "battles saved": saving(random, chosen, column)}
    ).items():
        yield Figure(OURS, metric, float(value), n=boards)


BATTLES = (10**6, 3 * 10**6, 10**7)
GOALS = ((0.5, "board"), (1.0, "board"), (1.0, "first"), (2.0, "board"), (3.0, "board"))
KINDS = {"coverage": COVERAGE, "draws": PLACES, "guaranteed": TIED, "tiers": EQUAL, "flips": FLIPS}
BOUNDS = {
    "coverage": {(OURS, "strengths"): (">=", 0.93), (OURS, "differences"): (">=", 0.93)},
    "draws": {(OURS, "covered"): (">=", 0.93)},
    "guaranteed": {(OURS, "covered"): (">=", 0.93)},
    "tiers": {(OURS, "more than one tier"): ("<=", 0.075)},
    "flips": {(OURS, "exchanged"): (">=", 1.0), (OURS, "least"): (">=", 0.9)},
}
ARENA, LARGE = "137,912 battles, 120 items, 4 style columns, order", "1,000 items"
CASES = [
    Case(CLAIM, f"{what}: {kind}", (OURS,), partial(measure, what, kind), minutes=1.0,
         smoke=what == "tiers" and not kind.judges, goals=BOUNDS[what])
    for what, kinds in KINDS.items()
    for kind in kinds
] + [
    Case(CLAIM, f"suggest: spread {spread:g}, {goal}", (OURS,), partial(next_pairs, spread, goal), minutes=1.0)
    for spread, goal in GOALS
] + [
    Case(CLAIM, f"time: {ARENA}", (OURS, PEER), beside_arena_rank, minutes=1.0, in_turns=True),
    Case(CLAIM, f"time: {LARGE}", (OURS,), growth, minutes=1.0),
]  # fmt: skip


def boards_table(results: Results, parts: tuple[str, ...], forms: dict[str, str]) -> str:
    """Return a row per kind of board, a column per metric in its form."""
    rows = []
    for what in parts:
        for kind in KINDS[what]:
            key = CLAIM, f"{what}: {kind}", OURS
            own = [results.show(form, *key, metric).replace("%", " %") for metric, form in forms.items()]
            rows.append([f"{kind}; {what}" if len(parts) > 1 else str(kind), *own])
    return markdown(["board", *forms], rows)


def suggest_table(results: Results) -> str:
    forms = {
        **dict.fromkeys(("random pairs", "suggested pairs", "standard error"), SHARE),
        "battles saved": PART,
    }
    rows = []
    for spread, goal in GOALS:
        key = CLAIM, f"suggest: spread {spread:g}, {goal}", OURS
        own = [results.show(form, *key, metric).replace("%", " %") for metric, form in forms.items()]
        rows.append([f"{spread:g}", goal, *own])
    return markdown(["spread", "goal", *forms], rows)


def time_table(results: Results) -> str:
    shown = {OURS: "rankwise, with intervals, places and tiers", PEER: "arena-rank, with intervals"}
    rows = [
        [f"{ARENA}: {text}", results.show("{value:.2f}", CLAIM, f"time: {ARENA}", name, "seconds")]
        for name, text in shown.items()
    ]
    for size in BATTLES:
        taken = results.show("{value:.1f}", CLAIM, f"time: {LARGE}", OURS, f"seconds at {size}")
        rows.append([f"{size:,} battles, {LARGE}: rankwise", taken])
    return markdown(["board", "seconds"], rows)


SHARE, COUNT, PART = "{value:.3f}", "{value:.0f}", "{value:.0%}"
BY_BOARD = {
    "coverage": (("coverage",), {"strengths": SHARE, "differences": SHARE}),
    "places": (("draws", "guaranteed"), {"covered": SHARE, "mean number of places": "{value:.1f}"}),
    "tiers": (("tiers",), {"more than one tier": SHARE}),
    "flips": (("flips",), {"fewest": COUNT, "most": COUNT, "exchanged": PART, "least": PART}),
}
TABLES = {
    **{
        f"board-{name}": partial(boards_table, parts=parts, forms=forms)
        for name, (parts, forms) in BY_BOARD.items()
    },
    "board-suggest": suggest_table,
    "board-time": time_table,
}
