"""Anything as data: estimators, metrics, files and commands give a right answer, or one of our errors with a remedy."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import bad_input
from rankwise import (
    AdditiveRanker,
    AdditiveRankerCV,
    AutoRanker,
    AverageRanker,
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.cli.parser import COMMANDS
from rankwise.metrics import METRICS
from rankwise.model_selection import predict_scores
from rankwise.preprocessing import QueryScaler


@pytest.mark.parametrize("kind", sorted(bad_input.CHECKS))
@pytest.mark.parametrize("n", [25, pytest.param(3000, marks=pytest.mark.long)], ids=["few", "many"])
def test_damaged_files_and_command_lines(kind, n, campaign, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad_input.make_files(tmp_path)
    for seed in campaign.faults(n):
        bad_input.run(kind, seed, tmp_path)
        campaign.count("answered or refused")
    os.chdir("/")


@pytest.mark.parametrize(
    "argv",
    [
        *([command, "--"] for command in COMMANDS),  # nothing behind it
        ["inspect", ""],  # this folder: tables that have nothing to do with each other
    ],
    ids=" ".join,
)
def test_what_the_fuzzer_found(argv, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bad_input.make_files(tmp_path)
    bad_input.check_command(argv)


NUMBERS = st.one_of(
    st.floats(),
    st.sampled_from([0.0, -0.0, 1.0, 1e-320, 1e308, -1e308, 1e154, np.inf, np.nan, 2.0**53]),
)
SHAPES = st.tuples(st.integers(0, 9), st.integers(0, 4))


@st.composite
def odd_rows(draw):
    """Rows, labels and ids of which anything may be wrong."""
    shape = draw(SHAPES)
    elements = st.floats(-1e3, 1e3, allow_subnormal=False) if draw(st.booleans()) else NUMBERS
    X = draw(hnp.arrays(np.float64, shape, elements=elements))
    if draw(st.integers(0, 9)) == 0:
        X = draw(
            st.sampled_from([X.astype(object), X.astype(str), X[0] if len(X) else X, None, X.tolist(), X > 0])
        )
    elif draw(st.booleans()):
        X = draw(st.sampled_from([sp.csr_matrix, sp.csc_array, sp.coo_matrix]))(X)
    n = shape[0] + draw(st.sampled_from([0, 0, 0, 0, 1, -1]))
    y = draw(
        st.one_of(
            hnp.arrays(np.float64, max(n, 0), elements=st.integers(0, 3).map(float)),
            hnp.arrays(np.float64, max(n, 0), elements=NUMBERS),
            st.just(None),
            st.just("labels"),
        )
    )
    qid = draw(
        st.one_of(
            st.none(),
            hnp.arrays(np.int64, max(n, 0), elements=st.integers(-2, 2)),
            st.lists(st.sampled_from(["a", "", None, 1, 2.5]), min_size=max(n, 0), max_size=max(n, 0)),
        )
    )
    return X, y, qid


MODELS = (
    RankRLS(),
    RankRLS(solver="cg", ties="exclude"),
    RankRLSCV(),
    RankSVM(max_iter=50),
    RankSVM(loss="squared_hinge", max_iter=50),
    RankSVMCV(cv=2, max_iter=50),
    KernelRankRLS(),
    KernelRankRLSCV(alphas=[0.1, 1.0], cv=2),
    KernelRankSVM(max_iter=50),
    AdditiveRanker(n_knots=3, interactions=1, max_iter=50),
    AdditiveRankerCV([0.01, 0.1], n_knots=3, interactions=1, cv=2, max_iter=50),
    AutoRanker(methods=["rls"], scalings=["none", "standard"], alphas=[0.1, 1.0], cv=2),
    AverageRanker((RankRLS(), RankSVM(max_iter=50))),
)


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=odd_rows(), model=st.sampled_from(MODELS))
def test_estimators_fit_anything_or_say_why_not(rows, model):
    X, y, qid = rows
    with np.errstate(all="raise", under="ignore"), bad_input.refused((Exception,)):
        try:
            model.fit(X, y, qid=qid)
        except (ValueError, TypeError) as error:
            if bad_input.is_of_sklearn(error):
                return
            raise
        assert np.isfinite(predict_scores(model, X, qid)).all()


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    name=st.sampled_from(sorted(METRICS)),
    truth=hnp.arrays(np.float64, st.integers(0, 9), elements=NUMBERS),
    scores=hnp.arrays(np.float64, st.integers(0, 9), elements=NUMBERS),
    queries=st.one_of(st.none(), st.lists(st.integers(0, 2), max_size=9)),
)
def test_metrics_measure_anything_or_say_why_not(name, truth, scores, queries):
    with bad_input.refused():
        assert np.isfinite(METRICS[name](truth, scores, queries))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(rows=odd_rows(), method=st.sampled_from(["minmax", "standard", "rank"]))
def test_scalers_scale_anything_or_say_why_not(rows, method):
    X, _, qid = rows
    with bad_input.refused((Exception,)):
        try:
            scaled = QueryScaler(method).fit(X, qid=qid).transform(X, qid=qid)
        except (ValueError, TypeError) as error:
            if bad_input.is_of_sklearn(error):
                return
            raise
        # What is missing stays missing.
        values, given = (part.data if sp.issparse(part) else part for part in (scaled, X))
        assert not np.isinf(values).any()
        assert np.isnan(values).sum() <= np.isnan(np.asarray(given, dtype=np.float64)).sum()
