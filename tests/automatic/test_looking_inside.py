"""What a search chose can be explained, exported and reported on without being taken out of it."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV

import rankwise
from rankwise.model_selection import QueryKFold, make_ranking_scorer
from rankwise.report import Report
from strategies import make_problem

PROBLEM = make_problem(4, rows=80, features=3, queries=8)


def searches():
    automatic = rankwise.AutoRanker(methods=["rls"])
    yield automatic.fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid)
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = rankwise.RankRLS()
        scorer = make_ranking_scorer("concordance")
        grid = GridSearchCV(ranker, {"alpha": [1.0, 10.0]}, cv=QueryKFold(2), scoring=scorer)
        yield grid.fit(PROBLEM.X, PROBLEM.y, qid=PROBLEM.qid)


def test_a_search_is_looked_at_through_what_it_chose():
    for search in searches():
        X, qid = PROBLEM.X, PROBLEM.qid
        (why,) = rankwise.explain(search, X, qid, rows=[5])
        assert why.constant + sum(part.contribution for part in why.parts) == pytest.approx(why.total)
        assert why.total == pytest.approx(search.best_estimator_.predict(X)[5])
        assert rankwise.export(search, "json") == rankwise.export(search.best_estimator_, "json")
        assert Report(search, X, PROBLEM.y, qid).scores == pytest.approx(search.best_estimator_.predict(X))


def test_one_that_encodes_a_table_is_explained_in_the_columns_of_the_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=60), "b": rng.choice(["x", "y"], size=60)})
    model = rankwise.AutoRanker(methods=["rls"]).fit(table, table["a"])
    assert rankwise.explain(model, table, rows=[0])[0].total == pytest.approx(model.predict(table)[0])
    encoded = model.encoder_.transform(table)
    assert rankwise.explain(model.best_estimator_, encoded, rows=[0])[0].total == pytest.approx(
        model.predict(table)[0]
    )
