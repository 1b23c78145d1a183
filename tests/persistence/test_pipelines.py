"""Pipelines of every transformer that rankwise recommends, in files: the same bits back, and no code."""

import io

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, SplineTransformer, StandardScaler

import rankwise
from formulas import NAMES, case, fit, frame, predict, table_steps
from model_checks import opened
from rankwise import AverageRanker, RankRLS
from rankwise.cli import main
from rankwise.data import save_svmlight
from rankwise.exceptions import ModelFileError
from rankwise.persistence.container import Container, write_container
from rankwise.persistence.parameters import PARAMETERS, unfit_parameter
from rankwise.persistence.values import features_taken
from rankwise.preprocessing import TableEncoder


def saved(model):
    stream = io.BytesIO()
    rankwise.save(model, stream)
    return stream.getvalue()


def loaded(data):
    return rankwise.load(io.BytesIO(data))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_come_back(name):
    model, X, _, qid = case(name)
    data = saved(model)
    again = loaded(data)
    assert (predict(again, X, qid) == predict(model, X, qid)).all()
    assert saved(again) == data
    steps = getattr(model, "steps", [])
    for (_, one), (_, other) in zip(steps, getattr(again, "steps", []), strict=True):
        assert one.get_params(deep=False).keys() == other.get_params(deep=False).keys()
        if hasattr(one, "get_feature_names_out"):
            assert (one.get_feature_names_out() == other.get_feature_names_out()).all()


def test_columns_that_a_function_chose_are_kept_as_what_it_chose():
    X, y, qid = frame()
    steps = ColumnTransformer(
        [("numbers", SimpleImputer(), make_column_selector(dtype_include=float))],
        remainder=OneHotEncoder(handle_unknown="ignore"),
    )
    model = fit([steps], RankRLS(), X, y, qid)
    assert (loaded(saved(model)).predict(X) == model.predict(X)).all()


def test_a_transformer_with_code_is_refused_and_named():
    X, y, qid = frame()
    steps = ColumnTransformer([("mine", FunctionTransformer(np.nan_to_num), ["price", "size"])])
    with pytest.raises(ModelFileError, match="FunctionTransformer"):
        saved(fit([steps], RankRLS(), X, y, qid))


def changed(data, change):
    """Return a file whose header was changed, with a checksum that fits."""
    container = opened(data)
    change(container.header, container.arrays)
    out = io.BytesIO()
    write_container(out, Container(container.header, container.arrays))
    return out.getvalue()


def table_file():
    X, y, qid = frame()
    return saved(fit([table_steps()], RankRLS(), X, y, qid))


def numbers(header):
    return header["steps"][0]["parameters"]["transformers"][0]["$tuple"][1]["$step"]


def text_encoder(header):
    return header["steps"][0]["attributes"]["transformers_"][1]["$tuple"][1]["$step"]


