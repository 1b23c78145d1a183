"""Models with odd values inside, saved and loaded again: they are refused, work, or raise one of our errors."""

import copy
import io
import random
import re
import resource
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankwise
from rankwise import (
    AdditiveRanker,
    AutoRanker,
    AverageRanker,
    KernelRankRLS,
    KernelRankSVM,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.exceptions import RankwiseError
from rankwise.preprocessing import TableEncoder
from rankwise.report import Report

CHANGES = 40  # of each model
SECONDS, BYTES = (
    30,
    4 << 30,
)  # for everything that one loaded model does, on a busy machine; beyond the test's own
ODD = [
    None,
    True,
    0,
    -1,
    1,
    2**31,
    2**53,
    10**20,
    0.5,
    1e308,
    np.nan,
    "",
    "nan",
    "rbf",
    [],
    {},
    [3],
    np.ones(2),
]
RNG = np.random.default_rng(0)
X, Y, QID = RNG.normal(size=(24, 3)), np.arange(24.0) % 4, np.arange(24) // 6
TABLE = pd.DataFrame(
    {
        "colour": RNG.choice(["red", "blue"], 24),
        "x": np.where(np.arange(24) % 5, X[:, 0], np.nan),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(24), unit="D"),
    }
)
MODELS = {
    "linear": (RankRLS(), X),
    "search": (RankRLSCV(), X),
    "margins": (RankSVMCV(), X),
    "kernel": (KernelRankRLS(), X),
    "basis": (KernelRankRLS("laplacian", basis=5), X),
    "polynomial": (KernelRankSVM("poly"), X),
    "additive": (AdditiveRanker(interactions=[(0, 1)]), X),
    "average": (AverageRanker([RankRLS(), make_pipeline(StandardScaler(), RankSVM())]), X),
    "encoder": (make_pipeline(TableEncoder(min_rows=2), RankRLS()), TABLE),
    "automatic": (AutoRanker(methods=["rls", "curves"], cv=2), TABLE),
}


def places(value, depth=0):
    """Yield everything in a model that can be changed: who holds it, under which name, and what it is."""
    if isinstance(value, list):
        held = dict(enumerate(value))
    elif isinstance(value, dict):
        held = value
    else:
        is_ours = type(value).__module__.partition(".")[0] in {"rankwise", "sklearn"}
        held = vars(value) if is_ours and hasattr(value, "__dict__") else {}
    for name, own in list(held.items()):
        yield value, name, own
        if depth < 6:
            yield from places(own, depth + 1)


def tampered(model, rng):
    model = copy.deepcopy(model)
    holder, name, value = rng.choice(list(places(model)))
    odd = rng.choice(ODD)
    if isinstance(value, np.ndarray) and value.ndim and rng.random() < 0.6:
        odd = rng.choice(
            [value[:-1], np.concatenate([value, value]), value * np.nan if value.dtype.kind == "f" else odd]
        )
    if isinstance(holder, dict | list):
        holder[name] = odd
    else:
        object.__setattr__(holder, name, odd)
    return model


@contextmanager
def limits():
    """Hold the process to a time and to memory beyond the memory that it has."""
    used = int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text()).group(1)) << 10
    before, start = resource.getrlimit(resource.RLIMIT_AS), time.process_time()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    assert time.process_time() - start < SECONDS


def uses(rows):
    yield lambda model: model.predict(rows)
    for target in ("python", "sqlite", "json", "onnx"):
        yield lambda model, target=target: rankwise.export(model, target)
    yield lambda model: Report(model, rows, Y, QID).html()
    yield lambda model: rankwise.save(model, io.BytesIO())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODELS)
def test_a_tampered_model_works_or_says_why_not(name):
    kind, rows = MODELS[name]
    model = kind.fit(rows, Y, **({} if name == "encoder" else {"qid": QID}))
    n_loaded = 0
    for seed in range(CHANGES):
        file = io.BytesIO()
        try:
            rankwise.save(tampered(model, random.Random(f"{name} {seed}")), file)
        except Exception:  # noqa: BLE001 - nothing that save accepts
            continue
        with limits(), np.errstate(all="ignore"):
            try:
                loaded = rankwise.load(io.BytesIO(file.getvalue()))
            except RankwiseError:
                continue
            n_loaded += 1
            for use in uses(rows):
                with suppress(RankwiseError):
                    use(loaded)
    assert n_loaded > CHANGES / 10
