"""What the pages show must run as it stands, in its order."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


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
