"""Reports of models of tables: the encoder is part of the model, and the page is about the columns of the table."""

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rankwise import AutoRanker, RankRLS
from rankwise.exceptions import InvalidInputError
from rankwise.preprocessing import QueryScaler, TableEncoder
from rankwise.report import Report

RNG = np.random.default_rng(0)
ROWS = 200
TABLE = pd.DataFrame(
    {
        "price": np.where(RNG.random(ROWS) < 0.05, np.nan, RNG.normal(size=ROWS)),
        "city": RNG.choice(["Turku", "Espoo", "Vaasa"], ROWS),
        "day": pd.date_range("2024-01-01", periods=ROWS),
        "embedding": [list(row) for row in RNG.normal(size=(ROWS, 3))],
    }
)
Y, QID = RNG.integers(0, 3, ROWS), np.arange(ROWS) // 10


def pipeline(*steps):
    return make_pipeline(TableEncoder(), *steps, RankRLS()).fit(TABLE, Y, rankrls__qid=QID)


MODELS = {
    "alone": pipeline,
    "scaled": lambda: pipeline(StandardScaler(with_mean=False)),
    "automatic": lambda: AutoRanker(methods=["rls", "curves"], cv=2).fit(TABLE, Y, qid=QID),
}


@pytest.mark.parametrize("made", MODELS)
def test_a_table_is_shown_by_its_own_columns(made):
    model = MODELS[made]()
    encoder = model.encoder_ if made == "automatic" else model[0]
    report = Report(model, TABLE, Y, QID, against=pipeline())
    wanted = model.predict(TABLE, qid=QID) if made == "automatic" else model.predict(TABLE)
    np.testing.assert_allclose(report.scores, wanted, atol=1e-12)
    page = report.html()
    for name in ("price", "city", "day", "embedding[0]"):
        assert name in report.parts.names
        assert name in page
    for query in report.opened:
        at = query.columns.tolist().index(report.parts.names.index("city"))
        assert {row.values[at] for row in query.rows} <= {"Turku", "Espoo", "Vaasa"}  # noqa: PD011 - no frame
    assert "Turku" in page
    for line in encoder.describe():
        assert line.split(":")[0] in page
    with pytest.raises(InvalidInputError, match="give one name per column"):
        Report(model, TABLE, Y, QID, feature_names=list(TABLE))


def test_another_model_of_a_table_and_of_whole_queries_is_compared():
    numbers = RNG.normal(size=(ROWS, 3))
    inside = make_pipeline(QueryScaler(), RankRLS()).fit(numbers, Y, queryscaler__qid=QID, rankrls__qid=QID)
    plain = RankRLS().fit(numbers, Y, qid=QID)
    for first, second in ((inside, plain), (plain, inside)):
        assert "QueryScaler" in Report(first, numbers, Y, QID, against=second).html()
    automatic = MODELS["automatic"]()
    assert "RankRLS" in Report(pipeline(), TABLE, Y, QID, against=automatic).html()
