"""Bounds of model files: what is exactly at one is taken, and what is one beyond is refused, with the true figure."""

import io
import json
import re
import struct
import tracemalloc

import numpy as np
import pytest

import rankwise
from identical import assert_identical
from model_checks import format_of, with_checksum, without_checksum
from model_ways import OLD, WAYS, Pipe, model_bytes
from oracles import xxh3
from rankwise import RankRLS
from rankwise.exceptions import MemoryLimitError, ModelFileError
from rankwise.persistence import read_header
from rankwise.persistence.container import ALIGNMENT, Container, is_storable, padded, write_container
from rankwise.persistence.container_reader import read_container, read_file


def written(header=None, arrays=None, description=None):
    stream = io.BytesIO()
    write_container(stream, Container(header or {}, arrays or {}, description))
    return stream.getvalue()


def read(data, **options):
    return read_container(io.BytesIO(data), **options)


def file_of(index=b"[]", header=b"{}", rest=b"", description=b"{}", version=(2, 0)):
    """Return a file of these texts, which need not be what a writer would write."""
    texts = [index, header, description.ljust(256)]
    return with_checksum(
        struct.pack("<8sHHIII", b"RANKWISE", *version, *map(len, texts)) + b"".join(texts) + rest
    )


def old_file(text, rest=b""):
    return with_checksum(struct.pack("<8sHHI", b"RANKWISE", 1, 0, len(text)) + text + rest)


def index_of(*entries):
    return json.dumps([list(entry) for entry in entries]).encode()


# --- how it lies in the file ---


