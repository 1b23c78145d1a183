"""Solr's learning to rank, and the plug-ins for Elasticsearch and OpenSearch: weights, or curves and surfaces as trees.

Search engines score trees quickly, and nothing else that is not linear. A tree of one column halves an interval until
its function varies by no more than twice the error; a tree of a pair of columns halves rectangles. A value goes left
where it is smaller than the threshold; thresholds are numbers of single precision, as engines hold them. Engines hand
over 0 where a value is missing, so that no tree asks whether one is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

import numpy as np

from rankwise.arrays import AnyArray, Floats
from rankwise.exceptions import InvalidInputError
from rankwise.formula.folding import raw
from rankwise.formula.formula import Column, Formula, Surface, Table, Term
from rankwise.formula.steps import Affine, Levels, Pieces

__all__ = ["edges_of", "function_of", "is_linear", "lowest", "plug_in", "solr", "trees_of"]

_SLACK = 1e-6  # what Solr adds to every threshold
_MANY = 200_000  # leaves that an engine still loads
_PROBES = 9  # places at which a function is looked at inside an interval


@dataclass(frozen=True)
class Leaf:
    """The value that a leaf adds to the score."""

    value: float


@dataclass(frozen=True)
class Split:
    """Go left where a column is smaller than the threshold."""

    input: int
    threshold: float
    left: Tree
    right: Tree


Tree = Leaf | Split


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
        trees = trees_of(formula, error)
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
        trees = trees_of(formula, error)
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
    """Return a tree in XGBoost's dump format: smaller values go to "yes"."""
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


def lowest(trees: Sequence[Tree]) -> float:
    """Return the smallest sum of leaves, a little less than it, because engines add in single precision."""
    ends = [_leaves(tree) for tree in trees]
    return float(sum(map(min, ends)) - 1e-6 * sum(max(map(abs, own)) for own in ends))


def _leaves(tree: Tree) -> list[float]:
    return [tree.value] if isinstance(tree, Leaf) else [*_leaves(tree.left), *_leaves(tree.right)]


def trees_of(formula: Formula, error: float | None) -> list[Tree]:
    """Return the trees of a formula, the constant among them.

    Parameters
    ----------
    error : float, optional
        By default a thousandth of how far the terms spread, or a hundredth where there are surfaces.
    """
    columns: dict[int, list[Term]] = {}
    for term in formula.terms:
        columns.setdefault(term.column.number, []).append(term)
    curves = [(at, function_of(terms), edges_of(terms)) for at, terms in columns.items()]
    spreads = [float(np.ptp(f(edges))) if edges.size else 0.0 for _, f, edges in curves]
    spreads += [float(np.ptp(np.asarray(surface.values))) for surface in formula.surfaces]
    finest = 1000 if not formula.surfaces else 100
    whole = sum(spreads) / finest if error is None else float(error)
    # The leaves of a surface grow with the square of spread / error: this share has the fewest for a given sum.
    powers = np.asarray(spreads) ** (2 / 3)
    shares = whole * powers / max(powers.sum(), np.finfo(float).tiny)
    trees: list[Tree] = [Leaf(formula.constant)] if formula.constant else []
    builder = _Builder()
    trees += [builder.curve(*curve, share) for curve, share in zip(curves, shares, strict=False)]
    of_surfaces = shares[len(curves) :]
    trees += [builder.surface(surface, e) for surface, e in zip(formula.surfaces, of_surfaces, strict=True)]
    return trees


def function_of(terms: Sequence[Term]) -> Callable[[AnyArray], Floats]:
    """Return the sum of terms of one column as a function of its values."""

    def f(x: AnyArray) -> Floats:
        table = Table(x[:, None])
        return np.asarray(sum(t.weight * table.numbers(Column(0, t.column.steps)) for t in terms))

    return f


def edges_of(terms: Sequence[Term]) -> Floats:
    """Return where the function of a column bends or jumps; outside of these it is constant."""
    found: set[float] = set()
    for term in terms:
        before: list[Affine] = []
        for step in term.column.steps:
            places: Floats = np.zeros(0)
            if isinstance(step, Affine):
                before.append(step)
            elif isinstance(step, Pieces):
                places = np.asarray(step.breaks)
            elif isinstance(step, Levels):
                places = np.asarray(step.levels, dtype=np.float64)
            for affine in reversed(before):
                places = (places - affine.shift) / affine.scale + affine.center
            found |= set(places.tolist())
            if isinstance(step, Levels):
                found |= set(np.nextafter(places.astype(np.float32), np.float32(np.inf)).tolist())
    return np.array(sorted(map(_single, found)))


