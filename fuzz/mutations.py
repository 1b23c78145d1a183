"""Tables, preferences and command lines, damaged at random, by the million: each input is the one of its number.

    python fuzz/mutations.py tables --inputs 2000000
    python fuzz/mutations.py arguments --first 4711 --inputs 1

What must hold stands in ``tests/bad_input.py``. The first input that fails is named, and ends the run.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import bad_input


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=sorted(bad_input.CHECKS))
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    options = parser.parse_args()
    start, done = time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        bad_input.make_files(folder)
        for number in range(options.first, options.first + options.inputs):
            try:
                bad_input.run(options.kind, number, folder)
            except BaseException:
                sys.stderr.write(f"input {number} of {options.kind} failed\n")
                raise
            done += 1
            if time.monotonic() - start > options.seconds:
                break
        os.chdir("/")
    sys.stdout.write(
        f"{done} inputs of {options.kind}, from {options.first} on, in {time.monotonic() - start:.0f} s\n"
    )


if __name__ == "__main__":
    main()
