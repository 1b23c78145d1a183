"""Every table and picture of the pages, written between markers from the file of results.

A block stands between ``<!-- evidence: NAME -->`` and ``<!-- /evidence -->``; NAME is one of the tables of the cases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import drawing
from cases import TABLES
from harness import HERE, Results

ROOT = HERE.parent
BLOCK = re.compile(r"(<!-- evidence: ([\w-]+) -->\n)(.*?)(<!-- /evidence -->)", re.DOTALL)


def pages() -> list[Path]:
    """Return the pages that may hold blocks."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted(HERE.rglob("*.md"))]


def blocks(results: Results) -> Iterator[tuple[Path, str, str, str]]:
    """Yield page, name, text as it stands and text as the file gives it."""
    for page in pages():
        for _, name, there, _ in BLOCK.findall(page.read_text(encoding="utf-8")):
            if name not in TABLES:
                raise SystemExit(f"{page}: unknown block {name}. Known: {', '.join(sorted(TABLES))}.")
            yield page, name, there, f"\n{TABLES[name](results)}\n\n"


def differing_blocks(results: Results) -> list[tuple[str, str]]:
    """Return page and name of blocks that are not what the file gives."""
    return [
        (str(page.relative_to(ROOT)), name) for page, name, there, made in blocks(results) if there != made
    ]


def write_pages(results: Results) -> None:
    """Write every block, and the pictures."""
    drawing.wanted["files"] = True
    made = {name: text for _, name, _, text in blocks(results)}
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = BLOCK.sub(lambda match: match[1] + made[match[2]] + match[4], before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"written: {page.relative_to(ROOT)}")
