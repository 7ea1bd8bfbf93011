"""The interface of a mechanism under attack: how the reference engine selects positions from a query's raw scores.

The lattice, the order and the alias table are the engine's; the draws come from numpy's PCG64 instead of a window's
committed seed, as in `commit.explore`, so that a hundred thousand answers take seconds.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from rag_audit.mechanisms.base import Mechanism
from rag_audit.mechanisms.descriptions import Description, chosen, description
from rag_audit.models.attacks import AttackedMechanism
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.relation.scores import ScoreWindow

Ints: TypeAlias = npt.NDArray[np.int32]
Bits: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
Defence = Literal["none", "mirabel", "mirabel-plain", "prompt", "paraphrase"]
"""Mirabel on the scores that the mechanism leaves, or on exact scores under it; a guarded prompt; rewritten queries."""
ON_ANSWERS: frozenset[Defence] = frozenset({"none", "prompt", "paraphrase"})
"""The defences that do not read the index: a bound on lists covers an answer that they change."""
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Written:
    """A value of the option --mechanism, and the corpus that it applies to.

    :param text: the value
    :param window: the embedder's score window
    :param capacity: number of positions
    :param expected: the forms of all values, for errors
    :param relevance: the embedder's minimum raw score of a relevant passage; None if it is unknown
    """

    text: str
    window: ScoreWindow
    capacity: int
    expected: str
    relevance: int | None = None


@dataclass(frozen=True)
class Usual:
    """A value of the option --mechanism that a run uses by default.

    :param words: its short name in a report
    :param defences: the defences that a run adds to it
    """

    option: str
    words: str
    defences: tuple[Defence, ...] = ()


@dataclass(frozen=True)
class Selected:
    """The positions of an answer, best first.

    :param hidden: the position that Mirabel hid, or None
    """

    positions: tuple[int, ...]
    hidden: int | None = None


class Attacked(ABC):
    """A mechanism of the reference engine under attack.

    :param mechanism: the mechanism with its parameters; its tenant's numbers are unused
    """

    name: ClassVar[str]
    form: ClassVar[str]
    """the form of its values of the option --mechanism"""
    usual: ClassVar[tuple[Usual, ...]]
    defences: ClassVar[frozenset[Defence]] = frozenset({*ON_ANSWERS, "mirabel", "mirabel-plain"})
    """the defences that are defined under it"""
    bounded: ClassVar[frozenset[Defence]] = ON_ANSWERS
    """the defences under which its bound covers the answers: a defence that reads exact scores is not among them"""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    @classmethod
    def read(cls, written: Written) -> Self:
        """The mechanism of a value of the option: by default in the form of `provider policy new --mechanism`.

        :raises PolicyError: the text does not have the form, or a parameter is out of range
        """
        w = written
        return cls(
            chosen(w.text, whole=w.text, expected=w.expected, relevance=w.relevance)
        )  # fmt: skip

    @property
    def parameters(self) -> AttackedMechanism:
        """The mechanism as attacks.json has it, in a policy's units."""
        values = self._words().parameters(self.mechanism)
        return AttackedMechanism.parse({"kind": self.name, **values}, field="mechanism")

    @property
    def label(self) -> str:
        """The mechanism in words."""
        return self._words().described(self.parameters)

    def certified(self, accounts: int, queries: int, delta: str) -> tuple[float, float | None]:
        """The certified bounds for this number of accounts with this number of queries each: epsilon over lists, and
        the ceiling of the AUC of any test on lists that decides whether a position has one document, another or none.
        Epsilon is infinite, and the ceiling None, without a certified bound.

        :param delta: delta_policy, which only noise needs
        """
        return self._words().certified(self.mechanism, accounts, queries, delta)

    def delta(self, delta: str) -> str | int:
        """The delta of its bound: 0, or that of the policy."""
        return delta if self.mechanism.uses_delta else 0

    def _words(self) -> type[Description]:
        return description(self.name)

    @abstractmethod
    def select(self, window: Window, scores: Ints, account: int, read: Ints) -> Selected:
        """The positions that answer one query of an account.

        :param window: the window's sample, listed positions and source of draws
        :param scores: the raw score of every position, shape (capacity,)
        :param read: the scores that an account uses to rank its received texts
        """


