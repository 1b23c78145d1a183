"""Model files that are damaged, from the future, or made to hurt: refused, quickly, and with little memory."""

import io
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwise
from fuzz_corpus import read_corpus
from identical import assert_identical
from model_checks import check_input, opened, put_together, taken_apart, with_checksum, without_checksum
from model_ways import OLD, WAYS, Pipe, model_bytes
from rankwise import KernelRankRLS, RankRLS, RankRLSCV
from rankwise.exceptions import MemoryLimitError, ModelFileError
from rankwise.persistence import read_header
from rankwise.persistence.container import Container, write_container
from rankwise.persistence.container_reader import read_container
from rankwise.persistence.models import RANKERS
from rankwise.persistence.parameters import PARAMETERS, unfit_parameter
from rankwise.persistence.reader import Reader
from rankwise.persistence.transformers import TRANSFORMERS, parameters_of
from rankwise.persistence.writer import Writer

CORPUS = read_corpus(Path(__file__).with_name("model_corpus.txt"))


def load(data):
    return rankwise.load(io.BytesIO(data))


def changed(change, data=None):
    header, description, rest = taken_apart(without_checksum(data or model_bytes()))
    return with_checksum(put_together(change(header) or header, description, rest))


@pytest.fixture(params=["format 1", "format 2"])
def whole(request):
    """A model file of each format that is read."""
    return (OLD / "linear.rw").read_bytes() if request.param == "format 1" else model_bytes()


def test_errors_of_streams_are_not_their_own_cause():
    """Whoever follows the causes of an error must come to an end."""
    for read in (rankwise.load, read_header):
        with pytest.raises(ModelFileError) as caught:
            read(io.BytesIO(b"nothing"))
        assert caught.value.__cause__ is None


def test_what_is_put_together_again_loads(whole):
    assert load(changed(lambda _: None, whole)).coef_.shape == (3,)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_reading_notices_damage_and_gives_arrays_to_write_to(way, whole, tmp_path):
    model = WAYS[way](whole, tmp_path)
    np.testing.assert_array_equal(model.coef_, load(whole).coef_)
    model.coef_[:] = 0
    assert not np.array_equal(WAYS[way](whole, tmp_path).coef_, model.coef_)
    for at in np.linspace(0, len(whole) - 1, 25).astype(int):
        spoilt = bytearray(whole)
        spoilt[at] ^= 1
        with pytest.raises(ModelFileError):
            WAYS[way](bytes(spoilt), tmp_path)
    for size in (0, 7, 23, 24, 200, len(whole) - 1):
        with pytest.raises(ModelFileError):
            WAYS[way](whole[:size], tmp_path)
    with pytest.raises(ModelFileError):
        WAYS[way](whole + b"?", tmp_path)


def test_every_changed_byte_is_noticed(whole):
    for at in range(len(whole)):
        for flip in (1, 0x80):
            damaged = bytearray(whole)
            damaged[at] ^= flip
            with pytest.raises(ModelFileError, match=r"Hint: "):
                load(bytes(damaged))


def test_every_cut_and_every_addition_is_noticed(whole):
    for end in range(len(whole)):
        with pytest.raises(ModelFileError):
            load(whole[:end])
    for extra in (b"\0", b"\n", whole):
        with pytest.raises(ModelFileError, match="checksum"):
            load(whole + extra)


def test_a_newer_format_is_refused_and_a_newer_minor_one_is_read(whole):
    header, description, rest = taken_apart(without_checksum(whole))
    newer = put_together(header, description, rest, version=(3, 5))
    with pytest.raises(
        ModelFileError, match=r"format 3\.5, and this version.* reads formats 1 and 2.*Hint: upgrade"
    ):
        load(with_checksum(newer))
    with pytest.raises(ModelFileError, match="format 0"):
        load(with_checksum(put_together(header, description, rest, version=(0, 0))))
    header["something new"] = {"that": ["readers", "ignore"]}
    version = (whole[8], 7)
    assert load(with_checksum(put_together(header, description, rest, version=version))).coef_.shape == (3,)


@pytest.mark.parametrize(
    "data", [b"", b"RANK", b"RANKWISE", b"PK\x03\x04 a zip", b"\x80\x04\x95 a pickle", b"RANKWISE" * 9]
)
def test_other_files_are_refused(data):
    with pytest.raises(ModelFileError, match=r"not a rankwise model file|damaged|format"):
        load(data)


