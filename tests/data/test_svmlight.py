"""svmlight text against a parser that goes line by line, and round trips that must be exact."""

import bz2
import gzip
import io
import lzma
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fuzz_corpus import read_corpus
from oracles import parse_svmlight
from rankwise.data import iter_svmlight, load_svmlight, save_svmlight
from rankwise.data import svmlight as text_reader
from rankwise.exceptions import InvalidInputError, MemoryLimitError
from real_data import NEEDS_REAL_DATA, ROOT

TEXT = b"2 qid:7 1:0.5 3:1 # the best\n0 qid:7 2:-1\n1 qid:9 1:2 2:3 3:4\n"


def load(text, **options):
    return load_svmlight(io.BytesIO(text), **options)


def dump(X, y, **options):
    stream = io.BytesIO()
    save_svmlight(X, y, stream, **options)
    return stream.getvalue()


def assert_same(one, other):
    for a, b in ((one[0].data, other[0].data), (one[1], other[1])):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))  # bits: the sign of 0 counts
    np.testing.assert_array_equal(one[0].indices, other[0].indices)
    np.testing.assert_array_equal(one[0].indptr, other[0].indptr)
    assert one[0].shape == other[0].shape
    assert (one[2] is None) == (other[2] is None)
    if one[2] is not None:
        assert one[2].dtype.kind == other[2].dtype.kind
        np.testing.assert_array_equal(one[2], other[2])


def assert_parsed(result, wanted, dtype):
    X, y, qid = result
    rows, labels, ids, n_columns = wanted
    assert X.shape == (len(rows), n_columns)
    entries = [entry for row in rows for entry in row]
    np.testing.assert_array_equal(np.diff(X.indptr), [len(row) for row in rows])
    np.testing.assert_array_equal(X.indices, [column for column, _ in entries])
    values = np.array([value for _, value in entries], dtype=dtype)
    np.testing.assert_array_equal(X.data.view(np.uint8), values.view(np.uint8))
    np.testing.assert_array_equal(y, labels)
    assert (qid is None) == (ids is None)
    if qid is not None:
        np.testing.assert_array_equal(qid, list(map({"i": int, "f": float, "U": str}[qid.dtype.kind], ids)))


# --- text to arrays -----------------------------------------------------------------------------------------

digits = st.text("0123456789", min_size=1, max_size=25)
decimals = st.builds(
    lambda sign, whole, fraction, exponent: sign + whole + fraction + exponent,
    st.sampled_from(["", "-", "+"]),
    digits,
    st.one_of(st.just(""), st.builds(".{}".format, digits), st.just(".")),
    st.one_of(st.just(""), st.builds("{}{:+d}".format, st.sampled_from("eE"), st.integers(-60, 12))),
)
numbers = st.one_of(
    decimals,
    st.floats(-1e30, 1e30).map(repr),
    st.floats(-(2.0**99), 2.0**99, width=32).map(repr),
    st.sampled_from(
        [".5", "-.25e1", "0", "-0", "1e-400", "4.9e-324", "2.4e-324", "1e-45", "9007199254740993"]
    ),
)
spaces = st.sampled_from([" ", "  ", "\t", " \t "])
ends = st.sampled_from(["\n", "\r\n", " \n", "#\n", " # docid = G-1 inc:2\n"])
ids = st.one_of(
    st.integers(-5, 5).map(str),
    st.sampled_from(["1.5", "2.50", "-3e2"]),
    st.sampled_from(["GX-1", "a:b", "é", "12345678901234567890", "007"]),
)


@st.composite
def texts(draw):
    with_ids, base = draw(st.booleans()), draw(st.integers(0, 1))
    kind = draw(st.integers(0, 2))
    chosen_ids = [st.integers(0, 4).map(str), st.one_of(st.integers(0, 4).map(str), st.just("1.5")), ids][
        kind
    ]
    lines = []
    for _ in range(draw(st.integers(1, 8))):
        lines.append(draw(st.sampled_from(["", "\n", "# a comment\n", " \r\n"])))
        lines.append(draw(numbers))
        if with_ids:
            lines.append(draw(spaces) + "qid:" + draw(chosen_ids))
        columns = draw(st.lists(st.integers(base, 30), unique=True, max_size=6))
        lines += [f"{draw(spaces)}{column}:{draw(numbers)}" for column in columns]
        lines.append(draw(ends))
    if draw(st.booleans()):
        lines[-1] = lines[-1].rstrip("\n")
    return "".join(lines).encode()


