"""The definition of an experiment: cells that are measured one by one, and figures for comparison with the paper's."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import SchemaError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Picture

Size = Literal["test", "full"]
Column = Literal["paper", "engine"]
"""The paper's idealised Gaussian mechanism, or the engine that the proofs attest."""
Value: TypeAlias = int | float | str
Real: TypeAlias = float

CONFIDENCE = 0.9999
"""The one-sided confidence of each lower limit that is compared with a bound. For a hundred attacks that are as
strong as their bounds, the total probability of a false alarm is at most 1 %."""
LIMIT_ERRORS = NormalDist().inv_cdf(CONFIDENCE)
"""The same in standard errors."""


@dataclass(frozen=True)
class Cell:
    """One point of an experiment's grid.

    :param key: unique in its experiment, and the name of its file
    :param parameters: the input of `Experiment.run`
    """

    key: str
    column: Column
    parameters: Mapping[str, Value]

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]


@dataclass(frozen=True)
class Figure:
    """One measured number, and its reference values.

    :param error: its standard error; 0 for a number that is computed and not sampled
    :param paper: the paper's number, with the standard error that its number of trials gives it
    :param theory: the number that a closed form or an exact computation predicts
    :param bound: the certified upper bound; the figure's lower confidence limit must lie below
    """

    name: str
    value: Real
    error: Real = 0.0
    paper: Real | None = None
    paper_error: Real = 0.0
    theory: Real | None = None
    bound: Real | None = None
    note: str = ""

    @property
    def from_paper(self) -> float | None:
        """The distance from the paper's number in standard errors of the difference."""
        return (
            None if self.paper is None else _distance(self.value - self.paper, self.error, self.paper_error)
        )

    @property
    def from_theory(self) -> float | None:
        """The distance from the predicted number in standard errors."""
        return None if self.theory is None else _distance(self.value - self.theory, self.error)

    @property
    def lower(self) -> float:
        """The lower confidence limit (`CONFIDENCE`)."""
        return self.value - LIMIT_ERRORS * self.error

    @property
    def room(self) -> float | None:
        """How far the certified bound lies above the lower confidence limit."""
        return None if self.bound is None else self.bound - self.lower

    def as_json(self) -> dict[str, Json]:
        """JSON form, with reals as decimal strings, without empty fields."""
        named: dict[str, Json] = {}
        for place in fields(self):
            value = getattr(self, place.name)
            if value is not None and value != "" and (value != place.default or place.name == "value"):
                named[place.name] = value if isinstance(value, str) else repr(float(value))
        return named

    @classmethod
    def parse(cls, value: Json, *, field: str) -> Figure:
        """The inverse of `as_json`.

        :raises SchemaError: the value is no figure
        """
        try:
            if not isinstance(value, dict):
                raise TypeError
            texts = {k: v if k in ("name", "note") else float(str(v)) for k, v in value.items()}
            return cls(**texts)  # type: ignore[arg-type]
        except (TypeError, ValueError) as exc:
            raise SchemaError("the value is not a figure", field=field) from exc


def _distance(difference: float, *errors: float) -> float | None:
    total = math.hypot(*errors)
    return difference / total if total > 0 else None


@dataclass(frozen=True)
class Row:
    """A figure with its place: the figure of a cell, or one derived from several cells (`cell` is then its name)."""

    cell: str
    figure: Figure
    column: Column | None = None


@dataclass(frozen=True)
class Line:
    """A figure of the report with its place.

    :param derived: whether the figure follows from several cells
    """

    experiment: str
    cell: str
    column: Column | None
    figure: Figure
    derived: bool = False

    @property
    def place(self) -> str:
        """Its place in words."""
        return f"{self.experiment}, {self.cell}, {self.figure.name}"


Results: TypeAlias = Mapping[str, Sequence[tuple[Cell, Sequence[Figure]]]]
"""The figures of each experiment's cells, in the order of its grid."""


def no_cells(size: Size) -> list[Cell]:
    """For experiments that only read other experiments' cells."""
    return []


def nothing_measured(cell: Cell, rng: np.random.Generator) -> list[Figure]:
    """For experiments that only read other experiments' cells."""
    return []


def nothing_derived(results: Results) -> list[Row]:
    """For experiments that have only the figures of their cells."""
    return []


@dataclass(frozen=True)
class Experiment:
    """A figure, table or claim of the paper with a repeatable measurement.

    :param place: where it is in the paper
    :param cells: the grid at a size
    :param run: measures one cell with a generator that belongs to the cell
    :param derive: figures that follow from several cells
    :param draw: draws the results
    :param after: experiments with further results for `derive` and `draw`
    :param needs: modules that must be installed
    """

    name: str
    place: str
    title: str
    cells: Callable[[Size], list[Cell]]
    run: Callable[[Cell, np.random.Generator], list[Figure]]
    derive: Callable[[Results], list[Row]] = nothing_derived
    draw: Callable[[Results, Picture], None] | None = None
    after: tuple[str, ...] = ()
    needs: tuple[str, ...] = field(default=())


def generator(seed: int, experiment: str, cell: str) -> np.random.Generator:
    """The generator of one cell, which depends on no other cell and on no order."""
    words = np.frombuffer(hashlib.sha256(f"{experiment}/{cell}".encode()).digest(), "<u4")
    return np.random.default_rng(np.random.SeedSequence([seed, *map(int, words)]))


def in_place(results: Results, experiment: str) -> dict[str, dict[str, Figure]]:
    """An experiment's figures by cell and name."""
    return {cell.key: {f.name: f for f in figures} for cell, figures in results.get(experiment, ())}
