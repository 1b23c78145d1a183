#!/usr/bin/env python3
"""The eGDM paper's figures, on what can be had: eigenvalue estimates, and time and error against gamma.

    python benchmarks/papers/egdm.py [--rows 100000] [--no-reuters]

Figures 1 and 2 show κ₁κ_n and κ₁/κ_n against the steps of the estimator: here for the paper's power iteration as
corrected, and for Lanczos, beside the truth. The third and fourth show the time to converge and the test error against
gamma for GDM, eGDM and conjugate gradients: products count here, and processor seconds. Gamma is `alpha`.

The paper's data (RCV1, CCAT against the rest) cannot be had: generated text of its shape and Reuters-21578 stand in.
GDM's η and μ, which the paper leaves open, are the library's defaults; "plain" has no momentum, but is told the
spectrum. Of the true smallest eigenvalue only an upper bound is known, the smallest diagonal entry of X'LX.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import data_sets
import rcv1like
from harness import RESULTS, write_json
from rankwise.data.validation import check_qid
from rankwise.design import as_design
from rankwise.metrics import get_metric
from rankwise.objectives import SquaredObjective
from rankwise.pairs.labels import label_graph
from rankwise.solvers.choose import SOLVERS, SolverOptions
from rankwise.solvers.momentum import gradient_descent, lanczos_spectrum, power_spectrum

GAMMAS = (0.1, 1.0, 10.0, 100.0, 1000.0)
MOST = 1000  # iterations for those that would take all day
error = get_metric("pairwise_error")


def tasks(rows, *, with_reuters):
    X, y, _ = rcv1like.make(rows)
    test, test_y, _ = rcv1like.make(rows, seed=1)
    yield f"generated text, {rows} rows", (X, y), (test[:20_000], test_y[:20_000])
    if with_reuters:
        data = data_sets.reuters()
        train, held = (np.flatnonzero(data.split == side) for side in ("train", "test"))
        topic = data.largest_topics(2)[1]
        y = data.labels(topic)
        yield f"Reuters-21578, {topic}", (data.X[train], y[train]), (data.X[held], y[held])


def true_ends(objective):
    """The largest eigenvalue of X'LX, and an upper bound of the smallest."""
    n = objective.n_features
    operator = LinearOperator((n, n), matvec=objective.product, dtype=np.float64)
    largest = float(eigsh(operator, k=1, return_eigenvectors=False, tol=1e-10)[0])
    return largest, 0.0 if n >= objective.design.shape[0] else float(objective.diagonal().min())


def estimates(objective, gamma, ends):
    """Figures 1 and 2: the estimates after every step."""
    n = objective.n_features
    found = {
        "power": power_spectrum(objective.product, n, gamma),
        "Lanczos": lanczos_spectrum(objective.product, n, gamma),
    }
    largest, smallest = (end + gamma for end in ends)
    print(f"\n  gamma {gamma}: the true ends are {largest:.3f} and at most {smallest:.4f}")
    for name, spectrum in found.items():
        print(
            f"    {name:8} {spectrum.n_iter:3d} steps: κ₁ {spectrum.largest:9.3f} "
            f"({spectrum.largest / largest - 1:+.2%}), κ_n {spectrum.smallest:.4f}"
        )
    return {name: spectrum.history for name, spectrum in found.items()} | {"true": (largest, smallest)}


def run(title, train, test, gammas):
    X, y = train
    objective = SquaredObjective(as_design(X), label_graph(y, check_qid(None, y.size)))
    rows = as_design(test[0])
    print(f"\n{title}: {X.shape[0]} × {X.shape[1]}, {X.nnz} non-zeros")
    ends = true_ends(objective)
    figures = {gamma: estimates(objective, gamma, ends) for gamma in (1.0, 10.0)}
    print(
        f"\n  {'gamma':>7} {'method':12} {'products':>8} {'of CG':>6} {'seconds':>8} {'residual':>9} {'test error':>10}"
    )
    lines = []
    for gamma in gammas:
        reference = None
        for name, solve in methods(ends, gamma).items():
            start = time.process_time()
            solution = solve(objective, gamma)
            seconds = time.process_time() - start
            reference = reference or solution.n_products
            judged = error(test[1], rows.dot(solution.coef))
            mark = "" if solution.status.is_good else "  not converged"
            print(
                f"  {gamma:7g} {name:12} {solution.n_products:8d} {solution.n_products / reference:6.2f} "
                f"{seconds:8.2f} {solution.certificate:9.1e} {judged:10.5f}{mark}"
            )
            lines.append({
                "gamma": gamma, "method": name, "products": solution.n_products, "seconds": seconds,
                "residual": solution.certificate, "error": judged, "restarts": solution.n_restarts,
            })  # fmt: skip
    return {"ends": ends, "estimates": figures, "lines": lines}


def methods(ends, gamma):
    options = SolverOptions(tol=1e-5, max_iter=MOST)

    def plain(objective, alpha):
        best = 2 / (ends[0] + ends[1] + 2 * gamma)
        return gradient_descent(objective, alpha, learning_rate=best, momentum=0.0, tol=1e-5, max_iter=MOST)

    table = {
        name: lambda objective, alpha, name=name: SOLVERS[name](objective, alpha, options)
        for name in ("cg", "egdm", "egdm-blocks", "egdm-power", "gdm")
    }
    return table | {"plain": plain}


def draw(results):
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(
        len(results), 4, figsize=(16, 3.5 * len(results)), layout="constrained", squeeze=False
    )
    for row, (title, result) in zip(axes, results.items(), strict=True):
        histories = result["estimates"][1.0]
        largest, smallest = histories["true"]
        for ax, combine, label in (
            (row[0], np.multiply, "κ₁κ_n"), (row[1], np.divide, "κ₁/κ_n"),
        ):  # fmt: skip
            for name in ("power", "Lanczos"):
                values = np.array(histories[name])
                ax.semilogy(np.arange(1, len(values) + 1), combine(*values.T), label=name)
            ax.axhline(combine(largest, smallest), color="black", linewidth=0.8, label="truth (κ_n: a bound)")
            ax.set(xlabel="steps", ylabel=label, title=title)
            ax.legend()
        for ax, key in ((row[2], "products"), (row[3], "error")):
            for name in dict.fromkeys(line["method"] for line in result["lines"]):
                lines = [line for line in result["lines"] if line["method"] == name]
                ax.plot([line["gamma"] for line in lines], [line[key] for line in lines], "o-", label=name)
            ax.set(xscale="log", xlabel="γ", ylabel=key)
            ax.legend()
        row[2].set_yscale("log")
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "egdm.png", dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--gammas", type=float, nargs="*", default=GAMMAS)
    parser.add_argument("--no-reuters", action="store_true")
    args = parser.parse_args()
    results = {
        title: run(title, train, test, args.gammas)
        for title, train, test in tasks(args.rows, with_reuters=not args.no_reuters)
    }
    draw(results)
    write_json("egdm", {}, results=results)


if __name__ == "__main__":
    main()
