"""Compares all figures of a run with the paper's figures, with theory and with the certified bounds.

Distances are in standard errors. The model of a comparison: distances of different figures are independent and
standard normal. The number of figures further than `NEAR` standard errors is then binomial, and the summary states
the probability of at least the observed number. Figures of one cell share their trials, so the model is approximate.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from scipy import stats

from rag_audit._internal.canonical import Json
from rag_audit.lab.experiments.model import Line

NEAR = 2.0
"""Maximum distance in standard errors between two figures that count as equal."""
SAME = 0.005
"""Maximum relative difference of two figures without a standard error that count as equal."""
BEYOND = 2 * NormalDist().cdf(-NEAR)
"""Probability that a standard normal distance is beyond `NEAR`."""
Unit = Literal["AUC", "true-positive rate", "epsilon"]


@dataclass(frozen=True)
class Distances:
    """Figures with a reference value, each with its distance in standard errors.

    :param far: the figures that are further than `NEAR` standard errors
    """

    compared: int
    far: Sequence[tuple[Line, float]]

    @classmethod
    def of(cls, distances: Iterable[tuple[Line, float]]) -> Distances:
        """Count the figures and collect the far ones."""
        pairs = list(distances)
        return cls(len(pairs), [(line, d) for line, d in pairs if abs(d) > NEAR])

    @property
    def expected(self) -> float:
        """The expected number of far figures under the model."""
        return self.compared * BEYOND

    @property
    def probability(self) -> float:
        """The probability of at least the observed number of far figures under the model.

        >>> Distances(20, []).probability
        1.0
        """
        return float(stats.binom.sf(len(self.far) - 1, self.compared, BEYOND))

    def as_json(self) -> dict[str, Json]:
        """JSON form, with reals as decimal strings."""
        return {
            "compared": self.compared,
            "far": [line.place for line, _ in self.far],
            "expected_far": f"{self.expected:.2f}",
            "probability": f"{self.probability:.3g}",
        }

    def text(self, name: str) -> str:
        """One line for people."""
        return (
            f"{name}: {self.compared} figures, {len(self.far)} further than {NEAR:g} standard errors"
            f" ({self.expected:.1f} expected; probability of {len(self.far)} or more: {self.probability:.2g})"
        )


@dataclass(frozen=True)
class Bounded:
    """Figures of one unit with a certified upper bound.

    :param sampled: figures with a standard error
    :param highest: of these, the largest distance above the bound in standard errors; negative below the bound
    :param computed: figures without a standard error
    :param smallest: of these, the smallest difference to the bound, in the unit
    """

    unit: Unit
    sampled: int
    highest: tuple[Line, float] | None
    computed: int
    smallest: tuple[Line, float] | None

    @classmethod
    def of(cls, unit: Unit, lines: Sequence[Line]) -> Bounded:
        """Collect the figures of a unit."""
        above, below = [], []
        for line in lines:
            f = line.figure
            if f.bound is not None and unit_of(f.name) == unit:
                if f.error > 0:
                    above.append((line, (f.value - f.bound) / f.error))
                else:
                    below.append((line, f.bound - f.value))
        return cls(
            unit,
            len(above),
            max(above, key=lambda pair: pair[1], default=None),
            len(below),
            min(below, key=lambda pair: pair[1], default=None),
        )

    @property
    def probability(self) -> float:
        """The probability of a distance of at least `highest` above the bound, if each figure attained its bound."""
        if self.highest is None:
            return 1.0
        return 1 - NormalDist().cdf(self.highest[1]) ** self.sampled

    def as_json(self) -> dict[str, Json]:
        """JSON form, with reals as decimal strings."""
        return {
            "sampled": self.sampled,
            "highest_se": None if self.highest is None else f"{self.highest[1]:.2f}",
            "highest": None if self.highest is None else self.highest[0].place,
            "probability": f"{self.probability:.3g}",
            "computed": self.computed,
            "smallest_difference": None if self.smallest is None else f"{self.smallest[1]:.4g}",
            "smallest": None if self.smallest is None else self.smallest[0].place,
        }

    def text(self) -> list[str]:
        """Lines for people."""
        result = []
        if self.highest is not None:
            line, distance = self.highest
            where = "above its bound" if distance > 0 else "below its bound"
            result.append(
                f"bounds on {self.unit}: {self.sampled} measured figures; the highest is {abs(distance):.1f} standard"
                f" errors {where} ({line.place}; probability {self.probability:.2g} if all attain their bounds)"
            )
        if self.smallest is not None:
            line, distance = self.smallest
            result.append(
                f"bounds on {self.unit}: {self.computed} computed figures; the nearest is {distance:.3g} below its"
                f" bound ({line.place})"
            )
        return result


@dataclass(frozen=True)
class Summary:
    """The comparison of all figures.

    :param paper: the paper's figures, each once, by one figure of this run
    :param others: further figures of this run that repeat the comparison with one of these figures
    :param rates: of the paper's figures, rates of 0 or 1, which have no distance in standard errors
    :param rates_apart: the largest difference of these rates
    :param computed: of the paper's figures, those without a standard error
    :param different: of these, the ones that differ
    :param theory: the figures with a prediction, by column
    :param bounds: the figures with a certified bound, by unit
    """

    paper: Distances
    others: Distances
    rates: int
    rates_apart: float
    computed: int
    different: Sequence[Line]
    theory: Mapping[str, Distances]
    bounds: Sequence[Bounded]

    def as_json(self) -> dict[str, Json]:
        """JSON form."""
        return {
            "paper": self.paper.as_json(),
            "others": self.others.as_json(),
            "rates": self.rates,
            "rates_apart": f"{self.rates_apart:.4g}",
            "computed": self.computed,
            "different": [line.place for line in self.different],
            "theory": {column: distances.as_json() for column, distances in self.theory.items()},
            "bounds": {bounded.unit: bounded.as_json() for bounded in self.bounds},
        }

    def text(self) -> list[str]:
        """The summary for people."""
        result = [self.paper.text("the paper's figures, each once")]
        result += [_shown(line, line.figure.paper, "the paper", d) for line, d in self.paper.far]
        result.append(self.others.text("the same figures, measured again in other cells"))
        result += [_shown(line, line.figure.paper, "the paper", d) for line, d in self.others.far]
        result.append(
            f"without a distance: {self.rates} rates of 0 or 1 in the paper, at most {self.rates_apart:.3g} apart;"
            f" {self.computed} figures without standard errors, of which {len(self.different)} differ"
        )
        result += [f"  {line.place}: {line.figure.value:.4f}, the paper {line.figure.paper:.4f}"
                   for line in self.different]  # fmt: skip
        for column, distances in self.theory.items():
            result.append(distances.text(f"theory, column {column}"))
            result += [_shown(line, line.figure.theory, "theory", d) for line, d in distances.far]
        return [*result, *(text for bounded in self.bounds for text in bounded.text())]


def _shown(line: Line, reference: float | None, whose: str, distance: float) -> str:
    return f"  {line.place}: {line.figure.value:.4f}, {whose} {reference or 0:.4f} ({distance:+.2f} s.e.)"


def unit_of(name: str) -> Unit:
    """The unit of a figure with a bound, by its name.

    >>> unit_of("user_auc"), unit_of("tpr_at_fpr_1pct"), unit_of("eps_list")
    ('AUC', 'true-positive rate', 'epsilon')
    """
    return "AUC" if name.endswith("auc") else "true-positive rate" if "tpr" in name else "epsilon"


def summarise(actual: Sequence[Line]) -> Summary:
    """Compare all figures of cells. Figures that follow from several cells are omitted: they repeat their cells."""
    lines = [line for line in actual if not line.derived]
    of_paper = [line for line in lines if line.figure.paper is not None]
    computed = [line for line in of_paper if line.figure.from_paper is None]
    first: dict[tuple[str, str, float, str], Line] = {}
    # The paper's mechanism is measured in the column of that name, so this column is compared first.
    for line in sorted(of_paper, key=lambda line: line.column != "paper"):
        first.setdefault(_identity(line), line)
    rates = [line for line in first.values() if line.figure.paper in (0, 1) and line.figure.error]
    chosen = {id(line) for line in first.values()}
    distances = [
        (line, line.figure.from_paper)
        for line in of_paper
        if line.figure.from_paper is not None and line.figure.paper not in (0, 1)
    ]
    return Summary(
        Distances.of(pair for pair in distances if id(pair[0]) in chosen),
        Distances.of(pair for pair in distances if id(pair[0]) not in chosen),
        len(rates),
        max((abs(line.figure.value - (line.figure.paper or 0)) for line in rates), default=0.0),
        len(computed),
        [line for line in computed if not _same(line.figure.value, line.figure.paper or 0.0)],
        {
            column: Distances.of(
                (line, line.figure.from_theory)
                for line in lines
                if line.column == column
                and line.figure.from_theory is not None
                and line.figure.value not in (0, 1)
            )
            for column in ("paper", "engine")
        },
        [Bounded.of(unit, lines) for unit in ("AUC", "true-positive rate", "epsilon")],
    )


def _identity(line: Line) -> tuple[str, str, float, str]:
    """The figure of the paper with which a figure is compared. Cells that measure it in another column or on another
    collection have its name and its value; rates of 0 or 1 have the same value in many cells.
    """
    paper = line.figure.paper or 0.0
    cell = line.cell.removeprefix(f"{line.column}-") if paper in (0, 1) else ""
    return line.experiment, line.figure.name, paper, cell


def _same(value: float, paper: float) -> bool:
    return abs(value - paper) <= SAME * max(1.0, abs(paper))
