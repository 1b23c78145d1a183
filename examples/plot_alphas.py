"""
Every alpha from one run
========================

How strongly to regularise is usually found by fitting once for each value. The systems of all alphas share one Krylov
space, so `RankRLSCV` builds it once, and reads the held-out error of every alpha after every iteration from it.
"""

# %%
# 600 rows in 60 queries, 200 columns; each of them is weakly informative, the first ones most.
import matplotlib.pyplot as plt
import numpy as np

from rankwise import RankRLSCV
from rankwise.displays import ConvergenceDisplay, SurfaceDisplay

rng = np.random.default_rng(0)
X = rng.normal(size=(600, 200)) * np.geomspace(3, 0.3, 200)
y = X @ (rng.normal(size=200) * np.geomspace(1, 0.1, 200)) + 10 * rng.normal(size=600)
qid = np.arange(600) // 10
model = RankRLSCV(method="hybrid").fit(X, y, qid=qid)
print(f"{model.surface_.size} models compared, {model.n_products_} products with the data")

# %%
# The surface: too small an alpha overfits as the iterations go on, too large a one never fits. The star is the choice.
SurfaceDisplay.from_estimator(model)

# %%
# The same, as curves of a few alphas. Without any penalty (dashed) it is stopping early that regularises.
ConvergenceDisplay.from_estimator(model)
plt.show()
