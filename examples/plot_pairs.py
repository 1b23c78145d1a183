"""
Pairs are a graph
=================

Labels inside a query, or a list of duels, say which of two rows should stand higher. Each such pair is an edge, and
all that training needs to know of the edges is one matrix, the Laplacian, which is never written down.
"""

# %%
# Six documents of one query with grades 0, 1 and 2, and six players who met in seven duels.
import matplotlib.pyplot as plt
import numpy as np

grades = np.array([2, 2, 1, 1, 0, 0])
labelled = [(i, j) for i in range(6) for j in range(6) if grades[i] > grades[j]]
duels = [(0, 1), (1, 2), (2, 0), (0, 3), (3, 4), (4, 5), (1, 5)]


def laplacian(pairs):
    """Return L = A'A, with a row of A for each pair: 1 at the winner and -1 at the loser."""
    A = np.zeros((len(pairs), 6))
    for edge, (winner, loser) in enumerate(pairs):
        A[edge, winner], A[edge, loser] = 1, -1
    return A.T @ A


# %%
# Arrows go from the winner to the loser. In a graph of labels the levels are complete, which is why a product with its
# Laplacian takes time linear in the rows: sums over levels, instead of a visit to every pair.
angle = np.pi / 2 - 2 * np.pi * np.arange(6) / 6
place = np.column_stack([np.cos(angle), np.sin(angle)])
figure, axes = plt.subplots(2, 2, figsize=(8, 7.5), layout="constrained")
for (top, bottom), pairs, names, title in zip(
    axes.T,
    (labelled, duels),
    ([f"grade {grade}" for grade in grades], list("ABCDEF")),
    ("pairs from grades", "pairs from duels"),
    strict=True,
):
    for winner, loser in pairs:
        top.annotate(
            "",
            place[loser],
            place[winner],
            arrowprops={"arrowstyle": "->", "color": "tab:blue", "shrinkA": 22, "shrinkB": 22},
        )
    for name, (x, y) in zip(names, place, strict=True):
        top.text(x, y, name, ha="center", va="center", bbox={"boxstyle": "round", "fc": "w"})
    top.set(title=f"{title}: {len(pairs)} edges", xlim=(-1.4, 1.4), ylim=(-1.3, 1.3), aspect="equal")
    top.axis("off")
    L = laplacian(pairs)
    bottom.imshow(L, cmap="RdBu_r", vmin=-4, vmax=4)
    for (row, column), value in np.ndenumerate(L):
        bottom.text(column, row, f"{value:g}", ha="center", va="center")
    bottom.set(title="its Laplacian L: f'Lf is the squared loss", xticks=[], yticks=[])

# %%
# rankwise multiplies by this matrix without forming it. Here it is small enough to solve the equations of RankRLS
# by hand, and compare.
import rankwise

X = np.random.default_rng(0).normal(size=(6, 2))
L = laplacian(labelled)
by_hand = np.linalg.solve(X.T @ L @ X + np.eye(2), X.T @ L @ grades)
model = rankwise.RankRLS(alpha=1.0, ties="exclude", query_weight="pairs").fit(X, grades)
assert np.allclose(model.coef_, by_hand)
print(model.coef_.round(4), by_hand.round(4))
