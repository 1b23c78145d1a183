"""Draw the tree of ARCHITECTURE.md: the layers of the import contract, from the lowest up, with their first sentences.

    python tools/tree.py            # writes the drawing into ARCHITECTURE.md

Each line is the first sentence of the docstring of a package or module.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_SOURCE = _ROOT / "src" / "rankwise"
_WIDTH = 23  # of the names


def drawing() -> str:
    """Return the lines below ``src/rankwise/``; raise where the contract lacks a package or names one too many."""
    rules = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [re.findall(r"rankwise\.(\w+)", layer) for layer in reversed(rules["contracts"][0]["layers"])]
    named = {name for layer in layers for name in layer}
    there = {
        path.stem
        for path in _SOURCE.iterdir()
        if (path / "__init__.py").exists() or (path.suffix == ".py" and not path.stem.startswith("__"))
    }
    if named != there:
        raise ValueError(f"The contract in pyproject.toml and the tree differ by {sorted(named ^ there)}.")
    return "\n".join(_line(name) for layer in layers for name in layer)


def with_drawing(page: str) -> str:
    """Return the page with the drawing of the tree as it is."""
    before, rest = page.split("src/rankwise/\n", 1)
    after = rest.split("\ntests/", 1)[1]
    return f"{before}src/rankwise/\n{drawing()}\ntests/{after}"


def _line(name: str) -> str:
    module = _SOURCE / f"{name}.py"
    is_module = module.exists()
    tree = ast.parse((module if is_module else _SOURCE / name / "__init__.py").read_text(encoding="utf-8"))
    summary = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
    sentence = re.split(r"(?<=[a-z`)])\. ", summary)[0].rstrip(".")
    return f"  {name + ('.py' if is_module else '/'):{_WIDTH}}{sentence}"


if __name__ == "__main__":
    page = _ROOT / "ARCHITECTURE.md"
    page.write_text(with_drawing(page.read_text(encoding="utf-8")), encoding="utf-8")
