"""Two models and duels in a real browser: wide, narrow, light and dark."""

import numpy as np
import pytest

from browser import NEEDS_BROWSER, Browser
from rankwise import RankRLS, RankSVM
from rankwise.report import Report

pytestmark = [NEEDS_BROWSER, pytest.mark.long]

LONG = "a name of a model that somebody made rather long, for no good reason.rw"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("pages"), np.random.default_rng(0)
    X, qid = rng.normal(size=(300, 5)), np.arange(300) // 10
    y = np.digitize(X[:, 0] + rng.normal(size=300), [0, 1]).astype(float)
    model, other = RankRLS().fit(X, y, qid=qid), RankRLS().fit(X, -y, qid=qid)
    Report(model, X, y, qid, against=other, against_name=LONG).save(folder / "two.html")
    pairs = np.array([rng.choice(40, 2, replace=False) for _ in range(200)])
    duels = RankSVM(loss="logistic", alpha=0.01).fit_pairs(X[:40], pairs)
    names = [f"{LONG} {row}" for row in range(40)]
    rls = RankRLS().fit_pairs(X[:40], pairs)
    Report(duels, X[:40], pairs=pairs, row_names=names, against=rls).save(folder / "duels.html")
    return folder


@pytest.mark.parametrize("name", ["two", "duels"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 360, 1300])
def test_new_sections_fit_and_complain_of_nothing(browser, pages, name, scheme, width):
    browser.open(pages / f"{name}.html", width=width, scheme=scheme)
    assert browser.messages() == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
    for anchor in [link.get_attribute("href").rpartition("#")[2] for link in browser.all("nav a")]:
        place = browser.find(f"#{anchor}")
        assert place.is_displayed()
        assert place.size["height"] > 60  # no empty cards
    assert {"two": "#against", "duels": "#duels"}[name] in [
        "#" + link.get_attribute("href").rpartition("#")[2] for link in browser.all("nav a")
    ]


@pytest.mark.parametrize("width", [360, 1300])
def test_words_of_two_models_are_not_broken_into_letters(browser, pages, width):
    browser.open(pages / "two.html", width=width)
    heads = browser.all("table.beside tbody th")
    assert len(heads) > 2
    assert max(head.size["height"] for head in heads) < 60  # two lines at most
    labels = browser.run(
        "return getComputedStyle(document.querySelector('table.beside td'), '::before').content"
    )
    assert ("RankRLS" in labels) == (width == 360)  # where there is no head, each figure says whose it is
