"""What must hold for any bytes that are loaded as a model: shared by the tests and the fuzzer."""

import contextlib
import hashlib
import io
import warnings

import numpy as np
import scipy.sparse as sp

import rankwise
from rankwise.exceptions import ModelFileError

MANY = 1 << 12  # features; a model may take more, and rows of them would only cost time
USES = (
    lambda model, X: model.predict(sp.csr_matrix(X)),
    lambda model, X: model.rank(X, qid=[1, 1, 2, 2]),
    lambda model, X: model.score(X, [0.0, 1.0, 1.0, 0.0], qid=[1, 1, 2, 2]),
    lambda model, _: model.save(io.BytesIO()),
)


def check_input(data, uses=slice(None)):
    """Load a model file that lacks its checksum, and use what comes out.

    Parameters
    ----------
    uses : slice
        What to do with the model.

    Returns
    -------
    model : estimator, or None if the file was refused
    """
    try:
        model = rankwise.load(io.BytesIO(data + hashlib.sha256(data).digest()))
    except ModelFileError as error:
        assert "Hint: " in str(error)  # noqa: PT017 - either outcome is right
        return None
    n_features = getattr(model, "n_features_in_", 3)
    if type(n_features) is not int or not 0 < n_features <= MANY:
        n_features = 3
    rows = np.linspace(-1.0, 1.0, 4 * n_features).reshape(4, n_features)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for use in USES[uses]:
            with contextlib.suppress(Exception):  # a model of nonsense may refuse to work; it may not crash
                use(model, rows)
    return model
