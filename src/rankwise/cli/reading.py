"""Data and models that commands read.

Files are svmlight or LETOR text, tables, or stores, recognised by the ending of their names. The columns of a table get
their roles from `rankwise.data.columns.decide_roles`, by the names that the options give, or else those that the model
keeps.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from rankwise.arrays import AnyArray, Floats, Ints
from rankwise.cli.printing import remark
from rankwise.data.columns import (
    Roles,
    column_name,
    decide_roles,
    first_column_of,
    nearest_name,
    number_text_problem,
    read_columns,
    some_names,
)
from rankwise.data.containers import pays_as_array
from rankwise.data.preferences import (
    WINNER_AND_LOSER,
    duel_columns,
    duel_sides,
    read_preferences,
    stack_duels,
)
from rankwise.data.queries import Queries
from rankwise.data.store import META, open_store
from rankwise.data.summary import how_many
from rankwise.data.svmlight import TextReader, item_ids
from rankwise.data.tables import (
    TableReader,
    arrow_table,
    import_pyarrow,
    is_table,
    numbers_of,
    open_tables,
    texts_of,
)
from rankwise.data.validation import check_qid
from rankwise.exceptions import InvalidInputError, RankwiseError
from rankwise.runtime.memory import available_memory
from rankwise.runtime.progress import ProgressLine

if TYPE_CHECKING:
    from rankwise.formula.view import ModelView

_PACKED = (".gz", ".bz2", ".xz", ".zst")
_BLOCK = 1 << 26  # bytes that are scored at a time
_BYTES_PER_VALUE = 12  # of a sparse matrix
_MODEL_START = 40  # bytes
_LEARNING = {"fit", "inspect"}  # these look at missing values first
_BATTLES = {"model_a", "model_b", "winner"}


@dataclass(frozen=True)
class Data:
    """Data that were read.

    Attributes
    ----------
    source : str
        The files, for messages.
    X : ndarray, CSR matrix or pyarrow.Table
        A table where an encoder has to turn its columns into numbers.
    y : (rows,) float64 or None
    qid : (rows,) ids or None
    names : list of str or None
        The names of the columns of X; text and stores only number them.
    first_column : {0, 1} or None
        The number of the first column, for text and stores.
    pairs : (pairs, 2) int64 or None
        Preferences: the rows of X that won and lost.
    magnitude : (pairs,) float64 or None
    weight : (pairs,) or (rows,) float64 or None
    item_ids : (rows,) ids or None
    roles : Roles or None
        For tables.
    is_duels : bool
        Whether each row of the table had a winner and a loser.
    """

    source: str
    X: Any
    y: Floats | None = None
    qid: AnyArray | None = None
    names: list[str] | None = None
    first_column: int | None = None
    pairs: Ints | None = None
    magnitude: Floats | None = None
    weight: Floats | None = None
    item_ids: AnyArray | None = None
    roles: Roles | None = None
    is_duels: bool = False

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def labels(self) -> Floats:
        """The labels of data that have labels."""
        assert self.y is not None
        return self.y

    @cached_property
    def queries(self) -> Queries:
        """The rows grouped by query."""
        return check_qid(self.qid, self.shape[0])

    @property
    def counts_from(self) -> int | None:
        """The number of the first column; tables that were converted from text keep it in their names."""
        return (
            first_column_of(self.names[0]) if self.first_column is None and self.names else self.first_column
        )

    def column_names(self) -> list[str]:
        """Return a name for every column."""
        return self.names or [column_name(number, self.first_column) for number in range(self.shape[1])]

    def decided(self) -> tuple[Ints, Floats | None]:
        """Return the preferences that are not ties, and their weights."""
        assert self.pairs is not None
        kept = slice(None) if self.magnitude is None else self.magnitude > 0
        return self.pairs[kept], None if self.weight is None else self.weight[kept]

    def eval_set(self) -> tuple[Any, ...]:
        """Return the data as estimators take them for validation."""
        parts = (self.X, self.y, self.qid) if self.pairs is None else (self.X, *self.decided())
        return parts if parts[2] is not None else parts[:2]

    def counts(self) -> dict[str, int]:
        """Count rows, queries and columns, or preferences and items."""
        rows, columns = self.shape
        if self.pairs is not None:
            return {"preferences": len(self.pairs), "items": rows, "columns": columns}
        queries = {} if self.qid is None else {"queries": len(self.queries)}
        return {"rows": rows, **queries, "columns": columns}

    def describe(self) -> str:
        """Return the counts in a line."""
        return (
            f"{self.source}: {', '.join(how_many(count, things) for things, count in self.counts().items())}"
        )

    def facts(self) -> dict[str, object]:
        """Return the counts for machines."""
        return {"file": self.source, **self.counts()}


# Models


@dataclass(frozen=True)
class Model:
    """A model that was read, and the notes in its file."""

    path: str
    estimator: Any
    header: dict[str, Any]

    @property
    def notes(self) -> dict[str, Any]:
        """The notes that `rankwise fit` wrote."""
        found: dict[str, Any] = self.header["notes"]
        return found

    @cached_property
    def view(self) -> ModelView:
        """The ranker and the steps that prepare its columns."""
        from rankwise.formula.view import ModelView  # noqa: PLC0415 - imports every estimator

        return ModelView.of(self.estimator)

    @property
    def encoder(self) -> Any:
        """The encoder of tables, where the model has one."""
        return self.view.encoder

    @cached_property
    def roles(self) -> Roles:
        """The roles of columns in the training table."""
        roles = Roles.restored(self.notes.get("roles"))
        if not roles.features and self.view.own_names is not None:  # saved from Python
            roles = replace(roles, features=dict.fromkeys(self.view.own_names, ""))
        # Columns that training left out need not exist.
        kept = {name: kind for name, kind in roles.features.items() if name not in self.view.left_out}
        return replace(roles, features=kept)

    @property
    def n_features(self) -> int:
        """The number of columns that the model takes."""
        from rankwise.persistence import features_taken  # noqa: PLC0415 - imports every estimator

        return features_taken(self.estimator) or 0

    @property
    def first_column(self) -> int | None:
        """The number of the first column of the training text."""
        found = self.notes.get("first_column")
        return found if found in (0, 1) else None

    def names(self) -> list[str] | None:
        """Return the names of the columns of numbers; None where an encoder makes them."""
        if self.encoder is not None:
            return None
        own: Any = self.notes.get("feature_names") or self.view.own_names
        if own is not None and len(own) == self.n_features:
            return [str(name) for name in own]
        return [column_name(number, self.first_column) for number in range(self.n_features)]


def read_model(path: str) -> Model:
    """Read a model file, or standard input."""
    from rankwise.persistence import load, read_header  # noqa: PLC0415 - imports every estimator

    if path != "-":
        return Model(path, load(path), read_header(path))
    content = sys.stdin.buffer.read()
    return Model("standard input", load(io.BytesIO(content)), read_header(io.BytesIO(content)))


def is_model(path: str) -> bool:
    """Tell from its first bytes whether a file is a model: a zip archive that begins with the model's JSON."""
    if path == "-":
        start = sys.stdin.buffer.peek(_MODEL_START)  # type: ignore[union-attr]
    elif Path(path).is_file():
        with Path(path).open("rb") as stream:
            start = stream.read(_MODEL_START)
    else:
        return False
    return bool(start[:4] == b"PK\3\4" and start[30:_MODEL_START] == b"model.json")


