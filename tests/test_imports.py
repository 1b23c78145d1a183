"""Optional packages stay unimported until something needs them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
API = ROOT / "tests" / "public_api.txt"

OPTIONAL = ("matplotlib", "pandas", "dask", "polars", "pyarrow")
# scikit-learn imports pandas by itself, where it is installed: only what comes on top is ours.
CODE = """
import sys
import sklearn.model_selection, sklearn.utils.validation
before = set(sys.modules)
import {module}
added = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*added & set({optional}))
"""


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.mark.parametrize("module", ["rankwise", "rankwise.displays", "rankwise.report", "rankwise.cli"])
def test_importing_imports_no_optional_package(module):
    assert run(CODE.format(module=module, optional=OPTIONAL)) == ""


def test_importing_needs_no_optional_package():
    assert run(f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL})); import rankwise.displays") == ""


def test_packages_are_imported_when_they_are_asked_for():
    """The documentation uses names such as rankwise.metrics.ndcg."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    used = {
        name
        for page in pages
        for name in re.findall(r"\brankwise\.([a-z_]+)\.[A-Za-z]", page.read_text("utf-8"))
    }
    public = sorted(
        used & {line.split(".")[1] for line in API.read_text("utf-8").split() if line.count(".") > 1}
    )
    assert {"metrics", "report"} <= set(public)
    found = run(f"import rankwise; print(*[getattr(rankwise, name).__name__ for name in {public}])")
    assert found.split() == [f"rankwise.{name}" for name in public]
