"""Pictures of the evidence, as SVG files whose bytes depend on the numbers alone."""

from __future__ import annotations

import numpy as np

from harness import HERE

IMAGES = HERE.parent / "docs" / "images"


def picture(name: str, title: str, lines: dict, x: str, y: str, *, log: str = "xy") -> str:
    """Draw ``{label: (x values, y values)}`` into docs/images and return its Markdown; "not run" without lines."""
    return panels(name, title, {title: (lines, x, y, log)})


def panels(name: str, title: str, parts: dict) -> str:
    """Draw panels ``{title: (lines, x, y, log)}`` beside each other."""
    if not any(lines for lines, *_ in parts.values()):
        return f"*{title}: not run*"
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": name, "font.size": 9})
    import matplotlib.pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(
        1, len(parts), figsize=(5 * len(parts), 3.6), layout="constrained", squeeze=False
    )
    for ax, (head, (lines, x, y, log)) in zip(axes[0], parts.items(), strict=True):
        for label, (xs, ys) in lines.items():
            ax.plot(np.asarray(xs, dtype=float), ys, marker="o" if len(xs) < 15 else None, ms=3, label=label)
        ax.set(
            title=head,
            xlabel=x,
            ylabel=y,
            xscale="log" if "x" in log else "linear",
            yscale="log" if "y" in log else "linear",
        )
        if lines:
            ax.legend(fontsize=7)
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)
    return f"![{title}](images/{name}.svg)"
