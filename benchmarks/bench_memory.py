"""Peak memory of estimators and commands at three sizes, each in a process of its own, and the line through them.

A promise about memory is a formula: what a row of 40 columns costs beyond the data, measured as the slope over sizes;
of a kernel between all rows, what a pair of rows costs.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from harness import RESULTS
from rankwise.data import save_svmlight

_FIT = """
import resource, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
import rankwise
m, n = int(sys.argv[1]), 40
rng = np.random.default_rng(0)
X = rng.normal(size=(m, n)); y = rng.integers(0, 5, m).astype(float); qid = np.arange(m) // 20
model = eval("rankwise." + sys.argv[2])
small = slice(0, 400)
type(model)(**model.get_params()).fit(X[small], y[small], qid=qid[small])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
model.fit(X, y, qid=qid)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""
_COMMAND = """
import resource, sys
from rankwise.cli import main
main(["inspect", sys.argv[2]])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
sys.stdout = sys.stderr
main(sys.argv[3:])
sys.__stdout__.write(str((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024))
"""
MODELS = {
    "RankRLS()": (40_000, 80_000, 160_000),
    "RankRLS(solver='cg')": (40_000, 80_000, 160_000),
    "RankRLSCV(cv=3)": (40_000, 80_000, 160_000),
    "RankSVM()": (40_000, 80_000, 160_000),
    "RankSVMCV(cv=2)": (40_000, 80_000, 160_000),
    "KernelRankRLS(basis=200)": (10_000, 20_000, 40_000),
    "KernelRankSVM(basis=200)": (10_000, 20_000, 40_000),
    "AdditiveRanker()": (20_000, 40_000, 80_000),
    "AdditiveRanker(interactions=20)": (20_000, 40_000, 80_000),
    "AdditiveRankerCV(cv=2, interactions=(0, 10))": (10_000, 20_000, 40_000),
    "AutoRanker()": (10_000, 20_000, 40_000),
}
# Of so many rows that the kernel between all of them is what counts.
SQUARES = dict.fromkeys(("KernelRankRLS()", "KernelRankRLSCV(cv=3)"), (1000, 2000, 3000))
SIZES = (20_000, 40_000, 80_000)


def run(code, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], check=True, capture_output=True, text=True
    )
    return int(done.stdout.strip().splitlines()[-1])


def commands(folder):
    """Yield names, sizes and arguments of commands on text of so many rows."""
    rng = np.random.default_rng(0)
    files = {}
    for m in (400, *SIZES):
        files[m] = folder / f"{m}.txt"
        save_svmlight(rng.normal(size=(m, 40)), rng.integers(0, 5, m), files[m], qid=np.arange(m) // 20)
    model = folder / "model.rw"
    small = ["fit", files[400], "--method", "rls", "--scaling", "none"]
    subprocess.run(
        [sys.executable, "-m", "rankwise", *map(str, [*small, "-o", model])], check=True, capture_output=True
    )
    for name, words in {
        "convert to a store": lambda m: ["convert", files[m], "-o", folder / f"{m}.store"],
        "predict": lambda m: ["predict", model, files[m], "-o", folder / f"{m}.scores"],
        "inspect": lambda m: ["inspect", files[m]],
        "evaluate": lambda m: ["evaluate", model, files[m], "--metrics", "ndcg@10"],
        "explain": lambda m: ["explain", model, files[m]],
        "report": lambda m: ["report", model, files[m], "-o", folder / f"{m}.html"],
        "select": lambda m: ["select", files[m], "--method", "rls", "--scaling", "none"],
        "fit": lambda m: ["fit", files[m], "--method", "rls", "--scaling", "none", "-o", folder / f"{m}.rw"],
    }.items():
        yield name, [(m, run(_COMMAND, m, files[400], *words(m))) for m in SIZES]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    found = {name: [(m, run(_FIT, m, name)) for m in sizes] for name, sizes in {**MODELS, **SQUARES}.items()}
    with tempfile.TemporaryDirectory() as folder:
        found.update(commands(Path(folder)))
    print(f"{'beyond what was there':46} {'rows: MB':44} {'bytes per row':>12}")
    for name, points in found.items():
        m, peak = np.array(points, dtype=float).T
        slope = np.polyfit(m**2 if name in SQUARES else m, peak, 1)[0]
        shown = ", ".join(f"{int(a):,}: {b / 1e6:.1f}" for a, b in points)
        print(
            f"{name:46} {shown:44} {slope:12.0f}{' per pair of rows' if name in SQUARES else ''}", flush=True
        )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "memory.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
