"""What a search chose can be explained, exported and reported on without being taken out of it."""

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
