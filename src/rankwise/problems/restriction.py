"""Prior knowledge of coefficients: their signs, a prior model, and penalty factors of columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankwise.arrays import Floats
from rankwise.solvers.bounded import Bounds

__all__ = ["Restriction"]


@dataclass(frozen=True)
class Restriction:
    """``α Σ c_j (w_j - w₀_j)²`` in place of ``α‖w‖²``, over coefficients of given signs.

    In ``w = w₀ + s u`` with ``s = c^-1/2`` the penalty is ``α‖u‖²`` again, and signs are bounds.

    Attributes
    ----------
    signs : (features,) int64 or None
        1 for coefficients that must not be negative, -1 for those that must not be positive, 0 for any.
    prior : (features,) float64 or None
        ``w₀``.
    penalty : (features,) float64 or None
        ``c``, at least 0.
    """

    signs: npt.NDArray[np.int64] | None = None
    prior: Floats | None = None
    penalty: Floats | None = None

    @property
    def is_signed(self) -> bool:
        """Whether some sign is given."""
        return self.signs is not None and bool(self.signs.any())

    @property
    def needs_bounded(self) -> bool:
        """Whether a loss with margins needs the solver that knows signs and columns without a penalty."""
        return self.is_signed or self.unpenalised is not None

    @property
    def unpenalised(self) -> npt.NDArray[np.bool_] | None:
        """Which columns have no penalty; None where all have one."""
        return None if self.penalty is None or self.penalty.all() else self.penalty == 0

    def origin(self, n_features: int) -> Floats:
        """Return ``w₀``."""
        return np.zeros(n_features) if self.prior is None else self.prior

    def scale(self, n_features: int) -> Floats:
        """Return ``s``; 1 for columns without a penalty."""
        if self.penalty is None:
            return np.ones(n_features)
        return 1.0 / np.sqrt(np.where(self.penalty > 0, self.penalty, 1.0))

    def to_coef(self, u: Floats) -> Floats:
        """Return ``w``."""
        return self.signed(self.origin(u.size) + (u if self.penalty is None else u * self.scale(u.size)))

    def signed(self, coef: Floats) -> Floats:
        """Return coefficients, (features,) or (features, outputs), that have their signs.

        At a bound ``w₀ + s (-w₀ / s)`` is 0 but for its rounding, which may have the other sign.
        """
        if self.signs is None:
            return coef
        signs = self.signs if coef.ndim == 1 else self.signs[:, None]
        return np.where(coef * signs < 0, 0.0, coef)

    def to_own(self, coef: Floats) -> Floats:
        """Return ``u``."""
        return (coef - self.origin(coef.size)) / (1.0 if self.penalty is None else self.scale(coef.size))

    def bounds(self, origin: Floats, scale: Floats) -> Bounds:
        """Return the bounds of u that the signs imply."""
        signs = np.zeros(origin.size) if self.signs is None else self.signs
        zero = -origin / scale
        return Bounds(np.where(signs > 0, zero, -np.inf), np.where(signs < 0, zero, np.inf))
