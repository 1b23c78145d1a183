"""Where a fitted candidate can run outside Python."""

from __future__ import annotations

from rankwise.automatic.candidates import METHODS, Candidate

__all__ = ["exportable_to"]

# Scalings that become part of a linear model's weights.
_AFFINE = frozenset({"none", "standard", "max-abs"})


def exportable_to(candidate: Candidate) -> tuple[str, ...]:
    """Name the formats that `rankwise export` writes of such a model."""
    if METHODS[candidate.method].form == "linear" and candidate.scaling in _AFFINE:
        return ("json",)
    return ()