# Blocks of text as they are, or so small that every line has one of its own.
at_once = st.sampled_from([1 << 22, 16])


@settings(max_examples=200, deadline=None)
@given(texts(), at_once, st.sampled_from([np.float64, np.float32]), st.integers(1, 4))
def test_text_is_read_as_the_line_by_line_parser_reads_it(text, at_once, dtype, n_threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_reader, "PARSED_AT_ONCE", at_once)
        found = load(text, dtype=dtype, n_threads=n_threads)
    assert_parsed(found, parse_svmlight(text, dtype=dtype), dtype)


@settings(max_examples=300, deadline=None)
@given(number=numbers)
@example(
    number="1.00000005960464477539062500000000001"
)  # just above the middle of two floats, as a double on it
@example(number="16777217")
@example(number="3.4028235677973366e38")  # just below the middle between the largest float and 2^128
@example(number="3.4028235677973367e38")
def test_numbers_are_correctly_rounded(number):
    text = f"0 1:{number}\n".encode()
    for dtype in (np.float64, np.float32):
        if dtype == np.float32 and abs(Fraction(number)) >= 2**128 - 2**103:
            with pytest.raises(InvalidInputError, match="infinite"):
                load(text, dtype=dtype)
            continue
        assert_parsed(load(text, dtype=dtype), parse_svmlight(text, dtype=dtype), dtype)


def test_threads_and_blocks_cut_anywhere(monkeypatch):
    rng = np.random.default_rng(0)
    X = sp.random(3000, 40, density=0.3, random_state=0, format="csr")
    text = dump(X, rng.normal(size=3000), qid=np.sort(rng.integers(200, size=3000)))
    assert len(text) > 2 << 18  # enough for several threads
    whole = load(text, n_threads=1)
    for n_threads in (2, 3, 5):
        assert_same(load(text, n_threads=n_threads), whole)
    monkeypatch.setattr(text_reader, "PARSED_AT_ONCE", 1 << 17)
    for n_threads in (1, 4):
        assert_same(load(text, n_threads=n_threads), whole)


@pytest.mark.parametrize(
    ("zero_based", "text", "wanted"),
    [
        ("auto", b"1 1:5 2:6", [5, 6]),
        ("auto", b"1 0:5 1:6", [5, 6]),
        (True, b"1 1:5 2:6", [0, 5, 6]),
        (False, b"1 1:5 2:6", [5, 6]),
    ],
)
def test_the_first_column(zero_based, text, wanted):
    assert load(text, zero_based=zero_based)[0].toarray().tolist() == [wanted]


def test_the_number_of_columns_is_given_or_found():
    assert load(TEXT)[0].shape == (3, 3)
    assert load(TEXT, n_features=10)[0].shape == (3, 10)
    with pytest.raises(InvalidInputError, match="line 1, column 15: the column number is too large: '3:1'"):
        load(TEXT, n_features=2)
    with pytest.raises(InvalidInputError, match="n_features=3"):
        load(b"1 0:1 3:1\n", n_features=3)


