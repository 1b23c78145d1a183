"""All cases, and all tables and pictures that are made of them."""

from cases import quality

MODULES = (quality,)
CASES = [case for module in MODULES for case in module.CASES]
TABLES = {name: make for module in MODULES for name, make in module.TABLES.items()}
