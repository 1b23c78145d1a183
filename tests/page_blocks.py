"""The code on the pages of docs/, run as a reader would run it: in order, and with what it prints compared.

A block of Python may be followed by a block ``text``, which is what it prints; a block ``console`` has commands
behind ``$`` and what they print below. ``...`` stands for anything. What a page needs and does not show is a
comment ``<!-- setup``; ``<!-- needs lightgbm -->`` stands before a block that needs that package. After a change of
models, ``python tests/page_blocks.py docs/tutorial.md`` writes what Python prints now into the blocks ``text`` that
have no ``...``: read what it changed.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rankwise.cli import main

DOCS = Path(__file__).parents[1] / "docs"
_FENCE = re.compile(
    r"^(?:<!-- needs (?P<needs>\w+) -->\n+)?"
    r"```(?P<kind>python|text|console)\n(?P<code>.*?)^```$|^<!-- setup\n(?P<setup>.*?)^-->$",
    re.MULTILINE | re.DOTALL,
)
_NOT_RUN = {"pip", "make", "source"}  # what installs


@dataclass
class Block:
    """One block of a page: the package that it needs, and its output (None if the page shows none) with its place."""

    kind: str
    code: str
    line: int
    output: str | None = None
    needs: str | None = None
    place: tuple[int, int] | None = None


def read_blocks(page):
    """Return the blocks of a page, each with the output that follows it."""
    text = page.read_text(encoding="utf-8")
    blocks, end = [], 0
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        if match["kind"] == "text":
            between = text[end : match.start()].strip()
            if blocks and blocks[-1].kind == "python" and not between:
                blocks[-1].output, blocks[-1].place = match["code"], match.span("code")
        elif match["kind"] == "console":
            blocks += [
                Block("console", command, line, output) for command, output in _commands(match["code"])
            ]
        else:
            blocks.append(Block("python", match["setup"] or match["code"], line, needs=match["needs"]))
        end = match.end()
    return blocks


def _commands(code):
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output if output.strip() else None


def run_page(page, namespace, *, others):
    """Run the blocks of a page, and those that need one of the packages in `others`.

    Return the blocks that say something else than they print, and what they print.
    """
    differing = []
    for block in read_blocks(page):
        if block.needs and block.needs not in others:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if block.kind == "console":
                _run_command(block)
            else:
                # Line numbers of the page in tracebacks.
                exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)
        got = printed.getvalue()
        if block.output is not None and not _agree(block.output, got):
            differing.append((block, got))
    return differing


def rewrite(page, differing):
    """Have a page say what its blocks of Python print."""
    text = page.read_text(encoding="utf-8")
    for block, got in reversed(differing):  # from the end, so that places stay what they are
        if block.place and "..." not in block.output:
            text = (
                text[: block.place[0]] + re.sub(r" +$", "", got, flags=re.MULTILINE) + text[block.place[1] :]
            )
    page.write_text(text, encoding="utf-8")


def _run_command(block):
    program, *arguments = shlex.split(block.code, comments=True)
    if program in _NOT_RUN:
        return
    assert program == "rankwise", block.code
    code = main(arguments)
    assert code == 0, f"{block.code} ended with {code}"


def _agree(wanted, got):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(wanted, got, flags)


if __name__ == "__main__":
    for name in map(Path, sys.argv[1:]):
        page = name.resolve()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            needed = {block.needs for block in read_blocks(page)} - {None}
            rewrite(page, run_page(page, {}, others={name for name in needed if find_spec(name)}))
