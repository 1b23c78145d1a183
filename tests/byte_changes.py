"""Bytes damaged at random, and numbers at the edges of what there is."""

WHOLE_NUMBERS = [
    *range(-2, 6),
    *(sign * 2**power for power in (30, 31, 32, 62) for sign in (-1, 1)),
    2**31 - 1,
    2**63 - 1,
]
REALS = [0.0, -0.0, 1.0, -1.0, 1e-320, 1e38, 1e308, -1e308, float("nan"), float("inf"), -float("inf")]

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


def overwrite(data, rng, places=()):
    """Change some bytes in place, so that what is said of places elsewhere stays true.

    Parameters
    ----------
    places : sequence of int
        Where to change something, two times in three; anywhere else.
    """
    data = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.choice(places) if places and rng.random() < 0.67 else rng.randrange(max(1, len(data)))
        kind = rng.randrange(4)
        if kind == 0 and data:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and data:
            data[at] = rng.choice((0, 1, 127, 128, 254, 255))
        else:
            width = rng.choice((4, 8))
            at -= at % width
            odd = (rng.choice(WHOLE_NUMBERS) % 2 ** (8 * width)).to_bytes(width, "little")
            data[at : at + width] = odd[: len(data) - at]
    return bytes(data)


def replace_cell(data, rng):
    """Put something odd, or another cell, in the place of a cell of text with commas."""
    lines = [line.split(b",") for line in data.split(b"\n")]
    for _ in range(rng.choice((1, 1, 2, 3))):
        cells = rng.choice(lines)
        cells[rng.randrange(len(cells))] = (
            rng.choice(rng.choice(lines)) if rng.random() < 0.4 else rng.choice(ODD)
        )
    return b"\n".join(b",".join(cells) for cells in lines)
