"""Parameters of estimators, declared once: a field of a class with its type, default and constraint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from functools import wraps
from inspect import cleandoc, signature
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

from sklearn.utils._param_validation import (
    HasMethods,
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from rankwise.exceptions import InvalidInputError

COUNT = Interval(Integral, 1, None, closed="left")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
POSITIVE_SHARE = Interval(Real, 0, 1, closed="neither")
SHARE = Interval(Real, 0, 1, closed="left")
SPLITTERS = (Interval(Integral, 2, None, closed="left"), HasMethods("split"), list, tuple)  # values of `cv`

_OTHER_NAMES_OF_QID = ("group", "groups", "group_id", "query", "queries", "query_id", "query_ids", "qids")
_EVAL_QID = "pass the query id of each row in eval_set=(X_val, y_val, qid_val)."
_STOPPING = "leave it out; to stop early use RankSVM or RankRLS with early_stopping=True and patience=10."
# Arguments of XGBoost and LightGBM, of `fit` or of the estimator, and the way to write them here.
_ELSEWHERE = {
    "eval_group": _EVAL_QID,
    "eval_qid": _EVAL_QID,
    "callbacks": _STOPPING,
    "early_stopping_rounds": _STOPPING,
    "n_jobs": "set n_threads of the estimator.",
}

Class = TypeVar("Class", bound=type[Any])

# Names, maybe their type, and an indented text.
_ENTRY = re.compile(r"^(\w+(?:, \w+)*)( : .*)?\n((?:    .*(?:\n|\Z))*)", flags=re.MULTILINE)
_AS_IN = re.compile(r"    As in `(\w+)`[.;,:]?\s*")


# Where a parameter has no constraint of its own.
_BY_TYPE = {
    "bool": ["boolean"],
    "float": [NOT_NEGATIVE],
    "int": [COUNT],
    "int | None": [COUNT, None],
}


def parameter(*constraints: Any, default: Any, kw_only: bool = True) -> Any:
    """Declare a parameter that satisfies one of scikit-learn's constraints."""
    return field(default=default, kw_only=kw_only, metadata={"constraints": list(constraints)})


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
        constrained = {one.name: _constraints(one) for one in fields(cls) if one.init}
        cls._parameter_constraints = {name: found for name, found in constrained.items() if found}
        cls.__init__ = _hinting(cls.__init__)

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
        return cls

    return complete


def _entries(doc: str) -> dict[str, tuple[str, str]]:
    """Return the type and the text of each name."""
    return {
        name: (entry[2] or "", entry[3]) for entry in _ENTRY.finditer(doc) for name in entry[1].split(", ")
    }


def _constraints(declared: Field[Any]) -> list[Any]:
    return declared.metadata.get("constraints") or _BY_TYPE.get(str(declared.type), [])


def _hinting(init: Callable[..., None]) -> Callable[..., None]:
    """Decorate `__init__` with hints for arguments of other packages."""
    own = signature(init).parameters

    @wraps(init)
    def __init__(self: object, *args: object, **kwargs: object) -> None:  # noqa: N807
        for name in kwargs.keys() & _ELSEWHERE.keys() - own.keys():
            raise InvalidInputError(f"{type(self).__name__} has no argument {name!r}.", _ELSEWHERE[name])
        init(self, *args, **kwargs)

    return __init__


def check_parameters(model: Any) -> None:
    """Raise unless parameters satisfy their constraints; to check defaults would take half as long as a small fit."""
    for one in fields(model):
        constraints = model._parameter_constraints.get(one.name)
        if constraints is None or (value := getattr(model, one.name)) is one.default:
            continue
        try:
            validate_parameter_constraints({one.name: constraints}, {one.name: value}, type(model).__name__)
        except InvalidParameterError as error:
            words = [word for each in constraints if isinstance(each, StrOptions) for word in each.options]
            close = get_close_matches(str(value), words, n=1)
            default = f"leave {one.name} out for its default, {one.default!r}."
            raise InvalidInputError(str(error), f"did you mean {close[0]!r}?" if close else default) from None


def refuse_unknown(method: str, unknown: Mapping[str, object]) -> None:
    """Raise where a method got arguments that it does not have: query ids go by other names elsewhere."""
    for name in unknown:
        if name not in {*_OTHER_NAMES_OF_QID, *_ELSEWHERE}:
            raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")
        hint = _ELSEWHERE.get(name)
        if hint is None and method == "fit_pairs":
            hint = "leave it out: pairs says which rows are compared."
        rows = "pass the query id of each row as qid; sizes of groups become ids by "
        hint = hint or f"{rows}np.repeat(np.arange(len(sizes)), sizes)."
        raise InvalidInputError(f"{method} has no argument {name!r}.", hint)
