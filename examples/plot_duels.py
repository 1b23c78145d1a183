"""
A leaderboard from duels
========================

Which player is best, and how sure is that, if only results of duels are known? One column per player makes `RankSVM`
with the logistic loss the model of Bradley and Terry.
"""

# %%
# Eight players of known strength, 300 duels.
import matplotlib.pyplot as plt
import numpy as np

from rankwise import RankSVM

rng = np.random.default_rng(1)
players = list("ABCDEFGH")
strength = np.linspace(1.5, -1.5, 8)
met = rng.integers(8, size=(330, 2))
met = met[met[:, 0] != met[:, 1]][:300]
wins = rng.random(len(met)) < 1 / (1 + np.exp(strength[met[:, 1]] - strength[met[:, 0]]))
pairs = np.where(wins[:, None], met, met[:, ::-1])

one_column_each = np.eye(8)
model = RankSVM(alpha=1e-3, loss="logistic").fit_pairs(one_column_each, pairs)

# %%
# Intervals by drawing the duels again, and the probability that the row's player beats the column's.
drawn = [
    RankSVM(alpha=1e-3, loss="logistic")
    .fit_pairs(one_column_each, pairs[rng.integers(len(pairs), size=len(pairs))])
    .coef_
    for _ in range(200)
]
low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
order = np.argsort(model.coef_)
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained")
left.hlines(np.arange(8), low[order], high[order], color="tab:blue")
left.plot(model.coef_[order], np.arange(8), "o", label="estimate, 95 % interval")
left.plot(strength[order], np.arange(8), "x", color="crimson", label="truth")
left.set(
    yticks=np.arange(8), yticklabels=[players[i] for i in order], xlabel="log-odds against the average player"
)
left.legend(frameon=False, loc="lower right")

rows = np.repeat(np.arange(8), 8)
columns = np.tile(np.arange(8), 8)
chance = model.predict_pairs(one_column_each[rows], one_column_each[columns]).reshape(8, 8)
right.imshow(chance, cmap="RdBu", vmin=0, vmax=1)
for (row, column), value in np.ndenumerate(chance):
    right.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8)
right.set(
    xticks=range(8), xticklabels=players, yticks=range(8), yticklabels=players, title="P(row beats column)"
)
plt.show()
print("best first:", " ".join(players[i] for i in order[::-1]))