def with_array(**changes):
    def change(header):
        entry = header["arrays"][0]
        for key, value in changes.items():
            entry[key if isinstance(entry, dict) else ("name", "dtype", "shape", "order").index(key)] = value

    return change


def with_step(**changes):
    def change(header):
        header["steps"][0].update(changes)

    return change


def with_attribute(name, value):
    def change(header):
        header["steps"][0]["attributes"][name] = value

    return change


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


HOSTILE = {
    "a huge array": with_array(shape=[2**40]),
    "an overflowing shape": with_array(shape=[2**40, 2**40, 0]),
    "a negative axis": with_array(shape=[-3]),
    "a fractional axis": with_array(shape=[3.0]),
    "an axis that is true": with_array(shape=[True]),
    "too many axes": with_array(shape=[1] * 64),
    "objects": with_array(dtype="|O"),
    "a structure": with_array(dtype="<f8,<f8"),
    "void": with_array(dtype="|V8"),
    "dates": with_array(dtype="<M8[s]"),
    "complex numbers": with_array(dtype="<c16"),
    "a type that is a list": with_array(dtype=["<f8"]),
    "big-endian": with_array(dtype=">f8"),
    "enormous strings": with_array(dtype="<U9999999"),
    "text that is none": with_array(dtype="<U1", shape=[6]),
    "no order": with_array(order="A"),
    "no name": with_array(name=None),
    "too short an array": with_array(shape=[1]),
    "an array of three parts": lambda header: header.update(arrays=[["coef_", "<f8", [3]]]),
    "an array that is text": lambda header: header.update(arrays=["coef_"]),
    "the same array twice": lambda header: header["arrays"].append(header["arrays"][0]),
    "no arrays": lambda header: header.pop("arrays") and None,
    "arrays that are a number": lambda header: header.update(arrays=3),
    "no steps": lambda header: header.pop("steps") and None,
    "steps that are a dictionary": lambda header: header.update(steps={"a": 1}),
    "another class": with_step(**{"class": "os.system"}),
    "a class that is a list": with_step(**{"class": ["RankRLS"]}),
    "a scaler alone": with_step(**{"class": "StandardScaler", "parameters": {}, "attributes": {}}),
    "nothing but passthrough": with_step(**{"class": None}),
    "an unknown parameter": with_step(parameters={"alpha": 1.0, "evil": 2}),
    "parameters that are a list": with_step(parameters=[1]),
    "no attributes": with_step(attributes=None),
    "a dunder": with_attribute("__class__", 1),
    "a private attribute": with_attribute("_private_", 1),
    "a method": with_attribute("predict", 1),
    "an array that is not there": with_attribute("coef_", {"$array": "else"}),
    "coefficients of another size": with_attribute("n_features_in_", 5),
    "features that are text": with_attribute("n_features_in_", "3"),
    "coefficients that are a list": with_attribute("coef_", [1.0, 2.0, 3.0]),
    "an unknown kind": with_attribute("x_", {"$code": "print()"}),
    "two kinds": with_attribute("x_", {"$array": "coef_", "$tuple": []}),
    "a deep list": with_attribute("x_", nested(100)),
    "a very deep list": with_attribute("x_", nested(900)),
    "an unknown metric": with_attribute("x_", {"$metric": {"name": "x", "options": {}}}),
    "a metric with odd options": with_attribute("x_", {"$metric": {"name": "ndcg", "options": {"z": 1}}}),
    "a metric without options": with_attribute("x_", {"$metric": {"name": "ndcg"}}),
    "a callable kernel": with_attribute("x_", {"$kernel": {"name": "eval", "parameters": {}}}),
    "a splitter with odd parameters": with_attribute(
        "x_", {"$splitter": {"name": "KFold", "parameters": {"n_splits": -1}}}
    ),
    "an unknown splitter": with_attribute("x_", {"$splitter": {"name": "Popen", "parameters": {}}}),
    "a number out of range": with_attribute("x_", {"$numpy": "int8", "value": 300}),
    "a number that is text": with_attribute("x_", {"$numpy": "float64", "value": "1"}),
    "a number too large": with_attribute("x_", {"$numpy": "float16", "value": 1e300}),
    "a float that is none": with_attribute("x_", {"$float": "0x1p3"}),
    "a list as a key": with_attribute("x_", {"$dict": [[[1], 2]]}),
    "a pair that is none": with_attribute("x_", {"$dict": [[1]]}),
    "a range of nothing": with_attribute("x_", {"$range": [0, 1, 0]}),
    "a range of floats": with_attribute("x_", {"$range": [0.0, 1, 1]}),
    "more objects than there are": with_attribute("x_", {"$objects": {"shape": [2**40], "items": []}}),
    "an empty array of a huge shape": with_attribute("x_", {"$objects": {"shape": [0, 2**47], "items": []}}),
    "an odd sparse matrix": with_attribute(
        "x_", {"$sparse": {"kind": "csr_matrix", "shape": [1, 1], "data": 1, "indices": 2, "indptr": 3}}
    ),
    "requests that are none": with_step(requests={"fit": {"qid": [1]}}),
    "requests of an unknown method": with_step(requests={"__init__": {"qid": True}}),
    "requests of an unknown argument": with_step(requests={"fit": {"evil": True}}),
    "an unknown container": with_step(output="numpy; evil"),
    "two steps without a pipeline": lambda header: header["steps"].append(header["steps"][0]),
    "a pipeline with odd options": lambda header: header.update(pipeline={"evil": 1}),
    "two steps of one name": lambda header: header.update(pipeline={}, steps=header["steps"] * 2),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_header_is_refused(name, whole):
    if name == "an empty array of a huge shape":
        assert load(changed(HOSTILE[name], whole)).x_.size == 0  # odd, and harmless
        return
    with pytest.raises(ModelFileError, match=r"Hint: "):
        load(changed(HOSTILE[name], whole))


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"arrays": [], "arrays": []}',
        b'{"arrays": [], "steps": NaN}',
        b'{"arrays": [], "steps": 1e999}',
        b'{"arrays": [], "steps": -Infinity}',
        b'{"arrays": [], "steps": ' + b"1" * 5000 + b"}",
        b"[" * 100_000,
        b'{"arrays": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"a":' * 100_000,
    ],
)
@pytest.mark.parametrize("description", [None, {}])
def test_a_header_that_is_no_json_is_refused(text, description):
    with pytest.raises(ModelFileError, match=r"Hint: "):
        load(with_checksum(put_together(None, description, b"", text=text)))


