"""The site that `make docs` makes, looked at in a real browser and followed link by link."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import rankwise
from browser import WebDriverWait

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[1]
ESTIMATORS = [name for name in rankwise.__all__ if name[0].isupper()]


@pytest.fixture(scope="module")
def site():
    """Build what is not up to date; a warning is an error."""
    pytest.importorskip("sphinx", reason="pip install 'rankwise[docs]'")
    target = ROOT / "build" / "docs"
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "-n",
        "-q",
        "-b",
        "html",
        "-d",
        "build/doctrees",
        "docs",
        target,
    ]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **threads}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return target


class Page(HTMLParser):
    """The places of a page, and where it leads: links for readers, and what the browser loads by itself."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loaded = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.add(given.get("id"))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        elif tag in {"script", "img", "iframe"} and given.get("src"):
            self.loaded.append(given["src"])
        elif tag == "link" and given.get("rel") in {"stylesheet", "preload", "icon"}:
            self.loaded.append(given["href"])


def pages_of(site):
    return sorted(
        path for path in site.rglob("*.html") if "_static" not in path.parts
    )  # the theme's templates


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_elsewhere(site):
    pages = {path: Page(path) for path in pages_of(site)}
    assert len(pages) > 100
    broken, foreign = [], []
    for path, page in pages.items():
        foreign += [(path.name, link) for link in page.loaded if urlsplit(link).netloc]
        for link in page.links + page.loaded:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.exists() or (place and target in pages and place not in pages[target].ids):
                broken.append((path.name, link))
    assert foreign == []
    assert broken == []


@pytest.mark.long
@pytest.mark.parametrize("width", [360, 1300])
def test_no_page_complains_or_scrolls_sideways(site, browser, width):
    wrong = []
    for path in pages_of(site):
        browser.open(path, width=width)
        wide = browser.run("return document.documentElement.scrollWidth")
        if wide > width:
            wrong.append((path.name, wide))
        code = "pre" if width > 960 else "div[class*=highlight-py] pre"
        cut = f"return [...document.querySelectorAll('{code}')].filter((e) => e.scrollWidth > e.clientWidth + 1).length"
        wrong += [(path.name, "code")] * bool(browser.run(cut))
        tables = (
            "return [...document.querySelectorAll('table')].some((e) => e.scrollWidth > e.clientWidth + 1)"
        )
        wrong += [(path.name, "table")] * browser.run(tables)
        logged = browser.driver.get_log("browser")  # the theme remarks on its mode, which is no complaint
        wrong += [
            (path.name, entry["message"]) for entry in logged if entry["level"] in {"SEVERE", "WARNING"}
        ]
    assert wrong == []


@pytest.mark.long
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_search_finds_every_estimator(site, browser, name):
    browser.open(site / "search.html")
    browser.driver.get(f"{(site / 'search.html').as_uri()}?q={name}")
    found = WebDriverWait(browser.driver, 20).until(lambda _: browser.all("#search-results li a"))
    addresses = [link.get_attribute("href") for link in found]
    assert any(f"api/rankwise.{name}.html" in address for address in addresses), addresses


@pytest.mark.long
def test_the_site_is_light_or_dark_as_its_reader_is(site, browser):
    def brightness(scheme):
        browser.open(site / "tutorial.html", scheme=scheme)
        colour = browser.run("return getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour.strip("rgba()").split(",")[:3])

    assert brightness("light") > 600
    assert brightness("dark") < 200
