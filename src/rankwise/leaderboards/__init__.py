"""Leaderboards from battles: the Bradley-Terry model with intervals of strengths and places."""

from rankwise.leaderboards.estimator import BradleyTerry

__all__ = ["BradleyTerry"]
