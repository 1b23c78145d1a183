"""Learning from rows that come in calls: what a stream checks, remembers and tells."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Never, Self

import numpy as np
import numpy.typing as npt

from rankwise.data.queries import Queries
from rankwise.data.validation import check_qid, check_weights
from rankwise.design import Design, as_design
from rankwise.estimators.lanes import (
    ExactQueries,
    ExactRanking,
    Lane,
    PairOptions,
    StreamedQueries,
    StreamedRanking,
)
from rankwise.estimators.linear_rls import LinearRankRLS
from rankwise.estimators.pending import Batch, Lanes, SeenQueries, SettlingLanes
from rankwise.estimators.refusals import refuse_unknown
from rankwise.estimators.solving import out_of_range
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError
from rankwise.objectives import QuadraticObjective
from rankwise.objectives.accumulated import needs_levels
from rankwise.pairs.graph import Floats
from rankwise.pairs.labels import find_levels, laplacian_depends_on_labels
from rankwise.solvers.choose import fits_direct
from rankwise.solvers.solution import Solution

__all__ = ["FEW_COLUMNS", "Stream", "StreamingRanker"]

# Up to here the matrix X'LX is small, and solving with it after every call takes less than a second.
FEW_COLUMNS = 2048


@dataclass(frozen=True)
class Stream:
    """Everything so far. It never changes: a call makes another one, so that copies of a model go their own ways.

    Attributes
    ----------
    options : PairOptions
    exact : bool
        Whether exact statistics are kept, or the model learns as the rows come.
    with_qid : bool
        Whether rows come in queries, or are all of one ranking.
    label_shape : tuple of int
        Empty for one output.
    splits : bool
        Whether every output has a memory of its own.
    """

    options: PairOptions
    exact: bool
    with_qid: bool
    label_shape: tuple[int, ...]
    splits: bool
    memory: Lanes | SettlingLanes
    n_pairs: npt.NDArray[np.int64]
    n_ignored: npt.NDArray[np.int64]
    n_rows: int = 0
    seen: SeenQueries = field(default_factory=SeenQueries)

    @classmethod
    def opened(
        cls,
        options: PairOptions,
        *,
        exact: bool,
        with_qid: bool,
        n_features: int,
        label_shape: tuple[int, ...],
    ) -> Stream:
        """Return the stream before its first row."""
        own_graphs = laplacian_depends_on_labels(options.ties, options.cost, options.query_weight)
        by_level = not with_qid and needs_levels(options.ties, options.cost, options.query_weight)
        splits = bool(label_shape) and (own_graphs or by_level)
        shapes: list[tuple[int, ...]] = [()] * label_shape[0] if splits else [label_shape]
        lanes = tuple(_lane(options, n_features, shape, exact=exact, with_qid=with_qid) for shape in shapes)
        nothing = np.zeros(label_shape[0] if label_shape else 1, dtype=np.int64)
        memory = Lanes(lanes) if exact else SettlingLanes(lanes, lanes)
        return cls(options, exact, with_qid, label_shape, splits, memory, nothing, nothing)

    @property
    def n_queries(self) -> int:
        """How many queries came so far."""
        return len(self.seen) if self.with_qid else 1

    def check(
        self, options: PairOptions, label_shape: tuple[int, ...], queries: Queries, *, with_qid: bool
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

    def coef(self, solve: Any) -> Floats:
        """Return the coefficients, (outputs, features) where there are several outputs."""
        coefs = [lane.coef(solve) for lane in self.memory.current]
        # A copy: whoever changes the coefficients of a model must not change what the stream remembers.
        return np.array(coefs) if self.splits else np.array(coefs[0].T, order="C")


def _lane(
    options: PairOptions, n_features: int, shape: tuple[int, ...], *, exact: bool, with_qid: bool
) -> Lane:
    if with_qid:
        queries: type[ExactQueries | StreamedQueries] = ExactQueries if exact else StreamedQueries
        return queries.nothing(options, n_features, shape)
    if exact:
        return ExactRanking.nothing(options)
    if needs_levels(options.ties, options.cost, options.query_weight):
        raise UnsuitableSolverError(
            "One ranking over all calls, with many columns, can be learned from a stream only where tied rows are "
            "compared by the difference of their labels.",
            "use ties='include', cost='magnitude' and query_weight='size' or 'pairs'; or pass qid; or use "
            "solver='direct', where a matrix of columns × columns fits.",
        )
    return StreamedRanking.nothing(options, n_features, shape)


def _columns(label_shape: tuple[int, ...]) -> str:
    return f"{label_shape[0]} columns" if label_shape else "one dimension"


class StreamingRanker(LinearRankRLS):
    """A linear RankRLS that can be fitted a batch of rows at a time."""

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True}

    def partial_fit(
        self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None, **unknown: Never
    ) -> Self:
        """Fit the model to more rows: what is minimised is the sum over all calls so far, plus ``alpha ‖w‖²``.

        With up to 2,048 columns the model is exactly that of `fit` on all rows together, from statistics that take
        a matrix of columns × columns; with more, or with ``solver="stochastic"``, it is learned from one read of each
        row, in blocks of about 10,000 rows (`rankwise.solvers.stochastic`). Rows of smaller calls are copied and kept
        until they make a block, up to some 128 MiB, and learned from for the time being. Rows should come in random
        order. `fit` starts anew, and so does the first call after it.

        What a stream remembers is part of a copy or a pickle of the model, which then goes its own way. It is neither
        part of `clone` nor of a file written by `save`, which holds the model alone: after `rankwise.load`, the first
        call starts anew.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame or LinearOperator of shape (rows, features)
        y : array-like of shape (rows,) or (rows, outputs)
        qid : array-like of shape (rows,), optional
            A query must come whole, in one call. Without qid the rows of all calls form one ranking.
        sample_weight : array-like of shape (rows,), optional

        Returns
        -------
        self
            With ``n_samples_seen_``. ``n_pairs_`` and ``n_ignored_queries_`` are counted where there are queries.

        Examples
        --------
        >>> import numpy as np
        >>> from rankwise import RankRLS
        >>> rng = np.random.default_rng(0)
        >>> X, y = rng.normal(size=(90, 4)), rng.normal(size=90)
        >>> model = RankRLS()
        >>> for rows in np.split(np.arange(90), 3):
        ...     model = model.partial_fit(X[rows], y[rows])
        >>> bool(np.allclose(model.coef_, RankRLS().fit(X, y).coef_))
        True
        """
        refuse_unknown("partial_fit", unknown)
        self._check_parameters()
        if self.early_stopping:
            raise InvalidInputError(
                "early_stopping holds rows out of a fit, and partial_fit has only the rows of this call.",
                "set early_stopping=False, and judge the model between the calls.",
            )
        if y is None:
            raise InvalidInputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None.",
                "pass the labels that the rows are to be ranked by.",
            )
        stream: Stream | None = self.__dict__.get("_stream")
        X, y = self._check_matrix(X, y, reset=stream is None, min_rows=1)
        queries = check_qid(qid, X.shape[0])
        row_weight = check_weights(sample_weight, X.shape[0], may_all_be_zero=True)  # others may come
        design = as_design(X, self.n_threads)
        options = PairOptions(self.ties, self.cost, self.query_weight)
        if stream is None:
            stream = self._open_stream(design, y.shape[1:], options, with_qid=qid is not None)
        stream.check(options, y.shape[1:], queries, with_qid=qid is not None)
        if not stream.exact and design.kind == "operator":
            raise UnsuitableSolverError(
                "A LinearOperator gives no diagonal, which learning from a stream of many columns remembers.",
                "pass a dense or sparse X.",
            )
        # Nothing is kept before everything is done, so that a failure leaves the model and its stream as they were.
        with np.errstate(over="ignore", invalid="ignore"):
            stream = stream.after(design, y, queries, row_weight, float(self.alpha))
        self._describe(stream)
        self._stream = stream
        return self

    def _open_stream(
        self, design: Design, label_shape: tuple[int, ...], options: PairOptions, *, with_qid: bool
    ) -> Stream:
        n_features = design.shape[1]
        wants_matrix = self.solver in {"direct", "eigen"} or n_features <= FEW_COLUMNS
        exact = self.solver != "stochastic" and wants_matrix and fits_direct(n_features)
        if self.solver in {"direct", "eigen"} and not exact:
            self._resolve_solver(design, forms_matrix=True)  # says what is missing
        if not exact and self.scaling != 0:
            raise UnsuitableSolverError(
                "scaling needs the diagonal of X'LX over all rows before the first of them is learned from.",
                "use scaling=0 with partial_fit, or fit.",
            )
        return Stream.opened(
            options, exact=exact, with_qid=with_qid, n_features=n_features, label_shape=label_shape
        )

    def _describe(self, stream: Stream) -> None:
        attributes: dict[str, Any] = {"solver_": "stochastic", "n_iter_": 1}
        if stream.exact:
            solver = "direct" if self.solver == "auto" else self.solver
            solutions: list[Solution] = []

            def solve(objective: QuadraticObjective) -> Floats:
                solutions.append(self._solve(objective, solver))
                return solutions[-1].coef

            coef = stream.coef(solve)
            attributes = {"solver_": solver, "n_iter_": max(solution.n_iter for solution in solutions)}
        else:
            coef = stream.coef(None)
            if not np.isfinite(coef).all():
                raise out_of_range()
        if stream.with_qid:
            several = bool(stream.label_shape)
            attributes["n_pairs_"] = stream.n_pairs if several else int(stream.n_pairs[0])
            attributes["n_ignored_queries_"] = stream.n_ignored if several else int(stream.n_ignored[0])
        self._forget("best_iteration_", "history_", "n_components_", "n_unpaired_rows_", "n_pairs_")
        self._forget("n_ignored_queries_")
        self._set(attributes)
        self.coef_ = coef
        self.fitted_with_qid_ = stream.with_qid
        self.n_queries_ = stream.n_queries
        self.n_samples_seen_ = stream.n_rows

    def _check_parameters(self) -> None:
        """Raise unless the parameters make sense."""
        raise NotImplementedError

    def _resolve_solver(self, design: Design, *, forms_matrix: bool) -> str:
        """Return the solver's name; raise where it cannot be used."""
        raise NotImplementedError

    def _solve(self, objective: QuadraticObjective, solver: str) -> Solution:
        """Find the minimum of an objective plus the penalty."""
        raise NotImplementedError
