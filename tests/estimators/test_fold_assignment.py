"""Folds, samples and held-out shares depend on nothing that a model does not depend on."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise import KernelRankRLSCV, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.selection.folds import FoldAssigner, PairAssigner

ALPHAS = [0.1, 1.0, 10.0]


def rows(seed, n_queries, levels=2, outputs=1, n_rows=60):
    """Few levels of labels, which tell few rows and queries apart, and two columns of as many 0 as 1."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=(n_rows, 2)), rng.permuted(np.arange(n_rows) % 2), np.arange(n_rows) % 2]
    )
    y = rng.integers(levels, size=(n_rows, outputs)).astype(float)
    y[: 2 * n_queries] += np.arange(2 * n_queries)[:, None] // n_queries  # every query has two labels
    qid = None if n_queries == 1 else np.arange(n_rows) % n_queries
    return X, y[:, 0] if outputs == 1 else y, qid


def assigned_to(X, y, qid, weight=None):
    assigner = FoldAssigner(as_design(X), y, check_qid(qid, len(y)), weight)
    return np.column_stack([assigner.folds(3, 0), assigner.share(0.3, 1), assigner.sample(20, 2)])


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1, 7]), st.sampled_from([1, 2]))
def test_what_a_model_does_not_see_changes_no_fold(seed, n_queries, outputs):
    X, y, qid = rows(seed, n_queries, outputs=outputs)
    rng = np.random.default_rng(seed)
    assigned = assigned_to(X, y, qid)
    order, columns = rng.permutation(60), rng.permutation(4)
    named = None if qid is None else np.array([f"query {(5 * q) % 7}" for q in qid])
    np.testing.assert_array_equal(
        assigned_to(X[order], y[order], named if qid is None else named[order]), assigned[order]
    )
    np.testing.assert_array_equal(assigned_to(X[:, columns] + [1e5, -3, 0, 7], 3 * y - 8, named), assigned)
    np.testing.assert_array_equal(assigned_to(X * [1e-6, 1e6, 3, 1], y, qid), assigned)
    np.testing.assert_array_equal(assigned_to(sp.csc_matrix(X).tocsr(), y, qid), assigned)
    if outputs == 2:
        np.testing.assert_array_equal(assigned_to(X, y[:, ::-1], qid), assigned)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1, 7]))
def test_rows_that_weigh_nothing_are_not_there(seed, n_queries):
    X, y, qid = rows(seed, n_queries)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, 3, size=60).astype(float)
    if qid is not None:
        weight[qid == 3] = 0.0  # a whole query
    kept = weight > 0
    assigned = assigned_to(X, y, qid, weight)
    alone = assigned_to(X[kept], y[kept], None if qid is None else qid[kept], weight[kept])
    np.testing.assert_array_equal(assigned[kept], alone)
    assert not assigned[~kept, 1:].any()
    assert (assigned[~kept if qid is None else qid == 3, 0] == -1).all()
    if qid is not None:
        # A row of weight 2 is two rows, which share a query and so a fold.
        twice = np.repeat(np.arange(60), weight.astype(int))
        np.testing.assert_array_equal(assigned_to(X[twice], y[twice], qid[twice])[:, :2], assigned[twice, :2])


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000))
def test_pairs_are_assigned_by_what_they_compare(seed):
    rng = np.random.default_rng(seed)
    X = rows(seed, 1)[0]
    pairs = rng.permuted(np.tile(np.arange(60), (80, 1)), axis=1)[:, :2]
    weight = rng.integers(0, 3, size=80).astype(float)
    unit = np.unique(np.sort(pairs, axis=1) @ [60, 1], return_inverse=True)[1].reshape(-1)

    def assigned(X, pairs, unit, weight):
        return PairAssigner(as_design(X), pairs[:, 0], pairs[:, 1], unit, weight).folds(4, 0)

    fold = assigned(X, pairs, unit, weight)
    present = weight > 0
    renumbered = np.unique(unit[present], return_inverse=True)[1].reshape(-1)
    np.testing.assert_array_equal(assigned(X, pairs[present], renumbered, weight[present]), fold[present])
    order, place = rng.permutation(80), rng.permutation(60)
    moved = assigned(X[np.argsort(place)][:, ::-1] * 5 + 9, place[pairs][order], unit[order], weight[order])
    np.testing.assert_array_equal(moved[weight[order] > 0], fold[order][weight[order] > 0])


