"""The arguments of every command, their help with examples, and what a typo probably meant."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import rankwise
from rankwise.cli.argument_groups import READING, USUAL_COLUMNS
from rankwise.cli.arguments import ADD_ARGUMENTS
from rankwise.exceptions import visible

__all__ = ["COMMANDS", "build_parser", "parse"]


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are short and suggest what was probably meant."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action, f"{value} is not one of {', '.join(known)}{_suggest(str(value), known)}"
            )

    def format_help(self) -> str:
        """Say what matters first: examples, then options; of those that every command reads data by, the usual ones."""
        formatter = self._get_formatter()
        positionals = "".join(
            f" {formatter._format_args(action, action.dest)}"  # noqa: SLF001 - argparse has no other way
            for action in self._get_positional_actions()
        )
        formatter.add_text(f"usage: {self.prog} [options]{positionals}")
        formatter.add_text(self.description)
        formatter.add_text(self.epilog)
        for group in self._action_groups:
            _add_group(formatter, group, only=_USUAL if group.title == READING else None)
        return formatter.format_help()

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments, and exit with 2."""
        hint = f"see `{self.prog} --help`."
        missing = message.removeprefix("the following arguments are required: ").split(", ")[0]
        if missing in _QUESTIONS:
            message = f"Missing {missing.partition('/')[0]}: {_QUESTIONS[missing]}"
            hint = f"for example `{str(self.epilog).splitlines()[1].strip()}`."
        elif message.endswith(": expected one argument"):
            message = f"{message.removeprefix('argument ').partition(':')[0]} needs a value after it."
        sys.stderr.write(f"rankwise: error: {visible(message)}\nHint: {hint}\n")
        sys.exit(2)


# What is asked where something is missing that a command cannot do without.
_QUESTIONS = {
    "TRAIN": "which files hold the rows to learn from?",
    "MODEL": "which model file?",
    "DATA": "which files hold the rows?",
    "SOURCE": "which files are to be converted?",
    "FILE": "which file?",
    "-o/--output": "where should it be written?",
}


# Of the options by which every command reads data, those that its help shows.
_USUAL = frozenset({"--label", "--qid", "--features", "--items", "--weight", "--threads"})


def _add_group(
    formatter: argparse.HelpFormatter, group: argparse._ArgumentGroup, only: frozenset[str] | None = None
) -> None:
    actions = [
        action
        for action in group._group_actions  # noqa: SLF001
        if only is None or not only.isdisjoint(action.option_strings)
    ]
    formatter.start_section(group.title)
    formatter.add_arguments(actions)
    if len(actions) < len(group._group_actions):  # noqa: SLF001
        formatter.add_text(f"and {len(group._group_actions) - len(actions)} more: `rankwise help {READING}`")  # noqa: SLF001
    formatter.end_section()


# How alike two words must be, from 0 to 1, for one to be taken as a typo of the other.
_ALIKE = 0.6
# What options and their values are called elsewhere.
_ALIASES = {
    "target": "--label",
    "group": "--qid",
    "query-id": "--qid",
    "ranksvm": "svm",
    "hinge": "svm",
    "squared-hinge": "svm-squared",
    "rankrls": "rls",
    "least-squares": "rls",
    "rbf": "kernel",
    "additive": "curves",
    "gam": "curves",
    "minmax": "query-minmax",
    "rank": "query-rank",
    "csv": "table",
    "parquet": "table",
    "svmlight": "text",
    "letor": "text",
}


