#!/usr/bin/env python3
"""Real data sets for the benchmarks, none of which is part of the repository.

The variable RANKWISE_DATA names a folder with one folder for each set, as `SETS` describes them. Sets that are absent
are left out by the benchmarks, which say so. ``python benchmarks/data.py`` compares the folder with the
sizes and checksums of the files that the figures were measured on.
"""

from __future__ import annotations

import gzip
import hashlib
import html
import os
import re
import sys
import zipfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from rankwise.data import load_svmlight


@dataclass(frozen=True)
class Source:
    """Files of a set (a pattern below RANKWISE_DATA), their bytes and SHA-256 in the order of their names."""

    files: str
    n_files: int
    n_bytes: int
    sha256: str
    origin: str


SETS = {
    "OHSUMED": Source(
        "OHSUMED/QueryLevelNorm/S*.txt.gz",
        5,
        1_656_497,
        "4b8f5e9d1b674c9b",
        "LETOR 3.0 (Microsoft Research), QueryLevelNorm",
    ),
    "boston-housing": Source(
        "boston-housing/*.csv", 1, 34_742, "d98212636026544f", "StatLib, as scikit-learn up to 1.1 shipped it"
    ),
    "jester": Source(
        "jester/jester-data-1.zip",
        1,
        3_400_621,
        "4adf783a1e03bd3b",
        "Jester 1, first of three parts (eigentaste.berkeley.edu)",
    ),
    "lightgbm-rank": Source(
        "lightgbm-rank/*", 4, 633_632, "ea158181e9d394f4", "LightGBM's repository, examples/lambdarank"
    ),
    "pmlb": Source(
        "pmlb-regression-ordinal/*.tsv.gz",
        20,
        6_161_648,
        "6437a6fe4a0849ab",
        "Penn Machine Learning Benchmarks (EpistasisLab/pmlb)",
    ),
    "rcv1-small": Source(
        "rcv1-vw-small/*", 3, 1_020_430, "2ad6dce3231edef5", "Vowpal Wabbit's repository, test/train-sets"
    ),
    "reuters21578": Source(
        "reuters21578/*",
        31,
        8_380_202,
        "d1af7cfceb46061d",
        "Reuters-21578, distribution 1.0 (D. Lewis; UCI repository)",
    ),
    "rlscore": Source(
        "rlscore-legacy/rank_*.light.gz",
        2,
        162_969,
        "5c1c585df19c6f19",
        "RLScore 0.5, data of its examples, and the output that its tutorials print",
    ),
    "receptors": Source(
        "rlscore-legacy/nr_*.txt",
        3,
        124_900,
        "8240aa2f907f4e0d",
        "Nuclear receptors (Yamanishi et al., 2008), as in RLScore",
    ),
    "MSLR-WEB30K": Source(
        "MSLR-WEB30K/Fold*/*.txt", 15, 0, "", "Microsoft Learning to Rank Datasets; not redistributable"
    ),
    "Yahoo-C14": Source("Yahoo-C14/set1.*.txt", 3, 0, "", "Yahoo! Webscope C14B, set 1; on request"),
    "Istella-S": Source(
        "Istella-S/*.txt", 3, 0, "", "Istella LETOR small (quickrank.isti.cnr.it); not redistributable"
    ),
}


def root() -> Path | None:
    """Return the folder of the data sets, if it is set."""
    path = os.environ.get("RANKWISE_DATA")
    return Path(path) if path else None


def files(name: str) -> list[Path]:
    """Return the files of a set that are there."""
    folder = root()
    return sorted(folder.glob(SETS[name].files)) if folder else []


def is_there(name: str) -> bool:
    """Say whether all files of a set are there, or the package that has it."""
    if name not in SETS:
        return find_spec(name) is not None
    return len(files(name)) >= SETS[name].n_files


def read_svmlight(paths: list[Path]) -> list[tuple]:
    """Read dense LETOR text, one ``(X, y, qid)`` for each file, all with the same columns."""
    parts = [load_svmlight(path) for path in paths]
    columns = max(X.shape[1] for X, _, _ in parts)
    return [
        (np.pad(X.toarray(), ((0, 0), (0, columns - X.shape[1]))), np.asarray(y, dtype=float), qid)
        for X, y, qid in parts
    ]


def join(parts: list[tuple]) -> tuple:
    """Return the rows of several parts as one ``(X, y, qid)``."""
    return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


@cache
def ohsumed() -> list[tuple]:
    """Return the five parts of OHSUMED: 16,140 rows of 45 columns together."""
    return read_svmlight(files("OHSUMED"))


def ohsumed_folds() -> list[tuple]:
    """Return LETOR's five folds: ``(train, validation, test)``, each ``(X, y, qid)``."""
    parts = ohsumed()
    turned = [parts[first:] + parts[:first] for first in range(5)]
    return [(join(own[:3]), own[3], own[4]) for own in turned]


def lightgbm_example() -> tuple:
    """Return LightGBM's ranking example, training and test rows together."""
    parts = []
    for at, part in enumerate(("train", "test")):
        [(X, y, _)] = read_svmlight(
            [path for path in files("lightgbm-rank") if path.name == f"rank.{part}.gz"]
        )
        sizes = np.loadtxt(root() / "lightgbm-rank" / f"rank.{part}.query", dtype=int)
        parts.append((X, y, np.repeat(np.arange(sizes.size), sizes) + 1000 * at))
    columns = max(X.shape[1] for X, _, _ in parts)
    return join([(np.pad(X, ((0, 0), (0, columns - X.shape[1]))), y, qid) for X, y, qid in parts])


