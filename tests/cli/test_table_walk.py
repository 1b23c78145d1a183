"""A table as people have it, through every command, with no option beyond the names of its columns."""

import datetime as dt
import json

import numpy as np
import pytest

from command_line import call, call_json
from rankwise import load

COLUMNS = ["--label", "bought", "--qid", "search", "--weight", "clicks", "--id", "offer"]


def write(path, seed, n_searches=40):
    rng = np.random.default_rng(seed)
    lines = ["offer,search,bought,clicks,price,rating,country,brand,since,season,title"]
    for search in range(n_searches):
        season = ["summer", "winter"][search % 2]
        for at in range(10):
            price = rng.lognormal()
            country = rng.choice(["Finland", "Sweden", "Norway"])
            rating = "" if rng.random() < 0.2 else f"{rng.uniform(1, 5):.2f}"
            since = dt.date(2020, 1, 1) + dt.timedelta(days=int(rng.integers(1000)))
            worth = -price + (country == "Finland") + (float(rating) if rating else 2.0) + 0.5 * rng.normal()
            grade = int(np.clip(np.round(worth), 0, 4))
            brand = rng.choice(["Ålpha", "Beta", "NA"])
            lines.append(
                f"o{seed}-{search}-{at},s{search},{grade},{rng.integers(1, 9)},{price:.3f},{rating},{country},{brand},"
                f"{since},{season},offer number {at} of {search}"
            )
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("walk")
    write(folder / "train.csv", 0)
    write(folder / "test.csv", 1)
    return folder


def test_the_walk(capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    code, out, err = call(capsys, "inspect", "train.csv", *COLUMNS)
    assert code == 0, err
    for words in (
        "price: a number\n",
        "missing: filled with",
        "country: a category of 3 values",
        "brand: a category of 2 values, missing is one more",
        "since: a date, in days since 1970",
        "season: left out, because it has one value inside every query",
        "(--cross OTHER:season, crosses=['OTHER:season'])",
        "title: left out, because nearly every row has another text",
        "(--words title, words=['title'])",
    ):
        assert words in out, words
    assert "no problems found" in out
    code, out, err = call(capsys, "fit", "train.csv", *COLUMNS, "-o", "model.rw")
    assert code == 0, err
    assert "country: a category of 3 values" in out
    assert "5 folds of queries, 4 times, all 40 queries, ndcg@10" in out
    assert "offer" not in load("model.rw").feature_names_in_
    found = call_json(capsys, "evaluate", "model.rw", "test.csv", "--metrics", "ndcg@10,pairwise_error")
    figures = json.dumps(found)
    assert "ndcg@10" in figures
    code, out, err = call(capsys, "evaluate", "model.rw", "test.csv", "--metrics", "pairwise_error")
    assert code == 0, err
    code, out, err = call(capsys, "predict", "model.rw", "test.csv")
    assert code == 0, err
    assert len(out.split()) == 400
    code, _, err = call(capsys, "report", "model.rw", "test.csv", "-o", "report.html")
    assert code == 0, err
    page = (folder / "report.html").read_text()
    assert "country: a category of 3 values" in page
    assert "★ chosen" in page


def test_the_file_predicts_in_python_what_the_command_line_predicts(capsys, folder, monkeypatch):
    pd = pytest.importorskip("pandas")
    monkeypatch.chdir(folder)
    assert call(capsys, "fit", "train.csv", *COLUMNS, "-o", "again.rw", "--method", "rls")[0] == 0
    _, out, _ = call(capsys, "predict", "again.rw", "test.csv")
    frame = pd.read_csv("test.csv", keep_default_na=True)
    scores = load("again.rw").predict(frame, frame["search"])
    np.testing.assert_allclose(np.array(out.split(), dtype=float), scores, rtol=1e-9)


def test_values_that_training_did_not_have_and_rows_without_labels(capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert call(capsys, "fit", "train.csv", *COLUMNS, "-o", "third.rw", "--method", "rls")[0] == 0
    text = (folder / "test.csv").read_text().replace("Finland", "Iceland")
    lines = [
        ",".join(part for at, part in enumerate(line.split(",")) if at != 2) for line in text.split("\n")
    ]
    (folder / "new.csv").write_text("\n".join(lines))
    code, out, err = call(capsys, "predict", "third.rw", "new.csv")
    assert code == 0, err
    assert len(out.split()) == 400


def test_crosses_categories_and_words(capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    options = ["--cross", "price:season", "--words", "title", "--method", "rls", "-o", "crossed.rw"]
    code, out, err = call(capsys, "fit", "train.csv", *COLUMNS, *options)
    assert code == 0, err
    assert "season: a category of 2 values, only crossed" in out
    assert "title: words, hashed" in out
    names = load("crossed.rw").encoder_.get_feature_names_out()
    assert "price:season=winter" in names
    code, _, err = call(capsys, "predict", "crossed.rw", "test.csv")
    assert code == 0, err


def test_a_validation_table_is_encoded_as_training(capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    options = ["--valid", "test.csv", "--method", "rls", "--scaling", "standard"]
    found = call_json(capsys, "select", "train.csv", *COLUMNS, *options)
    assert found["judged_by"] == "test.csv"


def test_a_table_that_lacks_a_column(capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert call(capsys, "fit", "train.csv", *COLUMNS, "-o", "fourth.rw", "--method", "rls")[0] == 0
    text = (folder / "test.csv").read_text().replace("rating", "stars", 1)
    (folder / "other.csv").write_text(text)
    code, _, err = call(capsys, "predict", "fourth.rw", "other.csv")
    assert code != 0
    assert "such as 'rating'" in err
