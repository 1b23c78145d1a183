"""Files and folders appear whole or not at all, where links point to, and never in the place of a device."""

import errno
import itertools
import os
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

import rankwise.files.hidden_folders as hidden_folders_module
import rankwise.files.replacing as replacing_module
from rankwise.data import open_store, save_store, save_svmlight
from rankwise.exceptions import InvalidInputError, OutputError
from rankwise.files.replacing import noting_written, recover, replacing, replacing_folder


def write_file(path, content, **options):
    with replacing(path, **options) as stream:
        stream.write(content)


def write_folder(path, content, **options):
    with replacing_folder(path, **options) as unfinished:
        unfinished.mkdir()
        (unfinished / "content").write_bytes(content)


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
    assert (tmp_path / "one").readlink() == Path("disk", "file")
    assert read(tmp_path / "disk" / "file") == b"new"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["disk", "one", "two"]
    assert [entry.name for entry in (tmp_path / "disk").iterdir()] == ["file"]


@WAYS
def test_what_fails_leaves_everything_as_it_was(write, read, tmp_path):
    write(tmp_path / "file", b"old")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(TypeError):
        write(tmp_path / "link", "no bytes")
    assert (tmp_path / "link").is_symlink()
    assert read(tmp_path / "file") == b"old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "link"]


def test_a_pipe_or_device_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        with pytest.raises(InvalidInputError, match=rf"{name} is no ordinary file.*Hint: name a file"):
            write_file(tmp_path / name, b"new")
    assert (tmp_path / "pipe").is_fifo()


@WAYS
def test_links_that_lead_back_to_themselves_are_told(write, read, tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    with pytest.raises(OutputError, match="one is a link that leads back to itself"):
        write(tmp_path / "one", b"new")
    assert (tmp_path / "one").is_symlink()


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


@WAYS
@pytest.mark.parametrize("name", ["n" * 256, "none/file", "nul\0byte"])
def test_names_that_cannot_be(write, read, name, tmp_path):
    with pytest.raises(OutputError, match=r"(?s)cannot be written: .*Hint: check the folder"):
        write(tmp_path / name, b"new")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fails_is_told_by_the_name_that_was_asked_for(tmp_path):
    write_file(tmp_path / "file", b"old")
    for reason, remedy in ((errno.ENOSPC, "make room"), (errno.EIO, "check the disk")):
        with (
            pytest.raises(
                OutputError, match=rf"{tmp_path}/file could not be .*nothing was changed.*{remedy}"
            ) as told,
            replacing(tmp_path / "file"),
        ):
            raise OSError(reason, os.strerror(reason), f"{tmp_path}/.file.hidden")
        assert "hidden" not in str(told.value)
    assert read_file(tmp_path / "file") == b"old"
    assert len(list(tmp_path.iterdir())) == 1


# --- what is on disk, and when ---


@WAYS
@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("at_once", [True, False], ids=["exchanged", "renamed"])
def test_data_and_names_are_on_disk_before_the_old_ones_go(
    write, read, durable, at_once, tmp_path, monkeypatch
):
    """What is brought to disk, in the order in which it is, with what then stood under the name."""
    write(tmp_path / "target", b"old")
    steps = []
    fsync = os.fsync

    def recording(descriptor):
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        steps.append((path.name if path != tmp_path else "around", read(tmp_path / "target")))
        fsync(descriptor)

    def removing(folder):
        if folder.is_dir() and list(folder.iterdir()):
            steps.append(("removed", read(tmp_path / "target")))
        hidden_folders_module.remove(folder)

    monkeypatch.setattr(os, "fsync", recording)
    monkeypatch.setattr(replacing_module, "remove", removing)
    if not at_once:
        monkeypatch.setattr(replacing_module, "_exchange", lambda *_: False)
    write(tmp_path / "target", b"new", durable=durable)
    assert read(tmp_path / "target") == b"new"
    before = [("content", b"old")] if write is write_folder else []
    after = [("removed", b"new")] if write is write_folder else []
    if durable:
        assert steps == [*before, ("new", b"old"), ("around", b"new"), *after]
    else:
        assert steps == after


@WAYS
def test_a_disk_that_does_not_confirm_is_not_said_to_have_changed_nothing(write, read, tmp_path, monkeypatch):
    write(tmp_path / "target", b"old")
    fsync = os.fsync

    def failing(descriptor):
        if Path(f"/proc/self/fd/{descriptor}").readlink() == tmp_path:
            raise OSError(errno.EIO, "Input/output error")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OutputError, match="target was written, but the disk did not confirm it"):
        write(tmp_path / "target", b"new")
    assert read(tmp_path / "target") == b"new"


