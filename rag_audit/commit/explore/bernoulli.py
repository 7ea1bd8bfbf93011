"""Simulation of sampling, pooled listing and randomized response on a provider's own documents and questions.

The mechanisms are defined in docs/accounting.md, "Mechanisms based on Bernoulli bits". Sampled positions are ranked by
their exact scores, without a lattice. If fewer than K positions are sampled, a window fills its list with other
positions; the simulation omits them. Texts of unsampled positions do not count, since a window returns none of them.

A repetition is one window: its sample is drawn once. For randomized response, each account asks n questions, in an
order given by the seed, and stores its listed documents. For pooled listing, a window ends after m questions of all
accounts, and a repetition has as many windows as all questions need; each position is a document. The Bernoulli bits
come from numpy's PCG64 instead of a window's committed seed.
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
from rag_audit.mechanisms.accounting import bernoulli, curves, documents
from rag_audit.mechanisms.accounting.values import count, text
from rag_audit.mechanisms.descriptions.pooled_listing import UNREQUESTED
from rag_audit.mechanisms.descriptions.randomized_response import DEFAULT_LISTED_MAX, THRESHOLDS, UNRELATED
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

Bits: TypeAlias = npt.NDArray[np.bool_]
Scores: TypeAlias = npt.NDArray[np.int32]
Positions: TypeAlias = npt.NDArray[np.intp]
_FORM = (
    "sampling:KEEP, pooled-listing:KEEP:F:THRESHOLD, or randomized-response:KEEP:FLIP_PROBABILITY:THRESHOLD[:MAXIMUM],"
    " such as sampling:0.9 or randomized-response:0.7:0.00122:900"
)


class BernoulliPointJson(TypedDict):
    """`BernoulliPoint` as JSON, reals as decimal strings."""

    mechanism: str
    in_list: dict[str, Json]
    disclosed: dict[str, Json] | None
    by_chance: dict[str, Json] | None
    texts: str
    eps: dict[str, str]
    exclusion_factor: dict[str, str]


@dataclass
class Account:
    """The positions listed to an account in a window, and the positions that chance without relevance would have
    listed."""

    disclosed: Bits
    by_chance: Bits

    @classmethod
    def new(cls, capacity: int) -> Account:
        """An account without listed positions."""
        return cls(np.zeros(capacity, np.bool_), np.zeros(capacity, np.bool_))


@dataclass(frozen=True)
class SampledTopK:
    """The exact first K of the sampled positions."""

    sampling: bernoulli.Sampling
    remembers: ClassVar[bool] = False
    """whether an account finds more in all that it was listed than in one list"""
    window: ClassVar[int | None] = None
    """the questions of all accounts in one window; None if a window has any number of them"""

    @property
    def label(self) -> str:
        """The mechanism and its parameters in words."""
        return f"sampling, keep {_decimal(self.sampling.keep)}"

    def epsilon(self, accounts: int) -> float:
        """Returns infinity: no finite bound over all outcomes exists, because an exact list reveals its content."""
        return math.inf

    def exclusion_factor(self, queries: int) -> float:
        """The factor for a document of one position that accounts never received with so many queries in all."""
        return self.sampling.exclusion_factor(queries)

    def check(self, capacity: int) -> None:
        """Every capacity fits."""

    def answer(
        self, scores: Scores, sampled: Bits, account: Account, random: np.random.Generator, top_k: int
    ) -> dict[str, Positions]:
        """The positions, with their texts, in which an account can find a passage, by counting method
        (`BernoulliPoint`).

        :param scores: the raw score of every position
        :param sampled: the sampled positions of the window
        """
        return {"in_list": _best(scores, sampled, top_k)}


@dataclass(frozen=True)
class RandomizedList:
    """Randomized response.

    :param threshold: minimum raw score of a relevant position
    :param maximum: maximum length of a list
    """

    sampling: bernoulli.RandomizedResponse
    threshold: int
    maximum: int
    remembers: ClassVar[bool] = True
    window: ClassVar[int | None] = None

    @property
    def label(self) -> str:
        """The mechanism and its parameters in words."""
        s = self.sampling
        return (
            f"randomized response, keep {_decimal(s.keep)}, flip probability {_decimal(s.flip_probability)},"
            f" threshold {self.threshold}, at most {self.maximum}"
        )

    def epsilon(self, accounts: int) -> float:
        """The bound for a coalition, over all outcomes and any number of queries."""
        return self.sampling.epsilon(accounts)

    def exclusion_factor(self, queries: int) -> float:
        """See `SampledTopK.exclusion_factor`."""
        return self.sampling.exclusion_factor(queries)

    def check(self, capacity: int) -> None:
        """Refuse lists that are longer than the index.

        :raises PolicyError: they are
        """
        if self.maximum > capacity:
            raise PolicyError("lists are longer than the index", field="--mechanism: maximum",
                              expected=f"at most {capacity}", actual=self.maximum)  # fmt: skip

    def answer(
        self, scores: Scores, sampled: Bits, account: Account, random: np.random.Generator, top_k: int
    ) -> dict[str, Positions]:
        """See `SampledTopK.answer`."""
        flips = random.random(len(scores)) < self.sampling.flip_probability / PROBABILITY_RANGE
        relevant = (scores >= self.threshold) & sampled
        listed = np.flatnonzero(flips | relevant & ~account.disclosed)[: self.maximum]
        account.disclosed[listed] = True
        account.by_chance[np.flatnonzero(flips)[: self.maximum]] = True
        return {
            "in_list": listed[sampled[listed]],
            "disclosed": _best(scores, account.disclosed & sampled, top_k),
            "by_chance": _best(scores, account.by_chance & sampled, top_k),
        }


@dataclass(frozen=True)
class PooledList:
    """Pooled listing: one set of listed documents for all accounts (docs/accounting.md, "Pooled listing").

    :param flip_probability: q over 2^40, which the m questions of a window and f determine
    :param threshold: minimum raw score of a relevant position
    :param window: m, the questions of all accounts in one window
    """

    sampling: bernoulli.Sampling
    flip_probability: int
    threshold: int
    window: int
    remembers: ClassVar[bool] = False

    @classmethod
    def of(cls, keep: int, unrequested: str, threshold: int, queries: int) -> PooledList:
        """Pooled listing with the flip probability of f and m.

        :param keep: pi over 2^40
        :param unrequested: f, a decimal between 0 and 1
        :param queries: m
        :raises PolicyError: a parameter is out of range
        """
        flip_probability = documents.flip_probability_for(unrequested, queries=queries)
        return cls(bernoulli.Sampling(keep), flip_probability, threshold, queries)

    @property
    def label(self) -> str:
        """The mechanism and its parameters in words."""
        return (
            f"pooled listing, keep {_decimal(self.sampling.keep)}, m {self.window}, flip probability"
            f" {_decimal(self.flip_probability)}, threshold {self.threshold}"
        )

    def epsilon(self, accounts: int) -> float:
        """The bound on everything that all accounts see until a document is listed: the same for any number of them."""
        return documents.pooled_epsilon(self.sampling.keep, self.flip_probability)

    def exclusion_factor(self, queries: int) -> float:
        """See `SampledTopK.exclusion_factor`: all m questions count, since chance lists a document for all accounts."""
        return documents.pooled_factor(self.sampling.keep, self.flip_probability, queries=self.window)

    def check(self, capacity: int) -> None:
        """Every capacity fits."""

    def answer(
        self, scores: Scores, sampled: Bits, account: Account, random: np.random.Generator, top_k: int
    ) -> dict[str, Positions]:
        """See `SampledTopK.answer`. The texts of all places of an answer are returned, inside the sample or not.

        :param account: stands for all accounts of the tenant: the set of listed positions, which this request extends
        """
        chance = random.random(len(scores)) < self.flip_probability / PROBABILITY_RANGE
        account.disclosed |= chance | (scores >= self.threshold) & sampled
        return {"in_list": _best(scores, account.disclosed & (scores > 0), top_k)}


BernoulliMechanism: TypeAlias = SampledTopK | PooledList | RandomizedList


@dataclass(frozen=True)
class BernoulliPoint:
    """The retrieval results and the guarantee of one mechanism.

    :param in_list: a question's passages in the list that answers it
    :param disclosed: a question's passages among the best K of all documents listed to the account so far; None for
        mechanisms that may list a document to an account more than once
    :param by_chance: the same for lists drawn by chance without relevance
    :param texts: documents in a list, on average
    :param eps: bound over all outcomes by size of the coalition
    :param exclusion_factor: the maximum factor by which the absence of a document of one position becomes more likely
        for a coalition that never received it, by size of the coalition
    """

    mechanism: BernoulliMechanism
    in_list: Recall
    disclosed: Recall | None
    by_chance: Recall | None
    texts: float
    eps: dict[int, float]
    exclusion_factor: dict[int, float]

    @property
    def recall(self) -> Recall:
        """The recall of an account that stores its listed documents."""
        return self.disclosed or self.in_list

    def as_json(self) -> BernoulliPointJson:
        """JSON form, reals as decimal strings."""
        return {
            "mechanism": self.mechanism.label,
            "in_list": self.in_list.as_json(),
            "disclosed": None if self.disclosed is None else self.disclosed.as_json(),
            "by_chance": None if self.by_chance is None else self.by_chance.as_json(),
            "texts": f"{self.texts:.2f}",
            "eps": {str(k): text(eps) for k, eps in self.eps.items()},
            "exclusion_factor": {str(k): text(odds) for k, odds in self.exclusion_factor.items()},
        }


def parse_mechanism(written: str, queries: int = 1) -> BernoulliMechanism:
    """Read a mechanism from a command's option.

    :param queries: m, the questions of all accounts in a window, which determines the flip probability of pooled
        listing
    :raises PolicyError: it is not of the form, or a parameter is out of range
    """
    form = re.fullmatch(
        r"sampling:([^:]+)|randomized-response:([^:]+):([^:]+):([0-9]{1,9})(?::([0-9]{1,9}))?"
        r"|pooled-listing:([^:]+):([^:]+):([0-9]{1,9})", written
    )  # fmt: skip
    if form is None:
        raise PolicyError(
            "the option names no mechanism", field="--mechanism", expected=_FORM, actual=written
        )
    if form[1] is not None:
        return SampledTopK(bernoulli.Sampling(curves.probability_over_range(form[1], "--mechanism: keep")))
    if form[6] is not None:
        return PooledList.of(
            curves.probability_over_range(form[6], "--mechanism: keep"), form[7],
            count(int(form[8]), "--mechanism: threshold"), queries,
        )  # fmt: skip
    keep, flip_probability = (
        curves.probability_over_range(form[g], f"--mechanism: {n}")
        for g, n in ((2, "keep"), (3, "flip probability"))
    )
    maximum = count(int(form[5] or DEFAULT_LISTED_MAX), "--mechanism: maximum")
    return RandomizedList(
        bernoulli.RandomizedResponse(keep, flip_probability),
        count(int(form[4]), "--mechanism: threshold"),
        maximum,
    )


def default_mechanisms(
    embedder: str, capacity: int, relevance: int | None, queries: int
) -> list[BernoulliMechanism]:
    """Two of each mechanism, as far as the embedder has a threshold.

    :param relevance: the embedder's minimum raw score of a relevant passage, the threshold of pooled listing; None if
        it is unknown
    :param queries: m, the questions of all accounts in a window of pooled listing
    """
    keeps = [curves.probability_over_range(keep, "keep") for keep in ("0.9", "0.7")]
    out: list[BernoulliMechanism] = [SampledTopK(bernoulli.Sampling(keep)) for keep in keeps]
    if relevance is not None:
        out += [PooledList.of(keep, UNREQUESTED, relevance, queries) for keep in keeps]
    threshold = THRESHOLDS.get(embedder)
    if threshold is not None and capacity > 2 * UNRELATED:
        flip_probability = curves.probability_over_range(Decimal(UNRELATED) / capacity, "flip probability")
        maximum = min(DEFAULT_LISTED_MAX, capacity)
        out += [
            RandomizedList(bernoulli.RandomizedResponse(keep, flip_probability), threshold, maximum)
            for keep in keeps
        ]
    return out


def measure(
    sample: Sample,
    mechanism: BernoulliMechanism,
    *,
    top_k: int,
    n: int,
    ks: Iterable[int],
    repeats: int,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> BernoulliPoint:
    """Measure how many of the sample's passages a mechanism finds.

    :param n: number of questions of an account in a window
    :param ks: sizes of coalitions
    :param repeats: number of windows; each window asks every question once
    :raises PolicyError: a parameter is out of range
    """
    capacity = sample.index.capacity
    if not 1 <= top_k <= capacity:
        raise PolicyError("K out of range", field="K", expected=f"1..{capacity}", actual=top_k)
    mechanism.check(capacity)
    count(n, "n")
    sizes = list(ks)
    result, filled = _Found.of(len(sample.queries)), frozenset(sample.index.positions)
    for repeat in range(repeats):
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, repeat])))
        sampled = random.random(capacity) < mechanism.sampling.keep / PROBABILITY_RANGE
        account = Account.new(capacity)
        for place, number in enumerate(random.permutation(len(sample.queries))):
            if mechanism.window is not None and place and place % mechanism.window == 0:
                sampled = random.random(capacity) < mechanism.sampling.keep / PROBABILITY_RANGE
            if place % (mechanism.window or n) == 0:
                account = Account.new(capacity)
            scores, wanted = sample.index.scores(sample.queries[number]), sample.relevant[number]
            answer = mechanism.answer(scores, sampled, account, random, top_k)
            for name, positions in answer.items():
                result.note(number, name, positions, wanted)
            result.texts += len(filled.intersection(answer["in_list"].tolist()))
        if progress is not None:
            progress(repeat + 1, repeats)
    return BernoulliPoint(
        mechanism=mechanism,
        in_list=result.recall("in_list", repeats),
        disclosed=result.recall("disclosed", repeats) if mechanism.remembers else None,
        by_chance=result.recall("by_chance", repeats) if mechanism.remembers else None,
        texts=result.texts / (repeats * len(sample.queries)),
        eps={k: mechanism.epsilon(k) for k in sizes},
        exclusion_factor={k: mechanism.exclusion_factor(n * k) for k in sizes},
    )


@dataclass
class _Found:
    """Shares of passages found, and whether any passage was found, by counting method, question by question."""

    shares: dict[str, npt.NDArray[np.float64]]
    hits: dict[str, npt.NDArray[np.float64]]
    texts: int = 0

    @classmethod
    def of(cls, questions: int) -> _Found:
        names = ("in_list", "disclosed", "by_chance")
        return cls({k: np.zeros(questions) for k in names}, {k: np.zeros(questions) for k in names})

    def note(self, number: int, name: str, positions: Positions, wanted: frozenset[int]) -> None:
        result = len(wanted.intersection(positions.tolist()))
        self.shares[name][number] += result / len(wanted)
        self.hits[name][number] += bool(result)

    def recall(self, name: str, repeats: int) -> Recall:
        return recall_of(self.shares[name] / repeats, self.hits[name] / repeats)


def _best(scores: Scores, among: Bits, top_k: int) -> Positions:
    """The first K of some positions: larger score, then smaller position."""
    places = np.flatnonzero(among)
    return places[np.argsort(-scores[places], kind="stable")[:top_k]]


def _decimal(coin: int) -> str:
    return f"{coin / PROBABILITY_RANGE:.9g}"
