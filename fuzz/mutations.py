"""Stores, models, tables, text, preferences and command lines, damaged at random, by the million.

Each input is the one of its number.

    python fuzz/mutations.py tables --inputs 2000000
    python fuzz/mutations.py arguments --first 4711 --inputs 1

What must hold stands in ``tests/bad_input.py``. An input that crashes or hangs is named, and ends the
run; of those that fail at the same place the first is shown. At the end it says what came of the inputs: how many were
read and used, and which modules refused the others, so that it is known how far they came.

A process of its own takes the inputs, from files in memory; what it counts is shared, so that the number of an input
that ends it is known. Threads that only overlap reading with other work are left out, and the
parser of a command is made once: on tiny files both take several times as long as the rest. One input in 256 is run as
users do.
"""

import argparse
import functools
import json
import mmap
import os
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import pyarrow as pa

import bad_input
from rankwise.cli import entry
from rankwise.runtime import memory

ADDRESSES = 8 << 30  # bytes; what asks for more is a fault
FREE = 1 << 21  # bytes that are said to be available: filling what there is would take long
HANGS, LOOK = 120, 0.05  # seconds; a busy machine may let nothing happen for a minute
REPORT = "came-of-it.json"
MOST_FAULTS = 20  # in different places
ROUND = 2000  # inputs between two looks at the clock and at the counts
AS_USED = {
    (entry, "build_parser"): entry.build_parser,
}
QUICK = {
    (entry, "build_parser"): functools.cache(entry.build_parser),
}


def use(parts):
    for (module, name), value in parts.items():
        setattr(module, name, value)


def check_all(options, folder, counter):
    """Check the inputs one after the other; the counter says which one it is at. Return what came of them."""
    os.chdir(folder)
    bad_input.make_files(folder)
    pa.enable_signal_handlers(False)  # setting them takes a third of reading a small file
    memory.available_memory, memory._ALWAYS_FITS = lambda: FREE, FREE // 2
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    end = time.monotonic() + options.seconds
    outcomes, slowest, faults = Counter(), (0.0, options.first), {}
    before = time.process_time()
    for number in range(options.first, options.first + options.inputs):
        if number % ROUND == 0:
            if time.monotonic() > end:
                break
            tell(options, number, outcomes, faults)
        use(AS_USED if number % 256 == 0 else QUICK)
        outcomes[tried(options.kind, number, folder, faults)] += 1
        if len(faults) > MOST_FAULTS:
            break
        counter[:8] = (number + 1).to_bytes(8, "little")
        now = time.process_time()
        slowest = max(slowest, (now - before, number))
        before = now
    return {"outcomes": outcomes, "slowest": slowest, "seconds": time.process_time(), "faults": faults}


def tried(kind, number, folder, faults):
    """Check an input; keep one error of each place that raises one."""
    try:
        return bad_input.run(kind, number, folder)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, it is a fault
        *_, last = traceback.extract_tb(error.__traceback__)
        place = f"{last.filename}:{last.lineno}"
        faults.setdefault(place, (number, traceback.format_exc()))
        return f"FAULT at {place}"


def tell(options, number, outcomes, faults):
    """Say how far it is, for runs that somebody ends."""
    if options.progress and number > options.first:
        options.progress.write_text(
            f"{number - options.first} inputs of {options.kind}, from {options.first} on: {json.dumps(outcomes)}\n"
            f"faults: {[at for at, _ in faults.values()]}\n"
        )


def watch(child, counter):
    """Wait for a process to end; return how it did, or None if one input takes too long."""
    last, looks = b"", 0  # looks, not a clock: whoever stops both for a while finds them at work afterwards
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if counter[:8] != last:
            last, looks = counter[:8], 0
        elif looks > HANGS / LOOK:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return None
        time.sleep(LOOK)
        looks += 1


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("kind", choices=sorted(bad_input.CHECKS))
    arguments.add_argument("--inputs", type=int, default=100_000)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    arguments.add_argument("--progress", help="a file that says how many inputs are done")
    options = arguments.parse_args()
    options.progress = options.progress and Path(options.progress).resolve()
    start = time.monotonic()
    counter = mmap.mmap(-1, 8)
    counter[:8] = options.first.to_bytes(8, "little")
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        child = os.fork()
        if child == 0:
            try:
                Path(folder, REPORT).write_text(json.dumps(check_all(options, folder, counter)))
            except BaseException:  # noqa: BLE001 - told, and the process ended
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        code = watch(child, counter)
        report = json.loads(Path(folder, REPORT).read_text()) if code == 0 else None
    reached = int.from_bytes(counter[:8], "little")
    if report is None:
        how = f"took more than {HANGS} s" if code is None else f"ended its process ({code})"
        sys.exit(f"input {reached} of {options.kind} {how}")
    done, seconds = reached - options.first, time.monotonic() - start
    lines = [
        (
            f"{done} inputs of {options.kind}, from {options.first} on, in {seconds:.0f} s ({report['seconds']:.0f} s "
            f"of processor time); the slowest, {report['slowest'][1]}, took {report['slowest'][0]:.2f} s"
        )
    ]
    lines += [
        f"{100 * count / done:6.2f} %  {what}" for what, count in Counter(report["outcomes"]).most_common()
    ]
    lines += [f"\ninput {number} of {options.kind}:\n{error}" for number, error in report["faults"].values()]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(len(report["faults"]) > 0)


if __name__ == "__main__":
    main()
