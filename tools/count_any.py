"""Count how often `Any` stands in the signatures of the library, room by room.

Every word `Any` in the annotation of a parameter or of a returned value counts, `dict[str, Any]` once. Those inside
annotations of numpy types, `npt.NDArray[Any]` and `np.dtype[Any]`, count too.

    python tools/count_any.py [--functions]
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src" / "rankwise"


def signatures() -> Iterator[tuple[str, str, int]]:
    """Yield the module, the function, and how many of its annotations' words are `Any`."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                arguments = node.args
                every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                every += [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
                annotations = [one.annotation for one in every if one.annotation is not None]
                annotations += [node.returns] if node.returns is not None else []
                words = [word for annotation in annotations for word in ast.walk(annotation)]
                count = sum(isinstance(word, ast.Name) and word.id == "Any" for word in words)
                yield str(path.relative_to(SOURCE)), node.name, count


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--functions", action="store_true", help="name the functions as well")
    names = parser.parse_args().functions
    found = [one for one in signatures() if one[2]]
    rooms: Counter[str] = Counter()
    for module, function, count in found:
        rooms[module.partition("/")[0]] += count
        if names:
            print(f"{count:4} {module}: {function}")
    for room, count in rooms.most_common():
        print(f"{count:5} {room}")
    print(f"{sum(rooms.values()):5} in all")


if __name__ == "__main__":
    main()
