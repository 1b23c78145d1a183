"""Compare the speed of two commits: fits, choices, files, predictions and commands, in alternating rounds.

    python tools/compare.py OLD NEW [--rounds 9] [--only fit read] [--keep]

Each commit is checked out and installed into an environment of its own below `build/compare`, with the versions of
NumPy, SciPy, scikit-learn and pyarrow of the environment that runs this. Every case runs in a new process on one CPU,
in turn for the old and the new commit, whose order alternates too; a process reports the best of several calls. Each
side writes its own model files and stores. A line per case has the medians of both times and of the ratio new/old, with
the quartiles of the ratio. Cases use public names that both commits have; where one lacks something, the case is
skipped with the reason.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwise.data
import rankwise.metrics

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "compare"
SHARED = ("numpy", "scipy", "scikit-learn", "pyarrow")
SECONDS = 0.5  # of calls in one process, at least
CALLS = 200  # at most
Call = Callable[[], object]

# --- cases: each takes a folder of its side, prepares, and returns the call that is timed ---


def rows(n_rows: int, n_columns: int, size: int = 20) -> tuple[Any, Any, Any]:
    """Return dense rows in queries of a size, with grades that a linear function explains in part."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns))
    real = X[:, 0] - X[:, 1] + np.abs(X[:, 2]) + rng.normal(size=n_rows)
    return X, np.clip(np.floor(real + 2), 0, 4), np.arange(n_rows) // size


def text_rows(n_rows: int, n_columns: int, entries: int = 40) -> tuple[Any, Any, Any]:
    """Return sparse rows like those of text."""
    rng = np.random.default_rng(0)
    columns = (n_columns * rng.random((n_rows, entries)) ** 3).astype(np.int32)
    X = csr_matrix(
        (rng.random(columns.size), columns.ravel(), np.arange(n_rows + 1) * entries), (n_rows, n_columns)
    )
    X.sum_duplicates()
    real = X @ rng.normal(size=n_columns)
    return X, np.clip(np.floor(real - real.mean() + 2), 0, 4), np.arange(n_rows) // 20


def fit_small(folder: Path) -> Call:
    """RankRLS on 100 rows."""
    X, y, qid = rows(100, 5)
    return lambda: rankwise.RankRLS().fit(X, y, qid=qid)


def fit_dense(folder: Path) -> Call:
    """RankRLS on 40,000 × 50."""
    X, y, qid = rows(40_000, 50)
    return lambda: rankwise.RankRLS().fit(X, y, qid=qid)


def fit_text(folder: Path) -> Call:
    """RankRLS on 20,000 × 10,000 sparse."""
    X, y, qid = text_rows(20_000, 10_000)
    return lambda: rankwise.RankRLS(solver="cg").fit(X, y, qid=qid)


