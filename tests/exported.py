"""What runs exported models: compilers, databases, runtimes, and engines written again from their documented rules."""

from __future__ import annotations

import ctypes
import json
import math
import re
import shutil
import sqlite3
import subprocess

import numpy as np
import pandas as pd
import pytest

from rankwise.formula import steps
from rankwise.formula.formula import Column, Formula, KernelSum, Product, Surface, Term
from rankwise.kernels import Kernel


def columns_of(X):
    """Return the rows as lists of plain values, None where one is missing and the names of the columns."""
    if isinstance(X, pd.DataFrame):
        rows = [
            [None if pd.isna(value) else value for value in row] for row in X.to_numpy(dtype=object).tolist()
        ]
        return rows, [str(name) for name in X.columns]
    rows = [[None if math.isnan(value) else value for value in row] for row in np.asarray(X).tolist()]
    return rows, [f"x{at}" for at in range(X.shape[1])]


def by_query(rows, qid):
    """Yield the numbers of the rows of each query."""
    for query in dict.fromkeys(qid.tolist()):
        yield np.flatnonzero(qid == query)


def run_python(source, X, qid, is_query):
    module = {}
    exec(compile(source, "exported", "exec"), module)
    rows, _ = columns_of(X)
    if not is_query:
        return np.array([module["score"](row) for row in rows])
    out = np.empty(len(rows))
    for chosen in by_query(rows, qid):
        out[chosen] = module["score"]([rows[at] for at in chosen])
    return out


def run_javascript(cases, folder):
    """Score every case, all in one process."""
    node = shutil.which("node") or pytest.skip("node is not installed")
    content = []
    for at, (source, X, qid, is_query) in enumerate(cases):
        (folder / f"model{at}.js").write_text(source, encoding="utf-8")
        rows, _ = columns_of(X)
        parts = [chosen.tolist() for chosen in by_query(rows, qid)] if is_query else []
        content.append({"rows": rows, "parts": parts, "whole": bool(is_query)})
    (folder / "cases.json").write_text(json.dumps(content), encoding="utf-8")
    script = """
    const cases = JSON.parse(require("fs").readFileSync("cases.json", "utf8"));
    console.log(JSON.stringify(cases.map(({ rows, parts, whole }, at) => {
      const { score } = require(`./model${at}.js`);
      const out = new Array(rows.length);
      if (whole) for (const part of parts) score(part.map((i) => rows[i])).forEach((s, k) => { out[part[k]] = s; });
      else rows.forEach((row, i) => { out[i] = score(row); });
      return out;
    })));
    """
    found = subprocess.run([node, "-e", script], cwd=folder, capture_output=True, text=True, check=True)
    return [np.array(scores, dtype=float) for scores in json.loads(found.stdout)]


def run_c(cases, folder):
    """Score every case, all in one library."""
    compiler = shutil.which("gcc") or shutil.which("cc") or pytest.skip("no C compiler is installed")
    files = []
    for at, (source, *_) in enumerate(cases):
        files.append(f"model{at}.c")
        own = re.sub(r"^((?:double|int) )score\(", rf"\1score{at}(", source, flags=re.MULTILINE)
        own = own.replace(" score_columns[]", f" score{at}_columns[]")
        (folder / files[-1]).write_text(own, encoding="utf-8")
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O0", "-shared", "-fPIC", "-ffp-contract=off"]
    subprocess.run([compiler, *flags, *files, "-o", "models.so", "-lm"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "models.so"))
    return [_scores_of_c(library[f"score{at}"], *case[1:]) for at, case in enumerate(cases)]


def _scores_of_c(function, X, qid, is_query):
    rows, _ = columns_of(X)
    has_texts = any(isinstance(value, str) for row in rows for value in row)
    plain = [[np.nan if value is None or isinstance(value, str) else value for value in row] for row in rows]
    numbers = np.array(plain, dtype=float)
    texts = [[value.encode() if isinstance(value, str) else None for value in row] for row in rows]
    pointer = ctypes.POINTER(ctypes.c_double)
    out = np.empty(len(rows))
    if not is_query:
        function.restype = ctypes.c_double
    for chosen in by_query(rows, qid) if is_query else map(np.atleast_1d, range(len(rows))):
        part, scores = np.ascontiguousarray(numbers[chosen]), np.empty(chosen.size)
        flat = [text for at in chosen for text in texts[at]]
        given = [part.ctypes.data_as(pointer), *([(ctypes.c_char_p * len(flat))(*flat)] if has_texts else [])]
        if is_query:
            assert function(*given, ctypes.c_size_t(chosen.size), scores.ctypes.data_as(pointer)) == 0
            out[chosen] = scores
        else:
            out[chosen] = function(*given)
    return out


def run_sqlite(source, X, qid):
    with sqlite3.connect(":memory:") as connection:
        _create(connection.execute, connection.executemany, X, qid, "?")
        found = connection.execute(f"SELECT number, score FROM ({source}) ORDER BY number").fetchall()
    connection.close()
    return np.array([score for _, score in found], dtype=float)


