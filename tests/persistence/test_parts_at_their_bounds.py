"""Parts of models that must fit together: at the bounds of each check, what fits loads and the rest does not."""

import io
import re

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import rankwise
from model_checks import put_together, taken_apart, with_checksum, without_checksum
from rankwise import AdditiveRanker, AverageRanker, KernelRankRLS, RankRLS, RankSVM
from rankwise.exceptions import ModelFileError
from rankwise.metrics import get_metric
from rankwise.persistence import read_header
from rankwise.persistence.defaults import DEFAULTS
from rankwise.persistence.transformers import is_pipeline, parameters_of
from rankwise.persistence.writer import Writer

X, Y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12.0) % 3


def saved(model, **options):
    stream = io.BytesIO()
    rankwise.save(model, stream, **options)
    return stream.getvalue()


def load(data):
    return rankwise.load(io.BytesIO(data))


def with_header(model, change):
    """Return the file of a model whose header was changed."""
    header, description, rest = taken_apart(without_checksum(saved(model)))
    change(header)
    return with_checksum(put_together(header, description, rest))


def check(model, said, **attributes):
    """Load the model that has such attributes; None is said where that works."""
    for name, value in attributes.items():
        setattr(model, name, value)
    data = saved(model)
    if said is None:
        assert load(data) is not None
        return
    with pytest.raises(ModelFileError, match=f"cannot be understood: .*{said}"):
        load(data)


# --- rankers ---


@pytest.mark.parametrize(
    ("coef", "is_fine"),
    [
        (np.zeros(3), True),
        (np.zeros((1, 3)), True),
        (np.zeros((4, 3)), True),
        (np.zeros(2), False),
        (np.zeros(4), False),
        (np.zeros((3, 1)), False),
        (np.zeros((1, 1, 3)), False),
        (np.array(3.0), False),
        (np.zeros(3, dtype=np.float32), False),
        (np.zeros(3, dtype=np.int64), False),
        (np.array(["a", "b", "c"]), False),
        ([0.0, 0.0, 0.0], False),
        (None, False),
    ],
)
def test_coefficients_are_one_number_a_column_and_output(coef, is_fine):
    said = None if is_fine else "the model's coefficients are not 3 numbers per output"
    check(RankRLS().fit(X, Y), said, coef_=coef)


@pytest.mark.parametrize("n_features", [0, -1, True, 3.0, "3", None, np.int64(3)])
def test_a_model_says_how_many_columns_it_takes(n_features):
    check(RankRLS().fit(X, Y), "how many features the model takes", n_features_in_=n_features)


@pytest.mark.parametrize(
    ("basis", "said"),
    [
        (np.array([0, 2]), None),
        (np.array([1, 1]), None),
        (np.array([0, 2], dtype=np.uint8), None),
        (np.array([0, 3]), "rows that were not there"),
        (np.array([-1, 2]), "rows that were not there"),
        (np.array([0, 1, 2]), "coefficients are not 3"),
        (np.array([], dtype=np.int64), "the basis is none"),
        (np.array([[0, 2]]), "the basis is none"),
        (np.array(2), "the basis is none"),
        (np.array([0.0, 2.0]), "the basis is none"),
        ([0, 2], "the basis is none"),
    ],
)
def test_a_basis_names_rows_that_there_are(basis, said):
    model = KernelRankRLS("precomputed", basis=2).fit(np.eye(3), np.arange(3.0))
    check(model, said, basis_=basis)


def test_all_rows_are_the_basis_where_none_is_named():
    check(KernelRankRLS("precomputed").fit(np.eye(3), np.arange(3.0)), None, basis_=None)
    model = KernelRankRLS("precomputed", basis=2).fit(np.eye(3), np.arange(3.0))
    check(model, "coefficients are not 3", basis_=None)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (np.zeros((2, 3)), None),
        (np.zeros((2, 3), dtype=np.float32), None),
        (sp.csr_matrix(np.zeros((2, 3))), None),
        (np.zeros((2, 3), dtype=np.int64), "no basis rows"),
        (sp.csr_matrix(np.zeros((2, 3), dtype=np.int64)), "no basis rows"),
        (np.zeros(3), "no basis rows"),
        (np.zeros((2, 3, 1)), "no basis rows"),
        ([[0.0] * 3] * 2, "no basis rows"),
        (None, "no basis rows"),
        (np.zeros((2, 2)), r"basis rows have shape \(2, 2\)"),
        (np.zeros((2, 4)), r"basis rows have shape \(2, 4\)"),
        (np.zeros((1, 3)), r"basis rows have shape \(1, 3\)"),
        (np.zeros((3, 3)), r"basis rows have shape \(3, 3\)"),
    ],
)
def test_basis_rows_have_the_columns_that_the_model_takes(rows, said):
    model = KernelRankRLS(basis=2).fit(X[:4], np.arange(4.0))
    check(model, said, X_fit_=rows)


