"""Early stopping of every solver that iterates: the iterates it watches are the solver's own, and the best is kept."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

from all_pairs import pairwise
from making_blocks import graph_of_outputs
from rankwise import RankRLS
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.exceptions import InvalidInputError, NoPairsError
from rankwise.metrics import concordance, get_metric, preference_error
from rankwise.objectives import ScaledObjective, SquaredObjective, prior_scale
from rankwise.pairs.labelled import units_of_rows
from rankwise.pairs.labels import label_graph
from rankwise.pairs.preferences import preference_graph
from rankwise.solvers.choose import ITERATIVE, SOLVERS, SolverOptions


def data(seed=0, rows=300, columns=60, outputs=1):
    """Noisy labels and nearly as many columns as rows to learn from: the best iterate is not the last."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, columns)) * np.geomspace(3, 0.1, columns)
    y = X[:, :5] @ rng.normal(size=(min(5, columns), outputs)) + 4 * rng.normal(size=(rows, outputs))
    return X, y[:, 0] if outputs == 1 else y


def model_of(method, **options):
    return RankRLS(**{"alpha": 1e-3, "solver": method, "early_stopping": True, "tol": 1e-10, **options})


def iterates(model, objective):
    """What the solver tells, in the coordinates of the columns."""
    scaled = objective
    if model.penalty_power:
        scaled = ScaledObjective(objective, prior_scale(objective, model.penalty_power))
    kept = []

    def note(coef, gap, n_iter):
        kept.append(coef.copy() if scaled is objective else scaled.to_coef(coef))
        return len(kept) >= 60

    options = SolverOptions(tol=model.tol, monitor=note)
    SOLVERS[model.solver](scaled, model.alpha, options)
    return kept


@pairwise(method=ITERATIVE, outputs=[1, 2], penalty_power=[0.0, 0.25])
def test_the_best_of_the_solvers_own_iterates_is_kept(method, outputs, penalty_power):
    X, y = data(outputs=outputs)
    train, held = slice(0, 90), slice(90, None)
    model = model_of(method, penalty_power=penalty_power, patience=4)
    model.fit(X[train], y[train], eval_set=(X[held], y[held]))
    assert model.solver_ == model.solver
    objective = SquaredObjective(as_design(X[train]), graph_of_outputs(y[train], check_qid(None, 90)))
    told = iterates(model, objective)
    histories = [model.history_] if outputs == 1 else model.history_
    assert model.n_iter_ == max(len(history) for history in histories)
    for output, history in enumerate(histories):
        pick = (lambda w: w) if outputs == 1 else (lambda w, output=output: w[:, output])
        labels = y[held] if outputs == 1 else y[held][:, output]
        errors = [1 - concordance(labels, X[held] @ pick(w)) for w in told[: len(history)]]
        np.testing.assert_allclose(history, errors, atol=2 / labels.size)
        best = int(np.argmin(history))
        assert np.atleast_1d(model.best_iteration_)[output] == best + 1
        kept = np.atleast_2d(model.coef_)[output]
        np.testing.assert_allclose(kept, pick(told[best]), rtol=1e-6, atol=1e-8)
        assert 1 - concordance(labels, X[held] @ kept) == pytest.approx(history[best])


@pytest.mark.parametrize("method", ITERATIVE)
@pytest.mark.parametrize("patience", [1, 3, 8])
def test_patience_is_obeyed(method, patience):
    X, y = data(1)
    model = model_of(method, patience=patience).fit(X[:90], y[:90], eval_set=(X[90:], y[90:]))
    assert len(model.history_) - model.best_iteration_ == patience
    assert min(model.history_) == model.history_[model.best_iteration_ - 1]


@pairwise(method=ITERATIVE, with_qid=[False, True], scoring=["pairwise_error", "concordance"])
def test_a_share_of_the_training_data_is_held_out(method, with_qid, scoring):
    X, y = data(2)
    qid = np.arange(300) // 10 if with_qid else None
    weight = np.where(np.arange(300) % 7 == 0, 0.0, 1.0 + np.arange(300) % 3)
    model = model_of(method, scoring=scoring, validation_fraction=0.2)
    model.fit(sp.csr_matrix(X), y, qid, weight)
    best = np.argmin if scoring == "pairwise_error" else np.argmax
    assert model.best_iteration_ == int(best(model.history_)) + 1
    # The rows that score do not depend on the solver, and those that weigh nothing are not among them.
    held = units_of_rows(y, check_qid(qid, 300), weight).share(0.2, 0)
    assert not held[weight == 0].any()
    scorer = get_metric(scoring).prepare(
        y[held], qid if qid is None else qid[held], sample_weight=weight[held]
    )
    assert scorer(X[held] @ model.coef_) == pytest.approx(model.history_[model.best_iteration_ - 1], abs=1e-9)
    assert model.score(X, y, qid) > 0.5


