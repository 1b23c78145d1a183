"""Commands that cannot be meant, whatever the files hold."""

from __future__ import annotations

from rankwise.exceptions import InvalidInputError

__all__ = ["UsageError"]


class UsageError(InvalidInputError):
    """The command itself is wrong; it ends with 2, as a typo in an option does."""
