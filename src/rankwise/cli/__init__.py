"""The command line ``rankwise``, the only package that prints."""

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; see `rankwise.cli.entry.main`."""
    try:
        from rankwise.cli import entry  # noqa: PLC0415 - an interrupt may come during the import

        return entry.main(argv)
    except KeyboardInterrupt:
        return 130
