"""Optional packages stay unimported until something needs them."""

import subprocess
import sys

import pytest

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
    names = ("data", "displays", "distributed", "exceptions", "metrics", "model_selection", "preprocessing")
    for name in names:
        code = f"import rankwise, sys; print('rankwise.{name}' in sys.modules, rankwise.{name}.__name__)"
        assert run(code) == f"False rankwise.{name}"
