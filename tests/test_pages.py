"""What the pages show must run as it stands, in its order."""

import re
from pathlib import Path

import pytest

from rankwise.exporters import TARGETS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.mark.parametrize("page", ["tables.md"])
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    namespace = {}
    for block in blocks:
        exec(compile(block, page, "exec"), namespace)
    assert namespace["names"] == ["bm25", "clicks"]
    assert namespace["both"].X.shape == (6, 3)
    assert namespace["best"] == "tea"


def test_the_examples_of_the_automatic_choice_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "automatic.md").read_text(encoding="utf-8")
    namespace = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "automatic.md", "exec"), namespace)
    assert ((namespace["probabilities"] > 0) & (namespace["probabilities"] < 1)).all()


def test_the_examples_of_the_export_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (DOCS / "export.md").read_text(encoding="utf-8")
    namespace = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "export.md", "exec"), namespace)
    assert set(namespace["weights"]) == {"bm25", "age", "price"}
    assert namespace["total"] == pytest.approx(namespace["model"].predict(namespace["X"])[3])
    # Every target has a page, and every page is linked.
    assert all(f"`{target}`" in page for target in TARGETS)
    for link in re.findall(r"\((engines/[\w-]+\.md)\)", page):
        assert (DOCS / link).exists()
    assert {path.name for path in (DOCS / "engines").iterdir()} == set(
        re.findall(r"engines/([\w-]+\.md)", page)
    )


def test_sections_of_the_mathematics_that_docstrings_cite_are_there():
    """Sections are numbered without gaps, and every citation in code or pages names one of them."""
    page = (DOCS / "mathematics.md").read_text(encoding="utf-8")
    sections = re.findall(r"^#{2,3} ([\d.]+\d|\d+)\.? ", page, re.MULTILINE)
    assert sections == sorted(sections, key=lambda number: [int(part) for part in number.split(".")])
    sources = [
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("cpp/*.[hc]pp"),
        *ROOT.glob("tests/**/*.py"),
        *DOCS.glob("*.md"),
    ]
    cited = [
        (path.name, number)
        for path in sources
        for number in re.findall(
            r"mathematics\.md`?,\s+section\s+(\d+(?:\.\d+)?)|[Ss]ection\s+(\d+(?:\.\d+)?) of `?docs/mathematics",
            path.read_text(encoding="utf-8"),
        )
        for number in number
        if number
    ]
    assert len(cited) >= 10
    assert [one for one in cited if one[1] not in sections] == []
    strange = [path.name for path in sources if re.search(r"\bMATH\b", path.read_text(encoding="utf-8"))]
    assert set(strange) <= {"test_pages.py"}
