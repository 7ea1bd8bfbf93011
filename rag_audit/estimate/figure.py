"""The calibration as a CSV file and as the paper's Figure 4."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import SetupError
from rag_audit.estimate.calibration import ACCOUNTS, ALPHA, OPERATING_POINT, PATTERNS, Cell

FIGURE_K = 10
COLORS = {"P-A": "#1b6ca8", "P-B": "#c8553d", "P-C": "#588b3a"}
MARKERS = {"P-A": "o", "P-B": "s", "P-C": "^"}


def write_csv(cells: Sequence[Cell], path: Path) -> None:
    """Write one row for each cell, with rates and means to six decimals.

    :raises StoreError: the file cannot be written
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([field.name for field in fields(Cell)])
    for cell in cells:
        writer.writerow(f"{v:.6g}" if isinstance(v, float) else v for v in asdict(cell).values())
    replace_file(path, text.getvalue().encode())


def write_figure(cells: Sequence[Cell], path: Path) -> None:
    """Draw (a) the null's false positive rate and (b) the mean c of a coalition of ten accounts, both against theta.

    :raises SetupError: matplotlib is not installed
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise SetupError(
            "the figure needs matplotlib", hint="pip install 'ragaudit-zk[experiments]'"
        ) from exc
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    null = [cell for cell in cells if cell.pattern == "null"]
    left.plot([c.theta for c in null], [c.detected for c in null], "o-", color="#333333", markersize=4)
    left.axhline(ALPHA, color="#888888", linestyle=":", label=f"{ALPHA:.0%}")
    left.set(xlabel=r"threshold $\theta$", ylabel="false positive rate", title="(a) no coalition")
    for pattern in PATTERNS:
        shown = [c for c in cells if (c.pattern, c.k_true) == (pattern, FIGURE_K)]
        right.errorbar(
            [c.theta for c in shown], [c.c_mean for c in shown], yerr=[c.c_sd for c in shown], label=pattern,
            color=COLORS[pattern], marker=MARKERS[pattern], markersize=4, capsize=2, linewidth=1,
        )  # fmt: skip
    right.axhline(FIGURE_K, color="#888888", linestyle=":")
    right.set(xlabel=r"threshold $\theta$", ylabel="largest cluster c (mean, sd)", ylim=(0, ACCOUNTS + 2),
              title=f"(b) a coalition of {FIGURE_K} among {ACCOUNTS} accounts")  # fmt: skip
    for axes in (left, right):
        axes.axvline(OPERATING_POINT, color="#888888", linestyle="--", linewidth=1)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    data = io.BytesIO()
    # The metadata is fixed, so that the same figures give the same file.
    figure.savefig(data, format="png", dpi=110, metadata={"Software": None})
    replace_file(path, data.getvalue())