def test_models_of_wide_rows_come_back():
    """Sizes are compared by value: more columns than Python keeps numbers for."""
    wide = np.random.default_rng(1).normal(size=(310, 300))
    for model in (
        KernelRankRLS(basis=300).fit(wide, wide[:, 0]),
        RankRLS().fit(wide, wide[:, 0]),
        KernelRankRLS("precomputed", basis=280).fit(wide @ wide.T, wide[:, 0]),
        AverageRanker([RankRLS()]).fit(wide, wide[:, 0]),
        make_pipeline(StandardScaler(), RankRLS()).fit(wide, wide[:, 0]),
    ):
        own = wide @ wide.T if model.n_features_in_ == 310 else wide
        assert (load(saved(model)).predict(own) == model.predict(own)).all()


def curves():
    return AdditiveRanker(interactions=1, n_knots=3).fit(X, Y)


@pytest.mark.parametrize("name", ["values_", "shares_", "importances_"])
def test_curves_have_a_number_for_everything(name):
    array = getattr(curves(), name)
    check(curves(), None, **{name: array})
    for other in (
        array[:-1],
        np.append(array, 0.0),
        array[None],
        array.astype(np.float32),
        array.astype(str),
        array.tolist(),
        None,
    ):
        check(curves(), f"{name} are not {array.size} numbers", **{name: other})


def test_curves_and_surfaces_are_of_columns_that_there_are():
    model = curves()
    columns = [side.column for one in model.terms_.surfaces for side in (one.first, one.second)]
    assert max(columns) == 2 or max(curve.column for curve in model.terms_.curves) == 2
    for change in (
        lambda terms: terms["curves"][0].update(column=3),
        lambda terms: terms["curves"][-1].update(column=400),
        lambda terms: terms["surfaces"][0][0].update(column=3),
        lambda terms: terms["surfaces"][0][1].update(column=3),
    ):
        damaged = with_header(model, lambda h, c=change: c(h["steps"][0]["attributes"]["terms_"]["$terms"]))
        with pytest.raises(ModelFileError, match="a curve is of a column beyond the 3 there are"):
            load(damaged)


def mean():
    return AverageRanker([RankRLS(), make_pipeline(StandardScaler(), RankSVM())]).fit(X, Y)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({}, None),
        ({"weights_": np.array([0.0, 1.0])}, None),
        ({"weights_": np.ones(1)}, "are not 2 numbers"),
        ({"weights_": np.ones(3)}, "are not 2 numbers"),
        ({"weights_": np.ones((2, 1))}, "are not 2 numbers"),
        ({"weights_": np.ones(2, dtype=np.float32)}, "are not 2 numbers"),
        ({"weights_": np.array(["a", "b"])}, "are not 2 numbers"),
        ({"weights_": [0.5, 0.5]}, "are not 2 numbers"),
        ({"rankers_": []}, "mean of several models has none"),
        ({"rankers_": (RankRLS().fit(X, Y),) * 2}, "mean of several models has none"),
        ({"rankers_": [RankRLS().fit(X, Y), StandardScaler().fit(X)]}, "ranks nothing, or takes other columns"),
        ({"rankers_": [RankRLS().fit(X, Y), RankRLS().fit(X[:, :2], Y)]}, "ranks nothing, or takes other columns"),
        ({"rankers_": [RankRLS().fit(X, Y), 3]}, "ranks nothing, or takes other columns"),
    ],
)  # fmt: skip
def test_the_models_of_a_mean_rank_the_same_columns_with_a_weight_each(attributes, said):
    check(mean(), said, **attributes)


# --- names ---


@pytest.mark.parametrize("name", ["x_", "X_fit_", "a1_", "a_b_"])
def test_fitted_attributes_end_in_an_underscore(name):
    data = with_header(RankRLS().fit(X, Y), lambda h: h["steps"][0]["attributes"].update({name: 3}))
    assert getattr(load(data), name) == 3


