"""
A model that one can read
=========================

`AdditiveRanker` scores a row by a sum of curves, one for each column, and of surfaces for pairs of columns that act
together. What it learned is what is drawn.
"""

# %%
# Offers in 200 searches. Cheaper is better up to a point, ratings count once there are reviews behind them, and
# some are missing.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from rankwise import AdditiveRanker, RankRLSCV
from rankwise.displays import CurvesDisplay

rng = np.random.default_rng(0)
n = 4000
price, reviews, age = rng.uniform(0, 10, n), rng.poisson(4, n).astype(float), rng.uniform(0, 30, n)
rating = np.where(rng.random(n) < 0.15, np.nan, rng.uniform(1, 5, n))
known = np.nan_to_num(rating, nan=3.0)
worth = 2 / (1 + np.exp(price - 5)) + 0.2 * (known - 3) * np.minimum(reviews, 5) - 0.5 * (age > 20)
y = np.digitize(worth + 0.4 * rng.normal(size=n), [0, 0.8, 1.6, 2.2])
X = pd.DataFrame({"price": price, "rating": rating, "reviews": reviews, "age": age})
qid = np.arange(n) // 20

model = AdditiveRanker(interactions=1, monotone={"price": -1}).fit(X[:3000], y[:3000], qid=qid[:3000])
display = CurvesDisplay.from_estimator(model)

# %%
# The price was told never to help by rising. The surface shows what rating and reviews do together, beyond their own
# curves. On queries that it did not see, beside a linear model:
filled = X.fillna(3.0)
linear = RankRLSCV().fit(filled[:3000], y[:3000], qid=qid[:3000])
print(f"curves {model.score(X[3000:], y[3000:], qid=qid[3000:]):.3f} of the pairs in the right order")
print(f"linear {linear.score(filled[3000:], y[3000:], qid=qid[3000:]):.3f}")
plt.show()