@contextmanager
def naming(source: str) -> Iterator[None]:
    """Name the file in errors of functions that see only arrays."""
    try:
        yield
    except RankwiseError as error:
        raise error if source in error.problem else error.restated(f"{source}: {error.problem}") from error
    except ValueError as error:  # of scikit-learn's transformers
        raise InvalidInputError(
            f"{source}: {error}", "use data with the columns of the training data; see `rankwise inspect`."
        ) from error


def score(model: Model, data: Data) -> Floats:
    """Return one score per row."""
    from rankwise.model_selection import predict_scores  # noqa: PLC0415 - imports scikit-learn

    with naming(data.source):
        scores = np.asarray(predict_scores(model.estimator, data.X, data.qid), dtype=np.float64)
    if scores.ndim != 1:
        raise InvalidInputError(f"{model.path} has {scores.shape[1]} outputs.", "save a model of one output.")
    return scores


# Data


def kind_of(path: str, given: str | None = None) -> str:
    """Tell text, tables and stores apart by the names of files."""
    folder = Path(path)
    if given is not None:
        return given
    if is_table(path):
        return "table"
    if path == "-":
        return "text"
    if unpacked(path).endswith(".store") or (folder / META).exists():
        return "store"
    return "table" if folder.is_dir() else "text"


def unpacked(path: str) -> str:
    """Return a name in small letters, without the ending of a compression."""
    name = path.lower()
    return name.removesuffix(next(filter(name.endswith, _PACKED), ""))