HOSTILE = {
    "a cache of pickles": lambda header, _: numbers(header)["parameters"].update(memory="/tmp/pickles"),
    "a class of its own": lambda header, _: numbers(header).update({"class": "FunctionTransformer"}),
    "a class of Python": lambda header, _: numbers(header).update({"class": "eval"}),
    "a step that is none": lambda header, _: header["steps"][0]["parameters"].update(remainder={"$step": 3}),
    "a private name": lambda header, _: text_encoder(header)["attributes"].update(_repr_html_=3),
    "more columns than categories": lambda header, _: text_encoder(header)["attributes"].update(
        _n_features_outs=[900]
    ),
    "a category that is not there": lambda header, _: text_encoder(header)["attributes"].update(
        _drop_idx_after_grouping=[70]
    ),
    "one category for all columns": lambda header, _: text_encoder(header)["attributes"].update(
        _drop_idx_after_grouping=3
    ),
    "no number of columns": lambda header, _: text_encoder(header)["attributes"].update(
        _n_features_outs=None
    ),
    "an array for a number of columns": lambda header, _: text_encoder(header)["attributes"].update(
        _n_features_outs=[{"$array": "step0/transformers_/0/1/steps/0/1/statistics_"}]
    ),
    "an array for the columns it takes": lambda header, _: text_encoder(header)["attributes"].update(
        n_features_in_={"$array": "step0/transformers_/0/1/steps/0/1/statistics_"}
    ),
    "an array for a kind of number": lambda header, _: text_encoder(header)["attributes"].update(
        n_features_in_={"$numpy": {"$array": "step0/transformers_/0/1/steps/0/1/statistics_"}, "value": "1"}
    ),
    "rare categories far away": lambda header, _: text_encoder(header)["attributes"].update(
        _default_to_infrequent_mappings=[{"$array": "step0/transformers_/0/1/steps/0/1/statistics_"}]
    ),
    "a type that is no number": lambda header, _: text_encoder(header)["parameters"].update(
        dtype={"$type": "object"}
    ),
    "a slice of nothing": lambda header, _: header["steps"][0]["attributes"]["output_indices_"].update(
        numbers={"$slice": [0, 8, []]}
    ),
    "a word where a transformer stands": lambda header, _: header["steps"][0]["parameters"].update(
        remainder="os"
    ),
    "too many processes": lambda header, _: header["steps"][0]["parameters"].update(n_jobs=257),
    "processes without number": lambda header, _: header["steps"][0]["parameters"].update(n_jobs="all"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pipeline_is_refused(name):
    with pytest.raises(ModelFileError):
        loaded(changed(table_file(), HOSTILE[name]))


def test_what_is_only_written_again_loads():
    assert loaded(changed(table_file(), lambda *_: None)) is not None


def test_pipelines_inside_pipelines():
    X, y, qid = frame()
    inner = Pipeline([("fill", SimpleImputer()), ("scale", StandardScaler())])
    model = fit([inner], RankRLS(), X[["price", "size"]], y, qid)
    assert (loaded(saved(model)).predict(X[["price", "size"]]) == model.predict(X[["price", "size"]])).all()


def test_a_mean_of_models_with_an_array_for_the_columns_of_one_is_refused():
    X = np.random.default_rng(0).normal(size=(8, 2))
    data = saved(
        AverageRanker([make_pipeline(StandardScaler(), RankRLS()), RankRLS()]).fit(X, np.arange(8.0))
    )
    assert loaded(data) is not None

    def change(header, _):
        inside = header["steps"][0]["attributes"]["rankers_"][0]["$step"]["parameters"]["steps"][0]
        scaler = inside["$tuple"][1]["$step"]["attributes"]
        scaler["n_features_in_"] = scaler["mean_"]

    with pytest.raises(ModelFileError, match="takes other columns"):
        loaded(changed(data, change))


@pytest.mark.parametrize("n_columns", ["number", None, -1, 1, {"$float": "nan"}], ids=str)
def test_a_table_encoder_that_counts_wrong_is_refused(n_columns):
    X, y, qid = frame()
    data = saved(fit([TableEncoder()], RankRLS(), X, y, qid))
    wrong = changed(data, lambda header, _: header["steps"][0]["attributes"].update(n_features_in_=n_columns))
    with pytest.raises(ModelFileError, match="encoder of tables"):
        loaded(wrong)


def test_a_table_encoder_that_leaves_all_columns_out_is_refused():
    X, y, qid = frame()
    data = saved(fit([TableEncoder()], RankRLS(), X, y, qid))

    def leave_out(header, _):
        for column in header["steps"][0]["attributes"]["columns_"]:
            column.update(kind="left out", why="it is empty")

    with pytest.raises(ModelFileError, match="does not say what to do with every column"):
        loaded(changed(data, leave_out))


def splines_in(value):
    """Yield every spline of a header."""
    for key, part in value.items() if isinstance(value, dict) else enumerate(value):
        if key == "$spline":
            yield part
        elif isinstance(part, dict | list):
            yield from splines_in(part)


def test_a_spline_that_goes_on_by_an_array_is_refused():
    model, _, _, _ = case("splines")

    def change(header, arrays):
        splines = list(splines_in(header))
        assert splines
        splines[0]["extrapolate"] = {"$array": next(iter(arrays))}

    with pytest.raises(ModelFileError, match="spline"):
        loaded(changed(saved(model), change))


@pytest.mark.parametrize("name", PARAMETERS)
def test_no_parameter_stumbles_over_an_array(name):
    for value in (
        np.zeros(0),
        np.zeros(2),
        np.array("a"),
        np.zeros((2, 2)),
        [np.zeros(2)],
        {"a": np.zeros(2)},
    ):
        assert unfit_parameter({name: value}) in {name, None}


@pytest.mark.parametrize("word", ["passthrough", "drop"])
def test_pipelines_may_begin_with_a_word(word, tmp_path, capsys):
    X = np.random.default_rng(0).uniform(0.5, 2.0, size=(30, 3))
    y, qid = np.arange(30) % 3, np.arange(30) // 10
    union = FeatureUnion([("first", word), ("splines", SplineTransformer(n_knots=3))])
    model = make_pipeline(union, RankRLS()).fit(X, y, rankrls__qid=qid)
    mean = AverageRanker([make_pipeline(union, RankRLS())]).fit(X, y)
    assert loaded(saved(mean)).n_features_in_ == mean.n_features_in_ == 3
    rankwise.save(model, tmp_path / "model.rw")
    save_svmlight(X, y, tmp_path / "rows.txt", qid=qid)
    assert main(["predict", str(tmp_path / "model.rw"), str(tmp_path / "rows.txt")]) == 0
    assert capsys.readouterr().out.split() == list(map(repr, model.predict(X).tolist()))


class _Quiet(BaseEstimator):
    """A transformer that does not say how many columns it takes."""


def test_how_many_columns_are_taken_is_told_by_the_first_step_that_is_no_word():
    four, two = StandardScaler().fit(np.eye(4)), StandardScaler().fit(np.eye(2))
    assert features_taken(FeatureUnion([("a", "drop"), ("b", four)])) == 4
    assert features_taken(Pipeline([("a", "passthrough"), ("b", Pipeline([("c", four)]))])) == 4
    assert features_taken(Pipeline([("a", None), ("b", "passthrough")])) is None
    assert features_taken(Pipeline([("a", _Quiet()), ("b", two)])) is None  # of fewer columns, perhaps