def parts(data):
    """Take a file apart as the page of the format says, without the reader."""
    magic, major, minor, *lengths = struct.unpack_from("<8sHHIII", data)
    assert (magic, major, minor) == (b"RANKWISE", 2, 0)
    at, texts = 24, []
    for length in lengths:
        texts.append(data[at : at + length])
        at += length
    arrays = {}
    assert at % 64 == 0
    for name, kind, shape, order in json.loads(texts[0]):
        size = int(np.prod(shape, dtype=int)) * np.dtype(kind).itemsize
        arrays[name] = np.frombuffer(data[at : at + size], dtype=kind).reshape(shape, order=order)
        room = -(-size // 64) * 64
        assert data[at + size : at + room] == bytes(room - size)
        at += room
    assert data[at:] == xxh3(data[:at]).to_bytes(8, "little")
    return texts, arrays


@pytest.mark.parametrize("sizes", [(), (0,), (1,), (63, 1), (64, 65), (128, 0, 7)])
def test_arrays_lie_where_the_page_of_the_format_says(sizes):
    arrays = {f"a{size}": np.arange(size, dtype=np.uint8) + 1 for size in sizes}
    data = written({"some": "header"}, arrays, {"by": "me"})
    texts, found = parts(data)
    assert_identical(arrays, found)
    assert [json.loads(text) for text in texts[1:]] == [{"some": "header"}, {"by": "me"}]
    assert [text.strip() for text in texts[:2]] == texts[:2]
    assert texts[2].strip(b" ") == b'{"by":"me"}'  # which is all that is padded
    assert_identical(arrays, dict(read(data).arrays))


def test_a_file_that_holds_nothing_is_long_enough_for_the_checksum():
    data = written()
    assert len(data) == 256 + 8
    assert read(data).header == {}
    assert parts(data)[1] == {}


@pytest.mark.parametrize("length", range(55, 68))
def test_texts_of_any_length_end_where_arrays_begin(length):
    values = {"a": np.arange(3.0)}
    data = written({"text": "x" * (length + 192)}, values)
    assert_identical(values, parts(data)[1])
    assert_identical(values, dict(read(data).arrays))


def test_what_an_array_takes_is_the_next_multiple():
    assert [padded(size) for size in (0, 1, 63, 64, 65, 128)] == [0, 64, 64, 64, 128, 128]
    assert ALIGNMENT == 64


KINDS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "U1", "U12"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("byte_order", "<>")
def test_numbers_and_texts_of_either_byte_order_come_back_as_this_machine_has_them(kind, byte_order):
    values = np.array([[0, 1, 1], [1, 0, 0]]).astype(np.dtype(kind).newbyteorder(byte_order))
    assert is_storable(values.dtype)
    for array in (values, np.asfortranarray(values), values[:, ::2], values[0, 1:2].reshape(())):
        data = written({}, {"a": np.asarray(array)})
        found = read(data).arrays["a"]
        assert found.dtype == np.dtype(kind)
        assert found.dtype.isnative
        np.testing.assert_array_equal(found, array)
        np.testing.assert_array_equal(parts(data)[1]["a"], array)
        assert found.flags.f_contiguous == array.flags.f_contiguous or not array.flags.forc
        assert found.flags.writeable


@pytest.mark.parametrize("kind", ["c16", "O", "S3", "V4", "M8[s]", "m8[D]", "U0", "g"])
def test_other_types_are_not_stored(kind):
    assert not is_storable(np.dtype(kind))


def test_no_file_holds_what_is_no_json():
    with pytest.raises(ValueError, match="JSON"):
        written({"x": float("nan")})


# --- how long texts may be ---


@pytest.mark.parametrize("spare", [0, 1, -1])
def test_a_header_of_just_the_longest_length_is_written_and_read(spare, monkeypatch):
    data = written({"text": "x" * 5000})
    length = len(data) - 24 - 8
    for room in ("container", "container_reader"):
        monkeypatch.setattr(f"rankwise.persistence.{room}.MAX_HEADER", length + spare)
    if spare >= 0:
        assert read(written({"text": "x" * 5000})).header == {"text": "x" * 5000}
        return
    with pytest.raises(ModelFileError, match="would take"):
        written({"text": "x" * 5000})
    for reading in (read, lambda data: read(data, only_header=True), lambda data: read_container(Pipe(data))):
        with pytest.raises(ModelFileError, match=f"its header is said to take {length} bytes"):
            reading(data)


def test_a_header_that_is_too_long_is_refused_with_both_lengths(monkeypatch):
    monkeypatch.setattr("rankwise.persistence.container.MAX_HEADER", 2 * 2**20)
    with pytest.raises(ModelFileError, match=r"would take 5 MiB, more than 2 MiB\.") as caught:
        written({"text": "x" * (5 * 2**20 + 1000)})
    assert "Hint: shorten the feature names" in str(caught.value)


def test_a_pipe_is_left_alone_once_its_header_is_said_to_be_longer_than_64_mebibytes():
    for length, taken in ((2**26, 124), (2**26 + 1, 24)):
        pipe = Pipe(struct.pack("<8sHHIII", b"RANKWISE", 2, 0, 0, length, 0) + bytes(100))
        with pytest.raises(ModelFileError, match=f"its header is said to take {length} bytes"):
            read_container(pipe)
        assert pipe.taken == taken


@pytest.mark.parametrize("whole", [written(), old_file(b'{"arrays":[]}')], ids=["format 2", "format 1"])
def test_texts_may_reach_to_the_checksum_and_no_further(whole):
    """Nothing is left for arrays in such a file; its first text is said to be longer by one byte."""
    assert read(whole).arrays == {}
    longer = bytearray(without_checksum(whole))
    (length,) = struct.unpack_from("<I", longer, 12)
    struct.pack_into("<I", longer, 12, length + 1)
    said = len(longer) + 1 - (16 if format_of(whole) == 1 else 24)
    for only_header in (False, True):
        with pytest.raises(ModelFileError, match=f"its header is said to take {said} bytes"):
            read(with_checksum(bytes(longer)), only_header=only_header)


@pytest.mark.parametrize("only_header", [True, False])
def test_brackets_inside_brackets_are_read_to_a_thousand(only_header):
    def brackets(depth):
        return b'{"a":' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"

    assert "a" in read(file_of(header=brackets(1000)), only_header=only_header).header
    with pytest.raises(ModelFileError, match=r"its header cannot be read \(.*too deep"):
        read(file_of(header=brackets(1001)), only_header=only_header)


# --- what is said of arrays ---


@pytest.mark.parametrize("n_axes", [0, 1, 31, 32, 33])
def test_arrays_have_up_to_32_axes(n_axes):
    data = file_of(index_of(("a", "<f8", [1] * n_axes, "C")), rest=bytes(64))
    if n_axes <= 32:
        assert read(data).arrays["a"].shape == (1,) * n_axes
        return
    with pytest.raises(ModelFileError, match="array 'a' has shape"):
        read(data)


@pytest.mark.parametrize(("kind", "itemsize"), [("<f8", 8), ("<i2", 2), ("|b1", 1), ("<U3", 12)])
def test_arrays_span_less_than_an_exbibyte_even_where_they_are_empty(kind, itemsize):
    longest = 2**60 // itemsize - 1
    found = read(file_of(index_of(("a", kind, [0, longest], "C")))).arrays["a"]
    assert found.shape == (0, longest)
    for shape in ([0, longest + 1], [longest + 1], [longest + 1, 0], [longest, 2, 0]):
        with pytest.raises(ModelFileError, match=re.escape(f"array 'a' has shape {shape}")):
            read(file_of(index_of(("a", kind, shape, "C"))))
    with pytest.raises(ModelFileError, match="there is no room"):
        read(file_of(index_of(("a", kind, [longest], "C"))))


@pytest.mark.parametrize(
    "shape", [[-1], [-1, -1], [2, -1], [0, -1], [True], [1.0], ["1"], [None], {"0": 1}, 1, "1", None]
)
def test_axes_are_whole_numbers_from_zero_on(shape):
    with pytest.raises(ModelFileError, match=re.escape(f"array 'a' has shape {shape!r}")):
        read(file_of(index_of(("a", "<f8", shape, "C"))))


@pytest.mark.parametrize("only_header", [True, False])
@pytest.mark.parametrize("is_old", [True, False])
def test_arrays_fill_the_room_that_there_is(only_header, is_old):
    """Two arrays that take 64 and 128 bytes."""
    entries = [("a", "<f8", [3], "C"), ("b", "|u1", [65], "C")]

    def data(room):
        if not is_old:
            return file_of(index_of(*entries), rest=bytes(room))
        keys = ("name", "dtype", "shape", "order")
        return old_file(
            json.dumps({"arrays": [dict(zip(keys, own, strict=True)) for own in entries]}).encode(),
            bytes(room),
        )

    read(data(192), only_header=only_header)
    for room in (0, 128, 191):
        with pytest.raises(ModelFileError, match=r"there is no room for arrays of 192 bytes"):
            read(data(room), only_header=only_header)
    for more in (1, 64, 200):
        with pytest.raises(ModelFileError, match=f"damaged: {more} bytes belong to nothing"):
            read(data(192 + more), only_header=only_header)


@pytest.mark.parametrize(
    ("kind", "least", "greatest", "said"),
    [("|b1", b"\0", b"\1", "truth values"), ("<U1", b"\0\0\0\0", b"\xff\xff\x10\0", "text")],
)
def test_bytes_that_are_no_values_of_their_type_are_refused(kind, least, greatest, said):
    beyond = (int.from_bytes(greatest, "little") + 1).to_bytes(len(greatest), "little")
    for shape in ([3], [3, 1], [0]):
        index = index_of(("a", kind, shape, "C"))
        fine = b"".join([least, greatest, least]).ljust(64, b"\0") if shape[0] else b""
        assert read(file_of(index, rest=fine)).arrays["a"].shape == tuple(shape)
    for value in (beyond, b"\xff" * len(beyond)):
        with pytest.raises(ModelFileError, match=f"it holds {said}"):
            read(file_of(index_of(("a", kind, [3], "C")), rest=(least + value).ljust(64, b"\0")))
    # As numbers, all bytes are fine.
    assert (
        read(file_of(index_of(("a", "|u1", [3], "C")), rest=b"\xff" * 3 + bytes(61))).arrays["a"].max() == 255
    )


@pytest.mark.parametrize("n_arrays", [1, 300])
def test_many_arrays_are_read_as_a_few_are(n_arrays):
    """Short lists of arrays are remembered, long ones are not."""
    arrays = {f"array {at}": np.full(at % 5, at, dtype=np.float32) for at in range(n_arrays)}
    for _ in range(2):
        assert_identical(arrays, dict(read(written({}, arrays)).arrays))


# --- ways of reading ---


@pytest.mark.parametrize("major", [0, 1, 2, 3, 500])
def test_formats_that_are_read_are_the_first_and_the_second(major):
    data = with_checksum(struct.pack("<8sHHIII", b"RANKWISE", major, 9, *(0, 0, 0)) + bytes(300))
    hint = "the file is damaged: write it again" if major == 0 else "upgrade rankwise"
    said = f"has format {major}\\.9, and .* reads formats 1 and 2\\..*Hint: {hint}"
    with pytest.raises(ModelFileError, match=said if major not in {1, 2} else "damaged: "):
        read(data)


@pytest.fixture(params=["format 1", "format 2"])
def whole(request):
    return (OLD / "linear.rw").read_bytes() if request.param == "format 1" else model_bytes()


def header_of_file(data, folder):
    (folder / "model.rw").write_bytes(data)
    return read_header(folder / "model.rw")


HEADERS = {
    "memory": lambda data, _: read_header(io.BytesIO(data)),
    "file": header_of_file,
    "pipe": lambda data, _: read_header(Pipe(data)),
}


@pytest.mark.parametrize("way", HEADERS)
def test_every_way_of_reading_a_header_notices_damage_anywhere(way, whole, tmp_path):
    assert HEADERS[way](whole, tmp_path)["estimator"] == "RankRLS"
    for at in np.linspace(0, len(whole) - 1, 40).astype(int):
        spoilt = bytearray(whole)
        spoilt[at] ^= 1
        with pytest.raises(ModelFileError, match="Hint: "):
            HEADERS[way](bytes(spoilt), tmp_path)
    for size in (0, 7, 23, 24, 200, len(whole) - 40, len(whole) - 1):
        with pytest.raises(ModelFileError, match="Hint: "):
            HEADERS[way](whole[:size], tmp_path)
    with pytest.raises(ModelFileError, match="checksum"):
        HEADERS[way](whole + b"?", tmp_path)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 23])