def read_data(
    paths: list[str],
    options: argparse.Namespace,
    model: Model | None = None,
    *,
    needs_labels: bool = True,
    wants_items: bool = False,
) -> Data:
    """Read files of one kind as one.

    Parameters
    ----------
    paths : list of str
    options : Namespace
        With the options of `rankwise.cli.options.add_reading`.
    model : Model, optional
        The columns are those of its training data.
    needs_labels : bool
        Whether a table without labels is an error.
    wants_items : bool
        Whether to read the ids of rows.
    """
    kind, source = _kind_and_name(paths, options)
    if options.items is not None:
        return _read_preferences(paths, source, options, model)
    if kind == "table":
        tables = _Tables(paths, source, options, model)
        if tables.lists_duels and options.command != "convert":
            return _read_duels(tables)
        return _read_rows(tables, needs_labels=needs_labels, wants_items=wants_items)
    if kind == "store":
        data = _read_store(paths, source)
    else:
        data = _read_text(paths, source, options, model, wants_items=wants_items)
    return data if model is None else _as_trained(data, model)


def _kind_and_name(paths: list[str], options: argparse.Namespace) -> tuple[str, str]:
    kinds = {kind_of(path, options.format) for path in paths}
    if len(kinds) > 1:
        raise InvalidInputError(
            f"The files have different formats: {', '.join(sorted(kinds))}.",
            "convert them to one format: rankwise convert A B -o C.",
        )
    wrong = next((path for path in paths if path != "-" and is_model(path)), None)
    if wrong is not None:
        raise InvalidInputError(f"{wrong} is a model, not data.", "name a file of rows instead.")
    source = paths[0] if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
    return kinds.pop(), "standard input" if paths == ["-"] else source


def _read_store(paths: list[str], source: str) -> Data:
    if len(paths) > 1:
        raise InvalidInputError(
            "Several stores were named.", "convert them to one: rankwise convert A B -o C.store."
        )
    store = open_store(paths[0])
    X: Any = store.X
    if sp.issparse(X) and X.nnz * _BYTES_PER_VALUE * 4 < available_memory():
        X = sp.csr_matrix((X.data, X.indices, X.indptr), shape=X.shape)
    return Data(source, X, store.y, store.qid, first_column=store.first_column)


def open_reader(paths: list[str], options: argparse.Namespace, model: Model | None = None) -> TextReader:
    """Return a reader of text; columns count as those of the model's training data."""
    first = None if model is None else model.first_column
    if options.zero_based is not None:
        first = 0 if options.zero_based == "true" else 1
    return TextReader(
        paths if len(paths) > 1 else paths[0],
        n_features=options.n_features or (None if model is None else model.n_features),
        zero_based="auto" if first is None else first == 0,
        missing=options.missing or "error",
        n_threads=options.n_threads,
    )


def open_columns(paths: list[str], options: argparse.Namespace) -> TableReader:
    """Return a reader of a table's labels and columns of numbers."""
    tables = _Tables(paths, ", ".join(paths), options, None)
    roles = tables.roles()
    if roles.label is None:
        raise tables.without_labels()
    return tables.reader(roles, roles.label, roles.qid)


