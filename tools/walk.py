"""Count what a reader walks through: the functions, files and packages behind one call.

    python tools/walk.py            # the three paths that ARCHITECTURE.md reports
    python tools/walk.py --list     # and every function, in the order in which it is first entered

A *package* is a folder or a module directly below `rankwise`. The package changes wherever a function that is entered
for the first time is in another package than the one entered for the first time before it: the order in which somebody
reads who follows the call down, skipping what was read already. What runs because a module is imported (class bodies,
decorators, tables) is no part of the walk: nobody who follows the call reads it there.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import scipy.sparse

import rankwise
from rankwise import KernelRankRLSCV, RankRLSCV
from rankwise.cli import main

_SOURCE = Path(rankwise.__file__).parent
# Comprehensions and lambdas are part of the function around them.
_PART_OF_ANOTHER = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>"}


class Walk:
    """The functions of the library in the order in which a call enters them first."""

    def __init__(self) -> None:
        self.functions: dict[CodeType, Path] = {}
        self._importing: Counter[int] = Counter()  # by thread, how many modules are being imported

    def of(self, call: Callable[[], Any]) -> Walk:
        """Follow a call."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            call()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return self

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if code.co_name == "<module>" and event in {"call", "return"}:
            self._importing[threading.get_ident()] += 1 if event == "call" else -1
        if event != "call" or code in self.functions or code.co_name in _PART_OF_ANOTHER:
            return
        # Bodies of modules and classes are not compiled as functions are.
        if not code.co_flags & CO_OPTIMIZED or self._importing[threading.get_ident()]:
            return
        path = Path(code.co_filename)
        if path.is_relative_to(_SOURCE):
            self.functions[code] = path.relative_to(_SOURCE)

    @property
    def packages(self) -> list[str]:
        """The package of each function, in order."""
        return [path.parts[0].removesuffix(".py") for path in self.functions.values()]

    @property
    def room_changes(self) -> int:
        """How often the package changes along the way."""
        return sum(one != other for one, other in zip(self.packages, self.packages[1:], strict=False))


def paths() -> dict[str, Callable[[], Any]]:
    """Return the calls that are followed."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(300, 6)), np.repeat(np.arange(30), 10)
    y = np.digitize(X[:, 0] - X[:, 1] + rng.normal(size=300), [0, 1])
    pairs = [(i, j) for i, j in rng.integers(300, size=(900, 2)) if y[i] > y[j]]
    folder = Path(tempfile.mkdtemp())
    table, model = folder / "rows.txt", folder / "model.rw"
    rankwise.data.save_svmlight(X, y, table, qid=qid)

    def fit_command() -> None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            main(["fit", os.fspath(table), "-o", os.fspath(model)])

    return {
        "RankRLSCV().fit(sparse)": lambda: RankRLSCV().fit(scipy.sparse.csr_matrix(X), y, qid=qid),
        "rankwise fit": fit_command,
        "KernelRankRLSCV().fit_pairs": lambda: KernelRankRLSCV().fit_pairs(X, pairs),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--list", action="store_true", help="name every function")
    wants_list = parser.parse_args().list
    print(f"{'call':<28} {'functions':>9} {'files':>5} {'packages':>5} {'changes of package':>15}")
    for name, call in paths().items():
        walk = Walk().of(call)
        files = set(walk.functions.values())
        print(
            f"{name:<28} {len(walk.functions):>9} {len(files):>5} {len(set(walk.packages)):>5} {walk.room_changes:>15}"
        )
        if wants_list:
            for code, path in walk.functions.items():
                print(f"    {path}:{code.co_firstlineno} {code.co_qualname}")
