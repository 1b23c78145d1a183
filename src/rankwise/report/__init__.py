"""One page about a model: how good it is, on which queries, why it ranks as it does, and how it was chosen.

``Report(model, X, y, qid).save("report.html")`` writes a single file that works offline, in light and dark, on a
phone and on paper. It needs no other package: the charts are SVG and HTML of our own.
"""

from rankwise.report.report import Report

__all__ = ["Report"]
