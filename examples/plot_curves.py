"""
A readable model
================

`AdditiveRanker` scores a row by a sum of curves, one for each column, and of surfaces for pairs of columns that act
together. The pictures show the whole model.
"""

# %%
# Hotels in 240 searches. Some ratings are missing; the dotted line is their contribution.
import matplotlib.pyplot as plt

from rankwise import AdditiveRanker, RankRLSCV
from rankwise.datasets import load_hotels
from rankwise.displays import CurvesDisplay

X, grade, search = load_hotels(return_X_y_qid=True)
X = X[["price", "rating", "distance"]]
train, test = slice(0, 2160), slice(2160, None)

model = AdditiveRanker(interactions=1, monotone={"distance": -1}).fit(
    X[train], grade[train], qid=search[train]
)
display = CurvesDisplay.from_estimator(model)

# %%
# A moderate price is best, and `monotone` makes sure that a longer way never helps. Both models on searches that they
# were not fitted on:
filled = X.fillna(X.median())
linear = RankRLSCV().fit(filled[train], grade[train], qid=search[train])
print(f"curves {model.score(X[test], grade[test], qid=search[test]):.3f} of the pairs in the right order")
print(f"linear {linear.score(filled[test], grade[test], qid=search[test]):.3f}")
plt.show()
