"""HatBasis: scikit-learn's contract, and the weights of knots."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import rankwise
from rankwise import RankSVM
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing import HatBasis


@parametrize_with_checks([HatBasis(), HatBasis(3)])
def test_common_checks(estimator, check):
    check(estimator)


def make(seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=60), rng.integers(3, size=60), np.full(60, 7.0), rng.normal(size=60)]
    )
    X[::7, 3] = np.nan
    return X


def test_weights_interpolate_and_sum_to_one():
    X = make()
    basis = HatBasis(5, categorical=[1]).fit(X)
    Z = basis.transform(X)
    assert sp.issparse(Z)
    names = basis.get_feature_names_out()
    assert Z.shape[1] == names.size == 5 + 3 + 5 + 1
    assert [name for name in names if name.endswith("missing")] == ["x3=missing"]
    knots = np.array([float(name.split("=")[1]) for name in names[:5]])
    np.testing.assert_allclose(Z[:, :5] @ knots, X[:, 0])  # a straight line is one of the curves
    np.testing.assert_allclose(Z.sum(axis=1), 3.0)
    np.testing.assert_array_equal(Z[:, -1].toarray().ravel(), np.isnan(X[:, 3]))
    np.testing.assert_array_equal(basis.transform(sp.csr_matrix(X)).toarray(), Z.toarray())


def test_names_follow_the_frame_and_pipelines_save(tmp_path):
    X = make()
    frame = pd.DataFrame(X, columns=list("abcd"))
    y = np.abs(X[:, 0])
    model = make_pipeline(HatBasis(6), RankSVM(1e-3, loss="squared_hinge")).fit(frame, y)
    assert model[0].get_feature_names_out()[0].startswith("a=")
    assert model.score(frame, y) > 0.9
    rankwise.save(model, tmp_path / "model.rw")
    again = rankwise.load(tmp_path / "model.rw")
    assert again.predict(frame).tobytes() == model.predict(frame).tobytes()
    assert clone(again[0]).get_params() == model[0].get_params()


def test_mistakes_end_in_a_remedy():
    with pytest.raises(InvalidInputError, match="Hint"):
        HatBasis(0).fit(make())
    with pytest.raises(InvalidInputError, match="Hint"):
        HatBasis(categorical=[4]).fit(make())
    with pytest.raises(InvalidInputError, match="Hint"):
        HatBasis().fit(make()).get_feature_names_out(["a"])
