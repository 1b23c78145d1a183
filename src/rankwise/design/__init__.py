"""Access to X: dense, sparse by rows, or a linear operator. Storage is invisible above this room.

Every sum is kept in float64, and a float32 matrix is never copied to float64 as a whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from rankwise.design.csr import CsrDesign
from rankwise.design.dense import DenseDesign
from rankwise.design.operator import OperatorDesign
from rankwise.design.protocol import Design, GramProduct
from rankwise.threads import default_threads

__all__ = [
    "CsrDesign",
    "DenseDesign",
    "Design",
    "GramProduct",
    "OperatorDesign",
    "as_design",
    "default_threads",
]


def as_design(X: Any, n_threads: int | None = None) -> Design:
    """Return the design of an array, a SciPy sparse matrix, a LinearOperator, or a design itself."""
    if isinstance(X, (DenseDesign, CsrDesign, OperatorDesign)):
        return X
    threads = default_threads() if n_threads is None else n_threads
    if sp.issparse(X):
        return CsrDesign(X.tocsr(), threads)
    if isinstance(X, LinearOperator):
        return OperatorDesign(X, threads)
    return DenseDesign(np.asarray(X), threads)
