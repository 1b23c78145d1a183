"""Files, streams and command lines that are damaged at random: a right answer, or an error that ends in a remedy.

Shared by the tests and by ``fuzz/mutations.py``, which makes millions.
"""

import contextlib
import functools
import gzip
import io
import random
import re
import tempfile
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import scipy.sparse

import model_changes
import rankwise
from byte_changes import ODD, mutate, overwrite, replace_cell
from rankwise.cli import main
from rankwise.cli.entry import COMMANDS, build_parser
from rankwise.data import (
    iter_svmlight,
    iter_table,
    load_preferences,
    load_svmlight,
    load_table,
    open_store,
    save_store,
    save_svmlight,
)
from rankwise.data.tables import open_tables
from rankwise.design import as_design
from rankwise.exceptions import ModelFileError, RankwiseError


def _write_stream(table, stream):
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)


def _csv_of(table):
    return table.to_pandas().to_csv(index=False).encode()


_WRITERS = {
    ".parquet": pq.write_table,
    ".feather": lambda table, stream: pyarrow.feather.write_feather(
        table, stream, compression="uncompressed"
    ),
    ".arrows": _write_stream,
    ".csv": lambda table, stream: stream.write(_csv_of(table)),
    ".csv.gz": lambda table, stream: stream.write(gzip.compress(_csv_of(table), 1, mtime=0)),
}


