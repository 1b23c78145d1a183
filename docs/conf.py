"""How `make docs` makes the site: Markdown pages, the reference from docstrings, the gallery from examples/.

Everything it needs is installed by ``rankwise[docs]``, and nothing is fetched, neither while it is built nor while
it is read. Formulas are text, on the pages as in docstrings, so there is no MathJax.
"""

import os
import re
import warnings
from pathlib import Path

from bs4 import BeautifulSoup

import rankwise

ROOT = Path(__file__).parents[1]

project = "rankwise"
author = "the rankwise developers"
copyright = author  # noqa: A001, the name that Sphinx reads
version = release = rankwise.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_templates", "gallery/**/*.ipynb", "gallery/**/*.py"]
nitpicky = True
# `RankRLS` in a docstring is a link where there is something to link to, and else, as for `alpha`, a name in code.
default_role = "py:obj"
nitpick_ignore_regex = [("py:obj", r".*")]

myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "rankwise"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_context = {"default_mode": "auto"}  # light or dark as the reader has it
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 6,
}
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "write_computation_times": False,  # that page would load scripts from elsewhere
    "download_all_examples": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
    "within_subsection_order": "ExampleTitleSortKey",
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Files of the repository that are pages here; links to them are written for readers of the repository.
_PAGES = {
    "../benchmarks/README.md": "benchmarks.md",
    "../CHANGELOG.md": "changes.md",
    "../ARCHITECTURE.md": "architecture.md",
}


def _links_to_pages(app, docname, source):
    """Have links to files outside docs/ lead to the pages that include them."""
    depth = docname.count("/")
    for path, page in _PAGES.items():
        source[0] = source[0].replace(f"]({'../' * depth}{path}", f"]({'../' * depth}{page}")


def _included_links(app, relative_path, parent_docname, content):
    """Have links inside an included file of the repository's root lead to pages, and the others be plain text."""

    def link(match):
        text, target = match.groups()
        path, _, anchor = target.partition("#")
        if target.startswith(("http", "#")):
            return match[0]
        page = _PAGES.get(f"../{path}", path.removeprefix("docs/"))
        known = page in _PAGES.values() or (ROOT / "docs" / page).is_file()
        return f"[{text}]({page}{'#' + anchor if anchor else ''})" if known else text

    content[0] = re.sub(r"\[([^\]\n]+)\]\(([^)\s]+)\)", link, content[0])


def _label_cells(app, pagename, templatename, context, doctree):
    """Write the heading of each cell beside it, so that a phone can show a row of a wide table as lines."""
    if "<table" not in context.get("body", ""):
        return
    page = BeautifulSoup(context["body"], "html.parser")
    for table in page.select("table:not(.autosummary)"):
        heads = [head.get_text(" ", strip=True) for head in table.select("thead th")]
        kinds = {"wide": 2, "many": 5, "dozen": 11, "score": 20}  # by the number of columns
        table["class"] = [*table["class"], *(kind for kind, least in kinds.items() if len(heads) > least)]
        for row in table.select("tbody tr"):
            for head, cell in zip(heads, row.select("td, th"), strict=False):
                cell["data-label"] = head
    context["body"] = str(page)


def setup(app):
    """Connect the above."""
    app.connect("html-page-context", _label_cells)
    app.connect("source-read", _links_to_pages)
    app.connect("include-read", _included_links)