def run_duckdb(source, X, qid):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        _create(connection.execute, connection.executemany, X, qid, "?")
        found = connection.execute(f"SELECT number, score FROM ({source}) ORDER BY number").fetchall()
    return np.array([score for _, score in found], dtype=float)


def _create(execute, executemany, X, qid, mark):
    rows, names = columns_of(X)
    texts = [any(isinstance(row[at], str) for row in rows) for at in range(len(names))]
    kinds = ["VARCHAR" if text else "FLOAT8" for text in texts]
    columns = ", ".join(f'"{name}" {kind}' for name, kind in zip(names, kinds, strict=True))
    execute(f'CREATE TABLE "rows" (number INTEGER, "qid" VARCHAR, {columns})')
    marks = ", ".join([mark] * (len(names) + 2))
    values = [(at, str(query), *row) for at, (query, row) in enumerate(zip(qid.tolist(), rows, strict=True))]
    executemany(f'INSERT INTO "rows" VALUES ({marks})', values)


def insert_statements(X, qid):
    """Return SQL that makes the table, for programs that take nothing but SQL."""
    lines = []

    def literal(value):
        if value is None:
            return "NULL"
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(float(value))

    def keep(statement, values=None):
        lines.append(statement)

    def keep_all(statement, values):
        lines.extend(
            f'INSERT INTO "rows" VALUES ({", ".join([str(row[0]), *map(literal, row[1:])])})'
            for row in values
        )

    _create(keep, keep_all, X, qid, "?")
    return ";\n".join(lines) + ";\n"


def run_onnx(content, X, qid, is_query):
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    rows, names = columns_of(X)
    wanted = {one.name for one in session.get_inputs()}
    is_text = [any(isinstance(row[at], str) for row in rows) for at in range(len(names))]

    def part(*, text, missing, dtype):
        chosen = [at for at, one in enumerate(is_text) if one == text]
        return np.array(
            [[missing if row[at] is None else row[at] for at in chosen] for row in rows], dtype=dtype
        )

    numbers, texts = part(text=False, missing=np.nan, dtype=float), part(text=True, missing="", dtype=object)

    def score(chosen):
        inputs = {"X": numbers[chosen], "texts": texts[chosen]}
        return session.run(["score"], {name: value for name, value in inputs.items() if name in wanted})[0]

    if not is_query:
        return score(slice(None))
    out = np.empty(len(rows))
    for chosen in by_query(rows, qid):
        out[chosen] = score(chosen)
    return out


# --- engines, from their documented rules, in single precision where they are ---

F = np.float32


def run_solr(source, X):
    """Score as Solr does: LinearModel and MultipleAdditiveTreesModel, of floats."""
    model = json.loads(source)
    rows, names = columns_of(X)
    place = {name: at for at, name in enumerate(names)}
    kind = model["class"].rpartition(".")[2]
    features = [feature["name"] for feature in model["features"]]
    assert len(set(features)) == len(features)

    def normalised(feature, value):
        norm = feature.get("norm")
        if norm is None:
            return F(value)
        assert norm["class"] == "org.apache.solr.ltr.norm.StandardNormalizer"
        average, deviation = (norm["params"][key] for key in ("avg", "std"))
        assert isinstance(average, str)
        assert F(deviation) > 0
        return (F(value) - F(average)) / F(deviation)

    def node(part, values):
        if "value" in part:
            return F(part["value"])
        threshold = F(part["threshold"]) + F(1e-6)
        return node(part["left" if values[part["feature"]] <= threshold else "right"], values)

    out = []
    for row in rows:
        values = {f["name"]: normalised(f, row[place[f["name"]]]) for f in model["features"]}
        total = F(0)
        if kind == "LinearModel":
            assert set(model["params"]["weights"]) == set(features)  # Solr refuses a feature without a weight
            for name in features:
                total += F(model["params"]["weights"][name]) * values[name]
        else:
            assert kind == "MultipleAdditiveTreesModel"
            for tree in model["params"]["trees"]:
                total += F(tree["weight"]) * node(tree["root"], values)
        out.append(total)
    return np.array(out, dtype=float)


def run_plug_in(source, X):
    """Score as the Elasticsearch and OpenSearch plug-ins do: weights, or trees as XGBoost dumps them, of floats."""
    model = json.loads(source)["model"]["model"]
    assert isinstance(model["definition"], str)
    definition = json.loads(model["definition"])
    rows, names = columns_of(X)

    def node(part, values):
        if "leaf" in part:
            return F(part["leaf"])
        children = {child["nodeid"]: child for child in part["children"]}
        assert part["missing"] in children
        return node(
            children[part["yes" if values[part["split"]] < F(part["split_condition"]) else "no"]], values
        )

    out = []
    for row in rows:
        values = {name: F(value) for name, value in zip(names, row, strict=True)}
        if model["type"] == "model/linear":
            total = F(0)
            for name, weight in definition.items():
                total += F(weight) * values[name]
        else:
            assert model["type"] == "model/xgboost+json"
            total = F(0)
            for tree in definition:
                total += node(tree, values)
        out.append(total)
    return np.array(out, dtype=float)


