"""Models in files: what is loaded is what was saved, bit for bit."""

import io
import os
import re
import subprocess
import sys
import warnings
from inspect import signature
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.interpolate
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

import rankwise
from identical import assert_identical
from rankwise import (
    AdditiveRanker,
    AdditiveRankerCV,
    AutoRanker,
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.exceptions import InvalidInputError, ModelFileError
from rankwise.metrics import get_metric
from rankwise.model_selection import PreferenceKFold, QueryKFold
from rankwise.persistence import read_header
from rankwise.persistence.container import FORMAT
from rankwise.persistence.models import RANKERS
from rankwise.persistence.transformers import TRANSFORMERS
from strategies import make_problem

DOCS = Path(__file__).parents[2] / "docs" / "model-files.md"
OLD = Path(__file__).with_name("format_1")


def saved(model, **options):
    stream = io.BytesIO()
    rankwise.save(model, stream, **options)
    return stream.getvalue()


def loaded(data):
    return rankwise.load(io.BytesIO(data))


def assert_same_model(model, again):
    assert type(model) is type(again)
    assert_identical(model.get_params(deep=False), again.get_params(deep=False), "parameters")
    fitted = {name: value for name, value in vars(model).items() if re.fullmatch(r"[A-Za-z]\w*_", name)}
    assert fitted
    assert_identical(fitted, {name: getattr(again, name) for name in fitted}, "attributes")
    kept = {name for name in vars(again) if name.endswith("_")}
    assert kept == set(fitted)


def fit(model, X=None, **options):
    problem = make_problem(3, rows=80, features=4, queries=6)
    X = problem.X if X is None else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, problem.y, qid=problem.qid, **options), X, problem


