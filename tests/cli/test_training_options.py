"""Options of training that reach the estimators, and columns that no ranker can use."""

import numpy as np
import pytest
import scipy.sparse as sp

import rankwise
from command_line import call
from rankwise.data.summary import constant_inside_queries, summarise
from rankwise.data.validation import check_qid


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["--query-weight", "pairs", "--method", "rls"], {"query_weight": "pairs"}),
        (["--ties", "exclude", "--cost", "unit"], {"ties": "exclude", "cost": "unit"}),
        (["--folds", "3", "--method", "rls"], {"cv": 3}),
        (
            ["--method", "kernel", "--gamma", "0.01", "--gamma", "0.1", "--basis", "40"],
            {"gamma": [0.01, 0.1], "basis": 40},
        ),
    ],
)
def test_options_reach_the_estimator(capsys, searches, tmp_path, options, wanted):
    model = tmp_path / "m.rw"
    code, _, err = call(
        capsys, "fit", searches / "train.txt", "--scaling", "standard", "--alpha", "1", *options, "-o", model
    )
    assert code == 0, err
    chosen = rankwise.load(model)
    parameters = {**chosen.best_estimator_.steps[-1][1].get_params(), "cv": chosen.cv}
    assert {name: parameters[name] for name in wanted} == wanted


def test_options_that_would_change_nothing_are_refused(capsys, searches, tmp_path):
    for options in (
        ["--gamma", "1"],
        ["--basis", "10", "--method", "rls"],
        ["--ties", "exclude", "--method", "svm"],
    ):
        code, _, err = call(capsys, "fit", searches / "train.txt", *options, "-o", tmp_path / "m.rw")
        assert code == 1
        assert "Hint:" in err


def slow(X, qid):
    """Return the columns that are constant inside queries and not everywhere, by looking at every one."""
    out = []
    for column in range(X.shape[1]):
        groups = [set(X[qid == query, column].tolist()) for query in np.unique(qid)]
        if all(len(group) == 1 for group in groups) and len(set.union(*groups)) > 1:
            out.append(column)
    return out


@pytest.mark.parametrize("seed", range(20))
def test_columns_of_queries_are_found_in_every_storage(seed):
    rng = np.random.default_rng(seed)
    qid = np.sort(rng.integers(0, 4, 15))
    rng.shuffle(qid)
    X = rng.integers(0, 3, size=(15, 6)).astype(float)
    X[:, 1] = qid % 2  # 0 in some queries
    X[:, 2] = qid + 1.0
    X[:, 3] = 7.0
    X[:, 4] = 0.0
    queries = check_qid(qid, 15)
    wanted = slow(X, qid)
    assert {1, 2} & set(wanted) == {1, 2} if len(np.unique(qid % 2)) > 1 else 2 in wanted
    for stored in (X, X.astype(np.float32), sp.csr_matrix(X), np.asfortranarray(X)):
        assert constant_inside_queries(stored, queries) == wanted


def test_inspect_and_fit_name_columns_that_no_ranker_can_use(capsys, tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{rng.integers(0, 3)} qid:{q} 1:{rng.normal():.3f} 2:{q}" for q in range(1, 11) for _ in range(8)
    ]
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    assert "one value inside every query" in call(capsys, "inspect", tmp_path / "t.txt")[1]
    err = call(capsys, "fit", tmp_path / "t.txt", "--method", "rls", "-o", tmp_path / "m.rw")[2]
    assert "1 of 2 columns has one value inside every query, so that no ranker can use it" in err
    assert "cross it" in err


def test_one_ranking_has_no_columns_of_queries():
    assert summarise(np.ones((3, 2)), None, None).query_columns == []
