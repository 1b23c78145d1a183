"""Problems after validation: a design and its pairs, kernels with their rows, and prior knowledge."""
