"""Peak memory beyond the data, each fit in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from cases.published import markdown
from harness import Case, Figure, Results, run_alone

CLAIM = "memory"
_FIT = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, rankwise
from harness import peak_memory, reset_peak
m, n = int(sys.argv[1]), 40
rng = np.random.default_rng(0)
X = rng.normal(size=(m, n)); y = rng.integers(0, 5, m).astype(float); qid = np.arange(m) // 20
model = eval("rankwise." + sys.argv[2])
small = slice(0, 400)
type(model)(**model.get_params()).fit(X[small], y[small], qid=qid[small])
before = reset_peak()
model.fit(X, y, qid=qid)
print(peak_memory() - before)
"""
_TEXT = """
import sys, warnings
warnings.simplefilter("ignore")
import rcv1like
from sklearn.linear_model import Ridge
from rankwise import RankRLS, RankRLSCV
from harness import peak_memory, reset_peak
X, y, _ = rcv1like.make(int(sys.argv[1]))
before = reset_peak()
{"RankRLS": lambda: RankRLS(solver="cg", n_threads=1).fit(X, y),
 "RankRLSCV": lambda: RankRLSCV(n_threads=1).fit(X, y),
 "Ridge": lambda: Ridge(solver="sparse_cg").fit(X, y)}[sys.argv[2]]()
print(peak_memory() - before)
"""
LARGE, MIDDLE, SMALL = 160_000, 40_000, 3_000
MODELS = {
    "RankRLS()": LARGE,
    "RankRLS(solver='cg')": LARGE,
    "RankRLSCV(cv=3)": LARGE,
    "RankSVM()": LARGE,
    "RankSVMCV(cv=2)": LARGE,
    "KernelRankRLS(basis=200)": MIDDLE,
    "KernelRankSVM(basis=200)": MIDDLE,
    "AdditiveRanker()": MIDDLE,
    "AdditiveRankerCV(cv=2, interactions=(0, 10))": MIDDLE,
    "AutoRanker()": MIDDLE,
    "KernelRankRLS()": SMALL,
    "KernelRankRLSCV(cv=3)": SMALL,
}


def measure(name: str, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Yield the peak by row, or by pair of rows where the kernel of all rows is held."""
    size = max(MODELS[name] // 1_600, 200) if quick else MODELS[name]
    peak = float(run_alone(_FIT, size, name))
    by, unit = (size**2, "bytes per pair of rows") if MODELS[name] == SMALL else (size, "bytes per row")
    yield Figure(name, unit, peak * 2**20 / by, peak_memory=peak)


def text(contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    for name in contenders:
        peak = float(run_alone(_TEXT, 2_000 if quick else 400_000, name))
        yield Figure(name, "MiB beyond the data", peak, peak_memory=peak)


TEXT = ("RankRLS", "RankRLSCV", "Ridge")
CASES = [
    Case(CLAIM, name, (name,), partial(measure, name), minutes=0.5, smoke=name == "RankRLS()")
    for name in MODELS
] + [Case(CLAIM, "sparse text, 400,000 × 47,152", TEXT, text, minutes=1)]


def table(results: Results) -> str:
    rows = []
    for name, size in MODELS.items():
        unit = "bytes per pair of rows" if size == SMALL else "bytes per row"
        forms = (f"{{value:.3g}} {unit}", f"{{peak_memory:.3g}} MiB at {size:,} rows")
        rows.append([f"`{name}`", *(results.show(form, CLAIM, name, name, unit) for form in forms)])
    return markdown(["rows of 40 columns (320 bytes)", "memory", "peak"], rows)


def text_table(results: Results) -> str:
    metric = "MiB beyond the data"
    rows = [[name, results.show("{value:.3g}", CLAIM, CASES[-1].name, name, metric)] for name in TEXT]
    return markdown(["400,000 × 47,152", metric], rows)


TABLES = {"memory": table, "memory-text": text_table}
