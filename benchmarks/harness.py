"""Measurements: what a case is, how it is timed, and the file with one line per measurement."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import scipy.stats
from threadpoolctl import threadpool_limits

HERE = Path(__file__).parent
TRACKED = HERE / "results.jsonl"
QUICK = HERE / "results" / "quick.jsonl"
OURS = "rankwise"
# Word in a contender's name: the distribution that it comes from, and the module to look for.
PEERS = {
    "LightGBM": ("lightgbm", "lightgbm"),
    "XGBoost": ("xgboost-cpu", "xgboost"),
    "CatBoost": ("catboost", "catboost"),
    "EBM": ("interpret-core", "interpret"),
    "FastSurvivalSVM": ("scikit-survival", "sksurv"),
    "ranx": ("ranx", "ranx"),
    "fastrank": ("fastrank", "fastrank"),
    "pandas": ("pandas", "pandas"),
    "arena-rank": ("arena-rank", "arena_rank"),
    "HistGradientBoosting": ("scikit-learn", "sklearn"),
    "KernelRidge": ("scikit-learn", "sklearn"),
    "Ridge": ("scikit-learn", "sklearn"),
    "RLS": ("scikit-learn", "sklearn"),
    "LinearSVC": ("scikit-learn", "sklearn"),
    "scikit-learn": ("scikit-learn", "sklearn"),
    "SciPy": ("scipy", "scipy"),
    "NumPy": ("numpy", "numpy"),
    "pickle": ("Python", "pickle"),
    "RidgeCV": ("scikit-learn", "sklearn"),
}
SMOKE = {OURS, "scikit-learn", "scipy", "numpy"}


@dataclass(frozen=True)
class Figure:
    """One measured value of one contender; `values` are its paired units (folds, queries, rounds, iterations)."""

    contender: str
    metric: str
    value: float
    low: float | None = None
    high: float | None = None
    n: int = 1
    threads: int = 1
    processor_seconds: float | None = None
    peak_memory: float | None = None  # MiB beyond the data
    values: list[float] | None = None


@dataclass(frozen=True)
class Case:
    """Contenders on one data set or size. `measure(contenders, quick)` yields figures as they come."""

    claim: str
    name: str
    contenders: tuple[str, ...]
    measure: Callable[[tuple[str, ...], bool], Iterable[Figure]]
    needs: tuple[str, ...] = ()  # data sets of data.py
    minutes: float = 1.0  # of one core for a full run, until it is measured
    smoke: bool = False
    in_turns: bool = False  # contenders take turns, so that all of them are measured again if one is missing
    goals: dict[tuple[str, str], tuple[str, float]] = field(
        default_factory=dict
    )  # (contender, metric): bound


def package_of(contender: str) -> tuple[str, str]:
    """Return the distribution and the module of a contender."""
    words = contender.replace("(", " ").replace(",", " ").replace("'s", " ").split()
    found = [package for word, package in PEERS.items() if word in words]
    return found[0] if found else (OURS, OURS)


def version_of(contender: str) -> str:
    """Return the version of a contender's package; ours is that of the tree, which the commit names too."""
    distribution, module = package_of(contender)
    if distribution == "Python":
        return platform.python_version()
    try:
        return version(distribution)
    except PackageNotFoundError:
        return str(getattr(import_module(module), "__version__", "unknown"))


@cache
def is_installed(contender: str) -> bool:
    """Say whether the package of a contender can be imported."""
    return importlib.util.find_spec(package_of(contender)[1]) is not None


@cache
def facts() -> dict[str, str]:
    """Return the commit of the library that is measured, and the kind of machine and whether others use it."""
    return {"commit": _commit(), "machine": _machine()}


def _commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=HERE, capture_output=True, text=True, check=False).stdout

    changed = git("status", "--porcelain", "--", "../src", "../cpp").strip()
    return git("rev-parse", "--short=10", "HEAD").strip() + ("+" if changed else "") or "unknown"


def _machine() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    names = [
        line.split(":", 1)[1].strip()
        for line in (cpuinfo.read_text().splitlines() if cpuinfo.exists() else ())
        if line.startswith("model name")
    ]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    kind = f"{cores} cores, {names[0] if names else platform.processor()}, Python {platform.python_version()}"
    is_busy = hasattr(os, "getloadavg") and os.getloadavg()[0] > cores + 0.5
    return kind + (", busy" if is_busy else "")


