"""An exploration rendered for people, as a table and as a picture."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path

from rag_audit._internal.errors import SetupError
from rag_audit._internal.words import of_positions
from rag_audit.commit.explore.bernoulli import BernoulliPoint
from rag_audit.commit.explore.simulate import COVERS, Exploration, Point, Recall, in_words
from rag_audit.mechanisms.accounting.curves import floor_epsilon
from rag_audit.mechanisms.accounting.values import text

HINT_PICTURE = "pip install 'ragaudit-zk[experiments]'"


def table(exploration: Exploration) -> str:
    """The grid as a table, after a note on the scope of the figures."""
    head = f"{'gains':18} {'R':>5} {'lo..hi':>11} {'sigma/Delta':>11} {'n':>6} {'k':>4} {'eps_audit':>10} "
    lines = [
        COVERS,
        f"{_number(exploration.documents, 'document')} at {exploration.capacity:,} positions,"
        f" {_number(exploration.questions, 'question')} asked {exploration.repeats}x;"
        f" delta {exploration.delta}; standard errors in brackets; seed {exploration.seed}",
        f"eps_audit is for a document {of_positions(exploration.positions)}",
        "",
        f"{head} recall@{exploration.top_k}  questions that find their passage",
    ]
    for point in exploration.points:
        window = point.noise.window
        lines.append(
            f"{','.join(map(str, point.noise.gains)):18} {window.lattice:>5} {f'{window.lo}..{window.hi}':>11}"
            f" {point.noise.sigma_over_delta:>11.4g} {point.n:>6} {point.k:>4} {text(point.eps):>10}"
            f"  {_percent(point.recall)}  {in_words(point.recall.hit, exploration.questions)}"
        )
    for name, recall in (("without noise", exploration.without_noise), ("blind chance", exploration.chance)):
        lines.append(f"{name:{len(head)}} {_percent(recall)}  {in_words(recall.hit, exploration.questions)}")
    return "\n".join(lines)


def bernoulli_table(points: Sequence[BernoulliPoint], exploration: Exploration, n: int) -> str:
    """The mechanisms based on Bernoulli bits as a table, with their guarantees."""
    k = exploration.top_k
    sizes = list(points[0].eps)
    head = "".join(f"{f'eps({size})':>9}" for size in sizes)
    head += "".join(f"{f'odds({size})':>10}" for size in sizes)
    lines = [
        f"mechanisms of random bits, delta 0; an account asks {n} questions:",
        f"{'':40}{head}  recall@{k}       texts",
    ]
    for point in points:
        figures = "".join(f"{text(eps):>9}" for eps in point.eps.values())
        figures += "".join(f"{text(odds):>10}" for odds in point.exclusion_factor.values())
        lines.append(
            f"{point.mechanism.label:40}{figures}  {_percent(point.in_list):>13}  {point.texts:5.1f}"
        )
    lines.append(
        "odds(k): the factor by which at most the absence of a document of one position becomes more likely for k"
        " accounts that never received it (exclusion_factor); a document of s positions has the s-th power, and the"
        " presence of a document that is asked for has no protection"
    )
    return "\n".join(lines)


def _number(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _percent(recall: Recall) -> str:
    return f"{100 * recall.recall:5.1f} % ({100 * recall.error:.1f})"


def draw(exploration: Exploration, path: Path, coins: Sequence[BernoulliPoint] = ()) -> None:
    """Draw recall against eps_audit, in the format of the file's suffix (png, svg, pdf).

    :param coins: mechanisms based on Bernoulli bits; the plot also has the floor of mechanisms with independent draws
        for each account

    :raises SetupError: matplotlib is not installed, or does not know the format
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as exc:
        raise SetupError("a picture needs matplotlib", field="--picture", hint=HINT_PICTURE) from exc
    figure = Figure(figsize=(8, 5), layout="constrained")
    formats = FigureCanvasAgg(figure).get_supported_filetypes()
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in formats:
        raise SetupError(
            "the picture format is unknown", field="--picture", expected=sorted(formats), actual=path.name
        )
    axes = figure.add_subplot()
    finite = [point for point in exploration.points if math.isfinite(point.eps)]
    for n, k, lo, hi in dict.fromkeys((p.n, p.k, p.noise.window.lo, p.noise.window.hi) for p in finite):
        line = sorted(
            (p for p in finite if (p.n, p.k, p.noise.window.lo, p.noise.window.hi) == (n, k, lo, hi)),
            key=lambda p: p.eps,
        )
        axes.errorbar(
            [p.eps for p in line],
            [100 * p.recall.recall for p in line],
            yerr=[100 * p.recall.error for p in line],
            marker="o",
            capsize=2,
            label=f"n = {n}, k = {k}, scores {lo}..{hi}",
        )
    for recall, style, label in (
        (exploration.without_noise, "--", "without noise"),
        (exploration.chance, ":", "blind chance"),
    ):
        axes.axhline(100 * recall.recall, color="grey", linestyle=style, label=label)
    for point in coins:
        for size, eps in point.eps.items():
            if math.isfinite(eps):
                axes.plot(eps, 100 * point.in_list.recall, marker="s", linestyle="",
                          label=f"{point.mechanism.label}, k = {size}")  # fmt: skip
    chance = exploration.top_k / exploration.capacity
    for size in dict.fromkeys(size for point in coins for size in point.eps):
        shares = [chance + (1 - chance) * i / 200 for i in range(1, 201)]
        axes.plot([floor_epsilon(p, chance, size) for p in shares], [100 * p for p in shares],
                  color="black", linewidth=0.8, alpha=1 / size, label=f"floor, k = {size}")  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(bottom=-2)  # so that blind chance is seen above the frame
    axes.set_xlabel(f"eps_audit at delta {exploration.delta} (list of selected positions)")
    axes.set_ylabel(f"recall@{exploration.top_k}, percent")
    axes.set_title(
        f"{_number(exploration.documents, 'document')}, {_number(exploration.questions, 'question')}"
    )
    axes.grid(alpha=0.3)
    axes.legend()
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    try:
        figure.savefig(path, dpi=150, metadata=undated.get(suffix))
    except OSError as exc:
        raise SetupError("cannot be written", field=str(path), actual=exc.strerror or str(exc)) from exc


def csv_of(points: Sequence[Point]) -> bytes:
    """The grid's points as CSV."""
    rows = [{**point.as_json(), "gains": ",".join(map(str, point.noise.gains))} for point in points]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(row)
    return out.getvalue().encode()
