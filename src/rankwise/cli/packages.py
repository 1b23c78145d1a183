"""Optional packages that a command will need, asked for before any work is done."""

from __future__ import annotations

import argparse
from pathlib import Path

from rankwise.cli.inputs import kind_of
from rankwise.data.svmlight import ZSTD_MAGIC, import_zstandard
from rankwise.data.tables import import_pyarrow, is_table

__all__ = ["check_packages"]


def check_packages(options: argparse.Namespace) -> None:
    """Raise where a file that is named, or a picture, needs a package that is not installed."""
    read = [path for name in ("data", "valid") for path in getattr(options, name, None) or []]
    written = options.output if options.command == "convert" else ""
    if read and (options.items or "table" in {kind_of(path, options.format) for path in read}):
        import_pyarrow()
    if written and (options.to == "table" or (options.to is None and is_table(written))):
        import_pyarrow()
    if written.lower().endswith(".zst"):
        import_zstandard(written)
    for path in [*read, getattr(options, "items", None) or "-"]:
        if Path(path).is_file() and _begins_with(path, ZSTD_MAGIC):
            import_zstandard(path)
    if getattr(options, "plot", None) is not None:
        from rankwise.displays.reading import import_pyplot  # noqa: PLC0415 - imports the estimators

        import_pyplot()


def _begins_with(path: str, magic: bytes) -> bool:
    with Path(path).open("rb") as stream:
        return stream.read(len(magic)) == magic
