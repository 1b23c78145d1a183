"""Tables, preferences and command lines, damaged at random, by the million: each input is the one of its number.

    python fuzz/mutations.py tables --inputs 2000000
    python fuzz/mutations.py arguments --first 4711 --inputs 1

What must hold stands in ``tests/bad_input.py``. The first input that fails, crashes or hangs is named, and
ends the run.

A process of its own takes the inputs, from files in memory; what it counts is shared, so that the number of an input
that ends it is known. Threads that only overlap reading with other work, or wait for signals, are left out, and the
parser of a command is made once: on tiny files both take several times as long as the rest. One input in 256 is run as
users do.
"""

import argparse
import contextlib
import functools
import mmap
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import pyarrow as pa

import bad_input
from rankwise.cli import parser, stopping
from rankwise.data.tables import plan

HANGS = 600  # seconds; a busy machine may let nothing happen for a minute
ROUND = 2000  # inputs between two looks at the clock and at the counts
AS_USED = {
    (plan, "read_ahead"): plan.read_ahead,
    (stopping, "_watched"): stopping._watched,
    (parser, "build_parser"): parser.build_parser,
}
QUICK = {
    (plan, "read_ahead"): lambda items: items,
    (stopping, "_watched"): lambda *_: contextlib.nullcontext(),
    (parser, "build_parser"): functools.cache(parser.build_parser),
}


def use(parts):
    for (module, name), value in parts.items():
        setattr(module, name, value)


def check_all(options, folder, counter):
    """Check the inputs one after the other; the counter says which one it is at."""
    os.chdir(folder)
    bad_input.make_files(folder)
    pa.enable_signal_handlers(False)  # setting them takes a third of reading a small file
    end = time.monotonic() + options.seconds
    for number in range(options.first, options.first + options.inputs):
        if number % ROUND == 0:
            if time.monotonic() > end:
                return
            tell(options, number)
        use(AS_USED if number % 256 == 0 else QUICK)
        bad_input.run(options.kind, number, folder)
        counter[:8] = (number + 1).to_bytes(8, "little")


def tell(options, number):
    """Say how far it is, for runs that somebody ends."""
    if options.progress and number > options.first:
        options.progress.write_text(f"{number - options.first} inputs of {options.kind}\n")


def watch(child, counter):
    """Wait for a process to end; return how it did, or None if one input takes too long."""
    last, since = b"", time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if counter[:8] != last:
            last, since = counter[:8], time.monotonic()
        elif time.monotonic() - since > HANGS:
            os.kill(child, 9)
            os.waitpid(child, 0)
            return None
        time.sleep(0.05)


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
            check_all(options, folder, counter)
            os._exit(0)
        code = watch(child, counter)
    reached = int.from_bytes(counter[:8], "little")
    if code != 0:
        how = f"took more than {HANGS} s" if code is None else f"ended its process ({code})"
        sys.exit(f"input {reached} of {options.kind} {how}")
    done, seconds = reached - options.first, time.monotonic() - start
    sys.stdout.write(f"{done} inputs of {options.kind}, from {options.first} on, in {seconds:.0f} s\n")


if __name__ == "__main__":
    main()
