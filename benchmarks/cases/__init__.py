"""All cases, and all tables and pictures that are made of them."""

from cases import (
    egdm,
    estimate,
    intervals,
    large_scale,
    memory,
    preference_graphs,
    quality,
    speed,
    summary,
    tree_ranksvm,
    unseen,
    web,
)

MODULES = (
    quality,
    unseen,
    speed,
    memory,
    large_scale,
    tree_ranksvm,
    egdm,
    preference_graphs,
    intervals,
    estimate,
    web,
    summary,
)
CASES = [case for module in MODULES for case in module.CASES]
TABLES = {name: make for module in MODULES for name, make in module.TABLES.items()}