def _read_text(
    paths: list[str], source: str, options: argparse.Namespace, model: Model | None, *, wants_items: bool
) -> Data:
    reader = open_reader(paths, options, model)
    reader.keeps_comments = wants_items
    with ProgressLine(f"reading {source}") as progress:
        for _ in reader.parse():
            progress.update(f"{reader.n_bytes / 1e6:,.0f} MB")
    X, y, qid = reader.take()
    found = item_ids(reader.comments) if wants_items else np.empty(0, np.str_)
    return Data(
        source, X, y, qid, first_column=reader.base,
        item_ids=found if (found != "").any() else None,
    )  # fmt: skip


def _as_trained(data: Data, model: Model) -> Data:
    """Bring numbered columns into the width that a model knows."""
    if model.encoder is not None:
        raise InvalidInputError(
            f"{data.source} is not a table, and {model.path} was trained on one.",
            "use a table with the columns of the training table.",
        )
    first, wanted = model.first_column, model.n_features
    if first is not None and data.first_column is not None and first != data.first_column:
        raise InvalidInputError(
            f"{data.source} counts its columns from {data.first_column}, and the training data of {model.path} from "
            f"{first}.",
            "convert or read it again with --zero-based as the training data were.",
        )
    occurring = int(data.X.indices.max(initial=-1)) + 1 if sp.issparse(data.X) else data.shape[1]
    if occurring < wanted:
        remark(
            f"{data.source} has {how_many(occurring, 'columns')} and the model {wanted:,}; the others are 0."
        )
    data = widened(data, max(wanted, data.shape[1]))
    if sp.issparse(data.X) and model.view.is_dense(pays_as_array(data.X)):
        data = replace(data, X=data.X.toarray())
    return data


def widened(data: Data, width: int) -> Data:
    """Add columns of zeros to sparse rows, which do not store them."""
    X = data.X
    if X.shape[1] == width or not sp.issparse(X):
        return data
    return replace(data, X=sp.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width)))


# Tables


