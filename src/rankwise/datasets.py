"""A small data set with named columns, for examples and tutorials."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankwise.exceptions import MissingPackageError

__all__ = ["load_hotels"]

_SEARCHES, _HOTELS = 240, 12
_KINDS = np.array(["apartment", "hostel", "hotel"])


def load_hotels(*, return_X_y_qid: bool = False) -> Any:
    """Load graded results of 240 searches for hotels, 12 hotels each.

    The searches are generated, always the same way. People of these searches like a good rating and a short way, and
    prefer a moderate price to a very low one. Hostels suit searches for one guest, apartments suit families. Some
    ratings are missing.

    Parameters
    ----------
    return_X_y_qid : bool, default=False
        Whether to return the columns, the grades and the searches apart.

    Returns
    -------
    pandas.DataFrame, or tuple of (pandas.DataFrame, pandas.Series, pandas.Series)
        The columns ``price`` (per night), ``rating`` (1 to 5), ``reviews``, ``distance`` (km to the centre), ``kind``
        (apartment, hostel or hotel), ``breakfast`` and ``guests`` (the same for all hotels of a search). The label is
        ``grade``: 0 ignored, 1 viewed, 2 saved, 3 booked. ``search`` names the query.

    Examples
    --------
    >>> from rankwise.datasets import load_hotels
    >>> X, grade, search = load_hotels(return_X_y_qid=True)
    >>> list(X)
    ['price', 'rating', 'reviews', 'distance', 'kind', 'breakfast', 'guests']
    """
    try:
        import pandas as pd  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise MissingPackageError(
            "load_hotels returns a data frame, which needs pandas.", "install pandas."
        ) from error
    rng = np.random.default_rng(20)
    n = _SEARCHES * _HOTELS
    kind = rng.choice(3, p=[0.3, 0.2, 0.5], size=n)
    guests = np.repeat(rng.choice([1, 2, 4], p=[0.3, 0.5, 0.2], size=_SEARCHES), _HOTELS)
    quality = rng.normal(size=n)
    price = np.exp(4.4 + 0.25 * quality + 0.4 * rng.normal(size=n) - 0.5 * (kind == 1)).round()
    rating = np.clip(3.8 + 0.5 * quality + 0.2 * rng.normal(size=n), 1, 5).round(1)
    distance = rng.gamma(2.0, 1.2, size=n).round(1)
    utility = (
        1.2 * (rating - 3.8)
        - 2.5 * (np.log(price) - 4.2) ** 2
        - np.minimum(distance, 4) * 0.5
        + 0.4 * rng.normal(size=n)
    )
    breakfast = rng.random(n) < 0.4
    utility += 0.3 * breakfast + np.select(
        [(kind == 1) & (guests == 1), (kind == 0) & (guests == 4)], [0.8, 1.2]
    )
    grade = np.digitize(utility, np.quantile(utility, [0.5, 0.75, 0.92]))
    frame = pd.DataFrame(
        {
            "search": np.char.add("search ", np.repeat(np.arange(_SEARCHES), _HOTELS).astype(str)),
            "price": price,
            "rating": np.where(rng.random(n) < 0.05, np.nan, rating),
            "reviews": rng.geometric(0.01, size=n),
            "distance": distance,
            "kind": _KINDS[kind],
            "breakfast": breakfast,
            "guests": guests,
            "grade": grade,
        }
    )
    if not return_X_y_qid:
        return frame
    return frame.drop(columns=["search", "grade"]), frame["grade"], frame["search"]