@pytest.mark.parametrize("name", ["x", "_x_", "1x_", "__dict__", "x_y", "", "ä_", "x_\n", "a-b_", "_scaler"])
def test_no_other_attribute_is_set(name):
    data = with_header(RankRLS().fit(X, Y), lambda h: h["steps"][0]["attributes"].update({name: 3}))
    with pytest.raises(ModelFileError, match=re.escape(f"{name!r} is no fitted attribute")):
        load(data)


def test_a_class_is_known_by_more_than_its_name():
    for kind in (RankRLS, StandardScaler, Pipeline):
        assert not is_pipeline(type("Pipeline", (kind,), {})([]) if kind is Pipeline else kind())
    assert is_pipeline(make_pipeline(RankRLS()))
    other = type("RankRLS", (RankRLS,), {"__module__": __name__})
    with pytest.raises(ModelFileError, match="RankRLS is not one of the classes"):
        saved(other().fit(X, Y))


def test_steps_have_names_and_classes():
    pipeline = make_pipeline(StandardScaler(), RankRLS()).fit(X, Y)
    for change, said in (
        (lambda step: step.pop("name"), "a step has no name"),
        (lambda step: step.update(name=3), "a step has no name"),
        (lambda step: step.pop("class"), "a step names no class"),
        (lambda step: step.update({"class": 3}), "a step names no class"),
        (lambda step: step.update({"class": "Evil"}), "class 'Evil' is not known here"),
        (lambda step: step.update(name="rankrls"), "two steps have the same name"),
        (lambda step: step.pop("parameters"), "StandardScaler has no parameters or attributes"),
        (lambda step: step.update(attributes=[]), "StandardScaler has no parameters or attributes"),
        (lambda step: step["parameters"].update(more=1), "StandardScaler has no parameter 'more'"),
        (lambda step: step["parameters"].update(copy="no"), "StandardScaler cannot have copy='no'"),
    ):
        damaged = with_header(pipeline, lambda header, change=change: change(header["steps"][0]))
        with pytest.raises(ModelFileError, match=said):
            load(damaged)
    for steps in (3, [], {}, [3], [["name"]]):
        with pytest.raises(ModelFileError, match=r"it holds no model|a step has no name"):
            load(with_header(pipeline, lambda header, steps=steps: header.update(steps=steps)))


def test_parameters_that_a_class_cannot_do_without_are_named():
    steps = ColumnTransformer([("a", StandardScaler(), [0, 2])])
    pipeline = make_pipeline(steps, RankRLS()).fit(X, Y)
    assert (load(saved(pipeline)).predict(X) == pipeline.predict(X)).all()
    damaged = with_header(pipeline, lambda header: header["steps"][0]["parameters"].pop("transformers"))
    with pytest.raises(ModelFileError, match=r"ColumnTransformer lacks parameters \(transformers\)"):
        load(damaged)
    only = with_header(
        pipeline,
        lambda header: header["steps"][0].update(
            parameters={"transformers": header["steps"][0]["parameters"]["transformers"]}
        ),
    )
    assert (load(only).predict(X) == pipeline.predict(X)).all()  # all others have a default


@pytest.mark.parametrize("defaults", [0, -1, DEFAULTS + 1, True, 1.0, "1", None])
def test_defaults_of_no_known_number_are_refused(defaults):
    with pytest.raises(ModelFileError, match=f"have defaults {defaults!r}, which are not known here"):
        load(with_header(RankRLS().fit(X, Y), lambda header: header.update(defaults=defaults)))


@pytest.mark.parametrize("defaults", range(1, DEFAULTS + 1))
def test_defaults_of_every_known_number_are_read(defaults):
    data = with_header(RankRLS().fit(X, Y), lambda header: header.update(defaults=defaults))
    assert load(data).get_params().keys() == RankRLS().get_params().keys()


# --- requests and containers ---


