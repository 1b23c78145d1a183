"""
Every alpha from one run
========================

How strongly to regularise is usually found by fitting once for each value. The systems of all alphas share one Krylov
space, so `RankRLSCV` builds it once, and reads the held-out error of every alpha after every iteration from it.
"""

# %%
# 2,000 rows in 100 queries, 200 columns of which only a few matter.
import matplotlib.pyplot as plt
import numpy as np

from rankwise import RankRLSCV
from rankwise.displays import ConvergenceDisplay, SurfaceDisplay

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 200)) * np.geomspace(1, 0.05, 200)
y = X[:, :5].sum(axis=1) + 1.5 * rng.normal(size=2000)
qid = np.arange(2000) // 20
model = RankRLSCV(method="hybrid").fit(X, y, qid=qid)
print(f"{model.surface_.size} models compared, {model.n_products_} products with the data")

# %%
# The surface: too small an alpha overfits as the iterations go on, too large a one never fits. The star is the choice.
SurfaceDisplay.from_estimator(model)

# %%
# The same, as curves of a few alphas. Without any penalty (dashed) it is stopping early that regularises.
ConvergenceDisplay.from_estimator(model)
plt.show()
