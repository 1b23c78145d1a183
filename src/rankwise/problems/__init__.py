"""A design and its pairs, kernels with their rows, prior knowledge of coefficients: problems after validation."""
