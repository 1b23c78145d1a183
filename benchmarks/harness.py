"""Side-by-side timing: every contender in every round, so that a busy moment of the machine hits all."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import scipy

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True)
class Timing:
    """Seconds of one contender over the rounds, and its speed-up over the reference, round by round."""

    name: str
    median: float
    fastest: float
    speedup: float
    speedup_low: float
    speedup_high: float


def interleave(contenders, repeats=7, reference=None, *, clock=time.perf_counter):
    """Time callables `{name: call}` in turn, `repeats` rounds after one to warm up.

    Speed-ups are ratios inside a round to the `reference` (by default the first): their median, and the
    quartiles as spread.
    """
    reference = reference or next(iter(contenders))
    seconds = {name: [] for name in contenders}
    for call in contenders.values():
        call()
    for _ in range(repeats):
        for name, call in contenders.items():
            start = clock()
            call()
            seconds[name].append(clock() - start)
    return [_timing(name, taken, seconds[reference]) for name, taken in seconds.items()]


def _timing(name, taken, reference):
    ratios = sorted(base / own for base, own in zip(reference, taken, strict=True))
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
    return Timing(name, statistics.median(taken), min(taken), statistics.median(ratios), low, high)


def print_table(title, timings, *, per=None, unit="ms"):
    """Print one line a contender; with `per`, nanoseconds for each of so many items, not milliseconds."""
    scale, unit = (1e9 / per, "ns each") if per else (1e3, unit)
    width = max(len(timing.name) for timing in timings)
    print(f"\n{title}\n{'':{width}}  {'median ' + unit:>14}  {'fastest':>9}  {'speed-up':>8}  (quartiles)")
    for t in timings:
        print(
            f"{t.name:{width}}  {t.median * scale:14.2f}  {t.fastest * scale:9.2f}  {t.speedup:8.2f}"
            f"  ({t.speedup_low:.2f} to {t.speedup_high:.2f})"
        )


def plot_growth(name, what, sizes, seconds, exponent):
    """Draw time against size in logarithms, with the fitted line, into benchmarks/results/<name>.png."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    sizes, seconds = np.asarray(sizes, dtype=float), np.asarray(seconds, dtype=float)
    figure, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
    ax.loglog(sizes, seconds * 1e3, "o", label="measured")
    centre = np.exp(np.mean(np.log(seconds * 1e3) - exponent * np.log(sizes)))
    ax.loglog(sizes, centre * sizes**exponent, "-", label=f"{what}^{exponent:.2f}")
    ax.set(xlabel=what, ylabel="milliseconds a product")
    ax.legend()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / f"{name}.png", dpi=150)
    plt.close(figure)


_MEMORY = """
import sys
import numpy as np, scipy.sparse as sp
sys.path.insert(0, {here!r})
{imports}
load = lambda name: np.load({folder!r} + "/" + name + ".npy")
X = sp.csr_matrix((load("data"), load("indices"), load("indptr")), shape={shape!r})
y = load("y")
def status(key):
    with open("/proc/self/status") as lines:
        return next(float(line.split()[1]) / 1024 for line in lines if line.startswith(key))
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")  # the peak of loading is not the fit's
before = status("VmRSS")
{fit}
print(status("VmHWM") - before)
"""


def peak_memory(X, y, imports, fits):
    """Run each piece of code on X and y in a process of its own; return the MiB it took beyond the data."""
    taken = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, array in (("data", X.data), ("indices", X.indices), ("indptr", X.indptr), ("y", y)):
            np.save(Path(folder, name), array)
        for name, fit in fits.items():
            code = _MEMORY.format(
                here=str(Path(__file__).parent), folder=folder, shape=X.shape, imports=imports, fit=fit
            )
            taken[name] = float(run_python(code))
    return taken


def run_python(code):
    """Run code in a fresh interpreter; return what it printed."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def environment():
    """What a figure needs beside it to be read later."""
    return {
        "processor": _processor(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def _processor():
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def write_json(name, tables, **facts):
    """Write `{title: timings}` and other facts to benchmarks/results/<name>.json."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    content = {
        "environment": environment(),
        **facts,
        "tables": {title: [asdict(timing) for timing in timings] for title, timings in tables.items()},
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    print(f"\nwritten: {path}")
