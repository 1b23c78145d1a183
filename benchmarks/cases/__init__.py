"""All cases, and all tables and pictures that are made of them."""

from importlib import import_module

NAMES = (
    "quality unseen learning speed memory large_scale tree_ranksvm egdm preference_graphs intervals estimate "
    "leaderboards two_sided web summary"
)
MODULES = [import_module(f"cases.{name}") for name in NAMES.split()]
CASES = [case for module in MODULES for case in module.CASES]
TABLES = {name: make for module in MODULES for name, make in module.TABLES.items()}
