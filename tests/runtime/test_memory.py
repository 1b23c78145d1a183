"""How much memory is left: in the system, and in the control groups around a process."""

import numpy as np
import pytest
import scipy.sparse as sp

from rankwise import RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.exceptions import MemoryLimitError
from rankwise.runtime import memory
from rankwise.runtime.memory import MemoryBudget, available_memory, check_columns_fit, fits


def write_group(folder, limit, usage, cached):
    """Write the files that the system shows of a control group."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{usage}\n")
    (folder / "memory.stat").write_text(f"anon 5\nactive_file {cached - 1}\ninactive_file 1\n")


def test_a_group_and_those_around_it(tmp_path, monkeypatch):
    (tmp_path / "cgroup").write_text("2:freezer:/elsewhere\n0::/outer/inner\n")
    groups = memory.control_groups(tmp_path / "cgroup", tmp_path)
    assert groups == (tmp_path / "outer" / "inner", tmp_path / "outer", tmp_path)
    monkeypatch.setattr(memory, "control_groups", lambda: groups)
    for limits, expected in (
        ({"": ("max", 900, 100), "outer": (1000, 500, 200)}, 700),
        ({"outer/inner": (600, 500, 350)}, 450),
        ({"outer": (1000, 900, 100)}, 200),
        ({"outer": (100, 900, 100)}, 0),
    ):
        for name, numbers in limits.items():
            write_group(tmp_path / name, *numbers)
        memory._limited_groups.cache_clear()
        assert available_memory() == expected
    memory._limited_groups.cache_clear()


def test_without_groups(tmp_path):
    assert memory.control_groups(tmp_path / "missing", tmp_path) == ()
    assert available_memory() > 0


def test_little_is_never_asked_for(monkeypatch):
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
        MemoryLimitError, match=r"32,000,000 columns takes 0\.3 GB .* 1\.0 GB during .* Hint: .* hash"
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
