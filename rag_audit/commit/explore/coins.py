"""Simulation of sampling and of listing on a provider's own documents and questions.

The mechanisms are those of docs/accounting.md, "Mechanisms based on Bernoulli bits". Kept positions are ranked by their
exact scores, without a lattice; what a window would list beyond them, where fewer than K are kept, is left out. Texts
of positions that are not kept count nowhere, since a window returns none of them.

A repetition is a window: its kept positions are drawn once. For listing, accounts ask n questions each, in an order
that the seed gives, and keep what they are listed. Coins come from numpy's PCG64 instead of a window's committed seed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import PolicyError
from rag_audit.commit.explore.samples import Sample
from rag_audit.commit.explore.simulate import Recall, recall_of
from rag_audit.mechanisms.accounting import coins, curves
from rag_audit.mechanisms.accounting.values import count, text
from rag_audit.mechanisms.descriptions.listing import DEFAULT_LISTED_MAX, THRESHOLDS, UNRELATED
from rag_audit.relation.coins import COIN_RANGE

Bits: TypeAlias = npt.NDArray[np.bool_]
Scores: TypeAlias = npt.NDArray[np.int32]
Positions: TypeAlias = npt.NDArray[np.intp]
_FORM = (
    "sampling:KEEP, or listing:KEEP:CHANCE:THRESHOLD[:MOST], such as sampling:0.9 or listing:0.7:0.00122:354"
)


class CoinPointJson(TypedDict):
    """`CoinPoint` as JSON, reals as decimal strings."""

    mechanism: str
    in_list: dict[str, Json]
    held: dict[str, Json] | None
    by_chance: dict[str, Json] | None
    texts: str
    eps: dict[str, str]
    odds_unlisted: dict[str, str]


@dataclass
class Account:
    """What an account was listed in a window, and what it would have been by chance alone."""

    held: Bits
    by_chance: Bits

    @classmethod
    def new(cls, capacity: int) -> Account:
        """An account that was listed nothing yet."""
        return cls(np.zeros(capacity, np.bool_), np.zeros(capacity, np.bool_))


@dataclass(frozen=True)
class SampledTopK:
    """The exact first K of the kept positions."""

    sampling: coins.Sampling
    remembers: ClassVar[bool] = False
    """whether an account finds more in all that it was listed than in one list"""

    @property
    def label(self) -> str:
        """The mechanism and its parameters in words."""
        return f"sampling, keep {_decimal(self.sampling.keep)}"

    def epsilon(self, accounts: int) -> float:
        """There is no finite bound over all outcomes: an exact list says what it holds."""
        return math.inf

    def check(self, capacity: int) -> None:
        """Every capacity fits."""

    def answer(
        self, scores: Scores, kept: Bits, account: Account, random: np.random.Generator, top_k: int
    ) -> dict[str, Positions]:
        """The positions with a text in which an account finds a passage, by what is counted (`CoinPoint`).

        :param scores: the raw score of every position
        :param kept: the positions that the window keeps
        """
        return {"in_list": _best(scores, kept, top_k)}


@dataclass(frozen=True)
class RandomisedList:
    """Listing by randomised response.

    :param threshold: raw score from which a position is relevant
    :param most: longest list
    """

    sampling: coins.Listing
    threshold: int
    most: int
    remembers: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """The mechanism and its parameters in words."""
        s = self.sampling
        return (
            f"listing, keep {_decimal(s.keep)}, chance {_decimal(s.chance)}, threshold {self.threshold},"
            f" at most {self.most}"
        )

    def epsilon(self, accounts: int) -> float:
        """The bound for a coalition, over all outcomes and any number of queries."""
        return self.sampling.epsilon(accounts)

    def check(self, capacity: int) -> None:
        """Refuse lists that are longer than the index.

        :raises PolicyError: they are
        """
        if self.most > capacity:
            raise PolicyError("lists are longer than the index", field="--mechanism: most",
                              expected=f"at most {capacity}", found=self.most)  # fmt: skip

    def answer(
        self, scores: Scores, kept: Bits, account: Account, random: np.random.Generator, top_k: int
    ) -> dict[str, Positions]:
        """See `SampledTopK.answer`."""
        chance = random.random(len(scores)) < self.sampling.chance / COIN_RANGE
        relevant = (scores >= self.threshold) & kept
        listed = np.flatnonzero(chance | relevant & ~account.held)[: self.most]
        account.held[listed] = True
        account.by_chance[np.flatnonzero(chance)[: self.most]] = True
        return {
            "in_list": listed[kept[listed]],
            "held": _best(scores, account.held & kept, top_k),
            "by_chance": _best(scores, account.by_chance & kept, top_k),
        }


CoinMechanism: TypeAlias = SampledTopK | RandomisedList


@dataclass(frozen=True)
class CoinPoint:
    """What one mechanism finds, and what it promises.

    :param in_list: a question's passages in the list that answers it
    :param held: a question's passages among the account's best K of all that it was listed so far; None for mechanisms
        that list again what an account holds
    :param by_chance: the same for lists of chance alone
    :param texts: documents in a list, on average
    :param eps: bound over all outcomes by size of the coalition
    :param odds_unlisted: the most by which the absence of a document of one position becomes more likely for a
        coalition that never received it, by size of the coalition
    """

    mechanism: CoinMechanism
    in_list: Recall
    held: Recall | None
    by_chance: Recall | None
    texts: float
    eps: dict[int, float]
    odds_unlisted: dict[int, float]

    @property
    def recall(self) -> Recall:
        """What an account finds that keeps what it was listed."""
        return self.held or self.in_list

    def as_json(self) -> CoinPointJson:
        """JSON form, reals as decimal strings."""
        return {
            "mechanism": self.mechanism.label,
            "in_list": self.in_list.as_json(),
            "held": None if self.held is None else self.held.as_json(),
            "by_chance": None if self.by_chance is None else self.by_chance.as_json(),
            "texts": f"{self.texts:.2f}",
            "eps": {str(k): text(eps) for k, eps in self.eps.items()},
            "odds_unlisted": {str(k): text(odds) for k, odds in self.odds_unlisted.items()},
        }


def parse_mechanism(written: str) -> CoinMechanism:
    """Read a mechanism from a command's option.

    :raises PolicyError: it is not of the form, or a parameter is out of range
    """
    form = re.fullmatch(r"sampling:([^:]+)|listing:([^:]+):([^:]+):([0-9]{1,9})(?::([0-9]{1,9}))?", written)
    if form is None:
        raise PolicyError("not a mechanism", field="--mechanism", expected=_FORM, found=written)
    if form[1] is not None:
        return SampledTopK(coins.Sampling(curves.coin_of(form[1], "--mechanism: keep")))
    keep, chance = (curves.coin_of(form[g], f"--mechanism: {n}") for g, n in ((2, "keep"), (3, "chance")))
    most = count(int(form[5] or DEFAULT_LISTED_MAX), "--mechanism: most")
    return RandomisedList(coins.Listing(keep, chance), count(int(form[4]), "--mechanism: threshold"), most)


def default_mechanisms(embedder: str, capacity: int) -> list[CoinMechanism]:
    """Two of each mechanism, as far as the embedder has a threshold."""
    keeps = [curves.coin_of(keep, "keep") for keep in ("0.9", "0.7")]
    out: list[CoinMechanism] = [SampledTopK(coins.Sampling(keep)) for keep in keeps]
    threshold = THRESHOLDS.get(embedder)
    if threshold is not None and capacity > 2 * UNRELATED:
        chance = curves.coin_of(Decimal(UNRELATED) / capacity, "chance")
        most = min(DEFAULT_LISTED_MAX, capacity)
        out += [RandomisedList(coins.Listing(keep, chance), threshold, most) for keep in keeps]
    return out


def measure(
    sample: Sample,
    mechanism: CoinMechanism,
    *,
    top_k: int,
    n: int,
    ks: Iterable[int],
    repeats: int,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> CoinPoint:
    """What a mechanism finds of the sample's passages.

    :param n: questions that an account asks in a window
    :param ks: sizes of coalitions
    :param repeats: windows, in each of which every question is asked once
    :raises PolicyError: a parameter is out of range
    """
    capacity = sample.index.capacity
    if not 1 <= top_k <= capacity:
        raise PolicyError("K out of range", field="K", expected=f"1..{capacity}", found=top_k)
    mechanism.check(capacity)
    count(n, "n")
    sizes = list(ks)
    found, filled = _Found.of(len(sample.queries)), frozenset(sample.index.positions)
    for repeat in range(repeats):
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, repeat])))
        kept = random.random(capacity) < mechanism.sampling.keep / COIN_RANGE
        account = Account.new(capacity)
        for place, number in enumerate(random.permutation(len(sample.queries))):
            if place % n == 0:
                account = Account.new(capacity)
            scores, wanted = sample.index.scores(sample.queries[number]), sample.relevant[number]
            answer = mechanism.answer(scores, kept, account, random, top_k)
            for name, positions in answer.items():
                found.note(number, name, positions, wanted)
            found.texts += len(filled.intersection(answer["in_list"].tolist()))
        if progress is not None:
            progress(repeat + 1, repeats)
    return CoinPoint(
        mechanism=mechanism,
        in_list=found.recall("in_list", repeats),
        held=found.recall("held", repeats) if mechanism.remembers else None,
        by_chance=found.recall("by_chance", repeats) if mechanism.remembers else None,
        texts=found.texts / (repeats * len(sample.queries)),
        eps={k: mechanism.epsilon(k) for k in sizes},
        odds_unlisted={k: mechanism.sampling.odds_unlisted(n * k) for k in sizes},
    )


@dataclass
class _Found:
    """Shares of passages found and whether any was, by what is counted, question by question."""

    shares: dict[str, npt.NDArray[np.float64]]
    hits: dict[str, npt.NDArray[np.float64]]
    texts: int = 0

    @classmethod
    def of(cls, questions: int) -> _Found:
        names = ("in_list", "held", "by_chance")
        return cls({k: np.zeros(questions) for k in names}, {k: np.zeros(questions) for k in names})

    def note(self, number: int, name: str, positions: Positions, wanted: frozenset[int]) -> None:
        found = len(wanted.intersection(positions.tolist()))
        self.shares[name][number] += found / len(wanted)
        self.hits[name][number] += bool(found)

    def recall(self, name: str, repeats: int) -> Recall:
        return recall_of(self.shares[name] / repeats, self.hits[name] / repeats)


def _best(scores: Scores, among: Bits, top_k: int) -> Positions:
    """The first K of some positions: larger score, then smaller position."""
    places = np.flatnonzero(among)
    return places[np.argsort(-scores[places], kind="stable")[:top_k]]


def _decimal(coin: int) -> str:
    return f"{coin / COIN_RANGE:.9g}"
