"""A linear RankRLS that learns from rows which come in calls."""

from __future__ import annotations

from typing import ClassVar, Never, Self

import numpy as np

from rankwise.arrays import ArrayLike, Labels, MatrixLike
from rankwise.data.validation import check_qid, check_weights
from rankwise.design import Design, shifted_design
from rankwise.estimators.linear import LinearRanker
from rankwise.estimators.refusals import refuse_unknown, say
from rankwise.estimators.restricted import refuse_restriction
from rankwise.exceptions import InvalidInputError, UnsuitableSolverError
from rankwise.solvers.choose import fits_direct
from rankwise.streaming.accumulators import PairOptions
from rankwise.streaming.state import Stream
from rankwise.threads import one_blas_thread

__all__ = ["FEW_COLUMNS", "StreamingRanker"]

# Up to here the matrix X'LX is small, and solving with it after every call takes less than a second.
FEW_COLUMNS = 2048


class StreamingRanker(LinearRanker):
    """A linear RankRLS that can be fitted a batch of rows at a time."""

    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"qid": True}

    @one_blas_thread
    def partial_fit(
        self,
        X: MatrixLike,
        y: Labels,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **unknown: Never,
    ) -> Self:
        """Fit the model to more rows: what is minimised is the sum over all calls so far, plus ``alpha ‖w‖²``.

        With up to 2,048 columns the model is exactly that of `fit` on all rows together, from statistics that take
        a matrix of columns × columns; with more, or with ``solver="stochastic"``, it is learned from one read of each
        row, in blocks of about 10,000 rows (`rankwise.solvers.stochastic`). Rows of smaller calls are copied and kept
        until they make a block, up to some 128 MiB, and learned from for the time being. Rows should come in random
        order. `fit` starts anew, and so does the first call after it.

        What a stream remembers is part of a copy or a pickle of the model, which then goes its own way, and exact
        statistics are part of a file written by `save`, too. It is not part of `clone`. With more columns a file holds
        the model alone: after `rankwise.load`, the first call starts anew.

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
                "set early_stopping=False, and score the model between the calls.",
            )
        refuse_restriction(self, "partial_fit", "use fit, or partial_fit without it.")
        self._require_labels(y)
        stream: Stream | None = self.__dict__.get("_stream")
        checked, labels = self._check_labelled(X, y, reset=stream is None, min_rows=1)
        queries = check_qid(qid, labels.shape[0])
        row_weight = check_weights(sample_weight, labels.shape[0], may_all_be_zero=True)  # others may come
        # One ranking goes on from the means of its rows so far, so all of it is shifted alike.
        if stream is None or stream.with_qid:
            design = self._design(checked)
        else:
            design = shifted_design(checked, stream.shift, self.n_threads)
        options = PairOptions(self.ties, self.cost, self.query_weight)
        if stream is None:
            stream = self._open_stream(design, labels.shape[1:], options, with_qid=qid is not None)
        stream.check(options, labels.shape[1:], queries, with_qid=qid is not None)
        if not stream.exact and not design.has_rows:
            raise UnsuitableSolverError(
                "A LinearOperator gives no diagonal, which learning from a stream of many columns remembers.",
                "pass a dense or sparse X.",
            )
        # Nothing is kept before everything is done, so that a failure leaves the model and its stream as they were.
        with np.errstate(over="ignore", invalid="ignore"):
            stream = stream.after(design, labels, queries, row_weight, float(self.alpha))
        self._describe_stream(stream)
        self._stream = stream
        return self

    def _open_stream(
        self, design: Design, label_shape: tuple[int, ...], options: PairOptions, *, with_qid: bool
    ) -> Stream:
        n_features = design.shape[1]
        wants_matrix = self.solver in {"direct", "eigen"} or n_features <= FEW_COLUMNS
        exact = self.solver != "stochastic" and wants_matrix and fits_direct(n_features)
        if self.solver in {"direct", "eigen"} and not exact:
            self._least_squares().resolved(design, forms_matrix=True)  # says what is missing
        if not exact and self.scaling != 0:
            raise UnsuitableSolverError(
                "scaling needs the diagonal of X'LX over all rows before the first of them is learned from.",
                "use scaling=0 with partial_fit, or fit.",
            )
        return Stream.opened(
            options,
            exact=exact,
            with_qid=with_qid,
            n_features=n_features,
            label_shape=label_shape,
            shift=design.shift,
        )

    def _describe_stream(self, stream: Stream) -> None:
        coef, solver, n_iter, notices = stream.model(self._least_squares())
        attributes: dict[str, object] = {"coef_": coef, "solver_": solver, "n_iter_": n_iter}
        if stream.with_qid:
            several = bool(stream.label_shape)
            attributes["n_pairs_"] = stream.n_pairs if several else int(stream.n_pairs[0])
            attributes["n_ignored_queries_"] = stream.n_ignored if several else int(stream.n_ignored[0])
        self._forget("best_iteration_", "history_", "n_components_", "n_unpaired_rows_")
        self._forget("n_pairs_", "n_ignored_queries_")
        self._set(attributes)
        self.fitted_with_qid_ = stream.with_qid
        self.n_queries_, self.n_samples_seen_ = stream.n_queries, stream.n_rows
        say(notices)