class _Builder:
    """Builds trees, and counts their leaves."""

    def __init__(self) -> None:
        self._n_leaves = 0

    def curve(self, number: int, f: Callable[[Floats], Floats], edges: Floats, error: float) -> Tree:
        """Return the tree of a function of one column."""
        ends = np.unique(edges)
        if ends.size == 0:
            return Leaf(float(f(np.zeros(1))[0]))
        # Intervals are halved together, as long as one varies too much. An edge belongs to the interval that it begins.
        low, high = ends[:-1], ends[1:]
        kept: list[tuple[Floats, Floats]] = []
        while low.size:
            last = np.maximum(low, _before(high))
            values = f(np.linspace(low, last, _PROBES).ravel()).reshape(_PROBES, -1)
            middle = _middle(low, high)
            fine = (np.ptp(values, axis=0) <= 2 * error) | (middle <= low) | (middle >= high)
            kept.append((low[fine], (values.max(axis=0) + values.min(axis=0))[fine] / 2))
            low, high, middle = low[~fine], high[~fine], middle[~fine]
            low, high = np.concatenate((low, middle)), np.concatenate((middle, high))
            self._count(kept[-1][0].size + low.size)
        outside = f(np.array([_before(ends[:1])[0], ends[-1]]))
        starts = np.concatenate([[ends[-1]], *(part[0] for part in kept)])
        values = np.concatenate([outside[1:], *(part[1] for part in kept)])
        order = np.argsort(starts)
        cells: list[Tree] = [Leaf(float(value)) for value in (outside[0], *values[order])]
        return _joined(number, starts[order].tolist(), cells)

    def surface(self, surface: Surface, error: float) -> Tree:
        """Return the tree of a function of two columns."""
        if any(column.steps for column in surface.columns):
            raise InvalidInputError(
                "A surface of transformed columns cannot become trees.",
                "train without these transformers, or export to SQL, C, JavaScript, Python or ONNX.",
            )
        first, second = (sorted({_single(k) for k in knots}) for knots in surface.knots)
        a, b = (column.number for column in surface.columns)
        wide, high = ([(k[0], k[0]), *pairwise(k), (k[-1], k[-1])] for k in (first, second))
        cells = iter(self._rectangles(surface, [(*x, *y) for x in wide for y in high], error))
        rows = [_joined(b, second, [next(cells) for _ in high]) for _ in wide]
        return _joined(a, first, rows)

    def _rectangles(
        self, surface: Surface, cells: Sequence[tuple[float, float, float, float]], error: float
    ) -> list[Tree]:
        """Return the trees of rectangles, all halved together. Bilinear functions have their extremes in corners."""
        box = np.asarray(cells, dtype=np.float64)
        corners = surface.apply(box[:, [0, 0, 1, 1]].ravel(), box[:, [2, 3, 2, 3]].ravel()).reshape(-1, 4)
        across = np.abs(corners[:, 2:] - corners[:, :2]).max(axis=1)
        along = np.abs(corners[:, 1::2] - corners[:, ::2]).max(axis=1)
        at = np.where(across >= along, 0, 2)
        every = np.arange(len(box))
        low, high = box[every, at], box[every, at + 1]
        middle = _middle(low, high)
        fine = (np.ptp(corners, axis=1) <= 2 * error) | (middle <= low) | (middle >= high)
        self._count(len(box))
        out: list[Tree] = [Leaf(float(v)) for v in (corners.max(axis=1) + corners.min(axis=1)) / 2]
        coarse = np.flatnonzero(~fine)
        if coarse.size:
            left, right = box[coarse], box[coarse]
            own = np.arange(coarse.size)
            left[own, at[coarse] + 1] = right[own, at[coarse]] = middle[coarse]
            halves = self._rectangles(surface, np.concatenate((left, right)).tolist(), error)
            for place, number in enumerate(coarse.tolist()):
                column = surface.columns[at[number] // 2].number
                out[number] = Split(column, float(middle[number]), halves[place], halves[place + coarse.size])
        return out

    def _count(self, n_leaves: int) -> None:
        self._n_leaves += n_leaves
        if self._n_leaves > _MANY:
            raise InvalidInputError(
                f"The trees would have more than {_MANY:,} leaves.",
                "allow a larger error (error=).",
            )


def _middle(low: Floats, high: Floats) -> Floats:
    return ((low + high) / 2).astype(np.float32).astype(np.float64)


def _before(edges: Floats) -> Floats:
    """Return the number of single precision before each."""
    return np.asarray(np.nextafter(edges.astype(np.float32), np.float32(-np.inf)), dtype=np.float64)


def _single(edge: float) -> float:
    """Return the smallest number of single precision that is not below an edge."""
    found = np.float32(edge)
    return float(found if float(found) >= edge else np.nextafter(found, np.float32(np.inf)))


def _joined(number: int, edges: Sequence[float], cells: Sequence[Tree]) -> Tree:
    """Return a balanced tree over cells that edges part."""
    if len(cells) == 1:
        return cells[0]
    middle = len(edges) // 2
    left = _joined(number, edges[:middle], cells[: middle + 1])
    right = _joined(number, edges[middle + 1 :], cells[middle + 1 :])
    return Split(number, edges[middle], left, right)
