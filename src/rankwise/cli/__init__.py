"""The command line ``rankwise``, the only room that prints.

Heavy modules are imported by the command that needs them, so that ``rankwise --help`` answers at once.
"""

from rankwise.cli.entry import main

__all__ = ["main"]
