"""Simulation of a policy's recall@K with its eps_audit, on a provider's own documents and questions.

Index, lattice and selection are the engine's own. The noise has its exact distribution (the published alias table), but
comes from numpy's PCG64 under a seed instead of the window's committed seed. The figures are therefore reproducible,
and need no Poseidon permutations.

Recall on a provider's own documents depends on the ranking without noise, which one document can change. No bound
covers it, so only the provider may see it (docs/accounting.md, "Scope of the figures").
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from rag_audit import _native
from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import PolicyError
from rag_audit.commit.explore.samples import Sample
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting.values import Real, check_delta_split, count, epsilon, probability, text
from rag_audit.relation.noise import BASE_SIGMA, BINS, alias_table, check_gains
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.engine import Int32Array, select

MIN_ANSWERS = 4000
"""Minimum number of answers: each question is repeated under new noise until this number is reached."""


@dataclass(frozen=True)
class Noise:
    """The part of a policy that determines recall: the gains, and the map of scores in lo..hi to lattice steps."""

    gains: tuple[int, ...]
    window: ScoreWindow

    def __post_init__(self) -> None:
        check_gains(self.gains)

    @property
    def sigma_over_delta(self) -> float:
        """The noise multiplier of one query."""
        return BASE_SIGMA * math.sqrt(sum(g * g for g in self.gains)) / self.window.lattice


@dataclass(frozen=True)
class Recall:
    """How often the engine finds the passages that answer a question.

    :param recall: the share of a question's passages among the first K, averaged over questions
    :param hit: the share of answers with at least one of the question's passages
    :param error: standard error of `recall` over questions
    """

    recall: float
    hit: float
    error: float

    def as_json(self) -> dict[str, Json]:
        """JSON form, reals as decimal strings."""
        return {"recall": f"{self.recall:.4f}", "hit": f"{self.hit:.4f}", "error": f"{self.error:.4f}"}


@dataclass(frozen=True)
class Point:
    """One policy of the grid.

    :param eps: eps_audit for k accounts with n queries each; `inf` where no finite bound exists
    :param eps_gaussian: the analytic Gaussian of the same sigma, for comparison; never a bound
    :param reason: why there is no finite bound
    """

    noise: Noise
    n: int
    k: int
    recall: Recall
    eps: float
    eps_gaussian: float
    reason: str | None

    @property
    def label(self) -> str:
        """The parameters of the point in words."""
        window = self.noise.window
        gains = ",".join(map(str, self.noise.gains))
        return f"gains {gains}, R {window.lattice}, scores {window.lo}..{window.hi}, n {self.n}, k {self.k}"

    def as_json(self) -> dict[str, Json]:
        """JSON form, reals as decimal strings."""
        window = self.noise.window
        return {
            "gains": list(self.noise.gains),
            "lattice": window.lattice,
            "lo": window.lo,
            "hi": window.hi,
            "n": self.n,
            "k": self.k,
            "sigma_over_delta": text(float(f"{self.noise.sigma_over_delta:.5g}")),
            "eps_audit": text(self.eps),
            "eps_gaussian": text(float(f"{self.eps_gaussian:.5g}")),
            "reason": self.reason,
            **self.recall.as_json(),
        }


@dataclass(frozen=True)
class Exploration:
    """Recall and eps over a grid.

    :param without_noise: the same scores without noise, at the finest lattice of the grid
    :param chance: recall of K positions picked at random
    :param positions: the maximum number of positions of a document, for which every eps is
    """

    top_k: int
    capacity: int
    documents: int
    questions: int
    repeats: int
    seed: int
    delta: str
    without_noise: Recall
    chance: Recall
    points: Sequence[Point]
    positions: int = 1

    def as_json(self) -> dict[str, Json]:
        """JSON form, reals as decimal strings."""
        return {
            "covers": COVERS,
            "top_k": self.top_k,
            "capacity": self.capacity,
            "documents": self.documents,
            "questions": self.questions,
            "repeats": self.repeats,
            "seed": self.seed,
            "delta": self.delta,
            "positions_per_document": self.positions,
            "without_noise": self.without_noise.as_json(),
            "chance": self.chance.as_json(),
            "points": [{**p.as_json(), "sentence": self.sentence(p)} for p in self.points],
        }

    def sentence(self, point: Point) -> str:
        """A sentence on the meaning of a policy for its users."""
        eps = "no finite eps exists" if math.isinf(point.eps) else f"eps_audit is {text(point.eps)}"
        verb = "finds its" if in_words(point.recall.hit, self.questions).startswith("1 ") else "find their"
        return (
            f"at this policy {in_words(point.recall.hit, self.questions)} still {verb} passage"
            f" among the first {self.top_k} (without noise: {in_words(self.without_noise.hit, self.questions)};"
            f" by blind chance: {in_words(self.chance.hit, self.questions)}), and {eps}"
        )

    def headlines(self, chosen: Noise | None = None) -> list[str]:
        """Sentences for a policy's own noise. Without a policy, sentences for the minimum eps that retains half of
        the recall, and for the minimum eps of all."""
        picked = [point for point in self.points if point.noise == chosen]
        if not picked:
            by_eps = sorted(self.points, key=lambda point: point.eps)
            half = [p for p in by_eps if 2 * p.recall.recall >= self.without_noise.recall]
            picked = [*half[:1], *by_eps[:1]]
        return [f"{point.label}: {self.sentence(point)}" for point in dict.fromkeys(picked)]


COVERS = (
    "eps covers the list of selected positions and nothing else:"
    " a passage that is handed out is seen, whatever eps is"
)


def in_words(share: float, tried: int) -> str:
    """A share of questions in words, such as ``1 question in 40`` or ``7 questions in 10``; all and none are counted.

    :param tried: the number of questions
    """
    word = "question" if tried == 1 else "questions"
    if share <= 0:
        return f"none of {tried:,} {word}"
    if share >= 1:
        return f"{tried:,} of {tried:,} {word}"
    if share < 0.4:
        return f"1 question in {round(1 / share):,}"
    if share > 0.995:
        return "99 questions in 100 or more"
    if share > 0.95:
        return f"{round(100 * share)} questions in 100"
    return f"{round(10 * share)} questions in 10"


def base_draws(words: npt.NDArray[np.uint64]) -> Int32Array:
    """Draws of the base distribution from uniform 64-bit words, by the published alias table.

    A word's low byte gives bin and sign and its high half the threshold bits, as in docs/relation.md, "Noise".
    """
    thresholds, drawn = _alias_arrays()
    halves = np.ascontiguousarray(words, "<u8").view("<u4")
    low = (halves[::2] & np.uint32(2 * BINS - 1)).astype(np.intp)
    low += 2 * BINS * (halves[1::2] >= thresholds[low])
    return drawn[low]


def weighted_sum(gains: Sequence[int], draws: Int32Array) -> Int32Array:
    """The noise z of every position: the sum of `draws`' first rows, shape (components, positions), times the gains."""
    total = np.zeros(draws.shape[1], np.int32)
    for gain, component in zip(gains, draws, strict=False):
        total += np.int32(gain) * component
    return total


