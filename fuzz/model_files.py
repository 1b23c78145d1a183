"""Coverage-guided fuzzing of `rankwise.load`: nothing but a model or a ModelFileError may come out of any bytes.

    pip install 'rankwise[fuzz]'
    python fuzz/model_files.py build/fuzz/models tests/persistence/corpus -runs=1000000 -rss_limit_mb=2048

An input is a model file without its checksum, which is put right before loading: else nothing would come past it. What
loads is also asked to predict, so that parts that do not fit together are seen by the compiled code. Three times in
four a part of the header is replaced by another part or by something odd, which changes of single bytes hardly ever do.
"""

import hashlib
import inspect
import io
import json
import random
import sys
import warnings

import atheris
import numpy as np

import rankwise
from rankwise.exceptions import ModelFileError
from rankwise.persistence import container, files, models, values

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


def instrument(module):
    """Count the branches of a module's functions; an editable install hides its imports from the usual way."""
    for thing in list(vars(module).values()):
        if getattr(thing, "__module__", None) != module.__name__:
            continue
        for function in vars(thing).values() if isinstance(thing, type) else [thing]:
            if inspect.isfunction(function):
                atheris.instrument_func(function)


def places(value):
    """Every place of a JSON value, as a container and a key."""
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def mutate(data, max_size, seed):
    rng = random.Random(seed)
    length = int.from_bytes(data[12:16], "little")
    if rng.random() < 0.25:
        return atheris.Mutate(data, max_size)
    try:
        header = json.loads(data[16 : 16 + length])
        spots = list(places(header))
        rng.choice(spots)
    except (ValueError, IndexError, RecursionError):
        return atheris.Mutate(data, max_size)
    rest = data[16 + length :]
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        parent, key = rng.choice(spots)
        kind = rng.random()
        try:
            if kind < 0.2 and isinstance(parent, dict):
                other, at = rng.choice(spots)
                name = rng.choice([str(at), "$array", "$tuple", "x_", "coef_", "class"])
                parent[name] = json.loads(json.dumps(other[at]))
            elif kind < 0.3:
                del parent[key]
            elif kind < 0.6:
                other, at = rng.choice(spots)
                parent[key] = json.loads(json.dumps(other[at]))
            elif kind < 0.7 and isinstance(parent, dict):
                parent[rng.choice(["$" + str(key), str(key) + "_", "requests", "output", "pipeline"])] = (
                    parent.pop(key)
                )
            else:
                parent[key] = json.loads(json.dumps(rng.choice(ODD)))
        except (KeyError, IndexError, ValueError, RecursionError):
            continue
    if rng.random() < 0.2:
        rest = atheris.Mutate(rest, max(len(rest) + 64, 64))
    return assemble(header, rest)[:max_size]


def assemble(header, rest):
    text = json.dumps(header).encode()
    text += b" " * (-(16 + len(text)) % 64)
    return b"RANKWISE\x01\0\0\0" + len(text).to_bytes(4, "little") + text + rest


def one_input(data):
    try:
        model = rankwise.load(io.BytesIO(data + hashlib.sha256(data).digest()))
    except ModelFileError:
        return
    try:
        n_features = getattr(model, "n_features_in_", 3)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.predict(np.ones((2, n_features)))
            model.get_params()
    except Exception:  # noqa: BLE001 - a model of nonsense may refuse to predict; it may not crash
        pass


if __name__ == "__main__":
    for part in (container, files, models, values):
        instrument(part)
    atheris.Setup(sys.argv, one_input, custom_mutator=mutate)
    atheris.Fuzz()
