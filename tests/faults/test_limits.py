"""Commands that run out of something: room on the disk, size of files, descriptors, addresses, processors.

A right answer, or an error that ends in a remedy with everything as it was before.
"""

import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from attacks import COMMANDS, Attack, digest

WRITERS = ("convert to a store", "convert to text", "fit", "predict")


def check(attack, campaign, wanted, current, done):
    """Look at what came of a command that lacked something."""
    assert done.code in {0, 1}, (done.code, done.said)
    found = digest(attack.target)
    if done.code == 0:
        assert found == attack.contents[wanted]
        campaign.count("done all the same")
        return wanted
    assert found == attack.contents[current]
    lines = done.said.strip().splitlines()
    assert any(line.startswith("rankwise: error: ") for line in lines), done.said
    assert any(line.startswith("Hint: ") for line in lines), done.said
    assert attack.left_over() == []
    campaign.count("refused")
    return current


def starve(attack, campaign, n, limit, low, high):
    """Run with limits at random between two numbers, on a logarithmic scale."""
    current = "a"
    for _ in campaign.faults(n):
        wanted = "ab"[int(campaign.rng.integers(2))]
        value = int(low * (high / low) ** campaign.rng.random())
        done = attack.run(wanted, limits=[(limit, value)])
        current = check(attack, campaign, wanted, current, done)


# With fewer descriptors than that a folder can be neither read nor removed.
LIMITS = {
    "RLIMIT_FSIZE": (100, 1_000_000),
    "RLIMIT_NOFILE": (10, 60),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_limits(limit, server, rows, campaign, tmp_path):
    starve(Attack(server, rows, tmp_path, "convert to a store"), campaign, 5, limit, *LIMITS[limit])


@pytest.mark.long
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("command", WRITERS)
def test_many_limits(limit, command, server, rows, campaign, tmp_path):
    starve(Attack(server, rows, tmp_path, command), campaign, 60, limit, *LIMITS[limit])


@pytest.mark.long
@pytest.mark.parametrize("command", WRITERS)
def test_address_space(command, server, rows, campaign, tmp_path):
    """So little that arrays, threads or decompressors are refused, beyond what the process holds already."""
    attack = Attack(server, rows, tmp_path, command)
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    held = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmSize"))
    current = "a"
    for _ in campaign.faults(40):
        wanted = "ab"[int(campaign.rng.integers(2))]
        room = int(2**20 * 4000.0 ** campaign.rng.random())
        done = attack.run(wanted, limits=[("RLIMIT_AS", held + room)])
        current = check(attack, campaign, wanted, current, done)


@contextmanager
def control_group(controller):
    folder = Path("/sys/fs/cgroup", controller, f"rankwise-faults-{os.getpid()}")
    if not folder.parent.is_dir():
        pytest.skip(f"no control groups of version 1 here that limit {controller}")
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here ({error})")
    try:
        yield folder
    finally:
        folder.rmdir()


# What a group allows, at random between two numbers: bytes that the process may take beyond what it was forked with,
# and processes and threads.
GROUPS = {
    "memory": ("memory.limit_in_bytes", 2**20, 2**28),
    "pids": ("pids.max", 1, 6),
}


def confine(attack, campaign, n, controller):
    """Run in a control group; whom the system kills for its memory has changed nothing, or all."""
    file, low, high = GROUPS[controller]
    current = "a"
    with control_group(controller) as group:
        for _ in campaign.faults(n):
            wanted = "ab"[int(campaign.rng.integers(2))]
            (group / file).write_text(str(round(low * (high / low) ** campaign.rng.random())))
            done = attack.run(wanted, group=group)
            if done.code == 128 + signal.SIGINT and "OpenBLAS blas_thread_init" in done.said:
                # OpenBLAS answers a thread that it may not start with SIGINT to its own process.
                assert digest(attack.target) == attack.contents[current]
                assert "interrupted." in done.said
                campaign.count("ended by OpenBLAS")
                continue
            if done.code != -signal.SIGKILL:
                current = check(attack, campaign, wanted, current, done)
                continue
            found = attack.settle()
            assert found in {attack.contents[current], attack.contents[wanted]}
            current = next(name for name in (wanted, current) if attack.contents[name] == found)
            campaign.count("killed by the system")


@pytest.mark.parametrize("controller", GROUPS)
def test_control_groups(controller, server, rows, campaign, tmp_path):
    confine(Attack(server, rows, tmp_path, "fit"), campaign, 5, controller)


@pytest.mark.long
@pytest.mark.parametrize("controller", GROUPS)
@pytest.mark.parametrize("command", WRITERS)
def test_many_control_groups(controller, command, server, rows, campaign, tmp_path):
    confine(Attack(server, rows, tmp_path, command), campaign, 40, controller)


def test_one_processor(server, rows, campaign, tmp_path):
    attack = Attack(server, rows, tmp_path, "fit")
    before = attack.contents["b"]
    done = attack.run("b", cpus=[min(os.sched_getaffinity(0))])
    assert done.code == 0, done.said
    campaign.count("done")
    assert digest(attack.target) == before  # models do not depend on the number of processors


@contextmanager
def small_disk(folder, size):
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill_up(attack, campaign, n):
    """Leave a random amount of room on the disk that is written to."""
    current, filler = "a", attack.folder / "filler"
    for _ in campaign.faults(n):
        wanted = "ab"[int(campaign.rng.integers(2))]
        free = os.statvfs(attack.folder).f_bavail * os.statvfs(attack.folder).f_frsize
        filler.write_bytes(bytes(max(0, free - int(4096 * 500 ** campaign.rng.random()))))
        done = attack.server.run(attack.lines[wanted], cwd=attack.folder)
        filler.unlink()
        assert "Traceback" not in done.said, done.said
        current = check(attack, campaign, wanted, current, done)


@pytest.mark.parametrize("command", ["convert to a store"])
def test_a_full_disk(command, server, rows, campaign, tmp_path):
    with small_disk(tmp_path / "disk", "4m") as disk:
        fill_up(Attack(server, rows, disk, command), campaign, 5)


@pytest.mark.long
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "report"])
def test_many_full_disks(command, server, rows, campaign, tmp_path):
    with small_disk(tmp_path / "disk", "4m") as disk:
        fill_up(Attack(server, rows, disk, command), campaign, 40)
