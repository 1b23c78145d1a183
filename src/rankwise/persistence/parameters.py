"""What the parameters of a model in a file may be: by name and by kind.

A value that a class would take from its caller need not be one to take from a file: a `Pipeline` with ``memory`` would
write pickles where the file says, and read them from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.kernels import Kernel
from rankwise.metrics import Metric
from rankwise.persistence.values import is_splitter

__all__ = ["FIT_BY_TYPE", "PARAMETERS", "unfit_parameter"]

Test = Callable[[object], bool]


_MOST_PROCESSES = 256


def _flag(value: object) -> bool:
    return isinstance(value, bool | np.bool_)


def _count(value: object) -> bool:
    return isinstance(value, Integral) and not _flag(value)


def _processes(value: object) -> bool:
    # A file must not make whoever predicts with it start thousands.
    return _count(value) and abs(int(value)) <= _MOST_PROCESSES  # type: ignore[call-overload]


def _number(value: object) -> bool:
    return isinstance(value, Real) and not _flag(value)


def _text(value: object) -> bool:
    return isinstance(value, str)


def _none(value: object) -> bool:
    return value is None


def _array(value: object) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "iuf"


def _list_of(*tests: Test) -> Test:
    def is_list(value: object) -> bool:
        return _array(value) or (
            isinstance(value, list | tuple | range)
            and all(any(test(item) for test in tests) for item in value)
        )

    return is_list


def _splits(value: object) -> bool:
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


def _options(value: object) -> bool:
    return isinstance(value, dict) and all(
        _text(key) and (_number(own) or _text(own)) for key, own in value.items()
    )


def _signs(value: object) -> bool:
    """Tell whether this maps columns to -1, 0 or 1."""
    return isinstance(value, dict) and all(
        (_text(key) or _count(key)) and _count(own) for key, own in value.items()
    )


def _fixed(value: object) -> bool:
    return isinstance(value, dict) and all(
        _text(key) and (_plain(own) or _list_of(_number, _text)(own)) for key, own in value.items()
    )


def _plain(value: object) -> bool:
    return _none(value) or _flag(value) or _number(value) or _text(value)


def _number_type(value: object) -> bool:
    return isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.number))


def _arrays(value: object) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(own, np.ndarray) or _list_of(_plain)(own) for own in value
    )


def _columns(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iubUO"
    return _text(value) or _count(value) or isinstance(value, slice) or _list_of(_text, _count, _flag)(value)


def _transformer(value: object) -> bool:
    # A nested estimator was made by the reader of steps, which knows what it may be.
    return (
        (_text(value) and value in {"passthrough", "drop"})
        or _none(value)
        or isinstance(value, BaseEstimator)
    )


def _named_steps(*others: Test) -> Test:
    """Test a list of (name, transformer, …)."""

    def are_steps(value: object) -> bool:
        return isinstance(value, list | tuple) and all(
            isinstance(own, tuple | list)
            and len(own) == 2 + len(others)
            and _text(own[0])
            and _transformer(own[1])
            and all(test(part) for test, part in zip(others, own[2:], strict=True))
            for own in value
        )

    return are_steps


def _weights(value: object) -> bool:
    return isinstance(value, dict) and all(_text(key) and _number(own) for key, own in value.items())


def _nothing(value: object) -> bool:
    return isinstance(value, tuple) and not value


PARAMETERS: Mapping[str, tuple[Test, ...]] = {
    "accept_sparse": (_flag,),
    "add_indicator": (_flag,),
    "calibration": (_text,),
    "categories": (_text, _arrays, _list_of(_text)),
    "check_inverse": (_flag,),
    "columns": (_none, _list_of(_text)),
    "crosses": (_list_of(_text),),
    "drop": (_none, _text, _list_of(_plain), lambda value: isinstance(value, np.ndarray)),
    "dtype": (_none, _number_type),
    "encode": (_text,),
    "encoder": (_none, _text),
    "encoded_missing_value": (_number,),
    "error_on_new": (_flag,),
    "extrapolation": (_text,),
    "feature_name_combiner": (_text,),
    "feature_names_out": (_none, _text),
    "features": (_text,),
    "fill_value": (_plain,),
    "fixed": (_none, _fixed),
    "force_int_remainder_cols": (_flag, _text),
    "func": (_none,),  # which is the identity; a file holds no code
    "handle_missing": (_text,),
    "handle_unknown": (_text,),
    "ignore_implicit_zeros": (_flag,),
    "include_bias": (_flag,),
    "inv_kw_args": (_none,),
    "inverse_func": (_none,),
    "keep_empty_features": (_flag,),
    "knots": (_text, _array),
    "kw_args": (_none,),
    "max_categories": (_none, _count),
    "max_levels": (_count,),
    "methods": (_text, _list_of(_text)),
    "min_frequency": (_none, _number),
    "min_rows": (_count,),
    "missing_values": (_plain,),
    "n_bins": (_count, _array),
    "n_jobs": (_none, _processes),
    "n_quantiles": (_count,),
    "n_words": (_count,),
    "order": (_text,),
    "output_distribution": (_text,),
    "passthrough": (_flag,),
    "quantile_method": (_text,),
    "remainder": (_transformer,),
    "rankers": (_nothing,),
    "rivals": (_nothing,),
    "rule": (_text,),
    "scalings": (_text, _list_of(_text)),
    "sparse": (_flag, _text),
    "sparse_output": (_flag,),
    "sparse_threshold": (_number,),
    "standardize": (_flag,),
    "steps": (_named_steps(),),
    "strategy": (_text,),
    "surface_knots": (_text, _count, _list_of(_count)),
    "subsample": (_none, _count),
    "target": (_none, _text),
    "time_limit": (_none, _number),
    "transform_input": (_none, _list_of(_text)),
    "transformer_list": (_named_steps(),),
    "transformer_weights": (_none, _weights),
    "transformers": (_named_steps(_columns),),
    "unknown_value": (_none, _number),
    "validate": (_flag,),
    "verbose": (_flag,),
    "words": (_list_of(_text),),
    "verbose_feature_names_out": (_flag, _text),
    "alpha": (_number,),
    "alphas": (_none, _text, _list_of(_number)),
    "averaging": (_text,),
    "basis": (_none, _count, _list_of(_count, _text)),  # ("kmeans", 100) names how and how many
    "categorical": (_none, _list_of(_count, _text)),
    "clip": (_flag,),
    "coef0": (_number,),
    "copy": (_flag,),
    "cost": (_text,),
    "cv": (_none, _text, _count, is_splitter, _splits),
    "degree": (_number,),
    "early_stopping": (_flag,),
    "feature_range": (_list_of(_number),),
    "adaptive": (_count,),
    "selective": (_count,),
    "gamma": (_none, _number, _text, _list_of(_number, _text)),
    "interactions": (_text, _count, _list_of(_count), _list_of(_list_of(_count, _text))),
    "judge_rows": (_none, _count),
    "kernel": (_text, lambda value: isinstance(value, Kernel)),
    "kernel_params": (_none, _options),
    "learning_rate": (_none, _number, _text),
    "loss": (_text,),
    "max_iter": (_none, _count),
    "memory_limit": (_none, _count),
    "method": (_text,),
    "momentum": (_number, _text),
    "monotone": (_none, _list_of(_count), _signs),
    "n_knots": (_text, _count, _list_of(_count)),
    "n_threads": (_none, _count),
    "nested": (_flag, _count),
    "norm": (_text,),
    "patience": (_count,),
    "penalty": (_text,),
    "positive": (_flag, _list_of(_count)),
    "column_penalty": (_none, _list_of(_number)),
    "precondition": (_none, _text),
    "prior": (_none, _list_of(_number)),
    "quantile_range": (_list_of(_number),),
    "query_weight": (_text,),
    "random_state": (_none, _count),
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


def unfit_parameter(parameters: Mapping[str, object]) -> str | None:
    """Return the name of a parameter that a file must not set to what it is set to; None if all are fine."""
    for name, value in parameters.items():
        if (name, type(value)) not in FIT_BY_TYPE and not any(
            test(value) for test in PARAMETERS.get(name, ())
        ):
            return name
    return None


# What most values of most models are, so that one look suffices: any value of such a type passes these tests.
FIT_BY_TYPE = frozenset(
    (name, kind)
    for name, tests in PARAMETERS.items()
    for test, kinds in (
        (_flag, (bool,)),
        (_count, (int,)),
        (_number, (int, float)),
        (_text, (str,)),
        (_none, (type(None),)),
    )
    for kind in kinds
    if test in tests
)
