"""Whether two things are the same bit for bit, however they are nested."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import scipy.sparse as sp

from rankwise.design.terms import Curve, Surface, Terms
from rankwise.kernels import Kernel


def assert_identical(one, other, where="model"):  # noqa: C901, PLR0912 - one branch per type
    """The same types, the same bits, the same order in memory."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, where
        assert one.shape == other.shape, where
        if one.dtype == object:
            for a, b in zip(one.ravel(), other.ravel(), strict=True):
                assert_identical(a, b, where)
        else:
            assert one.tobytes() == other.tobytes(), where
            assert (one.flags.c_contiguous or not one.flags.f_contiguous) == other.flags.c_contiguous, where
    elif sp.issparse(one):
        assert one.shape == other.shape
        for part in ("data", "indices", "indptr"):
            assert_identical(getattr(one, part), getattr(other, part), f"{where}.{part}")
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_identical(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for at, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_identical(a, b, f"{where}[{at}]")
    elif isinstance(one, float | np.floating) and np.isnan(one):
        assert np.isnan(other), where  # one NaN is as good as another
    elif isinstance(one, float):
        assert np.float64(one).tobytes() == np.float64(other).tobytes(), where
    elif isinstance(one, Kernel):
        assert_identical([one.name, one.parameters], [other.name, other.parameters], where)
    elif isinstance(one, Curve | Surface | Terms):
        for field in fields(one):
            assert_identical(getattr(one, field.name), getattr(other, field.name), f"{where}.{field.name}")
    elif hasattr(one, "get_n_splits"):
        assert_identical(vars(one), vars(other), where)
    else:
        assert one == other, where