class Ranked(Attacked):
    """A mechanism that ranks the exact scores of the sampled positions."""

    def select(self, window: Window, scores: Ints, account: int, read: Ints) -> Selected:
        """See `Attacked.select`."""
        scores = scores * window.sampled
        hidden = window.hidden(scores)
        return window.without(first(scores, window.wanted(hidden)), hidden)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Selects positions as a tenant's engine does.

    :param filled: the positions with documents; Mirabel compares only these
    :param defence: the engine's defence, of which only Mirabel changes the selection
    """

    attacked: Attacked
    capacity: int
    filled: npt.NDArray[np.intp]
    top_k: int
    defence: Defence
    seed: int

    def window(self, *name: int) -> Window:
        """A fresh window of the service, with a sample and without listed positions.

        :param name: numbers that name the window; equal names draw equally
        """
        return Window(self, np.random.Generator(np.random.PCG64(np.random.SeedSequence([self.seed, *name]))))


@dataclass(eq=False)
class Window:
    """One window: its draws, in the order of its queries.

    :param sampled: the sampled positions
    :param listed: the listed positions of the tenant, the same for all accounts
    """

    ranking: Ranking
    random: np.random.Generator
    sampled: Bits = field(init=False)
    listed: Bits = field(init=False)

    def __post_init__(self) -> None:
        capacity, mechanism = self.ranking.capacity, self.ranking.attacked.mechanism
        self.sampled, self.listed = np.ones(capacity, np.bool_), np.zeros(capacity, np.bool_)
        if mechanism.sampled:
            self.sampled = self.random.random(capacity) < mechanism.sampled_share / PROBABILITY_RANGE

    def select(self, scores: Ints, account: int, read: Ints | None = None) -> Selected:
        """The positions that answer one query of an account.

        :param scores: the raw score of every position, shape (capacity,), int32
        :param read: the scores that an account uses to rank its received texts; `scores` by default
        """
        return self.ranking.attacked.select(self, scores, account, scores if read is None else read)

    def hidden(self, scores: Ints, left: Callable[[], Floats] | None = None) -> int | None:
        """The position that Mirabel hides, if it is the engine's defence.

        :param scores: exact scores
        :param left: computes the values that the mechanism leaves of them; None where it leaves them exact
        """
        r = self.ranking
        if r.defence in ON_ANSWERS or len(r.filled) < 3:
            return None
        if r.defence == "mirabel" and left is not None:
            # All positions, including empty ones: the set of filled positions is secret, and the bound on the values
            # that the mechanism leaves covers every function of them.
            places, values = np.arange(r.capacity), left()
        else:
            places, values = r.filled, scores[r.filled].astype(np.float64)
        largest = int(np.argmax(values))
        return int(places[largest]) if values[largest] > gumbel_threshold(values) else None

    def wanted(self, hidden: int | None) -> int:
        """The number of positions to rank: one more than the answer has if Mirabel hides one."""
        return self.ranking.top_k + (hidden is not None)

    def without(self, ranked: Sequence[int], hidden: int | None) -> Selected:
        """The first K of ranked positions except the hidden position."""
        return Selected(tuple([p for p in ranked if p != hidden][: self.ranking.top_k]), hidden)


def gumbel_threshold(values: Floats, significance: float = SIGNIFICANCE) -> float:
    """Mirabel's threshold on the largest similarity (its algorithm 1). Mean and deviation are computed from all values
    except the largest; n is the number of values.

    :param values: similarities of the documents to a query, at least three
    """
    n = len(values)
    rest = np.delete(values, int(np.argmax(values)))
    mean, deviation, root = float(rest.mean()), float(rest.std()), math.sqrt(2 * math.log(n))
    return mean + deviation * root - math.log(-math.log1p(-significance)) * deviation / root


def first(scores: Ints, k: int) -> list[int]:
    """The first k positions: larger score, then smaller position."""
    k = min(k, len(scores))
    near = np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])
    order = near[np.argsort(-scores[near], kind="stable")][:k]
    return [int(p) for p in order]
