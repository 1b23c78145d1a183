"""What a service pays: scoring one query of 20 rows beside Ridge, and loading a model beside unpickling it.

Processor time, interleaved in one run; the medians of rounds, and the spread of the ratio between them.
"""

from __future__ import annotations

import io
import json
import pickle
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge

import rankwise

RESULTS = Path(__file__).parent / "results"
ROUNDS, CALLS = 15, 400
COLD = """
import resource, sys
{imports}
model = {load}
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime)
"""


def microseconds(call, n_calls=CALLS):
    start = time.thread_time()
    for _ in range(n_calls):
        call()
    return (time.thread_time() - start) / n_calls * 1e6


def beside(ours, theirs, rounds=ROUNDS):
    """Return the medians of both and the quartiles of their ratio."""
    pairs = [(ours(), theirs()) for _ in range(rounds)]
    ratios = sorted(own / other for own, other in pairs)
    return {
        "ours": statistics.median(own for own, _ in pairs),
        "theirs": statistics.median(other for _, other in pairs),
        "ratio": statistics.median(ratios),
        "quartiles": [ratios[rounds // 4], ratios[3 * rounds // 4]],
    }


def unpickled(path):
    with path.open("rb") as stream:
        return pickle.load(stream)


def cold(imports, load):
    code = COLD.format(imports=imports, load=load)
    return float(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )


def main():
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(2000, 45)), rng.integers(0, 3, 2000), np.arange(2000) // 20
    query = X[:20].copy()
    model, ridge = rankwise.RankRLS().fit(X, y, qid), Ridge().fit(X, y)
    found = {
        "predict, 20 rows of 45 columns, µs": beside(
            lambda: microseconds(lambda: model.predict(query)),
            lambda: microseconds(lambda: ridge.predict(query)),
        )
    }
    wide = rankwise.RankRLS().fit(rng.normal(size=(40, 200_000)), rng.integers(0, 3, 40))
    with tempfile.TemporaryDirectory() as folder:
        for name, one in (("45 columns", model), ("200,000 columns", wide)):
            content, pickled = io.BytesIO(), pickle.dumps(one)
            one.save(content)
            data = content.getvalue()
            found[f"load in a running process, {name}, µs"] = beside(
                lambda data=data: microseconds(lambda: rankwise.load(io.BytesIO(data)), 40),
                lambda pickled=pickled: microseconds(lambda: pickle.loads(pickled), 40),
            )
            saved, other = Path(folder, "model.rw"), Path(folder, "model.pickle")
            saved.write_bytes(data)
            other.write_bytes(pickled)
            found[f"load a file in a running process, {name}, µs"] = beside(
                lambda saved=saved: microseconds(lambda: rankwise.load(saved), 40),
                lambda other=other: microseconds(lambda: unpickled(other), 40),
            )
            found[f"load in a new process, {name}, s"] = beside(
                lambda saved=saved: cold("import rankwise", f"rankwise.load({str(saved)!r})"),
                lambda other=other: cold("import pickle", f"pickle.load(open({str(other)!r}, 'rb'))"),
                rounds=5,
            )
    for name, one in found.items():
        low, high = one["quartiles"]
        print(
            f"{name:50} {one['ours']:10.4g} {one['theirs']:10.4g}   ratio {one['ratio']:.3f} [{low:.3f}, {high:.3f}]"
        )
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "latency.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