def _suggest(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - needed only for a typo

    bare = {name.lstrip("-"): name for name in known}  # dashes are alike in all options
    bare.update({alias: name for alias, name in _ALIASES.items() if name in known})
    close = get_close_matches(word.lstrip("-").lower(), bare, n=1, cutoff=_ALIKE)
    return f"; did you mean {bare[close[0]]}?" if close else ""


def _explain(word: str, command: str, known: Sequence[str]) -> str:
    """Say what an option that a command does not have probably means."""
    suggestion = _suggest(word, known)
    if suggestion:
        return suggestion
    others = [other for other in COMMANDS if other != command and word in _options_of(build_parser(other))]
    return f" of `{command}`, but of {', '.join(f'`{other}`' for other in others)}" if others else ""


def _options_of(parser: argparse.ArgumentParser) -> list[str]:
    return [name for action in parser._actions for name in action.option_strings]  # noqa: SLF001 - the only way


# Name: what it does in a line, and examples.
COMMANDS: dict[str, tuple[str, str]] = {
    "fit": (
        "choose and train a model, and save it",
        (
            "  rankwise fit train.txt --valid vali.txt -o model.rw\n"
            "  rankwise fit part1.txt.gz part2.txt.gz --metric map -o model.rw\n"
            "  rankwise fit train.parquet --label grade --qid search -o model.rw\n"
            "  rankwise fit duels.csv --items items.csv -o model.rw\n"
            "  rankwise fit train.txt --for solr -o model.rw"
        ),
    ),
    "select": (
        "show what fit would choose from, and how it would score",
        (
            "  rankwise select train.txt --valid vali.txt\n"
            "  rankwise select train.txt --method rls --scaling standard --plot surface.png"
        ),
    ),
    "predict": (
        "score rows: plain scores, a table, or a TREC run",
        (
            "  rankwise predict model.rw test.txt -o scores.txt\n"
            "  rankwise predict model.rw test.txt -o ranked.run\n"
            "  rankwise predict model.rw items.parquet --item-id sku -o ranked.tsv\n"
            "  zcat test.txt.gz | rankwise predict model.rw - > scores.txt"
        ),
    ),
    "evaluate": (
        "evaluate a model by every metric, with intervals; compare models",
        (
            "  rankwise evaluate model.rw test.txt\n"
            "  rankwise evaluate model.rw test.txt --against old.rw --metrics ndcg@10,map\n"
            "  rankwise evaluate model.rw test.txt --per-query queries.csv --json\n"
            "  rankwise evaluate --qrels judged.txt --run ranked.run --run theirs.run"
        ),
    ),
    "report": (
        "write one HTML page about a model",
        (
            "  rankwise report model.rw test.txt -o report.html\n"
            "  rankwise report model.rw test.txt --against old.rw"
        ),
    ),
    "explain": (
        "say what each column adds to a score, or to a difference",
        (
            "  rankwise explain model.rw test.txt --query 7\n"
            "  rankwise explain model.rw items.csv --query shoes --pair B17 B42 -o why.html"
        ),
    ),
    "export": (
        "write a model for other programs",
        (
            "  rankwise export model.rw -o weights.json\n"
            "  rankwise export model.rw --to solr --name mine -o model.json\n"
            "  rankwise export model.rw --to postgresql --table items -o score.sql\n"
            "  rankwise export model.rw --to onnx -o model.onnx"
        ),
    ),
    "convert": (
        "turn text, tables and stores into each other",
        ("  rankwise convert train.txt -o train.parquet\n  rankwise convert train.parquet -o train.txt.gz"),
    ),
    "inspect": (
        "look at a data file or a model, and at its problems",
        "  rankwise inspect train.txt\n  rankwise inspect model.rw",
    ),
    "demo": (
        "see everything work on made-up searches",
        "  rankwise demo\n  rankwise demo -o data",
    ),
    "completion": (
        "print a script that completes commands and options in your shell",
        (
            '  eval "$(rankwise completion bash)"       # in ~/.bashrc\n'
            "  rankwise completion zsh > ~/.zfunc/_rankwise\n"
            "  rankwise completion fish > ~/.config/fish/completions/rankwise.fish"
        ),
    ),
}


def build_parser(command: str) -> argparse.ArgumentParser:
    """Build the parser of one command."""
    summary, examples = COMMANDS[command]
    parser = _Parser(
        prog=f"rankwise {command}",
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"examples:\n{examples}",
    )
    ADD_ARGUMENTS[command](parser)
    return parser


def parse(arguments: list[str]) -> argparse.Namespace:
    """Turn arguments into options; a mistake exits with 2, and help with 0."""
    if len(arguments) == 2 and arguments[0] == "help":
        topic = arguments[1]
        if topic in _TOPICS:
            sys.stdout.write(_TOPICS[topic]())
            sys.stdout.flush()
            sys.exit(0)
        if topic not in COMMANDS:
            known = [*COMMANDS, *_TOPICS]
            _Parser(prog="rankwise").error(f"there is no help on {topic}{_suggest(topic, known)}")
        arguments = [topic, "--help"]
    if not arguments or arguments[0] in {"-h", "--help", "help"}:
        sys.stdout.write(_overview())
        sys.stdout.flush()
        sys.exit(0 if arguments else 2)
    if arguments[0] == "--version":
        sys.stdout.write(f"rankwise {rankwise.__version__}\n")
        sys.exit(0)
    command, rest = arguments[0], arguments[1:]
    if command not in COMMANDS:
        kind = "an option" if command.startswith("-") else "a command"
        known = ["--version", "--help"] if command.startswith("-") else list(COMMANDS)
        _Parser(prog="rankwise").error(f"{command} is not {kind}{_suggest(command, known)}")
    parser = build_parser(command)
    known = _options_of(parser)
    for argument in rest:
        word = argument.partition("=")[0]
        # Before anything else that may be wrong: a typo explains the rest.
        if word.startswith("--") and word not in {"--", *known}:
            parser.error(f"{word} is not an option{_explain(word, command, known)}")
    options = parser.parse_args(rest)
    options.command = command
    _fill_in_columns(options)
    options.line = shlex.join(["rankwise", *arguments])
    return options


def _fill_in_columns(options: argparse.Namespace) -> None:
    """Give columns their usual names, and keep which were named: a model may know others that were not."""
    roles = [role for role in USUAL_COLUMNS if hasattr(options, role)]
    options.given = frozenset(role for role in roles if getattr(options, role) is not None)
    for role in roles:
        if role not in options.given:
            setattr(options, role, USUAL_COLUMNS[role])
    # Missing values may be filled in where something is learned from a table; whatever reads rows itself refuses them.
    options.fills_missing = getattr(options, "missing", None) == "auto"
    options.keeps_table = False
    named = [getattr(options, name, None) for name in ("category", "words")]
    options.texts = [one.strip() for names in named if names for one in names.split(",")]
    if options.fills_missing:
        options.missing = "error"


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name.ljust(width)}  {summary}" for name, (summary, _) in COMMANDS.items()]
    return (
        "usage: rankwise COMMAND ...\n\nLearn to rank: from files to a chosen, evaluated, saved model.\n\n"
        "commands:\n" + "\n".join(lines) + "\n\nexamples:\n"
        "  rankwise demo -o data                   # made-up searches to try this on\n"
        "  rankwise fit data/train.txt --valid data/vali.txt -o model.rw\n"
        "  rankwise evaluate model.rw data/test.txt\n"
        "  rankwise report model.rw data/test.txt -o report.html\n\n"
        "`rankwise COMMAND --help` shows examples and options, `rankwise help reading`\n"
        "the options that all commands read data by, `rankwise help metrics` the metrics.\n"
    )


def _reading() -> str:
    """Return the help of the options that every command reads data by."""
    parser = build_parser("evaluate")
    formatter = parser._get_formatter()  # noqa: SLF001
    formatter.add_text("Options by which every command reads data.")
    for group in parser._action_groups:  # noqa: SLF001
        if group.title == READING:
            _add_group(formatter, group)
    return formatter.format_help()


def _metrics() -> str:
    """Return every metric with what it counts."""
    from shutil import get_terminal_size  # noqa: PLC0415 - only here
    from textwrap import fill  # noqa: PLC0415

    from rankwise.metrics import METRICS  # noqa: PLC0415 - imports numpy

    width = min(get_terminal_size().columns - 2, 110)
    indent = " " * (4 + max(map(len, METRICS)))
    lines = [
        fill(f"  {name.ljust(len(indent) - 4)}  {metric.describe()}", width, subsequent_indent=indent)
        for name, metric in METRICS.items()
    ]
    return (
        "Metrics, for --metric and --metrics; those of the top take a cutoff: ndcg@10.\n\n"
        + "\n".join(lines)
        + "\n"
    )


_TOPICS = {"reading": _reading, "metrics": _metrics}