def pmlb(name: str) -> tuple:
    """Return a table of PMLB as one ranking, rows in a random order."""
    with gzip.open(root() / "pmlb-regression-ordinal" / f"{name}.tsv.gz", "rt") as text:
        names = text.readline().strip().split("\t")
        table = np.loadtxt(text, delimiter="\t")
    table = table[np.random.default_rng(0).permutation(len(table))]
    target = names.index("target")
    return np.delete(table, target, axis=1), table[:, target], None


def housing() -> tuple:
    """Return 506 houses, shuffled as RLScore's tutorial does; the first 250 are for training."""
    table = np.loadtxt(files("boston-housing")[0], delimiter=",", skiprows=2)
    order = np.arange(len(table))
    np.random.RandomState(1).shuffle(order)
    return table[order, :-1], table[order, -1]


def jester() -> np.ndarray:
    """Return the ratings of 100 jokes by 24,983 users; NaN where a user did not rate."""
    with zipfile.ZipFile(files("jester")[0]) as archive, archive.open("jester-data-1.csv") as file:
        ratings = np.loadtxt(file, delimiter=",")[:, 1:]
    return np.where(ratings == 99, np.nan, ratings)


def parse_ranking() -> list[tuple]:
    """Return 100 + 100 candidate parses of 22 + 20 sentences: ``(X, y, qid)`` to train and to test on."""
    test, train = (load_svmlight(path, n_features=195_101) for path in files("rlscore"))
    return [train, test]


def rcv1_sample() -> tuple:
    """Return the documents of RCV1 that Vowpal Wabbit ships, each once: ``(X, y)``, CCAT against the rest."""
    seen, labels, start, indices, values = set(), [], [0], [], []
    for path in files("rcv1-small"):
        with gzip.open(path, "rt") as text:
            for line in text:
                head, _, cells = line.partition("|f")
                if cells in seen:
                    continue
                seen.add(cells)
                labels.append(float(head.split()[0]))
                entries = [cell.partition(":") for cell in cells.split()]
                indices += [int(column) for column, _, _ in entries]
                values += [float(value or 1) for _, _, value in entries]
                start.append(len(indices))
    _, columns = np.unique(indices, return_inverse=True)
    return sp.csr_matrix((values, columns, start)), np.array(labels)


def receptors() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return kernels of 54 drugs and of 26 targets, and which drug meets which target."""
    table, *kernels = (np.loadtxt(path) for path in files("receptors"))
    kernels = [(K + K.T) / 2 for K in kernels]
    drugs, targets = (K + max(0.0, 1e-6 - np.linalg.eigvalsh(K)[0]) * np.eye(len(K)) for K in kernels)
    return drugs, targets, table


@dataclass
class Reuters:
    """Reuters-21578: tf-idf rows of unit length, the topics of each document, and its side of the ModApte split."""

    X: sp.csr_matrix
    topics: list
    split: np.ndarray

    def labels(self, topic: str) -> np.ndarray:
        """Return 1 for documents of a topic, 0 for the rest."""
        return np.array([float(topic in topics) for topics in self.topics])


@cache
def reuters() -> Reuters:
    """Read the newswire and weigh its words."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

    document = re.compile(r"<REUTERS(.*?)>(.*?)</REUTERS>", re.DOTALL)
    texts, topics, split = [], [], []
    for part in files("reuters21578"):
        if not part.name.startswith("reut2-"):
            continue
        with gzip.open(part, "rt", encoding="latin-1") as file:
            for attributes, body in document.findall(file.read()):
                words = re.search(r"<TEXT.*?>(.*?)</TEXT>", body, re.DOTALL)
                texts.append(html.unescape(re.sub(r"<.*?>", " ", words.group(1) if words else "")))
                named = re.search(r"<TOPICS>(.*?)</TOPICS>", body).group(1)
                topics.append(re.findall(r"<D>(.*?)</D>", named))
                side = re.search(r'LEWISSPLIT="(.*?)"', attributes).group(1)
                is_used = 'TOPICS="YES"' in attributes and side in {"TRAIN", "TEST"}
                split.append(side.lower() if is_used else "unused")
    X = TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit_transform(texts)
    return Reuters(sp.csr_matrix(X), topics, np.array(split))


def main() -> int:
    """Print every set with its state, and fail on files that differ."""
    wrong = 0
    for name, source in SETS.items():
        paths = files(name)
        if not is_there(name):
            print(f"absent   {name}: {source.files} ({source.origin})")
            continue
        content = hashlib.sha256()
        for path in paths:
            content.update(path.read_bytes())
        size = sum(path.stat().st_size for path in paths)
        differs = bool(source.sha256) and (size, content.hexdigest()[:16]) != (source.n_bytes, source.sha256)
        wrong += differs
        state = "DIFFERS " if differs else "there   " if source.sha256 else "unchecked"
        print(
            f"{state} {name}: {len(paths)} files, {size:,} bytes, {content.hexdigest()[:16]} ({source.origin})"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
