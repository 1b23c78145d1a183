"""Read, compare and write the golden results."""

import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from all_pairs import all_pairs
from golden.cases import GROUPS as ESTIMATORS
from golden.others import OTHERS

FOLDER = Path(__file__).parent
GROUPS = {**ESTIMATORS, **OTHERS}


def read(group):
    """Return the lines of a group: (settings, figures by name with their closeness)."""
    path = FOLDER / f"{group}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(group, case, folder):
    """Fit a case without any warning but one of a best alpha at the end of a short grid."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The best alpha is the (smallest|largest) of the grid")
        return GROUPS[group].fit(case, folder)


def differences(found, written):
    """Return a sentence for every figure that is not as it was."""
    lines = [f"{name} is {'new' if name in found else 'gone'}" for name in found.keys() ^ written.keys()]
    for name in found.keys() & written.keys():
        values, (before, close) = np.array(found[name][0]), written[name]
        if len(values) != len(before):
            lines.append(f"{name} has {len(values)} numbers, and had {len(before)}")
            continue
        largest = np.abs(before).max(initial=0.0) or 1.0
        apart = np.abs(values - before).max(initial=0.0) / largest
        if not apart <= close:
            lines.append(f"{name} differs by {apart:.1e} of its largest entry, more than {close:.0e}")
    return sorted(lines)


def write(groups):
    """Write the files of these groups, or of all; tell which results are not as they were."""
    for group in groups or GROUPS:
        before = read(group)
        cases = all_pairs(GROUPS[group].factors, GROUPS[group].allowed, [case for case, _ in before])
        with tempfile.TemporaryDirectory() as folder:
            lines = [(case, run(group, case, folder)) for case in cases]
        (FOLDER / f"{group}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        found = {json.dumps(case): figures for case, figures in lines}
        for case, figures in before:
            now = found.get(json.dumps(case))
            for line in ["the case is gone"] if now is None else differences(now, figures):
                sys.stdout.write(f"{group} {case}: {line}\n")
        sys.stdout.write(f"{group}: {len(lines)} cases\n")
