"""Ctrl-C during a fit raises KeyboardInterrupt, and there is no model."""

import signal

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from rankwise import AdditiveRankerCV, AutoRanker, KernelRankRLSCV, RankRLS, RankRLSCV, RankSVM, RankSVMCV
from rankwise.design.additive import AdditiveDesign
from rankwise.design.dense import DenseDesign
from rankwise.runtime.progress import ProgressLine
from strategies import make_problem

MODELS = {
    "conjugate gradients": RankRLS(solver="cg", tol=1e-12),
    "early stopping": RankRLS(early_stopping=True),
    "surface and folds": RankRLSCV(cv=3, penalty_power=[0.0, 0.5]),
    "hinge": RankSVM(tol=1e-6),
    "alphas": RankSVMCV(cv=2),
    "kernel surface": KernelRankRLSCV(solver="cg"),
    "chosen curves": AdditiveRankerCV(cv=2, interactions=[0, 2]),
    "everything": AutoRanker(methods=["rls"]),
}


@pytest.fixture
def moments(monkeypatch):
    """Send the signal the n-th time that something is multiplied or shown; return the number that came."""
    state = {"left": 0, "seen": 0}

    def counting(original):
        def counted(*args, **kwargs):
            state["seen"] += 1
            state["left"] -= 1
            if state["left"] == 0:
                signal.raise_signal(signal.SIGINT)
            return original(*args, **kwargs)

        return counted

    monkeypatch.setattr(ProgressLine, "update", counting(ProgressLine.update))
    for design in (DenseDesign, AdditiveDesign):
        for name in ("dot", "tdot"):
            monkeypatch.setattr(design, name, counting(getattr(design, name)))
    return state


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_fit_raises_and_leaves_no_model(name, moments):
    data = make_problem(4, rows=150, features=8, queries=12)
    clone(MODELS[name]).fit(data.X, data.y, qid=data.qid)
    total = moments["seen"]
    assert total
    for moment in (1, (total + 1) // 2, total):
        model = clone(MODELS[name])
        moments["left"] = moment
        with pytest.raises(KeyboardInterrupt):
            model.fit(data.X, data.y, qid=data.qid)
        with pytest.raises(NotFittedError):
            model.predict(data.X)
