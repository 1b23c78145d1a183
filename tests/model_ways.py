"""Ways to read a model file, and bytes to read: shared by the tests of damage and of limits."""

import contextlib
import io
import os
import threading
from pathlib import Path

import numpy as np

import rankwise
from rankwise import RankRLS

OLD = Path(__file__).parent / "persistence" / "format_1"


def model_bytes(model=None, X=None):
    X = np.eye(3) if X is None else X
    stream = io.BytesIO()
    (model or RankRLS()).fit(X, np.arange(float(len(X)))).save(stream)
    return stream.getvalue()


def from_file(data, folder):
    path = folder / "model.rw"
    path.write_bytes(data)
    return rankwise.load(path)


def from_stream(data, folder):
    (folder / "model.rw").write_bytes(data)
    with (folder / "model.rw").open("rb") as stream:
        return rankwise.load(stream)


def from_pipe(data, folder):
    path = folder / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=write_ignoring_an_early_end, args=(path, data))
    writer.start()
    try:
        return rankwise.load(path)
    finally:
        writer.join()
        path.unlink()


def write_ignoring_an_early_end(path, data):
    with contextlib.suppress(BrokenPipeError):  # whoever sees that this is no model does not read on
        path.write_bytes(data)


WAYS = {
    "memory": lambda data, _: rankwise.load(io.BytesIO(data)),
    "file": from_file,
    "stream": from_stream,
    "pipe": from_pipe,
}


class Pipe(io.RawIOBase):
    """What cannot be sought in, and counts what is read from it; after its content come zeros without end."""

    def __init__(self, content, endless=False):
        self.left, self.taken, self.endless = memoryview(content), 0, endless

    def readable(self):
        return True

    def seekable(self):
        return False

    def read(self, size=-1):
        assert size >= 0, "all of it was asked for"
        found = bytes(self.left[:size])
        self.left = self.left[size:]
        if self.endless:
            found += bytes(size - len(found))
        self.taken += len(found)
        return found
