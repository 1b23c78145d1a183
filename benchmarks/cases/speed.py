"""Times beside the strongest peer that can be installed, and how they grow.

One thread against one thread; rows with two threads say so. Stronger peers that pip cannot install: LIBLINEAR's
ranking extension and SVM-rank, which have no wheels.
"""

from __future__ import annotations

import io
import pickle
import tempfile
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import scipy.linalg
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics import ndcg_score
from threadpoolctl import threadpool_limits

import letor_like
import rankwise
import rcv1like
from cases.published import markdown
from drawing import picture
from harness import Case, Figure, Results, in_turns, measured, run_alone, short
from rankwise import (
    AdditiveRanker,
    AdditiveRankerCV,
    AutoRanker,
    KernelRankRLSCV,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)
from rankwise.data import load_svmlight, save_svmlight
from rankwise.metrics import evaluate, get_metric, pairwise_error
from rankwise.model_selection import fit_ranker
from rankwise.preprocessing import QueryScaler

ALPHAS = 2.0 ** np.arange(-10, 11)
Calls = dict[str, Callable[[], object]]


@cache
def text(rows: int, labels: str = "binary", seed: int = 0) -> tuple:
    return rcv1like.make(rows, labels, seed=seed)[:2]


@cache
def dense(rows: int, columns: int, per_query: int) -> tuple:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    y = np.clip(np.round(X[:, 0] + rng.normal(size=rows)), 0, 4)
    return X, y, np.arange(rows) // per_query


