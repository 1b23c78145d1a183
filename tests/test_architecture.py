"""ARCHITECTURE.md draws the tree as it is."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "rankwise"


def drawn():
    """Return the paths that the drawing names: folders and modules in its first column."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    tree = page.split("```\ncpp/")[1].split("```")[0]
    lines = ("cpp/" + tree).splitlines()
    return [
        name
        for line in lines
        if re.match(r" {0,2}\S", line)
        for name in re.match(r" {0,2}((?:\S+ )+)", line + " ").group(1).split()
        if re.fullmatch(r"[\w/]+(/|\.py)", name)
    ]


def test_every_room_is_drawn_and_every_drawn_room_is_there():
    rooms = {name.rstrip("/") for name in drawn()}
    real = {
        path.name
        for path in SOURCE.iterdir()
        if (path.is_dir() and (path / "__init__.py").exists()) or path.suffix == ".py"
    }
    assert rooms & real == real - {"__init__.py", "__main__.py"}
    around = rooms - real
    assert {"cpp", "tests", "benchmarks", "docs"} <= around
    assert all((ROOT / name).is_dir() for name in around)


def test_modules_that_the_drawing_names_are_there():
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    tree = page.split("```\ncpp/")[1].split("```")[0]
    room, missing = None, []
    for line in tree.splitlines():
        start = re.match(r"  (\w+)/ ", line)
        room = start.group(1) if start else room if line.startswith("     ") else None
        names = re.findall(r"(?<![*\w])(\w+\.py)\b", line) if room is not None else []
        missing += [
            f"{room}/{name}"
            for name in names
            if not (SOURCE / room / name).exists() and not (SOURCE / name).exists()
        ]
    assert not missing
