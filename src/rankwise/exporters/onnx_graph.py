"""ONNX: a graph in double precision, over rows of numbers and, where a model has them, of texts.

Each value of a program is a column of shape (rows, 1), made in `onnx_nodes.py`; columns that enter linearly are
multiplied together.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np

import rankwise
from rankwise.arrays import Floats
from rankwise.exceptions import MissingPackageError
from rankwise.exporters.code import kernel_parts
from rankwise.exporters.onnx_nodes import Nodes
from rankwise.exporters.program import Program
from rankwise.formula.formula import Formula, Surface

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


class _Graph(Nodes):
    """The nodes of a formula."""

    def __init__(self, formula: Formula, helper: ModuleType) -> None:
        super().__init__(helper)
        self.formula, self.program = formula, Program(formula)
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

    def total(self) -> str:
        """Return the scores, of shape (rows, 1)."""
        program, parts = self.program, []
        names: dict[str, str] = {}
        for value in program.values:
            made_of = [self.raw(one) if isinstance(one, int) else names[one] for one in value.sources]
            names[value.name] = (
                self.node("Mul", made_of)
                if value.step is None
                else self.step(value.step, made_of[0], is_text=value.takes_text)
            )
        if program.linear:
            parts.append(self._linear())
        if program.sums:
            beside = self.node("Concat", [names[name] for _, name in program.sums], axis=1)
            parts.append(
                self.node("MatMul", [beside, self.doubles([[weight] for weight, _ in program.sums])])
            )
        parts += [self._surface(surface, *(names[one] for one in both)) for surface, both in program.surfaces]
        if program.kernel is not None:
            seen = [self.raw(one) if isinstance(one, int) else names[one] for one in program.kernel_inputs]
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
        columns = [self.curve(knots, np.eye(len(knots))[at].tolist(), inside) for at in range(len(knots))]
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
        if kind == "laplacian":
            steps = self.node(
                "Sub", [self.node("Unsqueeze", [rows, self.ints([1])]), self.doubles(basis[None])]
            )
            far = self.node("ReduceSum", [self.node("Abs", [steps]), self.ints([2])], keepdims=0)
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
