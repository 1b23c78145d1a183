"""What must hold for any bytes that are loaded as a model: shared by the tests and the fuzzer."""

import hashlib
import io
import json
import struct
import warnings

import numpy as np
import scipy.sparse as sp

import rankwise
from rankwise import _core
from rankwise.exceptions import ModelFileError
from rankwise.persistence.container import Container
from rankwise.persistence.container_reader import read_container

PREFIXES = {1: "<8sHHI", 2: "<8sHHIII"}  # of each format
MANY = 1 << 12  # features; a model may take more, and rows of them would only cost time


def save(model, _):
    """Return the bytes of a model."""
    stream = io.BytesIO()
    rankwise.save(model, stream)
    return stream.getvalue()


USES = (
    lambda model, X: model.predict(sp.csr_matrix(X)),
    lambda model, X: model.rank(X, qid=[1, 1, 2, 2]),
    lambda model, X: model.score(X, [0.0, 1.0, 1.0, 0.0], qid=[1, 1, 2, 2]),
    save,
    lambda model, X: model.predict(X),
)


def format_of(data):
    """Return the major version that a file says, or the newest where it says none that is known."""
    return 1 if data[8:10] == b"\x01\0" else 2


def with_checksum(data):
    """Return the file whose checksum is missing."""
    if format_of(data) == 1:
        return data + hashlib.sha256(data).digest()
    checksum = _core.Xxh3()
    checksum.update(np.frombuffer(data, dtype=np.uint8))
    return data + checksum.digest.to_bytes(8, "little")


def without_checksum(data):
    return data[: -32 if format_of(data) == 1 else -8]


def taken_apart(data):
    """Return the header of a file that lacks its checksum, with the index of its arrays; its description; its arrays.

    There is no description in format 1.
    """
    prefix = PREFIXES[format_of(data)]
    at = struct.calcsize(prefix)
    texts = []
    for length in struct.unpack_from(prefix, data)[3:]:
        texts.append(json.loads(data[at : at + length]))
        at += length
    if len(texts) == 1:
        return texts[0], None, data[at:]
    return {"arrays": texts[0], **texts[1]}, texts[2], data[at:]


def put_together(header, description, rest, *, version=None, text=None):
    """Return the file, without its checksum; `text` takes the place of the header and of the index."""
    version = version or ((1, 0) if description is None else (2, 0))
    if description is None:
        texts = [json.dumps(header).encode() if text is None else text]
    elif text is None:
        own = (
            {key: value for key, value in header.items() if key != "arrays"}
            if isinstance(header, dict)
            else header
        )
        index = header.get("arrays") if isinstance(header, dict) else []
        texts = [json.dumps(part).encode() for part in (index, own, description)]
    else:
        texts = [text, text, json.dumps(description).encode()]
    prefix = PREFIXES[1 if description is None else 2]
    length = struct.calcsize(prefix) + sum(map(len, texts))
    texts[-1] += b" " * (max(-(-length // 64) * 64, 256) - length)
    return struct.pack(prefix, b"RANKWISE", *version, *map(len, texts)) + b"".join(texts) + rest


def opened(data):
    """Return a file as something to write again: its arrays, and a header that names them."""
    named, whole = (read_container(io.BytesIO(data), only_header=only) for only in (True, False))
    return Container(named.header, whole.arrays, named.description)


def load_and_use(source, uses):
    """Load a model file, and use what comes out; what can be saved again can be loaded again.

    Parameters
    ----------
    uses : sequence of callable
        What to do with the model.

    Returns
    -------
    str
        What the model was able to do.
    """
    model = rankwise.load(source)
    n_features = getattr(model, "n_features_in_", 3)
    if type(n_features) is not int or not 0 < n_features <= MANY:
        n_features = 3
    rows = np.linspace(-1.0, 1.0, 4 * n_features).reshape(4, n_features)
    done = "used"
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for use in uses:
            try:
                found = use(model, rows)
            except Exception:  # noqa: BLE001 - a model of nonsense may refuse to work; it may not crash
                done = "loaded"
                continue
            if use is save:
                rankwise.load(io.BytesIO(found))
            elif use is not USES[1]:  # a ranking is a list of lists
                assert np.shape(found)[:1] in {(4,), ()}
    return done


def check_input(data, uses=slice(None)):
    """Load a model file that lacks its checksum, and use what comes out.

    Parameters
    ----------
    uses : slice
        What to do with the model.

    Returns
    -------
    bool
        Whether it was loaded.
    """
    try:
        load_and_use(io.BytesIO(with_checksum(data)), USES[uses])
    except ModelFileError as error:
        assert "Hint: " in str(error)  # noqa: PT017 - either outcome is right
        return False
    return True
