"""Models for other programs: search engines, databases, ONNX, and source code without dependencies."""

from rankwise.exporters.exporting import export
from rankwise.exporters.targets import TARGETS, check_exportable, exportable_to

__all__ = ["TARGETS", "check_exportable", "export", "exportable_to"]
