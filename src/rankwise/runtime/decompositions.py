"""Decompositions of large matrices, for which Ctrl-C does not wait.

LAPACK takes minutes for ten thousand rows, and looks for no signals; SciPy also holds the interpreter's lock meanwhile,
so that no other thread runs either. Here the same routines are called without that lock, in a thread of their own.
Whoever interrupts the main thread gets it back at once: the other one goes on to its end, and what it finds is dropped.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import numpy as np
import scipy.linalg
import scipy.linalg.cython_lapack
from scipy.linalg.lapack import dpotrf

from rankwise.arrays import Floats
from rankwise.runtime.interrupts import left_on_interrupt
from rankwise.runtime.threads import LARGE_MATRIX, is_held_by_thread, large_algebra

__all__ = ["decompose", "diagonalise", "factorise", "singular"]

Result = TypeVar("Result")

_TOO_LARGE = 30_000  # the work space would have more numbers than LAPACK can count
_SIGNATURES = {
    "dsyevd": ["char", "char", "int", "d", "int", "d", "d", "int", "int", "int", "int"],
    "dpotrf": ["char", "int", "d", "int", "int"],
}
_TYPES: dict[str, Any] = {"char": ctypes.c_char_p, "int": ctypes.POINTER(ctypes.c_int), "d": ctypes.c_void_p}


def decompose(size: int, work: Callable[[], Result]) -> Result:
    """Do work on a matrix of so many rows and columns that lets other threads run, and may go on when it is left.

    NumPy lets them run in products, solutions and decompositions; SciPy does not.
    """
    if size < LARGE_MATRIX:
        return work()
    with large_algebra(size):
        return work() if is_held_by_thread() else left_on_interrupt(work)


def diagonalise(matrix: Floats, *, overwrite: bool = False) -> tuple[Floats, Floats]:
    """Return the eigenvalues of a symmetric matrix in ascending order, and its eigenvectors, by divide and conquer.

    Parameters
    ----------
    matrix : (n, n) float64
        Of which the lower half is looked at.
    overwrite : bool
        Whether the matrix is not needed any more.
    """
    size = matrix.shape[0]
    if LARGE_MATRIX <= size < _TOO_LARGE and (routine := _lapack("dsyevd")) is not None:
        return decompose(size, lambda: _call(routine, matrix, overwrite=overwrite))
    driver = "evd" if size > 1 else "ev"  # SciPy 1.11 asks for too little room for one number
    with large_algebra(size):
        values, vectors = scipy.linalg.eigh(matrix, check_finite=False, overwrite_a=overwrite, driver=driver)
    return values, vectors


def singular(matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """Return as many left singular vectors, singular values in descending order, and right vectors as there can be.

    Columns may differ in length by as much as numbers can. The eigenvalues of ``Z'Z`` are the squares of the singular
    values, and the small ones get lost beside the rounding errors of the largest. Orthogonal triangles from both sides,
    the large columns first, leave a matrix that is nearly diagonal: small entries are never added to large ones.
    """
    order = np.argsort(-np.abs(matrix).max(axis=0, initial=0.0), kind="stable")

    def work() -> tuple[Floats, Floats, Floats]:
        left, triangle = np.linalg.qr(matrix[:, order])
        right, triangle = np.linalg.qr(triangle.T)
        inner_left, values, inner_right = np.linalg.svd(triangle.T)
        vectors = np.empty_like(right)
        vectors[order] = right @ inner_right.T
        return left @ inner_left, values, vectors

    return decompose(min(matrix.shape), work)


def factorise(matrix: Floats) -> bool:
    """Replace the lower half of a symmetric matrix by its Cholesky factor; tell whether it is positive definite.

    Parameters
    ----------
    matrix : (n, n) float64, in Fortran's order
    """
    assert matrix.dtype == np.float64  # LAPACK is told an address alone
    assert matrix.flags.f_contiguous
    assert matrix.flags.writeable
    size = matrix.shape[0]
    if size < LARGE_MATRIX or (routine := _lapack("dpotrf")) is None:
        with large_algebra(size):
            return bool(dpotrf(matrix, lower=1, overwrite_a=1, clean=0)[1] == 0)
    info, n = ctypes.c_int(), ctypes.c_int(size)
    decompose(size, lambda: routine(b"L", n, matrix.ctypes, n, info))
    return info.value == 0


def _call(routine: Callable[..., None], matrix: Floats, *, overwrite: bool) -> tuple[Floats, Floats]:
    made = np.asarray if overwrite else np.array  # NumPy 1 has no word for "where it is needed"
    vectors = made(matrix, dtype=np.float64, order="F")
    size = vectors.shape[0]
    values, info = np.empty(size), ctypes.c_int()
    work, integers = np.empty(1), np.empty(1, dtype=np.int32)
    for asks in (True, False):  # how much room it wants, and then the eigenvectors
        routine(
            b"V",
            b"L",
            ctypes.c_int(size),
            vectors.ctypes,
            ctypes.c_int(size),
            values.ctypes,
            work.ctypes,
            ctypes.c_int(-1 if asks else work.size),
            integers.ctypes.data_as(_TYPES["int"]),
            ctypes.c_int(-1 if asks else integers.size),
            info,
        )
        if info.value:
            raise np.linalg.LinAlgError(f"dsyevd did not converge ({info.value})")
        if asks:
            work, integers = np.empty(int(work[0])), np.empty(int(integers[0]), dtype=np.int32)
    return values, vectors


@cache
def _lapack(routine: str) -> Callable[..., None] | None:
    """Return one of LAPACK as SciPy has it for compiled callers; None where it takes other integers than expected."""
    capsule = scipy.linalg.cython_lapack.__pyx_capi__[routine]
    name: Any = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
    pointer: Any = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    signature: bytes = name(capsule)
    arguments = signature.decode().partition("(")[2].rstrip(")").replace("*", "").split(",")
    kinds = [
        argument.strip().removeprefix("__pyx_t_5scipy_6linalg_13cython_lapack_") for argument in arguments
    ]
    if kinds != _SIGNATURES[routine]:
        return None
    return ctypes.CFUNCTYPE(None, *(_TYPES[kind] for kind in kinds))(pointer(capsule, signature))
