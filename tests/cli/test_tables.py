"""Tables on the command line: the roles of columns, which the model keeps, and columns that are not numbers."""

import datetime as dt

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import rankwise
from all_pairs import all_pairs
from command_line import call, call_json, duels
from rankwise import AutoRanker, RankRLS, load, save
from rankwise.metrics.intervals import mean_over_pairs
from rankwise.metrics.pairwise import wrong_pairs
from rankwise.persistence import read_header
from rankwise.preprocessing import TableEncoder

RLS = ("--methods", "rls")
NAMED = ("--label", "bought", "--qid", "search", "--id", "offer")
CODES = ["00100", "00200", "90210", "XL", "S", "M"]


def offers(seed, searches=40):
    """Return a table with ids, numbers with gaps, categories, dates, a column per search, and a title."""
    rng = np.random.default_rng(seed)
    n = 10 * searches
    price, country = rng.lognormal(size=n).round(3), rng.choice(["Finland", "Sweden", "Norway"], n)
    rating = np.where(rng.random(n) < 0.2, np.nan, rng.uniform(1, 5, n).round(2))
    worth = -price + (country == "Finland") + np.nan_to_num(rating, nan=2.0) + 0.5 * rng.normal(size=n)
    return pd.DataFrame(
        {
            "offer": [f"o{seed}-{at}" for at in range(n)],
            "search": [f"s{at // 10}" for at in range(n)],
            "bought": np.clip(np.round(worth), 0, 4).astype(int),
            "clicks": rng.integers(1, 9, n),
            "price": price,
            "rating": rating,
            "country": country,
            "since": [
                dt.date(2020, 1, 1) + dt.timedelta(days=int(day)) for day in rng.integers(1000, size=n)
            ],
            "season": [["summer", "winter"][at // 10 % 2] for at in range(n)],
            "title": [f"offer number {at}" for at in range(n)],
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with train.csv, test.csv and model.rw."""
    folder = tmp_path_factory.mktemp("offers")
    for seed, name in enumerate(("train", "test")):
        offers(seed).to_csv(folder / f"{name}.csv", index=False)
    command = ["fit", folder / "train.csv", *NAMED, *RLS, "--weight", "clicks", "-o", folder / "model.rw"]
    assert rankwise.cli.main([str(word) for word in command]) == 0
    return folder


def test_every_command_takes_a_table_as_it_is(capsys, folder, tmp_path):
    code, out, err = call(capsys, "inspect", folder / "train.csv", *NAMED)
    assert code == 0, err
    for words in (
        "label=bought, qid=search, id=offer",
        "price: a number\n",
        "missing: filled with",
        "country: a category of 3 values",
        "since: a date, in days since 1970",
        "season: left out",
        "title: left out, because nearly every row has its own text",
    ):
        assert words in out, words
    roles = read_header(folder / "model.rw")["notes"]["roles"]
    assert (roles["label"], roles["qid"], roles["weight"], roles["ids"]) == (
        "bought",
        "search",
        "clicks",
        ["offer"],
    )
    assert set(roles["features"]) == {"price", "rating", "country", "since", "season", "title"}
    model, test = folder / "model.rw", folder / "test.csv"
    frame = pd.read_csv(test)
    expected = load(model).predict(frame, frame["search"])
    code, out, err = call(capsys, "predict", model, test)
    assert (code, err) == (0, "")
    np.testing.assert_allclose([float(line) for line in out.split()], expected, rtol=1e-9)
    assert call(capsys, "predict", model, test, "-o", tmp_path / "r.csv")[0] == 0
    assert pd.read_csv(tmp_path / "r.csv")["item"].tolist() == frame["offer"].tolist()
    found = call_json(capsys, "evaluate", model, test, "--metrics", "ndcg@10")
    assert found["data"]["queries"] == 40
    code, out, err = call(capsys, "explain", model, test, "--query", "s3", "--top", "1")
    assert code == 0, err
    assert "country" in out
    code, _, err = call(capsys, "report", model, test, "-o", tmp_path / "r.html")
    assert code == 0, err
    assert "country: a category of 3 values" in (tmp_path / "r.html").read_text()
    code, out, err = call(capsys, "export", model, "--to", "sqlite")
    assert code == 0, err
    assert '"search"' in out or "PARTITION" not in out
    code, out, err = call(capsys, "inspect", model)
    assert code == 0, err
    assert "country: a category of 3 values" in out


def test_new_values_and_missing_roles(capsys, folder, tmp_path):
    """Scores need neither labels nor the columns that training left out; new categories are rare ones."""
    frame = pd.read_csv(folder / "test.csv").replace({"country": {"Finland": "Iceland"}})
    kept = frame.drop(columns=["bought", "title", "season"]).assign(note=["7", *["dear"] * (len(frame) - 1)])
    kept.to_csv(tmp_path / "new.csv", index=False)
    code, out, err = call(capsys, "predict", folder / "model.rw", tmp_path / "new.csv")
    assert (code, err) == (0, "")
    assert len(out.split()) == len(frame)
    code, _, err = call(capsys, "evaluate", folder / "model.rw", tmp_path / "new.csv")
    assert code == 2
    assert "no column 'bought' with the labels" in err
    assert "--label" in err
    frame.rename(columns={"bought": "stars", "search": "session"}).to_csv(tmp_path / "other.csv", index=False)
    renamed = ["--label", "stars", "--qid", "session"]
    frame.to_csv(tmp_path / "same.csv", index=False)
    both = [
        call_json(capsys, "evaluate", folder / "model.rw", tmp_path / name, *more, "--metrics", "ndcg@10")[
            "models"
        ]
        for name, more in (("other.csv", renamed), ("same.csv", []))
    ]
    assert both[0] == both[1]


def test_words_crosses_and_an_eval_set(capsys, folder, tmp_path):
    options = ["--crosses", "price:season", "--words", "title", "--eval-set", folder / "test.csv"]
    said = call_json(capsys, "fit", folder / "train.csv", *NAMED, *RLS, *options, "-o", tmp_path / "m.rw")
    assert said["scored_by"] == str(folder / "test.csv")
    names = load(tmp_path / "m.rw").encoder_.get_feature_names_out()
    assert "price:season=winter" in names
    assert any(name.startswith("title~") for name in names)
    found = call_json(capsys, "evaluate", tmp_path / "m.rw", folder / "test.csv", "--metrics", "ndcg@10")
    (chosen,) = [one for one in said["tried"] if one["chosen"]]
    assert found["models"][str(tmp_path / "m.rw")]["ndcg@10"]["value"] == pytest.approx(chosen["value"])


@pytest.mark.parametrize("only_valid_has_gaps", [False, True])
def test_gaps_on_one_side_of_an_eval_set(capsys, folder, tmp_path, only_valid_has_gaps):
    train = offers(0)[["search", "bought", "price", "rating"]]
    valid = offers(1)[["search", "bought", "price", "rating"]]
    one = train if only_valid_has_gaps else valid
    one["rating"] = one["rating"].fillna(3.0)
    train.to_csv(tmp_path / "train.csv", index=False)
    valid.to_csv(tmp_path / "valid.csv", index=False)
    fit = [
        "fit",
        tmp_path / "train.csv",
        *NAMED[:4],
        *RLS,
        "--eval-set",
        tmp_path / "valid.csv",
        "-o",
        tmp_path / "m.rw",
    ]
    code, _, err = call(capsys, *fit)
    assert code == (2 if only_valid_has_gaps else 0), err
    assert ("NaN" in err or "missing" in err) == only_valid_has_gaps


def test_weights_weigh(capsys, tmp_path):
    """A row of weight 2 counts as two rows; weights are not a feature."""
    rows = offers(0, 12)[["search", "bought", "price", "clicks"]]
    rows["clicks"] = 1 + (np.arange(len(rows)) % 2)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    doubled = rows.loc[rows.index.repeat(rows["clicks"])]
    doubled.to_csv(tmp_path / "doubled.csv", index=False)
    fit = [*NAMED[:4], "--features", "price", *RLS, "-o", tmp_path / "m.rw"]
    assert call(capsys, "fit", tmp_path / "rows.csv", *fit, "--weight", "clicks")[0] == 0
    assert read_header(tmp_path / "m.rw")["notes"]["roles"]["weight"] == "clicks"
    options = ["--metrics", "pairwise_error"]
    weighed = call_json(
        capsys, "evaluate", tmp_path / "m.rw", tmp_path / "rows.csv", "--weight", "clicks", *options
    )
    copied = call_json(capsys, "evaluate", tmp_path / "m.rw", tmp_path / "doubled.csv", *options)
    value, expected = (
        one["models"][str(tmp_path / "m.rw")]["pairwise_error"]["value"] for one in (weighed, copied)
    )
    assert value == pytest.approx(expected)
    assert "weights" in call(capsys, "inspect", tmp_path / "rows.csv", *NAMED[:4], "--weight", "clicks")[1]


CASES = {
    "ending": ["csv", "parquet"],
    "others": ["numbers", "texts"],
    "named": ["usual", "pandas", "given", "feature"],
}


@pytest.mark.parametrize(
    "case", all_pairs(CASES, lambda **_: True), ids=lambda case: "-".join(map(str, case.values()))
)
def test_ids_name_rows_and_are_not_learned_from(capsys, tmp_path, case):
    frame = offers(0, 12)[["bought", "search", "price"]].rename(columns={"bought": "label", "search": "qid"})
    frame["more"] = (
        [["a", "b"][at % 2] for at in range(len(frame))]
        if case["others"] == "texts"
        else 1.5 * frame["price"]
    )
    column = {"usual": "id", "pandas": "Unnamed: 0", "given": "sku", "feature": "id"}[case["named"]]
    frame.insert(0, column, np.arange(len(frame)))
    data, model = tmp_path / f"t.{case['ending']}", tmp_path / "m.rw"
    getattr(frame, {"csv": "to_csv", "parquet": "to_parquet"}[case["ending"]])(data, index=False)
    more = {"given": ["--id", "sku"], "feature": ["--features", "id,price,more"]}.get(case["named"], [])
    code, _, err = call(capsys, "fit", data, *RLS, *more, "-o", model)
    assert code == 0, err
    features = read_header(model)["notes"]["roles"]["features"]
    assert (column in features) == (case["named"] == "feature")
    assert ("not learned from" in err) == (case["named"] in {"usual", "pandas"})
    assert call(capsys, "predict", model, data, "-o", tmp_path / "r.tsv")[0] == 0
    items = [line.split("\t")[1] for line in (tmp_path / "r.tsv").read_text().splitlines()[1:]]
    plain = [f"row{at}" for at in range(len(frame))]
    assert items == (plain if case["named"] == "feature" else [str(at) for at in range(len(frame))])


def test_columns_that_look_like_query_ids_are_not_learned_from(capsys, tmp_path):
    frame = offers(0, 12)[["bought", "search", "price"]].rename(columns={"bought": "label"})
    frame["search"] = frame["search"].str[1:].astype(int)
    frame.to_csv(tmp_path / "t.csv", index=False)
    code, _, err = call(capsys, "fit", tmp_path / "t.csv", *RLS, "-o", tmp_path / "m.rw")
    assert code == 0, err
    assert "all rows are one ranking (--qid search)" in err
    assert set(read_header(tmp_path / "m.rw")["notes"]["roles"]["features"]) == {"price"}


@pytest.mark.parametrize("new", [CODES[:2], ["XL"]])
def test_texts_stay_texts_where_new_rows_look_like_numbers(capsys, tmp_path, new):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"code": rng.choice(CODES, 200), "price": rng.uniform(1, 9, 200), "qid": np.arange(200) // 10}
    )
    frame["label"] = [CODES.index(code) for code in frame["code"]]
    frame.to_csv(tmp_path / "train.csv", index=False)
    model = tmp_path / "m.rw"
    code, _, err = call(capsys, "fit", tmp_path / "train.csv", *RLS, "--target", "sqlite", "-o", model)
    assert code == 0, err
    rows = frame[frame["code"].isin(new)]
    rows.to_csv(tmp_path / "new.csv", index=False)
    code, out, err = call(capsys, "predict", model, tmp_path / "new.csv")
    assert (code, err) == (0, "")
    expected = load(model).predict(rows[["code", "price"]], rows["qid"])
    np.testing.assert_allclose([float(line) for line in out.split()], expected, atol=1e-12)


@pytest.mark.parametrize("kind", ["automatic", "pipeline", "numbers"])
def test_models_that_python_saved_know_their_columns(capsys, tmp_path, kind):
    rows = offers(0, 12)
    columns = ["price"] if kind == "numbers" else ["country", "price"]
    X, y, qid = rows[columns], rows["bought"], rows["search"]
    if kind == "automatic":
        model = AutoRanker(methods=["rls"], target="sqlite").fit(X, y, qid=qid)
    elif kind == "numbers":
        model = RankRLS().fit(X, y, qid=qid)
    else:
        model = make_pipeline(TableEncoder(), RankRLS()).fit(X, y, rankrls__qid=qid)
    save(model, tmp_path / "m.rw")
    new = (
        offers(1, 12)[["price", "search", "country", "bought"]]
        .rename(columns={"search": "qid"})
        .assign(more=1.0)
    )
    new.to_csv(tmp_path / "new.csv", index=False)
    code, out, err = call(capsys, "predict", tmp_path / "m.rw", tmp_path / "new.csv")
    assert (code, err) == (0, "")
    expected = rankwise.model_selection.predict_scores(model, new[columns], new["qid"])
    np.testing.assert_allclose([float(line) for line in out.split()], expected, atol=1e-12)
    assert call(capsys, "inspect", tmp_path / "m.rw")[0] == 0


def test_a_model_of_texts_and_one_of_numbers_are_compared_on_the_same_rows(capsys, folder, tmp_path):
    fit = ["fit", folder / "train.csv", *NAMED, "--features", "price", *RLS, "-o", tmp_path / "n.rw"]
    assert call(capsys, *fit)[0] == 0
    models = [folder / "model.rw", tmp_path / "n.rw"]
    options = [folder / "test.csv", "--metrics", "ndcg@10"]
    both = call_json(capsys, "evaluate", models[0], *options, "--against", models[1])["models"]
    for model in models:
        assert both[str(model)] == call_json(capsys, "evaluate", model, *options)["models"][str(model)]


@pytest.mark.parametrize("rows", ["items", "labels"])
def test_lists_are_features(capsys, tmp_path, rows):
    X, _ = duels(tmp_path)
    table = {"vec": list(X), "id": [f"item {at}" for at in range(len(X))]}
    if rows == "labels":
        table |= {"label": np.round(X[:, 0]), "qid": np.arange(len(X)) // 10}
    pd.DataFrame(table).to_parquet(tmp_path / "items.parquet")
    data = [tmp_path / "items.parquet"]
    if rows == "items":
        data = [tmp_path / "duels.csv", "--items", tmp_path / "items.parquet"]
    model = tmp_path / "m.rw"
    code, _, err = call(capsys, "fit", *data, *RLS, "--alphas", "1", "-o", model)
    assert code == 0, err
    code, out, err = call(capsys, "predict", model, tmp_path / "items.parquet", "--ranks")
    assert code == 0, err
    assert len(out.split()) == 30
    assert load(model).n_features_in_ == 3


def players(folder, *, with_text):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(18, 40, 12), "height": rng.normal(180, 9, 12).round(1)})
    if with_text:
        table["hand"] = rng.choice(["left", "right"], 12)
    a, b = rng.integers(12, size=(2, 500))
    a, b = a[a != b], b[a != b]
    wins = rng.logistic(size=a.size) < 0.2 * (table["age"].to_numpy()[b] - table["age"].to_numpy()[a])
    pairs = np.column_stack([np.where(wins, a, b), np.where(wins, b, a)])
    sides = [
        table.iloc[pairs[:, at]].reset_index(drop=True).add_prefix(prefix)
        for at, prefix in enumerate(("winner_", "loser_"))
    ]
    pd.concat(sides, axis=1).assign(day="monday").to_csv(folder / "duels.csv", index=False)
    return table, pairs


@pytest.mark.parametrize("with_text", [True, False])
def test_duels_in_one_row(capsys, tmp_path, with_text):
    """Two duels of one competitor are dependent, though rows repeat its columns."""
    table, pairs = players(tmp_path, with_text=with_text)
    model, data = tmp_path / "m.rw", tmp_path / "duels.csv"
    code, out, err = call(capsys, "fit", data, *RLS, "-o", model)
    assert code == 0, err
    assert f"{len(pairs)} preferences" in out
    assert "not used: day" in err
    scores = load(model).predict(table)
    found = call_json(capsys, "evaluate", model, data)
    expected = mean_over_pairs(wrong_pairs(scores, pairs), pairs, np.ones(len(pairs)))
    figure = found["models"][str(model)]["pairwise_error"]
    assert found["data"]["items"] == 12
    assert [figure[key] for key in ("value", "low", "high")] == pytest.approx(
        [expected.value, expected.low, expected.high]
    )
    out = call(capsys, "predict", model, data)[1]
    differences = scores[pairs[:, 0]] - scores[pairs[:, 1]]
    np.testing.assert_allclose([float(line) for line in out.split()], differences, atol=1e-9)
    code, _, err = call(capsys, "report", model, data, "-o", tmp_path / "r.html")
    assert code == 0, err
    assert call(capsys, "inspect", data)[0] == 0
    code, _, err = call(capsys, "predict", model, data, "-o", tmp_path / "r.tsv")
    assert code == 2
    assert "lists duels" in err


def test_items_with_texts_and_gaps(capsys, tmp_path):
    table, pairs = players(tmp_path, with_text=True)
    table.loc[3, "height"] = np.nan
    table.insert(0, "sku", [f"{at:03d}" for at in range(12)])
    table.to_csv(tmp_path / "items.csv", index=False)
    ids = table["sku"].to_numpy()
    named = pd.DataFrame({"winner": ids[pairs[:, 0]], "loser": ids[pairs[:, 1]]})
    named.to_csv(tmp_path / "named.csv", index=False)
    data, model = (
        [tmp_path / "named.csv", "--items", tmp_path / "items.csv", "--id", "sku"],
        tmp_path / "m.rw",
    )
    code, out, err = call(capsys, "fit", *data, *RLS, "-o", model)
    assert code == 0, err
    assert "height: a number, 1 missing" in out
    code, out, err = call(capsys, "predict", model, tmp_path / "items.csv")
    assert (code, err) == (0, "")
    scores = np.array([float(line) for line in out.split()])
    found = call_json(capsys, "evaluate", model, *data[:3])["models"][str(model)]
    assert found["pairwise_error"]["value"] == pytest.approx(wrong_pairs(scores, pairs).mean())


def test_a_model_file_from_elsewhere_cannot_confuse_the_reader(capsys, folder, tmp_path):
    notes = read_header(folder / "model.rw")["notes"]
    expected = call(capsys, "predict", folder / "model.rw", folder / "test.csv")[1]
    for roles in (
        {"label": ["bought"], "qid": 3, "ids": "offer", "features": ["price"], "unknown": "x"},
        "all",
        None,
        {"features": {"price": 7}, "qid": "search"},
    ):
        odd = {**notes, "roles": roles, "feature_names": 7, "first_column": "x", "tried": {"a": 1}}
        save(load(folder / "model.rw"), tmp_path / "odd.rw", notes=odd)
        code, out, err = call(capsys, "predict", tmp_path / "odd.rw", folder / "test.csv", "--qid", "search")
        assert code in {0, 2}, err
        assert out in {expected, ""}
        assert call(capsys, "inspect", tmp_path / "odd.rw")[0] == 0
