"""Solr's learning to rank, and the plug-ins for Elasticsearch and OpenSearch: weights, or curves and surfaces as trees.

Search engines score trees quickly, and nothing else that is not linear. A tree of one column halves an interval until
its function varies by no more than twice the error; a tree of a pair of columns halves rectangles. A value goes left
where it is smaller than the threshold; thresholds are numbers of single precision, as engines hold them. Engines hand
over 0 where a value is missing, so that no tree asks whether one is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import count, product
from typing import Any, NamedTuple

import numpy as np

from rankwise.arrays import AnyArray, Floats
from rankwise.exceptions import InvalidInputError
from rankwise.formula.formula import Column, Formula, Surface, Table, Term, raw
from rankwise.formula.steps import Affine, Levels, Pieces

_SLACK = 1e-6  # what Solr adds to every threshold
_MANY = 200_000  # leaves that an engine still loads
_PROBES = 9  # places at which a function is looked at inside an interval


class Split(NamedTuple):
    """Go left where a column is smaller than the threshold."""

    input: int
    threshold: float
    left: Tree
    right: Tree


Tree = float | Split  # a number is a leaf: the value that it adds to the score


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
        used = sorted({node.input for tree in trees for node in _nodes(tree) if isinstance(node, Split)})
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


def _nodes(tree: Tree) -> Iterator[Tree]:
    yield tree
    if isinstance(tree, Split):
        yield from _nodes(tree.left)
        yield from _nodes(tree.right)


def _leaves(tree: Tree) -> list[float]:
    return [node for node in _nodes(tree) if not isinstance(node, Split)]


def _solr_node(tree: Tree, formula: Formula) -> dict[str, Any]:
    """Return a node: a value that is at most the threshold goes left, after Solr has added its slack."""
    if not isinstance(tree, Split):
        return {"value": _short(tree)}
    below = np.nextafter(np.float32(tree.threshold), np.float32(-np.inf))
    return {
        "feature": formula.names[tree.input],
        "threshold": _short(float(below) - _SLACK),
        "left": _solr_node(tree.left, formula),
        "right": _solr_node(tree.right, formula),
    }


def _boosted_tree(tree: Tree, formula: Formula, depth: int = 0, number: Iterator[int] | None = None) -> Any:
    """Return a tree in XGBoost's dump format: smaller values go to "yes"."""
    number = number or count()
    node: dict[str, Any] = {"nodeid": next(number)}
    if not isinstance(tree, Split):
        return {**node, "leaf": tree}
    left, right = (_boosted_tree(one, formula, depth + 1, number) for one in (tree.left, tree.right))
    return {
        **node,
        "depth": depth,
        "split": formula.names[tree.input],
        "split_condition": tree.threshold,
        "yes": left["nodeid"],
        "no": right["nodeid"],
        "missing": right["nodeid"],
        "children": [left, right],
    }


def _short(value: float) -> str:
    return repr(float(np.float32(value)))


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def lowest(trees: Sequence[Tree]) -> float:
    """Return the smallest sum of leaves, a little less than it, because engines add in single precision."""
    ends = [_leaves(tree) for tree in trees]
    return float(sum(map(min, ends)) - 1e-6 * sum(max(map(abs, own)) for own in ends))


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
    shapes = [_Shape((at,), function_of(own), (edges_of(own),)) for at, own in columns.items()]
    spreads = [float(np.ptp(one.function(*one.edges))) if one.edges[0].size else 0.0 for one in shapes]
    shapes += map(_shape, formula.surfaces)
    spreads += [float(np.ptp(np.asarray(surface.values))) for surface in formula.surfaces]
    finest = 1000 if not formula.surfaces else 100
    whole = sum(spreads) / finest if error is None else float(error)
    # The leaves of a surface grow with the square of spread / error: this share has the fewest for a given sum.
    powers = np.asarray(spreads) ** (2 / 3)
    shares = whole * powers / max(powers.sum(), np.finfo(float).tiny)
    trees: list[Tree] = [formula.constant] if formula.constant else []
    trees += [one.tree(share) for one, share in zip(shapes, shares.tolist(), strict=True)]
    _check_size(sum(len(_leaves(tree)) for tree in trees))
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
    return np.unique([_single(edge) for edge in found])