# --- permissions ---


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o666])
def test_a_file_keeps_its_permissions(mode, tmp_path):
    write_file(tmp_path / "file", b"old")
    (tmp_path / "file").chmod(mode)
    write_file(tmp_path / "file", b"new")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_a_store_keeps_its_permissions_and_those_of_its_files(tmp_path):
    blocks = [([[1.0], [2.0]], [1, 0])]
    save_store(blocks, tmp_path / "store")
    (tmp_path / "store").chmod(0o700)
    (tmp_path / "store" / "values.bin").chmod(0o600)
    save_store(blocks, tmp_path / "store")
    assert stat.S_IMODE((tmp_path / "store").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "store" / "values.bin").stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")
def test_the_superuser_leaves_files_to_their_owners(tmp_path):
    write_file(tmp_path / "file", b"old")
    os.chown(tmp_path / "file", 12345, 23456)
    write_file(tmp_path / "file", b"new")
    now = (tmp_path / "file").stat()
    assert (now.st_uid, now.st_gid) == (12345, 23456)


def test_nobody_else_can_read_what_is_being_written(tmp_path):
    with replacing(tmp_path / "file"):
        (hidden,) = tmp_path.iterdir()
        assert stat.S_IMODE(hidden.stat().st_mode) == 0o700


# --- killed and interrupted ---

_SLOW = """
import sys, time
from pathlib import Path
from rankwise.files.replacing import replacing_folder
with replacing_folder(Path(sys.argv[1])) as unfinished:
    unfinished.mkdir()
    print("writing", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path):
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
    write_folder(target, b"new")
    left = [path.name for path in tmp_path.iterdir() if path != target]
    assert len(left) == 1  # of the one that is still at work
    alive.terminate()
    alive.communicate()
    write_folder(target, b"newer")
    assert list(tmp_path.iterdir()) == [target]


def test_without_locks_what_was_left_is_removed_after_a_day(tmp_path, monkeypatch):
    monkeypatch.setattr(hidden_folders_module, "fcntl", None)
    write_file(tmp_path / "s", b"old")
    for name, hours in (("young", 23), ("old", 25)):
        left = tmp_path / f".s.{name}.unfinished"
        left.mkdir()
        then = left.stat().st_mtime - 3600 * hours
        os.utime(left, (then, then))
    write_file(tmp_path / "s", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".s.young.unfinished", "s"]


def test_a_folder_that_is_taken_for_abandoned_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    claim, made = hidden_folders_module._claim, []

    def late(folder):
        made.append(folder)
        if len(made) == 1:
            shutil.rmtree(folder)
        return claim(folder)

    monkeypatch.setattr(hidden_folders_module, "_claim", late)
    with replacing(tmp_path / "file") as stream:
        stream.write(b"new")
    assert read_file(tmp_path / "file") == b"new"
    assert len(made) == 2


_KILLED_BETWEEN = """
import os, signal, sys
from pathlib import Path
import rankwise.files.replacing as module
from rankwise.data import save_store
module._exchange = lambda *_: False
rename = Path.rename
def dying(self, target):
    if self.name == "new" and sys.argv[2] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    rename(self, target)
    if self.name == "new":
        os.kill(os.getpid(), signal.SIGKILL)
