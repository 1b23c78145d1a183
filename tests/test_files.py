"""Files and folders appear whole or not at all, where links point to, and never in the place of a device."""

import errno
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from rankwise.data import save_svmlight
from rankwise.exceptions import InvalidInputError, OutputError
from rankwise.files import replacing, replacing_folder


def write_file(path, content):
    with replacing(path) as stream:
        stream.write(content)


def write_folder(path, content):
    with replacing_folder(path) as new:
        new.mkdir()
        (new / "content").write_bytes(content)


def read_file(path):
    return path.read_bytes()


def read_folder(path):
    assert [entry.name for entry in path.iterdir()] == ["content"]
    return (path / "content").read_bytes()


WAYS = pytest.mark.parametrize(("write", "read"), [(write_file, read_file), (write_folder, read_folder)])


@WAYS
@pytest.mark.parametrize("exists", [True, False], ids=["there", "dangling"])
def test_links_are_followed(write, read, exists, tmp_path):
    (tmp_path / "disk").mkdir()
    if exists:
        write(tmp_path / "disk" / "file", b"old")
    (tmp_path / "one").symlink_to(Path("disk", "file"))
    (tmp_path / "two").symlink_to("one")
    write(tmp_path / "two", b"new")
    assert (tmp_path / "two").readlink() == Path("one")
    assert read(tmp_path / "disk" / "file") == b"new"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["disk", "one", "two"]
    assert [entry.name for entry in (tmp_path / "disk").iterdir()] == ["file"]


@WAYS
@pytest.mark.parametrize("error", [TypeError, KeyboardInterrupt, OSError])
def test_a_failure_leaves_everything_as_it_was(write, read, error, tmp_path, monkeypatch):
    write(tmp_path / "file", b"old")
    opened = replacing if write is write_file else replacing_folder
    with pytest.raises(OutputError if error is OSError else error), opened(tmp_path / "file"):
        raise error
    assert read(tmp_path / "file") == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]
    replace = Path.replace

    def interrupted(source, target):
        if target == tmp_path / "file":
            raise error
        return replace(source, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(OutputError if error is OSError else error):
        write(tmp_path / "file", b"new")
    assert read(tmp_path / "file") == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_pipe_or_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(InvalidInputError, match=rf"{name} is not an ordinary file.*Hint: name a file"):
            write_file(tmp_path / name, b"new")
    assert (tmp_path / "pipe").is_fifo()


def test_a_folder_is_not_replaced_by_a_file_nor_a_file_by_a_folder(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "precious").write_bytes(b"kept")
    (tmp_path / "file").write_bytes(b"kept")
    with pytest.raises(OutputError, match=r"folder is a folder. Hint: name a file"):
        save_svmlight([[1.0]], [1], tmp_path / "folder")
    with pytest.raises(OutputError, match=r"file is a file. Hint: name a folder"):
        write_folder(tmp_path / "file", b"new")
    assert (tmp_path / "folder" / "precious").read_bytes() == b"kept"
    assert (tmp_path / "file").read_bytes() == b"kept"


@WAYS
@pytest.mark.parametrize("name", ["n" * 255, "ü" * 120, "a [store]", "..x"])
def test_names_of_any_length_and_kind(write, read, name, tmp_path):
    target = tmp_path / name
    write(target, b"old")
    write(target, b"new")
    assert read(target) == b"new"
    assert list(tmp_path.iterdir()) == [target]


def test_an_error_of_the_disk_names_the_target(tmp_path):
    with pytest.raises(OutputError, match=r"none/file could not be written: No such file.*Hint: check"):
        write_file(tmp_path / "none" / "file", b"new")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "another name")
    with (
        pytest.raises(OutputError, match=r"file could not be written: No space"),
        replacing(tmp_path / "file"),
    ):
        raise full
    assert list(tmp_path.iterdir()) == []


@WAYS
def test_content_and_names_are_brought_to_disk_in_order(write, read, tmp_path, monkeypatch):
    write(tmp_path / "target", b"old")
    steps = []
    fsync = os.fsync

    def recording(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        steps.append((path.name if path != tmp_path else "around", read(tmp_path / "target")))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recording)
    write(tmp_path / "target", b"new")
    assert read(tmp_path / "target") == b"new"
    before = [("content", b"old")] if write is write_folder else []
    assert steps == [*before, ("new", b"old"), ("around", b"new")]


@pytest.mark.parametrize(("number", "fails"), [(errno.EIO, True), (errno.EINVAL, False)])
def test_names_that_cannot_be_brought_to_disk(number, fails, tmp_path, monkeypatch):
    """A disk that fails is an error; a file system that cannot synchronise folders is none."""
    fsync = os.fsync

    def failing(descriptor):
        if Path(f"/proc/self/fd/{descriptor}").readlink() == tmp_path:
            raise OSError(number, os.strerror(number))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OutputError, match="Input/output error") if fails else nullcontext():
        write_file(tmp_path / "file", b"new")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_a_file_keeps_its_permissions(mode, tmp_path):
    write_file(tmp_path / "file", b"old")
    (tmp_path / "file").chmod(mode)
    with replacing(tmp_path / "file") as stream:
        stream.write(b"new")
        (folder,) = (entry for entry in tmp_path.iterdir() if entry.name.startswith("."))
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_the_ending_of_the_link_says_how_text_is_compressed(tmp_path):
    (tmp_path / "rows.txt.gz").symlink_to("rows")
    save_svmlight([[1.0]], [1], tmp_path / "rows.txt.gz")
    assert (tmp_path / "rows").read_bytes()[:2] == b"\x1f\x8b"
