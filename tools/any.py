"""Count `Any` in the signatures of the library: where anything may come in, or come out.

python tools/any.py             # per package
python tools/any.py --list      # and every signature that has one
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

_SOURCE = Path(__file__).resolve().parents[1] / "src" / "rankwise"


def annotations(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """Yield the annotations of a signature."""
    given = function.args
    parameters = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    yield from (one.annotation for one in parameters if one is not None and one.annotation is not None)
    if function.returns is not None:
        yield function.returns


def n_any(annotation: ast.expr) -> int:
    """Return how often an annotation says `Any`."""
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(annotation))


def signatures() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef, int]]:
    """Yield every signature of the library that says `Any`, and how often."""
    for path in sorted(_SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found = sum(n_any(annotation) for annotation in annotations(node))
                if found:
                    yield path.relative_to(_SOURCE), node, found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="name every signature")
    wants_list = parser.parse_args().list
    packages: Counter[str] = Counter()
    for path, function, found in signatures():
        packages[path.parts[0]] += found
        if wants_list:
            print(f"{path}:{function.lineno} {function.name} {found}")
    for package, found in packages.most_common():
        print(f"{found:5} {package}")
    print(f"{packages.total():5} together")