Path.rename = dying
save_store([([[5.0]], [1])], sys.argv[1])
"""


@pytest.mark.parametrize("by", ["reader", "writer"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_between_two_renames_nothing_is_lost(by, when, tmp_path):
    """Where names cannot be exchanged at once: macOS, some network file systems."""
    target = tmp_path / "store"
    save_store([([[4.0]], [1])], target)
    done = subprocess.run([sys.executable, "-c", _KILLED_BETWEEN, target, when], check=False)
    assert done.returncode == -signal.SIGKILL
    assert target.exists() == (when == "after")
    if by == "writer":
        with pytest.raises(ZeroDivisionError), replacing_folder(target):
            raise ZeroDivisionError  # who begins to write has put it right, even if nothing comes of it
        assert [entry.name for entry in tmp_path.iterdir()] == ["store"]
    assert open_store(target).X.toarray().tolist() == [[5.0]]
    save_store([([[6.0]], [1])], target)
    assert list(tmp_path.iterdir()) == [target]


def test_a_store_that_somebody_removed_stays_removed(tmp_path):
    target = tmp_path / "store"
    save_store([([[4.0]], [1])], target)
    subprocess.run([sys.executable, "-c", _KILLED_BETWEEN, target, "after"], check=False)
    shutil.rmtree(target)
    recover(target)
    assert not target.exists()


def test_who_opens_meanwhile_may_do_the_last_step(tmp_path, monkeypatch):
    target = tmp_path / "store"
    write_folder(target, b"old")
    monkeypatch.setattr(replacing_module, "_exchange", lambda *_: False)
    rename = Path.rename

    def slow(self, where):
        if self.name == "new" and where == target:
            monkeypatch.setattr(Path, "rename", rename)
            recover(target)
        return rename(self, where)

    monkeypatch.setattr(Path, "rename", slow)
    write_folder(target, b"new")
    assert read_folder(target) == b"new"
    assert list(tmp_path.iterdir()) == [target]


@WAYS
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("when", ["_keep_access", "_sync", "_take_place", "_sync_folder", "remove"])
def test_a_signal_finds_the_old_or_the_new_and_no_leftovers(write, read, number, when, tmp_path, monkeypatch):
    """Before the exchange the old content stays; from then on the signal waits until everything is done."""
    write(tmp_path / "target", b"old")
    step = getattr(replacing_module, when)

    def interrupted(*arguments):
        os.kill(os.getpid(), number)
        step(*arguments)

    def stop(*_):
        raise KeyboardInterrupt

    before = signal.signal(number, stop)
    try:
        monkeypatch.setattr(replacing_module, when, interrupted)
        with pytest.raises(KeyboardInterrupt), noting_written() as written:
            write(tmp_path / "target", b"new")
    finally:
        signal.signal(number, before)
    is_new = when in {"_take_place", "_sync_folder", "remove"} and (
        when != "_sync_folder" or write is write_file
    )
    assert written == ([str(tmp_path / "target")] if is_new else [])
    assert read(tmp_path / "target") == (b"new" if is_new else b"old")
    assert list(tmp_path.iterdir()) == [tmp_path / "target"]


def test_the_ending_of_the_link_says_how_text_is_compressed(tmp_path):
    (tmp_path / "rows.txt.gz").symlink_to("rows")
    save_svmlight([[1.0]], [1], tmp_path / "rows.txt.gz")
    assert (tmp_path / "rows").read_bytes().startswith(b"\x1f\x8b")


def test_what_cannot_be_written_inside_is_named_itself(tmp_path):
    with pytest.raises(OutputError, match=r"inner\.txt"), replacing(tmp_path / "outer.txt"):
        write_file(tmp_path / "nowhere" / "inner.txt", b"new")
    assert list(tmp_path.iterdir()) == []


@WAYS
def test_systems_without_owners_or_folders_to_sync_write_the_same(write, read, tmp_path, monkeypatch):
    write(tmp_path / "it", b"old")
    monkeypatch.delattr(os, "chown")
    monkeypatch.setattr(os, "name", "other")
    write(tmp_path / "it", b"new")
    monkeypatch.undo()
    assert read(tmp_path / "it") == b"new"


@WAYS
def test_folders_that_have_nothing_to_bring_to_disk_are_no_failure(write, read, tmp_path, monkeypatch):
    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    write(tmp_path / "it", b"new")
    assert read(tmp_path / "it") == b"new"


def test_where_a_disk_keeps_a_cache_it_is_emptied(tmp_path, monkeypatch):
    asked = []

    def recorded(descriptor, command):
        asked.append((stat.S_ISREG(os.fstat(descriptor).st_mode), command))

    monkeypatch.setattr(replacing_module, "fcntl", SimpleNamespace(F_FULLFSYNC=51, fcntl=recorded))
    write_file(tmp_path / "it", b"new")
    assert asked == [(True, 51)]


@pytest.mark.parametrize(
    ("step", "number", "times", "outcome"),
    [
        ("first", errno.EACCES, None, "old"),
        ("second", errno.EACCES, None, "old"),
        ("first", errno.ENOENT, 1, "new"),
        ("first", errno.ENOENT, None, "old"),
    ],
)
def test_a_name_that_cannot_be_taken_keeps_what_it_had(step, number, times, outcome, tmp_path, monkeypatch):
    write_folder(tmp_path / "it", b"old")
    rename, left = Path.rename, itertools.count() if times is None else iter(range(times))

    def failing(self, target):
        is_first = self == tmp_path / "it"
        is_second = Path(target) == tmp_path / "it" and self.name != replacing_module._OLD
        if (is_first if step == "first" else is_second) and next(left, None) is not None:
            raise OSError(number, os.strerror(number))
        return rename(self, target)

    monkeypatch.setattr(replacing_module, "_exchange", lambda *_: False)
    monkeypatch.setattr(Path, "rename", failing)
    with nullcontext() if outcome == "new" else pytest.raises(OutputError, match="nothing was changed"):
        write_folder(tmp_path / "it", b"new")
    assert read_folder(tmp_path / "it") == outcome.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["it"]
