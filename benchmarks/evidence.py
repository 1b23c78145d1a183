#!/usr/bin/env python3
"""Measure what the pages claim, write it down, and write the pages from it.

    python benchmarks/evidence.py list                  claims, cases, and what a full run of each takes
    python benchmarks/evidence.py run [--only quality]  measure what is missing in results.jsonl; may be interrupted
    python benchmarks/evidence.py run --quick           every case at a small size, into results/quick.jsonl (untracked)
    python benchmarks/evidence.py page                  write every table and picture between markers from results.jsonl
    python benchmarks/evidence.py check                 compare the pages with the file, and list goals that are missed

`--only` takes words: cases whose claim or name contains one of them. `--only smoke` runs one case of every module, with
scikit-learn as the only peer. Peers and data sets that are absent are named and left out.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings

import data
from cases import CASES
from harness import QUICK, SMOKE, TRACKED, Case, Figure, Results, is_installed, package_of
from pages import differing_blocks, write_pages


def chosen(options: argparse.Namespace) -> list[Case]:
    """Return the cases that `--only` names."""
    if options.only == ["smoke"]:
        return [case for case in CASES if case.smoke]
    return [
        case
        for case in CASES
        if not options.only or any(word in f"{case.claim}/{case.name}" for word in options.only)
    ]


def able(case: Case, options: argparse.Namespace) -> list[str]:
    """Return the contenders that can be measured here, saying which cannot."""
    absent = [name for name in case.needs if not data.is_there(name)]
    if absent:
        where = " in RANKWISE_DATA" if set(absent) <= set(data.SETS) else f"; pip install {absent[0]}"
        print(f"skipped {case.claim}/{case.name}: no {', '.join(absent)}{where}", flush=True)
        return []
    wanted = [
        name
        for name in case.contenders
        if (options.only != ["smoke"] or package_of(name)[0] in SMOKE)
        and (not options.contenders or name in options.contenders)
    ]
    for name in wanted:
        if not is_installed(name):
            print(f"skipped {case.claim}/{case.name}: {name} needs {package_of(name)[0]}", flush=True)
    return [name for name in wanted if is_installed(name)]


def run(options: argparse.Namespace) -> int:
    """Measure what is missing; lines are written as they come."""
    if options.quick:
        QUICK.unlink(missing_ok=True)
        os.environ["NUMBA_DISABLE_JIT"] = "1"  # ranx would compile for half a minute
    results = Results(QUICK if options.quick else TRACKED)
    end = time.monotonic() + 60 * options.minutes
    failed = []
    for case in chosen(options):
        names = able(case, options)
        missing = [name for name in names if options.again or name not in results.done(case)]
        if case.in_turns and missing:
            missing = names
        groups = [missing] if case.in_turns else [[name] for name in missing]
        for group in groups:
            if not group:
                continue
            if time.monotonic() > end:
                print(f"stopped after {options.minutes:g} minutes; run again to go on", flush=True)
                return 0
            start, spent = time.perf_counter(), sum(os.times()[:4])
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    figures = list(case.measure(tuple(group), options.quick))
            except Exception as error:
                if options.raises:
                    raise
                failed.append(
                    f"{case.claim}/{case.name}, {', '.join(group)}: {type(error).__name__}: {error}"
                )
                print(f"FAILED {failed[-1]}", flush=True)
                continue
            minutes = (sum(os.times()[:4]) - spent) / 60 / len(group)
            for figure in [*figures, *(Figure(name, "minutes", minutes) for name in group)]:
                results.add(case, figure)
            shown = ", ".join(f"{f.contender}: {f.metric} {f.value:.4g}" for f in figures[:3])
            print(f"{case.claim}/{case.name} {time.perf_counter() - start:.1f} s: {shown}", flush=True)
    return 1 if failed else 0


def check(options: argparse.Namespace) -> int:
    """Compare pages and file; with --quick, only whether every case that can run has lines."""
    if options.quick:
        results = Results(QUICK)
        missing = [
            f"{case.claim}/{case.name}: {name}"
            for case in chosen(options)
            for name in able(case, options)
            if name not in results.done(case)
        ]
        print(*(f"no quick result of {name}" for name in missing), sep="\n")
        return 1 if missing else 0
    results = Results(TRACKED)
    wrong = differing_blocks(results)
    print(*(f"{page}: {name} is not what results.jsonl gives" for page, name in wrong), sep="\n")
    for case in CASES:
        absent = [name for name in case.contenders if name not in results.done(case)]
        if absent:
            print(f"not run: {case.claim}/{case.name}: {'; '.join(absent)}")
        for (contender, metric), (kind, bound) in case.goals.items():
            threads = 2 if "two threads" in contender else 1
            line = results.find(case.claim, case.name, contender, metric, threads)
            if line and ((line["value"] < bound) if kind == ">=" else (line["value"] > bound)):
                goal = f"{case.claim}/{case.name}: {contender}, {metric} {kind} {bound:g}"
                print(f"missed: {goal}, measured {line['value']:g}")
    return 1 if wrong else 0


def show(options: argparse.Namespace) -> int:
    """Print claims and cases, what is measured already, and the cost: measured, or else the guess of the case."""
    results = Results(TRACKED)
    total = 0.0
    for case in chosen(options):
        done = len(results.done(case) & set(case.contenders))
        minutes = 0.0
        for name in case.contenders:
            line = results.find(case.claim, case.name, name, "minutes")
            minutes += line["value"] if line else case.minutes / len(case.contenders)
        is_here = all(map(data.is_there, case.needs))
        total += minutes * is_here
        needs = f", needs {', '.join(case.needs)}" * bool(case.needs) + ", which is absent" * (not is_here)
        print(
            f"{minutes:6.1f} min  {case.claim}/{case.name}: {done} of {len(case.contenders)} measured{needs}"
        )
    print(f"{total / 60:6.1f} hours of one core for what is here; claims may be measured beside each other")
    return 0


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=("run", "page", "check", "list"))
    parser.add_argument("--quick", action="store_true", help="small sizes, into an untracked file")
    parser.add_argument("--only", nargs="+", help="words of claims or cases")
    parser.add_argument("--contenders", nargs="+", help="these alone")
    parser.add_argument("--again", action="store_true", help="measure what is there already, too")
    parser.add_argument("--minutes", type=float, default=1e9, help="start nothing new after so long")
    parser.add_argument("--raises", action="store_true", help="stop at the first error, with its traceback")
    options = parser.parse_args()
    if options.command == "page":
        write_pages(Results(TRACKED))
        return 0
    return {"run": run, "check": check, "list": show}[options.command](options)


if __name__ == "__main__":
    sys.exit(main())
