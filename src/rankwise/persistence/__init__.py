"""Models in files: arrays and a JSON header in one file, and never any code."""

from rankwise.persistence.files import load, read_header, save

__all__ = ["load", "read_header", "save"]
