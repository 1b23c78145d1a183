#!/usr/bin/env python3
"""Damaged stores, found by coverage: run by `make fuzz` with atheris.

An input says what to do to a store that is whole: bytes changed, cut off or added in its files, fields of its header
replaced, with checksums made to fit again or not. Opening it must raise InvalidInputError, or give a store every
part of which can be used.

    python fuzz/store.py [corpus folder] [-runs=1000000]
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["rankwise"]):
    import numpy as np
    import scipy.sparse as sp

    from rankwise import _core
    from rankwise.data import open_store, store_format, write_store
    from rankwise.exceptions import InvalidInputError

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
ROOT = Path(tempfile.mkdtemp(dir=MEMORY))
FOLDER = ROOT / "store"
ODD = [
    0,
    1,
    -1,
    2,
    3,
    20,
    2**31,
    2**62,
    2**64,
    1.5,
    "x",
    "",
    None,
    [],
    {},
    True,
    "float32",
    "float64",
    "i",
    "f",
    "U",
]


def make():
    rng = np.random.default_rng(0)
    X = sp.random(20, 5, density=0.5, random_state=0, format="csr", dtype=np.float32)
    qid = np.array(["3", "1", "a", "bé"])[np.sort(rng.integers(4, size=20))]
    write_store(FOLDER, [(X, rng.integers(3, size=20), qid)], dtype=np.float32)
    return {path.name: path.read_bytes() for path in FOLDER.iterdir()}


WHOLE = make()


def damage(fuzz):
    """Return the files of a damaged store."""
    files = dict(WHOLE)
    header = json.loads(files["header.json"])
    for _ in range(fuzz.ConsumeIntInRange(1, 4)):
        name = store_format.FILES[fuzz.ConsumeIntInRange(0, len(store_format.FILES) - 1)]
        what = fuzz.ConsumeIntInRange(0, 4)
        content = bytearray(files[name])
        at = fuzz.ConsumeIntInRange(0, len(content))
        if what == 0:
            content[at : at + 8] = fuzz.ConsumeBytes(8)
        elif what == 1:
            del content[at:]
        elif what == 2:
            content += fuzz.ConsumeBytes(16)
        elif what == 3:
            key = list(header)[fuzz.ConsumeIntInRange(0, len(header) - 1)]
            header[key] = ODD[fuzz.ConsumeIntInRange(0, len(ODD) - 1)]
        else:
            files["header.json"] = bytes(fuzz.ConsumeBytes(64))
            return files
        files[name] = bytes(content)
    if fuzz.ConsumeBool():  # checksums that fit, so that what lies behind them is reached
        if isinstance(header.get("files"), dict):
            for name in store_format.FILES:
                content = np.frombuffer(files[name], dtype=np.uint8)
                header["files"][name] = [[content.size, f"{_core.checksum(content):016x}"]]
        header.pop("checksum", None)
        header["checksum"] = store_format._own_checksum(header)
    files["header.json"] = json.dumps(header).encode()
    return files


def use(store):
    """Touch everything that a store offers."""
    n_rows, n_columns = store.X.shape
    assert (store.X @ np.ones(n_columns)).shape == (n_rows,)
    assert store.y.size == n_rows
    qid = store.qid
    assert qid is None or qid.size == n_rows
    assert sum(X.shape[0] for X, _, _ in store.blocks(200)) == n_rows


def test_one_input(data):
    for name, content in damage(atheris.FuzzedDataProvider(data)).items():
        (FOLDER / name).write_bytes(content)
    try:
        store = open_store(FOLDER, n_threads=1)
        use(store)
    except InvalidInputError:
        pass


if __name__ == "__main__":
    try:
        atheris.Setup(sys.argv, test_one_input)
        atheris.Fuzz()
    finally:
        shutil.rmtree(ROOT, ignore_errors=True)