def test_requests_are_true_false_none_or_a_name():
    with sklearn.config_context(enable_metadata_routing=True):
        for wanted in (True, False, None, "importance"):
            model = RankRLS().set_fit_request(sample_weight=wanted).set_score_request(qid=True).fit(X, Y)
            again = load(saved(model))
            assert again.get_metadata_routing().fit.requests["sample_weight"] == wanted
            assert again.get_metadata_routing().score.requests["qid"] is True
    for requests, said in (
        ({"fit": {"qid": 1}}, "a metadata request is none"),
        ({"fit": {"qid": [True]}}, "a metadata request is none"),
        ({"fit": ["qid"]}, "method 'fit' requests nothing"),
        ({"transform": {"X": True}}, "a metadata request is none"),  # which rankers do not have
        ({"set_params": {}}, "method 'set_params' requests nothing"),
        ([], "metadata requests are no requests"),
    ):
        damaged = with_header(
            RankRLS().fit(X, Y), lambda header, own=requests: header["steps"][0].update(requests=own)
        )
        with pytest.raises(ModelFileError, match=said):
            load(damaged)
    assert load(with_header(RankRLS().fit(X, Y), lambda header: header["steps"][0].update(requests=None)))


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
def test_containers_are_those_of_scikit_learn(output):
    pipeline = make_pipeline(StandardScaler().set_output(transform=output), RankRLS())
    pipeline.fit(X, Y) if output == "default" else pipeline[0].fit(X) and pipeline[1].fit(X, Y)
    again = load(saved(pipeline))
    assert again[0]._sklearn_output_config == {"transform": output}
    for other in ("numpy", "", 3, [output], {"transform": output}):
        damaged = with_header(pipeline, lambda header, own=other: header["steps"][0].update(output=own))
        with pytest.raises(ModelFileError, match="an output container is unknown"):
            load(damaged)
    damaged = with_header(pipeline, lambda header: header["steps"][1].update(output=output))
    with pytest.raises(ModelFileError, match="an output container is unknown"):  # a ranker has none
        load(damaged)


# --- encoders ---


def encoder(**options):
    rows = np.array([["a", "x"], ["b", "y"], ["c", "x"], ["c", "y"]] * 3, dtype=object)
    return make_pipeline(OneHotEncoder(**options), RankRLS()).fit(rows, Y), rows


RARE = {"min_frequency": 4, "handle_unknown": "infrequent_if_exist"}


@pytest.mark.parametrize(
    "options", [{}, {"drop": "first"}, RARE, {"drop": "first", **RARE}, {"drop": "if_binary"}]
)
def test_encoders_of_every_kind_come_back(options):
    pipeline, rows = encoder(**options)
    assert (load(saved(pipeline)).predict(rows) == pipeline.predict(rows)).all()


LEVELS = np.array([0, 1, 2])


@pytest.mark.parametrize(
    ("options", "attributes", "said"),
    [
        ({"drop": "first"}, {"_drop_idx_after_grouping": np.array([2, 1], dtype=object)}, None),
        ({"drop": "first"}, {"_drop_idx_after_grouping": [0, np.int64(1)]}, None),
        ({"drop": "first"}, {"_drop_idx_after_grouping": [3, 0]}, "drops a category that it does not have"),
        ({"drop": "first"}, {"_drop_idx_after_grouping": [0, 2]}, "drops a category that it does not have"),
        ({"drop": "first"}, {"_drop_idx_after_grouping": [-1, 0]}, "drops a category that it does not have"),
        ({"drop": "first"}, {"_drop_idx_after_grouping": [True, 0]}, "drops a category that it does not have"),
        ({"drop": "first"}, {"_drop_idx_after_grouping": [0.0, 0]}, "something else than one entry per column"),
        ({"drop": "first"}, {"_drop_idx_after_grouping": [0]}, "rare categories of other columns"),
        ({"drop": "first"}, {"_drop_idx_after_grouping": [0, 0, None]}, "rare categories of other columns"),
        ({"drop": "first"}, {"_drop_idx_after_grouping": [None, 0]}, "makes other columns than its categories"),
        ({"drop": "first"}, {"_drop_idx_after_grouping": np.array([[0, 0]])}, "something else than one entry"),
        ({}, {"_n_features_outs": [3, 2]}, None),
        ({}, {"_n_features_outs": np.array([3, 2])}, None),
        ({}, {"_n_features_outs": [3, 1]}, "makes other columns than its categories"),
        ({}, {"_n_features_outs": [2, 3]}, "makes other columns than its categories"),
        ({}, {"_n_features_outs": [3, 2, 1]}, "makes other columns than its categories"),
        ({}, {"n_features_in_": 3}, "categories of other columns than it takes"),
        ({}, {"n_features_in_": 1}, "categories of other columns than it takes"),
        ({}, {"categories_": (LEVELS, LEVELS)}, "the categories of an encoder are none"),
        ({}, {"categories_": [LEVELS, [0, 1]]}, "the categories of an encoder are none"),
        ({}, {"categories_": [LEVELS, LEVELS[None]]}, "the categories of an encoder are none"),
        ({}, {"categories_": [LEVELS, LEVELS[:0]]}, "the categories of an encoder are none"),
        (RARE, {"_default_to_infrequent_mappings": [np.array([1, 1, 0]), None]}, None),
        (RARE, {"_default_to_infrequent_mappings": [LEVELS, None]}, "makes other columns than its categories"),
        (RARE, {"_default_to_infrequent_mappings": [LEVELS + 1, None]}, "the rare categories of an encoder are none"),
        (RARE, {"_default_to_infrequent_mappings": [LEVELS - 1, None]}, "the rare categories of an encoder are none"),
        (RARE, {"_default_to_infrequent_mappings": [LEVELS[:2], None]}, "the rare categories of an encoder are none"),
        (RARE, {"_default_to_infrequent_mappings": [np.zeros(4, dtype=int), None]}, "the rare categories"),
        (RARE, {"_default_to_infrequent_mappings": [np.array([1.0, 1, 0]), None]}, "the rare categories"),
        (RARE, {"_default_to_infrequent_mappings": [[1, 1, 0], None]}, "the rare categories of an encoder are none"),
        (RARE, {"_default_to_infrequent_mappings": [None]}, "rare categories of other columns"),
        (RARE, {"_default_to_infrequent_mappings": [None] * 3}, "rare categories of other columns"),
        (RARE, {"_default_to_infrequent_mappings": None}, "rare categories of other columns"),
    ],
)  # fmt: skip
def test_the_parts_of_an_encoder_fit_its_categories(options, attributes, said):
    pipeline, _ = encoder(**options)
    for name, value in attributes.items():
        assert hasattr(pipeline[0], name)
        setattr(pipeline[0], name, value)
    check(pipeline, said)


