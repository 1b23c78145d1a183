"""ONNX: a graph in double precision, over rows of numbers and, where a model has them, of texts.

Each value of a program is a column of shape (rows, 1); columns that enter linearly are multiplied together. Operators
are those of opset 17, and of them the ones that run in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

import rankwise
from rankwise.arrays import ArrayLike, Floats
from rankwise.exceptions import InvalidInputError, MissingPackageError
from rankwise.exporters.code import kernel_parts
from rankwise.exporters.program import Program
from rankwise.formula.formula import Formula, Surface
from rankwise.formula.steps import (
    Affine,
    Clip,
    Curve,
    Fill,
    IsMissing,
    Levels,
    Pieces,
    Power,
    QueryScale,
    Stairs,
    Step,
)

__all__ = ["onnx_model"]

_OPSET, _ML_OPSET, _IR = 17, 3, 8


def onnx_model(formula: Formula, name: str) -> bytes:
    """Return the bytes of a model with inputs ``X`` (numbers) and ``texts``, and the output ``score``."""
    try:
        from onnx import TensorProto, checker, helper  # noqa: PLC0415
    except ImportError as error:
        raise MissingPackageError(
            "Writing ONNX needs the package onnx.", "install it: pip install 'rankwise[onnx]'."
        ) from error
    graph = _Graph(formula, helper)
    total = graph.total()
    graph.node("Squeeze", [total, graph.ints([1])], output="score")
    numbers, texts = graph.columns(is_text=False), graph.columns(is_text=True)
    inputs = []
    if numbers:
        inputs.append(helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["rows", len(numbers)]))
    if texts:
        inputs.append(helper.make_tensor_value_info("texts", TensorProto.STRING, ["rows", len(texts)]))
    made = helper.make_graph(
        graph.nodes,
        name,
        inputs,
        [helper.make_tensor_value_info("score", TensorProto.DOUBLE, ["rows"])],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", _OPSET)]
    opsets += [helper.make_opsetid("ai.onnx.ml", _ML_OPSET)] if texts else []
    model = helper.make_model(
        made,
        opset_imports=opsets,
        ir_version=_IR,
        producer_name="rankwise",
        producer_version=rankwise.__version__,
    )
    notes = {"columns": "\n".join(numbers), "texts": "\n".join(texts)}
    helper.set_model_props(model, {key: value for key, value in notes.items() if value})
    checker.check_model(model)
    return bytes(model.SerializeToString())


class _Graph:
    """Nodes and constants as they come."""

    def __init__(self, formula: Formula, helper: ModuleType) -> None:
        self._helper, self.formula = helper, formula
        self.program = Program(formula)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._count = 0
        self._raw: dict[int, str] = {}
        kinds = [number for number, is_text in enumerate(formula.is_text) if not is_text]
        self._place = {number: at for at, number in enumerate(kinds)}
        kinds = [number for number, is_text in enumerate(formula.is_text) if is_text]
        self._text_place = {number: at for at, number in enumerate(kinds)}

    def columns(self, *, is_text: bool) -> list[str]:
        """Return the names of the columns of one of the inputs."""
        return [
            n for n, text in zip(self.formula.names, self.formula.is_text, strict=True) if text == is_text
        ]

    # --- building ---

    def node(self, kind: str, inputs: Sequence[str], *, output: str | None = None, **options: object) -> str:
        """Add a node and return the name of what it makes."""
        self._count += 1
        output = output or f"n{self._count}"
        self.nodes.append(self._helper.make_node(kind, list(inputs), [output], **options))
        return output

    def doubles(self, values: ArrayLike) -> str:
        """Add a constant and return its name."""
        array = np.asarray(values, dtype=np.float64)
        # Scalars beside a product of matrices are fused into it by onnxruntime, in single precision.
        array = array.reshape(1, 1) if array.ndim == 0 else array
        return self._constant(11, array.shape, array.ravel().tolist())

    def ints(self, values: Sequence[int]) -> str:
        """Add a constant of whole numbers and return its name."""
        return self._constant(7, (len(values),), list(values))

    def _constant(self, kind: int, shape: Sequence[int], values: list[float] | list[int] | list[str]) -> str:
        self._count += 1
        name = f"c{self._count}"
        self.constants.append(self._helper.make_tensor(name, kind, list(shape), values))
        return name

    # --- what is computed ---

    def total(self) -> str:
        """Return the scores, of shape (rows, 1)."""
        program, parts = self.program, []
        names: dict[str, str] = {}
        for value in program.values:
            x = self.raw(value.input) if value.source is None else names[value.source]
            names[value.name] = self.step(value.step, x, is_text=self.formula.is_text[value.input])
        if program.linear:
            parts.append(self._linear())
        if program.sums:
            beside = self.node("Concat", [names[name] for _, name in program.sums], axis=1)
            parts.append(
                self.node("MatMul", [beside, self.doubles([[weight] for weight, _ in program.sums])])
            )
        parts += [self._surface(surface, *(names[one] for one in both)) for surface, both in program.surfaces]
        if program.kernel is not None:
            seen = [names[name] if name else self.raw(number) for number, name in program.kernel_inputs]
            parts.append(self._kernel(self.node("Concat", seen, axis=1)))
        constant = self.doubles([[program.constant]])
        if not parts:  # a column of nothing but the constant
            zeros = self.node("Mul", [self.raw(0), self.doubles(0.0)])
            return self.node("Add", [zeros, constant])
        total = parts[0]
        for part in parts[1:]:
            total = self.node("Add", [total, part])
        return self.node("Add", [total, constant])

    def raw(self, number: int) -> str:
        """Return a column as it comes, of shape (rows, 1)."""
        if number not in self._raw:
            is_text = self.formula.is_text[number]
            place = (self._text_place if is_text else self._place)[number]
            self._raw[number] = self.node("Gather", ["texts" if is_text else "X", self.ints([place])], axis=1)
        return self._raw[number]

    def _linear(self) -> str:
        weights = np.zeros((len(self._place), 1))
        centers = np.zeros(len(self._place))
        later = []
        for number, weight, center in self.program.linear:
            place = self._place[number]
            if weights[place] == 0:
                weights[place], centers[place] = weight, center
            else:  # the same column with another centre
                shifted = self.node("Sub", [self.raw(number), self.doubles(center)])
                later.append(self.node("Mul", [shifted, self.doubles(weight)]))
        used = np.flatnonzero(weights[:, 0]).tolist()
        x = "X"
        if len(used) < weights.shape[0]:
            # What is not used may be missing, and nothing times that is missing too.
            x, weights, centers = (
                self.node("Gather", ["X", self.ints(used)], axis=1),
                weights[used],
                centers[used],
            )
        x = self.node("Sub", [x, self.doubles(centers)]) if centers.any() else x
        total = self.node("MatMul", [x, self.doubles(weights)])
        for part in later:
            total = self.node("Add", [total, part])
        return total

    def step(self, step: Step, x: str, *, is_text: bool = False) -> str:  # noqa: C901, PLR0911 - one per kind of step
        """Return a step of a column."""
        if isinstance(step, Affine):
            out = self.node("Sub", [x, self.doubles(step.center)]) if step.center else x
            out = self.node("Mul", [out, self.doubles(step.scale)])
            return self.node("Add", [out, self.doubles(step.shift)]) if step.shift else out
        if isinstance(step, Fill):
            if isinstance(step.value, str):
                raise InvalidInputError(
                    "ONNX has no missing texts, so that none can be filled in.",
                    "leave the imputer of texts out: missing ones become a category of their own in OneHotEncoder.",
                )
            return self.where(self.node("IsNaN", [x]), self.doubles(step.value), x)
        if isinstance(step, IsMissing):
            return self.node("Cast", [self.node("IsNaN", [x])], to=11)
        if isinstance(step, Clip):
            low = self.node("Max", [x, self.doubles(step.low)])
            out = self.node("Min", [low, self.doubles(step.high)])
            return self.where(self.node("IsNaN", [x]), x, out)
        if isinstance(step, Levels):
            return self._levels(step, x, is_text=is_text)
        if isinstance(step, Curve):
            return self._known(x, self._curve(step.knots, step.values, x), step.missing)
        if isinstance(step, Stairs):
            return self._stairs(step, x)
        if isinstance(step, Pieces):
            return self._known(x, self._pieces(step, x), step.missing)
        if isinstance(step, QueryScale):
            return self._query(step.method, x)
        assert isinstance(step, Power)
        return self._power(step, x)

    def where(self, condition: str, yes: str, no: str) -> str:
        """Return one of two values."""
        return self.node("Where", [condition, yes, no])

    def _known(self, x: str, value: str, missing: float | None) -> str:
        return value if missing is None else self.where(self.node("IsNaN", [x]), self.doubles(missing), value)

    def _levels(self, step: Levels, x: str, *, is_text: bool) -> str:
        values = [*step.values, step.other, step.missing]
        if is_text:
            # An empty text stands for a missing one.
            keys, codes = [*step.levels, ""], [*range(len(step.levels)), len(step.levels) + 1]
            code = self.node(
                "LabelEncoder", [x], domain="ai.onnx.ml", keys_strings=keys, values_int64s=codes,
                default_int64=len(step.levels),
            )  # fmt: skip
            return self.node("Gather", [self.doubles(values), code])
        same = self.node("Equal", [x, self.doubles(list(step.levels))])
        hits = self.node("Cast", [same], to=11)
        known = self.node("ReduceMax", [hits], axes=[1], keepdims=1)
        value = self.node("MatMul", [hits, self.doubles([[value] for value in step.values])])
        is_known = self.node("Greater", [known, self.doubles(0.0)])
        return self._known(x, self.where(is_known, value, self.doubles(step.other)), step.missing)

    def _curve(self, knots: Sequence[float], values: Sequence[float], x: str) -> str:
        """Return ``values[0]`` and the slope of each segment times how much of it lies before x."""
        if len(knots) == 1:
            return self.node("Add", [self.node("Mul", [x, self.doubles(0.0)]), self.doubles(values[0])])
        k, v = np.asarray(knots), np.asarray(values)
        gap = np.diff(k)
        slopes = np.divide(np.diff(v), gap, out=np.zeros_like(gap), where=gap > 0)
        way = self.node("Sub", [x, self.doubles(k[:-1])])
        way = self.node("Min", [self.node("Max", [way, self.doubles(0.0)]), self.doubles(gap)])
        return self.node(
            "Add", [self.node("MatMul", [way, self.doubles(slopes[:, None])]), self.doubles(v[0])]
        )

    def _stairs(self, step: Stairs, x: str) -> str:
        passed = self.node("Cast", [self.node("GreaterOrEqual", [x, self.doubles(list(step.edges))])], to=11)
        rises = self.doubles(np.diff(np.asarray(step.values))[:, None])
        return self.node("Add", [self.node("MatMul", [passed, rises]), self.doubles(step.values[0])])

    def _pieces(self, step: Pieces, x: str) -> str:
        table = np.asarray(step.coefficients)
        low = self.doubles([-np.inf, *step.breaks])
        high = self.doubles([*step.breaks, np.inf])
        inside = self.node("And", [self.node("GreaterOrEqual", [x, low]), self.node("Less", [x, high])])
        # Where a piece is not meant, its polynomial may be huge: nothing of it is computed there.
        local = self.where(inside, self.node("Sub", [x, self.doubles(step.starts)]), self.doubles(0.0))
        out = self.doubles(table[:, 0])
        for power in range(1, table.shape[1]):
            out = self.node("Add", [self.node("Mul", [out, local]), self.doubles(table[:, power])])
        kept = self.where(inside, out, self.doubles(0.0))
        return self.node("ReduceSum", [kept, self.ints([1])], keepdims=1)

    def _power(self, step: Power, x: str) -> str:
        if step.is_box_cox:
            return self._box_cox(x, step.exponent)
        one, zero = self.doubles(1.0), self.doubles(0.0)
        up = self._box_cox(self.node("Add", [self.node("Max", [x, zero]), one]), step.exponent)
        down = self._box_cox(self.node("Sub", [one, self.node("Min", [x, zero])]), 2 - step.exponent)
        return self.where(self.node("GreaterOrEqual", [x, zero]), up, self.node("Neg", [down]))

    def _box_cox(self, x: str, exponent: float) -> str:
        if abs(exponent) < 1e-12:
            return self.node("Log", [x])
        raised = self.node("Sub", [self.node("Pow", [x, self.doubles(exponent)]), self.doubles(1.0)])
        return self.node("Div", [raised, self.doubles(exponent)])

    def _query(self, method: str, x: str) -> str:
        """Return a column scaled by all rows of the input, which are those of one query."""
        low = self.node("ReduceMin", [x], axes=[0], keepdims=1)
        high = self.node("ReduceMax", [x], axes=[0], keepdims=1)
        spread = self.node("Sub", [high, low])
        varies = self.node("Greater", [spread, self.doubles(0.0)])
        if method == "minmax":
            place = self.node("Sub", [x, low])
        elif method == "standard":
            mean = self.node("ReduceMean", [x], axes=[0], keepdims=1)
            place = self.node("Sub", [x, mean])
            squares = self.node("Mul", [place, place])
            spread = self.node("Sqrt", [self.node("ReduceMean", [squares], axes=[0], keepdims=1)])
        else:
            across = self.node("Transpose", [x], perm=[1, 0])
            counts = [
                self.node(
                    "ReduceSum",
                    [self.node("Cast", [self.node(k, [x, across])], to=11), self.ints([1])],
                    keepdims=1,
                )
                for k in ("Greater", "GreaterOrEqual")
            ]
            # Of n tied rows, the places are counted from the smaller ones on: their mean.
            both = self.node("Sub", [self.node("Add", counts), self.doubles(1.0)])
            place = self.node("Mul", [both, self.doubles(0.5)])
            ones = self.node("Add", [self.node("Mul", [x, self.doubles(0.0)]), self.doubles(1.0)])
            rows = self.node("ReduceSum", [ones, self.ints([0])], keepdims=1)
            spread = self.node("Max", [self.node("Sub", [rows, self.doubles(1.0)]), self.doubles(1.0)])
        safe = self.where(varies, spread, self.doubles(1.0))
        return self.where(varies, self.node("Div", [place, safe]), self.doubles(0.0))

    def _surface(self, surface: Surface, x: str, y: str) -> str:
        """Return ``hats(x)' grid hats(y)``: a bilinear function is a product of shares of the knots."""
        grid = np.asarray(surface.values)
        first = self._hats(x, surface.knots[0], grid.shape[0])
        second = self._hats(y, surface.knots[1], grid.shape[1])
        mixed = self.node("Mul", [self.node("MatMul", [first, self.doubles(grid)]), second])
        return self.node("ReduceSum", [mixed, self.ints([1])], keepdims=1)

    def _hats(self, x: str, knots: Sequence[float], n_places: int) -> str:
        """Return how much of a value belongs to each knot, and to the place of missing ones."""
        gone = self.node("IsNaN", [x])
        inside = self.where(gone, self.doubles(knots[0]), x)
        columns = [self._curve(knots, np.eye(len(knots))[at].tolist(), inside) for at in range(len(knots))]
        hats = self.node("Concat", columns, axis=1)
        if n_places == len(knots):
            return hats
        hats = self.where(gone, self.doubles(0.0), hats)
        return self.node("Concat", [hats, self.node("Cast", [gone], to=11)], axis=1)

    def _kernel(self, rows: str) -> str:
        kernel = self.program.kernel
        assert kernel is not None
        kind, gamma, offset, degree = kernel_parts(kernel)
        basis: Floats = kernel.basis
        dual = self.doubles(kernel.dual[:, None])
        if kind == "rbf":
            # Around the mean of the basis, so that squares are small and their differences lose nothing.
            center = basis.mean(axis=0)
            basis, rows = basis - center, self.node("Sub", [rows, self.doubles(center)])
            own = self.node("ReduceSum", [self.node("Mul", [rows, rows]), self.ints([1])], keepdims=1)
            cross = self.node("MatMul", [rows, self.doubles(-2 * basis.T)])
            far = self.node("Add", [self.node("Add", [cross, own]), self.doubles((basis**2).sum(axis=1))])
            far = self.node("Max", [far, self.doubles(0.0)])
            values = self.node("Exp", [self.node("Mul", [far, self.doubles(-gamma)])])
            return self.node("MatMul", [values, dual])
        values = self.node("MatMul", [rows, self.doubles((1.0 if kind == "linear" else gamma) * basis.T)])
        if kind != "linear":
            values = self.node("Add", [values, self.doubles(offset)])
            values = (
                self.node("Tanh", [values])
                if kind == "sigmoid"
                else self.node("Pow", [values, self.doubles(degree)])
            )
        return self.node("MatMul", [values, dual])
