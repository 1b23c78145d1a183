"""Every public function, and every method of public classes, with arguments that are right, and values that are not.

What is called is found from the modules' own lists of names, so that what is added to them is attacked as well.
"""

import copy
import functools
import importlib
import inspect
import io
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from rankwise import AdditiveRanker, AutoRanker, RankRLS, RankRLSCV, RankSVM
from rankwise.data import TableWriter, open_store, save_store, save_svmlight
from rankwise.metrics import auc_estimate, get_metric
from rankwise.model_selection import predict_scores
from rankwise.report import Report

MODULES = (
    "rankwise",
    "rankwise.data",
    "rankwise.displays",
    "rankwise.explanations",
    "rankwise.exporters",
    "rankwise.metrics",
    "rankwise.model_selection",
    "rankwise.permutation",
    "rankwise.persistence",
    "rankwise.preprocessing",
    "rankwise.report",
)
# Made by the library for its users to read, and what stands behind `export`: nothing from outside reaches their making.
NOT_CALLED = {
    *("AucEstimate", "Comparison", "Evaluator", "Explanation", "FeatureImportance", "Interval", "JudgedRuns"),
    *(
        "Metric",
        "Part",
        "PerQuery",
        "PermutationTest",
        "PreferenceTable",
        "SinglePrecision",
        "Store",
        "Table",
    ),
    *("METRICS", "TARGETS", "check_exportable", "export_formula", "exportable_to"),
    *("__version__", "keep_on_interrupt"),  # no arguments
}
# Methods between rooms, and one for scores that were validated.
OWN = {"evaluate", "item_texts", "keep", "keep_encoder", "of_fitted", "prepare", "read", "written"}

N_ROWS = 16
X = np.random.default_rng(0).normal(size=(N_ROWS, 2))
Y = np.arange(N_ROWS) % 3.0
QID = np.arange(N_ROWS) // 3
PAIRS = np.array([[2, 1], [5, 4], [8, 9], [11, 3], [14, 12], [2, 0], [7, 6]])
# What an argument of a name is, wherever it has no default, and the first ones in any case.
DATA = {"X": X, "y": Y, "qid": QID, "y_true": Y, "scores": X[:, 0]}
RIGHT = DATA | {
    "pairs": PAIRS,
    "first": X[:, 0],
    "second": X[:, 1],
    "metric": "ndcg",
    "name": "ndcg@3",
    "values": Y,
    "differences": Y - 1,
    "p_values": [0.01, 0.2, 1.0],
    "estimator": RankRLS(),
    "i": 0,
    "j": 1,
    "format": "python",
    "alpha": 1.0,
    "comments": ["docid = a", ""],
    "runs": [{"q": {"a": 1.0, "b": 2.0}}],
    "judgements": {"q": {"a": 1.0}},
    "session": QID,
    "position": np.arange(N_ROWS) % 4,
    "clicked": Y > 1,
    "preferred": X[:8],
    "rejected": X[8:],
    "items": [str(at) for at in range(N_ROWS)],
    "ranks": list(range(1, N_ROWS + 1)),
    "tag": "mine",
}
FILES = {
    "load": {"path": "model.rw"},
    "read_header": {"path": "model.rw"},
    "open_store": {"path": "rows.store"},
    "load_run": {"path": lambda: io.BytesIO(b"q1 Q0 a 1 0.9 mine\n")},
    "load_judgements": {"path": lambda: io.BytesIO(b"q1 0 a 2\n")},
    "load_svmlight": {"paths": "rows.txt"},
    "iter_svmlight": {"paths": "rows.txt"},
    "load_table": {"source": "rows.csv"},
    "iter_table": {"source": "rows.csv"},
    "load_preferences": {"pairs": "duels.csv", "items": "items.csv"},
    "save": {"path": "made.rw"},
    "save_run": {"path": "made.run"},
    "save_store": {"source": "rows.txt", "path": "made.store", "qid": "qid"},
    "save_svmlight": {"path": "made.txt"},
    "save_table": {"path": "made.csv"},
    "TableWriter": {"path": "made.parquet"},
}
FILES["auc"] = FILES["auc_estimate"] = {"y_true": Y > 0}
FILES["load_table"] |= {"qid": "qid"}
FILES["iter_table"] |= {"qid": "qid"}
FILES["export"] = {"qid": "qid"}
FILES["many"] = {"scores": X}
QUICK = {
    "max_iter": 30,
    "cv": 2,
    "alphas": [0.1, 1.0],
    "methods": ["rls"],
    "scalings": ["none"],
    "interactions": 1,
    "n_knots": 3,
}


