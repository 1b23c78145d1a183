"""Tables, preferences and command lines that are damaged at random: a right answer, or an error that ends in a remedy.

Shared by the tests and by ``fuzz/mutations.py``, which makes millions.
"""

import contextlib
import gzip
import io
import random
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

from rankwise.cli import main
from rankwise.cli.parser import COMMANDS
from rankwise.data import load_preferences, load_table, save_svmlight
from rankwise.exceptions import RankwiseError

ODD = (
    b"",
    b"\0",
    b"\xff",
    b"\n",
    b"\r\n",
    b",",
    b",,",
    b'"',
    b'""',
    b";",
    b"\t",
    b"nan",
    b"NaN",
    b"inf",
    b"-inf",
    b"1e999",
    b"-0",
    b"0x10",
    b"1_000",
    b" 1 ",
    b"true",
    b"NULL",
    b"9" * 400,
    b"\xef\xbb\xbf",
    b"2147483648",
    b"-1",
    b"1e-400",
    b"qid",
    b"label",
    b"\x1f\x8b",
    b"PAR1",
    b"ARROW1",
    "ü".encode(),
    "٣".encode(),
    b"a" * 5000,
)


def mutate(data, rng):
    """Change some bytes: flip, cut, repeat, move, or put in something odd."""
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3, 8))):
        at = rng.randrange(len(data) + 1)
        kind = rng.randrange(6)
        if kind == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[at : at + rng.choice((1, 1, 4, 50, 1000))]
        elif kind == 2:
            end = min(len(data), at + rng.choice((1, 4, 50)))
            data[at:at] = data[at:end]
        elif kind == 3:
            del data[at:]
        else:
            data[at:at] = rng.choice(ODD)
    return bytes(data)


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


def _columns(n):
    """Yield tables of the kinds that are read, and the endings that can hold them."""
    rng = np.random.default_rng(0)
    columns = {
        "label": rng.integers(0, 3, n),
        "qid": np.arange(n) // 4,
        "a": rng.normal(size=n),
        "b": rng.integers(0, 9, n),
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
    lists = [rng.normal(size=2).tolist() for _ in range(n)]
    yield {"label": columns["label"], "qid": columns["qid"], "e": lists}, (".parquet", ".feather")
    places = [[at % 3, 3 + at % 2] for at in range(n)]
    yield {"label": columns["label"], "indices": places, "values": lists}, (".parquet", ".feather", ".arrows")


def _tables(n=8):
    for columns, endings in _columns(n):
        for ending in endings:
            stream = io.BytesIO()
            _WRITERS[ending](pa.table(columns), stream)
            yield ending, stream.getvalue()


TABLES = list(_tables())
ITEMS = b"id,price,size\na,1,2\nb,3,1\nc,0.5,4\n"
PREFERENCES = b"winner,loser,magnitude,weight\na,b,1,1\nb,c,2,0.5\na,c,0,1\n"


@contextlib.contextmanager
def refused(kinds=RankwiseError):
    """Let errors of ours pass that end in a remedy; what else is raised is a fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            yield
        except kinds as error:
            assert "Hint: " in str(error), str(error)  # noqa: PT017 - either outcome is right


def check_table(rng, folder):
    """Damage a table and load it."""
    ending, data = rng.choice(TABLES)
    if ending == ".csv.gz" and rng.random() < 0.8:  # else hardly anything comes through the decompressor
        data = gzip.compress(mutate(gzip.decompress(data), rng), 1, mtime=0)
    else:
        data = mutate(data, rng)
    file = Path(folder, f"table{ending}")
    file.write_bytes(data)
    missing = rng.choice(("error", "nan", "zero"))
    with refused():
        table = load_table(file, missing=missing, dtype=rng.choice((np.float32, np.float64)))
        n_rows = table.X.shape[0]
        assert n_rows
        assert table.X.shape[1] == len(table.feature_names)
        assert missing == "nan" or np.isfinite(table.X.data if hasattr(table.X, "indptr") else table.X).all()
        for column in (table.y, table.qid):
            assert column is None or len(column) == n_rows


def check_preferences(rng, folder):
    """Damage comparisons, or the items that they name, and load them."""
    items, comparisons = Path(folder, "items.csv"), Path(folder, "comparisons.csv")
    which = rng.randrange(3)
    items.write_bytes(mutate(ITEMS, rng) if which != 1 else ITEMS)
    comparisons.write_bytes(mutate(PREFERENCES, rng) if which != 0 else PREFERENCES)
    with refused():
        found = load_preferences(comparisons, items)
        assert found.pairs.shape[1] == 2
        assert 0 <= found.pairs.min() <= found.pairs.max() < found.X.shape[0]
        assert np.isfinite(found.X).all()


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
    "map",
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
_OPTIONS = (
    "-o",
    "--output",
    "--valid",
    "--metric",
    "--method",
    "--scaling",
    "--alpha",
    "--threads",
    "--format",
    "--missing",
    "--zero-based",
    "--columns",
    "--longest-line",
    "--features",
    "--label",
    "--qid",
    "--items",
    "--winner",
    "--loser",
    "--weight",
    "--against",
    "--metrics",
    "--per-query",
    "--title",
    "--to",
    "--regroup",
    "--ranks",
    "--seed",
    "--plot",
    "--help",
    "-x",
    "--",
)


def make_files(folder):
    """Write small files for command lines to name."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(24, 2)), rng.integers(0, 3, 24), np.arange(24) // 4
    save_svmlight(X, y, Path(folder, "rows.txt"), qid=qid)
    lines = [f"{label},{query},{a!r},{b!r}" for label, query, (a, b) in zip(y, qid, X.tolist(), strict=True)]
    Path(folder, "rows.csv").write_text("\n".join(["label,qid,a,b", *lines, ""]))
    Path(folder, "items.csv").write_bytes(ITEMS)
    run_command(["fit", "rows.txt", "--method", "rls", "--scaling", "none", "-o", "model.rw"])


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
    for _ in range(rng.randrange(6)):
        argv += [rng.choice(_OPTIONS)] if rng.random() < 0.4 else []
        argv += [rng.choice(_VALUES)]
    if "-" in argv:  # nobody writes to our standard input
        argv = [word for word in argv if word != "-"]
    if "damaged.csv" in argv:
        Path(folder, "damaged.csv").write_bytes(mutate(Path(folder, "rows.csv").read_bytes(), rng))
    check_command(argv)
    for made in Path(folder).glob("out*"):
        made.unlink()


def check_command(argv):
    """Run a command; it does what it should, or says why not."""
    code, said = run_command(argv)
    assert code in {None, 0, 1, 2}, (argv, code, said)
    assert "Traceback" not in said, (argv, said)
    if code and argv:
        assert "error: " in said, (argv, said)
        assert code == 2 or "Hint: " in said, (argv, said)


CHECKS = {"tables": check_table, "preferences": check_preferences, "arguments": check_arguments}


def run(kind, seed, folder):
    """Make and check the input of a seed."""
    CHECKS[kind](random.Random(f"{kind} {seed}"), folder)
