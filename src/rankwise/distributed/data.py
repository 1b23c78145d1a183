"""Rows on a cluster beside their labels and query ids, as an opened store has them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast
from uuid import uuid4

import dask
import numpy as np

from rankwise.arrays import AnyArray, DType, Floats, Labels
from rankwise.data.queries import Queries
from rankwise.data.validation import check_choice, check_count, check_flag, check_number, check_qid
from rankwise.design.protocol import Design
from rankwise.distributed.actors import Options
from rankwise.distributed.cluster import Cluster, computed, current_client
from rankwise.distributed.dask_types import Client
from rankwise.distributed.design import DaskDesign
from rankwise.distributed.shares import cut
from rankwise.distributed.source import BlockFacts, Source, Survey, blocks_of, look_at
from rankwise.exceptions import InvalidInputError
from rankwise.runtime.threads import default_threads

__all__ = ["ClusterData", "ClusterRows", "distribute", "local_values", "options_of", "surveyed"]

_MOST_VALUES = 1 << 30  # of one share: row pointers are numbers of 32 bits


@dataclass(frozen=True)
class ClusterRows:
    """X on a cluster: what `fit` takes in place of a matrix.

    Attributes
    ----------
    shape : (int, int)
    dtype : dtype
    columns : list of str or None
    """

    source: Source
    survey: Survey
    client: Client
    options: Options
    queries: Queries | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.survey.shape

    @property
    def dtype(self) -> DType:
        """Of the values."""
        return self.survey.dtype

    @property
    def columns(self) -> list[str] | None:
        """The names of the columns, where they have some."""
        return self.source.names

    def empty_frame(self) -> object:
        """Return a frame without rows that has the names of the columns."""
        import pandas as pd  # noqa: PLC0415 - only where columns have names

        return pd.DataFrame(np.empty((0, self.shape[1])), columns=self.columns)

    def grouped(self, qid: AnyArray | None) -> ClusterRows:
        """Return the same rows, to be held in whole queries."""
        return replace(self, queries=None if qid is None else check_qid(qid, self.shape[0]))

    def as_design(self, n_threads: int | None) -> Design:
        """Load the rows into workers."""
        n_shares = max(len(self.client.nthreads()), -(-self.survey.nnz // _MOST_VALUES), 1)
        may_shuffle = self.options.scattered == "shuffle"
        shares = cut(self.survey.work, self.queries, n_shares, may_shuffle=may_shuffle)
        options = self.options if self.options.n_threads else replace(self.options, n_threads=n_threads)
        cluster = Cluster(self.client, self.source, self.survey, shares, options)
        return DaskDesign(cluster, default_threads())


@dataclass(frozen=True)
class ClusterData:
    """Rows on a cluster, with labels and query ids at the client.

    Attributes
    ----------
    X : ClusterRows
    y : (rows,) or (rows, outputs) float64, or None
    qid : (rows,) array, or None
    """

    X: ClusterRows
    y: Floats | None
    qid: AnyArray | None


def distribute(
    X: object,
    y: Labels | None = None,
    qid: Labels | None = None,
    *,
    client: Client | None = None,
    scattered: str = "shuffle",
    timeout: float = 300.0,
    n_threads: int | None = None,
    direct: bool = True,
) -> ClusterData:
    """Look at rows on a cluster once, and say how they are to be used; `fit` does this with the defaults itself.

    Parameters
    ----------
    X : Dask array or DataFrame of shape (rows, features)
        Blocks are arrays or CSR matrices; a DataFrame holds the features alone. It is computed twice, so it should
        come from files, or be persisted where it fits beside the rows themselves.
    y, qid : Dask array or series, or array-like, of as many rows
    client : distributed.Client, optional
        By default the current one.
    scattered : {"shuffle", "refuse"}, default="shuffle"
        What to do where the rows of a query stand apart from each other: bring them to one worker, or raise an error.
    timeout : float, default=300
        Seconds without an answer of a worker, or without a block being loaded, after which an error names it.
    n_threads : int, optional
        Threads of a product on each worker; by default `n_threads` of the estimator, else as many as the worker has.
    direct : bool, default=True
        Whether vectors go straight to the workers. False sends them through the scheduler: for a client that reaches
        nothing else.

    Returns
    -------
    ClusterData
        With ``X``, ``y`` and ``qid``.
    """
    options = options_of(scattered, timeout, n_threads, direct)
    client = current_client() if client is None else client
    return surveyed(blocks_of(X), client, options, y, qid)


def options_of(scattered: str, timeout: float, n_threads: int | None, direct: bool) -> Options:
    """Check what a caller says about how a cluster is to be used."""
    check_choice("scattered", scattered, ("shuffle", "refuse"))
    check_number("timeout", timeout, minimum=1.0, remedy="use seconds, such as 300")
    check_count("n_threads", n_threads)
    check_flag("direct", direct)
    return Options(scattered, float(timeout), n_threads, direct)


def surveyed(
    source: Source, client: Client, options: Options, y: Labels | None = None, qid: Labels | None = None
) -> ClusterData:
    """Look at every block of a source."""
    token = uuid4().hex[:8]
    looks = [
        dask.delayed(look_at, pure=False)(block, dask_key_name=f"rankwise-look-{token}-block{at}")
        for at, block in enumerate(source.blocks)
    ]
    facts = cast("list[BlockFacts]", computed(client, looks, options.timeout))
    if not any(fact.shape[0] for fact in facts):
        raise InvalidInputError("X has no rows.", "check where its blocks come from.")
    survey = Survey.of(facts, n_columns=source.n_columns, one_based=source.one_based)
    if survey.shape[1] == 0:
        raise InvalidInputError("X has no columns.", "pass the features as its columns.")
    labels = [fact.labels for fact in facts if fact.labels is not None]
    if labels:
        y = np.concatenate([own for own, _ in labels])
        ids = [own for _, own in labels if own is not None]
        qid = np.concatenate(ids) if len(ids) == len(labels) else None
    values = (local_values(given, client, options.timeout) for given in (y, qid))
    return ClusterData(ClusterRows(source, survey, client, options), *values)


def local_values(values: Labels | None, client: Client | None, timeout: float) -> AnyArray | None:
    """Return a Dask array or series as an array at the client; everything else as it is."""
    if not dask.is_dask_collection(values):
        return cast("AnyArray | None", values)  # validation looks at it
    assert client is not None  # whoever has lazy values has one
    return np.asarray(computed(client, [values], timeout)[0])
