"""Several at once on one name, one model or one store: processes, threads, forks, joblib's workers."""

import io
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, cross_val_score

import rankwise
from on_cluster import local_cluster
from rankwise import KernelRankRLS, RankRLS, RankRLSCV, RankSVM
from rankwise.data import open_store, save_store
from strategies import make_problem

# --- processes on one name ---

_WRITER = """
import sys, time
import numpy as np
import rankwise
from rankwise.data import save_store
target, kind, own, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
X = np.full((300, 40), own)
model = rankwise.RankRLS().fit(np.arange(12.0).reshape(6, 2), np.arange(6.0))
model.coef_ = np.full(2, own)
n, until = 0, time.monotonic() + seconds
while time.monotonic() < until:
    if kind == "store":
        save_store([(X, np.full(300, own), np.arange(300) // 10)], target)
    else:
        model.save(target)
    n += 1
print(n)
"""


@pytest.mark.parametrize("kind", ["store", "model"])
@pytest.mark.parametrize(
    ("writers", "seconds"), [(2, 1.0), pytest.param(4, 20.0, marks=pytest.mark.long)], ids=["few", "many"]
)
def test_readers_find_a_whole_one_while_others_write_it(kind, writers, seconds, campaign, tmp_path):
    target = tmp_path / kind
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, target, kind, str(own), str(seconds)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for own in range(1, writers + 1)
    ]
    while not target.exists():
        time.sleep(0.01)
    while any(process.poll() is None for process in processes):
        if kind == "store":
            store = open_store(target)
            values = {*np.unique(store.X.data).tolist(), *np.unique(store.y).tolist()}
        else:
            values = set(rankwise.load(target).coef_.tolist())
        assert len(values) == 1, "a mixture of two"
        campaign.count("read")
    for process in processes:
        for _ in range(int(process.communicate()[0])):
            campaign.count("written")
        assert process.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == [kind]


# --- threads ---

MODELS = (
    RankRLS(solver="cg", n_threads=2),
    RankRLSCV(cv=3, n_threads=2),
    RankSVM(n_threads=2),
    KernelRankRLS(basis=30, n_threads=2),
)


@pytest.mark.parametrize("times", [2, pytest.param(40, marks=pytest.mark.long)], ids=["few", "many"])
def test_threads_that_fit_and_predict_at_once_get_what_one_would(times, campaign):
    problems = [make_problem(seed, rows=120, features=6, queries=8) for seed in range(4)]

    def work(model, problem):
        fitted = clone(model).fit(problem.X, problem.y, qid=problem.qid)
        return fitted.predict(problem.X)

    jobs = [(model, problem) for model in MODELS for problem in problems]
    alone = [work(*job) for job in jobs]
    for _ in campaign.faults(times):
        together = joblib.Parallel(n_jobs=8, backend="threading")(joblib.delayed(work)(*job) for job in jobs)
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one, other)
            campaign.count("the same bits")


# --- forks ---


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("times", [6, pytest.param(150, marks=pytest.mark.long)], ids=["few", "many"])
def test_a_child_forked_while_threads_fit_can_fit(times, campaign):
    """What another thread holds at that moment is never given back in the child."""
    problem = make_problem(1, rows=400, features=10, queries=20)
    stop = threading.Event()

    def work():
        while not stop.is_set():
            RankRLSCV(cv=3, n_threads=2).fit(problem.X, problem.y, qid=problem.qid)
            RankSVM(n_threads=2).fit(problem.X, problem.y, qid=problem.qid)

    expected = RankRLS().fit(problem.X, problem.y, qid=problem.qid).coef_
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in campaign.faults(times):
            time.sleep(float(campaign.rng.uniform(0, 0.05)))
            child = os.fork()
            if child == 0:
                signal.alarm(60)  # a child that hangs is ended
                try:
                    coef = RankRLS().fit(problem.X, problem.y, qid=problem.qid).coef_
                    RankRLSCV(cv=3).fit(problem.X, problem.y, qid=problem.qid)
                    os._exit(0 if np.allclose(coef, expected) else 3)
                finally:
                    os._exit(4)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert status == 0, "the child hung" if status == -signal.SIGALRM else f"status {status}"
            campaign.count("fitted in a child")
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _fit_in_worker(X, y, qid):
    return RankRLS().fit(X, y, qid=qid).coef_


def test_forked_workers_and_stores(campaign, tmp_path):
    problem = make_problem(2, rows=200, features=6, queries=10)
    save_store([(problem.X, problem.y, problem.qid)], tmp_path / "store", regroup=True)
    store = open_store(tmp_path / "store")
    expected = _fit_in_worker(store.X, store.y, store.qid)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for coef in pool.starmap(_fit_in_worker, [(store.X, store.y, store.qid)] * 4):
            np.testing.assert_allclose(coef, expected, rtol=1e-12)
            campaign.count("fitted in a worker")


