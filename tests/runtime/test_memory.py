"""How much memory is left: in the system, and in the control groups around a process."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise import RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.exceptions import MemoryLimitError
from rankwise.runtime import memory
from rankwise.runtime.memory import MemoryBudget, available_memory, check_columns_fit, fits, group_available

NO_LIMIT = 2**63 - 1


def make_group(folder, version, limit, usage, cached):
    """Write what the system shows of a group."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
        2: ("memory.max", "memory.current", ""),
    }
    limit_name, usage_name, prefix = names[version]
    (folder / limit_name).write_text(f"{limit}\n")
    (folder / usage_name).write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(
        f"anon 5\n{prefix}active_file {cached - 1}\n{prefix}inactive_file 1\n"
    )


def member(tmp_path, *lines):
    process = tmp_path / "process"
    process.mkdir()
    (process / "cgroup").write_text("".join(f"{line}\n" for line in lines))
    return process


@pytest.mark.parametrize("version", [1, 2])
def test_a_group_and_those_around_it(tmp_path, version):
    root = tmp_path / "root"
    base = root / "memory" if version == 1 else root
    line = "4:cpu,memory:/outer/inner" if version == 1 else "0::/outer/inner"
    process = member(tmp_path, "2:freezer:/elsewhere", line)
    make_group(base, version, "max" if version == 2 else NO_LIMIT, 900, 100)
    make_group(base / "outer", version, 1000, 500, 200)
    assert group_available(process, root) == 700
    make_group(base / "outer" / "inner", version, 600, 500, 350)
    assert group_available(process, root) == 450
    make_group(base / "outer", version, 1000, 900, 100)
    assert group_available(process, root) == 200
    make_group(base / "outer", version, 100, 900, 100)
    assert group_available(process, root) == 0


def test_a_container_that_sees_its_group_as_the_root(tmp_path):
    process = member(tmp_path, "0::/docker/0123")
    make_group(tmp_path / "root", 2, 1000, 400, 100)
    assert group_available(process, tmp_path / "root") == 700


def test_without_groups(tmp_path):
    assert group_available(tmp_path, tmp_path) == NO_LIMIT
    assert available_memory() > 0


def test_a_real_group(tmp_path):
    """Under a limit of 300 MB, with more than that of pages of a file read, the limit less the process is left."""
    parent = Path("/sys/fs/cgroup/memory")
    group = parent / f"rankwise-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no memory control group of version 1 can be made here ({error})")
    big = tmp_path / "big"
    with big.open("wb") as stream:
        for _ in range(400):
            stream.write(bytes(10**6))
    script = (
        f"import os; open({str(group / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"
        "from rankwise.runtime.memory import available_memory\n"
        f"f = open({str(big)!r}, 'rb', buffering=0)\n"
        "os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)\n"
        "while f.read(1 << 20): pass\n"
        "print(available_memory())"
    )
    try:
        (group / "memory.limit_in_bytes").write_text(str(300 * 10**6))
        with big.open("rb") as stream:
            os.fsync(stream.fileno())
        said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    finally:
        group.rmdir()
    assert 150 * 10**6 < int(said.stdout) < 300 * 10**6


def test_little_is_never_asked_for_and_groups_are_looked_for_once(monkeypatch):
    """Reading the files of control groups took a third of a small fit."""
    looked = []
    original = memory._limited_groups
    monkeypatch.setattr(memory, "_limited_groups", lambda *paths: looked.append(paths) or original(*paths))
    memory._own_groups.cache_clear()
    assert available_memory() > 0
    assert available_memory() > 0
    assert len(looked) == 1
    monkeypatch.setattr(memory, "available_memory", lambda: 10**8)
    assert fits(8 * 10**7)
    assert not fits(9 * 10**7)
    assert fits(9 * 10**7, 1.0)
    monkeypatch.setattr(memory, "available_memory", lambda: 0)
    assert fits(2**26)
    assert not fits(2**26 + 1)


def test_a_budget():
    assert MemoryBudget(100).allows(100)
    assert not MemoryBudget(100).allows(101)
    assert 0 < MemoryBudget().free < available_memory() * 1.5


def test_columns_whose_vectors_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10**9)
    check_columns_fit(30_000_000)
    with pytest.raises(
        MemoryLimitError, match=r"32,000,000 columns takes 0\.3 GB .* 1\.0 GB while .* Hint: .* hash"
    ):
        check_columns_fit(32_000_000)


@pytest.mark.parametrize("model", [RankRLS(), RankRLSCV(), RankSVM(), RankSVMCV()], ids=repr)
@pytest.mark.parametrize("way", ["labels", "pairs"])
def test_estimators_refuse_more_columns_than_memory_before_they_make_vectors(monkeypatch, model, way):
    """One number of a column that is a typo must not end the process."""
    monkeypatch.setattr(memory, "available_memory", lambda: 10**9)
    columns = np.array([2_000_000_000, 0, 2_000_000_000, 0], dtype=np.int32)
    X = sp.csr_matrix((np.arange(1.0, 5.0), columns, np.arange(5)), shape=(4, 2_000_000_001))
    fit, learned = (model.fit, [1, 0, 1, 0]) if way == "labels" else (model.fit_pairs, [[0, 1], [2, 3]])
    with pytest.raises(MemoryLimitError, match=r"2,000,000,001 columns"):
        fit(X, learned)


def test_folds_in_lockstep_count_once_each(monkeypatch):
    """Four vectors fit, and those of five folds do not."""
    monkeypatch.setattr(memory, "available_memory", lambda: 10**8)
    n_columns = 3_000_000
    X = sp.csr_matrix(
        (np.arange(1.0, 21.0), (np.arange(20), np.arange(20) % 7 * 400_000)), shape=(20, n_columns)
    )
    with pytest.raises(MemoryLimitError, match=r"3,000,000 columns"):
        RankRLSCV().fit(X, np.arange(20) % 2, qid=np.arange(20) // 4)


LITTLE_ROOM = """
import resource, sys
import numpy as np
from rankwise import RankRLS
from rankwise.exceptions import MemoryLimitError
X = np.random.default_rng(0).normal(size=(400, 100))
with open("/proc/self/statm") as statm:
    held = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (held + (int(sys.argv[1]) << 20),) * 2)
try:
    RankRLS(solver="direct").fit(X, X[:, 0])
    print("fitted")
except MemoryLimitError as error:
    print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no /proc says how much this process holds")
@pytest.mark.parametrize(("room", "said"), [(10, "Hint: allow 80 MiB more"), (2000, "fitted")])
def test_no_room_for_the_work_space_of_linear_algebra_is_told(room, said):
    """OpenBLAS would try for ever, or end the process."""
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_ROOM, str(room)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "RANKWISE_NUM_THREADS": "1"},
    )
    assert said in done.stdout, done.stderr
