"""Models in files: what is loaded is what was saved, bit for bit."""

import io
import re
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

import rankwise
from formulas import NAMES, case, frame
from formulas import fit as fit_steps
from identical import assert_identical
from model_changes import saved
from rankwise import (
    AdditiveRanker,
    AdditiveRankerCV,
    AutoRanker,
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    KernelRankSVMCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.exceptions import ModelFileError
from rankwise.metrics import get_metric
from rankwise.model_selection import PreferenceKFold, QueryKFold, predict_scores
from rankwise.persistence import read_header
from strategies import make_problem


def loaded(data):
    return rankwise.load(io.BytesIO(data))


def assert_same_model(model, again):
    assert type(model) is type(again)
    assert_identical(model.get_params(deep=False), again.get_params(deep=False), "parameters")
    fitted = {name: value for name, value in vars(model).items() if re.fullmatch(r"[A-Za-z]\w*_", name)}
    assert fitted
    assert_identical(fitted, {name: getattr(again, name) for name in fitted}, "attributes")
    assert {name for name in vars(again) if name.endswith("_")} == set(fitted)


def fit(model, X=None, **options):
    problem = make_problem(3, rows=80, features=4, queries=6)
    X = problem.X if X is None else X
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, problem.y, qid=problem.qid, **options), X, problem


