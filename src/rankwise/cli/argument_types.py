"""Values of options, read from what a person types."""

from __future__ import annotations

import argparse
import math

__all__ = [
    "Joined",
    "alpha",
    "bounds",
    "folds",
    "gamma",
    "level",
    "metric",
    "metrics",
    "not_negative",
    "number",
    "picture",
    "positive",
    "positive_number",
    "seconds",
    "seed",
    "served",
    "written",
]

PICTURES = (".png", ".svg", ".pdf")


def served(text: str) -> str:
    """Read what a model is to run in: every dialect of SQL runs the same models."""
    return "sqlite" if text == "sql" else text


def written(text: str) -> str:
    """Read what a model is written for: SQL has dialects, of which somebody has to name one."""
    if text == "sql":
        raise argparse.ArgumentTypeError("sql is written in a dialect: sqlite, postgresql or duckdb")
    return text


def positive(text: str) -> int:
    """Read a positive whole number."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return value


def number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a number") from None


def positive_number(text: str) -> float:
    """Read a positive number."""
    value = number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def not_negative(text: str) -> float:
    """Read a number that is not negative."""
    value = number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 up")
    return value


def bounds(text: str) -> tuple[str, tuple[float, float]]:
    """Read ``NAME=LOW:HIGH``."""
    name, equals, ends = text.rpartition("=")
    low, colon, high = ends.partition(":")
    if not equals or not colon or not name:
        raise argparse.ArgumentTypeError(f"{text} is not COLUMN=LOW:HIGH, such as price=0:100")
    return name, (number(low), number(high))


def alpha(text: str) -> float:
    """Read a regularisation."""
    value = number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 up")
    return value


def seconds(text: str) -> float:
    """Read a time, such as 90, 10m or 1h."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    factor = units.get(text[-1:].lower())
    try:
        value = float(text[:-1]) * factor if factor else float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no time, such as 60s, 5m or 1h")
    return value


def gamma(text: str) -> float | str:
    """Read the width of a kernel."""
    return text if text in {"scale", "auto"} else positive_number(text)


def folds(text: str) -> int:
    """Read a number of folds."""
    value = positive(text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"{text} is not a number of folds, from 2 up")
    return value


def level(text: str) -> float:
    """Read a level of confidence."""
    value = number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1, such as 0.95")
    return value


def seed(text: str) -> int:
    """Read a seed."""
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 0 up, below 2^32")
    return int(text)


def picture(text: str) -> str:
    """Read the name of a picture."""
    if not text.lower().endswith(PICTURES):
        raise argparse.ArgumentTypeError(f"{text} does not end in one of {', '.join(PICTURES)}")
    return text


def metric(text: str) -> str:
    """Read the name of a metric."""
    from rankwise.exceptions import InvalidInputError  # noqa: PLC0415 - the parser itself imports nothing
    from rankwise.metrics import get_metric  # noqa: PLC0415

    name = text.strip().lower()  # papers write NDCG@10
    try:
        get_metric(name)
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(f"{error.problem} {error.hint[0].upper()}{error.hint[1:]}") from None
    return name


def metrics(text: str) -> str:
    """Read names of metrics."""
    return ",".join(map(metric, text.split(",")))


class Joined(argparse.Action):
    """A list that goes on where the option is repeated."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        options: argparse.Namespace,
        values: object,
        option: object = None,
    ) -> None:
        """Add to what was there before."""
        before = getattr(options, self.dest)
        setattr(options, self.dest, values if before is None else f"{before},{values}")
