"""Rankers of others and ours, each tuned by one rule.

A contender without a choice of its own is fitted with eight settings on three quarters of the training rows.
The setting, and of boosted trees the number of rounds, that is best by the metric of the comparison on the last
quarter is fitted again to all training rows. Estimators that choose for themselves (ours, and RidgeCV its
penalty) get the same rows and are used as they come. Regressors may learn ranks of labels in place of labels,
which counts among the eight settings. EBM compares its settings with one outer bag and is fitted again with eight
(its default is 14). CatBoost's ranker chooses between two of its losses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler
from sklearn.utils import _safe_indexing

from rankwise import AdditiveRankerCV, AutoRanker, KernelRankRLSCV, RankRLSCV
from rankwise.metrics import get_metric
from rankwise.model_selection import fit_ranker, predict_scores

ROUNDS = (25, 50, 100, 200, 350, 500)
GROUP = 1_000  # rows of one ranking that lambdarank gets as a query; it refuses more than 10,000
GRADES = 31  # as many as lambdarank takes by default
LARGEST_KERNEL = 4_000  # rows above which the kernel is reduced to a thousand of them


@dataclass
class Rows:
    """Training rows; `qid` is None for one ranking, and `groups` are rows that must stay together."""

    X: Any  # an array, or a data frame
    y: np.ndarray
    qid: np.ndarray | None
    groups: np.ndarray
    metric: str

    def part(self, rows: np.ndarray) -> Rows:
        qid = None if self.qid is None else self.qid[rows]
        return Rows(_safe_indexing(self.X, rows), self.y[rows], qid, self.groups[rows], self.metric)

    def score(self, scores: np.ndarray) -> float:
        return float(get_metric(self.metric)(self.y, scores, self.qid))


class Trees:
    """Boosted trees of one library: `fit` makes a model of `rounds` trees, `stages` predicts with fewer of them."""

    def __init__(self, grid: dict[str, tuple], fit: Callable, predict: Callable) -> None:
        self.grid, self.fit, self.predict = grid, fit, predict

    def tuned(self, rows: Rows, quick: bool) -> Callable[[np.ndarray], np.ndarray]:
        """Choose a setting and the rounds on one inner split, and fit again to all rows."""
        train, valid = inner_split(rows)
        stages = (5, 10) if quick else ROUNDS
        tried = []
        for setting in settings(self.grid)[: 2 if quick else None]:
            model = self.fit(train, setting, stages[-1])
            tried += [
                (valid.score(self.predict(model, valid.X, rounds)), -rounds, at, setting)
                for at, rounds in enumerate(stages)
            ]
        _, rounds, _, setting = max(tried, key=lambda one: one[:3])
        model = self.fit(rows, setting, -rounds)
        return Fitted(model, lambda X: self.predict(model, X, -rounds))


@dataclass
class Fitted:
    """A model and how to score rows with it."""

    model: Any
    predict: Callable[[np.ndarray], np.ndarray]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.predict(X), dtype=float)


def settings(grid: dict[str, tuple]) -> list[dict]:
    """Return every combination."""
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def inner_split(rows: Rows) -> tuple[Rows, Rows]:
    """Split off a quarter of the training rows, whole groups."""
    splitter = GroupShuffleSplit(1, test_size=0.25, random_state=0)
    train, valid = next(splitter.split(rows.X, groups=rows.groups))
    return rows.part(train), rows.part(valid)


def labels(rows: Rows, setting: dict) -> np.ndarray:
    """Return labels, or their ranks if the setting says so, centred inside queries."""
    y = rankdata(rows.y) / rows.y.size if setting.pop("by_rank", False) else rows.y
    if rows.qid is None:
        return y
    codes = np.unique(rows.qid, return_inverse=True)[1]
    return y - (np.bincount(codes, y) / np.bincount(codes))[codes]


def is_continuous(rows: Rows) -> bool:
    """Say whether labels have to become grades, with linear gains, for a boosted ranker."""
    return rows.qid is None or rows.y.max() >= GRADES


def ranked(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows for a boosted ranker: whole queries, or groups of one ranking; labels of any size as 31 grades."""
    edges = np.unique(np.quantile(rows.y, np.linspace(0, 1, GRADES)))
    grades = np.clip(np.searchsorted(edges, rows.y), 0, GRADES - 1) if is_continuous(rows) else rows.y
    if rows.qid is not None:
        order = np.argsort(rows.qid, kind="stable")
        codes = np.unique(rows.qid[order], return_inverse=True)[1]
        return _safe_indexing(rows.X, order), grades[order], codes
    order = np.random.default_rng(0).permutation(rows.y.size)
    return rows.X[order], grades[order], np.arange(rows.y.size) // GROUP