class _Shape(NamedTuple):
    """A function of one column or two, and where it bends or jumps; outside of these edges it is constant."""

    columns: tuple[int, ...]
    function: Callable[..., Floats]
    edges: tuple[Floats, ...]

    def tree(self, error: float) -> Tree:
        """Return a tree of the function that differs from it by no more than the error."""
        return self._grid(self.edges, iter(self._halved(self._cells(), error)))

    def _cells(self) -> Floats:
        """Return the boxes between edges, and those outside without a width: (boxes, columns, 2)."""
        sides = []
        for own in self.edges:
            low = np.append(_before(own[:1]), own) if own.size else np.zeros(1)
            sides.append(np.column_stack([low, np.concatenate([low[:1], own[1:], own[-1:]])]))
        return np.array(list(product(*sides)))

    def _grid(self, edges: Sequence[Floats], cells: Iterator[Tree]) -> Tree:
        if not edges:
            return next(cells)
        parts = [self._grid(edges[1:], cells) for _ in range(edges[0].size + 1)]
        return _joined(self.columns[-len(edges)], edges[0].tolist(), parts)

    def _halved(self, boxes: Floats, error: float) -> list[Tree]:
        """Return the trees of boxes, all halved together as long as the function varies too much in one."""
        _check_size(len(boxes))
        low, high = np.moveaxis(boxes, 2, 0)
        n_columns = low.shape[1]
        # A bilinear function has its extremes in corners. An edge belongs to the box that it begins.
        probes = _PROBES if n_columns == 1 else 2
        sides = np.linspace(low, np.maximum(low, _before(high)), probes)
        places = product(range(probes), repeat=n_columns)
        values = np.stack([self.function(*(sides[i, :, k] for k, i in enumerate(place))) for place in places])
        cube = values.reshape(*[probes] * n_columns, -1)
        along = [np.ptp(cube, axis=k).reshape(-1, len(boxes)).max(axis=0) for k in range(n_columns)]
        every, at = np.arange(len(boxes)), np.argmax(along, axis=0)
        middle = ((low + high) / 2)[every, at].astype(np.float32).astype(np.float64)
        fine = (middle <= low[every, at]) | (middle >= high[every, at])
        fine |= np.ptp(values, axis=0) <= 2 * error
        out: list[Tree] = ((values.max(axis=0) + values.min(axis=0)) / 2).tolist()
        coarse = np.flatnonzero(~fine)
        if coarse.size:
            left, right = boxes[coarse], boxes[coarse]
            own = np.arange(coarse.size)
            left[own, at[coarse], 1] = right[own, at[coarse], 0] = middle[coarse]
            halves = self._halved(np.concatenate((left, right)), error)
            for number, one, other in zip(coarse.tolist(), halves, halves[coarse.size :], strict=False):
                out[number] = Split(self.columns[at[number]], float(middle[number]), one, other)
        return out


def _shape(surface: Surface) -> _Shape:
    if any(column.steps for column in surface.columns):
        raise InvalidInputError(
            "A surface of transformed columns cannot become trees.",
            "train without these transformers, or export to SQL, C, JavaScript, Python or ONNX.",
        )
    first, second = surface.columns
    edges = [np.unique([_single(knot) for knot in knots]) for knots in surface.knots]
    return _Shape((first.number, second.number), surface.apply, (edges[0], edges[1]))


def _check_size(n_leaves: int) -> None:
    if n_leaves > _MANY:
        raise InvalidInputError(
            f"The trees would have more than {_MANY:,} leaves.", "allow a larger error (error=)."
        )


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
