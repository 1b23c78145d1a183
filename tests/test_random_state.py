"""What `random_state` takes: seeds, generators, and None, which is another seed in every call."""

import inspect
import io

import numpy as np
import pytest
from sklearn.base import clone

import rankwise
from rankwise import AutoRanker, KernelRankRLS, RankRLS, RankRLSCV
from rankwise.data.validation import read_seed
from rankwise.exceptions import InvalidInputError
from rankwise.metrics import bootstrap_interval, compare_rankings, paired_test
from rankwise.model_selection import PreferenceKFold
from rankwise.permutation import permutation_test
from rankwise.report import Report

RNG = np.random.default_rng(1)
X, QID = RNG.normal(size=(120, 4)), np.arange(120) // 6
Y = np.digitize(X[:, 0] + RNG.normal(size=120), [-0.5, 0.5])
SCORES = X[:, 0]
MODEL = RankRLS().fit(X, Y, QID)
PAIRS = np.column_stack([np.arange(50), np.arange(50) + 1])


def test_an_integer_is_the_seed():
    assert [read_seed(one) for one in (0, 7, np.int64(3))] == [0, 7, 3]


@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.default_rng])
def test_generators_draw_seeds_and_go_on(kind):
    first, again = kind(5), kind(5)
    drawn = [read_seed(first) for _ in range(3)]
    assert drawn == [read_seed(again) for _ in range(3)]
    assert len(set(drawn)) == 3


def test_none_is_fresh():
    assert len({read_seed(None) for _ in range(20)}) == 20


@pytest.mark.parametrize("wrong", [-1, "0", 1.5, np.random])
def test_anything_else_is_an_error_with_a_remedy(wrong):
    with pytest.raises(InvalidInputError, match=r"is not a seed.*Hint: use an integer such as 0.*None"):
        read_seed(wrong)


# Everything that takes a random_state and returns an array of what depends on it.
CALLS = {
    "bootstrap_interval": lambda seed: [bootstrap_interval(Y, SCORES, metric="ndcg", random_state=seed).low],
    "compare_rankings": lambda seed: [
        compare_rankings(Y, SCORES, SCORES + X[:, 1], QID, metric="ndcg", random_state=seed).p_value
    ],
    "paired_test": lambda seed: [paired_test(SCORES, n_resamples=500, random_state=seed)],
    "permutation_test": lambda seed: permutation_test(
        RankRLSCV(cv="leave-query-out"), X, Y, QID, n_permutations=5, random_state=seed
    ).null_distribution,
    "feature_importance": lambda seed: rankwise.feature_importance(
        MODEL, X, Y, QID, n_repeats=1, random_state=seed
    ).importances,
    "Report": lambda seed: [
        Report(MODEL, X, Y, metrics=["concordance"], random_state=seed).evidence.figures[0].model.low
    ],
    "PreferenceKFold": lambda seed: np.concatenate(
        [test for _, test in PreferenceKFold(3, random_state=seed).split(PAIRS)]
    ),
    "RankRLSCV": lambda seed: RankRLSCV(cv=3, random_state=seed).fit(X, Y).surface_.ravel(),
    "early stopping": lambda seed: RankRLS(early_stopping=True, random_state=seed).fit(X, Y, QID).coef_,
    "basis": lambda seed: KernelRankRLS(basis=10, random_state=seed).fit(X, Y, QID).predict(X),
    "AutoRanker": lambda seed: [
        AutoRanker(methods=["rls"], random_state=seed).fit(X, Y).best_score_
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_every_function_takes_all_of_them(name):
    call = CALLS[name]
    np.testing.assert_array_equal(call(3), call(3))
    for kind in (np.random.RandomState, np.random.default_rng):
        np.testing.assert_array_equal(call(kind(3)), call(kind(3)))
    tries = [tuple(np.asarray(call(None)).tolist()) for _ in range(4)]
    assert len(set(tries)) > 1


# A mean of fitted models and a fit at one alpha leave nothing to chance.
WITHOUT_CHANCE = {"AverageRanker", "TwoSidedRankRLS"}


@pytest.mark.parametrize("name", [n for n in rankwise.__all__ if n[0].isupper() and n not in WITHOUT_CHANCE])
def test_every_estimator_has_a_seed_by_default(name):
    assert inspect.signature(getattr(rankwise, name)).parameters["random_state"].default == 0


@pytest.mark.parametrize("model", [RankRLSCV(cv=3), AutoRanker(methods=["rls"])])
def test_a_model_file_keeps_a_generator_as_none(model):
    fitted = clone(model).set_params(random_state=np.random.RandomState(0)).fit(X, Y, QID)
    file = io.BytesIO()
    rankwise.save(fitted, file)
    again = rankwise.load(io.BytesIO(file.getvalue()))
    assert again.random_state is None
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
