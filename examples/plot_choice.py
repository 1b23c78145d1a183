"""
Candidates of a choice, and their differences
=============================================

`AutoRanker` compares linear models, curves and surfaces on the same folds. The table shows each with its
standard error, paired with the winner query by query, so that chance differences are recognised.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from rankwise import AutoRanker
from rankwise.displays import CandidatesDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(800, 4))
y = np.digitize(np.abs(X[:, 0]) - X[:, 1] + 0.3 * rng.normal(size=800), [-0.5, 0, 0.5, 1])
qid = np.arange(800) // 10
model = AutoRanker(methods=["rls", "svm-squared", "curves"])
model.fit(X, y, qid=qid)
print(model.describe())

# %%
# The first column acts by its size, which no straight line can say: the curves are ahead.
CandidatesDisplay.from_estimator(model)
plt.show()
