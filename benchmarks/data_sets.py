"""Real data sets for the benchmarks, found through RANKWISE_DATA; none of them is part of the repository."""

from __future__ import annotations

import gzip
import html
import os
import re
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp


def root():
    """The folder of the data sets; without it a benchmark says so and stops."""
    path = os.environ.get("RANKWISE_DATA")
    if not path:
        sys.exit("skipped: set RANKWISE_DATA to the folder of the real data sets")
    return Path(path)


def available():
    """Whether RANKWISE_DATA is set."""
    return bool(os.environ.get("RANKWISE_DATA"))


def ohsumed(variant="QueryLevelNorm"):
    """The five parts of OHSUMED (LETOR 3.0): a list of ``(X, y, qid)``, 16,140 rows of 45 columns together."""
    parts = []
    for number in range(1, 6):
        y, qid, start, _, values = _read_svmlight(root() / "OHSUMED" / variant / f"S{number}.txt.gz")
        parts.append((values.reshape(y.size, start[1]), y, qid))
    return parts


def ohsumed_folds(variant="QueryLevelNorm"):
    """LETOR's five folds: ``(train, validation, test)``, each ``(X, y, qid)``."""
    parts = ohsumed(variant)
    for first in range(5):
        own = [parts[(first + step) % 5] for step in range(5)]
        train = tuple(np.concatenate(columns) for columns in zip(*own[:3], strict=True))
        yield train, own[3], own[4]


def jester():
    """Ratings of 100 jokes by 24,983 users; NaN where a user did not rate."""
    with (
        zipfile.ZipFile(root() / "jester" / "jester-data-1.zip") as archive,
        archive.open("jester-data-1.csv") as file,
    ):
        ratings = np.loadtxt(file, delimiter=",")[:, 1:]
    return np.where(ratings == 99, np.nan, ratings)


def parse_ranking():
    """100 + 100 candidate parses of 22 + 20 sentences: ``(X, y, qid)`` for training and for testing."""
    parts = [
        _read_svmlight(root() / "rlscore-legacy" / f"rank_{part}.light.gz") for part in ("train", "test")
    ]
    columns = max(indices.max() for _, _, _, indices, _ in parts) + 1
    return [
        (sp.csr_matrix((values, indices, start), shape=(y.size, columns)), y, qid)
        for y, qid, start, indices, values in parts
    ]


def _read_svmlight(path):
    y, qid, start, indices, values = [], [], [0], [], []
    with gzip.open(path, "rt") as text:
        for line in text:
            label, query, *entries = line.partition("#")[0].split()
            y.append(float(label))
            qid.append(query.removeprefix("qid:"))
            for entry in entries:
                column, value = entry.split(":")
                indices.append(int(column))
                values.append(float(value))
            start.append(len(indices))
    return np.array(y), np.array(qid), np.array(start), np.array(indices), np.array(values)


@dataclass
class Reuters:
    """Reuters-21578: tf-idf rows of unit length, the topics of each document, and its side of the ModApte split."""

    X: sp.csr_matrix
    topics: list
    split: np.ndarray

    def labels(self, topic):
        """1 for documents of a topic, 0 for the rest."""
        return np.array([float(topic in topics) for topics in self.topics])

    def largest_topics(self, count):
        """The topics with the most training documents."""
        names, sizes = np.unique(
            [
                t
                for topics, side in zip(self.topics, self.split, strict=True)
                if side == "train"
                for t in topics
            ],
            return_counts=True,
        )
        return names[np.argsort(-sizes, kind="stable")][:count].tolist()


def reuters():
    """Read the newswire and weigh its words."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

    document = re.compile(r"<REUTERS(.*?)>(.*?)</REUTERS>", re.DOTALL)
    texts, topics, split = [], [], []
    for part in sorted((root() / "reuters21578").glob("reut2-*.sgm.gz")):
        with gzip.open(part, "rt", encoding="latin-1") as file:
            for attributes, body in document.findall(file.read()):
                words = re.search(r"<TEXT.*?>(.*?)</TEXT>", body, re.DOTALL)
                texts.append(html.unescape(re.sub(r"<.*?>", " ", words.group(1) if words else "")))
                topics.append(
                    re.findall(r"<D>(.*?)</D>", re.search(r"<TOPICS>(.*?)</TOPICS>", body).group(1))
                )
                side = re.search(r'LEWISSPLIT="(.*?)"', attributes).group(1)
                modapte = 'TOPICS="YES"' in attributes and side in {"TRAIN", "TEST"}
                split.append(side.lower() if modapte else "unused")
    X = TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit_transform(texts)
    return Reuters(sp.csr_matrix(X), topics, np.array(split))
