"""ONNX: a graph in double precision, over rows of numbers and, where a model has them, of texts.

Each value of a program is a column of shape (rows, 1); columns that enter linearly are multiplied together. Operators
are those of opset 17, and of them the ones that run in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

import rankwise
from rankwise.arrays import ArrayLike
from rankwise.exceptions import InvalidInputError, MissingPackageError
from rankwise.exporters.printing import Program, Source, Value
from rankwise.formula.formula import Formula, KernelSum, Surface
from rankwise.formula.steps import Affine, Fill, IsMissing, Levels, Pieces, Power, QueryScale

_OPSET, _ML_OPSET, _IR = 17, 3, 8
_DOUBLE, _STRING = 11, 8  # of TensorProto


def onnx_model(formula: Formula, name: str) -> bytes:
    """Return the bytes of a model with inputs ``X`` (numbers) and ``texts``, and the output ``score``."""
    try:
        import onnx  # noqa: PLC0415 - an optional dependency
        from onnx import helper  # noqa: PLC0415
    except ImportError as error:
        raise MissingPackageError(
            "Writing ONNX needs the package onnx.", "install it: pip install 'rankwise[onnx]'."
        ) from error
    graph = _Graph(formula, onnx)
    graph.node("Squeeze", graph.total(), graph.ints(1), output="score")
    given = [("X", "columns", _DOUBLE, graph.numbers), ("texts", "texts", _STRING, graph.texts)]
    given = [one for one in given if one[3]]
    value = helper.make_tensor_value_info
    inputs = [value(key, kind, ["rows", len(own)]) for key, _, kind, own in given]
    outputs = [value("score", _DOUBLE, ["rows"])]
    made = helper.make_graph(graph.nodes, name, inputs, outputs, graph.constants)
    opsets = [helper.make_opsetid("", _OPSET)]
    opsets += [helper.make_opsetid("ai.onnx.ml", _ML_OPSET)] if graph.texts else []
    about = {"producer_name": "rankwise", "producer_version": rankwise.__version__}
    model = helper.make_model(made, opset_imports=opsets, ir_version=_IR, **about)
    names = {title: "\n".join(formula.names[at] for at in own) for _, title, _, own in given}
    helper.set_model_props(model, names)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


class _Graph:
    """Nodes and constants in the order in which they are added; arguments that are no names become constants."""

    def __init__(self, formula: Formula, onnx: ModuleType) -> None:
        self._onnx, self._program = onnx, Program(formula)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.numbers = [at for at, is_text in enumerate(formula.is_text) if not is_text]
        self.texts = [at for at, is_text in enumerate(formula.is_text) if is_text]
        self._known: dict[Source, str] = {}

    def node(self, kind: str, *inputs: str | ArrayLike, output: str | None = None, **options: object) -> str:
        """Add a node and return the name of its output."""
        names = [one if isinstance(one, str) else self._constant(one) for one in inputs]
        output = output or f"n{len(self.nodes) + 1}"
        self.nodes.append(self._onnx.helper.make_node(kind, names, [output], **options))
        return output

    def ints(self, *values: int) -> str:
        """Add a constant of whole numbers and return its name."""
        return self._constant(values, np.int64)

    def _constant(self, values: ArrayLike, dtype: DTypeLike = np.float64) -> str:
        array = np.asarray(values, dtype)
        # Scalars beside a product of matrices are fused into it by onnxruntime, in single precision.
        array = array.reshape(1, 1) if array.ndim == 0 else array
        self.constants.append(self._onnx.numpy_helper.from_array(array, f"c{len(self.constants) + 1}"))
        return f"c{len(self.constants)}"

    def total(self) -> str:
        """Return the scores, of shape (rows, 1)."""
        program, formula = self._program, self._program.formula
        for value in program.values:
            self._known[value.name] = self._value(value)
        parts = self._weighted()
        parts += [self._surface(surface, *map(self._source, both)) for surface, both in program.surfaces]
        if formula.kernel is not None:
            parts.append(self._kernel(formula.kernel))
        total = parts[0] if parts else self.node("Mul", self._source(0), 0.0)
        for part in parts[1:]:
            total = self.node("Add", total, part)
        return self.node("Add", total, formula.constant)

    def _source(self, source: Source) -> str:
        if isinstance(source, int) and source not in self._known:
            own, key = (self.texts, "texts") if source in self.texts else (self.numbers, "X")
            self._known[source] = self.node("Gather", key, self.ints(own.index(source)), axis=1)
        return self._known[source]

    def _together(self, sources: Sequence[Source]) -> str:
        """Return columns side by side: inputs by one node, which may be thousands."""
        if any(isinstance(one, str) for one in sources):
            return self.node("Concat", *map(self._source, sources), axis=1)
        places = [self.numbers.index(int(one)) for one in sources]
        is_all = places == list(range(len(self.numbers)))
        return "X" if is_all else self.node("Gather", "X", self.ints(*places), axis=1)

    def _weighted(self) -> list[str]:
        parts = []
        for kind in (int, str):  # inputs, and values
            group = [term for term in self._program.terms if isinstance(term[1], kind)]
            if group:
                weights, sources, centers = zip(*group, strict=True)
                x = self._together(sources)
                x = self.node("Sub", x, [centers]) if any(centers) else x
                parts.append(self.node("MatMul", x, np.array(weights)[:, None]))
        return parts

    def _value(self, value: Value) -> str:  # noqa: PLR0911 - one per kind of step
        sources = [self._source(one) for one in value.sources]
        x = sources[0]
        match value.step:
            case None:
                return self.node("Mul", *sources)
            case Affine(center, scale, shift):
                out = self.node("Mul", self.node("Sub", x, center) if center else x, scale)
                return self.node("Add", out, shift) if shift else out
            case Fill(str()):
                raise InvalidInputError(
                    "ONNX has no missing texts, so an imputer of texts cannot be exported.",
                    "leave the imputer of texts out: missing ones become a category of their own in OneHotEncoder.",
                )
            case Fill(float() | int() as known):
                return self._if_missing(x, known, x)
            case IsMissing():
                return self._cast(self.node("IsNaN", x))
            case Levels() as step:
                return self._text_levels(step, x) if value.takes_text else self._levels(step, x)
            case Pieces(missing=gone) as step:
                return self._if_missing(x, x if gone is None else gone, self._pieces(step, x))
            case QueryScale(method):
                return self._query(method, x)
            case step:
                assert isinstance(step, Power)
                return self._power(step, x)

    def _cast(self, x: str) -> str:
        return self.node("Cast", x, to=_DOUBLE)

    def _sum(self, x: str, axis: int) -> str:
        return self.node("ReduceSum", x, self.ints(axis), keepdims=1)

    def _if_missing(self, x: str, missing: str | float, value: str | float) -> str:
        return self.node("Where", self.node("IsNaN", x), missing, value)

    def _text_levels(self, step: Levels, x: str) -> str:
        # An empty text stands for a missing one.
        n = len(step.levels)
        codes: dict[str, Any] = {"keys_strings": [*step.levels, ""], "values_int64s": [*range(n), n + 1]}
        code = self.node("LabelEncoder", x, domain="ai.onnx.ml", default_int64=n, **codes)
        return self.node("Gather", [*step.values, step.other, step.missing], code)

    def _levels(self, step: Levels, x: str) -> str:
        # Nothing equals NaN: a mark of what is missing has no levels, and a table of none has no shape.
        levels, values = step.levels or (np.nan,), step.values or (0.0,)
        hits = self._cast(self.node("Equal", x, levels))
        is_known = self.node("Greater", self._sum(hits, 1), 0.0)
        value = self.node("Where", is_known, self.node("MatMul", hits, np.array(values)[:, None]), step.other)
        return self._if_missing(x, step.missing, value)

    def _pieces(self, step: Pieces, x: str) -> str:
        table = np.asarray(step.coefficients)
        below, above = [-np.inf, *step.breaks], [*step.breaks, np.inf]
        inside = self.node("And", self.node("GreaterOrEqual", x, below), self.node("Less", x, above))
        # Where a piece is not meant, its polynomial may be huge: nothing of it is computed there.
        moves = self._constant(~step.is_constant, np.bool_)
        local = self.node("Where", self.node("And", inside, moves), self.node("Sub", x, step.starts), 0.0)
        out = self.node("Add", self.node("Mul", local, 0.0), table[:, 0])
        for power in range(1, table.shape[1]):
            out = self.node("Add", self.node("Mul", out, local), table[:, power])
        return self._sum(self.node("Where", inside, out, 0.0), 1)

    def _power(self, step: Power, x: str) -> str:
        if step.is_box_cox:
            return self._box_cox(x, step.exponent)
        up = self._box_cox(self.node("Add", self.node("Max", x, 0.0), 1.0), step.exponent)
        down = self._box_cox(self.node("Sub", 1.0, self.node("Min", x, 0.0)), 2 - step.exponent)
        return self.node("Where", self.node("GreaterOrEqual", x, 0.0), up, self.node("Neg", down))

    def _box_cox(self, x: str, exponent: float) -> str:
        if abs(exponent) < 1e-12:
            return self.node("Log", x)
        return self.node("Div", self.node("Sub", self.node("Pow", x, exponent), 1.0), exponent)

    def _query(self, method: str, x: str) -> str:
        """Return a column scaled by all rows of the input, which are those of one query; missing ones take no part."""
        low = self.node("ReduceMin", self._if_missing(x, np.inf, x), axes=[0], keepdims=1)
        high = self.node("ReduceMax", self._if_missing(x, -np.inf, x), axes=[0], keepdims=1)
        varies = self.node("Greater", high, low)
        known = self._cast(self.node("Not", self.node("IsNaN", x)))
        n_known = self.node("Max", self._sum(known, 0), 1.0)
        if method == "rank":
            across = self.node("Transpose", x, perm=[1, 0])
            # Of n tied rows, the places are counted from the smaller ones on: their mean.
            counts = [
                self._sum(self._cast(self.node(k, x, across)), 1) for k in ("Greater", "GreaterOrEqual")
            ]
            place = self.node("Mul", self.node("Sub", self.node("Add", *counts), 1.0), 0.5)
            scaled = self.node("Div", place, self.node("Max", self.node("Sub", n_known, 1.0), 1.0))
        else:
            spread = self.node("Where", varies, self.node("Sub", high, low), 1.0)
            scaled = self.node("Div", self.node("Sub", x, low), spread)
        if method == "standard":
            # From the shares of the range, whose squares neither overflow nor vanish.
            mean = self.node("Div", self._sum(self._if_missing(x, 0.0, scaled), 0), n_known)
            place = self.node("Sub", scaled, mean)
            squares = self._sum(self._if_missing(x, 0.0, self.node("Mul", place, place)), 0)
            deviation = self.node("Sqrt", self.node("Div", squares, n_known))
            scaled = self.node("Div", place, self.node("Where", varies, deviation, 1.0))
        return self._if_missing(x, x, self.node("Where", varies, scaled, 0.0))

    def _surface(self, surface: Surface, x: str, y: str) -> str:
        """Return ``hats(x)' grid hats(y)``: a bilinear function is a product of shares of the knots."""
        grid = np.asarray(surface.values)
        first, second = (
            self._hats(one, knots, size)
            for one, knots, size in zip((x, y), surface.knots, grid.shape, strict=True)
        )
        return self._sum(self.node("Mul", self.node("MatMul", first, grid), second), 1)

    def _hats(self, x: str, knots: Sequence[float], n_places: int) -> str:
        """Return how much of a value belongs to each knot, and to the place of missing ones."""
        inside = self._if_missing(x, knots[0], x)
        ones = self.node("Add", self.node("Mul", inside, 0.0), 1.0)
        hats = ones
        if len(knots) > 1:
            way = self.node("Div", self.node("Sub", inside, knots[:-1]), np.diff(knots))
            way = self.node("Min", self.node("Max", way, 0.0), 1.0)
            before = self.node("Concat", way, self.node("Sub", ones, 1.0), axis=1)
            hats = self.node("Sub", self.node("Concat", ones, way, axis=1), before)
        if n_places == len(knots):
            return hats
        gone = self._cast(self.node("IsNaN", x))
        return self.node("Concat", self.node("Mul", hats, self.node("Sub", 1.0, gone)), gone, axis=1)

    def _kernel(self, kernel: KernelSum) -> str:
        kind, gamma, offset, degree = kernel.settings
        basis, rows = kernel.basis, self._together(self._program.kernel_inputs)
        if kind == "rbf":
            # Around the mean of the basis, so that squares are small and their differences lose nothing.
            center = basis.mean(axis=0)
            basis, rows = basis - center, self.node("Sub", rows, center)
            cross, own = self.node("MatMul", rows, -2 * basis.T), self._sum(self.node("Mul", rows, rows), 1)
            far = self.node("Add", self.node("Add", cross, own), (basis**2).sum(axis=1))
            values = self.node("Exp", self.node("Mul", self.node("Max", far, 0.0), -gamma))
        elif kind == "laplacian":
            gaps = self.node("Sub", self.node("Unsqueeze", rows, self.ints(1)), basis[None])
            far = self.node("ReduceSum", self.node("Abs", gaps), self.ints(2), keepdims=0)
            values = self.node("Exp", self.node("Mul", far, -gamma))
        else:
            values = self.node("MatMul", rows, (1.0 if kind == "linear" else gamma) * basis.T)
            values = values if kind == "linear" else self.node("Add", values, offset)
            values = self.node("Tanh", values) if kind == "sigmoid" else values
            values = self.node("Pow", values, degree) if kind == "poly" else values
        return self.node("MatMul", values, kernel.dual[:, None])
