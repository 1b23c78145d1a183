"""ONNX: nodes and constants of a graph as they come, and what becomes of one column.

A column has the shape (rows, 1). Operators are those of opset 17, and of them the ones that run in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from rankwise.arrays import ArrayLike
from rankwise.exceptions import InvalidInputError
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

__all__ = ["Nodes"]


class Nodes:
    """Nodes and constants.

    Attributes
    ----------
    nodes, constants : list
        In the order in which they were added.

    Parameters
    ----------
    helper : module
        ``onnx.helper``, which whoever needs it imports.
    """

    def __init__(self, helper: ModuleType) -> None:
        self._helper = helper
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._count = 0

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
            return self._known(x, self.curve(step.knots, step.values, x), step.missing)
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
        # Nothing equals NaN: a mark of what is missing has no levels, and a table of none has no shape.
        levels, results = step.levels or (np.nan,), step.values or (0.0,)
        same = self.node("Equal", [x, self.doubles(list(levels))])
        hits = self.node("Cast", [same], to=11)
        known = self.node("ReduceMax", [hits], axes=[1], keepdims=1)
        value = self.node("MatMul", [hits, self.doubles([[value] for value in results])])
        is_known = self.node("Greater", [known, self.doubles(0.0)])
        return self._known(x, self.where(is_known, value, self.doubles(step.other)), step.missing)

    def curve(self, knots: Sequence[float], values: Sequence[float], x: str) -> str:
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
        """Return a column scaled by all rows of the input, which are those of one query; missing ones take no part."""
        gone = self.node("IsNaN", [x])
        known = self.node("Cast", [self.node("Not", [gone])], to=11)
        low, high = (
            self.node(kind, [self.where(gone, self.doubles(nowhere), x)], axes=[0], keepdims=1)
            for kind, nowhere in (("ReduceMin", np.inf), ("ReduceMax", -np.inf))
        )
        spread = self.node("Sub", [high, low])
        varies = self.node("Greater", [spread, self.doubles(0.0)])
        zero, one = self.doubles(0.0), self.doubles(1.0)
        n_known = self.node("Max", [self.node("ReduceSum", [known, self.ints([0])], keepdims=1), one])
        if method == "rank":
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
            both = self.node("Sub", [self.node("Add", counts), one])
            place = self.node("Mul", [both, self.doubles(0.5)])
            last = self.node("Max", [self.node("Sub", [n_known, one]), one])
            scaled = self.node("Div", [place, last])
        else:
            scaled = self.node("Div", [self.node("Sub", [x, low]), self.where(varies, spread, one)])
        if method == "standard":
            # From the shares of the range, whose squares neither overflow nor vanish.
            mean = self._mean(self.where(gone, zero, scaled), n_known)
            place = self.node("Sub", [scaled, mean])
            squares = self.where(gone, zero, self.node("Mul", [place, place]))
            deviation = self.node("Sqrt", [self._mean(squares, n_known)])
            scaled = self.node("Div", [place, self.where(varies, deviation, one)])
        return self.where(gone, x, self.where(varies, scaled, zero))

    def _mean(self, values: str, count: str) -> str:
        return self.node("Div", [self.node("ReduceSum", [values, self.ints([0])], keepdims=1), count])