MODELS = {
    "default": RankRLS(),
    "float32": (RankRLS(), np.float32),
    "cg": RankRLS(np.float64(0.3), solver="cg", precondition="jacobi", max_iter=np.int64(30)),
    "early": RankRLS(0.0, early_stopping=True, scoring=get_metric("ndcg@5", gain="linear")),
    "cv": RankRLSCV(alphas=np.logspace(-2, 2, 5)),
    "cv-list": RankRLSCV(alphas=[0.5, 2], cv=KFold(3, shuffle=True, random_state=1), scaling=[0.0, 0.25]),
    "cv-range": RankRLSCV(alphas=range(1, 4), cv=QueryKFold(3), scoring="map", nested=2),
    "cv-exact": RankRLSCV(cv="leave-query-out", method="tikhonov"),
    "kernel": KernelRankRLS(),
    "kernel-sparse": (KernelRankRLS("poly", degree=2, basis=("kmeans", 10)), sp.csr_matrix),
    "kernel-csr-array": (KernelRankRLS("cosine"), sp.csr_array),
    "kernel-params": KernelRankRLS("laplacian", kernel_params={"gamma": 0.25}, basis=np.array([3, 1, 60])),
    "kernel-fortran": (KernelRankRLS(gamma=0.1), np.asfortranarray),
    "kernel-strided": (KernelRankRLS(gamma=0.1), lambda X: np.repeat(np.repeat(X, 2, 1), 2, 0)[::2, ::2]),
    "kernel-cv": KernelRankRLSCV(gamma=(0.1, 1.0), cv=GroupKFold(4)),
    "svm": RankSVM(),
    "svm-squared": RankSVM(loss="squared_hinge", query_weight="pairs"),
    "svm-cv": RankSVMCV(alphas=[1e-1, 1e-3], cv=3),
    "kernel-svm": KernelRankSVM(basis=20),
    "curves": AdditiveRanker(interactions=2),
    "curves-monotone": AdditiveRanker(
        interactions=[(0, 1)], monotone={2: 1}, categorical=[3], loss="squared"
    ),
    "curves-cv": AdditiveRankerCV(alphas=[1e-1, 1e-3], cv=3, interactions=[0, 1], n_knots=[3, 5]),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_comes_back_bit_for_bit(name, tmp_path):
    model, convert = MODELS[name] if isinstance(MODELS[name], tuple) else (MODELS[name], np.asarray)
    X = make_problem(3, rows=80, features=4, queries=6).X
    X = X.astype(np.float32) if convert is np.float32 else convert(X)
    model, X, problem = fit(clone(model), X)
    model.save(tmp_path / "model.rw")
    again = rankwise.load(tmp_path / "model.rw")
    assert_same_model(model, again)
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    assert (again.rank(X, problem.qid) == model.rank(X, problem.qid)).all()
    assert again.score(X, problem.y, problem.qid) == model.score(X, problem.y, problem.qid)
    if hasattr(model, "predict_pairs"):
        assert again.predict_pairs(X[:9], X[9:18]).tobytes() == model.predict_pairs(X[:9], X[9:18]).tobytes()
    assert_identical(clone(again).get_params(), clone(model).get_params())
    assert repr(again) == repr(model)
    refitted = fit(clone(again), X)[0]
    assert refitted.predict(X).tobytes() == model.predict(X).tobytes()


def test_precomputed_kernels_several_outputs_preferences_and_names(tmp_path):
    problem = make_problem(5, rows=50, features=3, queries=1)
    K = problem.X @ problem.X.T
    frame = pd.DataFrame(problem.X, columns=["bm25", "länge", "clicks"])
    outputs = np.column_stack([problem.y, -problem.y])
    pairs = [[0, 1], [2, 3], [4, 5], [1, 7]]
    models = [
        (KernelRankRLS("precomputed").fit(K, problem.y), K),
        (KernelRankRLS("precomputed", basis=7).fit(K, problem.y), K),
        (RankRLS().fit(frame, outputs), frame),
        (RankRLSCV(alphas=(0.1, 1.0)).fit(frame, outputs), frame),
        (RankSVM(loss="logistic").fit_pairs(problem.X, pairs), problem.X),
        (RankRLSCV(cv=PreferenceKFold(2, by="pairs")).fit_pairs(problem.X, pairs), problem.X),
        (KernelRankSVM(kernel_params=None).fit_pairs(problem.X, pairs), problem.X),
    ]
    for model, X in models:
        model.save(str(tmp_path / "m"))
        again = rankwise.load(str(tmp_path / "m"))
        assert_same_model(model, again)
        assert again.predict(X).tobytes() == model.predict(X).tobytes()
    models[2][0].save(tmp_path / "m")
    assert read_header(tmp_path / "m")["features"] == ["bm25", "länge", "clicks"]


def test_a_loaded_model_has_no_krylov_space():
    model, *_ = fit(RankRLSCV())
    assert model.coef_path(1.0).ndim == 2
    with pytest.raises(InvalidInputError, match="no Krylov space"):
        loaded(saved(model)).coef_path(1.0)


@pytest.mark.parametrize(
    "scaler",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        MinMaxScaler((-1, 1)),
        MaxAbsScaler(),
        RobustScaler(),
        Normalizer(),
        "passthrough",
    ],
)
def test_a_pipeline_carries_its_scaling(scaler):
    problem = make_problem(1, rows=60)
    frame = pd.DataFrame(problem.X * [1, 10, 100, 1000, 0], columns=list("abcde"))
    pipeline = Pipeline([("scale", scaler), ("rank", RankRLS())])
    pipeline.fit(frame, problem.y, rank__qid=problem.qid)
    data = saved(pipeline, notes={"why": "units"})
    again = loaded(data)
    assert [name for name, _ in again.steps] == ["scale", "rank"]
    for (_, one), (_, other) in zip(pipeline.steps, again.steps, strict=True):
        if isinstance(scaler, str) and one == scaler:
            assert other == scaler
        else:
            assert_same_model(one, other)
    assert again.predict(frame).tobytes() == pipeline.predict(frame).tobytes()
    header = read_header(io.BytesIO(data))
    assert (header["estimator"], header["features"]) == ("RankRLS", list("abcde"))
    assert header["notes"] == {"why": "units"}
    assert header["training"]["n_queries"] == pipeline[-1].n_queries_


