"""The command line ``rankwise``, the only room that prints.

Heavy modules are imported by the command that needs them, so that ``rankwise --help`` answers at once.
"""

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; see `rankwise.cli.entry.main`."""
    try:
        from rankwise.cli import entry  # noqa: PLC0415 - here, for an import can be interrupted, too

        return entry.main(argv)
    except KeyboardInterrupt:
        return 130
