"""Every oracle, invariance and published figure that `promises.txt` lists has its test."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINES = (ROOT / "tests" / "promises.txt").read_text(encoding="utf-8").splitlines()
PROMISES = dict(line.split("  ", 1) for line in LINES if line and not line.startswith("#"))


@cache
def nodes_of(file):
    """Return the node ids of a file's tests, without parameters, as its source has them."""
    path = ROOT / file
    body = ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else []
    functions = [("", node) for node in body]
    functions += [
        (f"{node.name}::", one) for node in body if isinstance(node, ast.ClassDef) for one in node.body
    ]
    return {
        f"{file}::{inside}{node.name}"
        for inside, node in functions
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
    }


def test_every_promise_has_its_test():
    assert [node for node in PROMISES if node not in nodes_of(node.partition("::")[0])] == []


@pytest.mark.parametrize("file", ["tests/test_published.py", "tests/estimators/test_invariances.py"])
def test_every_published_figure_and_invariance_is_listed(file):
    assert nodes_of(file) <= PROMISES.keys()


def test_a_promise_has_one_line_and_a_sentence():
    assert len(PROMISES) == sum("::" in line for line in LINES)
    assert [node for node, sentence in PROMISES.items() if not sentence.endswith(".")] == []
