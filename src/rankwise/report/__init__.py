"""One page about a model: its metrics, its best and worst queries, explanations, and how it was chosen.

``Report(model, X, y, qid).save("report.html")`` writes a single file that works offline, in light and dark, on a
phone and on paper; `TableReport` does it for two-sided models. It needs no other package: the charts are SVG and HTML
of our own.
"""

from rankwise.report.report import Report, TableReport

__all__ = ["Report", "TableReport"]
