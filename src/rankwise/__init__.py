"""Learning to rank from scores, queries and preferences."""
