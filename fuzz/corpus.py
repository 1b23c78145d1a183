#!/usr/bin/env python3
"""A corpus as one text file, as the tests read it, or as a folder with one file per input, as fuzzers do.

python fuzz/corpus.py pack folder file
python fuzz/corpus.py unpack file folder
"""

import sys
from hashlib import sha256
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from fuzz_corpus import read_corpus, write_corpus


def pack(folder, file):
    write_corpus(file, (path.read_bytes() for path in Path(folder).iterdir()))


def unpack(file, folder):
    for data in read_corpus(file):
        Path(folder, sha256(data).hexdigest()[:20]).write_bytes(data)


if __name__ == "__main__":
    {"pack": pack, "unpack": unpack}[sys.argv[1]](*sys.argv[2:])