def _odd_columns(n):
    """Return columns of types that tables have, and that are read or refused."""
    whole = range(n)
    texts = [f"q{at // 4}" for at in whole]
    lists = [[0.5, float(at)] for at in whole]
    return {
        "float32": pa.array(np.linspace(-1, 1, n, dtype=np.float32)),
        "float16": pa.array(np.linspace(-1, 1, n, dtype=np.float16)),
        "uint64": pa.array(np.array([2**64 - 1, *range(1, n)], dtype=np.uint64)),
        "int8": pa.array(np.arange(n, dtype=np.int8)),
        "huge": pa.array([2**53 + at for at in whole]),
        "nulls": pa.array([None] * n, type=pa.float64()),
        "none": pa.nulls(n),
        "some": pa.array([None, *[1.0] * (n - 1)]),
        "nan": pa.array([float("nan"), float("inf"), *[1.0] * (n - 2)]),
        "flag": pa.array([at % 2 == 0 for at in whole]),
        "text": pa.array(texts),
        "large text": pa.array(texts, type=pa.large_string()),
        "coded": pa.array(texts).dictionary_encode(),
        "coded numbers": pa.array([at // 4 for at in whole]).dictionary_encode(),
        "bytes": pa.array([b"\xff\0" * at for at in whole]),
        "decimal": pa.array([Decimal(f"{at}.5") for at in whole]),
        "time": pa.array(whole, type=pa.timestamp("s", tz="UTC")),
        "date": pa.array(whole, type=pa.date32()),
        "lists": pa.array(lists),
        "uneven": pa.array([[1.0] * (at % 3) for at in whole]),
        "of nulls": pa.array([[None, 1.0], None, *lists[2:]]),
        "fixed": pa.array(lists, type=pa.list_(pa.float32(), 2)),
        "places": pa.array([[at % 3, 3 + at % 2] for at in whole]),
        "deep": pa.array([[own] for own in lists]),
        "parts": pa.array([{"x": at} for at in whole]),
    }


def _columns(n, rng):
    """Yield tables of the kinds that are read, and the endings that can hold them; then odd ones."""
    numbers = np.random.default_rng(0)
    columns = {
        "label": numbers.integers(0, 3, n),
        "qid": np.arange(n) // 4,
        "a": numbers.normal(size=n),
        "b": numbers.integers(0, 9, n),
    }
    yield columns, tuple(_WRITERS)
    texts = {"qid": [f"q{at // 4}" for at in range(n)], "a": pa.array([None, *[1.0] * (n - 1)])}
    yield {**columns, **texts}, (".parquet", ".feather", ".csv")
    kinds = {
        "qid": pa.array(texts["qid"]).dictionary_encode(),
        "a": pa.array(columns["b"] > 4),
        "c": pa.array([Decimal(f"{at}.5") for at in range(n)]),
        "d": pa.array(range(n), type=pa.timestamp("s")),
    }
    yield {**columns, **kinds}, (".parquet", ".feather")
    lists = [numbers.normal(size=2).tolist() for _ in range(n)]
    yield {"label": columns["label"], "qid": columns["qid"], "e": lists}, (".parquet", ".feather")
    places = [[at % 3, 3 + at % 2] for at in range(n)]
    yield {"label": columns["label"], "indices": places, "values": lists}, (".parquet", ".feather", ".arrows")
    odd = _odd_columns(n)
    for _ in range(60):
        chosen = {
            name: odd[rng.choice(list(odd))] for name in rng.sample(("a", "b", "c", "d"), rng.randrange(3))
        }
        for name in ("label", "qid", *rng.choice(((), (), ("indices", "values")))):
            chosen[name] = odd[rng.choice(list(odd))] if rng.random() < 0.4 else columns.get(name, places)
        yield chosen, (rng.choice((".parquet", ".feather", ".arrows")),)


@functools.cache
def tables(n=8):
    """Return whole tables to begin with: endings, bytes, and places where another byte does no harm to opening them."""
    found, rng = [], random.Random("tables")
    for columns, endings in _columns(n, rng):
        for ending in endings:
            stream = io.BytesIO()
            with contextlib.suppress(pa.ArrowException):  # what cannot be written cannot be read
                _WRITERS[ending](pa.table(columns), stream)
                data = stream.getvalue()
                is_text = "csv" in ending
                found.append((ending, data, () if is_text else _soft_places(ending, data, rng)))
    return found


def _soft_places(ending, data, rng):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, f"table{ending}")
        soft = []
        for at in rng.sample(range(len(data)), 48):
            file.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
            with contextlib.suppress(RankwiseError):
                open_tables(file)
                soft.append(at)
    return soft


ITEMS = b"id,price,size\na,1,2\nb,3,1\nc,0.5,4\n"
PREFERENCES = b"winner,loser,magnitude,weight\na,b,1,1\nb,c,2,0.5\na,c,0,1\n"


def outcome(check, *arguments, kinds=RankwiseError):
    """Return what a check says, or the module whose error, which must end in a remedy, refused the input."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return check(*arguments)
    except kinds as error:
        assert "Hint: " in str(error), str(error)  # noqa: PT017 - either outcome is right
        while isinstance(error.__cause__, RankwiseError):  # restated with the name of the file
            error = error.__cause__
        step = error.__traceback__
        while step.tb_next is not None:
            step = step.tb_next
        return "refused by " + step.tb_frame.f_globals["__name__"].removeprefix("rankwise.")


def _damaged_table(rng):
    ending, data, places = rng.choice(tables())
    if rng.random() < 0.04:
        return ending, data
    if ending == ".csv.gz" and rng.random() < 0.8:  # else hardly anything comes through the decompressor
        return ending, gzip.compress(_damaged_text(gzip.decompress(data), rng), 1, mtime=0)
    if ending == ".csv":
        return ending, _damaged_text(data, rng)
    # What is said of places stays true in most, else they are refused at once.
    return ending, mutate(data, rng) if rng.random() < 0.15 else overwrite(data, rng, places)


def _damaged_text(data, rng):
    return (mutate if rng.random() < 0.4 else replace_cell)(data, rng)


def check_table(rng, folder):
    """Damage a table and load it."""
    files = []
    for at in range(1 if rng.random() < 0.97 else 2):
        ending, data = _damaged_table(rng)
        files.append(Path(folder, f"table{at}{ending}"))
        files[-1].write_bytes(data)
    options = {"missing": rng.choice(("error", "nan", "zero")), "dtype": rng.choice((np.float32, np.float64))}
    if rng.random() < 0.1:
        options["label"] = rng.choice((None, "a", "b", "nothing"))
        options["qid"] = rng.choice((None, "b", "label"))
    if rng.random() < 0.05:
        options[rng.choice(("features", "embedding"))] = rng.sample(("a", "b", "e", "values", "label"), 2)
    try:
        return outcome(_load_table, files[0] if len(files) == 1 else files, options, rng)
    finally:
        for file in files:
            file.unlink()


def _load_table(source, options, rng):
    if rng.random() < 0.1:
        blocks = list(iter_table(source, block_rows=rng.choice((1, 3, 100)), **options))
    else:
        blocks = [load_table(source, **options)]
        assert blocks[0].X.shape[0]
    for table in blocks:
        n_rows = table.X.shape[0]
        assert table.X.dtype == options["dtype"]
        assert table.X.shape[1] == len(table.feature_names)
        cells = table.X.data if hasattr(table.X, "indptr") else table.X
        assert np.isfinite(cells).all() or (options["missing"] == "nan" and not np.isinf(cells).any())
        assert table.y is None or (table.y.shape == (n_rows,) and np.isfinite(table.y).all())
        assert table.qid is None or table.qid.shape == (n_rows,)
    return "read"


def check_preferences(rng, folder):
    """Damage comparisons, or the items that they name, and load them."""
    items, comparisons = Path(folder, "items.csv"), Path(folder, "comparisons.csv")
    which = rng.randrange(3)
    items.write_bytes(_damaged_text(ITEMS, rng) if which != 1 else ITEMS)
    comparisons.write_bytes(_damaged_text(PREFERENCES, rng) if which != 0 else PREFERENCES)
    return outcome(_load_preferences, comparisons, items)


def _load_preferences(comparisons, items):
    found = load_preferences(comparisons, items)
    assert found.pairs.shape[1] == 2
    assert 0 <= found.pairs.min() <= found.pairs.max() < found.X.shape[0]
    assert np.isfinite(found.X).all()
    return "read"


TEXT = b"""# three queries
2 qid:1 1:0.5 3:1e-3 # docid = a
0 qid:1 2:-4 4:7
1 qid:x 1:1 2:2 3:3 4:4
0 qid:x
3 qid:7 4:0.25
"""
_WORD = re.compile(rb"[^\s:,]+")


def _damaged_words(data, rng):
    """Put other words in the place of some, or damage bytes."""
    if rng.random() < 0.4:
        return mutate(data, rng)
    words = list(_WORD.finditer(data))
    for word in sorted(rng.sample(words, rng.choice((1, 1, 2, 3))), key=lambda word: -word.start()):
        other = rng.choice(words).group() if rng.random() < 0.4 else rng.choice(ODD)
        data = data[: word.start()] + other + data[word.end() :]
    return data


def check_text(rng, folder):
    """Damage rows of text, and read them whole or in blocks."""
    data = _damaged_words(TEXT, rng)
    if rng.random() < 0.1:
        data = gzip.compress(data, 1, mtime=0)
        data = mutate(data, rng) if rng.random() < 0.3 else data
    options = {
        "missing": rng.choice(("error", "nan", "zero")),
        "zero_based": rng.choice(("auto", True, False)),
        "n_features": rng.choice((None, None, 4, 100)),
        "dtype": rng.choice((np.float32, np.float64)),
        "n_threads": 1,
    }
    return outcome(_load_text, data, options, rng.choice((None, 1, 40, 1000)), rng.random() < 0.3)


def _load_text(data, options, block_bytes, comments):
    if block_bytes is None:
        found = load_svmlight(io.BytesIO(data), comments=comments, **options)
        blocks = [found[:3]]
        assert not comments or len(found[3]) == found[0].shape[0]
    else:
        blocks = list(iter_svmlight(io.BytesIO(data), block_bytes=block_bytes, **options))
    for X, y, qid in blocks:
        assert X.dtype == options["dtype"]
        assert np.isfinite(X.data).all() or (options["missing"] == "nan" and not np.isinf(X.data).any())
        assert np.isfinite(y).all()
        assert qid is None or len(qid) == X.shape[0] == len(y)
    return "read"


def check_model(rng, folder):
    """Change a model file, load it, and use it."""
    return outcome(_load_and_use, model_changes.mutate(rng), kinds=ModelFileError)


def _load_and_use(data):
    model_changes.use(rankwise.load(io.BytesIO(data)))
    return "used"


def check_store(rng, folder):
    """Damage a file of a store, open it, and use it once."""
    place = Path(folder, "damaged.store")
    X = scipy.sparse.csr_matrix(np.eye(6)) if rng.random() < 0.7 else np.eye(6)
    qid = rng.choice([None, [1, 1, 1, 2, 2, 2], list("aaabbb")])
    save_store([(X, np.arange(6.0), qid)], place)
    path = rng.choice(sorted(place.iterdir()))
    path.write_bytes(mutate(path.read_bytes(), rng))
    return outcome(_use_store, place)


def _use_store(place):
    store = open_store(place)
    as_design(store.X).dot(np.ones(store.X.shape[1]))
    as_design(store.X).tdot(store.y)
    return "used"


_VALUES = (
    "rows.txt",
    "rows.csv",
    "items.csv",
    "damaged.csv",
    "model.rw",
    "out.rw",
    "out.txt",
    "out.csv",
    "-",
    "",
    "/",
    "/dev/null",
    "nothing",
    "0",
    "1",
    "-1",
    "1e999",
    "nan",
    "ndcg@3",
    "average_precision",
    "rls",
    "svm",
    "none",
    "standard",
    "query-minmax",
    "auto",
    "label",
    "a,b",
    "\udcff",
    "ü",
    "a" * 300,
    "*",
    "[",
    "--",
    "--force",
    "--json",
)
_WRONG_OPTIONS = ("-x", "--", "--no-such-option")


@functools.cache
def _words_of(command):
    """Return the options of a command, and the words that they name as choices."""
    actions = build_parser(command)._actions
    options = [word for action in actions for word in action.option_strings]
    choices = [str(word) for action in actions for word in action.choices or ()]
    return (*options, *_WRONG_OPTIONS), (*_VALUES, *choices)


def make_files(folder):
    """Write small files for command lines to name."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(24, 2)), rng.integers(0, 3, 24), np.arange(24) // 4
    save_svmlight(X, y, Path(folder, "rows.txt"), qid=qid)
    lines = [f"{label},{query},{a!r},{b!r}" for label, query, (a, b) in zip(y, qid, X.tolist(), strict=True)]
    Path(folder, "rows.csv").write_text("\n".join(["label,qid,a,b", *lines, ""]))
    Path(folder, "items.csv").write_bytes(ITEMS)
    run_command(["fit", "rows.txt", "--methods", "rls", "-o", "model.rw"])


def run_command(argv):
    """Run a command inside this process, which is in a folder of its own; return its code and what it said."""
    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO(), errors="replace")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        show = warnings.showwarning
        try:
            code = main(argv)
        except SystemExit as ended:
            code = ended.code
        finally:
            warnings.showwarning = show
        err.flush()
    return code, err.buffer.getvalue().decode(errors="replace")


