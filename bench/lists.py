"""The strongest attacks that we know on the lists of the engine, on one position of a real collection.

The attacks play the game of the privacy bounds. A coalition knows the whole index except one position. This position
contains one text or another text (or no text). The coalition asks questions and sees lists of positions. The engine's
own functions draw the noise, the sampled positions and the Bernoulli bits. Scores are those of the int4 index.

- Noise: the answers are independent given the world. The coalition's best use of one probe is therefore to count the
  lists that contain the position, and the rates of one answer determine the rates of every count.
- Sampling: a second question gives the coalition no advantage. The position is listed at once, or never.
- Pooled listing: the coalition asks for the other text first and then for the text itself. The bound is attained if the
  position is listed for the first time at the second question. The accounts share one set of listed documents, so
  further accounts add questions and no new set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
import numpy.typing as npt

from rag_audit import _native
from rag_audit.commit.explore.simulate import Noise
from rag_audit.lab.empirical.lower_bounds import clopper_pearson, counted_epsilon, counted_roc
from rag_audit.mechanisms.accounting.bernoulli import Sampling
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.scores import MAX_LATTICE, ScoreWindow
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.engine import (
    Int8Array,
    Int32Array,
    TenantIndex,
    draw_bernoulli_bits,
    draw_noise,
    no_noise,
)
from rag_audit.retrieval.serving.pooled_listing import PooledRules, answer_in_order

BoolArray = npt.NDArray[np.bool_]
CONFIDENCE = 0.95
PARAPHRASES = 64
SAMPLED_WORDS = 0.7
FEW_WORDS = 0.3
PILOT = 200
ASKED = 8
_IDENTITY = ScoreWindow(0, MAX_LATTICE, MAX_LATTICE)
"""The score window of exact scores."""


@dataclass(frozen=True)
class Attack:
    """The result of one probe strategy against one position, for comparison with a coalition's bound.

    :param auc: of the best test by the measured rates; `tpr` at a false-positive rate of 1 %
    :param eps: the epsilon that the trials refute at confidence 0.95
    """

    probes: str
    auc: float
    tpr: float
    eps: float


@dataclass(frozen=True, eq=False)
class Target:
    """One position, the two vectors that it may contain, and probes that ask for the first vector.

    :param index: the index with the first vector at `position`
    :param other: the vector at the position in the other world, shape (d,)
    :param probes: by strategy, each shape (probes, d)
    :param others: probes that ask for the second vector, shape (probes, d); the second vector itself if None
    """

    index: TenantIndex
    position: int
    other: Int8Array
    probes: dict[str, Int8Array]
    others: Int8Array | None = None

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions that differ between the worlds."""
        return (self.position,)

    def scores(self, query: Int8Array) -> tuple[Int32Array, Int32Array]:
        """Return the raw scores of all positions in both worlds."""
        return _scores_of_worlds(self.index, self.positions, self.other[None], query)

    def world(self, other: bool) -> TenantIndex:
        """Return the index of one world."""
        if not other:
            return self.index
        rows = self.index.rows.copy()
        rows[self.position] = self.other
        return TenantIndex(rows, self.index.positions)


@dataclass(frozen=True, eq=False)
class DocumentTarget:
    """A document of several positions under noise, with the texts that the positions have in the other world.

    :param index: the index with the document at `positions`
    :param others: the vectors at the positions in the other world, shape (positions, d)
    :param probes: by strategy, each shape (probes, d)
    """

    index: TenantIndex
    positions: tuple[int, ...]
    others: Int8Array
    probes: dict[str, Int8Array]

    def scores(self, query: Int8Array) -> tuple[Int32Array, Int32Array]:
        """Return the raw scores of all positions in both worlds."""
        return _scores_of_worlds(self.index, self.positions, self.others, query)


def _scores_of_worlds(
    index: TenantIndex, positions: Sequence[int], others: Int8Array, query: Int8Array
) -> tuple[Int32Array, Int32Array]:
    first = index.scores(query)
    second = first.copy()
    second[list(positions)] = others.astype(np.int64) @ query.astype(np.int64)
    return first, second


