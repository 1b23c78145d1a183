#!/usr/bin/env python3
"""Coverage-guided fuzzing of `open_store`: damaged stores raise InvalidInputError, or can be used whole.

    python fuzz/store.py build/fuzz/stores -runs=1000000
    python fuzz/store.py seed build/fuzz/stores

`make fuzz-store` runs it with the sanitizers; `seed` writes small whole stores to begin with. An input is a store in
one piece (see `tests/store_checks.py`). How inputs are changed stands in `tests/store_changes.py`; `fuzz/mutations.py`
makes many more of the same changes, without coverage to guide them.
"""

import contextlib
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

from harness import instrument, load_core, run

load_core()
sys.path.append(str(Path(__file__).parents[1] / "tests"))

import store_changes  # noqa: E402
import store_checks  # noqa: E402
from rankwise.data.store import format as store_format  # noqa: E402
from rankwise.data.store import mapped  # noqa: E402
from rankwise.data.store import reading as store  # noqa: E402
from rankwise.data.store import regroup as store_regroup  # noqa: E402
from rankwise.data.text import query_ids as query_text  # noqa: E402
from rankwise.design import csr, fused  # noqa: E402
from rankwise.exceptions import InvalidInputError  # noqa: E402


def mutate(data, max_size, seed):
    rng = random.Random(seed)
    parts = None
    if rng.random() < 0.3:  # what the fuzzer keeps is mostly refused early
        data, parts = rng.choice(store_changes.whole())
    options, files, header = store_changes.mutate(
        data, parts, rng, lambda part: atheris.Mutate(part, max(len(part) + 64, 64))
    )
    try:
        return store_checks.put_together(options, files, store_checks.text_of(header))[:max_size]
    except RecursionError:
        return data


def one_input(data, folder):
    options, files, text = store_checks.take_apart(data)
    if options & store_checks.ON_DISK:
        store_checks.check_input(data, folder)
        return
    which = len(data) % len(store_checks.USES)  # all of them would take most of the time
    with contextlib.suppress(InvalidInputError):
        store_checks.use(store_changes.opened(options, files, text, folder), slice(which, which + 1))


def main():
    if sys.argv[1:2] == ["seed"]:
        for name, data in store_changes.make_whole():
            Path(sys.argv[2], name).write_bytes(data)
        return
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    root = Path(tempfile.mkdtemp(dir=memory))
    child = os.fork()  # fuzzing ends the process, and the files would stay
    if child:
        status = os.waitpid(child, 0)[1]
        shutil.rmtree(root)
        sys.exit(os.waitstatus_to_exitcode(status) != 0)
    folder = root / "store"
    folder.mkdir()
    (folder / store_format.HEADER).touch()  # opening looks whether it is there
    instrument(store, store_format, store_regroup, mapped, query_text, csr, fused)
    run(lambda data: one_input(data, folder), mutate)


if __name__ == "__main__":
    main()