def lightgbm_regression() -> Trees:
    from lightgbm import LGBMRegressor  # noqa: PLC0415

    def fit(rows, setting, rounds):
        setting = dict(setting)
        y = labels(rows, setting)
        return LGBMRegressor(n_estimators=rounds, n_jobs=1, verbose=-1, **setting).fit(rows.X, y)

    grid = {"num_leaves": (8, 31), "learning_rate": (0.03, 0.1), "by_rank": (False, True)}
    return Trees(grid, fit, lambda model, X, rounds: model.predict(X, num_iteration=rounds))


def lightgbm_rank() -> Trees:
    from lightgbm import LGBMRanker  # noqa: PLC0415

    def fit(rows, setting, rounds):
        gain = list(range(GRADES + 1)) if is_continuous(rows) else None
        model = LGBMRanker(n_estimators=rounds, n_jobs=1, verbose=-1, label_gain=gain, **setting)
        return fit_ranker(model, *ranked(rows))

    grid = {"num_leaves": (8, 31), "learning_rate": (0.03, 0.1), "lambdarank_truncation_level": (30, 300)}
    return Trees(grid, fit, lambda model, X, rounds: model.predict(X, num_iteration=rounds))


def lightgbm_either() -> Trees:
    """Choose between regression and lambdarank too, or for one ranking between labels and their ranks."""
    regression, rank = lightgbm_regression(), lightgbm_rank()

    def fit(rows, setting, rounds):
        options = {"num_leaves": setting["num_leaves"], "learning_rate": setting["learning_rate"]}
        if rows.qid is not None and setting["ranks"]:
            return rank.fit(rows, options, rounds)
        return regression.fit(rows, {**options, "by_rank": setting["ranks"]}, rounds)

    grid = {"num_leaves": (8, 31), "learning_rate": (0.03, 0.1), "ranks": (False, True)}
    return Trees(grid, fit, regression.predict)


def xgboost_either() -> Trees:
    from xgboost import XGBRanker, XGBRegressor  # noqa: PLC0415

    def fit(rows, setting, rounds):
        setting = dict(setting)
        if rows.qid is None:
            y = labels(rows, setting)
            return XGBRegressor(n_estimators=rounds, n_jobs=1, **setting).fit(rows.X, y)
        setting["min_child_weight"] = 5 if setting.pop("by_rank") else 1
        model = XGBRanker(n_estimators=rounds, n_jobs=1, objective="rank:ndcg", **setting)
        return fit_ranker(model, *ranked(rows))

    grid = {"max_depth": (3, 6), "learning_rate": (0.03, 0.1), "by_rank": (False, True)}
    return Trees(grid, fit, lambda model, X, rounds: model.predict(X, iteration_range=(0, rounds)))


def catboost_regression() -> Trees:
    from catboost import CatBoostRegressor  # noqa: PLC0415

    def fit(rows, setting, rounds):
        setting = dict(setting)
        y = labels(rows, setting)
        fixed = {"thread_count": 1, "allow_writing_files": False, "verbose": False}
        return CatBoostRegressor(iterations=rounds, **fixed, **setting).fit(rows.X, y)

    grid = {"depth": (4, 6), "learning_rate": (0.03, 0.1), "by_rank": (False, True)}
    return Trees(grid, fit, lambda model, X, rounds: model.predict(X, ntree_end=rounds))


def catboost_rank() -> Trees:
    from catboost import CatBoostRanker  # noqa: PLC0415

    def fit(rows, setting, rounds):
        fixed = {"thread_count": 1, "allow_writing_files": False, "verbose": False}
        return fit_ranker(CatBoostRanker(iterations=rounds, **fixed, **setting), *ranked(rows))

    losses = "QueryRMSE", "YetiRank:mode=NDCG"
    grid = {"depth": (4, 6), "learning_rate": (0.03, 0.1), "loss_function": losses}
    return Trees(grid, fit, lambda model, X, rounds: model.predict(X, ntree_end=rounds))


def hist_gradient_boosting() -> Trees:
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415

    def fit(rows, setting, rounds):
        setting = dict(setting)
        y = labels(rows, setting)
        model = HistGradientBoostingRegressor(
            max_iter=rounds, early_stopping=False, random_state=0, **setting
        )
        return model.fit(rows.X, y)

    def predict(model, X, rounds):
        return next(scores for at, scores in enumerate(model.staged_predict(X), 1) if at == rounds)

    grid = {"max_leaf_nodes": (8, 31), "learning_rate": (0.03, 0.1), "by_rank": (False, True)}
    return Trees(grid, fit, predict)


