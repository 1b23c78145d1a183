"""Checks of models that were read from files: their parts must have types and shapes that fit together."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from numbers import Integral, Real
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

from rankwise.design.terms import Terms
from rankwise.exceptions import ModelFileError
from rankwise.kernels import Kernel
from rankwise.metrics import Metric

__all__ = [
    "MOST_COLUMNS",
    "NUMERIC",
    "RANKERS",
    "check_estimator",
    "check_fields",
    "features_taken",
    "is_number",
    "last_step",
    "require",
]

RANKERS = [
    "AdditiveRanker", "AdditiveRankerCV", "AutoRanker", "AverageRanker", "KernelRankRLS", "KernelRankRLSCV",
    "KernelRankSVM", "RankRLS", "RankRLSCV", "RankSVM", "RankSVMCV",
]  # fmt: skip
# Transformers of numbers, which are tried on a row of ones.
NUMERIC = [
    "KBinsDiscretizer", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "PowerTransformer", "QuantileTransformer",
    "RobustScaler", "SplineTransformer", "StandardScaler",
]  # fmt: skip
MOST_COLUMNS = 1 << 24  # of models whose arrays do not have one entry per column
_MOST_CURVES = 1 << 20  # columns of additive models, which exports list
_MOST_KNOTS = 1 << 16

# Types of the fitted attributes of rankers. Several outputs make an array of a number.
_TYPES: Mapping[str, tuple[Any, ...]] = {
    name: kinds
    for kinds, names in {
        (
            Integral,
        ): "n_components_ n_features_in_ n_iter_ n_knots_ n_products_ n_queries_ n_reads_ n_samples_seen_ "
        "n_unpaired_rows_ adaptive_ selective_ surface_knots_",
        (Integral, np.ndarray): "best_iteration_ n_ignored_queries_ n_pairs_",
        (Real,): "gamma_ log_loss_ nested_error_ nested_score_ scaling_",
        (Real, np.ndarray): "alpha_ best_score_ duality_gap_",
        (bool,): "fitted_with_qid_ is_dense_ keeps_basis_",
        (str,): "cv_ loss_ method_ solver_ stopped_",
        (list,): "calibration_ history_ rankers_ skipped_",
        (dict,): "choices_ cv_results_",
        (
            np.ndarray,
        ): "alphas_ constant_columns_ cv_errors_ importances_ interactions_ shares_ surface_ unpenalised_ "
        "values_ weights_",
        (Metric,): "metric_",
    }.items()
    for name in names.split()
}


def require(condition: object, problem: str) -> None:
    """Raise the error of a file that is invalid unless a condition holds."""
    if not condition:
        raise ModelFileError(
            f"The model file is invalid: {problem}.",
            "upgrade rankwise if a newer version wrote it, else save the model again.",
        )


def features_taken(step: object) -> int | None:
    """Return the number of columns that a step takes; None if it does not tell.

    A FeatureUnion or Pipeline asks its first step; if that is a word such as "passthrough", the next one.
    """
    found = getattr(step, "n_features_in_", None)
    inner = getattr(step, "transformer_list", getattr(step, "steps", ())) if found is None else ()
    first = next((one for _, one in inner if not isinstance(one, str | None)), None)
    if first is not None:
        return features_taken(first)
    return int(found) if isinstance(found, Integral) else None


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return model.steps[-1][1] if type(model).__name__ == "Pipeline" else model


def is_number(value: object) -> bool:
    """Tell whether this is a number, and not a truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


_hints = cache(get_type_hints)


def check_fields(kind: type, fields: Mapping[str, object]) -> None:
    """Raise unless the values of a dataclass have the types of its fields, and curves have increasing knots."""
    hints = _hints(kind)
    for name, value in fields.items():
        require(_fits(value, hints[name]), f"{kind.__name__} cannot have a {type(value).__name__} as {name}")
    if kind.__name__ == "Curve":
        knots: Any = fields["knots"]
        require(
            0 <= int(fields["column"]) < _MOST_CURVES  # type: ignore[call-overload]
            and knots.dtype == np.float64
            and knots.ndim == 1
            and knots.size < _MOST_KNOTS
            and np.isfinite(knots).all()
            and (knots[1:] > knots[:-1]).all(),
            "a curve does not have a column and increasing knots",
        )


def _fits(value: object, hint: Any) -> bool:
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if kind is Any:
        return True
    if kind in {Union, UnionType}:
        return any(_fits(value, one) for one in inner)
    if kind is tuple:
        return isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
    if kind in {int, float}:
        return isinstance(value, Integral if kind is int else Real) and not isinstance(value, bool)
    return isinstance(value, kind)


def check_estimator(step: Any) -> None:
    """Raise unless the parameters and fitted attributes of an estimator can be used without harm."""
    kind = type(step).__name__
    if hasattr(step, "_parameter_constraints"):
        step._validate_params()  # noqa: SLF001 - as fit does
    output = vars(step).get("_sklearn_output_config", {})
    require(
        set(output) <= {"transform"} and set(output.values()) <= {"default", "pandas", "polars"},
        "an output container is unknown",
    )
    n_features, names = vars(step).get("n_features_in_"), vars(step).get("feature_names_in_")
    if n_features is not None:
        require(type(n_features) is int and n_features > 0, f"n_features_in_ is {n_features!r:.80}")
    if names is not None:
        is_named = names.shape == (n_features,) and all(isinstance(name, str) for name in names)
        require(is_named and len(set(names)) == len(names), "the feature names are not one per column")
    if kind in RANKERS:
        _check_ranker(step, kind)
    elif kind == "OneHotEncoder" and hasattr(step, "categories_"):
        _check_encoder(step)
    elif kind == "TableEncoder" and hasattr(step, "columns_"):
        step.describe()
        require(
            len(step.columns_) == n_features and len(step.get_feature_names_out()), "an encoder lacks columns"
        )
    elif kind in NUMERIC and n_features is not None:
        _try(step)
    elif kind == "Pipeline":
        names = [name for name, _ in step.steps]
        require(
            names and len(set(names)) == len(names), "the steps of a pipeline do not have different names"
        )


