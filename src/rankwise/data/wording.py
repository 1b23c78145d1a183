"""Numbers of things in sentences."""

from __future__ import annotations

_ONE = {"queries": "query"}  # the others lose their last letter


def how_many(count: int, things: str) -> str:
    """Say how many there are: ``1 query``, ``2 queries``, ``1,000 rows``."""
    return f"{count:,} {things if count != 1 else _ONE.get(things, things.removesuffix('s'))}"
