"""Optional packages stay unimported until something needs them."""

import subprocess
import sys

OPTIONAL = ("matplotlib", "pandas", "dask", "polars", "pyarrow")
# scikit-learn imports pandas by itself, where it is installed: only what comes on top is ours.
CODE = """
import sys
import sklearn.model_selection, sklearn.utils.validation
before = set(sys.modules)
import rankwise
print(*[name for name in PACKAGES if f"rankwise.{name}" in sys.modules])
import rankwise.displays, rankwise.report, rankwise.cli
print(*{name.partition(".")[0] for name in set(sys.modules) - before} & set(OPTIONAL))
assert all(getattr(rankwise, name).__name__ == f"rankwise.{name}" for name in PACKAGES)
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
    """Nor a package of ours before it is asked for."""
    assert run(CODE.replace("PACKAGES", repr(PACKAGES)).replace("OPTIONAL", repr(OPTIONAL))) == ""


def test_importing_needs_no_optional_package():
    assert run(f"import sys; sys.modules.update(dict.fromkeys({OPTIONAL})); import rankwise.displays") == ""
