"""Problems after validation, and the fit of one model at one alpha: solver, coordinates, and notices."""
