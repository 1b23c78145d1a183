"""One model at one alpha: which solver, in which coordinates, and what to say about what it found."""
