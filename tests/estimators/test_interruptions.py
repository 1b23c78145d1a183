"""Ctrl-C during a fit: it raises, and the best model so far is on the estimator; or that is the result, if wanted."""

import signal
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import rankwise
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
from rankwise.design.additive import AdditiveDesign
from rankwise.design.dense import DenseDesign
from rankwise.runtime.interrupts import interruptible, signals_later, tell_interrupted
from rankwise.runtime.progress import ProgressLine
from strategies import make_problem

MODELS = {
    "conjugate gradients": RankRLS(solver="cg", tol=1e-12),
    "momentum": RankRLS(solver="gdm", tol=1e-12),
    "early stopping": RankRLS(early_stopping=True),
    "surface": RankRLSCV(),
    "surface and folds": RankRLSCV(cv=3, scaling=[0.0, 0.5]),
    "hinge": RankSVM(tol=1e-9),
    "bundle": RankSVM(solver="bundle", tol=1e-9),
    "newton": RankSVM(loss="squared_hinge", tol=1e-12),
    "alphas": RankSVMCV(cv=2, tol=1e-9),
    "kernel": KernelRankSVM(tol=1e-9, basis=20),
    "kernel products": KernelRankRLS(solver="cg", tol=1e-12),
    "kernel surface": KernelRankRLSCV(solver="cg"),
    "signs of margins": RankSVM(positive=True, tol=1e-9),
    "alphas with signs": RankRLSCV(positive=True, cv=2),
    "curves": AdditiveRanker(interactions=2, tol=1e-9),
    "curves by cutting planes": AdditiveRanker(interactions=0, loss="hinge", tol=1e-9),
    "chosen curves": AdditiveRankerCV(cv=2, interactions=[0, 2]),
    "chosen squares of curves": AdditiveRankerCV(cv=2, interactions=0, loss="squared"),
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


def problem():
    return make_problem(4, rows=150, features=8, queries=12)


def fit(model):
    data = problem()
    return model.fit(data.X, data.y, qid=data.qid)


def quietly_fit(model):
    """Fit, to a tolerance that cannot be met."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit(model)


@pytest.mark.parametrize("name", MODELS)
def test_an_interrupted_fit_never_returns(name, moments):
    """At whatever moment: it raises; and where it says that there is a model, there is one."""
    quietly_fit(clone(MODELS[name]))
    total = moments["seen"]
    assert total
    data, kept = problem(), 0
    for moment in sorted({*np.linspace(1, total, 8).astype(int).tolist(), min(3, total)}):
        model = clone(MODELS[name])
        moments["left"] = moment
        with pytest.raises(KeyboardInterrupt) as raised:
            quietly_fit(model)
        if "on the estimator" in str(raised.value):
            kept += 1
            assert "Hint: " in str(raised.value)
            assert "keep_on_interrupt" in str(raised.value)
            assert np.isfinite(model.predict(data.X)).all()
        else:
            with pytest.raises(NotFittedError):
                model.predict(data.X)
    assert kept


@pytest.mark.parametrize(
    ("name", "moment"),
    [
        ("surface", 6),
        ("hinge", 6),
        ("conjugate gradients", 6),
        ("early stopping", 6),
        ("curves", 12),
        ("chosen curves", 200),
    ],
)
def test_a_fit_that_may_be_ended_returns_what_it_has(name, moment, moments):
    model, data = clone(MODELS[name]), problem()
    moments["left"] = moment
    with rankwise.keep_on_interrupt(), pytest.warns(ConvergenceWarning, match=r"[Ii]nterrupted.*Hint: "):
        assert fit(model) is model
    assert np.isfinite(model.predict(data.X)).all()


@pytest.mark.parametrize("name", ["hinge", "kernel"])
def test_the_other_outputs_are_not_begun_after_an_interruption(name, moments):
    """There would be a model of some outputs only, so that there is none."""
    data = problem()
    labels = np.column_stack([data.y, data.y[::-1]])
    clone(MODELS[name]).fit(data.X, labels, qid=data.qid)
    total, model = moments["seen"], clone(MODELS[name])
    moments["seen"], moments["left"] = 0, total // 4
    with pytest.raises(KeyboardInterrupt):
        model.fit(data.X, labels, qid=data.qid)
    assert moments["seen"] <= total // 4 + 1
    with pytest.raises(NotFittedError):
        model.predict(data.X)


def test_a_loop_over_fits_ends(moments):
    done = []

    def loop():
        done.extend(fit(RankRLSCV()) for _ in range(1000))

    moments["left"] = 20
    with pytest.raises(KeyboardInterrupt):
        loop()
    assert len(done) < 20


def test_outer_folds_end_with_the_fit_that_is_interrupted(moments):
    fit(RankRLSCV(nested=3))
    total = moments["seen"]
    moments["seen"], moments["left"] = 0, total // 2
    with pytest.raises(KeyboardInterrupt):
        fit(RankRLSCV(nested=3))
    assert moments["seen"] < 0.9 * total


class Fitted:
    """What tells of an interruption inside a fit of its own, or of another estimator."""

    def __init__(self, inner=None):
        self.inner, self.is_done = inner, False

    @interruptible
    def fit(self):
        if self.inner is not None:
            self.inner.fit()
        else:
            self.partial()
        self.is_done = True

    @interruptible
    def partial(self):
        tell_interrupted("Interrupted after 3 iterations", "fit again")


def test_it_is_raised_once_all_attributes_are_there_and_ends_what_is_around_it():
    one = Fitted()
    with pytest.raises(KeyboardInterrupt, match="Interrupted after 3 iterations; it is on the estimator"):
        one.fit()
    assert one.is_done
    outer = Fitted(Fitted())
    with pytest.raises(KeyboardInterrupt):
        outer.fit()
    assert outer.inner.is_done
    assert not outer.is_done


def test_outside_of_a_fit_it_is_a_warning():
    with pytest.warns(ConvergenceWarning, match="Interrupted. Hint: go on."):
        tell_interrupted("Interrupted", "go on")


def test_signals_wait_for_the_end_of_a_block():
    done = []

    def work():
        with signals_later():
            signal.raise_signal(signal.SIGINT)
            with signals_later():
                signal.raise_signal(signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
