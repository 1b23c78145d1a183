"""Coverage-guided fuzzing of `rankwise.load`: nothing but a model or a ModelFileError may come out of any bytes.

    python fuzz/model_files.py build/fuzz/models -runs=1000000
    python fuzz/model_files.py seed build/fuzz/models

`make fuzz` runs it with the sanitizers; `seed` writes whole models of all kinds to begin with. An input is a model file
without its checksum, which is put right before loading: else nothing would come past it. What loads is also used, so
that parts that do not fit together are seen by the compiled code. Three times in four a part of the header is replaced
by another part or by something odd, which changes of single bytes hardly ever do.
"""

import io
import random
import struct
import sys
from pathlib import Path

import atheris

from harness import alter, instrument, load_core, run

load_core()
sys.path.append(str(Path(__file__).parents[1] / "tests"))

import numpy as np  # noqa: E402
import scipy.sparse as sp  # noqa: E402
from sklearn.compose import ColumnTransformer  # noqa: E402
from sklearn.impute import MissingIndicator, SimpleImputer  # noqa: E402
from sklearn.pipeline import FeatureUnion, make_pipeline  # noqa: E402
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, StandardScaler  # noqa: E402

import rankwise  # noqa: E402
from model_checks import USES, check_input, put_together, taken_apart, without_checksum  # noqa: E402
from rankwise.persistence import container_reader, files, models, reader  # noqa: E402
from rankwise.preprocessing import QueryScaler  # noqa: E402

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


def make_whole():
    """Yield names and inputs of small models of all kinds."""
    X = np.random.default_rng(0).normal(size=(8, 3))
    y, qid = np.arange(8.0) % 3, [0, 0, 0, 0, 1, 1, 1, 1]
    sparse = sp.csr_matrix(np.maximum(X, 0.0))
    fitted = {name: getattr(rankwise, name)().fit(X, y, qid=qid) for name in models.RANKERS}
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
    for name, kind in models.SCALERS.items():
        if kind is not QueryScaler:  # it takes queries where it transforms
            step = together[name] if name in together else kind()
            fitted[name] = make_pipeline(step, rankwise.RankRLS()).fit(X, y)
    for name, model in fitted.items():
        stream = io.BytesIO()
        rankwise.save(model, stream)
        yield name, without_checksum(stream.getvalue())
    old = Path(__file__).parents[1] / "tests" / "persistence" / "format_1"
    for path in old.glob("*.rw"):
        yield f"old-{path.stem}", without_checksum(path.read_bytes())


def mutate(data, max_size, seed):
    rng = random.Random(seed)
    if rng.random() < 0.3:  # what the fuzzer keeps is mostly refused early
        data = rng.choice(WHOLE)
    if rng.random() < 0.25:
        return atheris.Mutate(data, max_size)
    try:
        header, description, rest = taken_apart(data)
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            alter(header, rng, ODD, NAMES)
        if rng.random() < 0.2:
            rest = atheris.Mutate(rest, max(len(rest) + 64, 64))
        return put_together(header, description, rest)[:max_size]
    except (ValueError, RecursionError, struct.error):
        return atheris.Mutate(data, max_size)


WHOLE = [data for _, data in make_whole()]


def one_input(data):
    which = len(data) // 64 % len(USES)  # all of them would take most of the time
    check_input(data, slice(which, which + 1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["seed"]:
        for name, data in make_whole():
            Path(sys.argv[2], name).write_bytes(data)
        sys.exit()
    instrument(container_reader, files, models, reader)
    run(one_input, mutate)
