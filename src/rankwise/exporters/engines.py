"""Solr's learning to rank, the plug-ins for Elasticsearch and OpenSearch, and Elasticsearch's own."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from rankwise.arrays import Floats, MatrixLike, shape_of
from rankwise.exceptions import InvalidInputError
from rankwise.exporters.trees import Bounds, Leaf, Split, Tree, leaves_of, trees_of
from rankwise.formula.folding import raw
from rankwise.formula.formula import Column, Formula, Table
from rankwise.formula.steps import Affine
from rankwise.json_values import Json

__all__ = ["elasticsearch", "is_linear", "plug_in", "single_scores", "solr"]

_SLACK = 1e-6  # what Solr adds to every threshold


def solr(formula: Formula, name: str, error: float | None, bounds: Bounds) -> str:
    """Return a model for Solr's model store: a LinearModel where the formula is linear, else trees.

    Solr has no constant. Centres become its normalisers, so that single precision subtracts before it multiplies.
    """
    if is_linear(formula):
        features, weights = _normalised(formula)
        model: dict[str, Json] = {
            "class": "org.apache.solr.ltr.model.LinearModel",
            "name": name,
            "features": features,
            "params": {"weights": weights},
        }
        return _json(model)
    trees, _ = trees_of(formula, error, bounds)
    used = sorted({number for tree in trees for number in _inputs(tree)})
    model = {
        "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
        "name": name,
        "features": [{"name": formula.names[number]} for number in used],
        "params": {"trees": [{"weight": "1", "root": _solr_node(tree, formula)} for tree in trees]},
    }
    return _json(model)


def plug_in(formula: Formula, name: str, error: float | None, bounds: Bounds) -> str:
    """Return the request that creates a model of a feature set, whose definition is a text."""
    if is_linear(formula):
        plain = raw(formula)
        kind = "model/linear"
        definition: Any = {plain.names[term.column.number]: term.weight for term in plain.terms}
    else:
        trees, _ = trees_of(formula, error, bounds)
        kind, definition = "model/xgboost+json", [_boosted_tree(tree, formula) for tree in trees]
    text = json.dumps(definition, ensure_ascii=False)
    return _json({"model": {"name": name, "model": {"type": kind, "definition": text}}})


def elasticsearch(formula: Formula, name: str, error: float | None, bounds: Bounds) -> str:
    """Return the body that creates a trained model; its feature extractors are for the reader to write."""
    if is_linear(formula) and not bounds:
        raise InvalidInputError(
            "Elasticsearch's own learning to rank takes trees and no weights.",
            "train a model of curves, or say by bounds={name: (low, high)} what values the columns can have, and "
            "their weights become steps; the plug-in (elasticsearch-ltr) takes weights.",
        )
    trees, _ = trees_of(formula, error, bounds)
    names = list(formula.names)
    models: Json = [
        {"tree": {"feature_names": names, "tree_structure": _numbered(tree), "target_type": "regression"}}
        for tree in trees
    ]
    body: Json = {
        "description": f"{name}, written by rankwise",
        "input": {"field_names": []},
        "inference_config": {
            "learning_to_rank": {
                "feature_extractors": [
                    {"query_extractor": {"feature_name": one, "query": {"match_none": {}}}} for one in names
                ]
            }
        },
        "definition": {
            "trained_model": {
                "ensemble": {
                    "feature_names": names,
                    "trained_models": models,
                    "aggregate_output": {"weighted_sum": {"weights": [1.0] * len(trees)}},
                    "target_type": "regression",
                }
            }
        },
    }
    return _json(body)


def single_scores(formula: Formula, X: MatrixLike, error: float | None, limits: Bounds) -> Floats:
    """Return the scores that Solr computes from floats: centres subtracted, products added, or leaves added."""
    table, total = Table(X), np.zeros(shape_of(X)[0], dtype=np.float32)
    if not is_linear(formula):
        for tree in trees_of(formula, error, limits)[0]:
            total += leaves_of(tree, table, np.arange(total.size)).astype(np.float32)
        return total.astype(np.float64)
    for term in formula.terms:
        x = table.values(Column(term.column.number)).astype(np.float32)
        for step in term.column.steps:
            assert isinstance(step, Affine)
            x = x - np.float32(step.center)
        total += np.float32(term.weight) * x
    return total.astype(np.float64)


def is_linear(formula: Formula) -> bool:
    """Tell whether a formula becomes weights, where an engine takes them."""
    return raw(formula).weights is not None


def _normalised(formula: Formula) -> tuple[list[dict[str, Json]], dict[str, float]]:
    """Return Solr's features and weights; a feature that occurs twice has its terms added up, without centres."""
    inputs = [term.column.number for term in formula.terms]
    if len(set(inputs)) < len(inputs):
        formula = raw(formula)
    features, weights = [], {}
    for term in formula.terms:
        name = formula.names[term.column.number]
        feature: dict[str, Json] = {"name": name}
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


def _solr_node(tree: Tree, formula: Formula) -> dict[str, Json]:
    """Return a node: a value that is at most the threshold goes left, after Solr has added its slack."""
    if isinstance(tree, Leaf):
        return {"value": _short(tree.value)}
    if tree.missing_left:  # nothing is missing in Solr
        return _solr_node(tree.right, formula)
    below = np.nextafter(np.float32(tree.threshold), np.float32(-np.inf))
    return {
        "feature": formula.names[tree.input],
        "threshold": _short(float(below) - _SLACK),
        "left": _solr_node(tree.left, formula),
        "right": _solr_node(tree.right, formula),
    }


def _boosted_tree(tree: Tree, formula: Formula) -> dict[str, Json]:
    """Return a tree as XGBoost dumps it: what is smaller goes to "yes"."""
    count = iter(range(1 << 62))

    def node(part: Tree, depth: int) -> dict[str, Json]:
        number = next(count)
        if isinstance(part, Leaf):
            return {"nodeid": number, "leaf": part.value}
        out: dict[str, Json] = {
            "nodeid": number,
            "depth": depth,
            "split": formula.names[part.input],
            "split_condition": part.threshold,
        }
        left, right = node(part.left, depth + 1), node(part.right, depth + 1)
        gone = left if part.missing_left else right
        return out | {
            "yes": left["nodeid"],
            "no": right["nodeid"],
            "missing": gone["nodeid"],
            "children": [left, right],
        }

    return node(tree, 0)


def _numbered(tree: Tree) -> list[dict[str, Json]]:
    """Return the nodes of a tree in a list, each naming its children by their place."""
    nodes: list[dict[str, Json]] = []

    def add(part: Tree) -> int:
        number = len(nodes)
        nodes.append({"node_index": number})
        if isinstance(part, Leaf):
            nodes[number]["leaf_value"] = part.value
        else:
            assert isinstance(part, Split)
            nodes[number] |= {
                "split_feature": part.input,
                "threshold": part.threshold,
                "decision_type": "lt",
                "default_left": part.missing_left,
            }
            nodes[number]["left_child"] = add(part.left)
            nodes[number]["right_child"] = add(part.right)
        return number

    add(tree)
    return nodes


def _short(value: float) -> str:
    return repr(float(np.float32(value)))


def _json(document: Json) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
