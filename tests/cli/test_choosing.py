"""``rankwise fit`` and ``select`` as a front end of the automatic choice."""

import re

import numpy as np
import pytest

from command_line import call, call_json
from rankwise import AutoRanker, load
from rankwise.automatic.candidates import METHODS, SCALINGS
from rankwise.cli import argument_groups
from rankwise.data import load_svmlight, save_svmlight


def write(path, n_queries=60, seed=0):
    """Queries of ten rows, whose labels tell few of them apart; standardising only takes offsets away."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10 * n_queries, 4))
    y = (X[:, 0] + rng.normal(size=len(X)) > 0.5).astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0) + [0, 3, -1, 2]
    save_svmlight(X, y, path, qid=np.repeat(np.arange(n_queries), 10))
    return path


def test_scalings_that_are_the_same_model_get_the_same_figure(capsys, tmp_path):
    found = call_json(capsys, "select", write(tmp_path / "train.txt"), "--metric", "pairwise_error")
    values = {(one["method"], one["scaling"]): one["value"] for one in found["tried"] if not one["options"]}
    assert values["rls", "none"] == pytest.approx(values["rls", "standard"], abs=1e-12)
    assert found["judged_by"] == "5 folds of queries, 4 times, 59 of 60 queries"  # one has a single label


def test_what_can_be_asked_for_is_what_there_is():
    assert set(argument_groups.METHODS) == {"auto", *METHODS}
    assert set(argument_groups.SCALINGS) == {"auto", *SCALINGS}


def test_the_model_file_holds_the_ranker_that_chose(capsys, tmp_path):
    train, model = write(tmp_path / "train.txt"), tmp_path / "model.rw"
    said = call_json(capsys, "fit", train, "-o", model, "--rule", "one-standard-error", "--time", "5m")
    ranker = load(model)
    assert isinstance(ranker, AutoRanker)
    assert ranker.rule == said["rule"] == "one-standard-error"
    assert ranker.time_limit is None  # a file does not say how a computation runs
    chosen = next(one for one in said["tried"] if one["chosen"])
    assert chosen["description"] == ranker.candidates_.chosen.description
    assert all(one["standard_error"] > 0 for one in said["tried"])
    code, out, _ = call(capsys, "inspect", model)
    assert code == 0
    assert "AutoRanker" not in out  # what was chosen, not what chose


def test_a_time_that_is_up_keeps_what_there_is_and_says_so(capsys, tmp_path):
    train, model = write(tmp_path / "train.txt"), tmp_path / "model.rw"
    code, out, _ = call(capsys, "fit", train, "-o", model, "--time", "0.001")
    assert code == 0
    assert "stopped" in out
    assert "the time limit of 0.001 s" in out
    assert len(load(model).candidates_) == 1


def test_nested_says_what_to_expect(capsys, tmp_path):
    train = write(tmp_path / "train.txt")
    options = ["--method", "rls", "--scaling", "none"]
    code, out, _ = call(capsys, "select", train, *options, "--nested")
    assert code == 0
    assert "outer folds that took no part in the choice" in out
    found = call_json(capsys, "select", train, *options, "--nested")
    assert 0 < found["nested"]["value"] < 1
    code, out, _ = call(capsys, "select", train, *options)
    assert "selected on the same rows" in out


@pytest.mark.parametrize("text", ["soon", "0", "m"])
def test_times_that_are_none(capsys, tmp_path, text):
    code, _, err = call(capsys, "fit", write(tmp_path / "train.txt"), "--time", text)
    assert code == 2
    assert "such as 60s, 5m or 1h" in err


def test_python_chooses_what_the_command_line_chooses_from_the_same_file(capsys, tmp_path):
    train, model = tmp_path / "train.txt", tmp_path / "model.rw"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * (rng.random((200, 3)) < 0.7)
    y = np.clip(np.round(np.abs(X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=200)), 0, 3)
    save_svmlight(X, y, train, qid=np.arange(200) // 10)
    said = call_json(capsys, "fit", train, "-o", model, "--folds", "3")
    ranker = AutoRanker(cv=3).fit(*load_svmlight(train))
    tried = [(one["description"], one["value"], one["chosen"]) for one in said["tried"]]
    assert tried == [(one.description, one.value, one.is_chosen) for one in ranker.candidates_]
    assert {"curves", "surfaces"} <= {one["method"] for one in said["tried"]}
    again, (rows, _, qid) = load(model), load_svmlight(train)
    assert again.predict(rows, qid) == pytest.approx(ranker.predict(rows, qid))


@pytest.mark.parametrize("signal", [0.0, 3.0])
def test_constant_scores_stand_beside_what_was_tried(capsys, tmp_path, signal):
    train, model, page = (tmp_path / name for name in ("train.txt", "model.rw", "page.html"))
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3))
    y = signal * X[:, 0] + rng.normal(size=120)
    save_svmlight(X, y, train, qid=np.arange(120) // 10)
    options = ["--method", "rls", "--scaling", "none", "--metric", "pairwise_error"]
    _, fit, _ = call(capsys, "fit", train, "-o", model, *options)
    _, select, _ = call(capsys, "select", train, *options)
    assert call(capsys, "report", model, train, "-o", page)[0] == 0
    said = call_json(capsys, "select", train, *options)
    assert said["constant"] == pytest.approx(0.5)
    assert said["is_clear"] == bool(signal)
    for text in (fit, select, page.read_text(encoding="utf-8")):
        plain = re.sub("</?bdi>", "", text)
        assert re.search(r"A constant score has pairwise.error 0\.5000\.", plain)
        assert ("No candidate is clearly better than a constant score." in text) == (not signal)
