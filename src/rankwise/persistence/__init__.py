"""Model files: arrays and JSON in one archive, and never any code."""

from rankwise.persistence.files import load, read_header, save

__all__ = ["load", "read_header", "save"]
