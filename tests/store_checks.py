"""What must hold for any files that are opened as a store: shared by the tests and the fuzzer.

An input is a store in one piece: a byte of options, each file behind two bytes with its length, and the header; files
with the ids of rows are there where the options say so. Its checksums are filled in before it is opened, unless the
options say otherwise: else nothing would come past them.
"""

import io
import json
import pickle
import shutil
import warnings

import numpy as np

from rankwise import _core
from rankwise.data import open_store, save_store, save_svmlight
from rankwise.data.queries import encode_queries, one_query
from rankwise.data.store.format import FILES, HEADER, ITEM_FILES, _own_checksum
from rankwise.data.store.regroup import Regrouping
from rankwise.design import as_design
from rankwise.exceptions import InvalidInputError
from rankwise.pairs.labels import label_graph

WRONG_HEADER, WRONG_FILES, ON_DISK, ITEMS = 1, 2, 4, 8  # the options
MANY = 1 << 12  # columns; a store may have more, and vectors of them would only cost time


def put_together(options, files, header):
    """Return the input for files and the text of a header."""
    parts = (len(content).to_bytes(2, "little") + content for content in files.values())
    options = options & ~ITEMS | (ITEMS if ITEM_FILES[0] in files else 0)
    return bytes([options]) + b"".join(parts) + header


def take_apart(data):
    """Return the options, the files and the text of the header; whatever the bytes are, they mean something."""
    files, at = {}, 1
    for name in FILES + (ITEM_FILES if data[:1] and data[0] & ITEMS else ()):
        end = at + 2 + int.from_bytes(data[at : at + 2], "little")
        files[name] = data[at + 2 : end]
        at = end
    return (data[0] if data else 0), files, data[at:]


def text_of(header):
    """Return the text of a header, which may be given as what it says."""
    return header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()


def complete(options, files, given):
    """Return the text of a header with the checksums that the options ask for; it is given as text or as a dict."""
    try:
        header = json.loads(given) if isinstance(given, bytes) else given
        if not isinstance(header, dict):
            return given
        listed = header.get("files")
        if not options & WRONG_FILES and isinstance(listed, dict):
            for name, content in files.items():
                _complete_segments(listed.get(name), content)
        if not options & WRONG_HEADER:
            header.pop("checksum", None)
            header["checksum"] = _own_checksum(header)
        return json.dumps(header).encode()
    except (ValueError, RecursionError):
        return text_of(given)


def _complete_segments(segments, content):
    at = 0
    for segment in segments if isinstance(segments, list) else ():
        if not isinstance(segment, list) or len(segment) != 2 or not isinstance(segment[1], str):
            continue
        if isinstance(segment[0], (int, float)) and 0 <= segment[0] <= len(content):
            end = at + int(segment[0])
            piece = np.frombuffer(content[at:end], dtype=np.uint8)
            segment[1] = f"{_core.checksum(piece):016x}"
            at = end


def input_of(folder):
    """Return the input for a store that is whole."""
    header = json.loads((folder / HEADER).read_text())
    files = {name: (folder / name).read_bytes() for name in header["files"]}
    header["files"] = {name: [[size, ""] for size, _ in parts] for name, parts in header["files"].items()}
    del header["checksum"]
    return put_together(0, files, json.dumps(header, separators=(",", ":")).encode())


def check_input(data, folder):
    """Write the store of an input into a folder, open and use it; return whether it was opened."""
    options, files, text = take_apart(data)
    folder.mkdir(exist_ok=True)
    for name, content in {**files, HEADER: complete(options, files, text)}.items():
        (folder / name).write_bytes(content)
    try:
        store = open_store(folder, n_threads=1)
        use(store)
    except InvalidInputError as error:
        assert "Hint: " in str(error)  # noqa: PT017 - either outcome is right
        return False
    use_again(store, folder)
    return True


def use(store, uses=slice(None)):
    """Touch everything that a store offers: it is whole, or says that it is damaged.

    Parameters
    ----------
    uses : slice
        Which of the uses to make of it, besides looking at labels and ids.
    """
    n_rows, n_columns = store.X.shape
    qid = store.qid
    assert store.y.shape == (n_rows,)
    assert qid is None or qid.shape == (n_rows,)
    items = store.item_ids
    assert items is None or items.shape == (n_rows,)
    assert store.n_bytes >= 0
    assert repr(store)
    if n_rows and n_columns <= MANY:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for use_it in USES[uses]:
                use_it(store, qid)


def _read_blocks(store, qid):
    read = 0
    for X, y, ids in store.blocks(200):
        assert X.shape == (y.size, store.X.shape[1])
        assert (ids is None) == (qid is None)
        read += y.size
    assert read == store.X.shape[0]


def _multiply(store, qid):
    n_rows, n_columns = store.X.shape
    design = as_design(store.X, 1)
    one, two = np.ones(n_columns), np.ones((n_columns, 2))
    assert design.dot(one).shape == (n_rows,)
    assert design.tdot(design.dot(two)).shape == (n_columns, 2)
    assert (store.X @ one).shape == (n_rows,)
    design.relabel_columns()
    assert design.dot(one).shape == (n_rows,)


def _choose_rows(store, qid):
    n_rows, n_columns = store.X.shape
    design = as_design(store.X, 1)
    assert design.rows(slice(n_rows // 2, None)).dot(np.ones(n_columns)).shape == (n_rows - n_rows // 2,)
    assert design.rows(np.arange(n_rows)[::-1]).tdot(np.ones(n_rows)).shape == (n_columns,)


def _train(ties, cost):
    """Make the products of training with one kind of pairs."""

    def multiply(store, qid):
        n_rows, n_columns = store.X.shape
        queries = one_query(n_rows) if qid is None else encode_queries(qid)
        blocks = label_graph(store.y, queries, ties=ties, cost=cost).blocks
        design = as_design(store.X, 1)
        product = design.gram_product(blocks)
        if product is not None:
            assert product(np.ones(n_columns)).shape == (n_columns,)
            assert product(np.ones((n_columns, 2))).shape == (n_columns, 2)
        assert design.gram_diagonal(blocks).shape == (n_columns,)
        if n_columns <= 64:
            assert design.gram_matrix(blocks).shape == (n_columns, n_columns)

    return multiply


USES = (
    _read_blocks,
    _multiply,
    _choose_rows,
    _train("include", "magnitude"),
    _train("exclude", "magnitude"),
    _train("exclude", "relative"),
)


def use_again(store, folder):
    """Do what takes files: another process's matrix, a copy, queries brought together, and text."""
    n_rows, n_columns = store.X.shape
    aside = folder.with_name(folder.name + "-aside")
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert pickle.loads(pickle.dumps(store.X)).shape == (n_rows, n_columns)
        try:
            for regroup in (False, True):
                save_store(store, aside, regroup=regroup, dtype=store.X.dtype, missing="nan")
                assert open_store(aside, n_threads=1).X.shape == (n_rows, n_columns)
            blocks = Regrouping(store, folder.with_name(folder.name + "-buckets")).blocks(300)
            assert sum(rows.labels.size for rows in blocks) == n_rows
            save_svmlight(store.X, store.y, io.BytesIO(), qid=store.qid, missing="nan")
        except InvalidInputError:
            pass  # such as a query that comes twice
        finally:
            for name in ("-aside", "-buckets"):
                shutil.rmtree(folder.with_name(folder.name + name), ignore_errors=True)
