"""The formula of a model says what `predict` does."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    SplineTransformer,
    StandardScaler,
)
from sklearn.tree import DecisionTreeRegressor

from formulas import NAMES, PLAIN, case, fit, rows
from rankwise import KernelRankRLS, RankRLS
from rankwise.automatic.scaling import RankScaler
from rankwise.exceptions import InvalidInputError
from rankwise.formula.formula import Column, Formula, Surface, Table, Term, folded, raw
from rankwise.formula.reading import columns_after, formula_of
from rankwise.formula.steps import Affine, curve
from rankwise.formula.view import ModelView
from rankwise.model_selection import predict_scores
from rankwise.preprocessing import TableEncoder


def close(one, other, rounding=1e-11):
    np.testing.assert_allclose(one, other, rtol=rounding, atol=rounding * max(1.0, np.abs(other).max()))


@pytest.mark.parametrize("name", NAMES)
def test_a_formula_scores_as_predict_does(name):
    model, X, _, qid = case(name)
    formula = formula_of(model)
    for one in (formula, folded(formula)):
        close(one.evaluate(X, qid), predict_scores(model, X, qid))
    close(raw(formula).evaluate(X, qid), predict_scores(model, X, qid), 1e-9)


@pytest.mark.parametrize("name", PLAIN)
def test_values_that_training_did_not_have(name):
    model, X, _, qid = case(name)
    beyond = (X - X.mean(0)) * 3 + X.mean(0)
    close(folded(formula_of(model)).evaluate(beyond, qid), predict_scores(model, beyond, qid))


def test_unseen_categories_and_new_gaps():
    model, X, _, qid = case("table")
    X = X.copy()
    X.loc[3, "brand"] = "never seen"
    X.loc[4:20, "price"] = np.nan
    close(folded(formula_of(model)).evaluate(X, qid), predict_scores(model, X, qid))


GAPS_OF_CATEGORIES = {
    "NaN among numbers": np.array([1.0] * 30 + [2.0] * 30 + [3.0] * 5 + [np.nan] * 5),
    "NaN among texts": np.array(["a"] * 30 + ["b"] * 30 + ["c"] * 5 + [np.nan] * 5, dtype=object),
    "many NaN": np.array(["a"] * 30 + ["b"] * 30 + ["c"] * 5 + [np.nan] * 40, dtype=object),
    "None": np.array(["a"] * 30 + ["b"] * 30 + ["c"] * 5 + [None] * 5, dtype=object),
    "many None": np.array(["a"] * 30 + ["b"] * 30 + ["c"] * 5 + [None] * 40, dtype=object),
    "none missing": np.array(["a"] * 30 + ["b"] * 30 + ["c"] * 5, dtype=object),
}
ENCODERS = [
    OneHotEncoder(handle_unknown="ignore", sparse_output=False),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20, sparse_output=False),
    OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=20, drop="first", sparse_output=False),
    OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2),
    OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2, min_frequency=20
    ),
]


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("encoder", ENCODERS, ids=lambda one: " ".join(str(one).split()))
@pytest.mark.parametrize("name", GAPS_OF_CATEGORIES)
def test_rare_categories_and_missing_ones_are_encoded_as_the_encoder_does(name, encoder):
    values = GAPS_OF_CATEGORIES[name]
    encoder = clone(encoder).fit(values[:, None])
    other = 77.0 if values.dtype == float else "other"
    X = np.append(values, np.array([other, np.nan if name == "none missing" else other], dtype=values.dtype))
    table = Table(X[:, None])
    found = [table.values(column) for column in columns_after(encoder, [Column(0)])]
    np.testing.assert_array_equal(np.column_stack(found), encoder.transform(X[:, None]))


def test_encoders_that_tell_none_and_nan_apart_are_refused():
    X = np.array([["a"], ["b"], [None], [np.nan]] * 5, dtype=object)
    with pytest.raises(InvalidInputError, match=r"tells None and NaN apart.*as NaN everywhere"):
        columns_after(OneHotEncoder().fit(X), [Column(0)])


def test_scalers_fold_into_weights():
    model, X, _, _ = case("two scalers")
    formula = raw(formula_of(model))
    close(X @ formula.weights + formula.constant, model.predict(X))
    assert len(formula.terms) == X.shape[1]


def test_what_is_known_of_one_column_becomes_one_term():
    for name in ("splines", "bins"):
        model, X, _, _ = case(name)
        assert len(folded(formula_of(model)).terms) == X.shape[1]


def test_sparse_rows():
    X, y, qid = rows()
    model = fit([StandardScaler(with_mean=False)], RankRLS(), X, y, qid)
    close(raw(formula_of(model)).evaluate(sp.csr_matrix(X)), model.predict(X))


def test_surfaces_are_bilinear_and_clamped():
    rng = np.random.default_rng(0)
    knots, grid = ((0.0, 1.0, 4.0), (-1.0, 1.0)), rng.normal(size=(4, 3))
    surface = Surface((Column(0), Column(1)), knots, tuple(map(tuple, grid.tolist())))
    formula = Formula(("a", "b"), (False, False), surfaces=(surface,))
    X = np.array([[0, -1], [1, 1], [4, 1], [0.5, 0], [9, 9], [np.nan, 0], [np.nan, np.nan], [2.5, np.nan]])
    mean = grid[:2, :2].mean()
    wanted = [grid[0, 0], grid[1, 1], grid[2, 1], mean, grid[2, 1], grid[3, :2].mean(), grid[3, 2]]
    np.testing.assert_allclose(formula.evaluate(X), [*wanted, grid[1:3, 2].mean()])


def test_curves_of_the_same_knots_add_up():
    one, other = curve((0.0, 1.0), (0.0, 2.0), 5.0), curve((0.0, 1.0), (1.0, 3.0), 1.0)
    formula = Formula(("a",), (False,), terms=(Term(2.0, Column(0, (one,))), Term(1.0, Column(0, (other,)))))
    again = folded(formula)
    assert len(again.terms) == 1
    x = np.array([[-1.0], [0.25], [2.0], [np.nan]])
    np.testing.assert_allclose(again.evaluate(x), formula.evaluate(x))


def test_centres_are_kept_so_that_nothing_cancels():
    X, y, qid = rows()
    X = X * 1e-3 + 1e9
    model = fit([StandardScaler()], RankRLS(), X, y, qid)
    formula = folded(formula_of(model))
    assert all(isinstance(term.column.steps[0], Affine) for term in formula.terms)
    close(formula.evaluate(X), model.predict(X), 1e-12)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Normalizer(), "Normalizer has no formula"),
        (SplineTransformer(extrapolation="periodic"), "infinitely many pieces"),
    ],
)
def test_what_has_no_formula_is_refused_with_a_way_out(step, words):
    X, y, qid = rows()
    with pytest.raises(InvalidInputError, match=words):
        formula_of(fit([step], RankRLS(), X, y, qid))


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_quantiles_that_repeat_jump(distribution):
    X, y, qid = rows()
    X = np.round(X)
    X[:, 3] = 7.0  # constant
    model = fit([QuantileTransformer(n_quantiles=20, output_distribution=distribution)], RankRLS(), X, y, qid)
    for probe in (X, X + 0.25, X - 0.25, 9 * X, np.nextafter(X, np.inf)):
        close(formula_of(model).evaluate(probe), model.predict(probe))


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("form", [{}, {"include_bias": False, "sparse_output": True, "knots": "quantile"}])
def test_splines_of_low_degree_extrapolate_as_scikit_learn_does(degree, form):
    X, y, qid = rows()
    step = SplineTransformer(n_knots=4, degree=degree, extrapolation="linear", **form)
    model = fit([step], RankRLS(), X, y, qid)
    close(formula_of(model).evaluate(3 * X), model.predict(3 * X))


def test_several_outputs_are_chosen_from():
    X, y, qid = rows()
    model = RankRLS().fit(X, np.column_stack([y, -y]), qid)
    close(formula_of(model, output=1).evaluate(X), model.predict(X)[:, 1])
    with pytest.raises(InvalidInputError, match="2 outputs"):
        formula_of(model)


def test_slices_of_names_include_both_ends():
    X, y, qid = rows()
    table = pd.DataFrame(X, columns=list("abcd"))
    for chosen in (slice("b", "c"), slice(None, "b"), slice("c", None)):
        step = ColumnTransformer([("scale", StandardScaler(), chosen)], remainder="passthrough")
        model = fit([step], RankRLS(), table, y, qid)
        close(formula_of(model).evaluate(table), model.predict(table))


@pytest.mark.parametrize("keeps", [True, False])
def test_columns_without_a_value_are_dropped_or_kept(keeps):
    X, y, qid = rows()
    X[:, 1] = np.nan
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Skipping features without any observed values")
        model = fit([SimpleImputer(keep_empty_features=keeps)], RankRLS(), X, y, qid)
        close(formula_of(model).evaluate(X), model.predict(X))


def test_ranks_of_a_constant_column_are_flat():
    X, y, qid = rows()
    X[:, 2] = 3.0
    model = fit([RankScaler()], RankRLS(), X, y, qid)
    X[::2, 2] = 4.0
    close(formula_of(model).evaluate(X), model.predict(X))


def test_frames_of_other_packages_are_read_by_column():
    polars = pytest.importorskip("polars")
    X, y, qid = rows()
    model = fit([StandardScaler()], RankRLS(), X, y, qid)
    close(formula_of(model).evaluate(polars.DataFrame(X, schema=list("abcd"))), model.predict(X))


@pytest.mark.parametrize("word", ["passthrough", "drop"])
def test_a_union_may_begin_with_a_word(word):
    X, y, qid = rows()
    splines = [("first", word), ("splines", SplineTransformer(n_knots=3))]
    inside = Pipeline([("first", "passthrough"), ("splines", SplineTransformer(n_knots=3))])
    for union in (FeatureUnion(splines), FeatureUnion([("first", word), ("inside", inside)])):
        model = fit([union], RankRLS(), X, y, qid)
        formula = formula_of(model)
        assert len(formula.names) == X.shape[1]
        close(formula.evaluate(X), model.predict(X))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda X, y: DecisionTreeRegressor(max_depth=1).fit(X, y), "DecisionTreeRegressor has no weights"),
        (lambda X, y: KernelRankRLS("precomputed").fit(X @ X.T, y), "no formula in columns"),
        (lambda X, y: fit([SimpleImputer(missing_values=-1)], RankRLS(), X, y, None), "takes -1 for a missing value"),
        (lambda X, y: StandardScaler().fit(X, y), "StandardScaler has no predict"),
        (lambda X, y: Bare().fit(X, y), "has its number of columns"),
    ],
)  # fmt: skip
def test_models_without_a_formula_are_refused_with_a_way_out(make, words):
    X, y, _ = rows()
    with pytest.raises(InvalidInputError, match=words) as refusal:
        formula_of(make(X, y))
    assert refusal.value.hint


def test_one_output_has_no_second():
    X, y, qid = rows()
    model = RankRLS().fit(X, y, qid)
    close(formula_of(model, output=0).evaluate(X), model.predict(X))
    with pytest.raises(InvalidInputError, match="has 1 output, and output is 1"):
        formula_of(model, output=1)


def test_texts_where_the_model_takes_numbers_are_refused():
    X, y, qid = rows()
    formula = formula_of(RankRLS().fit(X, y, qid))
    with pytest.raises(InvalidInputError, match="Column 0 of X holds texts"):
        formula.evaluate(pd.DataFrame(X).astype(object).assign(**{"0": "red"}).iloc[:, [4, 1, 2, 3]])


def test_what_a_search_chose_is_looked_at():
    X, y, qid = rows()
    chosen = RankRLS().fit(X, y, qid)
    search = SimpleNamespace(best_estimator_=chosen)
    assert ModelView.of(search).ranker is chosen
    assert ModelView.of(search).encoder is None
    encoder = TableEncoder()
    assert ModelView.of(SimpleNamespace(best_estimator_=chosen, encoder_=encoder)).encoder is encoder


class Bare(BaseEstimator):
    """A ranker that does not say how many columns it takes."""

    def fit(self, X, y):
        self.coef_ = X.T @ (y - y.mean())
        return self

    def predict(self, X):
        return X @ self.coef_