def fit_pairs(folder: Path) -> Call:
    """RankRLS on 50,000 listed pairs."""
    X, _, _ = rows(10_000, 20)
    pairs = np.random.default_rng(1).integers(len(X), size=(50_000, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return lambda: rankwise.RankRLS().fit_pairs(X, pairs)


def fit_svm(folder: Path) -> Call:
    """RankSVM on 10,000 × 20."""
    X, y, qid = rows(10_000, 20)
    return lambda: rankwise.RankSVM(1e-3).fit(X, y, qid=qid)


def fit_squared_hinge(folder: Path) -> Call:
    """RankSVM with the squared hinge on 10,000 × 20."""
    X, y, qid = rows(10_000, 20)
    return lambda: rankwise.RankSVM(1e-3, loss="squared_hinge").fit(X, y, qid=qid)


def fit_kernel(folder: Path) -> Call:
    """KernelRankRLS on 1,000 rows."""
    X, y, qid = rows(1_000, 10)
    return lambda: rankwise.KernelRankRLS(gamma=0.1).fit(X, y, qid=qid)


def fit_curves(folder: Path) -> Call:
    """AdditiveRanker on 5,000 × 10, without surfaces."""
    X, y, qid = rows(5_000, 10)
    return lambda: rankwise.AdditiveRanker(interactions=0).fit(X, y, qid=qid)


def fit_store(folder: Path) -> Call:
    """RankRLS from disk, 20,000 × 10,000 sparse."""
    X, y, qid = text_rows(20_000, 10_000)
    rankwise.data.save_store([(X, y, qid)], folder / "rows.store")
    store = rankwise.data.open_store(folder / "rows.store")
    return lambda: rankwise.RankRLS(solver="cg").fit(store.X, y, qid=qid)


def _splits(qid: Any) -> list[tuple[Any, Any]]:
    return [(np.flatnonzero(qid % 3 != k), np.flatnonzero(qid % 3 == k)) for k in range(3)]


def select_small(folder: Path) -> Call:
    """RankRLSCV on 200 rows."""
    X, y, qid = rows(200, 5)
    return lambda: rankwise.RankRLSCV(cv=_splits(qid)).fit(X, y, qid=qid)


def select_text(folder: Path) -> Call:
    """RankRLSCV on 10,000 × 5,000 sparse, three folds."""
    X, y, qid = text_rows(10_000, 5_000)
    return lambda: rankwise.RankRLSCV(cv=_splits(qid)).fit(X, y, qid=qid)


def select_exact(folder: Path) -> Call:
    """RankRLSCV by exact leave-query-out on 10,000 × 30."""
    X, y, qid = rows(10_000, 30)
    return lambda: rankwise.RankRLSCV(cv="leave-query-out").fit(X, y, qid=qid)


def select_kernel(folder: Path) -> Call:
    """KernelRankRLSCV by exact leave-query-out on 600 rows."""
    X, y, qid = rows(600, 10)
    return lambda: rankwise.KernelRankRLSCV(gamma=0.1, cv="leave-query-out").fit(X, y, qid=qid)


def select_svm(folder: Path) -> Call:
    """RankSVMCV with the squared hinge on 3,000 × 20, three folds."""
    X, y, qid = rows(3_000, 20)
    return lambda: rankwise.RankSVMCV(loss="squared_hinge", cv=_splits(qid)).fit(X, y, qid=qid)


def load_linear(folder: Path) -> Call:
    """Load a linear model of 10,000 columns."""
    X, y, qid = text_rows(2_000, 10_000)
    rankwise.save(rankwise.RankRLS(solver="cg").fit(X, y, qid=qid), folder / "linear.model")
    return lambda: rankwise.load(folder / "linear.model")


def load_pipeline(folder: Path) -> Call:
    """Load a scaler with curves."""
    X, y, qid = rows(500, 10)
    scaler, ranker = StandardScaler(), rankwise.AdditiveRanker(interactions=0)
    ranker.fit(scaler.fit_transform(X), y, qid=qid)
    rankwise.save(make_pipeline(scaler, ranker), folder / "pipeline.model")
    return lambda: rankwise.load(folder / "pipeline.model")


def read_svmlight(folder: Path) -> Call:
    """Read 20,000 lines of svmlight text."""
    return lambda: rankwise.data.load_svmlight(_text(folder, 20_000))


def read_csv(folder: Path) -> Call:
    """Read a CSV file of 20,000 × 20."""
    return lambda: rankwise.data.load_table(_table(folder, 20_000, "csv"))


def read_parquet(folder: Path) -> Call:
    """Read a Parquet file of 20,000 × 20."""
    return lambda: rankwise.data.load_table(_table(folder, 20_000, "parquet"))


def predict_row(folder: Path) -> Call:
    """Score one row of 20 columns, a hundred times."""
    X, y, qid = rows(1_000, 20)
    model, row = rankwise.RankRLS().fit(X, y, qid=qid), X[:1]
    return lambda: [model.predict(row) for _ in range(100)]


def predict_rows(folder: Path) -> Call:
    """Score 20,000 × 10,000 sparse rows."""
    X, y, qid = text_rows(20_000, 10_000)
    model = rankwise.RankRLS(solver="cg").fit(X, y, qid=qid)
    return lambda: model.predict(X)


def predict_curves(folder: Path) -> Call:
    """Score 50,000 × 10 rows by curves."""
    X, y, qid = rows(50_000, 10)
    model = rankwise.AdditiveRanker(interactions=0).fit(X[:500], y[:500], qid=qid[:500])
    return lambda: model.predict(X)


def evaluate(folder: Path) -> Call:
    """NDCG and the pairwise error of 200,000 rows."""
    X, y, qid = rows(200_000, 3)
    return lambda: (
        rankwise.metrics.ndcg(y, X[:, 0], qid, k=10),
        rankwise.metrics.pairwise_error(y, X[:, 0], qid),
    )


def command_start(folder: Path) -> Call:
    """Start `rankwise --help`."""
    return lambda: _command(folder, "--help")


def command_fit(folder: Path) -> Call:
    """Run `rankwise fit` on 300 rows of text."""
    data, names = _text(folder, 300, 5), (f"{os.getpid()}-{number}.model" for number in itertools.count())
    return lambda: _command(folder, "fit", str(data), "-o", str(folder / next(names)))


def command_predict(folder: Path) -> Call:
    """Run `rankwise predict` on 300 rows of text."""
    data = _text(folder, 300, 5)
    rankwise.save(rankwise.RankRLS().fit(*rankwise.data.load_svmlight(data)), folder / "linear.model")
    return lambda: _command(folder, "predict", str(folder / "linear.model"), str(data))


CASES = {
    case.__name__: case
    for case in (
        fit_small, fit_dense, fit_text, fit_pairs, fit_svm, fit_squared_hinge, fit_kernel, fit_curves, fit_store,
        select_small, select_text, select_exact, select_kernel, select_svm, load_linear, load_pipeline, read_svmlight,
        read_csv, read_parquet, predict_row, predict_rows, predict_curves, evaluate, command_start, command_fit,
        command_predict,
    )
}  # fmt: skip


def _text(folder: Path, n_rows: int, n_columns: int = 1_000) -> Path:
    path = folder / f"rows-{n_rows}-{n_columns}.txt"
    if not path.exists():
        X, y, qid = text_rows(n_rows, n_columns) if n_columns > 100 else rows(n_rows, n_columns)
        dump_svmlight_file(X, y, str(path), query_id=qid, zero_based=False)
    return path


def _table(folder: Path, n_rows: int, ending: str) -> Path:
    path = folder / f"rows-{n_rows}.{ending}"
    if not path.exists():
        X, y, qid = rows(n_rows, 20)
        table = pa.table({"label": y, "qid": qid, **{f"x{at}": column for at, column in enumerate(X.T)}})
        (csv.write_csv if ending == "csv" else parquet.write_table)(table, str(path))
    return path


def _command(folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "rankwise", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 - its own


# --- one measurement, in the environment of a side ---


def measure(name: str, folder: Path) -> None:
    """Print the best of several calls in seconds, or the reason why there is none, as JSON."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    try:
        call = CASES[name](folder)
        call()
    except Exception as error:  # noqa: BLE001 - whatever a commit lacks
        lines = str(getattr(error, "stderr", b"") or error).strip().splitlines() or [""]
        print(json.dumps({"skipped": f"{type(error).__name__}: {lines[-1][:200]}"}))
        return
    times: list[float] = []
    while len(times) < 3 or (sum(times) < SECONDS and len(times) < CALLS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    print(json.dumps({"seconds": min(times)}))


# --- both sides ---


def run(*command: object, **options: Any) -> str:
    """Run a program; end with its words where it fails."""
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **options)  # noqa: S603
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def environment(commit: str) -> Path:
    """Return the Python of an environment with the commit installed, made unless it is there already."""
    place = FOLDER / commit
    python = place / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    if (place / "installed").exists():
        return python
    remove(commit)
    print(f"installing {commit[:10]} ...", file=sys.stderr, flush=True)
    run("git", "worktree", "add", "--detach", place / "source", commit, cwd=ROOT)
    run(sys.executable, "-m", "venv", place / "venv")
    (place / "constraints.txt").write_text("".join(map(_pinned, SHARED)))
    run(python, "-m", "pip", "install", "-q", "-c", place / "constraints.txt", f"{place / 'source'}[tables]")
    (place / "installed").touch()
    return python


def _pinned(package: str) -> str:
    try:
        return f"{package}=={version(package)}\n"
    except PackageNotFoundError:
        return ""


def remove(commit: str) -> None:
    """Remove the environment and the worktree of a commit."""
    shutil.rmtree(FOLDER / commit, ignore_errors=True)
    run("git", "worktree", "prune", cwd=ROOT)


def one_process(python: Path, case: str, folder: Path) -> dict[str, Any]:
    """Measure a case once, on one thread."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    # A PYTHONPATH would give both sides the same rankwise.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | threads
    said = run(python, Path(__file__).resolve(), "--measure", case, folder, cwd=folder, env=env)
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def compare(case: str, sides: dict[str, Path], folders: dict[str, Path], rounds: int) -> str:
    """Return the line of a case."""
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for number in range(rounds):
        for side in list(sides)[:: -1 if number % 2 else 1]:
            found = one_process(sides[side], case, folders[side])
            if "skipped" in found:
                return f"{case:18} skipped: the {side} commit has {found['skipped']}"
            seconds[side].append(found["seconds"])
    ratios = [new / old for old, new in zip(seconds["old"], seconds["new"], strict=True)]
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if rounds > 1 else ratios * 3
    old, new = (1e3 * statistics.median(seconds[side]) for side in ("old", "new"))
    return f"{case:18} old {old:9.2f} ms   new {new:9.2f} ms   new/old {middle:.3f} [{low:.3f}, {high:.3f}]"


def main() -> None:
    """Read the arguments, install both commits and compare them case by case."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", metavar="OLD", help="a commit, branch or tag")
    parser.add_argument("new", metavar="NEW", help="another")
    parser.add_argument(
        "--rounds", type=int, default=9, metavar="N", help="processes of each side per case (9)"
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="CASE", help=f"cases that begin so: {', '.join(CASES)}"
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave the environments in build/compare, for the next time"
    )
    options = parser.parse_args()
    cases = [case for case in CASES if case.startswith(tuple(options.only))]
    if not cases or options.rounds < 1:
        parser.error(
            f"--only matches none of {', '.join(CASES)}" if not cases else "--rounds must be at least 1"
        )
    commits = {
        side: run("git", "rev-parse", "--verify", f"{getattr(options, side)}^{{commit}}", cwd=ROOT).strip()
        for side in ("old", "new")
    }
    try:
        sides = {side: environment(commit) for side, commit in commits.items()}
        with tempfile.TemporaryDirectory() as place:
            folders = {side: Path(place, side) for side in sides}
            for folder in folders.values():
                folder.mkdir()
            for case in cases:
                print(compare(case, sides, folders, options.rounds), flush=True)
    finally:
        if not options.keep:
            for commit in set(commits.values()):
                remove(commit)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], Path(sys.argv[3]))
    else:
        main()