def test_missing_values_are_an_error_unless_told_otherwise():
    text = b"1 1:NULL 2:3\n0 1:nan 3:-NaN\n"
    with pytest.raises(
        InvalidInputError, match=r"line 1, column 3: the value is missing: '1:NULL'.*missing='nan'"
    ):
        load(text)
    np.testing.assert_array_equal(
        load(text, missing="nan")[0].toarray(), [[np.nan, 3, 0], [np.nan, 0, np.nan]]
    )
    zero = load(text, missing="zero")[0]
    assert zero.nnz == 1
    assert zero.shape == (2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"1 1:2\nx 1:2\n", "line 2, column 1: the label is not a number: 'x'"),
        (b"nan 1:2\n", "line 1, column 1: the label is missing: 'nan'"),
        (b"1e999 1:2\n", "line 1, column 1: the number is infinite: '1e999'"),
        (b"1,2 1:2\n", "line 1, column 1: the label is not a number: '1,2'"),
        (b"1 qid: 1:2\n", "line 1, column 3: the query id is empty .*: 'qid:'"),
        (b"1 qid:a\x00 1:2\n", r"line 1, column 3: the query id .* NUL .*: 'qid:a\\x00'"),
        (b"1 qid:1 1:2\n# c\n\n1 1:2\n", "line 4, column 1: this row has no query id, .* have: '1 1:2'"),
        (b"1 1:2\n1 qid:1 1:2\n", "line 2, column 1: this row has a query id, .* none: '1 qid:1 1:2'"),
        (b"1 1:2 qid:3\n", "line 1, column 7: this is not `column:value`: 'qid:3'"),
        (b"1 1 :2\n", "line 1, column 3: this is not `column:value`: '1'"),
        (b"1 -1:2\n", "line 1, column 3: this is not `column:value`: '-1:2'"),
        (b"1 1:\n", "line 1, column 3: the value is not a number: '1:'"),
        (b"1 1:0x5\n", "line 1, column 3: the value is not a number: '1:0x5'"),
        (b"1 1:1e\n", "line 1, column 3: the value is not a number"),
        (b"1 1:1:1\n", "line 1, column 3: the value is not a number"),
        (b"1 1:inf\n", "line 1, column 3: the value is not a number"),
        (b"1 1:1e999\n", "line 1, column 3: the number is infinite"),
        (b"1 1:2\x00\n", r"line 1, column 3: the value is not a number: '1:2\\x00'"),
        (b"1 1:\xff\n", r"'1:\\\\xff'"),
        (b"\r\n1 4:2 2:1 4:3\r\n", "line 2, column 11: the column comes twice in this row: '4:3'"),
        (b"1 3000000000:2\n", "line 1, column 3: the column number is too large: '3000000000:2'"),
        (b"1 1:" + b"y" * 500 + b"\n", r"y'\.\.\."),
        (b"# nothing\n\n", "there are no rows"),
        (b"", "there are no rows"),
    ],
)
def test_errors_name_the_place_and_end_in_a_remedy(text, message, monkeypatch):
    for at_once in (1 << 22, 4):
        monkeypatch.setattr(text_reader, "PARSED_AT_ONCE", at_once)
        with pytest.raises(InvalidInputError, match=message) as caught:
            load(text)
        assert "Hint: " in str(caught.value)


def test_errors_are_found_in_whatever_part_they_are(tmp_path):
    lines = [b"1 qid:1 1:0.123456 2:0.5\n"] * 40_000
    for bad in (0, 20_001, 39_999):
        broken = lines.copy()
        broken[bad] = b"1 qid:1 1:0.123456 2:?\n"
        path = tmp_path / "bad.txt"
        path.write_bytes(b"".join(broken))
        for n_threads in (1, 3):
            with pytest.raises(InvalidInputError, match=rf"bad\.txt, line {bad + 1}, column 20: .*'2:\?'"):
                load_svmlight(path, n_threads=n_threads)


def test_options_are_checked():
    for options in (
        {"missing": "drop"},
        {"zero_based": 2},
        {"dtype": np.int32},
        {"n_features": 0},
        {"n_threads": 0},
    ):
        with pytest.raises(InvalidInputError, match="Hint"):
            load(TEXT, **options)
    with pytest.raises(InvalidInputError, match="no file"):
        load_svmlight([])


# --- where text comes from and goes to ----------------------------------------------------------------------

COMPRESSORS = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda text: zstandard.compress(text[:20]) + zstandard.compress(text[20:]),
}


