"""
How sure is a figure?
=====================

An NDCG of 0.71 says little without its interval, and two intervals that overlap say little about a difference:
queries that are hard for one model are hard for the other. So models are compared query by query.
"""

# %%
# Two rankings of the same 60 queries; the second is a little better on each of them.
import matplotlib.pyplot as plt
import numpy as np

from rankwise.metrics import bootstrap_interval, compare_rankings, per_query

rng = np.random.default_rng(0)
qid = np.repeat(np.arange(60), 15)
y = rng.integers(0, 4, size=qid.size)
noise = rng.normal(size=qid.size) * np.repeat(rng.uniform(0.5, 5, size=60), 15)
first, second = y + noise, y + 0.85 * noise + 0.1 * rng.normal(size=qid.size)

intervals = [bootstrap_interval(y, scores, qid, metric="ndcg@10") for scores in (first, second)]
comparison = compare_rankings(y, first, second, qid, metric="ndcg@10")

# %%
# The intervals of the two figures overlap; that of the difference does not contain 0.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for place, one in enumerate(intervals):
    left.errorbar(place, one.value, [[one.value - one.low], [one.high - one.value]], fmt="o", capsize=6)
left.set(xticks=[0, 1], xticklabels=["first", "second"], xlim=(-0.5, 1.5), ylabel="NDCG@10")
a, b = (per_query(y, scores, qid, metric="ndcg@10").values for scores in (first, second))
right.scatter(a, b, s=15)
right.axline((0.6, 0.6), slope=1, color="grey", lw=1)
right.set(xlabel="first, NDCG@10 of each query", ylabel="second", aspect="equal")
difference = comparison.difference
low, high = f"{difference.low:.3f}", f"{difference.high:.3f}"
figure.suptitle(f"first minus second: {difference.value:.3f} ({low} to {high}), p = {comparison.p_value:.4f}")
plt.show()