class Results:
    """The file: lines are appended as they come, and the last line of a measurement counts."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[dict] = []
        if path.exists():
            self.lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
        self._last = {_key(line): line for line in self.lines}

    def add(self, case: Case, figure: Figure) -> None:
        line = {
            "claim": case.claim,
            "case": case.name,
            **{name: _rounded(value) for name, value in asdict(figure).items() if value is not None},
            "version": version_of(figure.contender),
            **facts(),
            "date": datetime.now(tz=UTC).date().isoformat(),
        }
        self.path.parent.mkdir(exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self.lines.append(line)
        self._last[_key(line)] = line

    def done(self, case: Case) -> set[str]:
        """Return the contenders of a case that have lines."""
        return {
            line["contender"]
            for line in self.lines
            if (line["claim"], line["case"]) == (case.claim, case.name)
        }

    def find(self, claim: str, case: str, contender: str, metric: str, threads: int = 1) -> dict | None:
        """Return the last line of a measurement."""
        return self._last.get((claim, case, contender, metric, threads))

    def show(self, form: str, claim: str, case: str, contender: str, metric: str, threads: int = 1) -> str:
        """Return the last line of a measurement in a form such as "{value:.3f}"."""
        line = self.find(claim, case, contender, metric, threads)
        return form.format(**line) if line else "not run"


def _key(line: dict) -> tuple:
    return line["claim"], line["case"], line["contender"], line["metric"], line["threads"]


def _rounded(value: object) -> object:
    """Six significant digits are more than any measurement has."""
    if isinstance(value, list):
        return [_rounded(one) for one in value]
    return float(f"{value:.6g}") if isinstance(value, float | np.floating) else value


@dataclass
class Cost:
    """What a block took: seconds, processor seconds, and the peak of memory beyond the start (MiB)."""

    seconds: float = 0.0
    processor_seconds: float = 0.0
    memory: float = 0.0


class measured:  # noqa: N801
    """Measure a block: ``with measured() as cost: ...``."""

    def __enter__(self) -> Cost:
        self.cost = Cost()
        self._reset = reset_peak()
        self._start = time.perf_counter(), time.process_time()
        return self.cost

    def __exit__(self, *error: object) -> None:
        self.cost.seconds = time.perf_counter() - self._start[0]
        self.cost.processor_seconds = time.process_time() - self._start[1]
        self.cost.memory = peak_memory() - self._reset


def reset_peak() -> float:
    """Forget the peak of this process; return the MiB that it holds now."""
    clear = Path("/proc/self/clear_refs")
    if not clear.exists():
        return peak_memory()
    clear.write_text("5")
    return peak_memory()


def peak_memory() -> float:
    """Return the peak of this process in MiB."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def in_turns(
    calls: dict[str, Callable[[], object]],
    rounds: int,
    *,
    threads: dict[str, int] | None = None,
    warm_up: bool = True,
) -> Iterator[Figure]:
    """Time every contender in every round, so that a busy moment of the machine hits all of them.

    Yields seconds (median and quartiles), and how many times as fast as each peer ours are, taken inside each round.
    One thread each, also inside BLAS, unless `threads` says otherwise.
    """
    threads = threads or {}
    taken: dict[str, list[Cost]] = {name: [] for name in calls}
    for at in range(-int(warm_up), rounds):
        for name, call in calls.items():
            with threadpool_limits(threads.get(name, 1)), measured() as cost:
                call()
            if at >= 0:
                taken[name].append(cost)
    for name, costs in taken.items():
        common = {"n": rounds, "threads": threads.get(name, 1)}
        wall = [cost.seconds for cost in costs]
        spent = statistics.median(cost.processor_seconds for cost in costs)
        memory = max(cost.memory for cost in costs)
        yield Figure(
            name, "seconds", *_quartiles(wall), processor_seconds=spent, peak_memory=memory, **common
        )
        if not is_peer(name):
            for peer in filter(is_peer, calls):
                ratios = [other.seconds / own for other, own in zip(taken[peer], wall, strict=True)]
                yield Figure(name, f"times as fast as {peer}", *_quartiles(ratios), **common)


def is_peer(contender: str) -> bool:
    """Say whether a contender is not ours."""
    return package_of(contender)[0] != OURS


def _quartiles(values: list[float]) -> tuple[float, float, float]:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return middle, low, high


def t_interval(values: np.ndarray, level: float = 0.95) -> tuple[float, float, float]:
    """Return the mean of paired units and its t interval, with one degree of freedom less than units."""
    values = np.asarray(values, dtype=float)
    mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(values.size))
    half = float(scipy.stats.t.ppf((1 + level) / 2, values.size - 1)) * error
    return mean, mean - half, mean + half


def short(value: float) -> str:
    """Return two digits without an exponent."""
    return f"{float(f'{value:.2g}'):g}"


def run_alone(code: str, *arguments: object) -> str:
    """Run code in a new interpreter with one thread, in which the benchmarks can be imported; return its output."""
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.strip().splitlines()[-1]
