"""
Hold-out without refitting
==========================

Leave-pair-out trains without two rows and asks which of them the model puts higher, for every two rows. For 28 rows
that would be 378 fits for each alpha. `KernelRankRLSCV` gets all of them, for every alpha, from one decomposition.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from rankwise import KernelRankRLS, KernelRankRLSCV

rng = np.random.default_rng(0)
X = rng.normal(size=(28, 20))
y = X[:, 0] - X[:, 1] + X[:, 2] + 1.2 * rng.normal(size=28)
alphas = 2.0 ** np.arange(-6, 13)
model = KernelRankRLSCV("linear", cv="leave-pair-out", alphas=alphas).fit(X, y)
print(f"{model.cv_}: alpha {model.alpha_:g}, error {model.best_score_:.3f}")

# %%
# The slow way, for two alphas: fit without each pair, and count those in the wrong order.


def refitted(alpha):
    """Return the share of pairs that a model which saw neither row orders wrongly."""
    wrong = []
    for i in range(28):
        for j in range(i):
            others = np.delete(np.arange(28), [i, j])
            ranker = KernelRankRLS("linear", alpha=alpha).fit(X[others], y[others])
            a, b = ranker.predict(X[[i, j]])
            wrong.append((a - b) * (y[i] - y[j]) < 0)
    return np.mean(wrong)


some = [0.25, 64.0]
slow = [refitted(alpha) for alpha in some]
in_sample = [
    1 - KernelRankRLS("linear", alpha=alpha).fit(X, y).score(X, y) for alpha in alphas
]  # what training sees of itself

figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.semilogx(alphas, model.cv_errors_, label="leave-pair-out, closed form", base=2)
ax.plot(some, slow, "o", color="crimson", label="the same by 378 fits each")
ax.plot(alphas, in_sample, "--", color="grey", label="on the training rows: too good to be true")
ax.set(xlabel="alpha", ylabel="share of pairs in the wrong order")
ax.legend(frameon=False)
plt.show()
assert np.allclose(slow, np.interp(some, alphas, model.cv_errors_))