def tuned_whole(grid: dict[str, tuple], fit: Callable, rows: Rows, quick: bool, **cheaper: int) -> Fitted:
    """Choose among settings of a model that has no rounds to choose from, and fit again to all rows.

    `cheaper` options hold while settings are compared, not in the final fit.
    """
    train, valid = inner_split(rows)
    found = settings(grid)[: 1 if quick else None]
    best = max(found, key=lambda setting: valid.score(fit(train, {**setting, **cheaper}).predict(valid.X)))
    model = fit(rows, best)
    return Fitted(model, model.predict)


def ebm(rows: Rows, quick: bool) -> Fitted:
    from interpret.glassbox import ExplainableBoostingRegressor  # noqa: PLC0415

    def fit(rows, setting):
        setting = dict(setting)
        y = labels(rows, setting)
        fixed = {"n_jobs": 1, "random_state": 0, "outer_bags": 1 if quick else 8}
        if quick:
            fixed["max_rounds"] = 20
        return ExplainableBoostingRegressor(**{**fixed, **setting}).fit(rows.X, y)

    grid = {"interactions": (10, 40), "max_leaves": (2, 3), "by_rank": (False, True)}
    return tuned_whole(grid, fit, rows, quick, outer_bags=1)


def ridge(rows: Rows, quick: bool) -> Fitted:
    from sklearn.linear_model import RidgeCV  # noqa: PLC0415

    def fit(rows, setting):
        setting = dict(setting)
        y = labels(rows, setting)
        quantiles = QuantileTransformer(
            n_quantiles=min(1000, rows.y.size), output_distribution="normal", random_state=0
        )
        scaler = quantiles if setting["by_quantile"] else StandardScaler()
        return make_pipeline(scaler, RidgeCV(2.0 ** np.arange(-10, 11))).fit(rows.X, y)

    return tuned_whole({"by_quantile": (False, True), "by_rank": (False, True)}, fit, rows, quick)


def _ours(make: Callable[[Rows, bool], Any]) -> Callable[[Rows, bool], Fitted]:
    def fit(rows: Rows, quick: bool) -> Fitted:
        model = fit_ranker(make(rows, quick), rows.X, rows.y, rows.qid)
        return Fitted(model, model.predict)

    return fit


def rank_rls(rows: Rows, quick: bool) -> Any:
    return make_pipeline(StandardScaler(), RankRLSCV(scoring=scoring(rows), n_threads=1))


def kernel_rank_rls(rows: Rows, quick: bool) -> Any:
    widths = [4.0**power / rows.X.shape[1] for power in (-2, -1, 0)]
    basis = 1_000 if rows.y.size > LARGEST_KERNEL else None
    model = KernelRankRLSCV("rbf", gamma=widths, basis=basis, scoring=scoring(rows), n_threads=1)
    return make_pipeline(StandardScaler(), model)


def additive(rows: Rows, quick: bool) -> Any:
    small = (
        {"n_knots": 4, "interactions": 0, "alphas": (0.1, 0.01), "adaptive": 0, "selective": 0}
        if quick
        else {}
    )
    return AdditiveRankerCV(scoring=scoring(rows), n_threads=1, **small)


def scoring(rows: Rows) -> str:
    return "pairwise_error" if rows.qid is None else rows.metric


def auto(rows: Rows, quick: bool, prefer: str = "readable") -> Fitted:
    small = {"methods": ("rls",)} if quick else {}
    model = AutoRanker(scoring(rows), prefer=prefer, n_threads=1, **small)
    model.fit(rows.X, rows.y, qid=rows.qid)
    # The model that was chosen may scale inside queries, so that it wants them again.
    return Fitted(model, lambda X, qid=None: predict_scores(model, X, qid))


# In the order of the tables; the function takes the training rows and whether to be quick.
CONTENDERS: dict[str, Callable[[Rows, bool], Fitted]] = {
    "RidgeCV": ridge,
    "HistGradientBoosting": lambda rows, quick: hist_gradient_boosting().tuned(rows, quick),
    "LightGBM, regression": lambda rows, quick: lightgbm_regression().tuned(rows, quick),
    "LightGBM, rank": lambda rows, quick: lightgbm_rank().tuned(rows, quick),
    "XGBoost": lambda rows, quick: xgboost_either().tuned(rows, quick),
    "CatBoost, regression": lambda rows, quick: catboost_regression().tuned(rows, quick),
    "CatBoost, rank": lambda rows, quick: catboost_rank().tuned(rows, quick),
    "EBM": ebm,
    "KernelRankRLSCV": _ours(kernel_rank_rls),
    "RankRLSCV": _ours(rank_rls),
    "AdditiveRankerCV": _ours(additive),
    "AutoRanker": auto,
    "AutoRanker, accuracy": partial(auto, prefer="accuracy"),
}
# Contenders of other tables than that of quality.
OTHERS = {"LightGBM": lambda rows, quick: lightgbm_either().tuned(rows, quick)}
