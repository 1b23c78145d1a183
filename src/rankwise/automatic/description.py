"""What was tried and chosen, for a reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from rankwise.automatic.ranker import AutoRanker

__all__ = ["describe_choice"]


def describe_choice(ranker: AutoRanker) -> str:
    """Say what was tried, what scored it and what was chosen."""
    board = ranker.candidates_
    lines = [
        f"scored by {ranker.cv_}, {board.metric}",
        f"           {ranker.metric_.describe()}",
        "",
        str(board),
        "",
        f"chose      {board.chosen.summary}",
        *(f"           - {part}" for part in board.chosen.parts),
    ]
    if ranker.rule == "best":
        lines += [f"           {board.reason}"] * bool(board.reason)
        if board.chosen.parts:
            lines.append(
                "           for a single model: rule='one-standard-error', or methods= without 'average'"
            )
    if hasattr(ranker, "nested_score_"):
        error = f" ± {ranker.nested_error_:.4f}" if np.isfinite(ranker.nested_error_) else ""
        lines.append(
            f"expect     {board.metric} {ranker.nested_score_:.4f}{error} of the whole procedure, on outer folds"
        )
    else:
        lines.append("           its figure was selected on the same rows; nested=True gives an honest one")
    if hasattr(ranker, "log_loss_"):
        lines.append(
            f"           log-loss {ranker.log_loss_:.4f} of probabilities; knowing nothing is {np.log(2):.4f}"
        )
    lines += [f"left out   {which}" for which in ranker.skipped_]
    if ranker.stopped_:
        lines.append(f"stopped by {ranker.stopped_}, before everything was tried")
    return "\n".join(lines)
