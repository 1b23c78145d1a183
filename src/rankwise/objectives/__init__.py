"""Objectives: losses of the scores of a design. Every objective and its scale is defined here, once.

Conventions
-----------
With ``f = Xw`` and the pairs ``i > j`` of the graph, of weight ``ω`` and wanted difference ``z``:

- **RankRLS** minimises a *sum* over pairs,

      Σ ω (z - (f_i - f_j))² + α‖w‖²   =   f'Lf - 2r'f + c + α‖w‖²

  so its solution satisfies ``(X'LX + αI) w = X'r``. The objective has no factor ½.
- **RankSVM** minimises a *weighted mean* over pairs (as its paper does; one query, or queries of equal weight),

      (Σ ω loss(z - (f_i - f_j))) / (Σ ω) + α‖w‖²

  with the hinge ``max(0, t)``, its square, or the logistic loss of listed pairs; ``z`` is 1 for labels. In
  the form ``½‖w‖² + C Σ ω loss`` this is ``C = 1 / (2αΣω)`` (the paper prints ``1/(λN)``).
- **AdditiveRanker** minimises such a mean for every loss. ``Σω`` in the divisor counts the pairs with different labels.
  With the squared loss and ``ties="include"`` the sum above it has pairs with tied labels too.

A pair of rows i, j of query q weighs ``ω = s_q · importance_q · w_i · w_j`` (row weights ``w``, 1 by
default). ``query_weight`` names ``s_q``:

======== ======================== ==========================================================
size     1 / (rows of the query)  `L` is the centering of the large-scale RankRLS paper
pairs    1                        the 2007 and 2009 RankRLS papers
equal    1 / (pairs of the query) pairs with different labels; each query weighs the same
======== ======================== ==========================================================

The penalty ``α‖w‖²`` is not part of an objective: solvers add it, once.

A solver declares which one it minimises: a `QuadraticObjective`, or the `MarginObjective` of a loss with margins.
"""

from __future__ import annotations

from rankwise.objectives.margins import MarginObjective, MarginPoint
from rankwise.objectives.quadratic import (
    BalancedObjective,
    MatrixQuadratic,
    QuadraticObjective,
    ScaledObjective,
    SquaredObjective,
    prior_scale,
)

__all__ = [
    "BalancedObjective",
    "MarginObjective",
    "MarginPoint",
    "MatrixQuadratic",
    "QuadraticObjective",
    "ScaledObjective",
    "SquaredObjective",
    "prior_scale",
]
