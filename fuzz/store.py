#!/usr/bin/env python3
"""Coverage-guided fuzzing of `open_store`: damaged stores raise InvalidInputError, or can be used whole.

    python fuzz/store.py build/fuzz/stores -runs=1000000
    python fuzz/store.py seed build/fuzz/stores

`make fuzz` runs it with the sanitizers; `seed` writes small whole stores to begin with. An input is a store in one
piece (see `tests/store_checks.py`). A change is one of a number in a file, of a part of the header, or of a file's
length, which the header then says or not.

Most inputs are opened from memory. That is several times as fast; and a file is mapped as whole pages, where the
sanitizer cannot see a read behind its end, but it sees one behind an array.
"""

import contextlib
import json
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

from harness import alter, instrument, load_core, run

load_core()
sys.path.append(str(Path(__file__).parents[1] / "tests"))

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402

import store_checks  # noqa: E402
from rankwise.data import save_store  # noqa: E402
from rankwise.data.store import format as store_format  # noqa: E402
from rankwise.data.store import mapped  # noqa: E402
from rankwise.data.store import reading as store  # noqa: E402
from rankwise.data.store import regroup as store_regroup  # noqa: E402
from rankwise.data.text import query_ids as query_text  # noqa: E402
from rankwise.design import csr, fused  # noqa: E402
from rankwise.exceptions import InvalidInputError  # noqa: E402

ODD = [
    None, True, False, 0, 1, -1, 2, 3, 4, 5, 6, 20, 2**31 - 1, 2**31, 2**61, 2**62, 2**64, 10**400, 1.5, 4.0, 48.0,
    float("nan"), float("inf"), -0.0, "", "x", "float32", "float64", "i", "f", "U", "rankwise store", [], {}, [[]],
    [[8, ""]], [[4, ""], [4, ""]], [[8.0, ""]], [[-8, ""], [16, ""]], [[True, ""]], ["8a"], {"a": 1}, [8, ""],
]  # fmt: skip
FILES = store_format.FILES + store_format.ITEM_FILES
NAMES = [*store_format.Header.__dataclass_fields__, *FILES, "checksum", "version"]
TYPES = dict(zip(FILES, ("f4", "i4", "i8", "f8", "i8", "S1", "i8", "S1", "i8"), strict=True))
INTEGERS = [
    *range(-2, 6),
    *(sign * 2**power for power in (30, 31, 32, 62) for sign in (-1, 1)),
    2**31 - 1,
    2**63 - 1,
]
REALS = [0.0, -0.0, 1.0, -1.0, 1e-320, 1e38, 1e308, -1e308, float("nan"), float("inf"), -float("inf")]
TEXTS = [bytes([byte]) for byte in b"09-+.e_ #\n\0\xc3\xa9\xffna"]


def mutate(data, max_size, seed):
    rng = random.Random(seed)
    # What the fuzzer keeps is mostly refused early; from a whole store a change or two goes further.
    whole = rng.random() < 0.3
    _, files, text = store_checks.take_apart(rng.choice(WHOLE) if whole else data)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or rng.random() < 0.05:
        return atheris.Mutate(data, max_size)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 6])):
        kind = rng.random()
        if kind < 0.2:
            alter(header, rng, ODD, NAMES)
        elif kind < 0.7:
            name = rng.choice(list(files))
            length = len(files[name])
            files[name] = change(files[name], name, header.get("value_type"), rng)
            if len(files[name]) != length and rng.random() < 0.8:
                say_sizes(header, files)
        elif kind < 0.85:
            grow(header, files, rng)
        else:
            split(header, rng)
    # Rarely, for a header that does not fit ends it all, and the disk is slow.
    options = sum(
        option
        for option, share in (
            (store_checks.WRONG_HEADER, 0.02),
            (store_checks.WRONG_FILES, 0.03),
            (store_checks.ON_DISK, 0.004),
        )
        if rng.random() < share
    )
    try:
        text = json.dumps(header, separators=(",", ":")).encode()
    except RecursionError:
        return data
    if rng.random() < 0.03:
        text = atheris.Mutate(text, len(text) + 64)
    return store_checks.put_together(options, files, text)[:max_size]


def change(content, name, value_type, rng):
    """Replace, insert, drop or move a number of a file."""
    kind = np.dtype("f8" if name == "values.bin" and value_type == "float64" else TYPES[name])
    width, at = kind.itemsize, 0
    numbers = [content[i : i + width] for i in range(0, len(content), width)]
    if numbers:
        at = rng.randrange(len(numbers))
    near = numbers[at] if numbers else bytes(width)
    if kind.kind == "i" and len(near) == width and rng.random() < 0.5:
        wanted = int.from_bytes(near, "little", signed=True) + rng.choice([-2, -1, 1, 2])
    else:
        wanted = rng.choice({"i": INTEGERS, "f": REALS, "S": TEXTS}[kind.kind])
    if kind.kind == "i":
        fresh = (wanted % 2 ** (8 * width)).to_bytes(width, "little")
    else:
        with np.errstate(over="ignore"):
            fresh = np.array(wanted, dtype=kind).tobytes()
    how = rng.random()
    if how < 0.5:
        numbers[at : at + 1] = [fresh]
    elif how < 0.65:
        numbers.insert(at, fresh if rng.random() < 0.5 else near)
    elif how < 0.8:
        del numbers[at : at + rng.choice([1, 1, 2, 100])]
    elif how < 0.9 and numbers:
        other = rng.randrange(len(numbers))
        numbers[at], numbers[other] = numbers[other], numbers[at]
    else:
        return atheris.Mutate(content, max(len(content) + 16, 16))
    return b"".join(numbers)[: 1 << 12]