def check_arguments(rng, folder):
    """Run a command line of words that may or may not make sense together."""
    command = rng.choice([name for name in COMMANDS if name != "demo"])
    argv = [command] if rng.random() < 0.97 else []
    options, values = _words_of(command)
    for _ in range(rng.randrange(6)):
        argv += [rng.choice(options)] if rng.random() < 0.5 else []
        argv += [rng.choice(values)]
    if "-" in argv:  # nobody writes to our standard input
        argv = [word for word in argv if word != "-"]
    if "damaged.csv" in argv:
        Path(folder, "damaged.csv").write_bytes(mutate(Path(folder, "rows.csv").read_bytes(), rng))
    code = check_command(argv)
    for made in Path(folder).glob("out*"):
        made.unlink()
    return f"ended with {code or 0}"


def check_command(argv):
    """Run a command; it does what it should, or says why not."""
    code, said = run_command(argv)
    assert code in {None, 0, 1, 2}, (argv, code, said)
    assert "Traceback" not in said, (argv, said)
    if code and argv:
        assert "error: " in said, (argv, said)
        assert code == 2 or "Hint: " in said, (argv, said)
    return code


CHECKS = {
    "arguments": check_arguments,
    "models": check_model,
    "preferences": check_preferences,
    "stores": check_store,
    "tables": check_table,
    "text": check_text,
}


def run(kind, seed, folder):
    """Make and check the input of a seed; return what came of it."""
    return CHECKS[kind](random.Random(f"{kind} {seed}"), folder)
