"""The page in a real browser: opened, hovered, expanded, compared, in the dark, on a phone, on paper."""

import re

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwise
from browser import NEEDS_BROWSER, Select, WebDriverWait
from rankwise import RankRLS, RankRLSCV, RankSVM
from rankwise.report import Report

pytestmark = [NEEDS_BROWSER, pytest.mark.long]

HOSTILE = "</script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"


NOTES = {"metric": HOSTILE, "train": HOSTILE}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8)) * np.geomspace(1, 0.1, 8)
    y = np.digitize(X @ rng.normal(size=8) + 0.5 * rng.normal(size=600), [0, 1, 2]).astype(float)
    qid = np.array([f"search {q}" for q in np.arange(600) // 20])
    qid[qid == "search 3"] = HOSTILE
    names = [HOSTILE, *(f"column {j}" for j in range(1, 8))]
    return make_pipeline(StandardScaler(), RankRLSCV()).fit(X, y, rankrlscv__qid=qid), X, y, qid, names


@pytest.fixture(scope="module")
def page(tmp_path_factory, fitted):
    model, X, y, qid, names = fitted
    path = tmp_path_factory.mktemp("page") / "report.html"
    Report(
        model, X, y, qid, feature_names=names, title=HOSTILE, command=HOSTILE, source=HOSTILE, notes=NOTES
    ).save(path)
    return path


LONG = "a name of a model that somebody made rather long, for no good reason.rw"


@pytest.fixture(scope="module")
def pages(tmp_path_factory, page):
    """Return the page, one of two models and one of duels."""
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
    return {"one": page, "two": folder / "two.html", "duels": folder / "duels.html"}


def test_it_opens_without_a_complaint_and_runs_nothing_from_the_data(browser, page):
    browser.open(page)
    assert browser.messages() == []
    assert browser.driver.title != "taken"
    assert not browser.all("img")
    assert browser.find("h1").text.startswith("</script><script>")


def test_hovering_the_surface_tells_the_cell(browser, page, fitted):
    ranker = fitted[0][-1]
    browser.open(page)
    surface = browser.find("#surface")
    rows, columns = ranker.alphas_.size + 1, ranker.surface_.shape[1]
    # The middle of the cell of the largest alpha at the last iteration, which is in the upper right corner.
    browser.hover(surface, (columns - 0.5) / columns, 0.5 / (rows + 0.35))
    said = browser.find("#tip").text
    assert f"iteration {columns}" in said
    value = float(re.search(r"error ([\d.]+)", said.replace("\n", " ")).group(1))
    assert value == pytest.approx(ranker.surface_[-1, -1], rel=1e-3)
    assert browser.find("#surface-says").text.replace(": ", "\n") == said
    assert len(browser.all(".mark.chosen")) == 1


def test_the_surface_answers_to_arrow_keys(browser, page, fitted):
    ranker = fitted[0][-1]
    browser.open(page)
    browser.run("document.getElementById('surface').focus()")
    before = browser.find("#surface-says").text
    assert f"iteration {ranker.best_iteration_}:" in before
    browser.find("#surface").send_keys("\ue012")  # left
    assert f"iteration {max(1, ranker.best_iteration_ - 1)}:" in browser.find("#surface-says").text


def test_a_query_opens_and_shows_its_rows_best_first(browser, page, fitted):
    model, X, y, qid, _ = fitted
    browser.open(page)
    details = browser.find("#queries details")
    assert not details.find_elements("css selector", "tbody tr")[0].is_displayed()
    details.find_element("css selector", "summary").click()
    lines = details.find_elements("css selector", "tbody tr")
    assert lines[0].is_displayed()
    cells = [line.find_elements("css selector", "td") for line in lines]
    shown = [(int(row[0].text), float(row[1].text), int(row[3].text)) for row in cells if len(row) == 5]
    scores = model.predict(X)
    own = [scores[row] for _, _, row in shown]
    assert own == sorted(own, reverse=True)
    assert all(y[row] == label for _, label, row in shown)
    query = qid[shown[0][2]]
    assert [rank for rank, _, _ in shown] == [1 + (scores[qid == query] > score).sum() for score in own]


def test_the_reader_picks_a_pair_and_the_parts_add_up(browser, page, fitted):
    model, X, _, _, _ = fitted
    browser.open(page)
    Select(browser.find("#pick-query")).select_by_index(2)
    Select(browser.find("#pick-a")).select_by_index(1)
    Select(browser.find("#pick-b")).select_by_index(4)
    a, b = (int(row) for row in re.findall(r"row (\d+)", browser.find("#why-says").text))
    parts = [line.find_elements("css selector", "td")[2].text for line in browser.all("#why-rows tr")]
    added = sum(float(part.replace("−", "-")) for part in parts)
    scores = model.predict(X)
    assert added == pytest.approx(scores[a] - scores[b], abs=0.01 * np.abs(scores).max())
    heads = [line.find_element("css selector", "th").text for line in browser.all("#why-rows tr")]
    assert any(head.startswith("</script>") for head in heads)
    # The weights of the scaled columns, as they are in the model.
    scaled = model[0].transform(X)
    largest = int(np.argmax(np.abs(model[-1].coef_ * (scaled[a] - scaled[b]))))
    assert heads[0].startswith("</script>" if largest == 0 else f"column {largest}")


def test_one_row_is_explained_by_itself(browser, page, fitted):
    """Without a B, what follows adds up to the score of A, as `rankwise.explain` has it."""
    model, X, _, qid, _ = fitted
    browser.open(page)
    Select(browser.find("#pick-query")).select_by_index(1)
    Select(browser.find("#pick-a")).select_by_index(2)
    Select(browser.find("#pick-b")).select_by_visible_text("nothing: A alone")
    said = browser.find("#why-says").text
    row = int(re.search(r"row (\d+)", said).group(1))
    (why,) = rankwise.explain(model, X, qid, rows=[row])
    assert float(re.search(r"score ([−\d.e-]+)", said).group(1).replace("−", "-")) == pytest.approx(
        why.total, rel=1e-3
    )
    lines = [
        [cell.text for cell in line.find_elements("css selector", "td")]
        for line in browser.all("#why-rows tr")
    ]
    assert all(b == "" for _, b, _, _ in lines)
    added = [float(part.replace("−", "-")) for _, _, part, _ in lines]
    assert sum(added) == pytest.approx(why.total, abs=0.02 * sum(map(abs, added)))
    assert browser.find("#why-direction").text == "lowers ← → raises the score"
    # A press on a button of a row goes on from there.
    details = browser.all("#queries details")[1]
    details.find_element("css selector", "summary").click()
    details.find_elements("css selector", "button[data-side='0']")[0].click()
    assert "B: nothing" in browser.find(".goto").text
    details.find_elements("css selector", "button[data-side='1']")[3].click()
    assert browser.find("#why-direction").text == "for B ← → for A"
    assert browser.messages() == []


def test_a_pressed_button_leads_to_the_explanation_and_back_by_keyboard(browser, page):
    browser.open(page)
    details = browser.find("#queries details")
    details.find_element("css selector", "summary").click()
    button = details.find_elements("css selector", "button[data-side='1']")[4]
    browser.run("arguments[0].focus()", button)
    button.send_keys("\ue007")  # enter
    bar = browser.find(".goto")
    assert bar.is_displayed()
    compared = f"{button.get_attribute('aria-label').split()[2]}"
    assert bar.text.splitlines()[0].endswith(f"B: row {compared}")
    button.send_keys("\ue004")  # tab
    link = browser.driver.switch_to.active_element
    assert link.text.startswith("Why?")
    link.send_keys("\ue007")
    said = browser.driver.switch_to.active_element
    assert said.get_attribute("id") == "why-says"
    inside = "const a = arguments[0].getBoundingClientRect(); return a.top >= 0 && a.bottom <= innerHeight"
    assert browser.run(inside, said)
    assert not bar.is_displayed()
    back = browser.find("#why-back a")
    back.send_keys("\ue007")
    assert browser.driver.switch_to.active_element == button
    assert browser.run(inside, button)


def test_lines_and_grades_can_be_told_apart_without_colour(browser, page):
    browser.open(page)
    style = "const s = getComputedStyle(arguments[0]); return [s.strokeDasharray, s.strokeWidth, s.stroke]"
    styles = [browser.run(style, line) for line in browser.all("#convergence polyline")]
    assert len({tuple(found[:2]) for found in styles}) == len(styles)
    assert len({found[2] for found in styles}) == len(styles)
    for scheme in ("light", "dark"):
        browser.open(page, scheme=scheme)
        browser.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
        _, card = browser.run(STYLE, browser.find("section"))
        fills = {}
        for step in range(5):
            found = browser.all(f".grade.g{step}")
            if found:
                colour, fill = browser.run(STYLE, found[0])
                fill = card if fill.endswith(", 0)") else fill
                fills[step] = luminance(fill)
                assert contrast(luminance(colour), fills[step]) >= 4.5
        assert len(fills) >= 3
        assert contrast(fills[0], fills[4]) >= 3
        distances = [abs(fills[step] - fills[0]) for step in sorted(fills)]
        assert distances == sorted(distances)


STYLE = "const s = getComputedStyle(arguments[0]); return [s.color, s.backgroundColor]"


def contrast(first, second):
    lighter, darker = sorted([first, second], reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour):
    channels = [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_in_light_and_dark(browser, page, scheme):
    browser.open(page, scheme=scheme)
    _, card = browser.run(STYLE, browser.find("section"))
    assert (luminance(card) < 0.1) == (scheme == "dark")
    for selector in (
        "h2",
        "section p",
        ".note",
        ".tick",
        "td:has(.forest) + td",
        "small",
        "nav a",
        "summary",
    ):
        colour, _ = browser.run(STYLE, browser.find(selector))
        assert contrast(luminance(colour), luminance(card)) >= 4.5, selector  # what WCAG AA asks for
    assert browser.messages() == []


def test_a_phone_shows_everything_without_scrolling_sideways(browser, page):
    browser.open(page, width=360)
    assert browser.run("return document.documentElement.scrollWidth") <= 360
    sizes = browser.run(
        "return [...document.querySelectorAll('main *')].filter(e => e.children.length === 0 && "
        "e.textContent.trim() && e.offsetParent).map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 12
    inside = "const a = arguments[0].getBoundingClientRect(); return a.left >= 0 && a.right <= 360"
    assert all(
        browser.run(inside, element) for element in browser.all("section, .plot, .metrics td, table.why")
    )


WIDTHS = (320, 360, 390, 480, 600, 720, 768, 800, 840, 1024, 1280, 1400)

# What sticks out of the window, except inside what scrolls by itself.
STICKING_OUT = """
const wide = document.documentElement.clientWidth + 0.5;
return [...document.querySelectorAll('body *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && (box.right > wide || box.left < -0.5) && !e.closest('.scroll table') && !e.closest('[hidden]');
}).map(e => e.outerHTML.slice(0, 100))
"""

# Cells of a table whose contents lie on top of each other.
OVERLAPPING = """
const found = [];
for (const table of document.querySelectorAll('table')) {
  const cells = [...table.querySelectorAll('th, td')].map(cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return [cell, [...range.getClientRects(), ...(cell.textContent ? [] : [cell.getBoundingClientRect()])]];
  });
  cells.forEach(([cell, boxes], i) => cells.slice(i + 1).forEach(([other, others]) => {
    const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1
      && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
    if (boxes.some(a => others.some(b => meet(a, b)))) found.push(cell.outerHTML + other.outerHTML);
  }));
}
return found
"""


@pytest.mark.parametrize("name", ["one", "two", "duels"])
@pytest.mark.parametrize("width", WIDTHS)
def test_it_fits_into_windows_of_every_width(browser, pages, name, width):
    browser.open(pages[name], width=width)
    assert browser.messages() == []
    for link in browser.all("nav a"):
        place = browser.find("#" + link.get_attribute("href").rpartition("#")[2])
        assert place.is_displayed()
        assert place.size["height"] > 60  # no empty cards
    browser.run("document.querySelectorAll('details').forEach(e => { e.open = true; })")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run(STICKING_OUT) == []
    assert browser.run(OVERLAPPING) == []


@pytest.mark.parametrize("width", [360, 1300])
def test_words_of_two_models_are_not_broken_into_letters(browser, pages, width):
    browser.open(pages["two"], width=width)
    heads = browser.all("table.beside tbody th")
    assert len(heads) > 2
    assert max(head.size["height"] for head in heads) < 60  # two lines at most
    labels = browser.run(
        "return getComputedStyle(document.querySelector('table.beside td'), '::before').content"
    )
    assert ("RankRLS" in labels) == (width == 360)  # where there is no head, each figure says whose it is


@pytest.mark.parametrize("width", [320, 1100])
def test_no_label_hides_a_bar_of_the_histogram(browser, fitted, tmp_path, width):
    model, X, y, qid, _ = fitted
    # One metric whose mean is in the middle, one whose mean is at the right, where the label changes sides.
    for metric in ("kendall_tau", "ndcg@10"):
        Report(model, X, y, qid, metrics=[metric]).save(tmp_path / "report.html")
        browser.open(tmp_path / "report.html", width=width)
        boxes = browser.run(
            "return [...document.querySelectorAll('.bar, .mean b')].map(e => e.getBoundingClientRect().toJSON())"
        )
        label, bars = boxes.pop(), boxes
        assert bars
        assert all(label["bottom"] <= bar["top"] + 0.5 for bar in bars)
        assert 0 <= label["left"] < label["right"] <= width


def test_paper_gets_every_query_opened(browser, page):
    browser.open(page)
    assert browser.pdf().startswith(b"%PDF")
    browser.run("window.dispatchEvent(new Event('beforeprint'));")
    assert not browser.all("details:not([open])")
    browser.run("window.dispatchEvent(new Event('afterprint'));")
    assert browser.all("details:not([open])")


def test_each_command_to_reproduce_stands_by_itself(browser, fitted, tmp_path):
    model, X, y, qid, _ = fitted
    commands = ["rankwise fit a.txt -o '</code>.rw'", "rankwise report '</code>.rw' 'two\nlines.txt'"]
    Report(model, X, y, qid, notes={"command": commands[0]}, command=commands[1]).save(
        tmp_path / "report.html"
    )
    browser.open(tmp_path / "report.html")
    assert [block.get_property("textContent") for block in browser.all("#settings pre code")] == commands
    boxes = [block.rect for block in browser.all("#settings pre")]
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
    assert "\N{REPLACEMENT CHARACTER}" not in browser.find("#settings").text
    button = browser.all("#settings .copy")[0]
    button.click()
    WebDriverWait(browser.driver, 20).until(lambda _: button.text in {"Copied", "Selected"})


def test_everything_has_a_name_for_those_who_cannot_see_it(browser, page):
    browser.open(page)
    unnamed = browser.run(
        "return [...document.querySelectorAll('svg:not([aria-hidden]), [role], button, select')].filter(e => "
        "!(e.getAttribute('aria-label') || e.closest('label') || e.textContent.trim()))"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert unnamed == []
    identities = browser.run("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(identities) == len(set(identities))
    assert all(
        browser.all(f"#{link.get_attribute('href').partition('#')[2]}") for link in browser.all("nav a")
    )