def make_document_target(
    index: TenantIndex,
    texts: Sequence[str],
    positions: Sequence[int],
    others: Sequence[str],
    questions: Sequence[str],
    embedder: Embedder,
    seed: int,
) -> DocumentTarget:
    """Make a target of a document with its probes, which are those of `make_target` for each of its texts.

    :param texts: the document's texts, at `positions`
    :param others: the texts at the positions in the other world
    """
    rng = Random(seed)
    paraphrases = [paraphrase for text in texts for paraphrase in _parts(text, SAMPLED_WORDS, rng)]
    rng.shuffle(paraphrases)
    requested = {"repeated": list(texts), "paraphrased": paraphrases, "questions": list(questions)}
    probes = {
        name: np.stack([embedder.embed_query(probe) for probe in own])
        for name, own in requested.items()
        if own
    }
    return DocumentTarget(index, tuple(positions), embedder.embed_documents(list(others)), probes)


def make_target(
    index: TenantIndex,
    text: str,
    position: int,
    other: str,
    questions: Sequence[str],
    embedder: Embedder,
    seed: int,
) -> Target:
    """Make a target with its probes.

    :param other: the text at the position in the other world

    The probes are repetitions of the target's text, paraphrases (a random 7 in 10 of its words), and the collection's
    own questions about it. The probes about the other text are parts of it (a random 3 in 10 of its words).
    """
    rng = Random(seed)
    paraphrases = _parts(text, SAMPLED_WORDS, rng)
    texts = {"repeated": [text], "paraphrased": paraphrases, "questions": list(questions)}
    probes = {
        name: np.stack([embedder.embed_query(probe) for probe in requested])
        for name, requested in texts.items()
        if requested
    }
    others = [other, *_parts(other, FEW_WORDS, rng)]
    return Target(
        index,
        position,
        embedder.embed_documents([other])[0],
        probes,
        np.stack([embedder.embed_query(probe) for probe in others]),
    )


def _parts(text: str, share: float, rng: Random) -> list[str]:
    """Make `PARAPHRASES` texts of a random share of a text's words, in their order."""
    words = text.split()
    kept = max(1, round(share * len(words)))
    return [
        " ".join(words[i] for i in sorted(rng.sample(range(len(words)), kept))) for _ in range(PARAPHRASES)
    ]


def key(*parts: object) -> int:
    """Derive the key of a draw: a field element that is unpredictable, like the key of a slot."""
    return digest_to_field("/".join(map(str, parts)).encode())


