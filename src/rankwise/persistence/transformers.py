"""scikit-learn's transformers in model files: which, what of theirs is kept, and what must fit together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.base import BaseEstimator

from rankwise.persistence.values import Classes, features_taken, wrong

__all__ = ["PRIVATE", "TRANSFORMERS", "check_transformer", "is_pipeline", "parameters_of"]

_HOMES = {
    "ColumnTransformer": "sklearn.compose",
    "FeatureUnion": "sklearn.pipeline",
    "FunctionTransformer": "sklearn.preprocessing",  # without a function: what a ColumnTransformer passes through
    "KBinsDiscretizer": "sklearn.preprocessing",
    "MaxAbsScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "MissingIndicator": "sklearn.impute",
    "Normalizer": "sklearn.preprocessing",
    "OneHotEncoder": "sklearn.preprocessing",
    "OrdinalEncoder": "sklearn.preprocessing",
    "Pipeline": "sklearn.pipeline",
    "PowerTransformer": "sklearn.preprocessing",
    "QuantileTransformer": "sklearn.preprocessing",
    "QueryScaler": "rankwise.preprocessing",
    "RankScaler": "rankwise.automatic.scaling",
    "RobustScaler": "sklearn.preprocessing",
    "SimpleImputer": "sklearn.impute",
    "SplineTransformer": "sklearn.preprocessing",
    "StandardScaler": "sklearn.preprocessing",
    "TableEncoder": "rankwise.preprocessing",
}

TRANSFORMERS: Mapping[str, type] = Classes(_HOMES)

# What a fit of scikit-learn keeps under a name that begins with an underscore, and needs again.
PRIVATE: Mapping[str, frozenset[str]] = {
    "ColumnTransformer": frozenset(
        {
            "_columns",
            "_n_features",
            "_remainder",
            "_transformer_to_input_indices",
            "_name_to_fitted_passthrough",
        }
    ),
    "KBinsDiscretizer": frozenset({"_encoder"}),
    "MissingIndicator": frozenset({"_n_features", "_precomputed"}),
    "OneHotEncoder": frozenset(
        {
            "_default_to_infrequent_mappings",
            "_drop_idx_after_grouping",
            "_infrequent_enabled",
            "_infrequent_indices",
            "_n_features_outs",
        }
    ),
    "OrdinalEncoder": frozenset(
        {"_default_to_infrequent_mappings", "_infrequent_enabled", "_infrequent_indices", "_missing_indices"}
    ),
    "PowerTransformer": frozenset({"_scaler"}),
    "SimpleImputer": frozenset({"_fill_dtype", "_fit_dtype"}),
}


def is_pipeline(model: object) -> bool:
    """Tell whether this is a `Pipeline` of scikit-learn's, which need not be imported for what is none."""
    return type(model).__name__ == "Pipeline" and type(model) is TRANSFORMERS["Pipeline"]


def parameters_of(step: BaseEstimator) -> dict[str, object]:
    """Return the parameters to keep: columns that a function chose are kept as what it chose."""
    parameters: dict[str, object] = step.get_params(deep=False)
    if isinstance(parameters.get("random_state"), (np.random.RandomState, np.random.Generator)):
        parameters["random_state"] = (
            None  # as a generator that nobody seeded, which is what it would be elsewhere
        )
    if is_pipeline(step):
        parameters.pop("memory")
    if type(step).__name__ == "AverageRanker":
        parameters["rankers"] = ()  # its models are those that were fitted
    if type(step).__name__ == "ColumnTransformer" and hasattr(step, "_columns"):
        parameters["transformers"] = [
            (name, inner, chosen if callable(columns) else columns)
            for (name, inner, columns), chosen in zip(step.transformers, step._columns, strict=True)  # noqa: SLF001
        ]
    return parameters


def check_transformer(step: BaseEstimator) -> None:
    """Raise unless the parts of an encoder fit together: it makes sparse matrices that nobody looks at again."""
    if type(step).__name__ == "TableEncoder" and hasattr(step, "columns_"):
        _check_table_encoder(step)
    if type(step).__name__ != "OneHotEncoder" or not hasattr(step, "categories_"):
        return
    categories = step.categories_
    if not isinstance(categories, list) or not all(
        isinstance(own, np.ndarray) and own.ndim == 1 and own.size for own in categories
    ):
        raise wrong("the categories of an encoder are none")
    n_columns = len(categories)
    if features_taken(step) != n_columns:
        raise wrong("an encoder has categories of other columns than it takes")
    mappings = getattr(step, "_default_to_infrequent_mappings", [None] * n_columns)
    dropped = getattr(step, "_drop_idx_after_grouping", None)
    dropped = [None] * n_columns if dropped is None else _listed(dropped)
    if not isinstance(mappings, list) or len(mappings) != n_columns or len(dropped) != n_columns:
        raise wrong("an encoder has rare categories of other columns than it takes")
    sizes = [_n_levels(own.size, mapping) for own, mapping in zip(categories, mappings, strict=True)]
    for place, (size, out) in enumerate(zip(sizes, dropped, strict=True)):
        if out is None:
            continue
        if not isinstance(out, int | np.integer) or isinstance(out, bool) or not 0 <= out < size:
            raise wrong("an encoder drops a category that it does not have")
        sizes[place] -= 1
    if _listed(getattr(step, "_n_features_outs", sizes)) != sizes:
        raise wrong("an encoder makes other columns than its categories")


def _check_table_encoder(step: BaseEstimator) -> None:
    try:
        step.describe()
        names, n_columns = step.get_feature_names_out(), int(step.n_features_in_)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise wrong(f"an encoder of tables is none ({error})") from error
    if not len(names) or len(step.columns_) != n_columns:
        raise wrong("an encoder of tables does not say what to do with every column")


def _listed(value: object) -> list[object]:
    if isinstance(value, list) or (isinstance(value, np.ndarray) and value.ndim == 1):
        entries = list(value)
        if all(own is None or isinstance(own, int | np.integer) for own in entries):
            return entries
    raise wrong("an encoder has something else than one entry per column")


def _n_levels(n_categories: int, mapping: object) -> int:
    """Return how many levels are told apart, where rare ones are one."""
    if mapping is None:
        return n_categories
    if (
        not isinstance(mapping, np.ndarray)
        or mapping.shape != (n_categories,)
        or mapping.dtype.kind not in "iu"
        or mapping.min() < 0
        or mapping.max() >= n_categories
    ):
        raise wrong("the rare categories of an encoder are none")
    return int(mapping.max()) + 1
