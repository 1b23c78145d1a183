"""Inputs that fuzzing kept, in one text file: one input per line, in hexadecimal."""

from pathlib import Path


def read_corpus(path):
    """Return the inputs of a file, shortest first."""
    return [bytes.fromhex(line) for line in Path(path).read_text(encoding="ascii").split()]


def write_corpus(path, inputs):
    """Write inputs, each of them once."""
    kept = sorted(set(inputs) - {b""}, key=lambda data: (len(data), data))
    Path(path).write_text("".join(f"{data.hex()}\n" for data in kept), encoding="ascii")