class _Tables:
    """Open tables; the columns have their roles by the options, or else by the model."""

    def __init__(
        self, paths: list[str], source: str, options: argparse.Namespace, model: Model | None
    ) -> None:
        self.source, self.options, self.model = source, options, model
        self.kept = Roles() if model is None else model.roles
        crossed = [name for cross in options.crosses for name in cross.split(":")]
        self.declared = [*(options.features or []), *options.categories, *options.words, *crossed]
        texts = [*options.categories, *options.words] if model is None else model.view.texts
        self.texts = [*texts, *(side + name for name in texts for side in WINNER_AND_LOSER)]
        features = {*self.declared, *self.kept.features}
        ids = options.id or [name for name in (*self.kept.ids, "id") if name not in features]
        # In CSV files these columns are read as text.
        self.files = open_tables(paths, [options.qid or self.kept.qid or "qid", *ids, *self.texts])
        self.names: list[str] = self.files[0].schema.names

    def roles(self, *, of_items: bool = False) -> Roles:
        """Decide the role of each column; items have ids, and no labels or queries."""
        options, kept, known = self.options, self.kept, {*self.names}
        self.require(list(kept.features))
        given: dict[str, Any] = {
            "ids": options.id or [name for name in kept.ids if name in known] or None,
            "features": list(kept.features) or options.features,
            "others": [*self.declared, *(known & {"label", "qid"} if of_items else ())],
        }
        if not of_items:
            own = {"label": kept.label, "qid": kept.qid}
            given |= {
                role: getattr(options, role) or (name if name in known else None)
                for role, name in own.items()
            }
            given["weight"] = options.weight
        return decide_roles(self.files[0].schema, self.source, **given)

    def require(self, wanted: list[str], known: Sequence[str] | None = None) -> None:
        """Raise unless the columns that a model takes are there."""
        lacking = [name for name in wanted if name not in (self.names if known is None else known)]
        if lacking:
            alike = nearest_name(lacking[0], self.names, 0.75)
            raise InvalidInputError(
                f"{self.source} lacks {len(lacking):,} of the model's {how_many(len(wanted), 'columns')}, such as "
                f"{lacking[0]!r}.",
                f"{'' if alike is None else f'did you mean {alike!r}? '}use a table with the columns of the training "
                "table, under the same names.",
            )

    def without_labels(self) -> InvalidInputError:
        """Return the error for tables without labels, which may list battles or preferences."""
        sides = (self.options.winner, self.options.loser)
        if {*self.names} >= _BATTLES:
            problem = "lists battles (columns model_a, model_b and winner)"
            hint = f"rank the models with `rankwise leaderboard {self.source}`."
        elif {*sides} <= {*self.names}:
            problem = f"lists preferences (columns {' and '.join(sides)}) between items without columns"
            hint = (
                "add --items FILE, a table of the items; or rank them with `rankwise leaderboard "
                f"{self.source}`."
            )
        else:
            problem = f"has no column {self.kept.label or 'label'!r} with the labels"
            hint = f"name it with --label; the columns are {some_names([repr(name) for name in self.names])}."
        return InvalidInputError(f"{self.source} {problem}.", hint)

    @property
    def lists_duels(self) -> bool:
        """Whether each row has the columns of a winner and of a loser."""
        return (self.options.label or "label") not in self.names and bool(duel_columns(self.names))

    def encodes(self, roles: Roles, X: Any = None) -> bool:
        """Tell whether an encoder turns the columns into numbers: the model's, or a new one where they need it."""
        options = self.options
        if self.model is not None:
            return self.model.encoder is not None
        if options.encodes is not None:  # as the training table
            return bool(options.encodes)
        if options.command not in _LEARNING or options.missing is not None:
            return False
        has_gaps = X is not None and bool(np.isnan(X).any())
        declared = options.categories or options.words or options.crosses
        return bool(declared or roles.of_kind("date", "text") or has_gaps)

    def reader(self, roles: Roles, label: str | None, qid: str | None) -> TableReader:
        """Return a reader of numbers; where an encoder is used, of everything but the features."""
        features = [] if self.encodes(roles) else list(roles.features)
        if self.options.command == "convert":
            texts = roles.of_kind("date", "text")
            texts = [name for name in texts if number_text_problem(self.files[0], name) is None]
            if texts and len(texts) < len(features):
                features = [name for name in features if name not in texts]
                remark(f"not converted: {some_names(texts)}, which are not numbers")
        missing = self.options.missing or ("nan" if self.options.command in _LEARNING else "error")
        return TableReader(self.files, label, qid, features, missing=missing)

    def features(self, roles: Roles, X: Any, names: list[str]) -> tuple[Any, list[str] | None]:
        """Return rows of numbers and their names, or the columns as they are for an encoder."""
        return (self.columns(list(roles.features)), None) if self.encodes(roles, X) else (X, names)

    def columns(self, names: list[str]) -> Any:
        """Return columns as they are; a column of numbers that one entry turned into text is an error."""
        table = arrow_table(self.files, names)
        for file, name in product(self.files, names):
            problem = None if name in self.texts else number_text_problem(file, name)
            if problem is not None:
                hint = f"correct the entry (an empty one is missing), or name {name} in categories, or in id."
                raise InvalidInputError(problem, hint)
        return table


def _read_rows(tables: _Tables, *, needs_labels: bool, wants_items: bool) -> Data:
    options, source, files = tables.options, tables.source, tables.files
    roles = tables.roles()
    if roles.label is None and needs_labels:
        raise tables.without_labels()
    wanted = tables.kept.qid or ("qid" if options.command in _LEARNING else None)
    if roles.qid is None and wanted is not None:
        likely = (*roles.queries, "COLUMN")[0]
        remark(f"{source} has no column {wanted!r}: all rows are one ranking (--qid {likely})")
    X, y, qid, found = tables.reader(roles, roles.label, roles.qid).load()
    X, names = tables.features(roles, X, found)
    items = texts_of(files, roles.ids[0]) if wants_items and roles.ids else None
    weight = None if roles.weight is None else numbers_of(files, roles.weight, "weight")
    return Data(source, X, y, qid, names, weight=weight, item_ids=items, roles=roles)


