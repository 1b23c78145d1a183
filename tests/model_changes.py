"""Model files that are damaged so that most come past the checksum: parts of the header, types, shapes, numbers."""

import io
import math
import struct
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler

import rankwise
from byte_changes import REALS, WHOLE_NUMBERS
from json_changes import alter, copied
from model_checks import put_together, taken_apart, without_checksum
from rankwise.persistence import models
from rankwise.persistence.container import ALIGNMENT
from rankwise.preprocessing import QueryScaler

ODD = [
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, 2**64, -(2**63), 0.5, 1e308, "", "nan", "C", "F", "<f8",
    "|b1", "<U3", "coef_", "RankRLS", "KernelRankRLS", "StandardScaler", [], {}, [0], [3], [2**40], [0, 2**40],
    {"$array": "coef_"}, {"$float": "nan"}, {"$tuple": [1, 2]}, {"$dict": [[1, 2]]},
    {"$numpy": "float32", "value": 1.5},
    {"$objects": {"shape": [1], "items": ["a"]}}, {"$range": [0, 9, 2]},
    {"$metric": {"name": "ndcg", "options": {"k": 3}}},
    {"$kernel": {"name": "rbf", "parameters": {"gamma": 0.5}}},
    {"$splitter": {"name": "KFold", "parameters": {"n_splits": 3}}},
    {"$sparse": {"kind": "csr_matrix", "shape": [3, 3], "data": {"$array": "coef_"}, "indices": {"$array": "i"},
                 "indptr": {"$array": "p"}}},
]  # fmt: skip
NAMES = ["$array", "$tuple", "x_", "coef_", "class", "requests", "output", "pipeline"]
TYPES = ["<f8", "<f4", "<i8", "<i4", "|u1", "|b1", "<U3", ">f8", "|S2", "<c16"]
AXES = [0, 1, 2, 3, 4, 7, 8, 9, 16]


def make_whole():
    """Yield names and inputs of small models of all kinds."""
    X = np.random.default_rng(0).normal(size=(8, 3))
    y, qid = np.arange(8.0) % 3, [0, 0, 0, 0, 1, 1, 1, 1]
    sparse = sp.csr_matrix(np.maximum(X, 0.0))
    parts = {"AverageRanker": [[rankwise.RankRLS(), make_pipeline(StandardScaler(), rankwise.RankSVM())]]}
    fitted = {
        name: getattr(rankwise, name)(*parts.get(name, ())).fit(X, y, qid=qid) for name in models.RANKERS
    }
    fitted["outputs"] = rankwise.RankRLS().fit(X, np.column_stack([y, -y]), qid=qid)
    fitted["sparse"] = rankwise.KernelRankRLS("linear").fit(sparse, y, qid=qid)
    fitted["basis"] = rankwise.KernelRankRLS("rbf", basis=4).fit(X, y, qid=qid)
    fitted["precomputed"] = rankwise.KernelRankRLS("precomputed", basis=3).fit(X @ X.T, y, qid=qid)
    beside = [
        ("a", make_pipeline(SimpleImputer(), StandardScaler())),
        ("b", OneHotEncoder(handle_unknown="ignore")),
    ]
    together = {
        "ColumnTransformer": ColumnTransformer([(*one, [0, 1]) for one in beside], remainder="passthrough"),
        "FeatureUnion": FeatureUnion(beside),
        "Pipeline": make_pipeline(SimpleImputer(), KBinsDiscretizer(3)),
        "MissingIndicator": MissingIndicator(features="all"),
    }
    for name, kind in models.TRANSFORMERS.items():
        if kind is not QueryScaler:  # it takes queries where it transforms
            step = together[name] if name in together else kind()
            fitted[name] = make_pipeline(step, rankwise.RankRLS()).fit(X, y)
    for name, model in fitted.items():
        stream = io.BytesIO()
        rankwise.save(model, stream)
        yield name, without_checksum(stream.getvalue())
    old = Path(__file__).parent / "persistence" / "format_1"
    for path in sorted(old.glob("*.rw")):
        yield f"old-{path.stem}", without_checksum(path.read_bytes())


@cache
def whole():
    """Return the inputs to begin with, and their parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer rows than quantiles
        return [(data, taken_apart(data)) for _, data in make_whole()]


def mutate(data, parts, rng, mutate_bytes):
    """Return a changed input.

    Parameters
    ----------
    data : bytes
    parts : tuple or None
        What `taken_apart` gives for it, where that is known.
    mutate_bytes : callable
        Changes bytes.
    """
    if rng.random() < 0.1:
        return mutate_bytes(data)
    try:
        header, description, rest = taken_apart(data) if parts is None else parts
        header = copied(header)
        kind = rng.random()
        if kind < 0.15:
            rest = retype(header, rest, rng)
        elif kind < 0.35:
            rest = renumber(rest, rng)
        elif kind < 0.37:
            rest = mutate_bytes(rest)
        if kind >= 0.3:
            # What is said of the arrays is compared first of all, and refused where it does not fit.
            index = header.pop("arrays") if rng.random() < 0.9 else None
            for _ in range(rng.choice([1, 1, 1, 2, 4])):
                alter(header, rng, ODD, NAMES)
            if index is not None:
                header["arrays"] = index
        return put_together(header, description, rest)
    except (ValueError, TypeError, AttributeError, RecursionError, struct.error):
        return mutate_bytes(data)


def retype(header, rest, rng):
    """Give an array another type or shape, and the bytes that it takes then; where the others begin is left true."""
    place = rng.randrange(len(header["arrays"]))
    parts = []
    for at, entry in enumerate(header["arrays"]):
        is_old = isinstance(entry, dict)
        kind, shape = (entry["dtype"], entry["shape"]) if is_old else entry[1:3]
        size = _room(kind, shape)
        content, rest = rest[:size], rest[size:]
        if at == place:
            if rng.random() < 0.5:
                kind = rng.choice(TYPES)
            if rng.random() < 0.6 or not shape:
                shape = [rng.choice(AXES) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
            if is_old:
                entry.update(dtype=kind, shape=shape)
            else:
                entry[1:3] = kind, shape
            size = _room(kind, shape)
            content = (content or bytes(8)) * (size // max(1, len(content)) + 1)
        parts.append(content[:size])
    return b"".join(parts) + rest


def _room(kind, shape):
    return -(-math.prod(shape) * np.dtype(kind).itemsize // ALIGNMENT) * ALIGNMENT


def renumber(rest, rng):
    """Put an odd number in the place of one of an array."""
    rest = bytearray(rest)
    for _ in range(rng.choice([1, 1, 2])):
        at = 8 * rng.randrange(max(1, len(rest) // 8))
        number = (
            struct.pack("<d", rng.choice(REALS))
            if rng.random() < 0.5
            else (rng.choice(WHOLE_NUMBERS) % 2**64).to_bytes(8, "little")
        )
        rest[at : at + 8] = number[: len(rest) - at]
    return bytes(rest)
