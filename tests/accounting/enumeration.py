"""Exact laws of small cases: every outcome of the Bernoulli bits, with rational probabilities.

The rules of the mechanisms for documents are written here once more, from docs/accounting.md ("Documents"), without
code of the package. Each rule has a switch that breaks it, so that tests can show what the rule prevents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeVar

T = TypeVar("T")
View = TypeVar("View")
Question = Mapping[str, int]
"""The positive scores of a question, by text. The first character of a text names its document."""
Answer = tuple[tuple[int, str | None], ...]
"""The first K positions in order, each with its text; None for a position that is returned empty."""
Step = tuple[frozenset[int], Answer]
"""The rows that a request lists for the first time, and the answer."""


class Flip:
    """Draws Bernoulli bits along one path through all outcomes.

    :param bits: the outcomes to take first
    """

    def __init__(self, bits: list[bool]) -> None:
        self.bits, self.drawn = bits, 0
        self.alternatives: list[list[bool]] = []
        self.numerator = self.denominator = 1

    def __call__(self, probability: Fraction) -> bool:
        """The next bit: true unless the path has already taken this outcome."""
        if self.drawn == len(self.bits):
            self.alternatives.append([*self.bits, False])
            self.bits.append(True)
        bit = self.bits[self.drawn]
        self.drawn += 1
        p, q = probability.as_integer_ratio()
        self.numerator *= p if bit else q - p
        self.denominator *= q
        return bit


def law(game: Callable[[Flip], T]) -> dict[T, Fraction]:
    """The probability of every result of a game, by all outcomes of the bits that the game draws."""
    numerators: dict[tuple[T, int], int] = defaultdict(int)
    pending: list[list[bool]] = [[]]
    while pending:
        flip = Flip(pending.pop())
        result = game(flip)
        numerators[result, flip.denominator] += flip.numerator
        pending += flip.alternatives
    laws: dict[T, Fraction] = defaultdict(Fraction)
    for (result, denominator), numerator in numerators.items():
        if numerator:
            laws[result] += Fraction(numerator, denominator)
    assert sum(laws.values()) == 1
    return dict(laws)


def seen(laws: Mapping[T, Fraction], view: Callable[[T], View]) -> dict[View, Fraction]:
    """The law of a function of the result."""
    result: dict[View, Fraction] = defaultdict(Fraction)
    for outcome, p in laws.items():
        result[view(outcome)] += p
    return dict(result)


def largest_ratio(one: Mapping[T, Fraction], other: Mapping[T, Fraction]) -> Fraction | None:
    """The largest ratio of two laws over all results; None if a result has probability 0 in the other law only."""
    if any(result not in other for result in one):
        return None
    return max(p / other[result] for result, p in one.items())


@dataclass(frozen=True)
class Window:
    """One window of a chain.

    :param places: the row and the text of each position; None for a position without a row
    :param handles: the handle of each row
    :param questions: the questions of all accounts, in the order of the ledger
    """

    places: tuple[tuple[int, str] | None, ...]
    handles: tuple[int, ...]
    questions: tuple[Question, ...]

    def without(self, document: str) -> Window:
        """The same window without a document: its positions are empty, and all rows keep their handles."""
        kept = (place if place is None or place[1][0] != document else None for place in self.places)
        return replace(self, places=tuple(kept))


Chain = Sequence[Window]
Ask = Callable[[tuple[Answer, ...], Question], Question]
"""The next question after the answers so far; the second argument is the question that the window proposes."""


def as_planned(answers: tuple[Answer, ...], planned: Question) -> Question:
    """Analysts that do not adapt. A question that adapts is on each transcript one of these."""
    return planned


@dataclass(frozen=True)
class Sampling:
    """Sampling by document, without noise.

    :param keep: pi
    :param top_k: K
    :param persistent: a handle has one bit in the whole chain, instead of one in each window
    :param by_position: wrong: each position has a bit of its own
    :param text_at_zero: wrong: a listed position of score 0 is returned with its text
    :param new_kept: wrong: rows that a later window adds are in the sample
    :param public_count: wrong: a window publishes how many of its documents are new
    """

    keep: Fraction
    top_k: int
    persistent: bool = True
    by_position: bool = False
    text_at_zero: bool = False
    new_kept: bool = False
    public_count: bool = False

    def answers(self, chain: Chain, flip: Flip, ask: Ask = as_planned) -> tuple[Answer | int, ...]:
        """The transcript of all accounts."""
        bits: dict[tuple[int, ...], bool] = {}
        known: set[int] = set()
        transcript: list[Answer | int] = []
        answered: list[Answer] = []

        def sampled(number: int, handle: int, position: int) -> bool:
            key = (
                0 if self.persistent else number,
                handle,
                position if self.by_position else 0,
            )
            if key not in bits:
                is_new = number > 0 and handle not in known
                bits[key] = (self.new_kept and is_new) or flip(self.keep)
            return bits[key]

        for number, window in enumerate(chain):
            used = {window.handles[place[0]] for place in window.places if place is not None}
            if self.public_count and number:
                transcript.append(len(used - known))
            for planned in window.questions:
                question = ask(tuple(answered), planned)
                scores, texts = [], []
                for position, place in enumerate(window.places):
                    score = 0 if place is None else question.get(place[1], 0)
                    if place is not None and score:
                        score *= sampled(number, window.handles[place[0]], position)
                    scores.append(score)
                    texts.append(None if place is None else place[1])
                answer = best(scores, texts, self.top_k, text_at_zero=self.text_at_zero)
                answered.append(answer)
                transcript.append(answer)
            known |= used
        return tuple(transcript)


@dataclass(frozen=True)
class PooledListing:
    """Pooled listing: one set of listed rows for all accounts of the tenant.

    :param keep: pi
    :param flip_probability: q
    :param top_k: K
    :param threshold: the minimum score of a relevant position
    :param flips: the flip probability of each window; None if it is q in all of them
    :param carry: a window starts with the rows that the previous one had listed
    :param skip: wrong: a window starts with the rows that the previous one had listed before its last request
    :param persistent: a handle has one bit of the sample in the whole chain, instead of one in each window
    :param one_set: wrong: all requests of a window use the set at its start, as a batch without an order would
    :param most: wrong: a request lists at most so many new rows
    :param new_listed: wrong: handles that a later window adds start in the set of listed rows
    :param only_filled: wrong: rows without a document get no flip
    :param text_at_zero: wrong: a listed position of score 0 is returned with its text
    """

    keep: Fraction
    flip_probability: Fraction
    top_k: int
    threshold: int = 1
    flips: tuple[Fraction, ...] | None = None
    carry: bool = True
    skip: bool = False
    persistent: bool = True
    one_set: bool = False
    most: int | None = None
    new_listed: bool = False
    only_filled: bool = False
    text_at_zero: bool = False

    def steps(self, chain: Chain, flip: Flip, ask: Ask = as_planned) -> tuple[Step, ...]:
        """The newly listed rows and the answer of every request."""
        bits: dict[tuple[int, int], bool] = {}
        known: set[int] = set()
        listed: set[int] = set()
        last: frozenset[int] = frozenset()
        steps: list[Step] = []
        for number, window in enumerate(chain):
            chance = self.flip_probability if self.flips is None else self.flips[number]
            used = {window.handles[place[0]] for place in window.places if place is not None}
            listed = set(last if self.skip else listed) if self.carry else set()
            if self.new_listed and number:
                listed |= used - known
            start = frozenset(listed)
            for planned in window.questions:
                question = ask(tuple(answer for _, answer in steps), planned)
                last, new = frozenset(listed), []
                for row, handle in enumerate(window.handles):
                    if handle in (start if self.one_set else listed):
                        continue
                    own = [place[1] for place in window.places if place is not None and place[0] == row]
                    relevant = any(question.get(text, 0) >= self.threshold for text in own)
                    if (own or not self.only_filled) and flip(chance):
                        new.append(row)
                    elif relevant:
                        key = (0 if self.persistent else number, handle)
                        if key not in bits:
                            bits[key] = flip(self.keep)
                        new += [row] * bits[key]
                new = new[: self.most]
                listed |= {window.handles[row] for row in new}
                scores = [
                    question.get(place[1], 0) * (window.handles[place[0]] in listed) if place else 0
                    for place in window.places
                ]
                texts = [place[1] if place else None for place in window.places]
                answer = best(scores, texts, self.top_k, text_at_zero=self.text_at_zero)
                steps.append((frozenset(new), answer))
            known |= used
        return tuple(steps)


def best(scores: Sequence[int], texts: Sequence[str | None], top_k: int, *, text_at_zero: bool) -> Answer:
    """The first K positions by score, then by number."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:top_k]
    return tuple((i, texts[i] if scores[i] or text_at_zero else None) for i in order)


def rows_of(steps: tuple[Step, ...]) -> tuple[frozenset[int], ...]:
    """The observer's view: the sequence of sets of newly listed rows."""
    return tuple(new for new, _ in steps)


def answers_of(steps: tuple[Step, ...]) -> tuple[Answer, ...]:
    """The accounts' view: their answers."""
    return tuple(answer for _, answer in steps)


def until_listed(row: int) -> Callable[[tuple[Step, ...]], tuple[Step | frozenset[int], ...]]:
    """The view of everything until a row is listed for the first time, and the fact that it is listed."""

    def view(steps: tuple[Step, ...]) -> tuple[Step | frozenset[int], ...]:
        result: list[Step | frozenset[int]] = []
        for new, answer in steps:
            if row in new:
                return (*result, new)
            result.append((new, answer))
        return tuple(result)

    return view


def shows(transcript: Sequence[Answer | int], document: str) -> bool:
    """Whether an answer contains a text of a document."""
    return any(
        text is not None and text[0] == document
        for answer in transcript
        if not isinstance(answer, int)
        for _, text in answer
    )
