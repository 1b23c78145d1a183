"""Which columns of a table are what: as the options say, as a model remembers, or by their usual names."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rankwise.cli.argument_groups import USUAL_COLUMNS
from rankwise.cli.printing import remark
from rankwise.data import columns
from rankwise.data.columns import columns_hint, kind_of_type, nearest_name, some_names
from rankwise.data.tables import TableReader
from rankwise.data.wording import how_many
from rankwise.exceptions import InvalidInputError
from rankwise.json_values import Json
from rankwise.preprocessing.column_steps import held_text

if TYPE_CHECKING:
    from pyarrow import Schema

    from rankwise.preprocessing.table_encoder import TableEncoder

__all__ = [
    "LISTS",
    "Roles",
    "check_preference_columns",
    "decided",
    "item_columns",
    "lacks_columns",
    "listed",
    "recall",
    "remarks",
    "remarks_on_ids",
    "remember",
    "roles_of",
    "row_id",
]

LISTS = ("features", "embedding")

_LABELS = "the labels"


class Roles(NamedTuple):
    """What the columns of a table are used as."""

    label: str | None
    qid: str | None
    features: list[str] | None
    embedding: list[str] | None
    weight: str | None = None


def listed(names: str | Sequence[str] | None) -> list[str] | None:
    """Return the columns that an option names, or a model remembers."""
    if isinstance(names, str):
        return [name.strip() for name in names.split(",")]
    return None if names is None else list(names)


def remember(options: argparse.Namespace, plan: TableReader) -> dict[str, Json]:
    """Return what a model should keep, so that later tables are read as the training table was.

    Parameters
    ----------
    options : Namespace
        What the group "reading" of the arguments holds.
    plan : TableReader
        How the table was read, or where there are preferences, the table of items.
    """
    kept: dict[str, Json] = {
        # The names of sparse columns are no columns of the table.
        "features": None if plan.sparse is not None else plan.features,
        "embedding": plan.embeddings or None,
    }
    if options.items is None:
        own = row_id(options)
        named = {} if own is None else {"item_id": own}
        return {**kept, "label": plan.label, "qid": plan.qid, **named}
    return {
        **kept,
        **{role: getattr(options, role) for role in ("item_id", "winner", "loser", "magnitude", "weight")},
    }


def row_id(options: argparse.Namespace) -> str | None:
    """Return the column that names rows: the first that ``--id`` lists."""
    queries = getattr(options, "taken_as_queries", ())
    named = [name for name in listed(getattr(options, "id", None)) or [] if name not in queries]
    return named[0] if named else None


def recall(
    options: argparse.Namespace, *notes: Mapping[str, Json], encoders: Sequence[TableEncoder | None] = ()
) -> argparse.Namespace:
    """Return the options, with the columns that models were trained on where the command names none.

    Parameters
    ----------
    options : Namespace
    *notes : mapping
        What each model's file says beside the model. Several models are used on the same rows, so that every column
        that one of them takes is read.
    encoders : sequence of TableEncoder or None
        What reads tables for each model: text stays text in files that do not say what they hold, and columns that
        were left out need not be there.
    """
    known = [_readable(one.get("reading")) for one in notes]
    found = argparse.Namespace(**vars(options))
    found.recalled = frozenset()
    found.keeps_table = any(one.get("encoded") == "yes" for one in known)
    steps = [[] if encoder is None else encoder.columns_ for encoder in encoders]
    if any(steps):
        found.texts = [step["name"] for own in steps for step in own if held_text(step)]
    for one, own in zip(known, steps, strict=False):
        left = {step["name"] for step in own if step["kind"] == "left out"}
        if one.get("features") is not None:
            one["features"] = [name for name in one["features"] if name not in left]
    for role in USUAL_COLUMNS:
        if role == "weight" and options.items is None:
            continue  # weights of training rows are no reason to weigh others
        values = [one[role] for one in known if one.get(role) is not None]
        # A model of numbered columns takes whatever numbers there are.
        if role in options.given or not values or (role == "features" and len(values) < len(known)):
            continue
        both = list(dict.fromkeys(name for value in values for name in value)) if role in LISTS else values[0]
        setattr(found, role, both)
        found.recalled |= {role}
    return found


def _readable(kept: object) -> dict[str, Any]:
    """Return what was kept, as far as it is what `remember` keeps: a model file may come from anywhere."""
    if not isinstance(kept, Mapping):
        return {}
    return {
        role: value
        for role, value in kept.items()
        if (
            isinstance(value, list) and all(isinstance(name, str) for name in value)
            if role in LISTS
            else isinstance(value, str)
        )
    }


def decided(
    schema: Schema, source: str, options: argparse.Namespace, named: Collection[str] = ()
) -> columns.Roles:
    """Decide the role of each column as the options say; columns that a model remembers may lack."""
    there = {
        role: [name for name in listed(getattr(options, role)) or [] if role in named or name in schema.names]
        for role in LISTS
    }
    crossed = [name for cross in listed(getattr(options, "cross", None)) or [] for name in cross.split(":")]
    meant = [name for role in ("category", "words") for name in listed(getattr(options, role, None)) or []]
    return columns.decide_roles(
        schema,
        source,
        label=options.label,
        qid=options.qid,
        weight=options.weight,
        item_id=options.item_id,
        ids=listed(getattr(options, "id", None)) or (),
        features=there["features"] or None,
        embedding=there["embedding"] or None,
        others=[*meant, *crossed],
        named=named,
        spelled="--{}",
    )


def roles_of(schema: Schema, source: str, options: argparse.Namespace, *, needs_labels: bool) -> Roles:
    """Say which column is what.

    Parameters
    ----------
    schema : pyarrow.Schema
    source : str
        The table, for messages.
    options : Namespace
    needs_labels : bool
        Whether a table without labels is an error.
    """
    names, named = schema.names, set(options.given)
    if "label" in named and options.label not in names and options.command == "predict":
        remark(f"{_lacks(source, 'label', options, names, _LABELS).problem} Scores need no labels.")
        named -= {"label"}
    found = decided(schema, source, options, named)
    if found.label is None:
        has_numbers = bool({"number", "flag"} & {*found.features.values(), *found.unused.values()})
        if {options.winner, options.loser} <= set(names) and (needs_labels or not has_numbers):
            raise InvalidInputError(
                f"{source} lists preferences (columns {options.winner} and {options.loser}), and nothing says what "
                "they compare.",
                "add --items FILE, a table with a row for each item: its id, and numbers to learn from.",
            )
        if needs_labels:
            raise _lacks(source, "label", options, names, _LABELS)
    features, embedding = (_columns(role, names, source, options) for role in LISTS)
    return Roles(found.label, found.qid, features, embedding, found.weight)


def item_columns(schema: Schema, options: argparse.Namespace) -> tuple[list[str] | None, list[str] | None]:
    """Return the features and the embeddings of a table of items, where they were named."""
    features, embedding = (_columns(role, schema.names, options.items, options) for role in LISTS)
    _check_once([options.item_id, *(features or []), *(embedding or [])], options.items, ["item_id", *LISTS])
    return features, embedding


def _columns(role: str, names: Sequence[str], source: str, options: argparse.Namespace) -> list[str] | None:
    chosen = listed(getattr(options, role))
    lacking = [name for name in chosen or [] if name not in names]
    if lacking and role in options.given:
        raise InvalidInputError(
            f"{source} has no column {lacking[0]!r}, which --{role} names.",
            columns_hint(lacking[0], names),
        )
    if chosen and role == "features" and (len(lacking) == len(chosen) or (lacking and options.keeps_table)):
        raise lacks_columns(source, lacking, len(chosen), names)
    # What else a model remembers is compared with the table as a whole, later.
    return None if lacking else chosen


def lacks_columns(
    source: str, lacking: Sequence[str], n_columns: int, names: Sequence[str]
) -> InvalidInputError:
    """Say that a table does not have columns that a model was trained on."""
    alike = nearest_name(lacking[0], names, 0.75)  # a table of other things has columns too
    return InvalidInputError(
        f"{source} lacks {len(lacking):,} of the model's {how_many(n_columns, 'columns')}, such as {lacking[0]!r}.",
        f"{'' if alike is None else f'did you mean {alike!r}? '}use a table with the columns of the training table, "
        "under the same names; --features and --embedding say "
        "which columns of this one are read, by default those that the model was trained on.",
    )


def _check_once(taken: Sequence[str | None], source: str, roles: Sequence[str]) -> None:
    """Raise where one column of a table is used twice."""
    twice = next((name for at, name in enumerate(taken) if name and name in taken[:at]), None)
    if twice is not None:
        *first, last = [_option(role) for role in roles]
        raise InvalidInputError(
            f"column {twice!r} of {source} has two roles among {', '.join(first)} and {last}.",
            "name each column once.",
        )


def check_preference_columns(
    names: Sequence[str], item_names: Sequence[str], source: str, options: argparse.Namespace
) -> None:
    """Raise unless a list of preferences and the table of its items have the columns that are named, or usual."""
    for role, words in (("winner", "the ids of what won"), ("loser", "the ids of what lost")):
        if getattr(options, role) not in names:
            raise _lacks(source, role, options, names, words)
    for role in ("magnitude", "weight"):
        if role in options.given and getattr(options, role) not in names:
            raise _lacks(source, role, options, names, f"the {role}s")
    roles = ("winner", "loser", "magnitude", "weight")
    _check_once([getattr(options, role) for role in roles], source, roles)
    if options.item_id not in item_names:
        raise _lacks(options.items, "item_id", options, item_names, "the ids of the items")


def _option(role: str) -> str:
    return f"--{role.replace('_', '-')}"


def _lacks(
    source: str, role: str, options: argparse.Namespace, names: Sequence[str], words: str
) -> InvalidInputError:
    option, name = _option(role), getattr(options, role)
    if role in options.given:
        return InvalidInputError(
            f"{source} has no column {name!r}, which {option} names.", columns_hint(name, names)
        )
    why = ", where the training table had them" if role in getattr(options, "recalled", ()) else ""
    return InvalidInputError(
        f"{source} has no column {name!r} with {words}{why}.",
        f"name it with {option} COLUMN; {columns_hint(name, names)}",
    )


def remarks(
    schema: Schema, source: str, options: argparse.Namespace, roles: Roles, used: Collection[str]
) -> list[str]:
    """Say what is done with columns that nobody named: easily overlooked, and seldom meant.

    Parameters
    ----------
    schema, source, options
        As in `roles_of`.
    roles : Roles
    used : collection of str
        The columns that were read.
    """
    found = []
    if roles.label is None and not {options.winner, options.loser} <= set(schema.names):
        found.append(f"{source} has no column {options.label}: nothing says what is better (--label COLUMN)")
    if roles.label is None and {options.winner, options.loser} <= set(schema.names):
        found.append(f"{source} seems to list preferences (--items FILE)")
    elif roles.qid is None:
        likely = getattr(options, "taken_as_queries", ())
        column = likely[0] if likely else "COLUMN"
        found.append(f"{source} has no column {options.qid}: all rows are one ranking (--qid {column})")
        if apart := getattr(options, "taken_as_queries", ()):
            found.append(f"{some_names(apart)}: not learned from, like query ids (--features lists what is)")
    named = {roles.weight, *(listed(getattr(options, "id", None)) or ())}
    found += remarks_on_ids(options)
    left = [name for name in schema.names if name not in used and name not in named]
    if left and roles.features is None:
        kinds: dict[str, list[str]] = {}
        for name in left:
            kinds.setdefault(_kind(schema.field(name).type), []).append(name)
        hints = {"lists": "--embedding", "numbers": "--features"}
        words = [
            f"{some_names(own)} ({kind}{f': {hints[kind]} ' + ','.join(own[:3]) if kind in hints else ''})"
            for kind, own in kinds.items()
        ]
        found.append(f"not used of {source}: {', '.join(words)}")
    return found


def remarks_on_ids(options: argparse.Namespace) -> list[str]:
    """Say which columns were taken for names of rows that nobody called so; that of items must be one."""
    of_items = {options.item_id} if options.items is not None else set()
    return [
        f"{name or 'the column without a name'} names the rows, and is not learned from (--features lists what is)"
        for name in getattr(options, "taken_as_ids", ())
        if name not in of_items
    ]


def _kind(kind: object) -> str:
    found = kind_of_type(kind)
    words = {"number": "numbers", "flag": "numbers", "list": "lists"}
    return words.get(found) or ("text" if str(kind).endswith("string") else str(kind))
