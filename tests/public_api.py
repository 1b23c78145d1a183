"""Every public name with its signature, and every option of the command line, as lines of text; a test compares them.

    python tests/public_api.py

writes them to `tests/public_api.txt`, so that everything that comes, goes or changes is a line of a diff.
"""

import argparse
import inspect
import re
import sys
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from rankwise.cli import main

FILE = Path(__file__).with_suffix(".txt")
PAGE = Path(__file__).parents[1] / "docs" / "api.md"


def public_names():
    """Yield the full names that the reference lists."""
    module = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"\.\. currentmodule:: ([\w.]+)", line):
            module = found[1]
        elif found := re.fullmatch(r"   ([A-Za-z_][\w.]*)", line):
            yield f"{module}.{found[1]}"


def signature(function):
    """Return names, kinds and defaults of parameters, without types; keyword-only ones in alphabetical order."""
    found = inspect.signature(function)
    bare = [one.replace(annotation=one.empty) for one in found.parameters.values() if one.name != "self"]
    bare.sort(key=lambda one: (one.kind, one.name if one.kind is one.KEYWORD_ONLY else ""))
    return str(found.replace(parameters=bare, return_annotation=found.empty))


def attributes(cls):
    """Return the attributes that a class documents."""
    found = re.search(r"Attributes\n-+\n(.*?)(\n\n\w|\Z)", inspect.getdoc(cls) or "", re.DOTALL)
    lines = re.findall(r"^(\w[\w, ]*?)(?: :.*)?$", found[1], re.MULTILINE) if found else []
    return sorted({name for line in lines for name in line.split(", ")})


def is_ours(member):
    return getattr(member, "__module__", "").partition(".")[0] == "rankwise"


def lines_of(name):
    """Yield a line for a function; for a class also one for each method and attribute of ours."""
    module, _, last = name.rpartition(".")
    public = getattr(import_module(module), last)
    if not callable(public) or (inspect.isclass(public) and issubclass(public, Exception)):
        yield name
        return
    yield f"{name}{signature(public)}"
    if not inspect.isclass(public):
        return
    for method, member in inspect.getmembers(public):
        if method.startswith("_"):
            continue
        if callable(member) and is_ours(member):
            yield f"{name}.{method}{signature(member)}"
        elif not callable(member) and hasattr(member, "__get__"):  # properties, cached or not
            yield f"{name}.{method}"
    yield from (f"{name}.{attribute}" for attribute in attributes(public) if not hasattr(public, attribute))


def parser_of(command):
    """Return the parser that prints the help of a command."""
    with patch.object(argparse.ArgumentParser, "print_help", autospec=True) as shown, suppress(SystemExit):
        main([command, "--help"])
    return shown.call_args.args[0]


def commands():
    """Return the commands that the help lists."""
    text = StringIO()
    with redirect_stdout(text), suppress(SystemExit):
        main(["--help"])
    return re.findall(r"^ {2,4}([a-z]+) {2,}\S", text.getvalue(), re.MULTILINE)


def options_of(command):
    """Yield a line for every argument of a command."""
    for action in parser_of(command)._actions:
        name = "/".join(action.option_strings) or action.metavar or action.dest
        choices = f" {{{','.join(map(str, action.choices))}}}" if action.choices else ""
        is_plain = action.nargs == 0 or choices or not action.option_strings
        takes = "" if is_plain else f" {action.metavar or action.dest.upper()}"
        yield f"rankwise {command} {name}{takes}{choices}"


def public_api():
    """Return all lines in alphabetical order."""
    names = {line for name in public_names() for line in lines_of(name)}
    options = {line for command in commands() for line in options_of(command)}
    return [*sorted(names), *sorted(options)]


if __name__ == "__main__":
    lines = public_api()
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(lines)} lines\n")