def centred(X: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Subtract the mean of every query, whose rows are together."""
    start = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    sizes = np.diff(np.r_[start, codes.size])
    means = np.add.reduceat(X, start) / (sizes if X.ndim == 1 else sizes[:, None])
    return X - np.repeat(means, sizes, axis=0)


def sparse_text(quick: bool) -> Calls:
    X, y = text(2_000 if quick else 400_000)
    return {
        "RankRLS": lambda: RankRLS(solver="cg", n_threads=1).fit(X, y),
        "RankRLS, two threads": lambda: RankRLS(solver="cg", n_threads=2).fit(X, y),
        "Ridge": lambda: Ridge(solver="sparse_cg", tol=1e-5).fit(X, y),
    }


def dense_queries(quick: bool) -> Calls:
    X, y, qid = dense(5_000 if quick else 500_000, 46, 100)
    return {
        "RankRLS": lambda: RankRLS(n_threads=1).fit(X, y, qid),
        "RankRLS, two threads": lambda: RankRLS(n_threads=2).fit(X, y, qid),
        "Ridge after centering": lambda: Ridge(fit_intercept=False).fit(centred(X, qid), centred(y, qid)),
    }


def small_fit(quick: bool) -> Calls:
    X, y, qid = dense(1_000, 20, 10)
    times = range(3 if quick else 100)
    return {
        "RankRLS": lambda: [RankRLS(n_threads=1).fit(X, y, qid) for _ in times],
        "Ridge after centering": lambda: [
            Ridge(fit_intercept=False).fit(centred(X, qid), centred(y, qid)) for _ in times
        ],
        "RankRLSCV": lambda: [RankRLSCV(cv="leave-query-out", n_threads=1).fit(X, y, qid) for _ in times],
        "RidgeCV": lambda: [RidgeCV(ALPHAS).fit(X, y) for _ in times],
    }


def choosing_alpha(contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Choose among 21 alphas by 10,000 rows: times, products, and the error on those rows."""
    rows = 2_000 if quick else 100_000
    X, y = text(rows + rows // 10)
    train, valid = (X[:rows], y[:rows]), (X[rows:], y[rows:])

    def separate(**options):
        models = [RankRLS(a, solver="cg", n_threads=1, **options) for a in ALPHAS]
        for model in models:
            model.fit(*train, eval_set=valid if options else None)
        return models

    calls = {
        "RankRLSCV": lambda: [RankRLSCV(ALPHAS, n_threads=1).fit(*train, eval_set=valid)],
        "RankRLSCV to convergence": lambda: [
            RankRLSCV(ALPHAS, method="tikhonov", n_threads=1).fit(*train, eval_set=valid)
        ],
        "RankRLS, 21 early-stopped fits": lambda: separate(early_stopping=True),
        "RankRLS, 21 converged fits": separate,
        "Ridge, one fit": lambda: [Ridge(solver="sparse_cg", tol=1e-5).fit(*train)],
    }
    for name in contenders:
        with threadpool_limits(1), measured() as cost:
            models = calls[name]()
        yield Figure(name, "seconds", cost.processor_seconds, processor_seconds=cost.processor_seconds)
        error = min(pairwise_error(valid[1], model.predict(valid[0])) for model in models)
        yield Figure(name, "validation error", error, n=valid[1].size)
        if name != "Ridge, one fit":
            products = [getattr(model, "n_products_", None) or model.n_iter_ for model in models]
            yield Figure(name, "products", float(np.sum(products)))


def leave_query_out(quick: bool) -> Calls:
    X, y, qid = dense(7_000 if quick else 140_000, 136, 70)
    return {
        "RankRLSCV": lambda: RankRLSCV(cv="leave-query-out", n_threads=1).fit(X, y, qid),
        "Ridge after centering": lambda: Ridge(fit_intercept=False).fit(centred(X, qid), centred(y, qid)),
    }


def formula_33(K: np.ndarray, y: np.ndarray, qid: np.ndarray) -> np.ndarray:
    """The 2009 paper's leave-query-out: a general eigendecomposition of LK, then a system for each query and alpha."""
    queries = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    L = np.zeros_like(K)
    for rows in queries:
        L[np.ix_(rows, rows)] = np.eye(rows.size) - 1 / rows.size
    values, V = scipy.linalg.eig(L @ K)
    inverse, pull = np.linalg.inv(V), L @ y
    scores = np.empty((y.size, ALPHAS.size))
    for a, alpha in enumerate(ALPHAS):
        R = ((V / (values + alpha)) @ inverse).real
        whole = R @ pull
        for U in queries:
            rest = np.setdiff1d(np.arange(y.size), U)
            inside = np.linalg.solve(R[np.ix_(U, U)], R[np.ix_(U, rest)] @ pull[rest])
            own = whole[rest] - R[np.ix_(rest, U)] @ pull[U] - R[np.ix_(rest, U)] @ inside
            scores[U, a] = K[np.ix_(U, rest)] @ own
    return scores


def kernel_leave_query_out(quick: bool) -> Calls:
    X, y, qid = dense(200 if quick else 800, 10, 20)
    K = np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(axis=2))
    model = KernelRankRLSCV("precomputed", alphas=ALPHAS, cv="leave-query-out", n_threads=1)
    return {
        "KernelRankRLSCV": lambda: model.fit(K, y, qid),
        "NumPy, formula 33 of the 2009 paper": lambda: formula_33(K, y, qid),
    }


def squared_hinge(quick: bool) -> Calls:
    """scikit-survival has the strongest pairwise margin solver on PyPI; it needs dense rows."""
    rows = 100 if quick else 2_000
    X, y = text(rows, "real")
    alpha = 1e-5

    def peer():
        from sksurv.svm import FastSurvivalSVM  # noqa: PLC0415
        from sksurv.util import Surv  # noqa: PLC0415

        events = Surv.from_arrays(np.ones(rows, dtype=bool), y - y.min() + 1e-3)
        model = FastSurvivalSVM(alpha=1 / (alpha * rows * (rows - 1) / 2), fit_intercept=False)
        return model.fit(X.toarray().astype(float), events)

    return {
        "RankSVM": lambda: RankSVM(alpha, loss="squared_hinge", n_threads=1).fit(X, y),
        "FastSurvivalSVM": peer,
    }


def reading(quick: bool, folder: str) -> Calls:
    path = Path(folder, "letor.txt")
    if not path.exists():
        X, y, qid = dense(2_000 if quick else 500_000, 46, 100)
        save_svmlight(X.round(6), y, path, qid=qid)

    def xgboost():
        from xgboost import DMatrix  # noqa: PLC0415

        return DMatrix(f"{path}?format=libsvm", nthread=1, silent=True)

    def fastrank():
        from fastrank import CDataset  # noqa: PLC0415

        return CDataset.open_ranksvm(str(path))

    return {
        "load_svmlight": lambda: load_svmlight(path, n_threads=1),
        "load_svmlight, two threads": lambda: load_svmlight(path, n_threads=2),
        "scikit-learn": lambda: load_svmlight_file(str(path), query_id=True),
        "XGBoost": xgboost,
        "fastrank": fastrank,
    }


def writing(quick: bool, folder: str) -> Calls:
    X, y, qid = dense(1_000 if quick else 100_000, 46, 100)
    X = X.round(6)
    path = str(Path(folder, "written.txt"))
    return {
        "save_svmlight": lambda: save_svmlight(X, y, path, qid=qid, n_threads=1),
        "scikit-learn": lambda: dump_svmlight_file(X, y, path, query_id=qid, zero_based=False),
    }


def metrics(quick: bool) -> Calls:
    """NDCG@10 alone, which all of them have; making the containers of ranx is not counted."""
    rows, queries = (5_000, 50) if quick else (1_000_000, 10_000)
    rng = np.random.default_rng(0)
    qid = np.sort(rng.integers(0, queries, rows))
    y = rng.choice(5, size=rows, p=[0.55, 0.2, 0.13, 0.08, 0.04])
    scores = y + 2.0 * rng.normal(size=rows)
    cuts = np.searchsorted(qid, np.arange(queries + 1))
    slices = [slice(a, b) for a, b in pairwise(cuts.tolist()) if b - a > 1]
    wanted = [get_metric("ndcg@10", empty="zero")]

    @cache
    def containers():
        import ranx  # noqa: PLC0415

        names = [f"d{i}" for i in range(max(s.stop - s.start for s in slices))]
        both = [
            {str(at): dict(zip(names, values[s].tolist(), strict=False)) for at, s in enumerate(slices)}
            for values in (y, scores)
        ]
        return ranx.Qrels(both[0]), ranx.Run(both[1])

    def ranx_ndcg():
        import ranx  # noqa: PLC0415

        return ranx.evaluate(*containers(), "ndcg_burges@10", threads=1)

    gains = 2.0**y - 1
    return {
        "evaluate": lambda: evaluate(y, scores, qid, metrics=wanted),
        "ranx": ranx_ndcg,
        "scikit-learn": lambda: [ndcg_score(gains[None, s], scores[None, s], k=10) for s in slices],
    }


def one_query(quick: bool) -> Calls:
    X, y, qid = dense(2_000, 45, 20)
    model, peer, rows = RankRLS().fit(X, y, qid), Ridge().fit(X, y), X[:20].copy()
    times = range(10 if quick else 1_000)
    return {
        "RankRLS": lambda: [model.predict(rows) for _ in times],
        "Ridge": lambda: [peer.predict(rows) for _ in times],
    }


def loading(quick: bool) -> Calls:
    """A model file is checked byte by byte before it is believed; a pickle is not."""
    X, y, qid = dense(2_000, 45, 20)
    model = RankRLS().fit(X, y, qid)
    content = io.BytesIO()
    model.save(content)
    saved, pickled = content.getvalue(), pickle.dumps(model)
    times = range(10 if quick else 1_000)
    return {
        "rankwise.load": lambda: [rankwise.load(io.BytesIO(saved)) for _ in times],
        "pickle of the same model": lambda: [pickle.loads(pickled) for _ in times],
    }


def scaling(quick: bool) -> Calls:
    X, _, qid = dense(2_000 if quick else 140_000, 136, 100)

    def by_groups():
        import pandas as pd  # noqa: PLC0415

        groups = pd.DataFrame(X).groupby(qid, sort=False)
        low, high = groups.transform("min"), groups.transform("max")
        return ((X - low) / (high - low).where(high > low, 1.0)).to_numpy()

    return {
        "QueryScaler": lambda: QueryScaler("minmax").fit_transform(X, qid=qid),
        "pandas groupby": by_groups,
    }


def starting(quick: bool) -> Calls:
    return {
        "from rankwise import RankRLS": lambda: run_alone("from rankwise import RankRLS; print(1)"),
        "scikit-learn, import sklearn.linear_model": lambda: run_alone(
            "import sklearn.linear_model; print(1)"
        ),
    }


def search_results(rows: int, seed: int) -> list[tuple]:
    """Return so many generated rows to train on, and a quarter as many to test on."""
    X, y, qid = letor_like.make(rows * 5 // 4, seed=seed)
    cut = np.searchsorted(qid, qid[rows])
    return [(X[s], y[s], qid[s]) for s in (slice(cut), slice(cut, None))]


def curves(contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Curves and surfaces beside boosted trees on 60,000 generated search results; settings found on other seeds."""
    train, test = search_results(2_000 if quick else 60_000, seed=201)
    trees = 20 if quick else 400

    def boosted(kind, **options):
        import lightgbm  # noqa: PLC0415

        model = getattr(lightgbm, kind)(n_estimators=trees, n_jobs=1, verbose=-1, **options)
        return fit_ranker(model, *train) if kind == "LGBMRanker" else model.fit(*train[:2])

    fits = {
        "AdditiveRanker": lambda: AdditiveRanker(1e-3, interactions=80, tol=1e-2, n_threads=1).fit(*train),
        "RankRLSCV": lambda: RankRLSCV(n_threads=1).fit(*train),
        "LightGBM, rank": lambda: boosted("LGBMRanker", num_leaves=15, learning_rate=0.05),
        "LightGBM, regression": lambda: boosted("LGBMRegressor", num_leaves=31, learning_rate=0.05),
    }
    for name in contenders:
        with threadpool_limits(1), measured() as cost:
            model = fits[name]()
        spent = {"processor_seconds": cost.processor_seconds, "peak_memory": cost.memory}
        for metric in ("pairwise_error", "ndcg@10"):
            units = get_metric(metric).prepare(*test[1:]).per_query(model.predict(test[0])).values
            units = units[np.isfinite(units)]
            yield Figure(name, metric, float(units.mean()), n=units.size, **spent)
        yield Figure(name, "seconds", cost.processor_seconds, **spent)


ABLATION = {
    "linear (2 knots)": {"n_knots": 2, "interactions": 0},
    "curves of 8 knots": {"interactions": 0},
    "curves of 32 knots": {"n_knots": 32, "interactions": 0},
    "+ 20 surfaces": {"interactions": 20},
    "+ 80 surfaces: the recipe": {},
    "+ 160 surfaces": {"interactions": 160},
    "the recipe with the squared loss": {"loss": "squared", "tol": 1e-3},
    "with the hinge": {"loss": "hinge"},
    "with a ridge on values": {"penalty": "ridge"},
    "with second differences": {"penalty": "second_difference"},
    "alpha ten times smaller": {"alpha": 1e-4},
    "alpha ten times larger": {"alpha": 1e-2},
    "12 knots": {"n_knots": 12},
}


def ablation(contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """The worth of each part of the recipe, on generated search results of another seed."""
    train, test = search_results(1_000 if quick else 60_000, seed=105)
    for name in contenders:
        options = {"alpha": 1e-3, "interactions": 80, "tol": 1e-2, **ABLATION[name]}
        with threadpool_limits(1), measured() as cost:
            model = AdditiveRanker(n_threads=1, **options).fit(*train)
        for metric in ("pairwise_error", "ndcg@10"):
            value = float(get_metric(metric)(test[1], model.predict(test[0]), test[2]))
            yield Figure(name, metric, value, n=test[1].size, processor_seconds=cost.processor_seconds)


CONSTRAINTS = {
    "any sign": {},
    "positive": {"positive": True},
    "three free columns": {"column_penalty": np.r_[np.zeros(3), np.ones(47)]},
    "both": {"positive": True, "column_penalty": np.r_[np.zeros(3), np.ones(47)]},
}


def constrained(contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Processor milliseconds of fits with signs and free columns, the fastest of seven."""
    X, y, qid = dense(1_000 if quick else 20_000, 50, 20)
    makers = {
        "RankRLS": RankRLS,
        "RankSVM squared hinge": partial(RankSVM, loss="squared_hinge"),
    }
    for name in contenders:
        for label, options in CONSTRAINTS.items():
            taken = []
            for _ in range(1 if quick else 7):
                with threadpool_limits(1), measured() as cost:
                    makers[name](n_threads=1, **options).fit(X, y, qid)
                taken.append(1e3 * cost.processor_seconds)
            yield Figure(name, f"ms, {label}", min(taken), n=len(taken))


def growth(what: str, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Seconds of one fit against four sizes, and the exponent of the line through their logarithms."""
    sizes = np.array(GROWTH[what]) // (100 if quick else 1)
    for name in contenders:
        taken = []
        for size in sizes.tolist():
            call = _growing(what, name, size)
            call()
            costs = []
            for _ in range(1 if quick else 3):
                with threadpool_limits(1), measured() as cost:
                    call()
                costs.append(cost.processor_seconds)
            taken.append(max(min(costs), 1e-6))
            yield Figure(name, f"seconds at {size}", taken[-1], n=len(costs))
        slope = np.polyfit(np.log(sizes), np.log(taken), 1)[0]
        yield Figure(name, "exponent", float(slope), n=len(taken), values=taken)


GROWTH = {
    "rows of text": (50_000, 100_000, 200_000, 400_000),
    "dense columns": (100, 200, 400, 800),
    "preference pairs": (100_000, 300_000, 1_000_000, 3_000_000),
}


def _growing(what: str, name: str, size: int) -> Callable[[], object]:
    if what == "rows of text":
        X, y = text(size, "real" if name == "RankSVM" else "binary")
        model = (
            RankSVM(1e-5, n_threads=1)
            if name == "RankSVM"
            else RankRLS(solver="cg", max_iter=20, n_threads=1)
        )
        return lambda: model.fit(X, y)
    if what == "dense columns":
        X, y, qid = dense(20_000, max(size, 1), 100)
        return lambda: RankRLS(solver="direct", n_threads=1).fit(X, y, qid)
    X, y = text(100_000 if size > 10_000 else 1_000)
    rng = np.random.default_rng(0)
    pairs = np.column_stack([rng.choice(np.flatnonzero(y == c), size) for c in (1, 0)])
    return lambda: RankRLS(solver="cg", max_iter=20, n_threads=1).fit_pairs(X, pairs)


SIZES = (1_000, 10_000, 100_000)
CHOOSERS: dict[str, Callable[[], object]] = {
    "RankRLSCV()": lambda: RankRLSCV(n_threads=1),
    "RankSVMCV()": lambda: RankSVMCV(n_threads=1),
    "AdditiveRankerCV()": lambda: AdditiveRankerCV(n_threads=1),
    "KernelRankRLSCV(basis=500)": lambda: KernelRankRLSCV(basis=500),
    "AutoRanker()": AutoRanker,
    'AutoRanker(prefer="accuracy")': lambda: AutoRanker(prefer="accuracy"),
}


def how_long(contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Seconds to choose and fit on generated search results of 46 columns."""
    for name in contenders:
        for rows in SIZES[: 1 if quick else None]:
            X, y, qid = letor_like.make(600 if quick else rows, seed=7)
            with threadpool_limits(1), measured() as cost:
                CHOOSERS[name]().fit(X, y, qid=qid)
            spent = {"processor_seconds": cost.processor_seconds, "peak_memory": cost.memory}
            yield Figure(name, f"seconds at {rows}", cost.processor_seconds, **spent)


def how_long_table(results: Results) -> str:
    """Return a row per estimator, a column per number of rows."""
    rows = []
    for name in CHOOSERS:
        key = ("how long", "search results of 46 columns", name)
        found = [results.find(*key, f"seconds at {size}") for size in SIZES]
        rows.append([f"`{name}`", *(f"{short(line['value'])} s" if line else "not run" for line in found)])
    return markdown(["", *(f"{rows:,} rows" for rows in SIZES)], rows)


def turns(prepare: Callable, rounds: int, contenders: tuple[str, ...], quick: bool) -> Iterator[Figure]:
    """Time contenders in turns; `prepare` may take a folder to write in."""
    with tempfile.TemporaryDirectory() as folder:
        calls = prepare(quick, folder) if prepare in {reading, writing} else prepare(quick)
        threads = {name: 2 for name in contenders if "two threads" in name}
        own = {name: calls[name] for name in contenders}
        yield from in_turns(own, 1 if quick else rounds, threads=threads)


# name: (prepare, rounds, minutes, contenders, goals)
TURNS = {
    "sparse text, 400,000 × 47,152": (
        sparse_text, 5, 1, ("RankRLS", "RankRLS, two threads", "Ridge"),
        {("RankRLS", "times as fast as Ridge"): (">=", 1.5),
         ("RankRLS, two threads", "times as fast as Ridge"): (">=", 2.5)},
    ),
    "dense, 500,000 × 46 in 5,000 queries": (
        dense_queries, 5, 0.5, ("RankRLS", "RankRLS, two threads", "Ridge after centering"),
        {("RankRLS", "times as fast as Ridge after centering"): (">=", 1.0)},
    ),
    "100 small fits, 1,000 × 20": (
        small_fit, 5, 0.2, ("RankRLS", "RankRLSCV", "Ridge after centering", "RidgeCV"),
        {("RankRLS", "times as fast as Ridge after centering"): (">=", 1.0),
         ("RankRLSCV", "times as fast as RidgeCV"): (">=", 0.5)},
    ),
    "exact leave-query-out, 140,000 × 136, beside one training": (
        leave_query_out, 3, 0.3, ("RankRLSCV", "Ridge after centering"), {},
    ),
    "exact leave-query-out, kernel of 800 rows": (
        kernel_leave_query_out, 3, 0.2, ("KernelRankRLSCV", "NumPy, formula 33 of the 2009 paper"),
        {("KernelRankRLSCV", "times as fast as NumPy, formula 33 of the 2009 paper"): (">=", 5.0)},
    ),
    "squared hinge, 2,000 documents": (squared_hinge, 2, 0.5, ("RankSVM", "FastSurvivalSVM"), {}),
    "reading LETOR text, 500,000 × 46": (
        reading, 3, 2,
        ("load_svmlight", "load_svmlight, two threads", "scikit-learn", "XGBoost", "fastrank"),
        {("load_svmlight", "times as fast as XGBoost"): (">=", 2.0)},
    ),
    "writing LETOR text, 100,000 × 46": (writing, 3, 0.3, ("save_svmlight", "scikit-learn"), {}),
    "NDCG@10, 1,000,000 rows": (
        metrics, 3, 1, ("evaluate", "ranx", "scikit-learn"), {("evaluate", "times as fast as ranx"): (">=", 5.0)},
    ),
    "1,000 times scoring a query of 20 rows": (
        one_query, 5, 0.1, ("RankRLS", "Ridge"), {("RankRLS", "times as fast as Ridge"): (">=", 5.0)},
    ),
    "1,000 times loading a linear model": (loading, 5, 0.1, ("rankwise.load", "pickle of the same model"), {}),
    "scaling inside queries, 140,000 × 136": (scaling, 3, 0.2, ("QueryScaler", "pandas groupby"), {}),
    "starting a process": (
        starting, 5, 0.2, ("from rankwise import RankRLS", "scikit-learn, import sklearn.linear_model"),
        {("from rankwise import RankRLS", "times as fast as scikit-learn, import sklearn.linear_model"):
         (">=", 0.8)},
    ),
}  # fmt: skip
CHOOSING = (
    "RankRLSCV",
    "RankRLS, 21 early-stopped fits",
    "RankRLSCV to convergence",
    "RankRLS, 21 converged fits",
    "Ridge, one fit",
)
SIGNS = ("RankRLS", "RankSVM squared hinge")
CURVES = ("AdditiveRanker", "RankRLSCV", "LightGBM, rank", "LightGBM, regression")
CASES = [
    Case(
        "speed", name, contenders, partial(turns, prepare, rounds), minutes=minutes, goals=goals, in_turns=True,
        smoke=prepare is sparse_text,
    )
    for name, (prepare, rounds, minutes, contenders, goals) in TURNS.items()
] + [
    Case("choosing", "21 alphas, 100,000 documents", CHOOSING, choosing_alpha, minutes=1),
    Case("curves", "parts of the recipe", tuple(ABLATION), ablation, minutes=0.5),
    Case("signs", "20,000 × 50 in 1,000 queries", SIGNS, constrained, minutes=0.2),
    Case("curves", "60,000 search results", CURVES, curves, minutes=0.5),
    Case("how long", "search results of 46 columns", tuple(CHOOSERS), how_long, minutes=1.5),
    *(
        Case("growth", what, ("RankRLS", *(("RankSVM",) if "text" in what else ())), partial(growth, what), minutes=1)
        for what in GROWTH
    ),
]  # fmt: skip


def speed_table(results: Results, *, with_goals: bool = False) -> str:
    """Return a row per case and peer: seconds of both, and the ratio with its quartiles beside the goal.

    The first page shows the rows with goals, `with_goals`.
    """
    rows = []
    for case in (case for case in CASES if case.claim == "speed"):
        for name in case.contenders:
            threads = 2 if "two threads" in name else 1
            for peer in case.contenders:
                found = results.find("speed", case.name, name, f"times as fast as {peer}", threads)
                unlike = "RidgeCV" in case.contenders and name.endswith("CV") != peer.endswith("CV")
                if found is None or unlike:
                    continue
                own = results.find("speed", case.name, name, "seconds", threads)
                other = results.find("speed", case.name, peer, "seconds")
                times = "{value:.2f} ({low:.2f}–{high:.2f})".format(**found)
                both = f"{own['value']:.3g}", f"{peer} {other['version']}", f"{other['value']:.3g}"
                goal = case.goals.get((name, found["metric"]))
                if goal is None and with_goals:
                    continue
                rows.append([case.name, name, *both, times, f"{goal[1]:g}" if goal else ""])
        wanted = case.goals or {(case.contenders[0], ""): None}
        for (name, metric), goal in wanted.items():
            threads = 2 if "two threads" in name else 1
            if not results.find("speed", case.name, name, metric or "seconds", threads):
                peer = metric.removeprefix("times as fast as ")
                rows.append([case.name, name, "not run", peer, "", "", f"{goal[1]:g}" if goal else ""])
    return markdown(["", "ours", "seconds", "peer", "seconds", "times as fast (quartiles)", "goal"], rows)


def metrics_table(results: Results, of: tuple) -> str:
    """Return a row per contender, a column per metric."""
    claim, case, contenders, names = of
    rows = [
        [name, *(results.show("{value:.4g}", claim, case, name, one) for one in names)] for name in contenders
    ]
    for row in rows:
        if row[0] == "Ridge, one fit" and row[1] != "not run":
            row[-1] = ""
    return markdown(["", *names], rows)


def growth_picture(results: Results) -> str:
    """Draw seconds against sizes, and return the picture with its exponents."""
    lines = {}
    for what, sizes in GROWTH.items():
        for contender in ("RankRLS", "RankSVM"):
            found = results.find("growth", what, contender, "exponent")
            if found:
                lines[f"{contender}, {what} (exponent {found['value']:.2f})"] = (sizes, found["values"])
    return picture("growth", "Seconds of a fit against its size", lines, "size", "processor seconds")


# name: claim, case, contenders, metrics
BY_METRIC = {
    "choosing": (
        "choosing", "21 alphas, 100,000 documents", CHOOSING, ("seconds", "validation error", "products")
    ),
    "curves": ("curves", "60,000 search results", CURVES, ("pairwise_error", "ndcg@10", "seconds")),
    "ablation": ("curves", "parts of the recipe", tuple(ABLATION), ("pairwise_error", "ndcg@10")),
    "signs": (
        "signs", "20,000 × 50 in 1,000 queries", SIGNS, tuple(f"ms, {label}" for label in CONSTRAINTS)
    ),
}  # fmt: skip
TABLES: dict[str, Callable[[Results], str]] = {
    **{name: partial(metrics_table, of=of) for name, of in BY_METRIC.items()},
    "speed": speed_table,
    "speed-goals": lambda results: speed_table(results, with_goals=True),
    "growth": growth_picture,
    "how-long": how_long_table,
}
