"""What files leave out, as it is the default, is what it was when they were written, whatever the default is now."""

import io
import json
from pathlib import Path

import numpy as np
import pytest

import rankwise
from rankwise import RankRLS, RankSVM
from rankwise.exceptions import ModelFileError
from rankwise.persistence import defaults, files, models, read_header
from rankwise.persistence.models import RANKERS

RECORDED = Path(__file__).with_name("defaults.json")


def as_json(value):
    return json.loads(json.dumps(value))


def test_no_default_changes_unnoticed():
    """Where a default has changed, raise DEFAULTS, put the former value into FORMER and record the new table."""
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert max(map(int, recorded)) == defaults.DEFAULTS
    for number, table in recorded.items():
        for name in RANKERS:
            meant = defaults.former(getattr(rankwise, name), int(number))
            assert {key: as_json(meant[key]) for key in table[name]} == table[name]
    newest = recorded[str(defaults.DEFAULTS)]
    for name in RANKERS:
        assert newest[name].keys() == defaults.current(getattr(rankwise, name)).keys()


def written(model):
    stream = io.BytesIO()
    model.fit(np.eye(3), [0, 1, 2]).save(stream)
    return stream.getvalue()


def test_only_what_differs_is_written():
    data = written(RankRLS(alpha=2.5, tol=1e-5, n_threads=1))
    assert read_header(io.BytesIO(data))["steps"][0]["parameters"] == {"alpha": 2.5, "n_threads": 1}
    assert rankwise.load(io.BytesIO(data)).get_params() == RankRLS(alpha=2.5, n_threads=1).get_params()


@pytest.mark.parametrize("value", [1, np.float64(1.0)])
def test_what_only_equals_the_default_is_written(value):
    """A whole number comes back as one, and a zero with its sign."""
    again = rankwise.load(io.BytesIO(written(RankRLS(alpha=value))))
    assert type(again.alpha) is type(value)
    again = rankwise.load(io.BytesIO(written(RankRLS(scaling=-0.0))))
    assert np.signbit(again.scaling)


def test_a_file_keeps_the_defaults_that_it_was_written_with(monkeypatch):
    data = written(RankSVM())
    tol, now = RankSVM().tol, defaults.DEFAULTS
    for room in (defaults, files, models):
        monkeypatch.setattr(room, "DEFAULTS", now + 2)
    # Twice it has changed since: from what it is now, taken for the third, to the two before.
    monkeypatch.setattr(
        defaults,
        "FORMER",
        {now: {"RankSVM": {"tol": 0.5}}, now + 1: {"RankSVM": {"tol": 0.25, "alpha": 7.0}}},
    )
    again = rankwise.load(io.BytesIO(data))
    assert (again.tol, again.alpha) == (0.5, 7.0)
    assert defaults.former(RankSVM, now + 1)["tol"] == 0.25
    assert defaults.former(RankSVM, now + 2)["tol"] == tol


def test_defaults_of_a_newer_version_are_refused(monkeypatch):
    newer = defaults.DEFAULTS + 1
    monkeypatch.setattr(files, "DEFAULTS", newer)
    data = written(RankRLS())
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match=rf"defaults {newer}, which are not known here.*Hint: upgrade"):
        rankwise.load(io.BytesIO(data))
