"""Settings of every estimator, which of them go together, and what is recorded of a fit: through public names alone."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from golden.problems import N_COLUMNS, problem, splits, stored
from oracles import Pairs, label_pairs
from rankwise import (
    AdditiveRanker,
    AdditiveRankerCV,
    KernelRankRLS,
    KernelRankRLSCV,
    KernelRankSVM,
    RankRLS,
    RankRLSCV,
    RankSVM,
    RankSVMCV,
)

CLOSE = 1e-9  # of the largest entry
# Losses with margins are solved to a duality gap: it bounds the error of the objective, its root that of the solution.
SMOOTH = 1e-6  # gap 1e-14
ROUGH = 1e-3  # gap 1e-10: the hinge, and bundles

ALPHAS = [0.25, 1.0, 4.0, 16.0]
SMALL = [0.001, 0.01, 0.1]
SIGNS = [1, 0, -1, 1, 0, 1]
RESTRICTIONS = {
    "none": {},
    "prior": {"prior": [0.5, -0.25, 0.0, 1.0, 0.0, 0.125]},
    "column_penalty": {"column_penalty": [1.0, 2.0, 0.5, 1.0, 4.0, 0.25]},
    "free column": {"column_penalty": [1.0, 0.0, 1.0, 1.0, 1.0, 1.0]},
    "positive": {"positive": True},
    "signs": {"positive": SIGNS, "prior": [0.25, 0.0, -0.5, 0.0, 1.0, 0.0]},
}


@dataclass(frozen=True)
class Group:
    """Cases of one estimator.

    Attributes
    ----------
    factors : dict of lists
        Settings, every two of whose values meet in a case.
    allowed : callable
        Tells which cases the estimator takes.
    fit : callable
        Takes a case and a folder for files; returns the fitted model and the problem.
    """

    factors: dict
    allowed: Callable
    fit: Callable


# --- data ---------------------------------------------------------------------------------------------------

ROWS = {
    "data": ["queries", "ranking"],
    "labels": ["real", "grades"],
    "weights": ["none", "rows", "queries", "both"],
    "outputs": [1, 2],
}
PAIRS = {"magnitude": [False, True], "weight": [False, True]}
ONE_OUTPUT = {**ROWS, "outputs": [1]}
STORAGES = ["dense", "fortran", "float32", "csr", "operator", "store"]
FEW_STORAGES = ["dense", "float32", "csr", "store"]
SQUARES = {
    "ties": ["include", "exclude"],
    "cost": ["magnitude", "unit", "relative"],
    "query_weight": ["size", "pairs", "equal"],
}


def rows_allowed(*, data="queries", weights="none", ties="include", cost="magnitude", **_):
    return (data == "queries" or weights in {"none", "rows"}) and (cost != "relative" or ties == "exclude")


def fit_rows(model, case, folder, storage="dense"):
    """Fit labelled rows as the case describes them; validate as it says."""
    of = problem(case.get("labels", "real"), case.get("outputs", 1))
    in_queries, weights = case.get("data", "queries") == "queries", case.get("weights", "none")
    options = {}
    if weights in {"rows", "both"}:
        options["sample_weight"] = of.sample_weight
    if weights in {"queries", "both"}:
        options["query_importance"] = of.query_importance
    validated = case.get("validated")
    if validated == "eval_set":
        X, y, qid = of.eval_rows
        options["eval_set"] = (stored(X, storage, folder), y, qid)[: 3 if in_queries else 2]
    elif validated == "splits":
        model.set_params(cv=splits(of.fold if in_queries else of.row_fold))
    elif validated is not None:
        model.set_params(cv=validated)
    return model.fit(stored(of.X, storage, folder), of.y, qid=of.qid if in_queries else None, **options), of


def fit_pairs(model, case, folder, storage="dense"):
    """Fit listed pairs as the case describes them."""
    of = problem()
    options = {}
    validated = case.get("validated")
    if validated == "eval_set":
        options["eval_set"] = (stored(of.eval_rows[0], storage, folder), of.eval_pairs)
    elif validated == "splits":
        model.set_params(cv=splits(of.pair_fold))
    elif validated is not None:
        model.set_params(cv=validated)
    X = stored(of.X, storage, folder)
    magnitude = of.magnitude if case["magnitude"] else None
    return model.fit_pairs(X, of.pairs, magnitude, of.weight if case["weight"] else None, **options), of


# --- what is recorded ---------------------------------------------------------------------------------------


def summary(values):
    """Return small arrays as they are, and the norm and three fixed projections of larger ones."""
    flat = np.asarray(values, dtype=float).ravel()
    if flat.size <= 2 * N_COLUMNS:
        return flat.tolist()
    numbers = np.arange(1, flat.size + 1)
    return [float(np.linalg.norm(flat)), *(float(np.cos(k * numbers) @ flat) for k in (1, 2, 3))]


def losses(loss, gap):
    if loss == "squared":
        return gap**2
    if loss == "logistic":
        return np.logaddexp(0, gap - 1)
    return np.maximum(gap, 0) ** (2 if loss == "squared_hinge" else 1)


def objective(model, case, of, *, listed):
    """Return the loss of every pair, one by one, and the penalty; None where a penalty is in units of its own."""
    loss = getattr(model, "loss_", "squared")
    alpha = np.ravel(getattr(model, "alpha_", getattr(model, "alpha", np.nan)))
    scores = np.reshape(model.predict(of.X), (len(of.X), -1)).T
    y = np.reshape(of.y, (len(of.X), -1)).T
    total = 0.0
    for output in range(len(scores)):
        pairs = pairs_of(model, case, of, y[output], loss, listed=listed)
        f = scores[output]
        each = losses(loss, pairs.difference - (f[pairs.winner] - f[pairs.loser]))
        mean = 1.0 if loss == "squared" else pairs.weight.sum()
        part = pairs.weight @ each / mean
        penalty = norm(model, case, of, output)
        total += part + alpha[output % alpha.size] * penalty
    return float(total)


def pairs_of(model, case, of, y, loss, *, listed):
    unit = getattr(model, "cost", "magnitude") == "unit"
    if listed:
        weight = of.weight if case["weight"] else np.ones(len(of.pairs))
        difference = of.magnitude if case["magnitude"] and not unit else np.ones(len(of.pairs))
        return Pairs(of.pairs[:, 0], of.pairs[:, 1], weight, difference, len(of.X))
    weights = case.get("weights", "none")
    return label_pairs(
        y,
        of.qid if case.get("data", "queries") == "queries" else None,
        ties=model.ties if loss == "squared" else "exclude",
        cost=model.cost if loss == "squared" else "unit",
        query_weight=model.query_weight,
        sample_weight=of.sample_weight if weights in {"rows", "both"} else None,
        query_importance=of.query_importance if weights in {"queries", "both"} else None,
    )


def norm(model, case, of, output):
    if hasattr(model, "coef_"):
        coef = np.atleast_2d(model.coef_)[output]
        prior = 0.0 if model.prior is None else np.asarray(model.prior)
        factor = 1.0 if model.column_penalty is None else np.asarray(model.column_penalty)
        return float(np.sum(factor * (coef - prior) ** 2))
    basis = of.X if model.basis_ is None else of.X[model.basis_]
    options = {} if model.kernel == "linear" else {"gamma": model.gamma_}
    K = pairwise_kernels(basis, metric=model.kernel, **options)
    dual = np.atleast_2d(model.dual_coef_)[output]
    return float(dual @ K @ dual)


def record(model, case, of, *, listed):
    """Return the figures of a fitted model by name, and how close each must stay."""
    loss = getattr(model, "loss_", "squared")
    close = (
        CLOSE if loss == "squared" else ROUGH if loss == "hinge" or case.get("solver") == "bundle" else SMOOTH
    )
    scores = np.asarray(model.predict(of.new), dtype=float)
    found = {"predictions": (summary(scores), close)}
    if hasattr(model, "coef_"):
        found["coef"] = (summary(model.coef_), close)
    has_norm = hasattr(model, "coef_") or hasattr(model, "dual_coef_")
    stopped = getattr(model, "early_stopping", False) or case.get("method") in {"early-stopping", "hybrid"}
    if has_norm and not getattr(model, "penalty_power", 0) and not stopped:
        found["objective"] = ([objective(model, case, of, listed=listed)], CLOSE)
    for name in ("alpha_", "gamma_", "cv_errors_", "best_score_", "n_knots_", "interactions_", "n_pairs_"):
        if hasattr(model, name):
            found[name] = (np.ravel(getattr(model, name)).astype(float).tolist(), close)
    return found


# --- groups -------------------------------------------------------------------------------------------------


def group(factors, allowed, make, *, listed=False):
    """Return a group whose models `make` builds from a case."""

    def fit(case, folder):
        fitted, of = (fit_pairs if listed else fit_rows)(
            make(**case), case, folder, case.get("storage", "dense")
        )
        return record(fitted, case, of, listed=listed)

    return Group(factors, allowed, fit)


BASIS = [1, 5, 8, 14, 20, 23, 31, 36, 40, 47]
ITERATE = {"tol": 1e-12, "max_iter": 20_000}


def is_rough(case):
    """Tell whether a case is solved to a larger gap: the hinge, and bundles."""
    return case.get("loss") == "hinge" or case.get("solver") == "bundle"


def made(kind, **fixed):
    """Return what makes an estimator of the settings of a case that are its parameters, and of fixed ones."""
    names = kind().get_params()

    def make(restriction="none", **case):
        own = {name: value for name, value in case.items() if name in names}
        if own.get("solver") == "cg jacobi":
            own["solver"] = "cg"  # recorded with a preconditioner that could be chosen: the model is the same
        if "basis" in own:
            own["basis"] = BASIS if own["basis"] else None
        tol = 1e-10 if is_rough(case) else 1e-14
        return kind(**{"tol": tol, **fixed, **own, **RESTRICTIONS[restriction]})

    return make


def rank_rls_allowed(*, solver, restriction="none", penalty_power=0.0, storage="dense", **case):
    if restriction in {"positive", "signs"} and solver != "auto":
        return False
    if restriction != "none" and (solver in {"stochastic", "egdm-blocks"} or penalty_power):
        return False
    return rows_allowed(**case)


def rank_rls_cv_allowed(
    *, method, validated, averaging="folds", restriction="none", penalty_power=0.0, **case
):
    exact = validated in {"leave-query-out", "leave-pair-out"}
    if (exact or restriction != "none") and method != "tikhonov":
        return False
    if restriction != "none" and (exact or penalty_power):
        return False
    if averaging == "pooled" and (
        validated != "splits" or case.get("data") == "queries" or restriction != "none"
    ):
        return False
    return cv_allowed(validated=validated, **case)


def cv_allowed(*, validated, scoring="pairwise_error", data="queries", labels="real", **case):
    """Tell which data have such folds, and which labels such a metric."""
    if validated == "leave-query-out" and data != "queries":
        return False
    if validated == "leave-pair-out" and (
        data != "ranking"
        or case.get("ties") == "exclude"
        or case.get("cost") == "relative"
        or scoring != "pairwise_error"
    ):
        return False
    if scoring == "ndcg@3" and (labels != "grades" or data != "queries"):
        return False
    return rows_allowed(data=data, **case)


def rank_svm_allowed(*, loss, solver, restriction="none", **case):
    if solver == ("newton" if loss == "hinge" else "smoothing"):
        return False
    if restriction in {"free column", "positive", "signs"} and (loss == "hinge" or solver != "auto"):
        return False
    return rows_allowed(**case)


def kernel_rls_cv_allowed(*, kernel, gamma, solver, validated, averaging, **case):
    if (solver == "cg" and (validated.startswith("leave") or case["basis"])) or (
        kernel == "linear" and gamma != 0.2
    ):
        return False
    if averaging == "pooled" and (validated != "splits" or case["data"] == "queries" or solver == "cg"):
        return False
    return cv_allowed(validated=validated, **case)


def of_pairs(allowed):
    """Listed pairs are held out as those of one ranking."""
    return lambda **case: allowed(**case, data="ranking")


def loss_allowed(*, loss, magnitude, **_):
    return not (magnitude and loss == "logistic")


def additive_allowed(*, loss, penalty, interactions, monotone, categorical, **case):
    if monotone and (
        loss == "hinge" or penalty != "difference" or categorical or isinstance(interactions, list)
    ):
        return False
    return rows_allowed(**case)


RANK_RLS = made(RankRLS, **ITERATE)
RANK_RLS_CV = made(RankRLSCV, alphas=ALPHAS, tol=1e-12)
RANK_SVM = made(RankSVM)
RANK_SVM_CV = made(RankSVMCV, alphas=SMALL, loss="squared_hinge")
EARLY_STOPPING = made(RankRLS, early_stopping=True, tol=RankRLS().tol)
KERNEL_RLS = made(KernelRankRLS, gamma=0.2, alpha=2.0, **ITERATE)
KERNEL_RLS_CV = made(KernelRankRLSCV, alphas=ALPHAS, method="tikhonov", **ITERATE)
KERNEL_SVM = made(KernelRankSVM, gamma=0.2, alpha=0.05)
ADDITIVE = made(AdditiveRanker, alpha=0.02, surface_knots=4)
ADDITIVE_CV = made(AdditiveRankerCV, alphas=SMALL, surface_knots=4, adaptive=0, selective=0)

GROUPS = {
    "rank_rls": group(
        {
            "solver": [
                "auto",
                "direct",
                "eigen",
                "cg",
                "cg jacobi",
                "gdm",
                "egdm",
                "egdm-power",
                "egdm-blocks",
                "stochastic",
            ],
            "alpha": [0.5, 8.0],
            "storage": STORAGES,
            "restriction": list(RESTRICTIONS),
            "penalty_power": [0.0, 0.25],
            **ROWS,
            **SQUARES,
        },
        rank_rls_allowed,
        RANK_RLS,
    ),
    "rank_rls_pairs": group(
        {
            "solver": ["auto", "direct", "eigen", "cg"],
            "alpha": [0.5, 8.0],
            "storage": ["dense", "csr", "operator", "store"],
            "restriction": ["none", "prior", "free column", "signs"],
            "cost": ["magnitude", "unit"],
            **PAIRS,
        },
        rank_rls_allowed,
        RANK_RLS,
        listed=True,
    ),
    "rank_rls_cv": group(
        {
            "method": ["tikhonov", "hybrid", "early-stopping"],
            "validated": ["splits", "eval_set", "leave-query-out", "leave-pair-out"],
            "averaging": ["folds", "pooled"],
            "scoring": ["pairwise_error", "ndcg@3"],
            "restriction": ["none", "prior", "column_penalty", "positive"],
            "penalty_power": [0.0, 0.25],
            "storage": STORAGES,
            **ROWS,
            **SQUARES,
        },
        rank_rls_cv_allowed,
        RANK_RLS_CV,
    ),
    "rank_rls_cv_pairs": group(
        {
            "method": ["tikhonov", "hybrid", "early-stopping"],
            "validated": ["splits", "eval_set", "leave-pair-out"],
            "averaging": ["folds", "pooled"],
            "restriction": ["none", "prior", "positive"],
            "cost": ["magnitude", "unit"],
            "storage": ["dense", "csr", "store"],
            **PAIRS,
        },
        of_pairs(rank_rls_cv_allowed),
        RANK_RLS_CV,
        listed=True,
    ),
    "rank_svm": group(
        {
            "loss": ["hinge", "squared_hinge"],
            "solver": ["auto", "smoothing", "bundle", "newton"],
            "alpha": [0.005, 0.1],
            "query_weight": SQUARES["query_weight"],
            "storage": ["dense", "csr", "operator", "store"],
            "restriction": ["none", "prior", "column_penalty", "free column", "signs"],
            **ROWS,
        },
        rank_svm_allowed,
        RANK_SVM,
    ),
    "rank_svm_pairs": group(
        {
            "loss": ["hinge", "squared_hinge", "logistic"],
            "solver": ["auto", "smoothing", "bundle", "newton"],
            "alpha": [0.005, 0.1],
            "storage": ["dense", "csr", "operator", "store"],
            "restriction": ["none", "prior", "column_penalty", "free column", "signs"],
            **PAIRS,
        },
        lambda **case: loss_allowed(**case) and rank_svm_allowed(**case),
        RANK_SVM,
        listed=True,
    ),
    "rank_svm_cv": group(
        {
            "validated": ["splits", "eval_set"],
            "scoring": ["pairwise_error", "ndcg@3"],
            "query_weight": SQUARES["query_weight"],
            "restriction": ["none", "prior", "column_penalty", "positive"],
            "storage": FEW_STORAGES,
            **ROWS,
        },
        cv_allowed,
        RANK_SVM_CV,
    ),
    "rank_svm_cv_pairs": group(
        {
            "validated": ["splits", "eval_set"],
            "loss": ["squared_hinge", "logistic"],
            "restriction": ["none", "prior", "column_penalty"],
            "storage": ["dense", "csr", "store"],
            **PAIRS,
        },
        loss_allowed,
        RANK_SVM_CV,
        listed=True,
    ),
    "early_stopping": group(
        {
            "solver": ["cg", "gdm", "egdm"],
            "alpha": [0.0, 0.5],
            "scoring": ["pairwise_error", "ndcg@3"],
            "validated": ["eval_set"],
            "storage": ["dense", "csr", "store"],
            **ONE_OUTPUT,
        },
        cv_allowed,
        EARLY_STOPPING,
    ),
    "kernel_rls": group(
        {
            "kernel": ["linear", "rbf", "poly", "laplacian"],
            "solver": ["auto", "direct", "eigen", "cg"],
            "basis": [False, True],
            "storage": FEW_STORAGES,
            **ROWS,
            **SQUARES,
        },
        rows_allowed,
        KERNEL_RLS,
    ),
    "kernel_rls_pairs": group(
        {
            "kernel": ["linear", "rbf", "poly"],
            "solver": ["auto", "direct", "eigen", "cg"],
            "basis": [False, True],
            "cost": ["magnitude", "unit"],
            **PAIRS,
        },
        rows_allowed,
        KERNEL_RLS,
        listed=True,
    ),
    "kernel_rls_cv": group(
        {
            "kernel": ["linear", "rbf", "laplacian"],
            "gamma": [0.2, [0.1, 0.5]],
            "solver": ["eigen", "cg"],
            "validated": ["splits", "eval_set", "leave-query-out", "leave-pair-out"],
            "averaging": ["folds", "pooled"],
            "scoring": ["pairwise_error", "ndcg@3"],
            "basis": [False, True],
            "storage": FEW_STORAGES,
            **ROWS,
            **SQUARES,
        },
        kernel_rls_cv_allowed,
        KERNEL_RLS_CV,
    ),
    "kernel_rls_cv_pairs": group(
        {
            "kernel": ["linear", "rbf"],
            "gamma": [0.2],
            "solver": ["eigen", "cg"],
            "validated": ["splits", "eval_set", "leave-pair-out"],
            "averaging": ["folds", "pooled"],
            "basis": [False, True],
            **PAIRS,
        },
        of_pairs(kernel_rls_cv_allowed),
        KERNEL_RLS_CV,
        listed=True,
    ),
    "kernel_svm": group(
        {
            "kernel": ["linear", "rbf", "poly"],
            "loss": ["hinge", "squared_hinge"],
            "solver": ["auto", "bundle"],
            "query_weight": SQUARES["query_weight"],
            "basis": [False, True],
            "storage": FEW_STORAGES,
            **ROWS,
        },
        rows_allowed,
        KERNEL_SVM,
    ),
    "kernel_svm_pairs": group(
        {
            "kernel": ["linear", "rbf"],
            "loss": ["hinge", "squared_hinge", "logistic"],
            "solver": ["auto", "bundle"],
            "basis": [False, True],
            **PAIRS,
        },
        loss_allowed,
        KERNEL_SVM,
        listed=True,
    ),
    "additive": group(
        {
            "loss": ["squared_hinge", "squared", "hinge"],
            "penalty": ["difference", "second_difference", "ridge"],
            "n_knots": [4, 8],
            "interactions": [0, 1, [[0, 1], [2, 4]]],
            "monotone": [None, SIGNS],
            "categorical": [None, [3]],
            "query_weight": SQUARES["query_weight"],
            "storage": ["dense", "float32", "csr", "store"],
            **ONE_OUTPUT,
        },
        additive_allowed,
        ADDITIVE,
    ),
    "additive_pairs": group(
        {
            "loss": ["squared_hinge", "squared"],
            "penalty": ["difference", "ridge"],
            "n_knots": [4],
            "interactions": [0, [[1, 4]]],
            "monotone": [None, SIGNS],
            "categorical": [None],
            **PAIRS,
        },
        lambda *, penalty, monotone, **_: not monotone or penalty == "difference",
        ADDITIVE,
        listed=True,
    ),
    "additive_cv": group(
        {
            "validated": ["splits", "eval_set"],
            "loss": ["squared_hinge", "squared"],
            "n_knots": [4, [3, 6]],
            "interactions": [0, [[0, 1]]],
            **ONE_OUTPUT,
        },
        rows_allowed,
        ADDITIVE_CV,
    ),
}
