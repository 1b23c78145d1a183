"""Small models of all kinds in files, changes of their JSON and arrays, and uses of a model that was loaded."""

import io
import json
import warnings
import zipfile
from functools import cache

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)

import rankwise
from byte_changes import REALS, WHOLE_NUMBERS
from json_changes import alter, copied
from rankwise.exceptions import RankwiseError
from rankwise.exporters import export
from rankwise.preprocessing import TableEncoder
from rankwise.report import Report

ODD = [
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**64, 10**20, -(2**63), 0.5, 1e308, "", "nan", "coef_", "RankRLS",
    [], {}, [0], [3], [2**40], [0, 2**40], {"$array": "coef_"}, {"$float": "nan"}, {"$tuple": [1, 2]},
    {"$dict": [[1, 2]]}, {"$numpy": "float32", "value": 1.5}, {"$objects": ["a"], "shape": [1]}, {"$range": [0, 9, 2]},
    {"$metric": "ndcg", "options": {"k": 3}}, {"$class": "Kernel", "parameters": {"name": "rbf"}, "attributes": {}},
    {"$class": "KFold", "parameters": {"n_splits": 3}}, {"$type": "float64"}, {"$slice": [0, 2, 1]},
]  # fmt: skip
NAMES = ["$array", "$tuple", "x_", "coef_", "$class", "n_features_in_", "n_threads", "_sklearn_output_config"]
TYPES = ["<f8", "<f4", "<i8", "<i4", "|u1", "|b1", "<U3", ">f8", "|S2", "<c16", "|O"]
SHAPES = [(), (0,), (3,), (8,), (2, 3), (3, 3), (0, 2**40), (2**62,), (-1,)]
X = np.random.default_rng(0).normal(size=(8, 3))
Y, QID = np.arange(8.0) % 3, np.repeat([0, 1], 4)
ROUNDED = np.round(X)
TABLE = pd.DataFrame({"size": X[:, 0], "colour": list("abcabcab")})


def saved(model):
    stream = io.BytesIO()
    rankwise.save(model, stream)
    return stream.getvalue()


def taken_apart(data):
    """Return the JSON and the other members of a model file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("model.json")), members


def put_together(header, members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo("model.json"), json.dumps(header))
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return stream.getvalue()


@cache
def whole():
    """Return the parts of small models of all kinds, by name."""
    columns = ColumnTransformer(
        [("n", make_pipeline(SimpleImputer(), StandardScaler()), [0, 1]), ("c", OneHotEncoder(), [2])]
    )
    models = {
        name: getattr(rankwise, name)()
        for name in (
            "AdditiveRanker",
            "KernelRankRLSCV",
            "KernelRankSVM",
            "KernelRankSVMCV",
            "RankRLS",
            "RankRLSCV",
            "RankSVMCV",
        )
    }
    models["mean"] = rankwise.AverageRanker(
        [rankwise.RankRLS(), make_pipeline(StandardScaler(), rankwise.RankSVM())]
    )
    models["surfaces"] = rankwise.AdditiveRanker(interactions=[(0, 1)])
    models["auto"] = rankwise.AutoRanker(methods=["rls", "curves"])
    models["basis"] = rankwise.KernelRankRLS("rbf", basis=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = {name: model.fit(X, Y, qid=QID) for name, model in models.items()}
        fitted["sparse"] = rankwise.KernelRankRLS("linear").fit(sp.csr_matrix(np.maximum(X, 0.0)), Y, qid=QID)
        fitted["precomputed"] = rankwise.KernelRankRLS("precomputed", basis=3).fit(X @ X.T, Y, qid=QID)
        fitted["encoder"] = make_pipeline(TableEncoder(min_rows=2), rankwise.RankRLS()).fit(TABLE, Y)
        fitted["table"] = rankwise.AutoRanker(methods=["rls"]).fit(TABLE, Y, qid=QID)
        for step in (
            columns, KBinsDiscretizer(3), SplineTransformer(), QuantileTransformer(), PowerTransformer(),
        ):  # fmt: skip
            rows = ROUNDED if step is columns else X
            fitted[type(step).__name__] = make_pipeline(step, rankwise.RankRLS()).fit(rows, Y)
        return {name: taken_apart(saved(model)) for name, model in fitted.items()}


def mutate(rng):
    """Return a model file whose JSON or arrays were changed, with sums that fit."""
    header, members = whole()[rng.choice(sorted(whole()))]
    header, members = copied(header), dict(members)
    if rng.random() < 0.35 and members:
        name = rng.choice(sorted(members))
        members[name] = _other_array(members[name], rng)
    else:
        for _ in range(rng.choice([1, 1, 1, 2, 4])):
            alter(header["model"], rng, ODD, NAMES)
    return put_together(header, members)


def _other_array(content, rng):
    """Cut an array, repeat it, put odd numbers into it, or let its header declare another type or shape."""
    if rng.random() < 0.25:
        array = np.load(io.BytesIO(content))
        if array.ndim:
            changed = rng.choice([array[:-1], np.concatenate([array, array]), array[:0]])
            stream = io.BytesIO()
            np.save(stream, changed)
            return stream.getvalue()
    start = content.index(b"\n") + 1
    if rng.random() < 0.6 and len(content) >= start + 8:
        at = start + 8 * rng.randrange((len(content) - start) // 8)
        number = (
            np.float64(rng.choice(REALS))
            if rng.random() < 0.5
            else np.uint64(rng.choice(WHOLE_NUMBERS) % 2**64)
        )
        return content[:at] + number.tobytes() + content[at + 8 :]
    kind, shape = rng.choice(TYPES), rng.choice(SHAPES)
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    size = np.dtype(kind).itemsize * int(np.prod(shape)) if max(shape, default=0) < 100 else 0
    return stream.getvalue() + content[start:].ljust(max(size, 0), b"\0")[: max(size, 0)]


def rows_for(model):
    """Return rows that the model takes: those of `whole`, or as many columns as it says."""
    if getattr(model, "feature_names_in_", None) is not None or (
        type(model) is Pipeline and not _is_foreign(model)
    ):
        return TABLE
    n_features = min(int(getattr(model, "n_features_in_", None) or 3), 1 << 12)
    return ROUNDED if n_features == 3 else np.linspace(-1.0, 1.0, 8 * n_features).reshape(8, n_features)


def _is_foreign(model):
    """Tell whether a pipeline has steps of scikit-learn."""
    return type(model) is Pipeline and any(
        type(step).__module__.startswith("sklearn.") for _, step in model.steps
    )


def use(model):
    """Predict with a model, export it, report it and save it.

    Predictions of a changed model may raise one of our errors, or one of scikit-learn's; descriptions of parts that do
    not belong together may raise any. Neither may end the process, nor take much time or memory.
    """
    rows = rows_for(model)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.predict(rows)
        except RankwiseError:
            pass
        except ValueError:  # scikit-learn's word for rows that a step does not know, or numbers that overflow
            assert _is_foreign(model)
        for way in (
            *(lambda target=target: export(model, target) for target in ("json", "python", "sqlite", "onnx")),
            lambda: Report(model, rows, np.arange(8.0), qid=QID).html(),
        ):
            try:
                way()
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001 - the trial of a model that is loaded is one prediction
                continue
        try:
            again = saved(model)
        except RankwiseError:
            return
        rankwise.load(io.BytesIO(again))