@pytest.mark.parametrize("ending", COMPRESSORS)
def test_compressed_files_are_told_by_their_first_bytes(ending, tmp_path):
    path = tmp_path / f"data{ending}"
    path.write_bytes(COMPRESSORS[ending](TEXT))
    for n_threads in (1, 2):
        assert_same(load_svmlight(path, n_threads=n_threads), load(TEXT))
    save_svmlight(*load(TEXT)[:2], tmp_path / f"out{ending}", qid=load(TEXT)[2])
    assert_same(load_svmlight(str(tmp_path / f"out{ending}")), load(TEXT))


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
def test_a_file_that_was_cut_off_is_an_error(ending, tmp_path):
    path = tmp_path / "data"
    text = np.random.default_rng(0).integers(1, 10**9, 3000)
    whole = COMPRESSORS[ending]("".join(f"1 1:{value}\n" for value in text).encode())
    path.write_bytes(whole[: len(whole) // 2])
    if (
        ending == ".zst"
    ):  # its reader cannot tell; what came is cut in the middle of a line or holds fewer rows
        path.write_bytes(b"\x28\xb5\x2f\xfd" + b"damage" * 50)
    with pytest.raises(InvalidInputError, match=r"cannot be read to its end.*Hint"):
        load_svmlight(path)


def test_several_files_make_one_matrix(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two.gz"
    one.write_bytes(b"1 qid:1 1:1\n0 qid:2 2:1")
    two.write_bytes(gzip.compress(b"2 qid:2 5:1\n"))
    X, y, qid = load_svmlight([one, two])
    assert X.toarray().tolist() == [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1]]
    assert (y.tolist(), qid.tolist()) == ([1, 0, 2], [1, 2, 2])
    two.write_bytes(b"2 qid:2 0:1\n")
    assert load_svmlight([one, two])[0].toarray().tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    two.write_bytes(b"2 qid:2 5:x\n")
    with pytest.raises(InvalidInputError, match=r"two\.gz, line 1, column 9"):
        load_svmlight([one, two])


def test_standard_input_and_output(monkeypatch, capsysbinary):
    class Stdin:
        buffer = io.BytesIO(TEXT)

    monkeypatch.setattr(sys, "stdin", Stdin)
    X, y, qid = load_svmlight("-")
    assert_same((X, y, qid), load(TEXT))
    save_svmlight(X, y, "-", qid=qid)
    assert_same(load(capsysbinary.readouterr().out), load(TEXT))


def test_what_cannot_be_read_or_written_is_one_clear_error(tmp_path):
    with pytest.raises(InvalidInputError, match="cannot be opened: No such file"):
        load_svmlight(tmp_path / "none")
    with pytest.raises(InvalidInputError, match="mode 'rb'"):
        load_svmlight(io.StringIO("1 1:1"))
    with pytest.raises(InvalidInputError, match="could not be written: No such file"):
        save_svmlight(np.ones((1, 1)), [1], tmp_path / "none" / "file")


def test_a_byte_order_mark_is_skipped():
    assert_same(load(b"\xef\xbb\xbf" + TEXT), load(TEXT))


# --- blocks -------------------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 400), st.booleans(), at_once)
def test_blocks_are_the_whole_with_queries_uncut(seed, block_bytes, with_ids, at_once):
    rng = np.random.default_rng(seed)
    X = sp.random(30, 6, density=0.4, random_state=seed % 2**31, format="csr")
    qid = np.sort(rng.integers(8, size=30)) if with_ids else None
    text = dump(X, rng.normal(size=30), qid=qid)
    whole = load(text, n_features=6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_reader, "PARSED_AT_ONCE", at_once)
        blocks = list(iter_svmlight(io.BytesIO(text), block_bytes=block_bytes, n_features=6))
    stacked = sp.vstack([block[0] for block in blocks], format="csr")
    ids = np.concatenate([block[2] for block in blocks]) if with_ids else None
    assert_same((stacked, np.concatenate([block[1] for block in blocks]), ids), whole)
    if with_ids:
        queries = [set(block[2].tolist()) for block in blocks]
        assert sum(map(len, queries)) == len(set().union(*queries))


def test_blocks_keep_what_the_first_one_decided(monkeypatch):
    monkeypatch.setattr(text_reader, "PARSED_AT_ONCE", 12)
    blocks = iter_svmlight(io.BytesIO(b"1 qid:1 1:1\n1 qid:2 1:1\n1 qid:3 0:1\n"), block_bytes=1)
    next(blocks)
    with pytest.raises(InvalidInputError, match=r"column 0.*zero_based=True"):
        list(blocks)
    blocks = iter_svmlight(io.BytesIO(b"1 qid:1 1:1\n1 qid:2 1:1\n1 qid:a 1:1\n"), block_bytes=1)
    with pytest.raises(InvalidInputError, match=r"'a' is of another kind.*integers"):
        list(blocks)
    with pytest.raises(InvalidInputError, match="no rows"):
        list(iter_svmlight(io.BytesIO(b"\n")))


def test_abandoned_blocks_close_their_file(tmp_path):
    path = tmp_path / "data"
    path.write_bytes(TEXT * 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        blocks = iter_svmlight(path, block_bytes=100, n_threads=2)
        next(blocks)
        blocks.close()


# --- round trips --------------------------------------------------------------------------------------------

matrices = st.builds(
    lambda seed, width, dtype: (
        sp.random(12, 7, density=0.4, random_state=seed, format="csr")
        * float(10.0 ** (np.random.default_rng(seed).integers(-width, width + 1)))
    ).astype(dtype),
    st.integers(0, 2**31 - 1),
    st.integers(0, 30),
    st.sampled_from([np.float64, np.float32]),
)


@settings(max_examples=150, deadline=None)
@given(
    X=matrices,
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=4, max_size=4),
    ids=st.sampled_from(["none", "int", "real", "text"]),
    zero_based=st.booleans(),
    n_threads=st.integers(1, 3),
)
def test_arrays_survive_text_bit_for_bit(X, values, ids, zero_based, n_threads):
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore", under="ignore"):
        extreme = np.array(values).astype(X.dtype)
    X.data[: min(4, X.nnz)] = np.where(np.isfinite(extreme), extreme, -0.0)[: X.nnz]
    y = np.concatenate([values, rng.normal(size=X.shape[0] - 4)])
    number = rng.integers(3, size=X.shape[0])
    qid = {"none": None, "int": number, "real": number + 0.25, "text": np.array(["a", "ü", "c-1"])[number]}[
        ids
    ]
    text = dump(X, y, qid=qid, zero_based=zero_based, n_threads=n_threads)
    again = load(text, dtype=X.dtype, n_features=7, zero_based=zero_based, n_threads=n_threads)
    assert_same(again, (X, y, qid))
    assert dump(*again[:2], qid=again[2], zero_based=zero_based) == text


def test_dense_integer_and_untidy_matrices_are_written():
    assert dump(np.array([[1, 0], [0, 2]]), [1, 0]) == b"1 1:1\n0 2:2\n"
    untidy = sp.csr_matrix((np.array([1.0, 2.0, 3.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    assert dump(untidy, [1], comments=["two\nlines"]) == b"1 1:2 2:4 # two lines\n"
    assert untidy.nnz == 3  # the caller's matrix stays as it was
    wide = sp.csr_matrix(np.eye(2))
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert dump(wide, [1, 0]) == b"1 1:1\n0 2:1\n"


def test_what_text_cannot_hold_is_an_error():
    X = np.ones((2, 2))
    for bad in ("a b", "#1", "", "a\nb"):
        with pytest.raises(InvalidInputError, match=r"Query id .* cannot be written"):
            dump(X, [1, 0], qid=[bad, "c"])
    X[1, 1] = np.nan
    assert_same(load(dump(X, [1, 0]), missing="nan"), (sp.csr_matrix(X), np.array([1.0, 0.0]), None))
    X[0, 1] = np.inf
    with pytest.raises(InvalidInputError, match="infinite in row 0, column 1"):
        dump(X, [1, 0])
    with pytest.raises(InvalidInputError, match="y is NaN"):
        dump(np.ones((2, 2)), [1, np.nan])
    with pytest.raises(InvalidInputError, match="shape"):
        dump(np.ones(2), [1, 0])


def test_a_file_is_replaced_only_by_a_whole_one(tmp_path):
    path = tmp_path / "data.txt"
    path.write_bytes(b"old")
    with pytest.raises(InvalidInputError):
        save_svmlight(np.array([[1.0], [np.inf]]), [1, 0], path)
    assert path.read_bytes() == b"old"
    save_svmlight(np.ones((1, 1)), [1], path)
    assert path.read_bytes() == b"1 1:1\n"
    assert [entry.name for entry in tmp_path.iterdir()] == ["data.txt"]


CORPUS = read_corpus(Path(__file__).with_name("svmlight_corpus.txt"))


def test_inputs_that_a_fuzzer_found_are_read_as_the_line_by_line_parser_reads_them():
    """The first four bytes are options of the compiled fuzz target; see `cpp/tests/svmlight_checks.hpp`."""
    n_read = 0
    for given_bytes in CORPUS:
        text = given_bytes[4:]
        try:
            data = load(text, missing="nan")
        except InvalidInputError:
            continue
        n_read += 1
        assert_parsed(data, parse_svmlight(text, missing="nan"), np.float64)
        options = {"missing": "nan", "n_features": data[0].shape[1] or None}
        assert_same(load(dump(*data[:2], qid=data[2]), **options), data)
    assert len(CORPUS) > n_read > 0


# --- real data ----------------------------------------------------------------------------------------------


def real_text(*parts):
    return b"".join(
        gzip.decompress(path.read_bytes()) for path in sorted(Path(ROOT, *parts[:-1]).glob(parts[-1]))
    )


class TestRealData:
    pytestmark = NEEDS_REAL_DATA

    @pytest.mark.parametrize(
        ("parts", "missing"),
        [
            pytest.param(("OHSUMED", "QueryLevelNorm", "S*.gz"), "error", marks=pytest.mark.long),
            pytest.param(("OHSUMED", "Feature-min", "S*.gz"), "error", marks=pytest.mark.long),
            (("OHSUMED", "Feature-null", "S1.*gz"), "nan"),
            (("OHSUMED", "Feature-null", "S2.*gz"), "zero"),
            (("lightgbm-rank", "rank.test*.gz"), "error"),
            (("rlscore-legacy", "*.light.gz"), "error"),
        ],
    )
    def test_files_are_read_exactly_and_survive_a_round_trip(self, parts, missing):
        text = real_text(*parts)
        for dtype in (np.float64, np.float32):
            data = load(text, missing=missing, dtype=dtype)
            if dtype == np.float64:
                assert_parsed(data, parse_svmlight(text, missing=missing), dtype)
            written = dump(*data[:2], qid=data[2])
            options = {"missing": "nan", "dtype": dtype, "n_features": data[0].shape[1]}
            assert_same(load(written, **options), data)

    def test_a_null_is_reported_where_it_stands(self):
        with pytest.raises(
            InvalidInputError, match=r"S1\.txt\.gz, line 5, column 123: .*'11:NULL'.*missing='nan'"
        ):
            load_svmlight(sorted(Path(ROOT, "OHSUMED", "Feature-null").glob("S*.gz")))


# --- limits ---


class Endless(io.RawIOBase):
    """Bytes without end, and without the end of a line."""

    taken = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        buffer[:] = b"1" * len(buffer)
        self.taken += len(buffer)
        return len(buffer)


def test_a_line_without_an_end_is_noticed(monkeypatch):
    monkeypatch.setattr(text_reader, "PARSED_AT_ONCE", 1 << 16)
    monkeypatch.setattr(text_reader, "_LONGEST_LINE", 1 << 20)
    stream = Endless()
    with pytest.raises(InvalidInputError, match=r"has a line of more than .* MB.*Hint: check"):
        load_svmlight(stream, n_threads=1)
    assert stream.taken < (1 << 21) + (1 << 18)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_line_without_an_end_is_noticed(pack, tmp_path, monkeypatch):
    monkeypatch.setattr(text_reader, "_LONGEST_LINE", 1 << 20)
    (tmp_path / "bomb").write_bytes(pack(b"0" * (1 << 25)))
    for read in (load_svmlight, lambda path: next(iter_svmlight(path))):
        with pytest.raises(InvalidInputError, match=r"bomb has a line of more than"):
            read(tmp_path / "bomb")


def test_long_lines_are_read():
    text = b"1 " + b" ".join(b"%d:1" % column for column in range(1, 2_000_001))
    X, _, _ = load_svmlight(io.BytesIO(text + b"\n"), n_threads=1)
    assert X.nnz == 2_000_000


def test_text_that_does_not_fit_in_memory_is_told_before_it_is_too_late(monkeypatch):
    monkeypatch.setattr(text_reader, "available_memory", lambda: 1 << 20)
    monkeypatch.setattr(text_reader, "PARSED_AT_ONCE", 1 << 20)
    with pytest.raises(MemoryLimitError, match=r"does not fit in memory.*Hint: write it to a store"):
        load_svmlight(io.BytesIO(b"1 1:1\n"))
