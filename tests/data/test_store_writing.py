"""Rows of text are written while the next ones are parsed: little at a time, and nothing that goes wrong is lost."""

import errno
import io
import itertools
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from making_stores import assert_holds, make
from rankwise.data import open_store, save_store, save_svmlight
from rankwise.data.store import files as store_files
from rankwise.data.store.files import StoreFile, WritesBehind
from rankwise.data.text import reader as text_reader
from rankwise.exceptions import InvalidInputError


class _Unhappy(io.RawIOBase):
    """Text whose end cannot be read."""

    def __init__(self, text):
        self._text = io.BytesIO(text)

    def readable(self):
        return True

    def readinto(self, buffer):
        if self._text.tell() > 200_000:
            raise OSError(errno.EIO, "Input/output error")
        return self._text.readinto(buffer)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Make segments so small that some are always under way."""
    monkeypatch.setattr(text_reader, "PARSED_AT_ONCE", 2000)
    monkeypatch.setattr(store_files, "SEGMENT", 1000)
    monkeypatch.setattr(store_files, "MOST_BEHIND", 3000)


@pytest.fixture
def text():
    out = io.BytesIO()
    rng = np.random.default_rng(0)
    save_svmlight(rng.random((3000, 9)), np.arange(3000.0), out, qid=np.arange(3000) // 10)
    return out.getvalue()


def test_a_write_that_fails_ends_it(text, tmp_path, monkeypatch):
    save_store([make()], tmp_path / "s")
    really, calls = StoreFile._write, itertools.count()

    def fail(self, content):
        if next(calls) == 50:
            raise OSError(errno.ENOSPC, "No space left on device")
        really(self, content)

    monkeypatch.setattr(StoreFile, "_write", fail)
    with pytest.raises(InvalidInputError, match="No space left"):
        save_store(io.BytesIO(text), tmp_path / "s", block_bytes=4000)
    assert next(calls) < 70  # nothing went on for long
    assert [entry.name for entry in tmp_path.iterdir()] == ["s"]
    assert_holds(open_store(tmp_path / "s"), make())


def test_the_last_write_counts_too(text, tmp_path, monkeypatch):
    really = StoreFile._write

    def fail(self, content):
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.05)
            raise OSError(errno.ENOSPC, "No space left on device")
        really(self, content)

    monkeypatch.setattr(StoreFile, "_write", fail)
    monkeypatch.setattr(store_files, "MOST_BEHIND", 1 << 30)
    with pytest.raises(InvalidInputError, match="No space left"):
        save_store(io.BytesIO(text), tmp_path / "s", block_bytes=4000)
    assert list(tmp_path.iterdir()) == []


def test_a_source_that_fails_waits_for_them(text, tmp_path):
    before = threading.active_count()
    with pytest.raises(InvalidInputError, match="cannot be read to its end"):
        save_store(_Unhappy(text), tmp_path / "s", block_bytes=4000)
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == before


def test_no_more_than_a_little_is_under_way(text, tmp_path, monkeypatch):
    most = 0
    really = WritesBehind.wait

    def watch(self, most_left=0):
        nonlocal most
        really(self, most_left)
        most = max(most, sum(size for _, size in self._outstanding))

    monkeypatch.setattr(WritesBehind, "wait", watch)
    slow = StoreFile._write
    monkeypatch.setattr(StoreFile, "_write", lambda self, content: (time.sleep(0.001), slow(self, content)))
    save_store(io.BytesIO(text), tmp_path / "s", block_bytes=4000)
    assert 0 < most <= 3000
    np.testing.assert_array_equal(open_store(tmp_path / "s").y, np.arange(3000.0))


def test_a_full_disk_leaves_the_old_store(tmp_path):
    """The system refuses to let the process write files beyond a limit, as a full disk would."""
    save_store([make()], tmp_path / "s")
    text = tmp_path / "text.txt"
    with text.open("wb") as file:
        save_svmlight(np.random.default_rng(0).random((100_000, 20)), np.arange(100_000.0), file)
    code = f"""
import resource, signal
from rankwise.data import save_store
from rankwise.exceptions import InvalidInputError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (6_000_000, 6_000_000))
try:
    save_store({str(text)!r}, {str(tmp_path / "s")!r})
except InvalidInputError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "could not be written: File too large; nothing was changed. Hint: make room" in said
    assert_holds(open_store(tmp_path / "s"), make())
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["s", "text.txt"]


def test_without_threads_rows_are_written_at_once(text, tmp_path, monkeypatch):
    """Each of the first threads may be started, or none of them."""
    really = threading.Thread.start
    for allowed in range(3):
        started = itertools.count()

        def start(thread, allowed=allowed, started=started):
            if next(started) >= allowed:
                raise RuntimeError("can't start new thread")
            really(thread)

        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", start)
            save_store(io.BytesIO(text), tmp_path / "s", block_bytes=4000, n_threads=1)
        np.testing.assert_array_equal(open_store(tmp_path / "s").y, np.arange(3000.0))


def test_advice_that_is_refused_costs_nothing(text, tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "posix_fadvise", refuse, raising=False)
    save_store(io.BytesIO(text), tmp_path / "s", block_bytes=4000)
    np.testing.assert_array_equal(open_store(tmp_path / "s").y, np.arange(3000.0))


def test_large_queries_are_written_before_the_next_is_parsed(tmp_path, monkeypatch):
    """A query makes a block of its own, however large: no two of them are held at once."""
    out = io.BytesIO()
    save_svmlight(np.random.default_rng(0).random((900, 9)), np.arange(900.0), out, qid=np.arange(900) // 300)
    writers = []
    really = StoreFile._write

    def watch(self, content):
        writers.append(threading.current_thread() is threading.main_thread())
        really(self, content)

    monkeypatch.setattr(StoreFile, "_write", watch)
    save_store(io.BytesIO(out.getvalue()), tmp_path / "s", block_bytes=4000)
    assert all(writers)
    np.testing.assert_array_equal(open_store(tmp_path / "s").y, np.arange(900.0))


def test_the_whole_first_block_tells_from_what_columns_count(tmp_path):
    """Column 0 comes in the second half of it."""
    lines = [b"1 1:0.5\n"] * 500 + [b"1 0:0.5\n"] * 500
    save_store(io.BytesIO(b"".join(lines)), tmp_path / "s", block_bytes=8000, n_threads=1)
    assert open_store(tmp_path / "s").header.first_column == 0
