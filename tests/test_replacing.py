"""Files and folders appear whole or not at all, where links point to, and never in the place of a device."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rankwise.replacing as replacing_module
from rankwise.data import dump_svmlight
from rankwise.exceptions import InvalidInputError
from rankwise.replacing import replacing, replacing_path


def by_stream(path, content):
    with replacing(path) as stream:
        stream.write(content)


def by_name(path, content):
    with replacing_path(path) as unfinished:
        unfinished.write_bytes(content)


WAYS = pytest.mark.parametrize("write", [by_stream, by_name])


@WAYS
@pytest.mark.parametrize("exists", [True, False], ids=["a file", "dangling"])
def test_links_are_followed(write, exists, tmp_path):
    (tmp_path / "disk").mkdir()
    if exists:
        (tmp_path / "disk" / "file").write_bytes(b"old")
    (tmp_path / "one").symlink_to(Path("disk", "file"))
    (tmp_path / "two").symlink_to("one")
    write(tmp_path / "two", b"new")
    assert (tmp_path / "two").readlink() == Path("one")
    assert (tmp_path / "one").readlink() == Path("disk", "file")
    assert (tmp_path / "disk" / "file").read_bytes() == b"new"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["disk", "one", "two"]
    assert [entry.name for entry in (tmp_path / "disk").iterdir()] == ["file"]


@WAYS
def test_what_fails_leaves_everything_as_it_was(write, tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(TypeError):
        write(tmp_path / "link", "no bytes")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "link"]


@WAYS
def test_a_pipe_or_device_is_not_replaced(write, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(InvalidInputError, match=rf"{name} is no ordinary file.*Hint: name a file"):
            write(tmp_path / name, b"new")
    assert (tmp_path / "pipe").is_fifo()


def test_the_ending_of_the_link_says_how_text_is_compressed(tmp_path):
    (tmp_path / "rows.txt.gz").symlink_to("rows")
    dump_svmlight([[1.0]], [1], tmp_path / "rows.txt.gz")
    assert (tmp_path / "rows").read_bytes().startswith(b"\x1f\x8b")


_SLOW = """
import sys, time
from pathlib import Path
from rankwise.replacing import replacing_path
with replacing_path(Path(sys.argv[1])) as unfinished:
    unfinished.mkdir()
    print("writing", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(replacing_module, "_LOCKED_AFTER", 0)
    target = tmp_path / "a [store]"
    processes = []
    for _ in range(2):
        processes.append(
            subprocess.Popen([sys.executable, "-c", _SLOW, target], stdout=subprocess.PIPE, text=True)
        )
        assert processes[-1].stdout.readline() == "writing\n"
    killed, alive = processes
    killed.kill()
    killed.communicate()
    assert len(list(tmp_path.iterdir())) == 2
    with replacing_path(target) as unfinished:
        unfinished.write_bytes(b"new")
    left = [path.name for path in tmp_path.iterdir() if path != target]
    assert len(left) == 1  # of the one that is still at work
    alive.terminate()
    alive.communicate()
    with replacing_path(target) as unfinished:
        unfinished.write_bytes(b"newer")
    assert list(tmp_path.iterdir()) == [target]


def test_what_may_not_be_locked_yet_is_left(tmp_path):
    (tmp_path / ".s.abc.unfinished").mkdir()
    with replacing_path(tmp_path / "s") as unfinished:
        unfinished.write_bytes(b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".s.abc.unfinished", "s"]