MODELS = {
    "default": RankRLS(),
    "float32": (RankRLS(), np.float32),
    "cg": RankRLS(np.float64(0.3), solver="cg", max_iter=np.int64(30)),
    "early": RankRLS(0.0, early_stopping=True, scoring=get_metric("ndcg@5", gain="linear")),
    "cv": RankRLSCV(alphas=np.logspace(-2, 2, 5)),
    "cv-list": RankRLSCV(
        alphas=[0.5, 2], cv=KFold(3, shuffle=True, random_state=1), penalty_power=[0.0, 0.25]
    ),
    "cv-range": RankRLSCV(alphas=range(1, 4), cv=QueryKFold(3), scoring="average_precision"),
    "cv-exact": RankRLSCV(cv="leave-query-out", method="tikhonov"),
    "kernel": KernelRankRLS(),
    "kernel-sparse": (
        KernelRankRLS("poly", kernel_params={"degree": 2}, basis=("kmeans", 10)),
        sp.csr_matrix,
    ),
    "kernel-csr-array": (KernelRankRLS("cosine"), sp.csr_array),
    "kernel-params": KernelRankRLS("laplacian", kernel_params={"gamma": 0.25}, basis=np.array([3, 1, 60])),
    "kernel-fortran": (KernelRankRLS(gamma=0.1), np.asfortranarray),
    "kernel-cv": KernelRankRLSCV(gamma=(0.1, 1.0), cv=GroupKFold(4)),
    "svm": RankSVM(),
    "svm-squared": RankSVM(loss="squared_hinge", query_weight="pairs"),
    "svm-cv": RankSVMCV(alphas=[1e-1, 1e-3], cv=3),
    "kernel-svm": KernelRankSVM(basis=20),
    "kernel-svm-cv": KernelRankSVMCV(alphas=[1e-1, 1e-3], cv=3, basis=20),
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
    assert again.score(X, problem.y, problem.qid) == model.score(X, problem.y, problem.qid)
    assert repr(again) == repr(model)
    refitted = fit(clone(again), X)[0]
    assert refitted.predict(X).tobytes() == model.predict(X).tobytes()


def test_precomputed_kernels_several_outputs_preferences_and_names(tmp_path):
    problem = make_problem(5, rows=50, features=3, queries=1)
    K = problem.X @ problem.X.T
    table = pd.DataFrame(problem.X, columns=["bm25", "länge", "clicks"])
    outputs = np.column_stack([problem.y, -problem.y])
    pairs = [[0, 1], [2, 3], [4, 5], [1, 7]]
    models = [
        (KernelRankRLS("precomputed").fit(K, problem.y), K),
        (KernelRankRLS("precomputed", basis=7).fit(K, problem.y), K),
        (RankRLS().fit(table, outputs), table),
        (RankRLSCV(alphas=(0.1, 1.0)).fit(table, outputs), table),
        (RankSVM(loss="logistic").fit_pairs(problem.X, pairs), problem.X),
        (RankRLSCV(cv=PreferenceKFold(2, by="pairs")).fit_pairs(problem.X, pairs), problem.X),
        (KernelRankSVM(kernel_params=None).fit_pairs(problem.X, pairs), problem.X),
    ]
    for model, X in models:
        model.save(str(tmp_path / "m"))
        again = rankwise.load(str(tmp_path / "m"))
        assert_same_model(model, again)
        assert again.predict(X).tobytes() == model.predict(X).tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_pipeline_comes_back_bit_for_bit(name):
    model, X, _, qid = case(name)
    data = saved(model)
    again = loaded(data)
    assert (predict_scores(again, X, qid) == predict_scores(model, X, qid)).all()
    assert saved(again) == data


def test_columns_that_a_function_chose_are_kept():
    X, y, qid = frame()
    steps = ColumnTransformer(
        [("numbers", SimpleImputer(), make_column_selector(dtype_include=float))],
        remainder=OneHotEncoder(handle_unknown="ignore"),
    )
    model = fit_steps([steps], RankRLS(), X, y, qid)
    assert (loaded(saved(model)).predict(X) == model.predict(X)).all()


def test_splines_that_refuse_numbers_beyond_their_knots():
    X = np.random.default_rng(0).uniform(5.0, 9.0, size=(20, 2))
    model = make_pipeline(SplineTransformer(extrapolation="error"), RankRLS()).fit(X, X[:, 0])
    assert_identical(loaded(saved(model)).predict(X), model.predict(X), "scores")


def test_steps_that_return_frames_still_do():
    X, y, qid = frame()
    numbers = X[["price", "size"]].fillna(0.0)
    first = StandardScaler().set_output(transform="pandas")
    model = fit_steps(
        [first, ColumnTransformer([("one", "passthrough", ["size"])])], RankRLS(), numbers, y, qid
    )
    assert (loaded(saved(model)).predict(numbers) == model.predict(numbers)).all()


@pytest.mark.parametrize("kind", ["rows", "pairs", "table"])
def test_a_choice_comes_back_with_its_candidates(kind):
    problem = make_problem(3, rows=80, features=4, queries=6)
    model = AutoRanker(methods=["rls", "curves"])
    X = problem.X
    if kind == "pairs":
        model.fit_pairs(X, np.arange(80).reshape(40, 2))
    elif kind == "table":
        X = pd.DataFrame({"size": problem.X[:, 0], "colour": np.tile(["red", "blue"], 40)})
        model.fit(X, problem.y, qid=problem.qid)
    else:
        model.fit(X, problem.y, qid=problem.qid)
    data = saved(model)
    again = loaded(data)
    assert again.predict(X).tobytes() == model.predict(X).tobytes()
    assert saved(again) == data
    assert again.candidates_.as_dicts(times=False) == model.candidates_.as_dicts(times=False)
    assert again.metric_ == model.metric_
    if kind == "pairs":
        assert (again.predict_pairs_proba(X[:9], X[9:18]) == model.predict_pairs_proba(X[:9], X[9:18])).all()


def test_parameters_that_control_how_a_computation_runs_are_not_restored():
    model = fit(KernelRankRLS("rbf", kernel_params={"n_jobs": 2}, n_threads=2))[0]
    assert b"n_jobs" not in saved(model)
    again = loaded(saved(model))
    assert again.n_threads is None
    assert again.kernel_params == {}
    assert "n_jobs" not in again.kernel_.parameters
    pipeline = make_pipeline(StandardScaler(), RankRLS(), memory="/tmp/pickles", verbose=True)
    again = loaded(saved(pipeline.fit(np.eye(4), np.arange(4.0))))
    assert (again.memory, again.verbose) == (None, False)


@pytest.mark.parametrize("methods", [["rls"], ["svm"], ["curves"], ["rls", "curves", "average"]])
def test_files_hold_no_row_numbers_of_folds(methods):
    problem = make_problem(3, rows=400, features=3, queries=20)
    model = AutoRanker(methods=methods, prefer="accuracy", estimate=False)
    data = saved(model.fit(problem.X, problem.y, qid=problem.qid))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        arrays = [np.load(archive.open(one)) for one in archive.namelist() if one.endswith(".npy")]
    assert max(array.size for array in arrays) < 200
    again = loaded(data)
    assert again.predict(problem.X).tobytes() == model.predict(problem.X).tobytes()
    splits = [(np.arange(200), np.arange(200, 400))]
    listed = RankRLSCV(cv=splits).fit(problem.X, problem.y, qid=np.sort(problem.qid))
    assert loaded(saved(listed)).cv == RankRLSCV().cv


def test_statistics_of_partial_fit_are_not_saved():
    problem = make_problem(3, rows=80, features=4, queries=6)
    model = RankRLS().partial_fit(problem.X, problem.y, qid=problem.qid)
    again = loaded(saved(model))
    assert (again.predict(problem.X) == model.predict(problem.X)).all()
    assert not any(name.startswith("_") for name in vars(again))


def test_the_header(tmp_path):
    table = pd.DataFrame(np.eye(3), columns=["a", "b", "c"])
    model = make_pipeline(StandardScaler(), RankRLS(2.0)).fit(table, [0, 1, 2])
    rankwise.save(
        model, tmp_path / "m.rw", notes={"by": "me", "rows": np.int64(3), "parts": (1, [2.5, None])}
    )
    header = read_header(tmp_path / "m.rw")
    assert header["estimator"] == "RankRLS"
    assert header["features"] == ["a", "b", "c"]
    assert header["notes"] == {"by": "me", "rows": 3, "parts": [1, [2.5, None]]}
    assert header["training"]["n_pairs"] == 3
    assert header["rankwise"] == rankwise.__version__
    with pytest.raises(ModelFileError, match=r"(?s)notes=.* is not JSON.*Hint: pass a dictionary"):
        rankwise.save(model, tmp_path / "m.rw", notes={"model": model})


def test_a_file_can_be_read_without_rankwise(tmp_path):
    model = RankRLS().fit(np.eye(3), [0, 1, 2])
    model.save(tmp_path / "m.rw")
    assert (np.load(tmp_path / "m.rw")["coef_"] == model.coef_).all()
    with zipfile.ZipFile(tmp_path / "m.rw") as archive:
        assert archive.namelist() == ["model.json", "coef_.npy"]


def test_arrays_are_the_models_own():
    model = RankRLS().fit(np.eye(3), [0, 1, 2])
    again = loaded(saved(model))
    again.coef_ *= 2
    assert (again.coef_ == 2 * model.coef_).all()


def test_what_cannot_be_saved_is_named(tmp_path):
    problem = make_problem(3, rows=20, features=2, queries=2)
    X, y = problem.X, problem.y
    (tmp_path / "m.rw").write_bytes(b"old")
    for model, told in (
        (RankRLSCV(cv=PredefinedSplit(np.arange(20) % 2)).fit(X, y), "cv is a PredefinedSplit"),
        (KernelRankRLS(lambda A, B: A @ B.T).fit(X, y), "is a function"),
        (make_pipeline(FunctionTransformer(np.cbrt), RankRLS()).fit(X, y), "func is a ufunc"),
        (
            make_pipeline(PolynomialFeatures(), RankRLS()).fit(X, y),
            "PolynomialFeatures.*Hint: save the ranker alone",
        ),
        (StandardScaler().fit(X), "StandardScaler, which is not a ranker"),
        (type("Mine", (RankRLS,), {})().fit(X, y), "Mine, which is not a ranker"),
    ):
        with pytest.raises(ModelFileError, match=told):
            rankwise.save(model, tmp_path / "m.rw")
    assert (tmp_path / "m.rw").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_loading_imports_no_class_that_the_file_does_not_name(tmp_path):
    RankRLS().fit(np.eye(3), [0, 1, 2]).save(tmp_path / "m.rw")
    script = (
        "import sys, rankwise; rankwise.load(sys.argv[1]);"
        "sys.exit(any(name in sys.modules for name in ('rankwise.automatic', 'sklearn.compose', 'rankwise.report')))"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path / "m.rw"], check=True)