@dataclass(frozen=True)
class Call:
    """Something to call, and arguments by name that are right; the others have defaults."""

    name: str
    function: Any
    right: dict[str, Any] = field(default_factory=dict)

    @property
    def parameters(self):
        """The arguments by name."""
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        every = inspect.signature(self.function).parameters.values()
        return {one.name: one for one in every if one.kind in kinds}

    def __call__(self, wrong):
        """Call it with some arguments wrong; use what is made lazily."""
        given = {name: value() if callable(value) else value for name, value in self.right.items()} | wrong
        result = self.function(**given)
        return list(result) if inspect.isgenerator(result) else result

    def with_right(self):
        """Return the same with every argument that needs one."""
        right = {
            name: self.right[name] if name in self.right else RIGHT.get(name)
            for name, parameter in self.parameters.items()
            if name in self.right or name in DATA or parameter.default is inspect.Parameter.empty
        }
        return Call(self.name, self.function, right)

    def __str__(self):
        return self.name


def make_files(folder):
    """Write the files that arguments name."""
    save_svmlight(X, Y, folder / "rows.txt", qid=QID)
    save_store(folder / "rows.txt", folder / "rows.store")
    rows = pd.DataFrame({"label": Y, "qid": QID, "a": X[:, 0], "b": X[:, 1]})
    rows.to_csv(folder / "rows.csv", index=False)
    pd.DataFrame({"id": ["a", "b", "c"], "price": [1, 3, 0.5]}).to_csv(folder / "items.csv", index=False)
    pd.DataFrame({"winner": ["a", "b"], "loser": ["b", "c"]}).to_csv(folder / "duels.csv", index=False)
    RankRLS().fit(X, Y, QID).save(folder / "model.rw")


def calls():
    """Return everything that is attacked; files are those of the present folder."""
    found, seen = [], set(NOT_CALLED)
    model = RankRLSCV([0.1, 1.0], cv=2).fit(X, Y, QID)
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            if name not in seen:
                seen.add(name)
                found += _calls_of(name, getattr(module, name), {"model": model} | FILES.get(name, {}))
    results = (auc_estimate(Y > 0, X), get_metric("ndcg").prepare(Y, None), open_store("rows.store"))
    for result in results:
        found += _methods(type(result), result)
    return [call.with_right() for call in found]


def _calls_of(name, public, right):
    if name.endswith("Display"):
        chooser = {"CurvesDisplay": AdditiveRanker(), "LeaderboardDisplay": AutoRanker(methods=["rls"], cv=2)}
        fitted = chooser.get(name, RankRLSCV([0.1, 1.0], cv=2)).fit(X, Y, QID)
        return [Call(name, public.from_estimator, {"estimator": fitted})]
    if name == "Report":
        return [Call(name, _as(public, lambda **given: Report(**given).html()), right)]
    if name == "TableWriter":
        return [
            Call(name, _as(public, lambda **given: _write(given, {"X": X, "y": Y})), right),
            Call(
                "TableWriter.write",
                _as(TableWriter.write, lambda **given: _write({"path": "made.parquet"}, given)),
            ),
        ]
    if name.endswith("KFold"):
        rows = PAIRS if name.startswith("Preference") else X
        return [
            Call(
                name, _as(public, lambda **given: list(public(**given).split(rows, groups=QID[: len(rows)])))
            ),
            Call(f"{name}.split", public(2).split, {"X": rows, "groups": QID[: len(rows)]}),
        ]
    if inspect.isclass(public) and hasattr(public, "fit"):
        make = _as(public, lambda **given: _fit(public(**_quick(public) | given)))
        by_pairs = {"predict_pairs_proba"}  # which takes a fit of pairs
        found = [call for call in _methods(public, make()) if call.name.split(".")[1] not in by_pairs]
        if hasattr(public, *by_pairs):
            fitted = public(**_quick(public)).fit_pairs(X, PAIRS)
            found += [call for call in _methods(public, fitted) if call.name.split(".")[1] in by_pairs]
        return [Call(name, make), *found]
    return [Call(name, public, right)]


def _as(public, function):
    """Give a function the arguments of another."""
    signature = inspect.signature(public)
    function.__signature__ = signature.replace(
        parameters=[one for one in signature.parameters.values() if one.name != "self"]
    )
    return function


