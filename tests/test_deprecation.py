"""Calls as they were written once do what they did, and say what to write."""

import io

import numpy as np
import pytest

import rankwise
import rankwise.data
from rankwise import AutoRanker, RankRLS, RankSVM
from rankwise.data import load_run, load_svmlight, load_table, open_store, save_svmlight
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import (
    auc_estimate,
    bootstrap_interval,
    compare_rankings,
    get_metric,
    per_query,
    preference_error,
)

RNG = np.random.default_rng(0)
Y, QID = RNG.integers(0, 3, 60), np.arange(60) // 6
FIRST, SECOND = Y + RNG.normal(size=60), RNG.normal(size=60)
X = RNG.normal(size=(60, 3))
PAIRS = np.array([[0, 1], [5, 2], [9, 40]])


@pytest.mark.parametrize("metric", ["ndcg@5", get_metric("map")])
def test_the_metric_stood_first(metric):
    with pytest.warns(FutureWarning, match=r"bootstrap_interval\(metric, .*Hint: write .*metric=\.\.\."):
        assert bootstrap_interval(metric, Y, FIRST, QID) == bootstrap_interval(Y, FIRST, QID, metric=metric)
    with pytest.warns(FutureWarning, match="Hint: write compare_rankings"):
        was = compare_rankings(metric, Y, FIRST, second=SECOND, qid=QID)
    assert was == compare_rankings(Y, FIRST, SECOND, QID, metric=metric)
    with pytest.warns(FutureWarning, match="Hint: write per_query"):
        was = per_query(metric, Y, FIRST, QID)
    np.testing.assert_array_equal(was.values, per_query(Y, FIRST, QID, metric=metric).values)


def test_the_scores_stood_before_the_pairs():
    with pytest.warns(FutureWarning, match="Hint: write preference_error"):
        assert preference_error(FIRST, PAIRS) == preference_error(PAIRS, FIRST)
    with pytest.warns(FutureWarning, match="goes with version"):
        assert preference_error(FIRST.tolist(), PAIRS.tolist(), [1, 2, 3]) == preference_error(
            pairs=PAIRS, scores=FIRST, weight=[1, 2, 3]
        )


def test_the_file_of_a_table_stood_first(tmp_path):
    with pytest.warns(FutureWarning, match=r"Hint: write save_table\(X, y, path, qid=qid\)"):
        rankwise.data.save_table(tmp_path / "t.parquet", X, Y, QID)
    found = load_table(tmp_path / "t.parquet")
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.qid, QID)
    with pytest.warns(FutureWarning, match="path=") as told:
        rankwise.data.save_table(file=tmp_path / "u.parquet", X=X, y=None)
    assert told[0].filename == __file__
    assert load_table(tmp_path / "u.parquet", label=None, qid=None).X.shape == X.shape


def test_functions_had_other_names(tmp_path):
    with pytest.warns(FutureWarning, match="Hint: write save_svmlight") as told:
        rankwise.data.dump_svmlight(X, Y, tmp_path / "rows.txt", qid=QID)
    assert told[0].filename == __file__
    np.testing.assert_array_equal(load_svmlight(tmp_path / "rows.txt")[1], Y)
    with pytest.warns(FutureWarning, match=r"Hint: write save_store\(source, path\)"):
        rankwise.data.write_store(tmp_path / "store", tmp_path / "rows.txt", dtype=np.float32)
    assert open_store(tmp_path / "store").X.dtype == np.float32
    run = io.BytesIO()
    with pytest.warns(FutureWarning, match="Hint: write save_run"):
        rankwise.data.write_run(run, ["q"], ["a"], [1], np.array([0.5]), "mine")
    with pytest.warns(FutureWarning, match="Hint: write load_run"):
        assert rankwise.data.read_run(io.BytesIO(run.getvalue())) == load_run(io.BytesIO(run.getvalue()))
    with pytest.warns(FutureWarning, match="Hint: write load_judgements"):
        assert rankwise.data.read_judgements(io.BytesIO(b"q 0 a 2\n")) == {"q": {"a": 2.0}}
    rankwise.data.save_table(X, Y, tmp_path / "t.parquet")
    with pytest.warns(FutureWarning, match="Hint: write iter_table"):
        blocks = rankwise.data.iterate_table(tmp_path / "t.parquet", qid=None)
    assert sum(len(block.y) for block in blocks) == 60
    with pytest.raises(AttributeError, match="no attribute 'dump'"):
        _ = rankwise.data.dump
    assert not set(rankwise.data.__all__) & {"dump_svmlight", "write_store", "iterate_table"}


def test_parameters_had_other_names(tmp_path):
    model = RankRLS().fit(X, Y, QID)
    with pytest.warns(FutureWarning, match=r"save\(file=\.\.\.\) is deprecated.*write path="):
        model.save(file=tmp_path / "model.rw")
    with pytest.warns(FutureWarning, match="write path="):
        np.testing.assert_array_equal(rankwise.load(file=tmp_path / "model.rw").coef_, model.coef_)
    with pytest.warns(FutureWarning, match="write scoring="):
        found = rankwise.feature_importance(model, X, Y, QID, metric="map", n_repeats=1)
    assert found.metric == "map"
    with pytest.warns(FutureWarning, match="write level="):
        shown = auc_estimate(Y > 0, FIRST).interval(confidence=0.9)
    np.testing.assert_array_equal(shown, auc_estimate(Y > 0, FIRST).interval(0.9))


MODELS = [
    RankRLS(),
    RankSVM(loss="logistic"),
    AutoRanker(methods=["rls"], scalings=["none"]),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_pairs_are_what_fit_pairs_takes(model):
    pairs = np.array([[i, j] for i in range(12) for j in range(12) if X[i, 0] > X[j, 0]])
    model.fit_pairs(X, pairs)
    expected = model.predict_pairs(X[PAIRS[:, 0]], X[PAIRS[:, 1]])
    np.testing.assert_allclose(model.predict_pairs(X, PAIRS), expected, rtol=1e-12)
    np.testing.assert_allclose(model.predict_pairs(X, PAIRS.tolist()), expected, rtol=1e-12)
    with pytest.warns(FutureWarning, match="write (X|pairs)="):
        was = model.predict_pairs(X_a=X[PAIRS[:, 0]], X_b=X[PAIRS[:, 1]]) if model is not MODELS[2] else (
            model.predict_pairs(X, other=PAIRS)
        )  # fmt: skip
    np.testing.assert_allclose(was, expected, rtol=1e-12)
    with pytest.raises(InvalidInputError, match="rows are numbered from 0 to 59"):
        model.predict_pairs(X, [[0, 60]])


def test_two_columns_of_whole_numbers_may_be_both():
    rows = np.array([[0, 1], [1, 0], [2, 2]])
    model = RankRLS().fit_pairs(rows, [[2, 0]])
    with pytest.raises(InvalidInputError, match="row numbers or rows"):
        model.predict_pairs(rows, rows[::-1])
    as_numbers = model.predict_pairs(rows.astype(float), [[2, 0], [0, 1], [1, 2]])
    np.testing.assert_allclose(as_numbers[0], (rows[2] - rows[0]) @ model.coef_)
    as_rows = model.predict_pairs(rows.astype(float), rows[::-1].astype(float))
    np.testing.assert_allclose(as_rows, (rows - rows[::-1]) @ model.coef_)


def test_text_is_written_by_its_new_name_without_a_warning(tmp_path):
    save_svmlight(X, Y, tmp_path / "rows.txt", qid=QID)
    assert load_svmlight(tmp_path / "rows.txt")[0].shape == X.shape