@pairwise(method=ITERATIVE, with_eval_set=[False, True], storage=[np.asarray, sp.csr_matrix])
def test_listed_pairs(method, with_eval_set, storage):
    X, y = data(3, rows=200)
    rng = np.random.default_rng(3)
    pairs = rng.integers(200, size=(400, 2))
    pairs = pairs[y[pairs[:, 0]] != y[pairs[:, 1]]]
    pairs = np.where((y[pairs[:, 0]] > y[pairs[:, 1]])[:, None], pairs, pairs[:, ::-1])
    train, held = pairs[:200], pairs[200:]
    model = model_of(method, patience=5)
    model.fit_pairs(storage(X), train, eval_set=(X, held) if with_eval_set else None)
    assert model.solver_ == model.solver
    assert model.best_iteration_ == int(np.argmin(model.history_)) + 1
    assert model.n_pairs_ == 200
    if with_eval_set:
        assert preference_error(held, X @ model.coef_) == pytest.approx(min(model.history_))
        objective = SquaredObjective(as_design(X), preference_graph(train[:, 0], train[:, 1], 200))
        told = iterates(model, objective)
        np.testing.assert_allclose(model.coef_, told[model.best_iteration_ - 1], rtol=1e-6, atol=1e-8)


def test_pairs_without_any_left_to_train_on():
    """Of a winner and a tie one is held out: the tie cannot score, and from the tie nothing is learned."""
    messages = set()
    for seed in range(8):
        with pytest.raises(NoPairsError) as caught:
            model_of("egdm", validation_fraction=0.5, random_state=seed).fit_pairs(
                np.eye(4), [[0, 1], [2, 3]], magnitude=[1.0, 0.0], weight=[1.0, 1.0]
            )
        messages.add(str(caught.value))
    assert len(messages) == 2
    assert any("left to train on. Hint: use a smaller validation_fraction" in message for message in messages)
    assert any("cannot score" in message for message in messages)


@pytest.mark.parametrize("factor", [1e2, 1e8])
def test_a_point_on_its_way_to_infinity_is_not_kept(factor):
    """Ranks know no scale, so a step that is far too long may order the held-out rows well: once."""
    X, y = data(4)
    model = model_of("gdm", learning_rate=factor, patience=200, max_iter=60, alpha=1.0)
    model.fit(X[:90], y[:90], eval_set=(X[90:], y[90:]))
    objective = SquaredObjective(as_design(X[:90]), label_graph(y[:90], check_qid(None, 90)))
    nothing = float(objective.at(np.zeros(60)).value)
    assert float(objective.at(model.coef_).value) + model.coef_ @ model.coef_ <= nothing


@pytest.mark.parametrize("solver", [name for name in SOLVERS if name not in ITERATIVE])
def test_solvers_without_iterates_say_so(solver):
    X, y = data(5, rows=40)
    with pytest.raises(
        InvalidInputError, match=rf"iterates, and solver='{solver}' has none.*Hint: use solver='auto'"
    ):
        RankRLS(solver=solver, early_stopping=True).fit(X, y)


def test_an_operator_is_enough_and_columns_out_of_range_are_refused():
    X, y = data(6)
    dense = model_of("egdm").fit(X[:90], y[:90], eval_set=(X[90:], y[90:]))
    operator = model_of("egdm").fit(aslinearoperator(X[:90]), y[:90], eval_set=(X[90:], y[90:]))
    np.testing.assert_allclose(dense.coef_, operator.coef_, rtol=1e-6, atol=1e-8)
    for method in ITERATIVE:
        with pytest.raises(InvalidInputError, match=r"as large as .*too large.*Hint"):
            model_of(method).fit(X[:90] * 1e200, y[:90], eval_set=(X[90:], y[90:]))
    silent = model_of("auto").fit(np.zeros((90, 60)), y[:90], eval_set=(X[90:], y[90:]))
    np.testing.assert_array_equal(silent.coef_, 0.0)


@pytest.mark.parametrize("method", ITERATIVE)
@pytest.mark.parametrize("columns", [2, 5, 10])
def test_few_columns_are_learned_from_too(method, columns):
    """Where an estimate of the spectrum alone would solve the problem, early iterates are judged all the same."""
    X, y = data(rows=200, columns=columns)
    options = {"alpha": 1.0, "tol": 1e-5}
    model = model_of(method, **options).fit(X[:150], y[:150], eval_set=(X[150:], y[150:]))
    assert model.coef_.any()
    assert model.score(X[150:], y[150:]) > 0.5
    if method.startswith(("gdm", "egdm")):
        first = iterates(
            model, SquaredObjective(as_design(X[:150]), label_graph(y[:150], check_qid(None, 150)))
        )[0]
        np.testing.assert_allclose(first / np.linalg.norm(first), _steepest(X[:150], y[:150]), rtol=1e-8)


def _steepest(X, y):
    """Return the direction of the first step from 0."""
    pull = (X - X.mean(axis=0)).T @ y
    return pull / np.linalg.norm(pull)