def test_an_encoder_that_drops_one_of_several_grouped_levels_is_checked_against_the_groups():
    """Three categories, two of them rare, make two levels: the second can be dropped, and no third."""
    pipeline, _ = encoder(drop="first", **RARE)
    assert pipeline[0]._n_features_outs == [1, 1]
    pipeline[0]._drop_idx_after_grouping = np.array([1, 0], dtype=object)
    check(pipeline, None)
    pipeline[0]._drop_idx_after_grouping = np.array([2, 0], dtype=object)
    check(pipeline, "drops a category that it does not have")


# --- what is written ---


@pytest.mark.parametrize("state", [np.random.RandomState(1), np.random.default_rng(1)], ids=["old", "new"])
def test_a_generator_is_kept_as_one_that_nobody_seeded(state):
    assert load(saved(RankRLS(random_state=state).fit(X, Y))).random_state is None
    assert load(saved(RankRLS(random_state=7).fit(X, Y))).random_state == 7


def test_columns_that_a_function_chose_stand_beside_those_that_were_named():
    steps = ColumnTransformer([("a", StandardScaler(), lambda _: [0, 2]), ("b", "passthrough", [1])])
    assert callable(parameters_of(steps)["transformers"][0][2])
    assert [columns for *_, columns in parameters_of(steps.fit(X))["transformers"]] == [[0, 2], [1]]


def test_arrays_are_named_by_where_they_were_found():
    writer, own = Writer(), np.zeros(2)
    writer.write({"a": [own, (own, {"b": own})], "c": sp.csr_matrix(np.eye(1)), "d": {1: own}}, "x")
    assert list(writer.arrays) == [
        "x/a/0",
        "x/a/1/0",
        "x/a/1/1/b",
        "x/c/data",
        "x/c/indices",
        "x/c/indptr",
        "x/d/1",
    ]
    assert list(Writer().arrays) == []
    header = read_header(io.BytesIO(saved(make_pipeline(StandardScaler(), RankRLS()).fit(X, Y))))
    assert header["steps"][0]["attributes"]["mean_"] == {"$array": "standardscaler/mean_"}
    assert header["steps"][1]["attributes"]["coef_"] == {"$array": "rankrls/coef_"}
    assert read_header(io.BytesIO(saved(RankRLS().fit(X, Y))))["steps"][0]["attributes"]["coef_"] == {
        "$array": "coef_"
    }
    names = [f"surfaces/0/{side}" for side in ("first", "second")]
    found = str(read_header(io.BytesIO(saved(curves())))["steps"][0]["attributes"]["terms_"])
    assert all(f"terms_/{name.removeprefix('surfaces/')}/knots" in found for name in names)


def test_curves_of_surfaces_stay_apart():
    model = curves()
    again = load(saved(model))
    for one, other in zip(model.terms_.surfaces, again.terms_.surfaces, strict=True):
        assert (one.first.column, one.second.column) == (other.first.column, other.second.column)
        assert one.first.knots.tobytes() == other.first.knots.tobytes()
        assert one.second.knots.tobytes() == other.second.knots.tobytes()


