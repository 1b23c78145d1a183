"""What the parameters of a model in a file may be: by name and by kind.

A value that a class would take from its caller need not be one to take from a file: a `Pipeline` with ``memory`` would
write pickles where the file says, and read them from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from rankwise.kernels import Kernel
from rankwise.metrics import Metric
from rankwise.persistence.values import is_splitter

__all__ = ["PARAMETERS", "unfit_parameter"]

Test = Callable[[Any], bool]


def _flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _count(value: Any) -> bool:
    return isinstance(value, Integral) and not _flag(value)


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not _flag(value)


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _nothing(value: Any) -> bool:
    return value is None


def _array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "iuf"


def _list_of(*tests: Test) -> Test:
    def is_list(value: Any) -> bool:
        return _array(value) or (
            isinstance(value, list | tuple | range)
            and all(any(test(item) for test in tests) for item in value)
        )

    return is_list


def _splits(value: Any) -> bool:
    """Tell whether this is a list of pairs of row numbers or masks."""
    return isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple | np.ndarray)
        and len(pair) == 2
        and all(
            _list_of(_count, _flag)(part) or (isinstance(part, np.ndarray) and part.dtype == bool)
            for part in pair
        )
        for pair in value
    )


def _options(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _text(key) and (_number(own) or _text(own)) for key, own in value.items()
    )


PARAMETERS: Mapping[str, tuple[Test, ...]] = {
    "alpha": (_number,),
    "alphas": (_text, _list_of(_number)),
    "averaging": (_text,),
    "basis": (_nothing, _count, _list_of(_count, _text)),  # ("kmeans", 100) names how and how many
    "clip": (_flag,),
    "coef0": (_number,),
    "copy": (_flag,),
    "cost": (_text,),
    "cv": (_nothing, _text, _count, is_splitter, _splits),
    "degree": (_number,),
    "early_stopping": (_flag,),
    "feature_range": (_list_of(_number),),
    "gamma": (_nothing, _number, _text, _list_of(_number, _text)),
    "judge_rows": (_nothing, _count),
    "kernel": (_text, lambda value: isinstance(value, Kernel)),
    "kernel_params": (_nothing, _options),
    "learning_rate": (_nothing, _number, _text),
    "loss": (_text,),
    "max_iter": (_nothing, _count),
    "memory_limit": (_nothing, _count),
    "method": (_text,),
    "momentum": (_number, _text),
    "n_threads": (_nothing, _count),
    "nested": (_flag, _count),
    "norm": (_text,),
    "patience": (_count,),
    "precondition": (_nothing, _text),
    "quantile_range": (_list_of(_number),),
    "query_weight": (_text,),
    "random_state": (_nothing, _count),
    "scaling": (_number, _list_of(_number)),
    "scoring": (_text, lambda value: isinstance(value, Metric)),
    "solver": (_text,),
    "ties": (_text,),
    "tol": (_number,),
    "unit_variance": (_flag,),
    "validation_fraction": (_number,),
    "warm_start": (_flag,),
    "with_centering": (_flag,),
    "with_mean": (_flag,),
    "with_scaling": (_flag,),
    "with_std": (_flag,),
}


def unfit_parameter(parameters: Mapping[str, Any]) -> str | None:
    """Return the name of a parameter that a file must not set to what it is set to; None if all are fine."""
    for name, value in parameters.items():
        if not any(test(value) for test in PARAMETERS.get(name, ())):
            return name
    return None