def test_requests_and_output_containers_are_kept():
    problem = make_problem(1, rows=60)
    frame = pd.DataFrame(problem.X, columns=list("abcde"))
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=True).set_output(transform="pandas")
        ranker = RankRLS().set_fit_request(sample_weight="importance", qid=True)
        pipeline = make_pipeline(scaler, ranker)
        weight = np.ones(60)
        pipeline.fit(frame, problem.y, qid=problem.qid, sample_weight=weight, importance=weight)
        again = loaded(saved(pipeline))
        assert again[-1].feature_names_in_.tolist() == list("abcde")
        assert again.predict(frame).tobytes() == pipeline.predict(frame).tobytes()  # no warning about names
        for one, other in zip(pipeline, again, strict=True):
            assert str(one.get_metadata_routing()) == str(other.get_metadata_routing())


def test_what_a_file_cannot_hold_is_refused_with_a_remedy(tmp_path):
    X, y = np.eye(4), np.arange(4.0)
    target = tmp_path / "model.rw"

    def inner(A, B):
        return A @ B.T

    class Mine(RankRLS):
        pass

    with_pieces = RankRLS().fit(X, y)
    with_pieces.pieces_ = scipy.interpolate.PPoly([[1.0]], [0.0, 1.0])  # of SciPy, but no B-spline

    for model, message in [
        (
            KernelRankRLS(inner).fit(X, y),
            r"parameters/kernel is a function.*no code.*Hint: use a kernel by name",
        ),
        (Mine().fit(X, y), "Mine is not one of the classes"),
        (RankRLSCV(cv=PredefinedSplit([0, 1, 0, 1])).fit(X, y), "parameters/cv is a PredefinedSplit"),
        (RankRLS(random_state=np.random.default_rng), "not fitted"),
        (StandardScaler().fit(X), "StandardScaler, which ranks nothing"),
        (make_pipeline(PolynomialFeatures(), RankRLS()).fit(X, y), "PolynomialFeatures is not one of"),
        (
            RankRLSCV(alphas=np.ones(2, dtype=np.longdouble)).fit(X, y, eval_set=(X, y)),
            "type float128|longdouble",
        ),
        (with_pieces, "pieces_ is a function .*PPoly"),
    ]:
        with pytest.raises(Exception, match=message) as caught:
            rankwise.save(model, target)
        assert "Hint: " in str(caught.value) or "fitted" in message
        assert list(tmp_path.iterdir()) == []


def test_a_failed_save_leaves_the_old_file(tmp_path):
    model, X, _ = fit(RankRLS())
    target = tmp_path / "model.rw"
    model.save(target)
    before = target.read_bytes()
    kernel = KernelRankRLS(lambda A, B: A @ B.T).fit(X, X[:, 0])
    with pytest.raises(ModelFileError):
        kernel.save(target)
    assert target.read_bytes() == before
    model.save(target)
    assert target.read_bytes() == before  # the same model makes the same bytes
    assert [path.name for path in tmp_path.iterdir()] == ["model.rw"]
    mask = os.umask(0)
    os.umask(mask)
    assert target.stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_link_keeps_pointing_where_it_points(tmp_path):
    model, *_ = fit(RankRLS())
    (tmp_path / "link").symlink_to(tmp_path / "model.rw")
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert_same_model(model, rankwise.load(tmp_path / "model.rw"))


def test_streams_that_cannot_seek():
    model, X, _ = fit(RankRLS())
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as stream:
        model.save(stream)
    with os.fdopen(reading, "rb") as stream:
        assert rankwise.load(stream).predict(X).tobytes() == model.predict(X).tobytes()


