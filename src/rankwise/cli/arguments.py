"""The arguments of every command."""

from __future__ import annotations

import argparse
import math

__all__ = ["ADD_ARGUMENTS", "READING", "SHELLS", "USUAL_COLUMNS"]

SCALINGS = (
    "auto", "none", "standard", "max-abs", "rank", "query-minmax", "query-standard", "query-rank",
    "standard+query-standard", "standard+query-rank",
)  # fmt: skip
METHODS = ("auto", "rls", "svm", "svm-squared", "logistic", "curves", "surfaces", "kernel")
PICTURES = (".png", ".svg", ".pdf")
SHELLS = ("bash", "zsh", "fish")
TARGETS = (
    "solr",
    "elasticsearch-ltr",
    "opensearch-ltr",
    "elasticsearch",
    "vespa",
    "onnx",
    "sqlite",
    "postgresql",
    "duckdb",
    "c",
    "javascript",
    "python",
    "json",
)
READING = "reading"  # the title of the options that every command reads data by
# What each option that names columns of a table stands for where neither the command nor a model names any.
USUAL_COLUMNS = {
    "label": "label",
    "qid": "qid",
    "features": None,
    "embedding": None,
    "item_id": "id",
    "winner": "winner",
    "loser": "loser",
    "magnitude": None,
    "weight": None,
    "id": None,
    "category": None,
    "words": None,
    "cross": None,
}


