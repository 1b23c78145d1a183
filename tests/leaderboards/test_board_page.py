"""The page and the picture of a board."""

import html
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from boards import board
from rankwise import BradleyTerry
from rankwise.displays import LeaderboardDisplay
from rankwise.exceptions import InvalidInputError

mpl.use("Agg")


def named_board(**options):
    battles = board(size=400, **options)
    names = np.array(["<b>one</b>", *(f"item {at}" for at in range(1, 8))])
    words = np.select([battles["score"] == 1, battles["score"] == 0], ["model_a", "model_b"], "tie")
    return {
        "model_a": names[battles["item_a"]],
        "model_b": names[battles["item_b"]],
        "winner": words,
        "length_a": np.random.default_rng(1).normal(size=400),
        "length_b": np.random.default_rng(2).normal(size=400),
        "country": np.full(400, "x"),
    }


def rows_of(page, section):
    body = re.search(rf'<section id="{section}">(.*?)</section>', page, flags=re.DOTALL)[1]
    lines = re.findall(r"<tr[^>]*><th scope.*?</tr>", body, flags=re.DOTALL)
    return [
        [re.sub("<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", line)] for line in lines
    ]


def test_the_page_shows_board_results_calibration_effects_and_deciding_battles(tmp_path):
    battles = named_board()
    model = BradleyTerry(first_advantage=True).fit(battles, style=["length"])
    page = model.to_html(tmp_path / "board.html", title="Board <1>")
    assert (tmp_path / "board.html").read_text(encoding="utf-8") == page
    assert "<b>one</b>" not in page
    assert "Board &lt;1&gt;" in page
    assert "default-src &#x27;none&#x27;" in page
    lines = rows_of(page, "board")
    table = model.table_
    assert [line[4] for line in lines] == [str(place) for place in table["place"]]
    assert [line[6] for line in lines] == [str(tier) for tier in table["tier"]]
    assert [line[11] for line in lines] == [
        f"{flips:g}" if np.isfinite(flips) else "–" for flips in table["flips"]
    ]
    assert [line[0] for line in rows_of(page, "effects")] == ["first", "length"]
    deciding = rows_of(page, "deciding")
    assert [int(line[2]) for line in deciding] == [rows.size for rows in model.find_flips().values()]
    assert ["unused columns", "country"] in rows_of(page, "data")
    # Duels of the calibration are all battles; the deviations of pairs are in order.
    assert sum(float(line[1].replace(",", "")) for line in rows_of(page, "calibration")) == 400
    deviations = [abs(float(line[5].replace("−", "-"))) for line in rows_of(page, "results")]
    assert deviations == sorted(deviations, reverse=True)


def test_expected_points_are_sums_of_probabilities():
    battles = named_board()
    model = BradleyTerry().fit(battles)
    strength = dict(zip(model.items_, model.strengths_, strict=True))
    for line in rows_of(model.to_html(), "results")[:4]:
        first, second, n_battles, points, expected, _ = map(html.unescape, line)
        met = [
            (1.0 if w == "model_a" else 0.0 if w == "model_b" else 0.5, a == first)
            for a, b, w in zip(battles["model_a"], battles["model_b"], battles["winner"], strict=True)
            if {a, b} == {first, second}
        ]
        p = 1 / (1 + np.exp(strength[second] - strength[first]))
        assert int(n_battles) == len(met)
        assert float(points) == sum(score if ahead else 1 - score for score, ahead in met)
        assert float(expected) == pytest.approx(len(met) * p, abs=0.051)


def test_a_davidson_page_has_no_flips_and_a_loaded_board_has_no_page():
    model = BradleyTerry(ties="davidson").fit(named_board())
    assert 'id="deciding"' not in model.to_html()
    model = BradleyTerry().fit(named_board())
    del model._battles
    with pytest.raises(InvalidInputError, match="no battles"):
        model.to_html()


def test_the_picture_has_every_interval_in_the_colour_of_its_tier():
    model = BradleyTerry().fit(board(size=2000, spread=2))
    display = LeaderboardDisplay.from_estimator(model)
    labels = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert labels == [str(item) for item in model.table_["item"]]
    assert len(display.ax_.containers) == model.table_["tier"].max()
    drawn = {}
    for container in display.ax_.containers:
        for place, segment in zip(container[0].get_ydata(), container[2][0].get_segments(), strict=True):
            drawn[int(place)] = segment[:, 0]
    for at, (low, high) in enumerate(zip(model.table_["low"], model.table_["high"], strict=True)):
        np.testing.assert_allclose(drawn[at], [low, high])
    ax = plt.subplots()[1]
    assert LeaderboardDisplay.from_estimator(model, n_items=3, ax=ax).ax_ is ax
    assert len(ax.get_yticks()) == 3
    plt.close("all")
