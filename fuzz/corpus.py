#!/usr/bin/env python3
"""A corpus as one text file, an input in hexadecimal a line, or as a folder with a file an input.

python fuzz/corpus.py pack folder file
python fuzz/corpus.py unpack file folder
"""

import sys
from hashlib import sha256
from pathlib import Path


def pack(folder, file):
    inputs = sorted(
        {path.read_bytes() for path in Path(folder).iterdir()}, key=lambda data: (len(data), data)
    )
    Path(file).write_text("".join(data.hex() + "\n" for data in inputs), encoding="ascii")


def unpack(file, folder):
    for line in Path(file).read_text(encoding="ascii").split():
        data = bytes.fromhex(line)
        Path(folder, sha256(data).hexdigest()[:20]).write_bytes(data)


if __name__ == "__main__":
    {"pack": pack, "unpack": unpack}[sys.argv[1]](*sys.argv[2:])