@pytest.mark.long
@pytest.mark.parametrize("shared_memory", [True, False])
def test_loky_workers_and_stores(shared_memory, campaign, tmp_path, monkeypatch):
    """With and without /dev/shm, where joblib keeps what its workers share."""
    if not shared_memory:
        monkeypatch.setenv("JOBLIB_TEMP_FOLDER", str(tmp_path))
    problem = make_problem(2, rows=400, features=6, queries=20)
    save_store([(problem.X, problem.y, problem.qid)], tmp_path / "store", regroup=True)
    store = open_store(tmp_path / "store")
    with joblib.parallel_backend("loky", n_jobs=2):
        for coef in joblib.Parallel()(
            joblib.delayed(_fit_in_worker)(store.X, store.y, store.qid) for _ in range(4)
        ):
            np.testing.assert_allclose(coef, _fit_in_worker(store.X, store.y, store.qid), rtol=1e-12)
            campaign.count("fitted in a worker")
    scores = cross_val_score(RankRLS(), problem.X, problem.y, cv=GroupKFold(3), groups=problem.qid, n_jobs=2)
    assert np.isfinite(scores).all()


_WITHOUT_SHARED_MEMORY = """
import os, sys
assert not os.path.exists("/dev/shm")
import numpy as np
from sklearn.model_selection import GroupKFold, cross_val_score
from rankwise import RankRLS
from rankwise.cli import main
rng = np.random.default_rng(0)
X, y, groups = rng.normal(size=(60, 3)), rng.normal(size=60), np.arange(60) // 10
scores = [cross_val_score(RankRLS(), X, y, cv=GroupKFold(3), groups=groups, n_jobs=n) for n in (1, 2)]
assert (scores[0] == scores[1]).all()
sys.exit(main(["demo", "-o", sys.argv[1]]))
"""


@pytest.mark.long
def test_without_shared_memory(campaign, tmp_path):
    """In a view of the file system that has no /dev/shm: workers and commands do what they do with it."""
    script = tmp_path / "script.py"
    script.write_text(_WITHOUT_SHARED_MEMORY)
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /dev"], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("file systems cannot be hidden here")
    # Devices that Python opens are made again.
    devices = "mknod /dev/null c 1 3; mknod /dev/urandom c 1 9; mknod /dev/random c 1 8"
    inside = f"mount -t tmpfs tmpfs /dev && {devices} && {sys.executable} {script} {tmp_path / 'data'}"
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", inside], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    campaign.count("done")


@pytest.mark.long
def test_fits_beside_workers_of_dask(campaign, tmp_path):
    """Workers fit from a store that the client fits from as well: each gets what it gets alone."""
    problem = make_problem(2, rows=400, features=6, queries=20)
    save_store([(problem.X, problem.y, problem.qid)], tmp_path / "store", regroup=True)
    store = open_store(tmp_path / "store")
    expected = _fit_in_worker(store.X, store.y, store.qid)
    with local_cluster(2) as client:
        pending = [
            client.submit(_fit_in_worker, store.X, store.y, store.qid, pure=False) for _ in campaign.faults(6)
        ]
        for future in pending:
            np.testing.assert_array_equal(_fit_in_worker(store.X, store.y, store.qid), expected)
            np.testing.assert_allclose(future.result(), expected, rtol=1e-12)
            campaign.count("fitted in a worker and beside it")


# --- files that go away, pipes that end ---


def test_a_store_that_is_removed_or_replaced_stays_with_those_who_have_it(campaign, tmp_path):
    problem = make_problem(3, rows=200, features=6, queries=10)
    block = (problem.X, problem.y, problem.qid)
    save_store([block], tmp_path / "store", regroup=True)
    store = open_store(tmp_path / "store")
    expected = _fit_in_worker(store.X, store.y, store.qid)
    save_store([(problem.X * 2, problem.y, problem.qid)], tmp_path / "store", regroup=True)
    np.testing.assert_array_equal(_fit_in_worker(store.X, store.y, store.qid), expected)
    campaign.count("replaced")
    for path in (tmp_path / "store").iterdir():
        path.unlink()
    Path(tmp_path / "store").rmdir()
    np.testing.assert_array_equal(_fit_in_worker(store.X, store.y, store.qid), expected)
    campaign.count("removed")


def test_a_model_cut_anywhere_in_a_pipe_is_refused(campaign):
    stream = io.BytesIO()
    RankRLS().fit(np.eye(3), [0, 1, 2]).save(stream)
    content = stream.getvalue()
    for _ in campaign.faults(20):
        read, write = os.pipe()
        with os.fdopen(read, "rb") as reader:
            os.write(write, content[: int(campaign.rng.integers(len(content)))])
            os.close(write)
            with pytest.raises(rankwise.exceptions.ModelFileError, match="Hint: "):
                rankwise.load(reader)
        campaign.count("cut")


def test_commands_whose_input_ends_or_stalls(server, rows, campaign, tmp_path):
    """A pipe that brings part of the rows, slowly, and then ends: what came is read, or an error ends in a remedy."""
    text = (rows / "a.txt").read_bytes()
    for at in campaign.faults(4):
        pipe = tmp_path / f"pipe{at}"
        os.mkfifo(pipe)

        cut = int(campaign.rng.integers(len(text)))

        def feed(pipe=pipe, cut=cut):
            with pipe.open("wb") as stream:
                for first in range(0, cut, cut // 3 + 1):
                    stream.write(text[first : min(first + cut // 3 + 1, cut)])
                    stream.flush()
                    time.sleep(0.02)

        feeder = threading.Thread(target=feed)
        feeder.start()
        done = server.run(["inspect", "-"], stdin=pipe)
        feeder.join()
        assert "Traceback" not in done.said
        assert done.code == 0 or (done.code == 1 and "Hint: " in done.said)
        campaign.count("read to its end" if done.code == 0 else "refused")
