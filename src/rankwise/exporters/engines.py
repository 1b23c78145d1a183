"""Solr's learning to rank, and the plug-ins for Elasticsearch and OpenSearch."""

from __future__ import annotations

import json
from itertools import count
from typing import Any

import numpy as np

from rankwise.exporters.trees import Leaf, Tree, trees_of
from rankwise.formula.folding import raw
from rankwise.formula.formula import Formula
from rankwise.formula.steps import Affine

__all__ = ["is_linear", "plug_in", "solr"]

_SLACK = 1e-6  # what Solr adds to every threshold


def solr(formula: Formula, name: str, error: float | None) -> str:
    """Return a model for Solr's model store: a LinearModel where the formula is linear, else trees.

    Solr has no constant. Centres become its normalisers, so that single precision subtracts before it multiplies.
    """
    if is_linear(formula):
        kind = "LinearModel"
        features, weights = _normalised(formula)
        params: dict[str, Any] = {"weights": weights}
    else:
        kind = "MultipleAdditiveTreesModel"
        trees, _ = trees_of(formula, error)
        used = sorted({number for tree in trees for number in _inputs(tree)})
        features = [{"name": formula.names[number]} for number in used]
        params = {"trees": [{"weight": "1", "root": _solr_node(tree, formula)} for tree in trees]}
    model = {
        "class": f"org.apache.solr.ltr.model.{kind}",
        "name": name,
        "features": features,
        "params": params,
    }
    return _json(model)


def plug_in(formula: Formula, name: str, error: float | None) -> str:
    """Return the request that creates a model of a feature set, whose definition is a text."""
    if is_linear(formula):
        plain = raw(formula)
        kind = "model/linear"
        definition: Any = {plain.names[term.column.number]: term.weight for term in plain.terms}
    else:
        trees, _ = trees_of(formula, error)
        kind, definition = "model/xgboost+json", [_boosted_tree(tree, formula) for tree in trees]
    text = json.dumps(definition, ensure_ascii=False)
    return _json({"model": {"name": name, "model": {"type": kind, "definition": text}}})


def is_linear(formula: Formula) -> bool:
    """Tell whether a formula becomes weights, where an engine takes them."""
    return raw(formula).weights is not None


def _normalised(formula: Formula) -> tuple[list[dict[str, Any]], dict[str, float]]:
    """Return Solr's features and weights; a feature that occurs twice has its terms added up, without centres."""
    inputs = [term.column.number for term in formula.terms]
    if len(set(inputs)) < len(inputs):
        formula = raw(formula)
    features, weights = [], {}
    for term in formula.terms:
        name = formula.names[term.column.number]
        feature: dict[str, Any] = {"name": name}
        for step in term.column.steps:
            assert isinstance(step, Affine)
            # The parameters of a normaliser are texts.
            params = {"avg": _short(step.center), "std": "1.0"}
            feature["norm"] = {"class": "org.apache.solr.ltr.norm.StandardNormalizer", "params": params}
        features.append(feature)
        weights[name] = term.weight
    return features, weights


def _inputs(tree: Tree) -> set[int]:
    return set() if isinstance(tree, Leaf) else {tree.input} | _inputs(tree.left) | _inputs(tree.right)


def _solr_node(tree: Tree, formula: Formula) -> dict[str, Any]:
    """Return a node: a value that is at most the threshold goes left, after Solr has added its slack."""
    if isinstance(tree, Leaf):
        return {"value": _short(tree.value)}
    below = np.nextafter(np.float32(tree.threshold), np.float32(-np.inf))
    return {
        "feature": formula.names[tree.input],
        "threshold": _short(float(below) - _SLACK),
        "left": _solr_node(tree.left, formula),
        "right": _solr_node(tree.right, formula),
    }


def _boosted_tree(tree: Tree, formula: Formula) -> dict[str, Any]:
    """Return a tree as XGBoost dumps it: what is smaller goes to "yes"."""
    numbers = count()

    def node(part: Tree, depth: int) -> dict[str, Any]:
        number = next(numbers)
        if isinstance(part, Leaf):
            return {"nodeid": number, "leaf": part.value}
        left, right = node(part.left, depth + 1), node(part.right, depth + 1)
        return {
            "nodeid": number,
            "depth": depth,
            "split": formula.names[part.input],
            "split_condition": part.threshold,
            "yes": left["nodeid"],
            "no": right["nodeid"],
            "missing": right["nodeid"],
            "children": [left, right],
        }

    return node(tree, 0)


def _short(value: float) -> str:
    return repr(float(np.float32(value)))


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
