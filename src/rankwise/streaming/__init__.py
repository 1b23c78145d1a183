"""Learning from rows that come in calls: what a stream remembers, block by block."""
