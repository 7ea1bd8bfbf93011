"""Simulation of sampling and of pooled listing on a provider's own documents and questions.

The mechanisms are defined in docs/accounting.md, "Mechanisms based on Bernoulli bits". Sampled positions are ranked by
their exact scores, without a lattice. If fewer than K positions are sampled, a window fills its list with other
positions; the simulation omits them. Texts of unsampled positions do not count, since a window returns none of them.

A repetition asks every question once, in an order given by the seed. With sampling it is one window, whose sample is
drawn once. With pooled listing, a window ends after m questions of all accounts, and a repetition has as many windows
as all questions need; each position is a document. The Bernoulli bits come from numpy's PCG64 instead of a window's
committed seed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
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
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

Bits: TypeAlias = npt.NDArray[np.bool_]
Scores: TypeAlias = npt.NDArray[np.int32]
Positions: TypeAlias = npt.NDArray[np.intp]
_FORM = (
    "sampling:KEEP, or pooled-listing:KEEP:F:THRESHOLD, such as sampling:0.9 or pooled-listing:0.9:0.1:601"
)


class BernoulliPointJson(TypedDict):
    """`BernoulliPoint` as JSON, reals as decimal strings."""

    mechanism: str
    in_list: dict[str, Json]
    texts: str
    eps: dict[str, str]
    exclusion_factor: dict[str, str]


@dataclass(frozen=True)
class SampledTopK:
    """The exact first K of the sampled positions."""

    sampling: bernoulli.Sampling
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

    def answer(
        self, scores: Scores, sampled: Bits, listed: Bits, random: np.random.Generator, top_k: int
    ) -> Positions:
        """The positions, with their texts, in which an account can find a passage.

        :param scores: the raw score of every position
        :param sampled: the sampled positions of the window
        :param listed: the listed positions of the window, which pooled listing extends
        """
        return _best(scores, sampled, top_k)


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

    def answer(
        self, scores: Scores, sampled: Bits, listed: Bits, random: np.random.Generator, top_k: int
    ) -> Positions:
        """See `SampledTopK.answer`. The texts of all places of an answer are returned, inside the sample or not."""
        chance = random.random(len(scores)) < self.flip_probability / PROBABILITY_RANGE
        listed |= chance | (scores >= self.threshold) & sampled
        return _best(scores, listed & (scores > 0), top_k)


BernoulliMechanism: TypeAlias = SampledTopK | PooledList


@dataclass(frozen=True)
class BernoulliPoint:
    """The retrieval results and the guarantee of one mechanism.

    :param in_list: a question's passages in the list that answers it
    :param texts: documents in a list, on average
    :param eps: bound over all outcomes by size of the coalition
    :param exclusion_factor: the maximum factor by which the absence of a document of one position becomes more likely
        for a coalition that never received it, by size of the coalition
    """

    mechanism: BernoulliMechanism
    in_list: Recall
    texts: float
    eps: dict[int, float]
    exclusion_factor: dict[int, float]

    def as_json(self) -> BernoulliPointJson:
        """JSON form, reals as decimal strings."""
        return {
            "mechanism": self.mechanism.label,
            "in_list": self.in_list.as_json(),
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
    form = re.fullmatch(r"sampling:([^:]+)|pooled-listing:([^:]+):([^:]+):([0-9]{1,9})", written)
    if form is None:
        raise PolicyError(
            "the option names no mechanism", field="--mechanism", expected=_FORM, actual=written
        )
    if form[1] is not None:
        return SampledTopK(bernoulli.Sampling(curves.probability_over_range(form[1], "--mechanism: keep")))
    keep, threshold = curves.probability_over_range(form[2], "--mechanism: keep"), int(form[4])
    return PooledList.of(keep, form[3], count(threshold, "--mechanism: threshold"), queries)


def default_mechanisms(relevance: int | None, queries: int) -> list[BernoulliMechanism]:
    """Two of each mechanism, as far as the embedder has a threshold.

    :param relevance: the embedder's minimum raw score of a relevant passage, the threshold of pooled listing; None if
        it is unknown
    :param queries: m, the questions of all accounts in a window of pooled listing
    """
    keeps = [curves.probability_over_range(keep, "keep") for keep in ("0.9", "0.7")]
    out: list[BernoulliMechanism] = [SampledTopK(bernoulli.Sampling(keep)) for keep in keeps]
    if relevance is not None:
        out += [PooledList.of(keep, UNREQUESTED, relevance, queries) for keep in keeps]
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
    count(n, "n")
    sizes = list(ks)
    questions, filled = len(sample.queries), frozenset(sample.index.positions)
    shares, hits, texts = np.zeros(questions), np.zeros(questions), 0
    for repeat in range(repeats):
        random = np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, repeat])))
        sampled = listed = np.zeros(capacity, np.bool_)
        for place, number in enumerate(random.permutation(questions)):
            if place % (mechanism.window or questions) == 0:
                sampled = random.random(capacity) < mechanism.sampling.keep / PROBABILITY_RANGE
                listed = np.zeros(capacity, np.bool_)
            scores, wanted = sample.index.scores(sample.queries[number]), sample.relevant[number]
            answer = set(mechanism.answer(scores, sampled, listed, random, top_k).tolist())
            found = len(wanted & answer)
            shares[number] += found / len(wanted)
            hits[number] += bool(found)
            texts += len(filled & answer)
        if progress is not None:
            progress(repeat + 1, repeats)
    return BernoulliPoint(
        mechanism=mechanism,
        in_list=recall_of(shares / repeats, hits / repeats),
        texts=texts / (repeats * questions),
        eps={k: mechanism.epsilon(k) for k in sizes},
        exclusion_factor={k: mechanism.exclusion_factor(n * k) for k in sizes},
    )


def _best(scores: Scores, among: Bits, top_k: int) -> Positions:
    """The first K of some positions: larger score, then smaller position."""
    places = np.flatnonzero(among)
    return places[np.argsort(-scores[places], kind="stable")[:top_k]]


def _decimal(coin: int) -> str:
    return f"{coin / PROBABILITY_RANGE:.9g}"
