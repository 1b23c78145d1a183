"""Commands that run out of something: room on the disk, size of files, descriptors, addresses, processors.

A right answer, or an error that ends in a remedy with everything as it was before.
"""

import os
import subprocess
from contextlib import contextmanager

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
    starve(Attack(server, rows, tmp_path, "convert to a store"), campaign, 2, limit, *LIMITS[limit])


@pytest.mark.long
@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("command", WRITERS)
def test_many_limits(limit, command, server, rows, campaign, tmp_path):
    starve(Attack(server, rows, tmp_path, command), campaign, 60, limit, *LIMITS[limit])


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
        fill_up(Attack(server, rows, disk, command), campaign, 2)


@pytest.mark.long
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "report"])
def test_many_full_disks(command, server, rows, campaign, tmp_path):
    with small_disk(tmp_path / "disk", "4m") as disk:
        fill_up(Attack(server, rows, disk, command), campaign, 40)
