"""The arguments of every command, their help with examples, and what a typo probably meant."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import rankwise

__all__ = ["COMMANDS", "build_parser", "parse"]

SCALINGS = ("auto", "none", "standard", "max-abs", "query-min-max", "query-standard", "query-rank")
METHODS = ("auto", "rls", "svm", "svm-squared", "kernel")
SHELLS = ("bash", "zsh", "fish")


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are short and suggest what was probably meant."""

    def __init__(self, **options: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options
        )

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments, and exit with 2."""
        sys.stderr.write(f"rankwise: error: {message}\nHint: see `{self.prog} --help`.\n")
        sys.exit(2)


def _suggest(word: str, known: Sequence[str]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - needed only for a typo

    close = get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]}?" if close else ""


def _reading(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("reading")
    group.add_argument(
        "--format", choices=("auto", "text", "table", "store"), default="auto",
        help="svmlight/LETOR text, a table (Parquet, Arrow, Feather, CSV) or a store; by default told by the name",
    )  # fmt: skip
    group.add_argument("--label", default="label", metavar="COLUMN", help="tables: the column of labels (label)")
    group.add_argument("--qid", default="qid", metavar="COLUMN", help="tables: the column of query ids (qid)")
    group.add_argument("--features", metavar="A,B,...", help="tables: the columns to learn from; by default all numbers")
    group.add_argument(
        "--missing", choices=("error", "nan", "zero"), default="error",
        help="what NULL and NaN mean: an error, missing, or 0",
    )  # fmt: skip
    group.add_argument(
        "--items", metavar="FILE", help="a table of items; the data are then preferences: columns winner and loser"
    )
    group.add_argument("--item-id", default="id", metavar="COLUMN", help="the column of ids in --items (id)")
    group.add_argument("--threads", type=_positive, metavar="N", help="threads to use; by default all")


def _choosing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("choosing (everything is chosen by itself, unless you say)")
    group.add_argument("--valid", action="append", metavar="FILE", help="rows that judge; without, folds of the training data")
    group.add_argument("--metric", metavar="NAME", help="what to judge by, such as ndcg@10, map or pairwise_error")
    group.add_argument("--method", choices=METHODS, default="auto", help="least squares, hinge, squared hinge, or an RBF kernel")
    group.add_argument("--scaling", choices=SCALINGS, default="auto", help="how columns are scaled, all together or inside each query")
    group.add_argument("--alpha", type=_number, action="append", metavar="A", help="regularisation; repeat it for a grid")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="seeds folds (0)")


def _writing(parser: argparse.ArgumentParser, help_text: str, default: str | None = None) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", default=default, help=f"{help_text}; - is standard output")
    parser.add_argument("-f", "--force", action="store_true", help="replace a file that is already there")


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for machines")


def _model_and_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model file that `rankwise fit` wrote")
    parser.add_argument("data", metavar="DATA", nargs="+", help="files of rows, read one after the other; - is standard input")


def _fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="TRAIN", nargs="+", help="training files; - is standard input")
    _writing(parser, "the model file")
    _json(parser)
    _choosing(parser)
    _reading(parser)


def _select(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="TRAIN", nargs="+", help="training files; - is standard input")
    parser.add_argument("--plot", metavar="FILE", help="draw the surface into a .png, .svg or .pdf (needs matplotlib)")
    parser.add_argument("-f", "--force", action="store_true", help="replace a file that is already there")
    _json(parser)
    _choosing(parser)
    _reading(parser)


def _predict(parser: argparse.ArgumentParser) -> None:
    _model_and_data(parser)
    _writing(parser, "one score a line", default="-")
    parser.add_argument("--ranks", action="store_true", help="write ranks inside each query instead: 1 is best")
    _reading(parser)


def _evaluate(parser: argparse.ArgumentParser) -> None:
    _model_and_data(parser)
    parser.add_argument("--against", action="append", metavar="MODEL", help="compare with another model; may be repeated")
    parser.add_argument("--metrics", metavar="A,B,...", help="such as ndcg@10,map; by default all that fit the labels")
    parser.add_argument("--convention", choices=("letor3", "letor4"), help="count as the scripts of the LETOR benchmarks do")
    parser.add_argument("--per-query", metavar="FILE", help="write every query's figures as CSV; - is standard output")
    parser.add_argument("--level", type=_number, default=0.95, metavar="P", help="confidence of the intervals (0.95)")
    parser.add_argument("-f", "--force", action="store_true", help="replace a file that is already there")
    _json(parser)
    _reading(parser)


def _report(parser: argparse.ArgumentParser) -> None:
    _model_and_data(parser)
    _writing(parser, "the page (report.html)", default="report.html")
    parser.add_argument("--metrics", metavar="A,B,...", help="such as ndcg@10,map; the page leads with the first")
    parser.add_argument("--title", metavar="TEXT")
    _reading(parser)


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model file that `rankwise fit` wrote")
    parser.add_argument("--to", choices=("json",), default="json", help="json: the weights of a linear model")
    _writing(parser, "where to write", default="-")


def _convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="SOURCE", nargs="+", help="files to read, one after the other; - is standard input")
    parser.add_argument("-o", "--output", metavar="TARGET", required=True, help="its ending says what to write; - is text on standard output")
    parser.add_argument("-f", "--force", action="store_true", help="replace what is already there")
    _reading(parser)


def _inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="FILE", nargs="+", help="a model file, or files of rows")
    _json(parser)
    _reading(parser)


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FOLDER", help="write made-up searches as train.txt, vali.txt and test.txt, and stop")
    parser.add_argument("-f", "--force", action="store_true", help="replace files that are already there")


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


# Name: what it does in a line, its arguments, its examples.
COMMANDS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None], str]] = {
    "fit": (
        "choose and train a model, and save it",
        _fit,
        "  rankwise fit train.txt --valid vali.txt -o model.rw\n"
        "  rankwise fit part1.txt.gz part2.txt.gz --metric map -o model.rw\n"
        "  rankwise fit train.parquet --label grade --qid search -o model.rw\n"
        "  rankwise fit duels.csv --items items.csv -o model.rw",
    ),
    "select": (
        "show what fit would choose from: scalings, methods, and the surface of alphas and iterations",
        _select,
        "  rankwise select train.txt --valid vali.txt\n"
        "  rankwise select train.txt --method rls --scaling standard --plot surface.png",
    ),
    "predict": (
        "score rows: one score a line",
        _predict,
        "  rankwise predict model.rw test.txt -o scores.txt\n"
        "  zcat test.txt.gz | rankwise predict model.rw - > scores.txt",
    ),
    "evaluate": (
        "judge a model by every metric, with intervals; compare models",
        _evaluate,
        "  rankwise evaluate model.rw test.txt\n"
        "  rankwise evaluate model.rw test.txt --against old.rw --metrics ndcg@10,map\n"
        "  rankwise evaluate model.rw test.txt --per-query queries.csv --json",
    ),
    "report": (
        "write one HTML page about a model",
        _report,
        "  rankwise report model.rw test.txt -o report.html",
    ),
    "export": (
        "write a model for other programs",
        _export,
        "  rankwise export model.rw -o weights.json",
    ),
    "convert": (
        "turn text, tables and stores into each other",
        _convert,
        "  rankwise convert train.txt -o train.parquet\n"
        "  rankwise convert train.parquet -o train.txt.gz",
    ),
    "inspect": (
        "look at a data file or a model: rows, queries, labels, pairs, problems",
        _inspect,
        "  rankwise inspect train.txt\n  rankwise inspect model.rw",
    ),
    "demo": (
        "see everything work on made-up searches",
        _demo,
        "  rankwise demo\n  rankwise demo -o data",
    ),
    "completion": (
        "print a script that completes commands and options in your shell",
        _completion,
        '  eval "$(rankwise completion bash)"       # in ~/.bashrc\n'
        "  rankwise completion zsh > ~/.zfunc/_rankwise\n"
        "  rankwise completion fish > ~/.config/fish/completions/rankwise.fish",
    ),
}  # fmt: skip


def build_parser(command: str) -> argparse.ArgumentParser:
    """Build the parser of one command."""
    summary, add_arguments, examples = COMMANDS[command]
    parser = _Parser(
        prog=f"rankwise {command}",
        description=summary[0].upper() + summary[1:] + ".",
        epilog=f"examples:\n{examples}",
    )
    add_arguments(parser)
    return parser


def parse(arguments: list[str]) -> argparse.Namespace:
    """Turn arguments into options; a mistake exits with 2, and help with 0."""
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
        _Parser(prog="rankwise").error(f"{command} is not {kind}{_suggest(command, list(COMMANDS))}")
    parser = build_parser(command)
    options, unknown = parser.parse_known_args(rest)
    if unknown:
        known = [name for action in parser._actions for name in action.option_strings]  # noqa: SLF001
        word = unknown[0].partition("=")[0]
        parser.error(f"{unknown[0]} is not an option{_suggest(word, known)}")
    options.command = command
    return options


def _overview() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name.ljust(width)}  {summary}" for name, (summary, _, _) in COMMANDS.items()]
    return (
        "usage: rankwise COMMAND ...\n\nLearn to rank: from files to a chosen, evaluated, saved model.\n\n"
        "commands:\n" + "\n".join(lines) + "\n\nexamples:\n"
        "  rankwise demo -o data                                        # made-up searches to try this on\n"
        "  rankwise fit data/train.txt --valid data/vali.txt -o model.rw\n"
        "  rankwise evaluate model.rw data/test.txt\n"
        "  rankwise report model.rw data/test.txt -o report.html\n\n"
        "`rankwise COMMAND --help` shows options and examples; `rankwise --version` the version.\n"
    )


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive whole number")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a number") from None
