"""Parameters of estimators, declared once: a field of a class with its type, default and constraint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import wraps
from inspect import cleandoc, signature
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self, TypeVar, dataclass_transform

import sklearn.base
from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from rankwise.exceptions import InvalidInputError

if TYPE_CHECKING:

    class BaseEstimator:
        """The types of scikit-learn's: under a base without types, checkers would accept any argument of a class."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...  # noqa: D102
        def set_params(self, **params: Any) -> Self: ...  # noqa: D102
        def __getstate__(self) -> dict[str, Any]: ...
        def __getattr__(self, name: str) -> Any: ...

else:
    BaseEstimator = sklearn.base.BaseEstimator

# Constraints by name; scikit-learn has others, such as "boolean".
_CONSTRAINTS: dict[object, list[object]] = {
    "auto": [StrOptions({"auto"})],
    "count": [Interval(Integral, 1, None, closed="left")],
    "count from 0": [Interval(Integral, 0, None, closed="left")],
    "count from 2": [Interval(Integral, 2, None, closed="left")],
    "finite": [Interval(Real, None, None, closed="neither")],
    "not negative": [Interval(Real, 0, None, closed="left")],
    "positive": [Interval(Real, 0, None, closed="neither")],
    "positive share": [Interval(Real, 0, 1, closed="neither")],
    "share": [Interval(Real, 0, 1, closed="left")],
    "splitter": [Interval(Integral, 2, None, closed="left"), HasMethods("split"), list, tuple],
}

_QID = "pass the query id of each row as qid; sizes of groups become ids by np.repeat(np.arange(len(sizes)), sizes)."
_EVAL_QID = "pass the query id of each row in eval_set=(X_val, y_val, qid_val)."
_PENALTY = "set the penalty, alpha of most estimators: larger is simpler, as 1 / C is."
_STOPPING = "leave it out; to stop early use RankSVM or RankRLS with early_stopping=True and patience=10."
_OTHER_NAMES_OF_QID = ("group", "groups", "group_id", "query", "queries", "query_id", "query_ids", "qids")
# Arguments of other packages, of `fit` or of the estimator, and the way to write them here.
_ELSEWHERE = {
    **dict.fromkeys(_OTHER_NAMES_OF_QID, _QID),
    **dict.fromkeys(("eval_group", "eval_qid"), _EVAL_QID),
    **dict.fromkeys(("C", "lambda_", "reg_lambda"), _PENALTY),
    **dict.fromkeys(("callbacks", "early_stopping_rounds"), _STOPPING),
    "n_jobs": "set n_threads of the estimator.",
}

Class = TypeVar("Class", bound=type[Any])

# Names, maybe their type, and an indented text.
_ENTRY = re.compile(r"^(\w+(?:, \w+)*)( : .*)?\n((?:    .*(?:\n|\Z))*)", flags=re.MULTILINE)
_AS_IN = re.compile(r"    As in `(\w+)`[.;,:]?\s*")


def parameter(*constraints: Any, default: Any, kw_only: bool = True) -> Any:
    """Declare a parameter that satisfies one of some constraints, of `_CONSTRAINTS` or scikit-learn."""
    known = [each for one in constraints for each in _CONSTRAINTS.get(one, [one])]
    return field(default=default, kw_only=kw_only, metadata={"constraints": known})


def one_of(choices: Iterable[str], *, default: str) -> Any:
    """Declare a parameter that is its default or one of the choices."""
    return parameter(StrOptions({default, *choices}), default=default)


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field, parameter, one_of))
def estimator(*others: type[Any]) -> Callable[[Class], Class]:
    """Make `__init__` from the fields of a class, and complete its docstring by entries of other classes.

    An entry such as ``tol, max_iter`` with the text ``As in `RankRLS`. A note.`` becomes the entries of that class,
    each followed by the note, so that `help` and the site show every entry in full. Types are copied too, unless the
    entry has its own; defaults are those of the class.
    """
    known = {other.__name__: (other, _entries(cleandoc(other.__doc__ or ""))) for other in others}

    def complete(cls: Class) -> Class:
        dataclass(eq=False, repr=False, kw_only=True)(cls)
        declared = {one.name: one.metadata.get("constraints") for one in fields(cls)}
        cls._parameter_constraints = {name: found for name, found in declared.items() if found}

        def written(entry: re.Match[str]) -> str:
            names, own, text = entry.groups()
            found = _AS_IN.match(text)
            if found is None or found[1] not in known:
                return entry[0]
            other, entries = known[found[1]]
            note = text[found.end() :]
            note = f"    {note[:1].upper()}{note[1:]}" if note else ""
            parts = []
            for name in names.split(", "):
                kind, words = entries[name]
                declared = cls.__dataclass_fields__.get(name)
                if declared and declared.init and declared.default != getattr(other, name):
                    default = declared.default
                    shown = f'"{default}"' if isinstance(default, str) else repr(default)
                    kind = re.sub("default=.*", f"default={shown}", kind)
                is_own = own is not None and "," not in names
                parts.append(f"{name}{own if is_own else kind}\n{words}{note}")
            return "".join(parts)

        cls.__doc__ = cls.__doc__ and _ENTRY.sub(written, cleandoc(cls.__doc__))
        cls.__init__ = _documented(cls)
        return cls

    return complete


def _entries(doc: str) -> dict[str, tuple[str, str]]:
    """Return the type and the text of each name."""
    return {
        name: (entry[2] or "", entry[3]) for entry in _ENTRY.finditer(doc) for name in entry[1].split(", ")
    }


def _documented(cls: type[Any]) -> Callable[..., None]:
    """Return `__init__` with its parameters in the order of the docstring, and hints for those of other packages."""
    init = cls.__init__
    own = signature(init)
    place = {name: place for place, name in enumerate(_entries(cls.__doc__ or ""))}

    @wraps(init)
    def __init__(self: object, *args: object, **kwargs: object) -> None:  # noqa: N807
        refuse_unknown(type(self).__name__, kwargs.keys() - own.parameters.keys() & _ELSEWHERE.keys())
        init(self, *args, **kwargs)

    in_order = sorted(own.parameters.values(), key=lambda one: (one.kind, place.get(one.name, -1)))
    __init__.__signature__ = own.replace(parameters=in_order)  # type: ignore[attr-defined]
    __init__.__annotations__ = {}  # names of other modules, which `typing.get_type_hints` would not find
    return __init__


def check_parameters(model: Any) -> None:
    """Raise unless parameters satisfy their constraints; to check defaults would take half as long as a small fit."""
    for name, constraints in model._parameter_constraints.items():
        value, default = getattr(model, name), model.__dataclass_fields__[name].default
        if value is default:
            continue
        try:
            validate_parameter_constraints({name: constraints}, {name: value}, type(model).__name__)
        except InvalidParameterError as error:
            words = [word for each in constraints if isinstance(each, StrOptions) for word in each.options]
            close = get_close_matches(str(value), words, n=1)
            remedy = f"leave {name} out for its default, {default!r}."
            raise InvalidInputError(str(error), f"did you mean {close[0]!r}?" if close else remedy) from None


def refuse_unknown(method: str, unknown: Iterable[str]) -> None:
    """Raise where a method got arguments that it does not have: query ids go by other names elsewhere."""
    for name in unknown:
        hint = _ELSEWHERE.get(name)
        if hint is None:
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
        if hint is _QID and method == "fit_pairs":
            hint = "leave it out: pairs says which rows are compared."
        raise InvalidInputError(f"{method} has no argument {name!r}.", hint)
