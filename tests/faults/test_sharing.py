"""Several at once on one name, one model or one store: processes, threads, forks, joblib's workers."""

import multiprocessing
import os
import subprocess
import sys
import threading
import time

import joblib
import numpy as np
import pytest
from sklearn.base import clone

import rankwise
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
model = rankwise.RankRLS().fit(np.arange(12.0).reshape(6, 2), np.arange(6.0))
model.coef_ = np.full(2, own)
n, until = 0, time.monotonic() + seconds
while time.monotonic() < until:
    if kind == "store":
        value = own + n % 2
        save_store([(np.full((300, 40), value), np.full(300, value), np.arange(300) // 10)], target)
    else:
        model.save(target)
    n += 1
print(n)
"""


@pytest.mark.parametrize(("kind", "writers"), [("store", [1]), ("model", [1, 2])])
def test_readers_find_a_whole_one_while_others_write_it(kind, writers, campaign, tmp_path):
    target = tmp_path / kind
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, target, kind, str(own), "0.4"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for own in writers
    ]
    while not target.exists():
        time.sleep(0.01)
    while any(process.poll() is None for process in processes):
        if kind == "store":
            store = open_store(target)
            values = {*np.unique(store.X).tolist(), *np.unique(store.y).tolist()}
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


def test_threads_that_fit_and_predict_at_once_get_what_one_would(campaign):
    problems = [make_problem(seed, rows=120, features=6, queries=8) for seed in range(4)]

    def work(model, problem):
        fitted = clone(model).fit(problem.X, problem.y, qid=problem.qid)
        return fitted.predict(problem.X)

    jobs = [(model, problem) for model in MODELS for problem in problems]
    alone = [work(*job) for job in jobs]
    for _ in campaign.faults(1):
        together = joblib.Parallel(n_jobs=8, backend="threading")(joblib.delayed(work)(*job) for job in jobs)
        for one, other in zip(alone, together, strict=True):
            np.testing.assert_array_equal(one, other)
            campaign.count("the same bits")


# --- forks ---


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


# --- files that go away, pipes that end ---


def test_commands_whose_input_ends_or_stalls(server, rows, campaign, tmp_path):
    """A pipe that brings part of the rows, slowly, and then ends: what came is read, or an error ends in a remedy."""
    text = (rows / "a.txt").read_bytes()
    for at in campaign.faults(2):
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
        assert done.code == 0 or (done.code in {1, 2} and "Hint: " in done.said)
        campaign.count("read to its end" if done.code == 0 else "refused")