def _reading(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(READING)
    group.add_argument(
        "--format", choices=("auto", "text", "table", "store"), default="auto",
        help="svmlight/LETOR text, a table (Parquet, Arrow, Feather, CSV) or a store; by default told by the name",
    )  # fmt: skip
    group.add_argument(
        "--label", metavar="COLUMN", help="tables: the column of labels; by default the model's, or label"
    )
    group.add_argument(
        "--qid", metavar="COLUMN", help="tables: the column of query ids; by default the model's, or qid"
    )
    group.add_argument(
        "--features",
        metavar="A,B,...",
        help="tables: the columns to learn from; by default the model's, or all numbers",
    )
    group.add_argument(
        "--embedding",
        metavar="A,B,...",
        help="tables: columns whose entries are lists of numbers; alone, or beside --features",
    )
    group.add_argument(
        "--zero-based", choices=("auto", "yes", "no"), default="auto",
        help="text: whether columns count from 0 or from 1; by default as the model's did, or from 0 if there is a 0",
    )  # fmt: skip
    group.add_argument(
        "--columns",
        type=_positive,
        metavar="N",
        help="text: how many columns there are, where the last may not occur; by default as many as occur",
    )
    group.add_argument(
        "--longest-line",
        type=_positive,
        metavar="MB",
        help="text: how long a line may be, so that something that is no text is noticed (268)",
    )
    group.add_argument(
        "--missing", choices=("auto", "error", "nan", "zero"), default="auto",
        help="what NULL and NaN mean: an error, missing (to inspect and convert), or 0; by default, in tables to learn from, they are filled in and marked in a column, and elsewhere an error",
    )  # fmt: skip
    group.add_argument(
        "--items",
        metavar="FILE",
        help="a table of items; the data are then preferences: columns winner and loser",
    )
    group.add_argument("--item-id", metavar="COLUMN", help="the column of ids in --items (id)")
    for role, words in (
        ("winner", "ids of what won (winner)"),
        ("loser", "ids of what lost (loser)"),
        ("magnitude", "by how much it won, 0 for a tie (magnitude, if there)"),
    ):
        group.add_argument(f"--{role}", metavar="COLUMN", help=f"preferences: the column of {words}")
    group.add_argument(
        "--weight",
        metavar="COLUMN",
        help="tables: the column of weights of the rows, none by default; preferences: how much each counts (weight, "
        "if there)",
    )
    group.add_argument("--threads", type=_positive, metavar="N", help="threads to use; by default all")


def _clicks(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("clicks (the data are a log of results that were shown, with --items)")
    group.add_argument(
        "--clicks",
        choices=("above", "above_and_next", "all"),
        help="what a clicked result beats: what was passed by above it, also the next one below, or all of its list",
    )
    group.add_argument(
        "--click-columns",
        metavar="S,P,C,I",
        help="the columns of the session, the position, whether it was clicked, and the id of the item "
        "(session,position,clicked,item)",
    )
    group.add_argument(
        "--propensity",
        type=_not_negative,
        metavar="ETA",
        help="a position is looked at with probability position ** -ETA; clicks far down then weigh more",
    )
    group.add_argument(
        "--max-weight", type=_positive_number, metavar="W", help="larger weights are cut to this one"
    )


def _encoding(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("columns of tables that are not numbers")
    group.add_argument(
        "--id", metavar="A,B,...", help="columns that only name rows, and are not learned from"
    )
    group.add_argument(
        "--category",
        metavar="A,B,...",
        help="columns of numbers that are names, such as postcodes; text is by itself",
    )
    group.add_argument("--words", metavar="A,B,...", help="columns of text to read word by word (hashed)")
    group.add_argument(
        "--cross",
        metavar="A:B,...",
        help="also the product of two columns: price:country is the price in each country",
    )


def _choosing(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("choosing (everything is chosen by itself, unless you say)")
    group.add_argument(
        "--valid",
        action="append",
        metavar="FILE",
        help="rows to validate on; without, folds of the training data",
    )
    group.add_argument(
        "--metric",
        type=_metric,
        metavar="NAME",
        help="what to choose by, such as ndcg@10, map or pairwise_error",
    )
    group.add_argument(
        "--method",
        choices=METHODS,
        default="auto",
        help="least squares, hinge, squared hinge, logistic (for preferences), a curve for each column, also surfaces of two, or an RBF kernel",
    )
    group.add_argument(
        "--scaling",
        choices=SCALINGS,
        default="auto",
        help="how columns are scaled, all together or inside each query",
    )
    group.add_argument(
        "--alpha", type=_alpha, action="append", metavar="A", help="regularisation; repeat it for a grid"
    )
    group.add_argument(
        "--rule",
        choices=("best", "one-standard-error"),
        default="best",
        help="the best figure, or the simplest model that is not worse by more than its standard error",
    )
    group.add_argument(
        "--time",
        type=_seconds,
        metavar="60s",
        help="how long to try: begin nothing after so many seconds (60s, 5m, 1h), and keep the best so far",
    )
    group.add_argument(
        "--nested", action="store_true", help="also say what to expect of new data: outer folds that take no part in the choice; takes five times as long"
    )  # fmt: skip
    group.add_argument(
        "--query-weight",
        choices=("size", "pairs", "equal"),
        help="what the weight of a query is proportional to",
    )
    group.add_argument(
        "--ties",
        choices=("include", "exclude"),
        help="least squares, kernel: whether rows with equal labels are compared",
    )
    group.add_argument(
        "--cost",
        choices=("magnitude", "unit", "relative"),
        help="least squares, kernel: what a pair of labels asks for",
    )
    group.add_argument("--folds", type=_folds, metavar="N", help="how many folds judge, without --valid")
    group.add_argument(
        "--gamma", type=_gamma, action="append", metavar="G", help="kernel: its width; repeat it for a grid"
    )
    group.add_argument(
        "--basis", type=_positive, metavar="N", help="kernel: how many rows it is made of (500)"
    )
    group.add_argument(
        "--for",
        dest="serve",
        choices=TARGETS,
        help="try only what this target can run; see `rankwise export`",
    )
    group.add_argument("--seed", type=_seed, default=0, metavar="N", help="seeds folds (0)")


def _writing(parser: argparse.ArgumentParser, help_text: str, default: str | None = None) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", default=default, help=f"{help_text}; - is standard output"
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace a file that is already there")


def _json(parser: argparse.ArgumentParser, help_text: str = "print JSON for machines") -> None:
    parser.add_argument("--json", action="store_true", help=help_text)


def _model_and_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model file that `rankwise fit` wrote")
    parser.add_argument(
        "data", metavar="DATA", nargs="+", help="files of rows, read one after the other; - is standard input"
    )


def _fit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="TRAIN", nargs="+", help="training files; - is standard input")
    _writing(parser, "the model file")
    _json(parser)
    _choosing(parser)
    _reading(parser)
    _clicks(parser)
    _encoding(parser)


def _select(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="TRAIN", nargs="+", help="training files; - is standard input")
    parser.add_argument(
        "--plot",
        type=_picture,
        metavar="FILE",
        help="draw the surface into a .png, .svg or .pdf (needs matplotlib)",
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace a file that is already there")
    _json(parser)
    _choosing(parser)
    _reading(parser)
    _clicks(parser)
    _encoding(parser)


def _predict(parser: argparse.ArgumentParser) -> None:
    _model_and_data(parser)
    _writing(parser, "one score per line, or what its ending says (.tsv, .parquet, .run)", default="-")
    _json(parser, "print what was written, as JSON; needs -o")
    parser.add_argument(
        "--to",
        choices=("scores", "tsv", "parquet", "trec"),
        help="scores alone; or qid, item, rank and score as a table or as a TREC run",
    )
    parser.add_argument(
        "--ranks", action="store_true", help="write ranks inside each query instead of scores: 1 is best"
    )
    parser.add_argument(
        "--tag", default="rankwise", metavar="NAME", help="TREC: the name of the run (rankwise)"
    )
    parser.add_argument(
        "--stream",
        action="store_true",
        help="text: score block by block; by default where a file is too large for memory",
    )
    _reading(parser)


def _evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", nargs="?", help="a model file that `rankwise fit` wrote")
    parser.add_argument(
        "data", metavar="DATA", nargs="*", help="files of rows, read one after the other; - is standard input"
    )
    parser.add_argument(
        "--run", action="append", metavar="FILE", help="judge a run instead: TREC's, or a .tsv of predict"
    )
    parser.add_argument("--qrels", metavar="FILE", help="what is right, in TREC's lines, for --run")
    parser.add_argument(
        "--against", action="append", metavar="MODEL", help="compare with another model; may be repeated"
    )
    parser.add_argument(
        "--metrics",
        type=_metrics,
        action=_Joined,
        metavar="A,B,...",
        help="such as ndcg@10,map; by default all that fit the labels",
    )
    parser.add_argument(
        "--convention", choices=("letor3", "letor4"), help="count as the scripts of the LETOR benchmarks do"
    )
    parser.add_argument(
        "--per-query",
        metavar="FILE",
        help="write every query's figures as CSV; - is standard output, and the rest goes to standard error",
    )
    parser.add_argument(
        "--level", type=_level, default=0.95, metavar="P", help="confidence of the intervals (0.95)"
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace a file that is already there")
    _json(parser)
    _reading(parser)


def _report(parser: argparse.ArgumentParser) -> None:
    _model_and_data(parser)
    _writing(parser, "the page (report.html)", default="report.html")
    parser.add_argument(
        "--metrics",
        type=_metrics,
        action=_Joined,
        metavar="A,B,...",
        help="such as ndcg@10,map; the page leads with the first",
    )
    parser.add_argument("--title", metavar="TEXT")
    _reading(parser)


def _explain(parser: argparse.ArgumentParser) -> None:
    _model_and_data(parser)
    parser.add_argument("--query", metavar="ID", help="which query; by default the first")
    parser.add_argument("--top", type=_positive, default=3, metavar="N", help="explain the first N rows (3)")
    parser.add_argument(
        "--pair",
        nargs=2,
        metavar=("A", "B"),
        help="why A stands above B: ids of items, or numbers of rows from 0",
    )
    parser.add_argument(
        "--parts", type=_positive, default=12, metavar="N", help="columns that are told apart (12)"
    )
    _writing(parser, "a page in HTML instead of text")
    _json(parser)
    _reading(parser)


def _export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model file that `rankwise fit` wrote")
    parser.add_argument("--to", choices=TARGETS, default="json", help="what to write for; json by default")
    _writing(parser, "where to write", default="-")
    parser.add_argument(
        "--name", metavar="NAME", help="of the model, function, profile or column that is made"
    )
    parser.add_argument(
        "--feature-names",
        metavar="A,B,...",
        help="what the target calls the columns; by default as in training",
    )
    parser.add_argument("--table", default="rows", metavar="NAME", help="SQL: the table of rows (rows)")
    parser.add_argument(
        "--error",
        type=_positive_number,
        metavar="E",
        help="trees: by how much a score may differ from the model's",
    )
    parser.add_argument(
        "--bounds",
        type=_bounds,
        action="append",
        metavar="COLUMN=LOW:HIGH",
        help="what values a column can have, for trees and --nonnegative; may be repeated",
    )
    parser.add_argument(
        "--nonnegative", action="store_true", help="add a constant so that no score is negative"
    )
    parser.add_argument("--filled", action="store_true", help="values are never missing where the model runs")
    parser.add_argument(
        "--whole-query", action="store_true", help="ONNX: the model gets the rows of one query at a time"
    )
    parser.add_argument(
        "--sample",
        metavar="FILE",
        help="rows to see on how close single precision comes to changing an order",
    )
    _json(parser, "print what was written, as JSON; needs -o")
    _reading(parser)


def _convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "data", metavar="SOURCE", nargs="+", help="files to read, one after the other; - is standard input"
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="TARGET",
        required=True,
        help="its ending says what to write; - is text on standard output",
    )
    parser.add_argument(
        "--to", choices=("text", "table", "store"), help="what to write, where the ending does not say it"
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace what is already there")
    parser.add_argument(
        "--regroup", action="store_true", help="stores: bring rows of a query together that do not stand so"
    )
    _json(parser, "print what was written, as JSON")
    _reading(parser)


def _inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", metavar="FILE", nargs="+", help="a model file, or files of rows")
    _json(parser)
    _reading(parser)
    _encoding(parser)


def _demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="FOLDER",
        help="write made-up searches as train.txt, vali.txt and test.txt, and stop; without, a page stays here",
    )
    parser.add_argument("-f", "--force", action="store_true", help="replace files that are already there")
    _json(parser, "print what was written, as JSON; needs -o")


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


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


def _positive_number(text: str) -> float:
    value = _number(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return value


def _not_negative(text: str) -> float:
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 up")
    return value


def _bounds(text: str) -> tuple[str, tuple[float, float]]:
    name, equals, ends = text.rpartition("=")
    low, colon, high = ends.partition(":")
    if not equals or not colon or not name:
        raise argparse.ArgumentTypeError(f"{text} is not COLUMN=LOW:HIGH, such as price=0:100")
    return name, (_number(low), _number(high))


def _alpha(text: str) -> float:
    value = _number(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 up")
    return value


def _seconds(text: str) -> float:
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    factor = units.get(text[-1:].lower())
    try:
        value = float(text[:-1]) * factor if factor else float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no time, such as 60s, 5m or 1h")
    return value


def _gamma(text: str) -> float | str:
    return text if text in {"scale", "auto"} else _positive_number(text)


def _folds(text: str) -> int:
    value = _positive(text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"{text} is not a number of folds, from 2 up")
    return value


def _level(text: str) -> float:
    value = _number(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1, such as 0.95")
    return value


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 0 up, below 2^32")
    return int(text)


def _picture(text: str) -> str:
    if not text.lower().endswith(PICTURES):
        raise argparse.ArgumentTypeError(f"{text} does not end in one of {', '.join(PICTURES)}")
    return text


def _metric(text: str) -> str:
    from rankwise.exceptions import InvalidInputError  # noqa: PLC0415 - the parser itself imports nothing
    from rankwise.metrics import get_metric  # noqa: PLC0415

    name = text.strip().lower()  # papers write NDCG@10
    try:
        get_metric(name)
    except InvalidInputError as error:
        raise argparse.ArgumentTypeError(f"{error.problem} {error.hint[0].upper()}{error.hint[1:]}") from None
    return name


def _metrics(text: str) -> str:
    return ",".join(map(_metric, text.split(",")))


class _Joined(argparse.Action):
    """A list that goes on where the option is repeated."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        options: argparse.Namespace,
        values: object,
        option: object = None,
    ) -> None:
        before = getattr(options, self.dest)
        setattr(options, self.dest, values if before is None else f"{before},{values}")


ADD_ARGUMENTS = {
    "fit": _fit,
    "select": _select,
    "predict": _predict,
    "evaluate": _evaluate,
    "report": _report,
    "explain": _explain,
    "export": _export,
    "convert": _convert,
    "inspect": _inspect,
    "demo": _demo,
    "completion": _completion,
}
