"""Where a candidate can run outside Python."""

from __future__ import annotations

from rankwise.automatic.candidates import METHODS, Candidate
from rankwise.exporters.targets import TARGETS, Target

__all__ = ["exportable_to"]


def exportable_to(candidate: Candidate) -> tuple[str, ...]:
    """Name the targets of `rankwise export` that can run such a model, given what a caller can tell them."""
    parts = candidate.parts or (candidate,)
    return tuple(name for name, target in TARGETS.items() if all(_runs(part, target) for part in parts))


def _runs(candidate: Candidate, target: Target) -> bool:
    if METHODS[candidate.method].form == "kernel" and "rbf" not in target.kernels:
        return False
    inside = candidate.scaling.rpartition("+")[2]
    return not inside.startswith("query-") or inside.removeprefix("query-") in target.scales
