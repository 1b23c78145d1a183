"""Pictures of the evidence, as SVG files whose bytes depend on the numbers alone."""

from __future__ import annotations

import numpy as np

import data
from harness import HERE

IMAGES = HERE.parent / "docs" / "images"
wanted = {"files": False}  # pictures are drawn while pages are written, not while they are checked


def picture(name: str, title: str, lines: dict, x: str, y: str, *, log: str = "xy") -> str:
    """Draw ``{label: (x values, y values)}`` into docs/images and return its Markdown; "not run" without lines."""
    return panels(name, title, {title: (lines, x, y, log)})


def panels(name: str, title: str, parts: dict) -> str:
    """Draw panels ``{title: (lines, x, y, log)}`` beside each other."""
    if not any(lines for lines, *_ in parts.values()):
        return f"*{title}: not run*"
    markdown = f"![{title}](images/{name}.svg)"
    if not wanted["files"]:
        return markdown
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
    return markdown


def curves_page() -> None:
    """Draw the page of curves and surfaces of OHSUMED that docs/curves.md and the README show."""
    from rankwise import AdditiveRanker  # noqa: PLC0415
    from rankwise.displays import CurvesDisplay  # noqa: PLC0415

    model = AdditiveRanker(1e-2, interactions=8, monotone={0: 1}, n_threads=1).fit(*data.join(data.ohsumed()))
    display = CurvesDisplay.from_estimator(model, n_curves=8, n_surfaces=4)
    display.figure_.savefig(IMAGES / "curves.png", dpi=70)


if __name__ == "__main__":
    curves_page()
