"""The command line ``rankwise``, the only room that prints.

Heavy modules are imported by the command that needs them, so that ``rankwise --help`` answers at once.
"""

from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; see `rankwise.cli.entry.main`."""
    try:
        # Here, because even the imports of the light modules can be interrupted.
        from rankwise.runtime.interrupts import signals_later  # noqa: PLC0415

        with signals_later():
            from rankwise.cli import entry  # noqa: PLC0415
    except KeyboardInterrupt:
        return 130
    return entry.main(argv)
