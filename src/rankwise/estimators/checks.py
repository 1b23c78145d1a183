"""Parameters that several estimators share, checked in one place."""

from __future__ import annotations

from numbers import Real

from rankwise.data.validation import check_choice, check_count, check_flag
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import Metric, get_metric
from rankwise.pairs.labels import COSTS, QUERY_WEIGHTS, TIES

__all__ = ["check_squared_loss", "check_stopping"]


def check_squared_loss(query_weight: object, ties: object, cost: object) -> None:
    """Raise unless the options of the squared loss make sense together."""
    check_choice("query_weight", query_weight, QUERY_WEIGHTS)
    check_choice("ties", ties, TIES)
    check_choice("cost", cost, COSTS)
    if cost == "relative" and ties == "include":
        raise InvalidInputError(
            "cost='relative' divides by the difference of the labels, which is 0 for tied rows.",
            "set ties='exclude'.",
        )


def check_stopping(
    early_stopping: object, scoring: str | Metric, patience: object, validation_fraction: object
) -> None:
    """Raise unless the parameters of early stopping make sense."""
    check_flag("early_stopping", early_stopping)
    get_metric(scoring)
    check_count("patience", patience, optional=False)
    if not isinstance(validation_fraction, Real) or not 0 < float(validation_fraction) < 1:
        raise InvalidInputError(
            f"validation_fraction={validation_fraction!r} is not between 0 and 1.", "use 0.1."
        )
