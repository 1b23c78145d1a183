"""Stores that are damaged so that most come past the checksums: numbers of files, parts of the header, lengths.

They are opened from memory. That is several times as fast; and a file is mapped as whole pages, where a sanitizer
cannot see a read behind its end, but it sees one behind an array.
"""

import json
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import store_checks
from byte_changes import REALS, WHOLE_NUMBERS
from json_changes import alter, copied
from rankwise.data import save_store
from rankwise.data.store import format as store_format
from rankwise.data.store import reading as store

ODD = [
    None, True, False, 0, 1, -1, 2, 3, 4, 5, 6, 20, 2**31 - 1, 2**31, 2**61, 2**62, 2**64, 10**400, 1.5, 4.0, 48.0,
    float("nan"), float("inf"), -0.0, "", "x", "float32", "float64", "i", "f", "U", "rankwise store", [], {}, [[]],
    [[8, ""]], [[4, ""], [4, ""]], [[8.0, ""]], [[-8, ""], [16, ""]], [[True, ""]], ["8a"], {"a": 1}, [8, ""],
]  # fmt: skip
FILES = store_format.FILES + store_format.ITEM_FILES
NAMES = [*store_format.Header.__dataclass_fields__, *FILES, "checksum", "version"]
TYPES = dict(zip(FILES, ("f4", "i4", "i8", "f8", "i8", "S1", "i8", "S1", "i8"), strict=True))
TEXTS = [bytes([byte]) for byte in b"09-+.e_ #\n\0\xc3\xa9\xffna"]


def mutate(data, parts, rng, mutate_bytes):
    """Return the options, the files and the header of a changed input; parameters as in `model_changes.mutate`.

    Returns
    -------
    options : int
    files : dict of bytes
    header : dict, or bytes where it is no JSON object
    """
    files, header = taken_apart(data) if parts is None else parts
    if not isinstance(header, dict) or rng.random() < 0.05:
        return store_checks.take_apart(mutate_bytes(data))
    files, header = dict(files), copied(header)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 5])):
        kind = rng.random()
        if kind < 0.1:
            alter(header, rng, ODD, NAMES)
        elif kind < 0.7:
            name = rng.choice(list(files))
            length = len(files[name])
            files[name] = change(files[name], name, header.get("value_type"), rng, mutate_bytes)
            if len(files[name]) != length and rng.random() < 0.9:
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
    if rng.random() < 0.03:
        return options, files, mutate_bytes(json.dumps(header, separators=(",", ":")).encode())
    return options, files, header


def taken_apart(data):
    """Return the files and the header of an input; None for a header that is no JSON."""
    _, files, text = store_checks.take_apart(data)
    try:
        return files, json.loads(text)
    except (ValueError, RecursionError):
        return files, None


def change(content, name, value_type, rng, mutate_bytes):
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
        wanted = rng.choice({"i": WHOLE_NUMBERS, "f": REALS, "S": TEXTS}[kind.kind])
    if kind.kind == "i":
        fresh = (wanted % 2 ** (8 * width)).to_bytes(width, "little")
    else:
        with np.errstate(over="ignore"):
            fresh = np.array(wanted, dtype=kind).tobytes()
    how = rng.random()
    if how < 0.75:
        numbers[at : at + 1] = [fresh]
    elif how < 0.8:
        numbers.insert(at, fresh if rng.random() < 0.5 else near)
    elif how < 0.85:
        del numbers[at : at + rng.choice([1, 1, 2, 100])]
    elif how < 0.97 and numbers:
        other = rng.randrange(len(numbers))
        numbers[at], numbers[other] = numbers[other], numbers[at]
    else:
        return mutate_bytes(content)[: 1 << 12]
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


def opened(options, files, header, folder):
    """Open the store of an input from memory; there must be a header in the folder, whatever it holds."""
    text = store_checks.complete(options, files, header)
    Held.files = {**files, store_format.HEADER: text}
    vars(store).update(HELD)
    try:
        return store.open_store(folder, n_threads=1)
    finally:
        vars(store).update(ON_DISK)


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


@cache
def whole():
    """Return the inputs to begin with, and their parts."""
    return [(data, taken_apart(data)) for _, data in make_whole()]