def test_what_is_shorter_than_any_model_says_whether_it_began_as_one(length, whole, tmp_path):
    said = "This is not a rankwise model file" if length < 8 else "damaged: it ends too early"
    for way in (*WAYS.values(), *HEADERS.values()):
        with pytest.raises(ModelFileError, match=said):
            way(whole[:length], tmp_path)


def test_a_stream_gives_its_header_from_where_it_stands(whole):
    stream = io.BytesIO(b"before" + whole)
    stream.seek(6)
    assert read_header(stream) == read_header(io.BytesIO(whole))


class PeakMemory:
    """The most that Python and NumPy had allocated inside."""

    def __enter__(self):
        tracemalloc.start()
        return self

    def __exit__(self, *_):
        self.n_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file of 12 MB."""
    path = tmp_path_factory.mktemp("large") / "large.rw"
    with path.open("wb") as stream:
        write_container(stream, Container({}, {"a": np.arange(1_500_000.0)}, {"by": "me"}))
    return path


def test_what_is_read_from_a_file_is_in_memory_once(large):
    with PeakMemory() as peak, large.open("rb") as stream:
        array = read_container(stream).arrays["a"]
    assert array.size - 1 == array[-1]
    assert peak.n_bytes < 1.1 * array.nbytes


def test_arrays_of_large_files_are_aligned_wherever_memory_is_free(tmp_path):
    """Many at a time, of sizes that leave gaps of all kinds: one by one, any may lie well by chance."""
    found = []
    for size in range(20_000, 20_400, 16):
        (tmp_path / "m.rw").write_bytes(data := written({}, {"a": np.zeros(size, dtype=np.uint8)}))
        found += [np.empty(size), read(data).arrays["a"], read_file(tmp_path / "m.rw").arrays["a"]]
    assert {array.ctypes.data % 64 for array in found[1::3] + found[2::3]} == {0}


def test_arrays_of_all_types_share_the_bytes_that_were_read():
    arrays = {"a": np.ones(3), "b": np.array([True, False]), "c": np.array(["a", "b"]), "d": np.arange(3)}
    places = [array.ctypes.data for array in read(written({}, arrays)).arrays.values()]
    assert [place - places[0] for place in places] == [0, 64, 128, 192]


def test_a_large_file_that_is_no_model_is_not_read(tmp_path):
    (tmp_path / "rows.txt").write_bytes(bytes(12_000_000))
    with PeakMemory() as peak, pytest.raises(ModelFileError, match="not a rankwise model file"):
        rankwise.load(tmp_path / "rows.txt")
    assert peak.n_bytes < 10**6


def test_a_header_is_read_without_keeping_the_arrays(large):
    with PeakMemory() as peak, large.open("rb") as stream:
        assert read_container(stream, only_header=True).description == {"by": "me"}
    assert peak.n_bytes < 0.5 * large.stat().st_size


def test_a_model_through_a_pipe_must_fit_into_memory_twice(monkeypatch):
    """Nothing of it is there, and the pipe ends after the texts; the question comes first."""
    monkeypatch.setattr("rankwise.runtime.memory.available_memory", lambda: 10**9)
    for size, error in ((3 * 10**8, ModelFileError), (5 * 10**8, MemoryLimitError)):
        head = without_checksum(file_of(index_of(("a", "|u1", [size], "C"))))
        with pytest.raises(error, match="damaged" if error is ModelFileError else "comes through a pipe"):
            read_container(Pipe(head))


def test_what_a_pipe_would_take_is_said_in_gigabytes():
    head = file_of(index_of(("a", "|u1", [1_234_567_890_123_456], "C")))
    with pytest.raises(MemoryLimitError, match=r"takes 1,234,567\.9 GB, and comes through a pipe"):
        read_container(Pipe(head))


def test_an_error_names_the_file_where_it_has_a_name(tmp_path):
    (tmp_path / "rows.txt").write_bytes(b"1 qid:3 1:0.5\n")
    for reading in (rankwise.load, read_header):
        for path in (tmp_path / "rows.txt", str(tmp_path / "rows.txt")):
            with pytest.raises(
                ModelFileError, match=r"rows\.txt: This is not a rankwise model file"
            ) as caught:
                reading(path)
            assert isinstance(caught.value.__cause__, ModelFileError)
        with (
            (tmp_path / "rows.txt").open("rb") as stream,
            pytest.raises(ModelFileError, match=r"^This is not"),
        ):
            reading(stream)


@pytest.mark.parametrize("path", [None, 3, ["m.rw"], "a\0b", b"a\0b"])
def test_what_is_no_path_is_refused(path):
    for reading in (rankwise.load, read_header):
        with pytest.raises(ModelFileError, match=r"is no path.*Hint: pass the name of a file"):
            reading(path)


def test_a_path_may_be_bytes(tmp_path):
    RankRLS().fit(np.eye(3), [0, 1, 2]).save(tmp_path / "m.rw")
    assert rankwise.load(str(tmp_path / "m.rw").encode()).n_features_in_ == 3