@cache
def _alias_arrays() -> tuple[npt.NDArray[np.uint32], Int32Array]:
    """Two tables for a draw by two look-ups. The first, shape (256,), has for each low byte, bin and sign the threshold
    bits for choosing its alias. The second, shape (512,), has the drawn values: the bins of the low bytes, then their
    aliases.
    """
    table = alias_table()
    bins, aliases = np.arange(BINS), np.array(table.aliases)
    drawn = np.concatenate([bins, -bins, aliases, -aliases]).astype(np.int32)
    return np.tile(np.array(table.thresholds, np.uint32), 2), drawn


def measure_recall(
    sample: Sample,
    noises: Sequence[Noise],
    *,
    top_k: int,
    repeats: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[Recall]:
    """Measure the recall of the engine under each noise, with the same base draws, which sharpens the differences.

    :param repeats: answers to each question, each under its own noise; by default enough for `MIN_ANSWERS`
    :param progress: called with the questions done and their total
    :raises PolicyError: K is outside 1..capacity
    """
    if not 1 <= top_k <= sample.index.capacity:
        raise PolicyError("K out of range", field="K", expected=f"1..{sample.index.capacity}", actual=top_k)
    repeats = enough_repeats(len(sample.queries)) if repeats is None else repeats
    columns = max((len(noise.gains) for noise in noises), default=0)
    capacity = sample.index.capacity
    shares = np.zeros((len(noises), len(sample.queries)))
    hits = np.zeros_like(shares)
    for number, (query, relevant) in enumerate(zip(sample.queries, sample.relevant, strict=True)):
        scores = sample.index.scores(query).tobytes()
        for repeat in range(repeats):
            bits = np.random.PCG64(np.random.SeedSequence([seed, number, repeat]))
            draws = base_draws(bits.random_raw(capacity * columns)).reshape(columns, capacity)
            for row, noise in enumerate(noises):
                window, z = noise.window, weighted_sum(noise.gains, draws).tobytes()
                result = relevant.intersection(
                    _native.noised_top_k(scores, window.lo, window.hi, window.lattice, z, top_k)
                )
                shares[row, number] += len(result) / len(relevant)
                hits[row, number] += bool(result)
        if progress is not None:
            progress(number + 1, len(sample.queries))
    return [recall_of(s / repeats, h / repeats) for s, h in zip(shares, hits, strict=True)]


def enough_repeats(questions: int) -> int:
    """The number of answers to each question that makes `MIN_ANSWERS` in all."""
    return -(-MIN_ANSWERS // questions)


def recall_of(shares: npt.NDArray[np.float64], hits: npt.NDArray[np.float64]) -> Recall:
    """The averages over questions, with their standard error.

    :param shares: of each question's passages that were found, averaged over its answers
    :param hits: of each question's answers with one of its passages
    """
    error = float(np.std(shares)) / math.sqrt(len(shares))
    return Recall(float(np.mean(shares)), float(np.mean(hits)), error)


def recall_without_noise(sample: Sample, window: ScoreWindow, *, top_k: int) -> Recall:
    """The recall of the lattice scores without noise."""
    quiet = np.zeros(sample.index.capacity, np.int32)
    result = [
        len(wanted.intersection(select(sample.index, query, quiet, window, top_k))) / len(wanted)
        for query, wanted in zip(sample.queries, sample.relevant, strict=True)
    ]
    shares = np.array(result)
    return recall_of(shares, (shares > 0).astype(np.float64))


def recall_by_flips(sample: Sample, *, top_k: int) -> Recall:
    """The recall of K positions picked at random, the limit of unlimited noise."""
    capacity = sample.index.capacity
    missed = [
        math.comb(capacity - len(wanted), top_k) / math.comb(capacity, top_k) for wanted in sample.relevant
    ]
    return Recall(top_k / capacity, 1 - sum(missed) / len(missed), 0.0)


@dataclass(frozen=True)
class Grid:
    """The combinations that `explore` measures.

    :param ns: queries an account
    :param ks: coalition sizes
    :param positions: the maximum number of positions of a document, for which the bounds are
    """

    noises: Sequence[Noise]
    ns: Sequence[int]
    ks: Sequence[int]
    positions: int = 1


def explore(
    sample: Sample,
    grid: Grid,
    *,
    top_k: int,
    delta: Real,
    eps_acc: Real = 4,
    delta_acc: Real = "1e-7",
    repeats: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Exploration:
    """Compute recall and eps_audit at every combination of noise, n and k, least noise first.

    :param eps_acc: used by the closed form only, as is `delta_acc`
    :raises PolicyError: the grid is empty, or the accountant refuses a parameter
    """
    ns, ks = grid.ns, grid.ks
    if not (grid.noises and ns and ks):
        raise PolicyError("the grid is empty", field="grid", expected="at least one noise, n and k")
    if repeats is not None and repeats < 1:
        raise PolicyError(
            "not a positive integer", field="repeats", expected="an integer >= 1", actual=repeats
        )
    if seed < 0:
        raise PolicyError("the seed is negative", field="seed", expected="an integer >= 0", actual=seed)
    epsilon(eps_acc, "eps_acc")
    for value, field in ((delta, "delta"), (delta_acc, "delta_acc")):
        probability(value, field)
    for n in ns:
        count(n, "n")
    for k in ks:
        check_delta_split(delta, count(k, "k"), delta_acc)
    noises = sorted(dict.fromkeys(grid.noises), key=lambda noise: noise.sigma_over_delta)
    # The accountant comes first, so that its refusals do not wait for the simulation.
    bounds = {
        (noise.gains, noise.window.lattice, n, k): _bound(
            noise, (n, k, grid.positions), eps_acc, delta_acc, delta
        )
        for noise in noises
        for n in ns
        for k in ks
    }
    measured = measure_recall(sample, noises, top_k=top_k, repeats=repeats, seed=seed, progress=progress)
    finest = max((noise.window for noise in noises), key=lambda window: window.lattice)
    points = [
        Point(noise, n, k, recall, eps, _gaussian(noise, n * k * grid.positions, delta), reason)
        for noise, recall in zip(noises, measured, strict=True)
        for n in ns
        for k in ks
        for eps, reason in [bounds[noise.gains, noise.window.lattice, n, k]]
    ]
    return Exploration(
        top_k=top_k,
        capacity=sample.index.capacity,
        documents=len(sample.index.positions),
        questions=len(sample.queries),
        repeats=enough_repeats(len(sample.queries)) if repeats is None else repeats,
        seed=seed,
        delta=str(delta),
        without_noise=recall_without_noise(sample, finest, top_k=top_k),
        chance=recall_by_flips(sample, top_k=top_k),
        points=points,
        positions=grid.positions,
    )


def _bound(
    noise: Noise, sizes: tuple[int, int, int], eps_acc: Real, delta_acc: Real, delta: Real
) -> tuple[float, str | None]:
    """The best bound of one combination, and why there is none.

    :param sizes: n, k and the positions of a document
    """
    n, k, positions = sizes
    try:
        mechanism = accounting.Mechanism(noise.gains, noise.window.lattice)
    except PolicyError as exc:  # gains and lattice are each well-formed, but the pair may have no bound
        return math.inf, exc.message
    best = accounting.audit_bounds(
        mechanism, n=n, eps_acc=eps_acc, delta_acc=delta_acc, k=k, delta=delta, positions=positions
    ).best
    return best.eps, best.reason


def _gaussian(noise: Noise, compositions: int, delta: Real) -> float:
    return accounting.gaussian_epsilon(noise.sigma_over_delta, compositions, float(delta))
