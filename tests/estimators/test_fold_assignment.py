"""Folds, samples and held-out shares: even, by the seed, and blind to names, units and rows without weight."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankwise import KernelRankRLSCV, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.data.validation import check_qid
from rankwise.pairs.labelled import units_of_rows
from rankwise.pairs.plan import Units

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


def assigned_to(y, qid, weight=None):
    assigner = units_of_rows(y, check_qid(qid, len(y)), weight)
    return np.column_stack([assigner.folds(3, 0), assigner.share(0.3, 1), assigner.sample(20, 2)])


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1, 7]), st.sampled_from([1, 2]))
def test_names_of_queries_and_units_of_labels_change_no_fold(seed, n_queries, outputs):
    _, y, qid = rows(seed, n_queries, outputs=outputs)
    assigned = assigned_to(y, qid)
    named = None if qid is None else np.array([f"query {(5 * q) % 7}" for q in qid])
    np.testing.assert_array_equal(assigned_to(3 * y - 8, named), assigned)
    if outputs == 2:
        np.testing.assert_array_equal(assigned_to(y[:, ::-1], qid), assigned)


@pytest.mark.parametrize("n_queries", [1, 7])
def test_folds_are_even_and_follow_the_seed(n_queries):
    _, y, qid = rows(0, n_queries)
    assigner = units_of_rows(y, check_qid(qid, 60))
    fold = assigner.folds(3, 0)
    np.testing.assert_array_equal(assigner.folds(3, 0), fold)
    assert any((assigner.folds(3, seed) != fold).any() for seed in range(1, 5))
    if qid is None:
        assert np.bincount(fold).tolist() == [20, 20, 20]
        counts = [np.bincount(y[fold == number].astype(int)) for number in range(3)]
        assert np.ptp(counts, axis=0).max() <= 1  # of every label
    else:
        assert sorted(len(set(qid[fold == number])) for number in range(3)) == [2, 2, 3]
        assert all(len(set(fold[qid == query])) == 1 for query in range(7))


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([1, 7]))
def test_rows_that_weigh_nothing_are_not_there(seed, n_queries):
    _, y, qid = rows(seed, n_queries)
    weight = np.random.default_rng(seed).integers(0, 3, size=60).astype(float)
    if qid is not None:
        weight[qid == 3] = 0.0  # a whole query
    kept = weight > 0
    assigned = assigned_to(y, qid, weight)
    alone = assigned_to(y[kept], None if qid is None else qid[kept], weight[kept])
    np.testing.assert_array_equal(assigned[kept], alone)
    assert not assigned[~kept, 1:].any()
    assert (assigned[~kept if qid is None else qid == 3, 0] == -1).all()


def test_pairs_of_a_unit_stay_together():
    rng = np.random.default_rng(0)
    unit, weight = rng.integers(0, 30, size=80), rng.integers(0, 3, size=80).astype(float)
    assigner = Units.of_codes(unit, weight)
    fold, present = assigner.folds(4, 0), weight > 0
    assert all(len(set(fold[unit == one])) == 1 for one in np.unique(unit))
    sizes = [len(set(unit[present & (fold == number)])) for number in range(4)]
    assert max(sizes) - min(sizes) <= 1
    assert sum(sizes) == assigner.n_units
    np.testing.assert_array_equal(Units.of_codes(unit[present]).folds(4, 0), fold[present])


CHOOSING = [
    RankRLSCV(ALPHAS, cv=3),
    RankRLSCV(ALPHAS, cv=3, method="tikhonov", penalty_power=[0.0, 0.25]),
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


COMPARED = ("alpha_", "cv_errors_", "best_score_", "penalty_power_", "history_", "best_iteration_")


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
def test_a_sample_that_scores_is_named(n_queries, monkeypatch):
    X, y, qid = rows(5, n_queries)
    unit = "rows" if qid is None else "queries"
    assert RankRLSCV(ALPHAS).fit(X, y, qid).cv_ == f"5 folds of {unit}"
    monkeypatch.setattr("rankwise.estimators.base.SCORED_ENTRIES", 20)
    taken = int(units_of_rows(y, check_qid(qid, 60)).sample(20, 1).sum())
    pairs = np.random.default_rng(0).permuted(np.tile(np.arange(60), (80, 1)), axis=1)[:, :2]
    for model in (RankRLSCV(ALPHAS), RankSVMCV(ALPHAS, loss="squared_hinge")):
        assert model.fit(X, y, qid).cv_ == f"5 folds of {unit}, scored by {taken} of 60 rows"
        assert model.fit_pairs(X, pairs).cv_.startswith("5 folds of pairs, scored by ")