def count_noised(
    target: Target | DocumentTarget,
    noises: Sequence[Noise],
    *,
    top_k: int,
    lists: int,
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> dict[tuple[int, str], tuple[int, int]]:
    """Count for each noise and probe strategy how many of `lists` contain a position of the target, in both worlds.

    Noises with the same gains are measured on the same draws, and so are both worlds. This is valid because each limit
    applies to one rate.
    """  # fmt: skip
    places = frozenset(target.positions)
    result = {(row, name): [0, 0] for row in range(len(noises)) for name in target.probes}
    sides = {
        name: [[s.tobytes() for s in target.scores(q)] for q in qs] for name, qs in target.probes.items()
    }
    for number in range(lists):
        drawn = {
            gains: draw_noise(key(seed, number, *gains), target.index.capacity, gains).tobytes()
            for gains in dict.fromkeys(noise.gains for noise in noises)
        }
        for (row, name), counts in result.items():
            noise, probes = noises[row], sides[name]
            window, z = noise.window, drawn[noise.gains]
            for world, scores in enumerate(probes[number % len(probes)]):
                listed = _native.noised_top_k(scores, window.lo, window.hi, window.lattice, z, top_k)
                counts[world] += not places.isdisjoint(listed)
        if progress is not None:
            progress(number + 1, lists)
    return {place: (counts[0], counts[1]) for place, counts in result.items()}


def by_counting(probes: str, counts: tuple[int, int], lists: int, repeats: int, delta: str) -> Attack:
    """Return the attack of a coalition that counts the position in its `repeats` lists."""
    if (
        counts[0] < counts[1]
    ):  # if a probe lists the other world's text more often, the attacker reverses the test
        counts = counts[1], counts[0]
    fpr, tpr = counted_roc(counts[0] / lists, counts[1] / lists, repeats)
    eps = counted_epsilon((counts[0], lists), (counts[1], lists), repeats, delta=delta, confidence=CONFIDENCE)
    return Attack(probes, float(np.trapezoid(tpr, fpr)), float(np.interp(0.01, fpr, tpr)), eps)


def factor_by_counting(listed: int, lists: int, repeats: int) -> float:
    """Return the factor by which the absence of a text becomes more likely if none of `repeats` independent lists
    contains its position, refuted at confidence `CONFIDENCE`: the text is absent with certainty where no list can
    return it, and unlisted with probability (1 - p)^repeats where one list contains it with probability p.

    :param listed: the lists with the position, of `lists`
    """
    least = clopper_pearson(listed, lists, CONFIDENCE)[0]
    log = -repeats * math.log1p(-least) if least < 1 else math.inf
    return math.exp(log) if log < 700 else math.inf


@dataclass(frozen=True)
class Unlisted:
    """The result of an attack on sampling: a position is listed at the first question, or never.

    :param odds: the factor in the odds of an unlisted position, refuted at confidence 0.95
    """

    auc: float
    tpr: float
    odds: float


def sampled(
    target: Target, sampling: Sampling, window: ScoreWindow, *, top_k: int, windows: int, seed: int
) -> dict[str, Unlisted]:
    """Attack sampling with each probe strategy.

    Each of `windows` windows draws its own sampled positions. The attacker asks the strategy's first `ASKED` probes in
    every window. The position counts as listed if any list contains it.
    """
    quiet = no_noise(target.index.capacity).tobytes()
    sides = {
        name: [target.scores(query) for query in probes[:ASKED]] for name, probes in target.probes.items()
    }
    listed = {name: [0, 0] for name in sides}
    for number in range(windows):
        kept = draw_bernoulli_bits(key(seed, "kept", number), target.index.capacity, sampling.keep)
        for name, requested in sides.items():
            for world in (0, 1):
                listed[name][world] += any(
                    target.position in _native.noised_top_k(
                        (scores[world] * kept).tobytes(), window.lo, window.hi, window.lattice, quiet, top_k
                    )
                    for scores in requested
                )  # fmt: skip
    return {name: _unlisted(counts, windows) for name, counts in listed.items()}


def _unlisted(listed: Sequence[int], windows: int) -> Unlisted:
    each = 1 - (1 - CONFIDENCE) / 2
    maximum = clopper_pearson(windows - listed[0], windows, each)[1]
    minimum = clopper_pearson(windows - listed[1], windows, each)[0]
    return Unlisted(*_one_corner(listed[1] / windows, listed[0] / windows), max(1.0, minimum / maximum))


@dataclass(frozen=True)
class Pool:
    """Pooled listing with one document for each position.

    :param keep: pi over 2^40
    :param flip_probability: q over 2^40
    :param threshold: minimum raw score of a relevant position
    :param queries: m, the questions of all accounts in a window
    """

    keep: int
    flip_probability: int
    threshold: int
    queries: int


@dataclass
class _FirstListed:
    """Counts of rows of one world by whether the sample contains the row: [not sampled, sampled].

    :param later: rows that a later question lists, but not the first
    """

    rows: list[int]
    later: list[int]


def pooled(
    target: Target, pool: Pool, *, strategy: str, windows: int, chance_windows: int, top_k: int, seed: int
) -> tuple[Attack, float]:
    """Attack pooled listing with one probe strategy.

    The accounts of the tenant ask for the other text with a probe that reaches the threshold in the other text and not
    in the text, then with the strategy's first `ASKED` probes for the text itself, on one set of listed rows. Without
    such a probe, the first question reaches no text. The engine's own functions draw the bits and list the rows.

    The rules treat all rows alike: the first listing of a row depends only on whether the sample contains the row, on
    the questions whose scores reach the threshold in it, and on the row's own bits. The rates therefore come from all
    rows in the same situation as the position under attack, and not only from this position. The same holds for the
    absence of the text: its measured factor uses the rows that chance lists at none of m questions.

    :param windows: windows that measure the position under attack
    :param chance_windows: windows with m questions that measure rows listed by chance
    :returns: the attack, and the factor by which the absence of the text becomes more likely for accounts that never
        received it, refuted at confidence 0.95
    """
    requested = [
        _only_other(target, pool.threshold),
        *target.probes[strategy][: 1 if strategy == "repeated" else ASKED],
    ]
    sides = [[target.scores(query)[world] for query in requested] for world in (0, 1)]
    capacity, place = target.index.capacity, target.position
    table, rules = np.arange(capacity, dtype=np.int64), PooledRules(pool.threshold, top_k, _IDENTITY)
    groups = [_same(scores, pool.threshold, place) for scores in sides]
    seen = [_FirstListed([0, 0], [0, 0]) for _ in sides]
    sampled_rows = 0
    for number in range(windows):
        kept = draw_bernoulli_bits(key(seed, "kept", number), capacity, pool.keep)
        sampled_rows += int(kept.sum())
        chance = [
            draw_bernoulli_bits(key(seed, number, ask), capacity, pool.flip_probability)
            for ask in range(len(requested))
        ]
        for side, scores, (same, alone) in zip(seen, sides, groups, strict=True):
            first, *_, last = [
                step.listed
                for step in answer_in_order(
                    zip(scores, chance, strict=True), table, rules,
                    listed=np.zeros(capacity, np.int8), kept=kept,
                )
            ]  # fmt: skip
            later = (last == 1) & (first == 0)
            for bit, rows in enumerate((alone | (kept == 0), same & (kept == 1))):
                side.rows[bit] += int(rows.sum())
                side.later[bit] += int(later[rows].sum())
    unlisted = _unlisted_by_chance(pool, capacity, chance_windows, seed)
    return _pooled_attack(strategy, seen, (sampled_rows, windows * capacity), unlisted)


def _only_other(target: Target, threshold: int) -> Int8Array:
    """Return the first probe that reaches the threshold in the other text and not in the text; zeros if none does."""
    for query in target.other[None] if target.others is None else target.others:
        text, other = (scores[target.position] for scores in target.scores(query))
        if text < threshold <= other:
            return query  # type: ignore[no-any-return]
    return np.zeros_like(target.other)


def _same(scores: Sequence[Int32Array], threshold: int, place: int) -> tuple[BoolArray, BoolArray]:
    """Return the rows that the first question and later questions reach as they reach a place, and the rows that no
    question reaches. A row that the first question reaches is listed then, so later questions do not matter."""
    first = scores[0] >= threshold
    later = np.max(np.stack(scores[1:]), axis=0) >= threshold
    return (first if first[place] else ~first & (later == later[place])), ~first & ~later


def _unlisted_by_chance(pool: Pool, capacity: int, windows: int, seed: int) -> tuple[int, int]:
    """The rows that chance lists at none of m questions, and all rows, of several windows."""
    rest = 0
    for number in range(windows):
        listed = np.zeros(capacity, np.int8)
        for ask in range(pool.queries):
            listed |= draw_bernoulli_bits(key(seed, "chance", number, ask), capacity, pool.flip_probability)
        rest += capacity - int(listed.sum())
    return rest, capacity * windows


def _pooled_attack(
    strategy: str, seen: Sequence[_FirstListed], sampled: tuple[int, int], unlisted: tuple[int, int]
) -> tuple[Attack, float]:
    """Test whether a later question lists the position for the first time: a mixture over whether the sample contains
    it; and the factor of its absence.

    :param sampled: the rows that the sample contains, and all rows
    :param unlisted: see `_unlisted_by_chance`
    """
    each = 1 - (1 - CONFIDENCE) / 6  # six limits are used and must be valid simultaneously
    low, high = clopper_pearson(*sampled, each)

    def limit(world: int, bit: int, side: int) -> float:
        if not seen[world].rows[bit]:
            return float(side)
        return clopper_pearson(seen[world].later[bit], seen[world].rows[bit], each)[side]

    minimum = low * limit(0, 1, 0) + (1 - low) * limit(0, 0, 0)
    maximum = high * limit(1, 1, 1) + (1 - low) * limit(1, 0, 1)
    share = sampled[0] / sampled[1]
    true, false = (
        sum(
            weight * side.later[bit] / max(1, side.rows[bit]) for bit, weight in enumerate((1 - share, share))
        )
        for side in seen
    )
    eps = math.log(minimum / maximum) if minimum > maximum else 0.0
    half = 1 - (1 - CONFIDENCE) / 2
    never = (1 - clopper_pearson(*sampled, half)[0]) * clopper_pearson(*unlisted, half)[1]
    return Attack(strategy, *_one_corner(false, true), eps), max(1.0, 1 / never)


def _one_corner(false: float, true: float) -> tuple[float, float]:
    """Return AUC, and the true-positive rate at a false-positive rate of 1 %, of a test with a binary result."""
    return 0.5 + (true - false) / 2, float(np.interp(0.01, [0, false, 1], [0, true, 1]))
