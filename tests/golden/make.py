"""Fit every case again and write the golden results; a test compares them.

    python tests/golden/make.py [GROUP ...]

Each group has a file with one line per case: its settings, and figures with the share of their largest entry by which
they may differ. Cases in a file stay as long as their settings exist, so that a removed setting removes its own lines
only; cases are added until every two settings meet in one. The results notice changes that nobody meant; oracles
show elsewhere which results are right. Write them again when a change is meant to alter models, and list the change in
the changelog under *Changed models*.
"""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import_module("golden.results").write(sys.argv[1:])
