"""Pairs to compare, hold out and score: pairs of labels inside queries, or listed pairs."""