def run_vespa(source, X, qid):  # noqa: C901 - one branch per rule of the language
    """Score by a rank profile: functions, ``if``, and normalize_linear over the hits of a query."""
    rows, names = columns_of(X)
    functions = dict(re.findall(r"function (\w+)\(\) \{\s*expression: (.*?)\n    \}", source, re.DOTALL))
    phase, expression = re.search(
        r"(first|global)-phase \{\s*expression \{(.*?)\n        \}", source, re.DOTALL
    ).groups()
    state = {}

    def python(text):
        text = re.sub(r"\bif \(", "if_(", text)
        text = re.sub(r"attribute\((\w+)\)", r"attribute('\1')", text)
        text = re.sub(r"normalize_linear\((\w+)\)", r"normalize_linear('\1')", text)
        text = re.sub(r"(?<!')\b(rankwise_\w+)\b(?!')", r"function('\1')", text)
        return compile(" ".join(text.split()), "vespa", "eval")

    compiled = {name: python(text) for name, text in functions.items()}
    whole = python(expression)

    def attribute(name):
        value = rows[state["row"]][names.index(name)]
        return math.nan if value is None else float(value)

    def function(name):
        return eval(compiled[name], scope)

    def normalize_linear(name):
        own = state["row"]
        if name not in state["scaled"]:
            values = {}
            for hit in state["hits"]:
                state["row"] = hit
                values[hit] = function(name)
            state["row"] = own
            state["scaled"][name] = values
        values = state["scaled"][name]
        low, high = min(values.values()), max(values.values())
        return (values[own] - low) / (high - low) if high > low else 0.0

    def if_(condition, yes, no):
        return yes if condition else no

    def power(x, y):
        return x**y if x > 0 else math.nan  # both branches of an if are evaluated here, and one is not used

    scope = {"if_": if_, "attribute": attribute, "function": function, "normalize_linear": normalize_linear,
             "isNan": lambda x: float(math.isnan(x)), "pow": power,
             "log": lambda x: math.log(x) if x > 0 else math.nan}  # fmt: skip
    assert (phase == "global") == ("normalize_linear" in source)
    out = np.empty(len(rows))
    for hits in by_query(rows, qid):
        state.update(hits=hits.tolist(), scaled={})
        for hit in hits.tolist():
            state["row"] = hit
            out[hit] = eval(whole, scope)
    return out


def run_json(source, X, qid):
    """Score by the document of weights, or by the terms of the other document, read back."""
    document = json.loads(source)
    rows, names = columns_of(X)
    if document["format"] == "rankwise formula":
        assert document["names"] == names
        tree = {key: part for key, part in document.items() if key not in {"format", "rankwise", "score"}}
        return _read_tree(tree).evaluate(X, qid)
    assert document["format"] == "rankwise linear weights"
    weights = [document["weights"][name] for name in names]
    return np.array(
        [document["intercept"] + sum(w * v for w, v in zip(weights, row, strict=True)) for row in rows]
    )


KINDS = {one.__name__: one for one in (Column, Formula, Kernel, KernelSum, Product, Surface, Term)}


def _read_tree(part):
    if isinstance(part, list):
        return tuple(map(_read_tree, part))
    if not isinstance(part, dict) or "kind" not in part:
        return part
    entries = {key: _read_tree(value) for key, value in part.items() if key != "kind"}
    if part["kind"] == "KernelSum":
        entries |= {key: np.array(entries[key]) for key in ("basis", "dual")}
    return (KINDS.get(part["kind"]) or getattr(steps, part["kind"]))(**entries)


def run(target, made, X, qid, is_query, folder):
    """Score by what was exported."""
    return run_all(target, [(made, X, qid, is_query)], folder)[0]


def run_all(target, cases, folder):
    """Score each (source, rows, queries, whether rows come query by query): by one compiled file or process for all."""
    if target in {"javascript", "c"}:
        return {"javascript": run_javascript, "c": run_c}[target](cases, folder)
    return [_run_one(target, *case) for case in cases]


def _run_one(target, made, X, qid, is_query):
    if target in {"python", "onnx"}:
        return {"python": run_python, "onnx": run_onnx}[target](made, X, qid, is_query)
    if target in {"vespa", "json", "sqlite", "duckdb"}:
        one = {"vespa": run_vespa, "json": run_json, "sqlite": run_sqlite, "duckdb": run_duckdb}
        return one[target](made, X, qid)
    return run_solr(made, X) if target == "solr" else run_plug_in(made, X)
