"""What the compiled core does for model files: the checksum and the reader of JSON, beside their obvious twins."""

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import xxh3
from rankwise import _core

SIZES = [241, 255, 256, 257, 320, 1023, 1024, 1025, 1087, 1088, 2048, 2049, 3072, 5000, 10_240]


def random_bytes(size):
    return np.random.default_rng(size).integers(0, 256, size, dtype=np.uint8)


def summed(*pieces):
    checksum = _core.Xxh3()
    for piece in pieces:
        checksum.update(piece)
    return checksum.digest


@pytest.mark.parametrize("size", SIZES)
def test_the_checksum_is_xxh3(size):
    content = random_bytes(size)
    assert summed(content) == xxh3(content.tobytes())


@pytest.mark.parametrize("size", SIZES)
def test_the_checksum_is_what_other_tools_compute(size):
    reference = pytest.importorskip("xxhash")
    content = random_bytes(size)
    assert summed(content) == reference.xxh3_64_intdigest(content.tobytes())


@settings(max_examples=200)
@given(size=st.integers(241, 5000), cuts=st.lists(st.integers(0, 5000), max_size=6))
def test_pieces_sum_up_to_what_the_whole_does(size, cuts):
    content = random_bytes(size)
    places = [0, *sorted(min(cut, size) for cut in cuts), size]
    pieces = [content[a:b].copy() for a, b in pairwise(places)]
    assert summed(*pieces) == xxh3(content.tobytes())


@pytest.mark.parametrize("size", [241, 1024, 5000, (1 << 20) + 77])
def test_a_file_is_whole_where_its_end_is_the_sum_of_the_rest(size):
    content = random_bytes(size)
    end = np.frombuffer(summed(content).to_bytes(8, "little"), dtype=np.uint8)
    whole = np.concatenate([content, end])
    assert _core.is_whole(whole)
    for at in np.random.default_rng(1).integers(0, whole.size, 200):
        whole[at] ^= 1
        assert not _core.is_whole(whole)
        whole[at] ^= 1
    assert not _core.is_whole(whole[1:].copy())


@pytest.mark.parametrize("size", [*SIZES, (1 << 20) + 77])
def test_what_is_copied_is_summed_up_in_the_same_pass(size):
    content = random_bytes(size)
    whole = np.append(content, np.frombuffer(xxh3(content.tobytes()).to_bytes(8, "little"), dtype=np.uint8))
    copy = np.zeros_like(whole)
    assert _core.copy_whole(whole.tobytes(), copy)
    np.testing.assert_array_equal(copy, whole)
    for at in np.random.default_rng(1).integers(0, whole.size, 50):
        whole[at] ^= 1
        assert not _core.copy_whole(whole.tobytes(), copy)
        whole[at] ^= 1


def test_a_copy_goes_nowhere_but_into_room_of_its_own_length():
    content, fixed = random_bytes(300), np.zeros(300, dtype=np.uint8)
    fixed.flags.writeable = False
    with pytest.raises(ValueError, match="another length"):
        _core.copy_whole(content, np.zeros(299, dtype=np.uint8))
    with pytest.raises(TypeError, match="written to"):
        _core.copy_whole(content, fixed)


def read(text, deepest=100, arrays=()):
    content = np.frombuffer(b"??" + text + b"?", dtype=np.uint8)
    return _core.read_json(content, 2, 2 + len(text), deepest, dict(arrays))


def as_python_reads(text):
    """Read JSON by the standard library, which takes more than we do: that is refused here."""

    def constant(name):
        raise ValueError(name)

    def number(digits):
        if not math.isfinite(value := float(digits)):
            raise ValueError(digits)
        return value

    def once(pairs):
        if len(found := dict(pairs)) != len(pairs):
            raise ValueError("a key comes twice")
        return found

    return json.loads(
        text.decode("ascii"), parse_constant=constant, parse_float=number, object_pairs_hook=once
    )


def assert_same(text):
    try:
        expected = as_python_reads(text)
    except ValueError:
        with pytest.raises(ValueError):
            read(text)
    else:
        # `repr` tells 1 from 1.0 and from True, and -0.0 from 0.0.
        assert repr(read(text)) == repr(expected)


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(10**40), 10**40),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters()),
    ),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(st.characters()), inner)),
)


@settings(max_examples=500)
@given(value=VALUES, separators=st.sampled_from([(",", ":"), (" ,\n", "\t: ")]))
def test_what_json_writes_is_read(value, separators):
    text = json.dumps(value, separators=separators).encode("ascii")
    assert repr(read(text)) == repr(value)
    assert_same(text)


PIECES = ["{", "}", "[", "]", ",", ":", '"', "\\", "u", "0", "1", "9", "-", "+", ".", "e", "E", "true", "false",
          "null", "NaN", "Infinity", " ", "\n", "\\ud800", "\\udc00", "\\u00e9", '"a"', "1e999", "12345678901234567890",
          "\x7f", "\x01", "é"]  # fmt: skip


@settings(max_examples=2000)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=12))
def test_anything_is_read_or_refused_as_the_standard_library_would(pieces):
    assert_same("".join(pieces).encode())


@settings(max_examples=500)
@given(value=VALUES, data=st.data())
def test_damaged_json_is_read_or_refused_as_the_standard_library_would(value, data):
    text = bytearray(json.dumps(value).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        text[at : at + data.draw(st.integers(0, 2))] = data.draw(st.sampled_from(PIECES)).encode()
    assert_same(bytes(text))


def test_depth_is_limited():
    assert read(b"[" * 100 + b"]" * 100, 100) is not None
    for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
        with pytest.raises(ValueError, match="too deep"):
            read(opening * 101 + b"1" + closing * 101, 100)
    assert read(b"[[],[],[[]]]", 3) == [[], [], [[]]]  # those beside each other do not add up


def test_errors_say_where():
    with pytest.raises(ValueError, match="a comma is missing at byte 3"):
        read(b"[1 2]")


def test_names_of_arrays_become_arrays():
    ours = np.arange(3.0)
    assert read(b'[{"$array": "a"}]', arrays={"a": ours})[0] is ours
    for other in (
        b'{"$array":"b"}',
        b'{"$array":["a"]}',
        b'{"$array":"a","b":1}',
        b'{"array":"a"}',
        b'{"$array":{}}',
    ):
        assert read(other, arrays={"a": ours}) == json.loads(other)


def test_texts_that_share_a_place_in_the_memory_of_names_stay_apart():
    texts = [f"{start}{'m' * (number % 9)}{number:05d}{'n' * (number % 7)}{start}" for start in ("abcdefgh", "q")
             for number in range(3000)]  # fmt: skip
    assert read(json.dumps(texts).encode()) == texts
    assert read(json.dumps({text: at for at, text in enumerate(texts)}).encode()) == dict(
        zip(texts, range(len(texts)), strict=True)
    )
