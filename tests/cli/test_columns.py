"""Columns on the command line: how many, what they are called, from which number they count."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from command_line import call, call_json
from rankwise.data.summary import summarise


def test_a_column_number_of_two_billion_costs_nothing(capsys, tmp_path):
    (tmp_path / "wide.txt").write_text("1 qid:1 2000000000:1\n0 qid:1 1:2\n")
    said = call_json(capsys, "inspect", tmp_path / "wide.txt")
    assert said["columns"] == 2_000_000_000
    assert said["empty_columns"] == 2_000_000_000 - 2


def test_columns_that_occur_are_counted_as_all_columns_are():

    X = np.zeros((3, 40))
    X[:, 7] = 2.0  # constant
    X[1, 9], X[2, 30] = np.nan, -1.0
    sparse, dense = summarise(sp.csr_matrix(X), None, None), summarise(X, None, None)
    assert (sparse.empty_columns, sparse.constant_columns, sparse.missing) == (
        dense.empty_columns,
        dense.constant_columns,
        dense.missing,
    )


def zero_based_text(path, first=0):
    rng = np.random.default_rng(3)
    lines = []
    for row in range(40):
        values = " ".join(
            f"{j}:{value:.4f}" for j, value in enumerate(rng.normal(size=4), start=0) if j >= first
        )
        lines.append(f"{row % 3} qid:{row // 5} {values}\n")
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("between", ["rows.store", "rows.parquet", "rows.csv"])
def test_columns_count_from_0_after_a_way_through_other_files(capsys, tmp_path, between):
    source = zero_based_text(tmp_path / "rows.txt")
    for start, end in [(source, tmp_path / between), (tmp_path / between, tmp_path / "back.txt")]:
        code, _, err = call(capsys, "convert", start, "-o", end)
        assert code == 0, err
    first = (tmp_path / "back.txt").read_text().splitlines()[0].split()
    assert [word.partition(":")[0] for word in first[2:]] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("between", ["rows.store", "rows.parquet"])
def test_a_model_of_converted_rows_scores_text_that_lacks_column_0(capsys, tmp_path, between):
    source, test = zero_based_text(tmp_path / "rows.txt"), zero_based_text(tmp_path / "test.txt", first=1)
    assert call(capsys, "convert", source, "-o", tmp_path / between)[0] == 0
    scores = []
    for name in ("rows.txt", between):
        fit = ["fit", tmp_path / name, "--method", "rls", "--scaling", "none", "--alpha", "1", "-f"]
        assert call(capsys, *fit, "-o", tmp_path / "m.rw")[0] == 0
        code, out, err = call(capsys, "predict", tmp_path / "m.rw", test)
        assert code == 0, err
        scores.append(np.array(out.split(), dtype=float))
    np.testing.assert_allclose(scores[0], scores[1], rtol=1e-6)


def test_a_store_that_counts_otherwise_than_the_model_is_refused(capsys, tmp_path):
    source = zero_based_text(tmp_path / "rows.txt")
    test = zero_based_text(tmp_path / "test.txt", first=1)
    assert call(capsys, "fit", source, "--method", "rls", "--alpha", "1", "-o", tmp_path / "m.rw")[0] == 0
    assert call(capsys, "convert", test, "-o", tmp_path / "test.store")[0] == 0
    code, _, err = call(capsys, "predict", tmp_path / "m.rw", tmp_path / "test.store")
    assert code == 1
    assert "--zero-based" in err
    assert call(capsys, "convert", test, "-o", tmp_path / "test.store", "-f", "--zero-based", "yes")[0] == 0
    code, out, err = call(capsys, "predict", tmp_path / "m.rw", tmp_path / "test.store")
    assert code == 0, err
    assert out == call(capsys, "predict", tmp_path / "m.rw", test)[1]


def test_options_of_text_say_the_number_of_columns_and_the_first(capsys, tmp_path):
    (tmp_path / "rows.txt").write_text("1 qid:1 2:1\n0 qid:1 1:2\n")
    assert call_json(capsys, "inspect", tmp_path / "rows.txt")["columns"] == 2
    assert call_json(capsys, "inspect", tmp_path / "rows.txt", "--zero-based", "yes")["columns"] == 3
    assert call_json(capsys, "inspect", tmp_path / "rows.txt", "--columns", "9")["columns"] == 9


def test_embeddings_of_a_table_are_columns(capsys, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    rows = {"label": (X[:, 0] > 0).astype(float), "qid": np.repeat(np.arange(8), 5), "vector": list(X)}
    pd.DataFrame(rows).to_parquet(tmp_path / "rows.parquet")
    reading = ["--embedding", "vector"]
    assert call_json(capsys, "inspect", tmp_path / "rows.parquet", *reading)["columns"] == 3
    fit = [
        "fit",
        tmp_path / "rows.parquet",
        *reading,
        "--method",
        "rls",
        "--alpha",
        "1",
        "-o",
        tmp_path / "m.rw",
    ]
    code, _, err = call(capsys, *fit)
    assert code == 0, err
    code, out, err = call(capsys, "predict", tmp_path / "m.rw", tmp_path / "rows.parquet", *reading)
    assert code == 0, err
    assert len(out.split()) == 40
