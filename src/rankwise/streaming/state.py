"""Everything that a stream of rows has shown so far: what a call may bring, what is remembered, and the model of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.data.queries import Queries
from rankwise.design import Design, Shift
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError
from rankwise.fitting.notices import Notice, out_of_range
from rankwise.fitting.squares import LeastSquares
from rankwise.objectives.accumulated import GrowingRanking, PassedQueries, needs_levels
from rankwise.objectives.parts import RunningMean
from rankwise.pairs.labels import find_levels, laplacian_depends_on_labels
from rankwise.solvers.choose import fits_direct
from rankwise.solvers.stochastic import Memory
from rankwise.streaming.accumulators import (
    Accumulator,
    Batch,
    ExactQueries,
    ExactRanking,
    PairOptions,
    StreamedQueries,
    StreamedRanking,
)
from rankwise.streaming.pending import Remembered, SeenQueries

__all__ = ["Stream"]

# Up to here the matrix X'LX is small, and solving with it after every call takes less than a second.
_FEW_COLUMNS = 2048


@dataclass(frozen=True)
class Stream:
    """Everything so far. It never changes: a call makes another one, so that copies of a model go their own ways.

    Attributes
    ----------
    exact : bool
        Whether exact statistics are kept, or the model learns as the rows come.
    with_qid : bool
        Whether rows come in queries, or are all of one ranking.
    label_shape : tuple of int
        Empty for one output.
    splits : bool
        Whether every output has a memory of its own.
    shift : Shift or None
        What was subtracted from the columns in the first call.
    """

    options: PairOptions
    exact: bool
    with_qid: bool
    label_shape: tuple[int, ...]
    splits: bool
    memory: Remembered
    n_pairs: npt.NDArray[np.int64]
    n_ignored: npt.NDArray[np.int64]
    n_rows: int = 0
    seen: SeenQueries = field(default_factory=SeenQueries)
    shift: Shift | None = None

    @classmethod
    def opened(
        cls,
        options: PairOptions,
        *,
        exact: bool,
        with_qid: bool,
        n_features: int,
        label_shape: tuple[int, ...],
        shift: Shift | None = None,
    ) -> Stream:
        """Return the stream before its first row."""
        own_graphs = laplacian_depends_on_labels(options.ties, options.cost, options.query_weight)
        by_level = not with_qid and needs_levels(options.ties, options.cost, options.query_weight)
        splits = bool(label_shape) and (own_graphs or by_level)
        shapes: list[tuple[int, ...]] = [()] * label_shape[0] if splits else [label_shape]
        opened = _exact if exact else _streamed
        nothing = tuple(opened(options, n_features, shape, with_qid) for shape in shapes)
        none = np.zeros(label_shape[0] if label_shape else 1, dtype=np.int64)
        return cls(
            options,
            exact,
            with_qid,
            label_shape,
            splits,
            Remembered(nothing, nothing),
            none,
            none,
            shift=shift,
        )

    @classmethod
    def begun(
        cls,
        options: PairOptions,
        fit: LeastSquares,
        design: Design,
        label_shape: tuple[int, ...],
        *,
        with_qid: bool,
    ) -> Stream:
        """Return the stream before the rows of its first call: exact where that is cheap, or asked for."""
        n_features, forms_matrix = design.shape[1], fit.solver in {"direct", "eigen"}
        is_cheap = n_features <= _FEW_COLUMNS and fit.solver != "stochastic"
        exact = (forms_matrix or is_cheap) and fits_direct(n_features)
        if forms_matrix and not exact:
            fit.resolved(design, forms_matrix=True)  # says what is missing
        if not exact and fit.scaling != 0:
            raise UnsuitableSolverError(
                "scaling needs the diagonal of X'LX over all rows before the first of them is learned from.",
                "use scaling=0 with partial_fit, or fit.",
            )
        return cls.opened(
            options,
            exact=exact,
            with_qid=with_qid,
            n_features=n_features,
            label_shape=label_shape,
            shift=design.shift,
        )

    @property
    def attributes(self) -> dict[str, object]:
        """What a fit says about the rows so far; pairs are counted where there are queries."""
        found: dict[str, object] = {"n_samples_seen_": self.n_rows, "fitted_with_qid_": self.with_qid}
        if not self.with_qid:
            return {"n_queries_": 1, **found}
        n_pairs, n_ignored = (
            own if self.label_shape else int(own[0]) for own in (self.n_pairs, self.n_ignored)
        )
        counted = {"n_queries_": len(self.seen), "n_pairs_": n_pairs, "n_ignored_queries_": n_ignored}
        return counted | found

    def check(
        self,
        options: PairOptions,
        design: Design,
        label_shape: tuple[int, ...],
        queries: Queries,
        *,
        with_qid: bool,
    ) -> None:
        """Raise unless a call fits what came before."""
        if options != self.options:
            raise InvalidInputError(
                "ties, cost or query_weight changed while rows were coming in; what was seen cannot be undone.",
                "set them back, or start anew with clone(model).",
            )
        if with_qid != self.with_qid:
            before, now = ("with", "without") if self.with_qid else ("without", "with")
            raise InvalidInputError(
                f"Earlier calls of partial_fit came {before} qid, and this one comes {now}.",
                "pass qid in every call, or in none: without it all rows of all calls form one ranking.",
            )
        if label_shape != self.label_shape:
            raise InvalidInputError(
                f"y has {_columns(label_shape)}, but earlier calls of partial_fit had {_columns(self.label_shape)}.",
                "pass the same outputs in every call.",
            )
        if with_qid:
            again = [query for query in queries.ids.tolist() if query in self.seen]
            if again:
                raise InvalidInputError(
                    f"{len(again)} of the {len(queries)} queries came in an earlier call already, for example "
                    f"{again[0]!r}; pairs between the two calls would be missing.",
                    "pass all rows of a query in one call: sort the stream by qid, and cut it between queries.",
                )
        if not self.exact and not design.has_rows:
            raise UnsuitableSolverError(
                "A LinearOperator gives no diagonal, which learning from a stream of many columns remembers.",
                "pass a dense or sparse X.",
            )

    def after(
        self, design: Design, y: Floats, queries: Queries, row_weight: Floats | None, alpha: float
    ) -> Stream:
        """Return the stream after the rows of a call."""
        columns = [y] if y.ndim == 1 else list(np.ascontiguousarray(y.T))
        batch = Batch(design, tuple(columns) if self.splits else (y,), queries, row_weight)
        memory = self.memory.after(batch, alpha, with_qid=self.with_qid)
        longer = replace(self, memory=memory, n_rows=self.n_rows + design.shape[0])
        if not self.with_qid:
            return longer
        levels = [find_levels(column, queries, row_weight) for column in columns]
        return replace(
            longer,
            n_pairs=self.n_pairs + np.array([level.n_pairs for level in levels]),
            n_ignored=self.n_ignored + np.array([int((~level.ordered).sum()) for level in levels]),
            seen=self.seen.plus(queries.ids.tolist()),
        )

    def model(self, fit: LeastSquares) -> tuple[Floats, str, int, list[Notice]]:
        """Return the coefficients of everything so far, the solver, its iterations, and what is to be said."""
        learned = (StreamedQueries, StreamedRanking)
        if not self.exact:
            coef = self._coef([own.memory.coef for own in self.memory.current if isinstance(own, learned)])
            if not np.isfinite(coef).all():
                raise out_of_range()
            return coef, "stochastic", 1, []
        fit = replace(fit, solver="direct") if fit.solver == "auto" else fit
        solutions = [fit.solve(own.statistics.objective()) for own in self.memory.exact]
        n_iter = max(solution.n_iter for solution in solutions)
        coef = self._coef([solution.coef for solution in solutions])
        return coef, fit.solver, n_iter, fit.notices(solutions)

    def _coef(self, coefs: Sequence[Floats]) -> Floats:
        # A copy: whoever changes the coefficients of a model must not change what the stream remembers.
        return np.array(coefs) if self.splits else np.array(coefs[0].T, order="C")


def _exact(options: PairOptions, n_features: int, shape: tuple[int, ...], with_qid: bool) -> Accumulator:
    if with_qid:
        return ExactQueries(options, PassedQueries.empty(n_features, shape))
    return ExactRanking(GrowingRanking(options.ties, options.cost, options.query_weight))


def _streamed(options: PairOptions, n_features: int, shape: tuple[int, ...], with_qid: bool) -> Accumulator:
    memory = Memory.empty((n_features, *shape))
    if with_qid:
        return StreamedQueries(options, memory)
    if needs_levels(options.ties, options.cost, options.query_weight):
        raise UnsuitableSolverError(
            "One ranking over all calls, with many columns, can be learned from a stream only where tied rows are "
            "compared by the difference of their labels.",
            "use ties='include', cost='magnitude' and query_weight='size' or 'pairs'; or pass qid; or use "
            "solver='direct', where a matrix of columns × columns fits.",
        )
    return StreamedRanking(options, memory, RunningMean.empty(n_features, shape))


def _columns(label_shape: tuple[int, ...]) -> str:
    return f"{label_shape[0]} columns" if label_shape else "one dimension"