def test_a_stream_is_read_from_where_it_stands():
    model, X, _ = fit(RankRLS())
    stream = io.BytesIO(b"something before" + saved(model))
    stream.seek(len(b"something before"))
    assert rankwise.load(stream).predict(X).tobytes() == model.predict(X).tobytes()


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        rankwise.load(tmp_path / "nothing.rw")


def test_the_pages_examples_and_its_reader_run(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    example, reader = blocks
    first = subprocess.run(
        [sys.executable, "-W", "error", "-c", example + "print(again.predict([[1.0, 0, 2, 0, 0]])[0])"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert len([line for line in reader.splitlines() if line.strip()]) <= 20
    second = subprocess.run(
        [sys.executable, "-c", reader], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert "rankwise" not in reader
    assert second.stdout.startswith("RankRLSCV {")
    assert float(second.stdout.split()[-1]) == pytest.approx(float(first.stdout), rel=1e-12)
    namespace = {}
    exec(reader.partition("\n\n\nheader")[0], namespace)
    header, arrays = namespace["read_model"](tmp_path / "pipeline.rw")
    assert header["estimator"] == "RankSVM"
    pipeline = rankwise.load(tmp_path / "pipeline.rw")
    assert arrays["standardscaler/mean_"].tobytes() == pipeline[0].mean_.tobytes()
    assert header == read_header(tmp_path / "pipeline.rw")


@pytest.mark.parametrize("path", sorted(OLD.glob("*.rw")), ids=lambda path: path.stem)
def test_files_of_the_first_format_are_read(path, tmp_path):
    """They were written before format 2, with rows and what their model predicts for them in the notes."""
    model, notes = rankwise.load(path), read_header(path)["notes"]
    assert read_header(path)["format"] == [1, 0]
    np.testing.assert_allclose(model.predict(notes["rows"]), notes["scores"], rtol=1e-11, atol=1e-13)
    rankwise.save(model, tmp_path / "new.rw", notes=notes)
    header, before = read_header(tmp_path / "new.rw"), read_header(path)
    assert header["format"] == list(FORMAT)
    for key in ("estimator", "features", "training", "notes"):
        assert header[key] == before[key]
    parameters = before["steps"][-1]["parameters"]
    plain = {key: value for key, value in parameters.items() if not isinstance(value, dict | list)}
    last = getattr(model, "best_estimator_", model)
    last = last[-1] if isinstance(last, Pipeline) else last
    assert plain == {key: last.get_params(deep=False)[key] for key in plain}
    again = rankwise.load(tmp_path / "new.rw")
    assert again.predict(notes["rows"]).tolist() == model.predict(notes["rows"]).tolist()
    assert saved(again, notes=notes) == (tmp_path / "new.rw").read_bytes()


def test_there_are_files_of_the_first_format():
    assert len(list(OLD.glob("*.rw"))) >= 7


@pytest.mark.parametrize("kind", [*(getattr(rankwise, name) for name in RANKERS), *TRANSFORMERS.values()])
def test_constructors_only_assign(kind):
    """`load` sets parameters without calling them."""
    needed = {"ColumnTransformer": [[]], "FeatureUnion": [[]], "Pipeline": [[]]}
    made = kind(*needed.get(kind.__name__, []))
    assert vars(made).keys() == signature(kind).parameters.keys()
    assert all(vars(made)[name] is value for name, value in made.get_params(deep=False).items())


def test_arrays_of_a_loaded_model_can_be_written(tmp_path):
    model, _, _ = fit(RankRLS())
    model.save(tmp_path / "m")
    for again in (rankwise.load(tmp_path / "m"), rankwise.load(io.BytesIO((tmp_path / "m").read_bytes()))):
        again.coef_ *= 2
        assert (again.coef_ == 2 * model.coef_).all()


@pytest.mark.parametrize("n_features", [3, 5000])
@pytest.mark.parametrize("is_file", [True, False])
def test_arrays_of_large_files_are_aligned_and_can_be_written_to(n_features, is_file, tmp_path):
    rng = np.random.default_rng(0)
    model = rankwise.RankRLS().fit(rng.normal(size=(20, n_features)), rng.normal(size=20))
    model.save(tmp_path / "m.rw")
    again = rankwise.load(tmp_path / "m.rw" if is_file else io.BytesIO((tmp_path / "m.rw").read_bytes()))
    assert (again.coef_ == model.coef_).all()
    assert n_features == 3 or again.coef_.ctypes.data % 64 == 0
    again.coef_ *= 2
    assert (again.coef_ == 2 * model.coef_).all()
    assert (rankwise.load(tmp_path / "m.rw").coef_ == model.coef_).all()


def test_loading_imports_what_the_file_names(tmp_path):
    """A service that loads a linear model pays for its class and the reader, and not for what other files need."""
    rankwise.RankRLS().fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "m.rw")
    code = (
        "import sys, rankwise.estimators.rank_rls; had = set(sys.modules); import rankwise; "
        f"rankwise.load({str(tmp_path / 'm.rw')!r}); print(*sorted(set(sys.modules) - had))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "rankwise.persistence.files" in found
    others = [name for name in found if not name.startswith("rankwise.persistence")]
    assert others == ["rankwise.json_values"]
    assert not {"rankwise.persistence.writer", "rankwise.persistence.streams"} & set(found)


@pytest.mark.parametrize("scaling", ["none", "standard"])
def test_a_ranker_that_chose_its_model_keeps_the_names_of_columns(scaling):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 4)), rng.integers(0, 3, size=60), np.arange(60) // 6
    frame = pd.DataFrame(X, columns=[f"c{at}" for at in range(X.shape[1])])
    model = AutoRanker(methods=["rls"], scalings=[scaling]).fit(frame, y, qid=qid)
    file = io.BytesIO()
    model.save(file)
    assert read_header(io.BytesIO(file.getvalue()))["features"] == list(frame.columns)
    again = rankwise.load(io.BytesIO(file.getvalue()))
    assert again.feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    with pytest.raises(InvalidInputError, match="same order"):
        again.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize(
    "model",
    [
        RankRLS(n_threads=100_000),
        KernelRankRLS(
            "rbf", kernel_params={"gamma": 0.5, "n_jobs": 2000}, memory_limit=1 << 40, n_threads=100_000
        ),
        make_pipeline(FeatureUnion([("scaled", StandardScaler())], n_jobs=2000, verbose=True), RankRLS()),
        AutoRanker(methods=["rls"], scalings=["none"], time_limit=1e9, n_threads=100_000),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_file_does_not_say_how_a_computation_runs(model):
    """A file with 100,000 threads ended the process of whoever predicted with it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    file = io.BytesIO()
    if not isinstance(model, KernelRankRLS):
        model.fit(X, y)
    else:
        model.set_params(kernel_params={"gamma": 0.5}, n_threads=1).fit(X, y)
        model.set_params(kernel_params={"gamma": 0.5, "n_jobs": 2000}, n_threads=100_000)
        model.kernel_ = type(model.kernel_)("rbf", {"gamma": 0.5, "n_jobs": 2000})
    rankwise.save(model, file)
    loaded = rankwise.load(io.BytesIO(file.getvalue()))
    text = repr(loaded.get_params(deep=True))
    assert "2000" not in text
    assert "100000" not in text
    assert "n_jobs" not in getattr(getattr(loaded, "kernel_", None), "parameters", {})
    assert getattr(loaded, "time_limit", None) is None
    np.testing.assert_allclose(loaded.predict(X), loaded.predict(X))


def test_more_columns_than_there_can_be_are_refused():
    rng = np.random.default_rng(0)
    model = AdditiveRanker().fit(rng.normal(size=(40, 3)), rng.normal(size=40))
    model.n_features_in_ = 10**20
    file = io.BytesIO()
    rankwise.save(model, file)
    with pytest.raises(ModelFileError, match="columns"):
        rankwise.load(io.BytesIO(file.getvalue()))