def _write(making, writing):
    with TableWriter(**making) as writer:
        writer.write(**writing)


def _quick(cls):
    """Return arguments that make one of a class that does not take long."""
    options = {name: value for name, value in QUICK.items() if name in inspect.signature(cls).parameters}
    return options | (
        {"rankers": (RankRLS(), RankSVM(max_iter=30))} if cls.__name__ == "AverageRanker" else {}
    )


def _fit(model):
    takes_queries = "qid" in inspect.signature(type(model).fit).parameters
    model.fit(X, Y, **({"qid": QID} if takes_queries else {}))
    if hasattr(model, "predict"):
        assert np.isfinite(predict_scores(model, X, QID)).all()
    return model


def _use(made, name, **given):
    return getattr(copy.deepcopy(made) if "fit" in name else made, name)(**given)


def _methods(cls, made):
    """Yield the methods of a class of ours that take arguments; each fit has an estimator of its own."""
    for name, function in inspect.getmembers(cls, inspect.isfunction):
        if name[0] != "_" and name not in OWN and function.__module__.startswith("rankwise"):
            use = _as(function, functools.partial(_use, made, name))
            right = FILES[name] if name in {"save", "many"} else {"pairs": PAIRS}
            call = Call(f"{cls.__name__}.{name}", use, right)
            if call.parameters:
                yield call


# --- values that are wrong, or at least odd ---


def odd_values():
    """Return values of all kinds, new ones at each call."""
    texts = np.array([f"s{at % 3}" for at in range(N_ROWS)])
    return {
        "None": None,
        "True": True,
        "zero": 0,
        "minus one": -1,
        "three": 3,
        "huge": 2**70,
        "half": 0.5,
        "NaN": float("nan"),
        "infinity": float("inf"),
        "minus large": -1e308,
        "complex": 1j,
        "empty text": "",
        "text": "nothing",
        "text with NUL": "a\0b",
        "lone surrogate": "\udcff",
        "bytes": b"\xff",
        "empty list": [],
        "empty tuple": (),
        "empty dict": {},
        "dict": {"a": 1},
        "nested": [[]],
        "uneven": [[1.0], [2.0, 3.0]],
        "mixed": [1, "a", None],
        "pair": (1, 2),
        "texts": texts,
        "objects": np.array([1, "a", None, 2.5] * 4, dtype=object),
        "scalar array": np.array(3.0),
        "numbers": np.arange(float(N_ROWS)),
        "short": np.arange(3.0),
        "zeros": np.zeros(N_ROWS),
        "negative": -np.arange(float(N_ROWS)),
        "large": np.full(N_ROWS, 1e308) * (-1.0) ** np.arange(N_ROWS),
        "tiny": np.full(N_ROWS, 5e-324),
        "NaNs": np.full(N_ROWS, np.nan),
        "one infinity": np.r_[np.inf, np.ones(N_ROWS - 1)],
        "complex numbers": np.full(N_ROWS, 1j),
        "dates": np.full(N_ROWS, np.datetime64("2026-01-01")),
        "not a time": np.full(N_ROWS, np.datetime64("NaT")),
        "flags": np.arange(N_ROWS) % 2 == 0,
        "unsigned": np.full(N_ROWS, 2**64 - 1, dtype=np.uint64),
        "matrix": np.ones((N_ROWS, 2)),
        "wide": np.ones((N_ROWS, 5)),
        "no rows": np.empty((0, 2)),
        "no columns": np.empty((N_ROWS, 0)),
        "three axes": np.ones((N_ROWS, 2, 1)),
        "matrix of NaN": np.full((N_ROWS, 2), np.nan),
        "matrix of large": np.full((N_ROWS, 2), 1e308) * [[1.0, -1.0]],
        "matrix of texts": np.array([["a", "b"]] * N_ROWS),
        "sparse": sp.csr_matrix(np.eye(N_ROWS, 2)),
        "sparse with infinity": sp.csr_matrix(np.full((N_ROWS, 2), np.inf)),
        "frame": pd.DataFrame({"a": np.arange(N_ROWS), "b": texts}),
        "series": pd.Series(np.arange(N_ROWS), index=np.arange(N_ROWS)[::-1]),
        "masked": np.ma.masked_less(np.arange(float(N_ROWS)), 3),
        "pairs outside": np.array([[0, N_ROWS], [-1, 2]]),
        "pairs of halves": np.array([[0.5, 1.5]]),
        "rows of themselves": np.array([[1, 1], [2, 2]]),
    }
