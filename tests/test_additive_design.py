"""The design of additive models: every product against the expanded matrix, as numpy has it."""

import numpy as np

# Codes round positions to 2^-28 of an interval for eight knots.
CODED = {"rtol": 1e-6, "atol": 1e-7}
EXACT = {"rtol": 1e-12, "atol": 1e-12}


def weights_of(curve, x):
    """The weights of one number, by the definition: slow and obvious."""
    out = np.zeros(curve.n_values)
    knots = curve.knots
    is_missing = x not in knots.tolist() if curve.is_levels else bool(np.isnan(x)) or knots.size == 0
    if is_missing:
        if curve.has_missing:
            out[knots.size] = 1.0
    elif curve.is_levels:
        out[knots.tolist().index(x)] = 1.0
    else:
        for k in range(knots.size):
            hat = np.zeros(knots.size)
            hat[k] = 1.0
            out[k] = np.interp(x, knots, hat)
    return out


def expanded(X, terms):
    """The rows of E, one number at a time."""
    rows = []
    for x in np.asarray(X, dtype=np.float64):
        parts = [weights_of(c, x[c.column]) for c in terms.curves]
        parts += [
            np.outer(weights_of(s.first, x[s.first.column]), weights_of(s.second, x[s.second.column])).ravel()
            for s in terms.surfaces
        ]
        rows.append(np.concatenate([np.zeros(0), *parts]))
    return np.array(rows).reshape(len(rows), terms.n_values)