def test_promised_sizes_cost_nothing():
    tracemalloc.start()
    for length in (2**26, 2**32 - 1):
        for before in (0, 4, 8):  # each of the texts
            data = b"RANKWISE\x02\0\0\0" + bytes(before) + length.to_bytes(4, "little") + bytes(300)
            with pytest.raises(ModelFileError, match="header is said to take"):
                load(with_checksum(data))
    with pytest.raises(ModelFileError, match="no room for array"):
        load(changed(with_array(shape=[2**33])))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20


@pytest.mark.parametrize(
    "change",
    [
        {"indices": [0, 1, 9]},
        {"indices": [-1, 1, 2]},
        {"indptr": [0, 2, 1, 3]},
        {"indptr": [0, 1, 2, 2**40]},
        {"indptr": [1, 1, 2, 3]},
        {"indptr": [0, 3]},
        {"data": [1.0]},
        {"indices": [[0], [1], [2]]},
        {"indptr": [[0, 1, 2, 3]]},
        {"data": [[1.0, 1.0, 1.0]]},
    ],
)
def test_sparse_rows_that_point_elsewhere_are_refused(change):
    model = KernelRankRLS("linear").fit(sp.csr_matrix(np.eye(3)), np.arange(3.0))
    stream = io.BytesIO()
    model.save(stream)
    container = opened(stream.getvalue())
    for part, values in change.items():
        container.arrays[f"X_fit_/{part}"] = np.array(values, dtype=float if part == "data" else np.int64)
    again = io.BytesIO()
    write_container(again, container)
    with pytest.raises(ModelFileError, match="sparse matrix"):
        load(again.getvalue())


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("dual_coef_", np.zeros(2), "coefficients are not 3"),
        ("dual_coef_", np.zeros(3, dtype=np.float32), "coefficients"),
        ("dual_coef_", np.zeros((1, 1, 3)), "coefficients"),
        ("X_fit_", np.zeros((3, 2)), "basis rows have shape"),
        ("X_fit_", np.zeros(3), "no basis rows"),
        ("basis_", np.array([0, 1]), "basis rows have shape"),
        ("basis_", np.array([0.5]), "basis is none"),
        ("kernel_", "rbf", "no kernel"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(name, value, message):
    model = KernelRankRLS().fit(np.eye(3), np.arange(3.0))
    setattr(model, name, value)
    stream = io.BytesIO()
    model.save(stream)
    with pytest.raises(ModelFileError, match=message):
        load(stream.getvalue())


@pytest.mark.parametrize("n_features", [1, 0, -1])
def test_a_model_takes_at_least_one_column(n_features):
    model = RankRLS().fit(np.arange(3.0)[:, None], np.arange(3.0))
    model.n_features_in_, model.coef_ = n_features, model.coef_[: max(n_features, 0)]
    stream = io.BytesIO()
    model.save(stream)
    if n_features == 1:
        assert load(stream.getvalue()).coef_ == model.coef_
        return
    with pytest.raises(ModelFileError, match="how many features"):
        load(stream.getvalue())


def test_a_precomputed_basis_must_exist():
    model = KernelRankRLS("precomputed", basis=2).fit(np.eye(3), np.arange(3.0))
    model.basis_ = np.array([0, 7])
    stream = io.BytesIO()
    model.save(stream)
    with pytest.raises(ModelFileError, match="rows that were not there"):
        load(stream.getvalue())


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.builds(np.float32, st.floats(width=32)),
    st.builds(np.int64, st.integers(-(2**63), 2**63 - 1)),
    st.builds(np.bool_, st.booleans()),
    st.builds(np.str_, st.text(st.characters(exclude_characters="\0"))),
)
ARRAYS = st.one_of(
    hnp.arrays(
        st.sampled_from(["f8", "f4", "f2", "i8", "u1", "i2", "?", "U3"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    ),
    hnp.arrays("f8", (3, 2)).map(np.asfortranarray),
    hnp.arrays(object, 3, elements=st.one_of(st.text(), st.integers())),
)
VALUES = st.recursive(
    st.one_of(SCALARS, ARRAYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(value=VALUES)
def test_values_come_back_bit_for_bit(value):
    writer, stream = Writer(), io.BytesIO()
    written = writer.write(value, "value")
    write_container(stream, Container({"value": written}, writer.arrays))
    container = read_container(io.BytesIO(stream.getvalue()))
    assert_identical(value, Reader(container.arrays).read(container.header["value"]))


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.text(max_size=3),
                st.sampled_from(
                    ["$array", "$dict", "$float", "$kernel", "$metric", "$numpy", "$objects", "$range", "$sparse",
                     "$splitter", "$tuple", "value", "name", "options", "parameters", "shape", "items", "kind"]
                ),
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=10,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_header_is_read_or_refused(data):
    """Some part of a good header is replaced by anything."""
    header, description, rest = taken_apart(without_checksum(GOOD))
    where = header
    for _ in range(data.draw(st.integers(1, 5))):
        keys = list(where) if isinstance(where, dict) else list(range(len(where)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(where[key], dict | list) or not where[key]:
            break
        parent, where = where, where[key]
    else:
        where, key = parent, key  # noqa: PLW0127 - replace the innermost that was reached
    where[key] = data.draw(JSON)
    try:
        load(with_checksum(put_together(header, description, rest)))
    except ModelFileError as error:
        assert "Hint: " in str(error)  # noqa: PT017 - either outcome is right


GOOD = model_bytes(RankRLSCV(alphas=(0.1, 1.0), cv=3), np.random.default_rng(0).normal(size=(12, 3)))


def test_what_fuzzing_found_interesting_is_read_or_refused():
    read = 0
    for data in CORPUS:
        read += check_input(data)
        with pytest.raises(ModelFileError, match=r"Hint: "):  # its checksum is missing
            load(data)
    assert 5 < read < len(CORPUS)  # both happen


# --- what a file may not set ---


@pytest.mark.parametrize("memory", ["pickles", {"$dict": [["location", "pickles"]]}, 7, True])
def test_a_file_cannot_have_a_pipeline_write_and_read_pickles(memory, tmp_path, monkeypatch):
    """Pipeline(memory=FOLDER) has joblib pickle its transformers there, and unpickle what is there."""
    monkeypatch.chdir(tmp_path)
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12.0)
    stream = io.BytesIO()
    rankwise.save(make_pipeline(StandardScaler(), RankRLS()).fit(X, y), stream)

    def remember(header):
        header["pipeline"]["memory"] = memory

    pipeline = load(changed(remember, stream.getvalue()))
    assert pipeline.memory is None
    pipeline.fit(X, y)
    assert list(tmp_path.iterdir()) == []


def test_where_a_pipeline_keeps_its_transformers_is_not_saved(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12.0)
    pipeline = make_pipeline(StandardScaler(), RankRLS(), memory=str(tmp_path / "cache")).fit(X, y)
    stream = io.BytesIO()
    rankwise.save(pipeline, stream)
    assert b"cache" not in stream.getvalue()
    assert load(stream.getvalue()).memory is None


@pytest.mark.parametrize("option", [{"verbose": "yes"}, {"transform_input": "X"}, {"transform_input": [1]}])
def test_options_of_a_pipeline_are_of_their_kind(option):
    X, y = np.random.default_rng(0).normal(size=(12, 3)), np.arange(12.0)
    stream = io.BytesIO()
    rankwise.save(make_pipeline(StandardScaler(), RankRLS()).fit(X, y), stream)
    with pytest.raises(ModelFileError, match="options that are none"):
        load(changed(lambda header: header["pipeline"].update(option), stream.getvalue()))


ODD = (None, True, 3, 0.5, "text", [1, "two"], {"a": {"b": 1}}, {"$tuple": ["x", 1]}, {"$dict": [[1, 2]]})


@pytest.mark.parametrize("kind", [*(getattr(rankwise, name) for name in RANKERS), *TRANSFORMERS.values()])
def test_every_parameter_of_every_class_is_listed_and_its_default_allowed(kind):
    needed = {"ColumnTransformer": [[]], "FeatureUnion": [[]], "Pipeline": [[]]}
    assert unfit_parameter(parameters_of(kind(*needed.get(kind.__name__, [])))) is None


def test_parameters_of_the_wrong_kind_are_refused_by_name():
    names = RankRLSCV().get_params(deep=False)
    refused = 0
    for name in names:
        for value in ODD:

            def change(header, name=name, value=value):
                header["steps"][0]["parameters"][name] = value

            fine = any(test(Reader({}).read(value)) for test in PARAMETERS[name])
            try:
                load(changed(change, GOOD))
                assert fine
            except ModelFileError as error:
                refused += 1
                assert not fine
                assert f"cannot have {name}=" in str(error)  # noqa: PT017 - either outcome is right
    assert refused > 5 * len(names)


@pytest.mark.parametrize(
    ("value", "fine"),
    [
        ({"alpha": 1.0, "loss": "hinge", "positive": True, "basis": None, "n_knots": [8, 16]}, True),
        ({"alpha": [[1.0]]}, False),
        ({1: 1.0}, False),
        ([1.0], False),
    ],
)
def test_what_a_search_keeps_fixed_is_plain(value, fine):
    assert any(test(value) for test in PARAMETERS["fixed"]) == fine


def test_what_could_not_be_loaded_is_not_saved():
    model = RankRLS().fit(np.eye(3), [0, 1, 2]).set_params(alpha="much")
    with pytest.raises(ModelFileError, match=r"RankRLS has alpha='much'.*Hint: set it"):
        model.save(io.BytesIO())


# --- through a pipe ---


def test_a_model_through_a_pipe_is_read_as_far_as_it_goes():
    pipe = Pipe(GOOD)
    assert_identical(rankwise.load(pipe).coef_, load(GOOD).coef_, "coef_")
    assert pipe.taken == len(GOOD)


@pytest.mark.parametrize("endless", [True, False])
@pytest.mark.parametrize("length", [0, 3, 8, 16, 40, len(GOOD) - 40, len(GOOD) - 1])
def test_a_pipe_that_ends_early_or_never(length, endless):
    pipe = Pipe(GOOD[:length], endless)
    with pytest.raises(ModelFileError, match=r"Hint: "):
        rankwise.load(pipe)
    assert pipe.taken <= len(GOOD) + 1


def test_what_follows_a_model_in_a_pipe_is_noticed_at_its_first_byte():
    pipe = Pipe(GOOD, endless=True)
    with pytest.raises(ModelFileError, match="checksum"):
        rankwise.load(pipe)
    assert pipe.taken == len(GOOD) + 1


def test_a_pipe_that_promises_more_than_there_is_memory_is_refused_at_its_header():
    def promise(header):
        header["arrays"][0][2] = [2**50]

    pipe = Pipe(changed(promise, GOOD), endless=True)
    with pytest.raises(MemoryLimitError, match=r"comes through a pipe.*Hint: save it to a file"):
        rankwise.load(pipe)
    assert pipe.taken < len(GOOD)
