"""Pictures of models and of how they were chosen, in scikit-learn's Display style; they need matplotlib.

`CandidatesDisplay` shows candidates of `AutoRanker`, `SurfaceDisplay` the validation error of every alpha after every
iteration, `ConvergenceDisplay` its course for a few alphas (figures 1 and 2 of the large-scale RankRLS paper),
`CurvesDisplay` the curves and surfaces of an additive model, `LeaderboardDisplay` the strengths of a leaderboard with
intervals and tiers. matplotlib is imported when something is drawn:
``pip install rankwise[report]``.
"""

from rankwise.displays.models import CandidatesDisplay, CurvesDisplay, LeaderboardDisplay
from rankwise.displays.regularisation import ConvergenceDisplay, SurfaceDisplay

__all__ = ["CandidatesDisplay", "ConvergenceDisplay", "CurvesDisplay", "LeaderboardDisplay", "SurfaceDisplay"]
