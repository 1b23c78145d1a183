"""What the pages show must run as it stands, in its order, and print what they say it prints."""

import inspect
import os
import re
import runpy
from importlib import import_module
from importlib.util import find_spec

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from page_blocks import DOCS, read_blocks, run_page
from rankwise.exporters import TARGETS

mpl.use("Agg")
ROOT = DOCS.parent


# Tests of their own: the format of model files; engines that are not installed here.
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if read_blocks(page) and page.name != "model-files.md" and page.parent.name != "engines"
)


@pytest.fixture
def check_page(tmp_path, monkeypatch):
    def check(page, *, others):
        namespace = {}
        try:
            differing = run_page(page, namespace, others=others)
        finally:
            plt.close("all")
        assert [(block.line, block.output, got) for block, got in differing] == []
        return namespace

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(plt, "show", lambda: None)
    return check


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_what_a_page_shows_runs_and_prints_what_it_says(page, check_page):
    namespace = check_page(page, others=())
    if page.name in CLAIMS:
        CLAIMS[page.name](namespace)


@pytest.mark.long
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if any(block.needs for block in read_blocks(page))],
    ids=lambda page: page.relative_to(DOCS).as_posix(),
)
def test_blocks_that_need_another_package_print_what_they_say(page, check_page):
    needed = {block.needs for block in read_blocks(page)} - {None}
    missing = {package for package in needed if find_spec(package) is None}
    check_page(page, others=needed - missing)
    if missing:
        pytest.skip(f"blocks that need packages which are not installed: {', '.join(sorted(missing))}")


def check_export(names):
    assert set(names["weights"]) == {"bm25", "age", "price"}
    assert names["total"] == pytest.approx(names["model"].predict(names["X"])[3])


def check_tables(names):
    assert names["names"] == ["bm25", "clicks"]
    assert names["both"].X.shape == (6, 3)
    assert names["best"] == "tea"


def check_automatic(names):
    assert ((names["probabilities"] > 0) & (names["probabilities"] < 1)).all()


# What a page says in words about what it computed.
CLAIMS = {"export.md": check_export, "tables.md": check_tables, "automatic.md": check_automatic}


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/plot_*.py")), ids=lambda path: path.stem)
def test_an_example_of_the_gallery_runs_and_draws(example, monkeypatch, capsys):
    monkeypatch.setattr(plt, "show", lambda: None)
    try:
        runpy.run_path(str(example), run_name="__main__")
        assert plt.get_fignums()
    finally:
        plt.close("all")


def test_every_target_has_a_page_and_every_page_is_linked():
    page = (DOCS / "export.md").read_text(encoding="utf-8")
    assert all(f"`{target}`" in page for target in TARGETS)
    for link in re.findall(r"\((engines/[\w-]+\.md)\)", page):
        assert (DOCS / link).exists()
    assert {path.name for path in (DOCS / "engines").iterdir()} == set(
        re.findall(r"engines/([\w-]+\.md)", page)
    )


def test_every_page_is_in_a_table_of_contents():
    """Sphinx would say so too, but it does not run with the quick tests."""
    listed = {"index"}
    for page in DOCS.rglob("*.md"):
        for block in re.findall(r"```{toctree}\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            for line in block.splitlines():
                if line and not line.startswith(":"):
                    listed.add(os.path.normpath(page.relative_to(DOCS).parent / line))
    there = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert there == {page for page in listed if not page.startswith("gallery")} - {"gallery/index"}


def test_the_pages_are_short():
    """Code, tables, the reference and the decisions are not counted."""
    n_words = 0
    for page in DOCS.rglob("*.md"):
        if "decisions" not in page.parts and page.name != "api.md":
            text = re.sub(r"<!--.*?-->|```.*?```", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
            n_words += len(re.findall(r"[A-Za-z]+", re.sub(r"^\|.*$", " ", text, flags=re.MULTILINE)))
    assert n_words <= 13_500


# Names that other packages of this library import, and users do not.
INTERNAL = {
    "TARGETS",
    "METRICS",
    "check_exportable",
    "exportable_to",
    "__version__",
    "caller_level",
    "visible",
}
PUBLIC = [
    "rankwise", "rankwise.data", "rankwise.datasets", "rankwise.displays", "rankwise.exceptions",
    "rankwise.explanations", "rankwise.exporters", "rankwise.metrics", "rankwise.model_selection",
    "rankwise.permutation", "rankwise.persistence", "rankwise.preprocessing", "rankwise.report",
]  # fmt: skip


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference_and_has_an_example(module):
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    listed = {line.split(".")[-1] for line in re.findall(r"^   ([\w.]+)$", page, re.MULTILINE)}
    names = set(import_module(module).__all__) - INTERNAL
    assert names <= listed
    documented = {name: inspect.getdoc(getattr(import_module(module), name)) for name in names}
    errors = {name for name in names if name.endswith("Error")}  # a sentence says what they are
    assert {name for name, text in documented.items() if ">>>" not in text} == errors


@pytest.mark.parametrize("module", PUBLIC)
def test_every_method_of_a_public_class_is_documented(module):
    """`inspect.getdoc`, and so the site, does not look for a mixin's text in the classes that it is mixed into."""
    found = [getattr(import_module(module), name) for name in import_module(module).__all__]
    classes = [one for one in found if inspect.isclass(one)]
    methods = {
        f"{one.__name__}.{name}": member
        for one in classes
        for name, member in inspect.getmembers(one, callable)
        if not name.startswith("_")
    }
    assert [name for name, method in methods.items() if not inspect.getdoc(method)] == []


def test_every_public_name_of_clusters_is_in_the_reference():  # what they do is shown by docs/cluster.md, on a cluster
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    names = pytest.importorskip("rankwise.distributed").__all__
    assert set(names) <= set(re.findall(r"^   (\w+)$", page, re.MULTILINE))


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
