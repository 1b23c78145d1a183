"""Optional packages stay unimported until something needs them."""

import subprocess
import sys

OPTIONAL = ("matplotlib", "pandas", "dask", "polars", "pyarrow")
# scikit-learn imports pandas by itself, where it is installed: only what comes on top is ours.
CODE = f"""
import sys
import sklearn.model_selection, sklearn.utils.validation
before = set(sys.modules)
import rankwise, rankwise.displays, rankwise.report, rankwise.cli
print(*{{name.partition(".")[0] for name in set(sys.modules) - before}} & set({OPTIONAL}))
"""
PACKAGES = (
    "data",
    "datasets",
    "displays",
    "distributed",
    "exceptions",
    "metrics",
    "model_selection",
    "preprocessing",
)


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_importing_imports_no_optional_package():
    assert run(CODE) == ""


def test_importing_needs_no_optional_package():
    assert run(f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL})); import rankwise.displays") == ""


def test_packages_are_imported_when_they_are_asked_for():
    code = "import rankwise, sys; print(sum(f'rankwise.{name}' in sys.modules for name in NAMES), end=' '); "
    code += "print(*(getattr(rankwise, name).__name__ for name in NAMES))"
    found = run(code.replace("NAMES", repr(PACKAGES)))
    assert found == f"0 {' '.join(f'rankwise.{name}' for name in PACKAGES)}"