def grow(header, files, rng):
    """Add an entry to the last row, a row to the last query, or a query; what was whole stays so."""
    what = rng.random()
    if what < 0.4:
        number = "f4" if header.get("value_type") == "float32" else "f8"
        files["values.bin"] += np.array(rng.choice(REALS[:4]), number).tobytes()
        files["columns.bin"] += rng.randrange(4).to_bytes(4, "little")
        files["row_start.bin"] = raised(files["row_start.bin"])
    else:
        files["row_start.bin"] += files["row_start.bin"][-8:]
        files["labels.bin"] += np.array(float(rng.randrange(3))).tobytes()
        if "item_text_end.bin" in files:
            files["item_text.bin"] += b"%d" % rng.randrange(10)
            files["item_text_end.bin"] += raised(files["item_text_end.bin"])[-8:]
        if what < 0.7 and files["query_text_end.bin"]:
            files["query_start.bin"] = raised(files["query_start.bin"])
        elif files["query_text_end.bin"]:
            files["query_start.bin"] += raised(files["query_start.bin"])[-8:]
            files["query_text.bin"] += b"%d" % rng.randrange(10)
            files["query_text_end.bin"] += raised(files["query_text_end.bin"])[-8:]
    say_sizes(header, files)


def raised(numbers):
    """Add one to the last of some numbers."""
    last = int.from_bytes(numbers[-8:], "little") + 1
    return numbers[:-8] + (last % 2**64).to_bytes(8, "little")


def split(header, rng):
    """Give a part of a segment a checksum of its own."""
    listed = header.get("files")
    segments = listed.get(rng.choice(FILES)) if isinstance(listed, dict) else None
    if not isinstance(segments, list) or not segments or not isinstance(segments[-1], list):
        return
    size = (*segments[-1], None)[0]
    if type(size) is int and 0 < size < 1 << 16:
        first = rng.randrange(size + 1)
        segments[-1:] = [[first, ""], [size - first, ""]]


def say_sizes(header, files):
    """Make the header fit the lengths of the files."""
    header["files"] = {name: [[len(content), ""]] for name, content in files.items()}
    header["rows"] = len(files["labels.bin"]) // 8
    header["entries"] = len(files["columns.bin"]) // 4
    header["queries"] = len(files["query_text_end.bin"]) // 8


class Held(store._Folder):
    """A folder in memory."""

    files = {}  # noqa: RUF012 - one at a time

    def __init__(self, path):
        self._path = path
        self._descriptor = None

    def read(self, name):
        return self.files[name]

    def map(self, name, size):
        content = self.files[name]
        if len(content) != size:
            raise store_format.damaged(self._path, f"{name} has another size")
        return np.array(np.frombuffer(content, dtype=np.uint8))


class Inline:
    """An executor that starts no threads."""

    def __init__(self, n_threads):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    map = map


ON_DISK = {"_Folder": store._Folder, "ThreadPoolExecutor": store.ThreadPoolExecutor}
HELD = {"_Folder": Held, "ThreadPoolExecutor": Inline}


def one_input(data, folder):
    options, files, text = store_checks.take_apart(data)
    on_disk = options & store_checks.ON_DISK
    vars(store).update(ON_DISK if on_disk else HELD)
    if on_disk:
        store_checks.check_input(data, folder)
        return
    Held.files = {**files, store_format.HEADER: store_checks.complete(options, files, text)}
    which = len(data) % len(store_checks.USES)  # all of them would take most of the time
    with contextlib.suppress(InvalidInputError):
        store_checks.use(store.open_store(folder, n_threads=1), slice(which, which + 1))


def make_whole():
    """Yield names and inputs of small stores of all kinds."""
    X = sp.csr_matrix(np.array([[1.0, 0, 2], [0, 0, 0], [0, 3, 0], [4, 5, 6], [0, 0, 0], [0, 7, 0]]))
    y = np.array([1.0, 0, 2, 1, 1, 0])
    ids = {
        "none": None,
        "int": np.array([3, 3, 3, -1, -1, 20]),
        "real": np.array([0.5, 0.5, 2.0, 2.0, 2.0, 1e9]),
        "text": np.array(["a", "a", "bé", "bé", "bé", "c d"]),
        "one": np.zeros(6, dtype=int),
    }
    with tempfile.TemporaryDirectory() as aside:
        for kind, qid in ids.items():
            for dtype in ("f4", "f8"):
                path = Path(aside, f"{kind}-{dtype}")
                save_store([(X, y, qid)], path, dtype=dtype, zero_based=kind == "int", missing="nan")
                yield path.name, store_checks.input_of(path)
        for name, block in {
            "no-columns": (np.zeros((3, 0)), y[:3]),
            "no-entries": (np.zeros((3, 2)), y[:3], [1, 1, 2]),
            "nan": (np.array([[np.nan, 1.0], [0.0, 2.0]]), y[:2]),
            "one-row": (np.ones((1, 1)), y[:1], ["q"]),
            "items": (np.eye(4), y[:4], [1, 1, 2, 2], ["a", "", "bé", "c d"]),
            "items-none": (np.ones((2, 2)), y[:2], None, ["a", "b"]),
        }.items():
            save_store([block], Path(aside, name), missing="nan")
            yield name, store_checks.input_of(Path(aside, name))


WHOLE = [data for _, data in make_whole()]


def main():
    if sys.argv[1:2] == ["seed"]:
        for name, data in make_whole():
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
