"""The common parts of the pictures: colours, a line for the theory, and the file."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_audit._internal.durable import replace_file
from rag_audit._internal.extras import needing
from rag_audit.lab.experiments.model import Column, Figure, Results

COLORS = ("#1b6ca8", "#c8553d", "#588b3a", "#7a5195", "#888888")


def theory_and_markers(axes: Any, shown: Sequence[tuple[float, Figure]], label: str, color: str) -> None:
    """Measured figures with their errors, the theory as a line, the certified bound as a dotted line."""
    at = [x for x, _ in shown]
    axes.errorbar(at, [f.value for _, f in shown], yerr=[f.error for _, f in shown], fmt="o", color=color,
                  markersize=4, capsize=2, label=label)  # fmt: skip
    if all(f.theory is not None for _, f in shown):
        axes.plot(at, [f.theory for _, f in shown], "-", color=color, linewidth=1)
    if shown and all(f.bound is not None for _, f in shown):
        axes.plot(at, [f.bound for _, f in shown], ":", color=color, linewidth=1)
    axes.axhline(0.5, color="#888888", linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def auc_against_k(
    actual: Mapping[str, Mapping[str, Figure]],
    picture: Any,
    eps: Sequence[int],
    ks: Sequence[int],
    columns: Mapping[Column, str],
    label: str,
) -> None:
    """AUC against k for the columns side by side, one line for each eps.

    :param actual: the figures of each cell; column, eps and k form a cell's name
    :param columns: each column's title
    """
    axes = picture.subplots(1, len(columns), sharey=True)
    for place, (column, title) in zip(axes, columns.items(), strict=True):
        for e, color in zip(eps, COLORS, strict=False):
            shown = [(k, actual[key]["auc"]) for k in ks if (key := f"{column}-eps{e}-k{k}") in actual]
            theory_and_markers(place, shown, rf"$\varepsilon_{{acc}}$ = {e}", color)
        place.set(title=title, xlabel="coalition size k")
    axes[0].set_ylabel(label)
    axes[0].legend(frameon=False)


def save(draw: Callable[[Results, Any], None], results: Results, path: Path) -> None:
    """Draw results into an SVG file.

    :raises SetupError: matplotlib is not installed
    """
    with needing("matplotlib"):
        import matplotlib
        from matplotlib.figure import Figure as Picture
    with matplotlib.rc_context({"svg.hashsalt": "rag-audit", "svg.fonttype": "none", "font.size": 9}):
        picture = Picture(figsize=(8, 3.3), layout="constrained")
        draw(results, picture)
        data = io.BytesIO()
        # Without a date and with fixed identifiers the same figures give the same file.
        picture.savefig(data, format="svg", metadata={"Date": None})
    replace_file(path, data.getvalue())