CHOOSING = [
    RankRLSCV(ALPHAS, cv=3),
    RankRLSCV(ALPHAS, cv=3, judge_rows=20),
    RankRLSCV(ALPHAS, cv=3, nested=2),
    RankRLSCV(ALPHAS, cv=3, method="tikhonov", scaling=[0.0, 0.25]),
    RankSVMCV(ALPHAS, cv=3, loss="squared_hinge"),
    KernelRankRLSCV(alphas=ALPHAS, gamma=0.5, cv=3),
    KernelRankRLSCV(alphas=ALPHAS, gamma=0.5, cv=3, ties="exclude"),
    KernelRankRLSCV(alphas=ALPHAS, gamma=0.5, cv=3, solver="cg"),
]
STOPPING = [
    RankRLS(early_stopping=True, validation_fraction=0.3),
    RankRLS(early_stopping=True, validation_fraction=0.3, solver="egdm"),
    RankSVM(early_stopping=True, validation_fraction=0.3, loss="squared_hinge"),
]


@pytest.mark.parametrize("model", [*CHOOSING, *STOPPING], ids=lambda model: str(model).replace("\n", ""))
@pytest.mark.parametrize("n_queries", [1, 7])
def test_weight_0_is_absence(model, n_queries):
    X, y, qid = rows(3, n_queries, levels=4)
    weight = np.random.default_rng(3).integers(0, 3, size=60).astype(float)
    if qid is not None:
        weight[qid == 3] = 0.0
    kept = weight > 0
    model.fit(X, y, qid, weight)
    said = {name: np.copy(getattr(model, name)) for name in vars(model) if name in COMPARED}
    prediction = model.predict(X)
    model.fit(X[kept], y[kept], None if qid is None else qid[kept], weight[kept])
    assert said
    for name, value in said.items():
        np.testing.assert_allclose(value, getattr(model, name), rtol=1e-7, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(prediction, model.predict(X), rtol=1e-6, atol=1e-6)


COMPARED = ("alpha_", "cv_errors_", "best_score_", "nested_score_", "scaling_", "history_", "best_iteration_")


@pytest.mark.parametrize("model", CHOOSING, ids=lambda model: str(model).replace("\n", ""))
@pytest.mark.parametrize("n_queries", [1, 7])
def test_the_order_of_outputs_does_not_matter(model, n_queries):
    X, Y, qid = rows(4, n_queries, levels=4, outputs=3)
    model.fit(X, Y, qid)
    alpha, errors, prediction = model.alpha_, model.cv_errors_, model.predict(X)
    model.fit(X, Y[:, [2, 0, 1]], qid)
    np.testing.assert_array_equal(model.alpha_, alpha[[2, 0, 1]])
    np.testing.assert_allclose(model.cv_errors_, errors[..., [2, 0, 1]], atol=1e-9)
    np.testing.assert_allclose(model.predict(X), prediction[:, [2, 0, 1]], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_queries", [1, 20])
def test_a_sample_that_judges_is_said(n_queries):
    X, y, qid = rows(5, n_queries)
    whole, part = RankRLSCV(ALPHAS).fit(X, y, qid), RankRLSCV(ALPHAS, judge_rows=20).fit(X, y, qid)
    unit = "rows" if qid is None else "queries"
    assert whole.cv_ == f"5 folds of {unit}"
    taken = int(FoldAssigner(as_design(X), y, check_qid(qid, 60)).sample(20, 1).sum())
    assert part.cv_ == f"5 folds of {unit}, scored by {taken} of 60 rows"
    assert RankSVMCV(ALPHAS, judge_rows=20).fit(X, y, qid).cv_ == part.cv_
    pairs = np.random.default_rng(0).permuted(np.tile(np.arange(60), (80, 1)), axis=1)[:, :2]
    words = RankRLSCV(ALPHAS, judge_rows=20).fit_pairs(X, pairs).cv_
    assert words.startswith("5 folds of pairs, scored by ")
    assert RankSVMCV(ALPHAS, judge_rows=20, loss="squared_hinge").fit_pairs(X, pairs).cv_ == words
