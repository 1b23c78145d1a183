"""Side-by-side timing: every contender in every round, so that a busy moment of the machine hits all."""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path

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


def environment():
    """What a figure needs beside it to be read later."""
    import numpy as np  # noqa: PLC0415
    import scipy  # noqa: PLC0415

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
