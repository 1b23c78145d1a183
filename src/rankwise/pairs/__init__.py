"""Which pairs are compared, held out and scored: those of labels inside queries, or listed ones."""