def _try(step: Any) -> None:
    """Raise where the arrays of a transformer do not fit its columns: scikit-learn's errors would come later."""
    require(step.n_features_in_ <= MOST_COLUMNS, f"n_features_in_ is {step.n_features_in_}")
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        step.transform(np.ones((1, step.n_features_in_)))


def _check_encoder(step: Any) -> None:
    """Raise unless the categories of an encoder agree with the sparse matrix that it makes of them."""
    categories = step.categories_
    mappings = getattr(step, "_default_to_infrequent_mappings", [None] * len(categories))
    dropped = getattr(step, "_drop_idx_after_grouping", None)
    dropped = [None] * len(categories) if dropped is None else list(dropped)
    sizes = []
    for values, mapping, drop in zip(categories, mappings, dropped, strict=True):
        size = values.size
        require(values.ndim == 1 and size, "an encoder has a column without categories")
        if mapping is not None:
            is_whole = mapping.shape == (size,) and mapping.dtype.kind in "iu"
            require(
                is_whole and 0 <= mapping.min() <= mapping.max() < size, "an encoder groups other categories"
            )
            size = int(mapping.max()) + 1
        if drop is not None:
            require(
                isinstance(drop, int | np.integer) and 0 <= drop < size, "an encoder drops a missing category"
            )
            size -= 1
        sizes.append(size)
    require(step.n_features_in_ == len(sizes), "an encoder has categories of other columns")
    require(list(getattr(step, "_n_features_outs", sizes)) == sizes, "an encoder makes other columns")


def _check_ranker(step: Any, kind: str) -> None:
    """Raise unless the arrays that compiled code reads have the sizes that it expects."""
    for name, value in vars(step).items():
        kinds = _TYPES.get(name)
        is_right = kinds is None or (isinstance(value, kinds) and isinstance(value, bool) == (bool in kinds))
        require(is_right, f"{name} is a {type(value).__name__}")
    n_features = step.n_features_in_
    if kind == "AutoRanker":
        _check_choice(step)
    elif kind == "AverageRanker":
        for ranker in step.rankers_:
            require(
                _is_ranker(ranker) and features_taken(ranker) == n_features, "the models of a mean differ"
            )
        require(step.rankers_ and _numbers(step.weights_, len(step.rankers_)), "a mean lacks weights")
    elif kind.startswith("Additive"):
        _check_terms(step, n_features)
    elif kind.startswith("Kernel"):
        _check_kernel(step, n_features)
    else:
        require(_coefficients(step.coef_, n_features), f"coef_ does not have {n_features} columns")


def _is_ranker(model: object) -> bool:
    return isinstance(model, BaseEstimator) and type(last_step(model)).__name__ in RANKERS


def _check_choice(step: Any) -> None:
    require(_is_ranker(step.best_estimator_), "the chosen model is not a ranker")
    first = step.best_estimator_ if step.encoder_ is None else step.encoder_
    require(features_taken(first) == step.n_features_in_, "the chosen model takes other columns")
    if step.encoder_ is not None:
        require(type(step.encoder_).__name__ == "TableEncoder", "the encoder does not encode tables")
        made = len(step.encoder_.get_feature_names_out())
        require(made == features_taken(step.best_estimator_), "the encoder makes other columns")
    board = step.leaderboard_
    require(type(board).__name__ == "Leaderboard", "there is no leaderboard")
    require(sum(entry.is_chosen for entry in board) == 1, "the leaderboard does not name one choice")
    str(board)


def _check_kernel(step: Any, n_features: int) -> None:
    basis = step.basis_
    require(isinstance(step.kernel_, Kernel) and n_features <= MOST_COLUMNS, "the model has no kernel")
    if basis is not None:
        require(basis.ndim == 1 and basis.dtype.kind in "iu" and basis.size, "the basis does not list rows")
    if step.kernel_.is_precomputed:
        require(basis is None or 0 <= basis.min() <= basis.max() < n_features, "the basis lists other rows")
        n_rows = n_features if basis is None else basis.size
    else:
        rows = step.X_fit_
        require(isinstance(rows, np.ndarray) or sp.issparse(rows), "the model has no basis rows")
        require(
            rows.ndim == 2 and rows.dtype.kind == "f" and rows.shape[1] == n_features,
            "X_fit_ has other columns",
        )
        n_rows = rows.shape[0]
        require(n_rows and (basis is None or basis.size == n_rows), "the basis has other rows")
    require(_coefficients(step.dual_coef_, n_rows), f"dual_coef_ does not have {n_rows} columns")


def _check_terms(step: Any, n_features: int) -> None:
    terms = step.terms_
    require(isinstance(terms, Terms) and n_features <= _MOST_CURVES, "the model has no curves")
    require(all(side.column < n_features for side in terms.sides), "a curve has a column beyond the last one")
    sizes = {"values_": terms.n_values, "shares_": terms.n_values, "importances_": len(terms.all_terms)}
    for name, size in sizes.items():
        require(_numbers(getattr(step, name), size), f"{name} does not have {size} numbers")


def _numbers(array: Any, size: int) -> bool:
    return isinstance(array, np.ndarray) and array.dtype == np.float64 and array.shape == (size,)


def _coefficients(array: Any, size: int) -> bool:
    is_array = isinstance(array, np.ndarray) and array.dtype == np.float64 and array.ndim in {1, 2}
    return is_array and array.size > 0 and array.shape[-1] == size
