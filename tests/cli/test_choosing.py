"""All candidates of one choice are judged on the same folds, by the same rows."""

import numpy as np
import pytest

from command_line import call_json
from rankwise.cli import choosing
from rankwise.data import dump_svmlight
from rankwise.problems.folds import FoldAssigner


def write(path, n_queries=60, seed=0):
    """Queries of ten rows, whose labels tell few of them apart; standardising only takes offsets away."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10 * n_queries, 4))
    y = (X[:, 0] + rng.normal(size=len(X)) > 0.5).astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0) + [0, 3, -1, 2]
    dump_svmlight(X, y, path, qid=np.repeat(np.arange(n_queries), 10))
    return path


@pytest.mark.parametrize("judging", [20_000, 100])
def test_scalings_that_are_the_same_model_get_the_same_figure(capsys, tmp_path, monkeypatch, judging):
    monkeypatch.setattr(choosing, "_JUDGING", judging)
    found = call_json(capsys, "select", write(tmp_path / "train.txt"), "--metric", "pairwise_error")
    values = {(one["method"], one["scaling"]): one["value"] for one in found["tried"]}
    assert values["rls", "none"] == pytest.approx(values["rls", "standard"], abs=1e-12)
    assert ("judged by" in found["judged_by"]) == (judging < 600)


def test_every_candidate_has_the_same_folds_and_is_judged_by_the_same_rows(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(choosing, "_JUDGING", 100)
    seen = []

    def watch(deal):
        def watched(assigner, *arguments):
            found = deal(assigner, *arguments)
            seen.append((deal.__name__, found.tobytes()))
            return found

        return watched

    monkeypatch.setattr(FoldAssigner, "folds", watch(FoldAssigner.folds))
    monkeypatch.setattr(FoldAssigner, "sample", watch(FoldAssigner.sample))
    found = call_json(capsys, "select", write(tmp_path / "train.txt"), "--metric", "pairwise_error")
    scalings = {one["scaling"] for one in found["tried"]}
    assert {"none", "standard", "query-minmax", "query-standard"} == scalings
    assert {"rls", "svm-squared"} <= {one["method"] for one in found["tried"]}
    assert len(seen) == 2 * len(found["tried"])
    assert len(set(seen)) == 2
