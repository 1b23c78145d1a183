"""``rankwise leaderboard`` prints the board that BradleyTerry fits."""

import json

import numpy as np
import pytest

from boards import board
from rankwise import BradleyTerry
from rankwise.cli import main

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture
def battles(tmp_path):
    table = pd.DataFrame(board(size=400))
    table["item_a"] = table["item_a"].map("{:03}".format)  # ids stay text
    table["item_b"] = table["item_b"].map("{:03}".format)
    rng = np.random.default_rng(0)
    table["length_a"], table["length_b"] = rng.normal(size=(2, 400))
    table["judge"], table["note"] = np.arange(400) % 25, "x"
    table.to_csv(tmp_path / "battles.csv", index=False)
    return tmp_path / "battles.csv", table


def test_the_printed_board_is_the_fitted_one(battles, capsys):
    path, table = battles
    page = path.with_name("board.html")
    options = ["--style", "length", "--order", "--cluster", "judge", "--suggest", "3", "-o", str(page)]
    assert main(["leaderboard", str(path), *options]) == 0
    out, err = capsys.readouterr()
    assert "columns that were not used: note" in err
    model = BradleyTerry(first_advantage=True).fit(table, style=["length"], cluster="judge")
    lines = out.splitlines()
    assert lines[0].split() == [*model.table_, "flips"]
    assert [line.split()[0] for line in lines[1:9]] == model.table_["item"].tolist()
    assert [float(line.split()[1]) for line in lines[1:9]] == model.table_["strength"].round(3).tolist()
    assert [tuple(line.split()) for line in lines[-5:-2]] == model.suggest(3), out
    assert "Expected and observed" in page.read_text(encoding="utf-8")
    assert main(["leaderboard", str(path), *options]) != 0  # the page exists
    assert "--force" in capsys.readouterr().err


def test_json_has_board_effects_and_diagnostics(battles, capsys):
    path, table = battles
    features = path.with_name("items.csv")
    pd.DataFrame({"item": [f"{at:03}" for at in range(9)], "size": range(9)}).to_csv(features, index=False)
    assert main(["leaderboard", str(path), "--json", "--items", str(features)]) == 0
    found = json.loads(capsys.readouterr().out)
    model = BradleyTerry().fit(table, items=pd.read_csv(features, dtype={"item": str}))
    assert [one["item"] for one in found["board"]] == model.table_["item"].tolist()
    assert [one["p_first"] for one in found["board"]] == model.table_["p_first"].tolist()
    assert found["board"][-1]["flips"] is None
    assert [one["effect"] for one in found["effects"]] == ["size"]
    assert found["diagnostics"]["never_played"] == ["008"]


def test_davidson_and_standard_input(battles, capsys, monkeypatch):
    path, table = battles
    with path.open("rb") as stream:
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": stream, "fileno": stream.fileno})())
        assert main(["leaderboard", "-", "--ties", "davidson", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["effect"] for one in found["effects"]] == ["log_nu"]
    model = BradleyTerry(ties="davidson").fit(table)
    assert [one["strength"] for one in found["board"]] == model.table_["strength"].tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--style", "nothing"], "There is no column 'nothing'"),
        (["--cluster", "nobody"], "There is no column 'nobody'"),
        (["--ties", "davidson", "--suggest", "2"], "not available for Davidson"),
    ],
)
def test_mistakes_have_a_hint(battles, options, message, capsys):
    assert main(["leaderboard", str(battles[0]), *options]) != 0
    err = capsys.readouterr().err
    assert message in err
    assert "Hint: " in err


@pytest.mark.filterwarnings("default")
def test_empty_cells_are_missing_ids(tmp_path, capsys):
    (tmp_path / "battles.csv").write_text("winner,loser\nx,y\ny,x\n,x\n", encoding="utf-8")
    assert main(["leaderboard", str(tmp_path / "battles.csv"), "--json"]) == 0
    out, err = capsys.readouterr()
    assert [one["item"] for one in json.loads(out)["board"]] == ["x", "y"]
    assert "1 because an item id is missing" in err
