"""Encoding of tables as numbers: missing values, categories, dates, lists and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from rankwise.arrays import AnyArray, ArrayLike, Floats, MatrixLike
from rankwise.data.columns import Column, read_columns
from rankwise.data.queries import Queries
from rankwise.data.validation import check_choice, check_count, check_names, check_qid
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing.column_steps import (
    Block,
    ColumnStep,
    as_texts,
    column_names,
    describe,
    encode,
    encode_as_codes,
    held_text,
    texts,
)

_WORDS = ("hash", "tf-idf")


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Encode the columns of a table as numbers, depending on their types.

    Numbers are kept; missing ones are replaced by the median, and an extra column marks them. Texts with few values are
    one-hot encoded, with one column for all rare values; values that are new in prediction count as rare. Booleans
    become 0 and 1, dates become days since 1970, lists one column per place, and columns named in `words` become hashed
    or tf-idf words. Columns that cannot matter are left out and listed: those that are constant, those that are
    constant inside every query, and texts that differ in nearly every row.

    Parameters
    ----------
    columns : list of str, optional
        The columns to encode; by default all.
    categories : list of str, default=()
        Columns of numbers that are categories, such as postcodes.
    words : list of str, default=()
        Columns of text to read word by word.
    method : {"hash", "tf-idf"}, default="hash"
        How words become columns: by a hash, which needs no vocabulary, or weighted by how rare they are.
    n_words : int, default=4096
        Columns of hashed words; of tf-idf words at most.
    crosses : list of str, default=()
        Products of two columns, such as ``"price:country"``: the price separately in every country.
    min_rows : int, default=5
        Values of a category with fewer rows go together.
    max_levels : int, default=100
        The most values of a category that get columns of their own.
    codes : bool, default=False
        Whether every column stays one column, as curves and trees take it: the values of a category are numbered,
        missing values stay NaN, and columns that are constant are kept. Texts that differ in nearly every row become
        NaN. Lists, words and crosses have no codes.

    Attributes
    ----------
    columns_ : list of dict
        The encoding of each column, as plain values.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from rankwise.preprocessing import TableEncoder
    >>> rows = np.array([[1.0, "red"], [None, "blue"], [3.0, "red"], [2.5, "blue"]], dtype=object)
    >>> encoder = TableEncoder(min_rows=1).fit(rows)
    >>> encoder.get_feature_names_out().tolist()
    ['x0', 'x0 missing', 'x1=blue', 'x1=red']
    >>> encoder.transform(rows)[1].tolist()
    [2.5, 1.0, 1.0, 0.0]
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}

    columns_: list[ColumnStep]

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        *,
        categories: Sequence[str] = (),
        words: Sequence[str] = (),
        method: str = "hash",
        n_words: int = 4096,
        crosses: Sequence[str] = (),
        min_rows: int = 5,
        max_levels: int = 100,
        codes: bool = False,
    ) -> None:
        self.columns = columns
        self.categories = categories
        self.words = words
        self.method = method
        self.n_words = n_words
        self.crosses = crosses
        self.min_rows = min_rows
        self.max_levels = max_levels
        self.codes = codes

    def fit(self, X: MatrixLike, y: object = None, qid: ArrayLike | None = None) -> Self:
        """Choose the encoding of every column.

        Parameters
        ----------
        X : data frame, Arrow table or array of shape (rows, columns)
        y : ignored
        qid : array-like of shape (rows,), optional
            The query of each row, to find columns that are constant inside every query.
        """
        check_choice("method", self.method, _WORDS)
        for name in ("n_words", "min_rows", "max_levels"):
            check_count(name, getattr(self, name), optional=False)
        roles = {name: check_names(name, getattr(self, name)) for name in ("categories", "words", "crosses")}
        chosen = None if self.columns is None else check_names("columns", self.columns)
        columns = read_columns(X, chosen, texts=[*roles["categories"], *roles["words"]])
        if not columns or not columns[0].values.shape[0]:
            raise InvalidInputError("The table has no rows, or no columns.", "check what was read.")
        names = [column.name for column in columns]
        if self.codes:
            uncoded = {*roles["words"], *(column.name for column in columns if column.kind == "list")}
            if uncoded or self.crosses:
                raise InvalidInputError(
                    f"There are no codes for lists, words and crosses ({', '.join([*uncoded, *self.crosses])}).",
                    "use codes=False, or leave the columns out.",
                )
        crossed = {name for cross in roles["crosses"] for name in sides_of(cross, names)}
        for role in ("categories", "words"):
            unknown = [name for name in roles[role] if name not in names]
            if unknown:
                raise InvalidInputError(
                    f"{role} names {unknown[0]!r}, which is not a column.",
                    f"the columns are {', '.join(names)}.",
                )
        n_rows = columns[0].values.shape[0]
        queries = None if qid is None else check_qid(qid, n_rows)
        self.columns_ = [
            self._decide(column, queries, is_crossed=column.name in crossed) for column in columns
        ]
        left_out = {step["name"]: step["why"] for step in self.columns_ if step["kind"] == "left out"}
        for name in sorted(crossed & left_out.keys()):
            raise InvalidInputError(
                f"Column {name!r} is to be crossed, and is left out, because {left_out[name]}.",
                "cross other columns.",
            )
        self.feature_names_in_ = np.array(names, dtype=object)
        self.n_features_in_ = len(names)
        if not len(self.get_feature_names_out()):
            why = "; ".join(self.describe()) + "."
            del self.columns_  # nothing is fitted
            raise InvalidInputError("No column can tell the rows of a query apart.", why)
        return self

    def fit_transform(
        self, X: MatrixLike, y: object = None, qid: ArrayLike | None = None
    ) -> Floats | sp.csr_matrix:
        """Fit, and encode the same rows.

        Parameters
        ----------
        X, y, qid
            As in `fit`.
        """
        return self.fit(X, y, qid=qid).transform(X)

    def transform(self, X: MatrixLike) -> Floats | sp.csr_matrix:
        """Encode rows as training's were.

        Parameters
        ----------
        X : data frame, Arrow table or array
            With the columns of training, under their names; others are ignored.

        Returns
        -------
        ndarray of float64, or CSR matrix where there are words
        """
        check_is_fitted(self)
        taken = [step for step in self.columns_ if step["kind"] != "left out"]
        named = [step["name"] for step in taken if held_text(step)]
        columns = read_columns(X, [step["name"] for step in taken], texts=named)
        if self.codes:
            found = np.full((columns[0].values.shape[0], self.n_features_in_), np.nan)
            at = [at for at, step in enumerate(self.columns_) if step["kind"] != "left out"]
            found[:, at] = np.column_stack(list(map(encode_as_codes, taken, columns)))
            return found
        blocks = {step["name"]: encode(step, column) for step, column in zip(taken, columns, strict=True)}
        names = [str(name) for name in self.feature_names_in_]
        parts = [blocks[step["name"]] for step in taken if not step.get("only_crossed")]
        for cross in self.crosses:
            first, second = (blocks[name] for name in sides_of(cross, names))
            parts.append(_products(first, second))
        if any(sp.issparse(part) for part in parts):
            return sp.hstack([sp.csr_matrix(part) for part in parts], format="csr")
        stacked: Floats = np.ascontiguousarray(np.hstack(parts))
        return stacked

    def get_feature_names_out(self, input_features: object = None) -> AnyArray:
        """Return a name for each column of the result of `transform`.

        Parameters
        ----------
        input_features : ignored
        """
        check_is_fitted(self)
        if self.codes:
            return self.feature_names_in_
        own = {step["name"]: column_names(step) for step in self.columns_ if step["kind"] != "left out"}
        found = [
            name
            for step in self.columns_
            if step["kind"] != "left out" and not step.get("only_crossed")
            for name in own[step["name"]]
        ]
        names = [str(name) for name in self.feature_names_in_]
        for cross in self.crosses:
            first, second = sides_of(cross, names)
            found += [f"{a}:{b}" for a, b in product(own[first], own[second])]
        return np.array(found, dtype=object)

    def describe(self) -> list[str]:
        """Describe the encoding of each column, one per line."""
        check_is_fitted(self)
        lines = [f"{step['name']}: {describe(step, codes=self.codes)}" for step in self.columns_]
        return lines + [f"{cross}: the product of the two" for cross in self.crosses]

    def _decide(self, column: Column, queries: Queries | None, *, is_crossed: bool) -> ColumnStep:
        name, kind, values = column.name, column.kind, column.values
        if kind == "list":
            fill = np.nan_to_num(np.nanmean(values, axis=0))
            return {"name": name, "kind": "list", "fill": fill.tolist()}
        of_numbers = name in self.categories and kind in {"number", "flag"}
        if of_numbers:
            kind, values = "text", as_texts(values)
        if kind == "text" and name in self.words:
            return self._decide_words(name, values)
        codes = values
        if kind == "text":
            step = self._decide_levels(name, values)
            if of_numbers:
                step["of_numbers"] = True
            place = {level: at for at, level in enumerate(dict.fromkeys(values))}
            codes = np.array([place[value] for value in values], dtype=np.float64)
        else:
            n_missing = int(np.isnan(values).sum())
            fill = float(np.nanmedian(values)) if n_missing < values.size else 0.0
            step = {"name": name, "kind": kind, "fill": fill, "missing": n_missing}
        return step if self.codes else _unless_constant(step, codes, queries, is_crossed=is_crossed)

    def _decide_levels(self, name: str, values: AnyArray) -> ColumnStep:
        counts = Counter(value for value in values if value is not None)
        n_known = sum(counts.values())
        frequent = [level for level, count in counts.most_common(self.max_levels) if count >= self.min_rows]
        why = ""
        if len(counts) > max(2, 0.5 * n_known):
            why = (
                f"nearly every row has its own text ({len(counts):,} of {n_known:,}): an id, or a text of words "
                f"(words=['{name}'])"
            )
        elif not frequent and len(counts) > 2:
            why = f"none of its {len(counts):,} texts comes in {self.min_rows} rows"
        if why:
            return {"name": name, "kind": "left out", "why": why}
        levels = sorted(frequent) or sorted(counts)
        step: ColumnStep = {
            "name": name,
            "kind": "category",
            "levels": levels,
            "rare": len(counts) - len(levels),
        }
        if any(value is None for value in values):
            step["has_missing"] = True
        return step

    def _decide_words(self, name: str, values: AnyArray) -> ColumnStep:
        if self.method == "hash":
            return {"name": name, "kind": "words", "method": "hash", "width": self.n_words}
        from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - only where there are words

        fitted = TfidfVectorizer(sublinear_tf=True, max_features=self.n_words).fit(texts(values))
        names = fitted.get_feature_names_out().tolist()
        return {
            "name": name,
            "kind": "words",
            "method": "tf-idf",
            "vocabulary": names,
            "idf": fitted.idf_.tolist(),
        }

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags


def sides_of(cross: str, names: Sequence[str]) -> tuple[str, str]:
    """Return the two columns that a cross names."""
    for at in [at for at, character in enumerate(cross) if character == ":"]:
        first, second = cross[:at], cross[at + 1 :]
        if first in names and second in names:
            return first, second
    raise InvalidInputError(
        f"The cross {cross!r} does not name two columns.", f"write A:B, of {', '.join(names)}."
    )


def _unless_constant(
    step: ColumnStep, codes: Floats, queries: Queries | None, *, is_crossed: bool
) -> ColumnStep:
    """Return the step, or leave the column out where it tells no rows of a query apart."""
    name = step["name"]
    if _is_constant(codes, None):
        return {"name": name, "kind": "left out", "why": "it has one value everywhere"}
    if queries is None or len(queries) == 1 or not _is_constant(codes, queries):
        return step
    if is_crossed:
        return {**step, "only_crossed": True}
    why = (
        "it has one value inside every query, and tells no rows apart unless crossed with another column "
        f"(crosses=['OTHER:{name}'])"
    )
    return {"name": name, "kind": "left out", "why": why}


def _is_constant(codes: Floats, queries: Queries | None) -> bool:
    """Tell whether a column has one value everywhere, or inside every query; that nothing is known is a value too."""
    own = np.where(np.isnan(codes), np.inf, codes)
    if queries is None:
        return bool((own == own[0]).all())
    ordered = own[queries.order]
    start = queries.offsets[:-1]
    return bool((np.maximum.reduceat(ordered, start) == np.minimum.reduceat(ordered, start)).all())


def _products(first: Block, second: Block) -> Block:
    if sp.issparse(first) or sp.issparse(second):
        a, b = sp.csc_matrix(first), sp.csc_matrix(second)
        columns = [a[:, i].multiply(b[:, j]) for i, j in product(range(a.shape[1]), range(b.shape[1]))]
        return sp.hstack(columns, format="csr")
    both: Floats = first[:, :, None] * second[:, None, :]
    return both.reshape(first.shape[0], -1)
