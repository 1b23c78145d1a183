"""Two-sided ranking: columns for each row of a table (targets for a drug, items for a user, labels for an object)."""
