"""Inputs that fuzzing kept, in one text file: an input a line, in hexadecimal, or compressed behind a ``z``."""

import base64
import zlib
from pathlib import Path


def read_corpus(path):
    """Return the inputs of a file, shortest first."""
    return [_decoded(line) for line in Path(path).read_text(encoding="ascii").split()]


def write_corpus(path, inputs, *, compressed):
    """Write inputs, each of them once."""
    kept = sorted(set(inputs) - {b""}, key=lambda data: (len(data), data))
    lines = [_packed(data) if compressed else data.hex() for data in kept]
    Path(path).write_text("".join(line + "\n" for line in lines), encoding="ascii")


def _packed(data):
    return "z" + base64.b64encode(zlib.compress(data, 9)).decode()


def _decoded(line):
    return zlib.decompress(base64.b64decode(line[1:])) if line[0] == "z" else bytes.fromhex(line)