def _read_preferences(
    paths: list[str], source: str, options: argparse.Namespace, model: Model | None
) -> Data:
    """Read winners and losers, and the table of the items that they name."""
    items = _Tables([options.items], options.items, options, model)
    roles = items.roles(of_items=True)
    if not roles.ids:
        raise InvalidInputError(
            f"{options.items} has no column 'id' with the ids of the items.",
            f"name it with --id; the columns are {some_names([repr(name) for name in items.names])}.",
        )
    reader = items.reader(roles, None, roles.ids[0])
    winner, loser = options.winner, options.loser
    found = read_preferences(
        open_tables(paths, [winner, loser]), reader, winner, loser, weight=options.weight
    )
    X, names = items.features(roles, found.X, found.feature_names)
    return Data(
        source, X, names=names, pairs=found.pairs, magnitude=found.magnitude, weight=found.weight,
        item_ids=found.item_ids, roles=roles,
    )  # fmt: skip


def _read_duels(tables: _Tables) -> Data:
    """Read rows such as (winner_age, loser_age) as two items and a preference; equal items are one."""
    options, model, names = tables.options, tables.model, tables.names
    chosen = duel_columns(names)
    wanted = list(options.features or tables.kept.features or chosen)
    tables.require([f"winner_{name}" for name in wanted], [f"winner_{name}" for name in chosen])
    amounts = {"magnitude": "magnitude", "weight": options.weight or "weight"}
    amounts = {role: name for role, name in amounts.items() if name in names}
    sides = [side + name for side in WINNER_AND_LOSER for name in wanted]
    table = tables.columns([*sides, *amounts.values()])
    stacked, pairs = stack_duels(*duel_sides(table.select(sides)))
    columns = {column.name: column for column in read_columns(stacked)}
    roles = Roles(
        features={name: column.kind for name, column in columns.items()},
        unused={name: "" for name in names if name not in {*sides, *amounts.values()}},
    )
    found: dict[str, Any] = {role: read_columns(table, [name])[0].values for role, name in amounts.items()}
    data = Data(tables.source, stacked.select(wanted), pairs=pairs, roles=roles, is_duels=True, **found)
    if options.command in {"evaluate", "report"}:
        data = _merged(data)
    if model is not None and model.encoder is None:
        parts = [column.values for column in read_columns(data.X, wanted)]
        data = replace(data, X=np.column_stack(parts), names=wanted)
    return data


def _merged(data: Data) -> Data:
    """Make one item of equal rows, so that intervals know that one competitor fought several duels."""
    assert data.pairs is not None
    number: dict[str, int] = {}
    rows = zip(*(column.to_pylist() for column in data.X.columns), strict=True)
    same = np.array([number.setdefault(repr(row), len(number)) for row in rows])
    pairs = same[data.pairs]
    differ = pairs[:, 0] != pairs[:, 1]
    if not differ.all():
        remark(f"left out {how_many(int((~differ).sum()), 'duels')} of {data.source} between equal rows")
    magnitude, weight = (None if one is None else one[differ] for one in (data.magnitude, data.weight))
    first = np.unique(same, return_index=True)[1]
    return replace(data, X=data.X.take(first), pairs=pairs[differ], magnitude=magnitude, weight=weight)


# Blocks


def read_blocks(paths: list[str], options: argparse.Namespace, model: Model) -> Iterator[Data]:
    """Yield the rows of text or tables block by block, without labels and queries; they need not fit in memory.

    Duels are one block.
    """
    kind, source = _kind_and_name(paths, options)
    if kind == "text":
        reader = open_reader(paths, options, model)
        reader.kind_of_ids = "U"  # they are not looked at
        for X, _, _ in reader.blocks(_BLOCK):
            yield _as_trained(Data(source, X, first_column=reader.base), model)
        return
    tables = _Tables(paths, source, options, model)
    if tables.lists_duels:
        yield _read_duels(tables)
        return
    roles = tables.roles()
    if model.encoder is None:
        numbers = tables.reader(roles, None, None)
        for table in numbers.blocks(numbers.rows_in(_BLOCK)):
            yield Data(source, table.X, names=table.feature_names)
        return
    pa = import_pyarrow()
    for batch in (batch for file in tables.files for batch in file.batches(list(roles.features))):
        yield Data(source, pa.Table.from_batches([batch.data]))