class Numbers(list):
    """A list of somebody's own."""


class BSpline:
    """A spline of somebody's own."""


MINE = type(get_metric("ndcg"))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (BSpline(), "x/0 is a BSpline"),
        (type("float64", (float,), {}), "x/0 is a type"),
        (np.dtype("S3"), "x/0 is a "),
        (type("Mine", (MINE,), {})(), "x/0 is a function .Mine"),
        (np.array([b"a"]), r"x/0 is an array of type \|S1"),
        (np.datetime64(1, "s"), "x/0 is a datetime64"),
        ({1, 2}, "x/0 is a set"),
        (np.dot, "x/0 is a function .*holds no code"),
        (StandardScaler(), "x/0 is a StandardScaler"),
        (type("KFold", (KFold,), {})(3), "x/0 is a KFold"),
    ],
)
def test_values_of_no_known_class_are_refused_by_where_they_stand(value, said):
    with pytest.raises(ModelFileError, match=f"^{said}"):
        Writer().write([value], "x")


def test_lists_of_other_classes_are_written_as_lists():
    assert Writer().write(Numbers([1, Numbers([2])]), "x") == [1, [2]]


def test_a_function_is_refused_and_the_identity_is_not():
    pipeline = make_pipeline(FunctionTransformer(), RankRLS()).fit(X, Y)
    assert (load(saved(pipeline)).predict(X) == pipeline.predict(X)).all()
    pipeline = make_pipeline(FunctionTransformer(np.abs), RankRLS()).fit(X, Y)
    with pytest.raises(ModelFileError, match=r"FunctionTransformer has a function.*Hint: do what it does"):
        saved(pipeline)


def test_what_ranks_nothing_is_named():
    for model in (
        StandardScaler().fit(X),
        make_pipeline(RankRLS(), StandardScaler()),
        make_pipeline(None, StandardScaler()),
    ):
        with pytest.raises(ModelFileError, match=r"^The model is a StandardScaler, which ranks nothing\."):
            saved(model)


@pytest.mark.parametrize("notes", [["a"], "text", 3])
def test_notes_are_a_mapping(notes):
    with pytest.raises(ModelFileError, match=re.escape(f"notes={notes!r} is no mapping")):
        saved(RankRLS().fit(X, Y), notes=notes)


def test_the_header_tells_how_a_model_came_about():
    model = RankRLS().fit(X, Y, qid=np.arange(12) // 4)
    header = read_header(io.BytesIO(saved(model, notes={"from": ["here"]})))
    assert header["training"]["n_features_in"] == 3
    assert header["training"]["n_queries"] == 3
    assert header["training"]["solver"] == model.solver_
    assert (header["rankwise"], header["sklearn"]) == (rankwise.__version__, sklearn.__version__)
    assert (header["estimator"], header["features"], header["notes"]) == ("RankRLS", None, {"from": ["here"]})
    two = RankRLS().fit(X, np.column_stack([Y, -Y]), qid=np.arange(12) // 4)
    assert read_header(io.BytesIO(saved(two)))["training"]["n_pairs"] == two.n_pairs_.tolist()


@pytest.mark.parametrize("n_scalers", [0, 1, 2, 3])
def test_the_last_step_of_a_pipeline_is_the_model(n_scalers):
    names = ["a", "b", "c"][:n_scalers]
    pipeline = Pipeline([*((name, StandardScaler()) for name in names), ("rank", RankRLS(alpha=2.5))]).fit(
        X, Y
    )
    data = saved(pipeline)
    header, again = read_header(io.BytesIO(data)), load(data)
    assert header["estimator"] == "RankRLS"
    assert header["training"]["solver"] == pipeline[-1].solver_
    assert [name for name, _ in again.steps] == [*names, "rank"]
    assert (again.predict(X) == pipeline.predict(X)).all()


@pytest.mark.parametrize("verbose", [True, False])
def test_options_of_a_pipeline_come_back(verbose):
    pipeline = Pipeline([("a", StandardScaler()), ("b", RankRLS())]).fit(X, Y).set_params(verbose=verbose)
    assert load(saved(pipeline)).verbose is verbose
    bare = with_header(pipeline, lambda header: header.update(pipeline={}))
    assert load(bare).verbose is False
    for options in ([], 3, {"steps": []}, {"$tuple": []}):
        with pytest.raises(ModelFileError, match="options that are not known here"):
            load(with_header(pipeline, lambda header, own=options: header.update(pipeline=own)))
