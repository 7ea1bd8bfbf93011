"""The remaining quality of retrieval under each mechanism, measured on public collections: study.json has the figures
of docs/study.md.

The measurements use one embedder, one score window and lists of five. A window has other documents and questions, so
the page states whether a policy's setting is within the measured range, and between which settings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from rag_audit._internal.canonical import parse_json
from rag_audit._internal.errors import RagAuditError
from rag_audit._internal.words import marked
from rag_audit.mechanisms.descriptions import Description, description
from rag_audit.models.models import Count, DecimalText, Model, Positive
from rag_audit.report.model import Report

if TYPE_CHECKING:
    from rag_audit.report.html.curves import Protection


class CollectionFacts(Model):
    """A public collection, as one tenant."""

    name: str
    passages: Positive
    positions: Positive
    questions: Positive
    exact: DecimalText
    """per cent of its questions with their passage among the first five without any mechanism"""


class Setting(Model):
    """A mechanism with its parameters, and the results under it."""

    mechanism: str
    sigma_over_delta: DecimalText | None = None
    gains: Sequence[Positive] = ()
    lattice: Count = 0
    keep: DecimalText | None = None
    actual: dict[str, Annotated[list[DecimalText], Field(min_length=2, max_length=2)]]
    """by collection: per cent that find their passage, and the standard error"""


class Study(Model):
    """study.json."""

    source: str
    made_by: str
    embedder: str
    top_k: Positive
    score_window: list[Count]
    queries: Positive
    collections: list[CollectionFacts]
    settings: list[Setting]


@dataclass(frozen=True)
class Point:
    """One measurement as a point of the chart.

    :param x: epsilon for this window's coalition, or the sampled share of positions
    :param strength: the order of settings: sigma/Delta, or the sampled share
    """

    setting: str
    x: float
    strength: float
    actual: float
    error: float


@cache
def study() -> Study:
    """The measurements."""
    text = resources.files("rag_audit.report.html").joinpath("study.json").read_bytes()
    return Study.parse(parse_json(text, source="study.json"), field="study.json")


def settings_of(kind: type[Description]) -> list[Setting]:
    """The measured settings of a mechanism."""
    return [s for s in study().settings if description(s.mechanism) is kind]


def strength(setting: Setting) -> float:
    """The value that orders the settings of a mechanism."""
    return float(description(setting.mechanism).setting(setting) or 0)


def name_of(setting: Setting) -> str:
    """The name of a measured setting in a chart."""
    kind = description(setting.mechanism)
    return kind.settings.short.format(kind.setting(setting))


def points(report: Report, protection: Protection, collection: CollectionFacts) -> list[Point]:
    """A collection's measurements of a mechanism, each with the epsilon of its setting in a window with this window's
    coalition, queries and delta. Measurements without an epsilon are omitted.
    """
    result = []
    for setting in settings_of(protection.kind):
        share, error = map(float, setting.actual[collection.name])
        x = _x(report, setting, protection.first.document_positions)
        if math.isfinite(x):
            result.append(Point(name_of(setting), x, strength(setting), share / 100, error / 100))
    return sorted(result, key=lambda p: p.x)


def _x(report: Report, setting: Setting, positions: int) -> float:
    f = report.figures
    try:
        return description(setting.mechanism).place(
            setting, accounts=f.k_max, queries=f.n, delta=f.delta, positions=positions
        )
    except RagAuditError:  # the accountant refuses these parameters, and a check has reported it
        return math.inf


def between(protection: Protection) -> tuple[Setting | None, Setting | None]:
    """The measured settings on either side of the policy's, the weaker one first; None if there is none."""
    own = protection.kind.setting(protection.first)
    measured = sorted(settings_of(protection.kind), key=strength)
    if own is None:
        return None, None
    below = [s for s in measured if strength(s) <= float(own) * 1.005]
    above = [s for s in measured if strength(s) >= float(own) * 0.995]
    return (below[-1] if below else None), (above[0] if above else None)


def differences(report: Report, protection: Protection) -> list[tuple[str, str, str]]:
    """The differences between this window and the measured ones: the property, its measured value, its value here."""
    measured, t = study(), protection.first
    sizes = [c.positions for c in measured.collections]
    window = measured.score_window
    embedder = report.window.embedder.partition(",")[0]  # which its manifest's digest follows
    rows = [
        (marked("embedder"), measured.embedder, embedder, measured.embedder == embedder),
        (marked("passages in one answer"), f"{measured.top_k}", f"{t.longest}", measured.top_k == t.longest),
        (marked("positions"), f"{min(sizes):,}..{max(sizes):,}", f"{t.capacity:,}",
         min(sizes) <= t.capacity <= max(sizes)),
        (marked("scores"), f"{window[0]:,}..{window[1]:,}", f"{t.score_lo:,}..{t.score_hi:,}",
         window == [t.score_lo, t.score_hi]),
    ]  # fmt: skip
    return [(what, there, here) for what, there, here, same in rows if not same]
