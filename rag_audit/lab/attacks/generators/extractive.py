"""A generator without a model: it copies from its passages, and has no other knowledge.

It replaces the papers' chat model, and every report names it. For an attacker it is a best case in one respect, because
it never uses knowledge from training, and a worst case in another, because it has no understanding of language.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from rag_audit.lab.attacks.interface import Continue, FillMasks, NextWord, Reply, Task, YesNo
from rag_audit.lab.attacks.passages import Passage
from rag_audit.lab.attacks.proxy import TokenStatistics
from rag_audit.lab.attacks.text import STOP_WORDS, grams, sentences, tokens, words

LABEL = "extractive baseline (no model: copies from the passages)"
_UNKNOWN = "I don't know"
_AROUND = 4
"""Words on each side of a mask that are compared."""
_LEAST_MATCH = 3
"""Words around a mask that have to agree before its word is copied."""
_LONGEST = 8
"""Words before a place that a continuation is matched on, at most."""
_SPLIT = re.compile(r"\[Mask_\d+\]")


class ExtractiveGenerator:
    """Fills masks, answers yes or no, and continues texts, using only the passages.

    :param own: its statistics of the language, for the probability of words that no passage has
    :param guarded: the changed prompt of the papers: the generator neither confirms that a text is present nor repeats
        one word for word, but summarises with the passage's most distinctive words
    """

    def __init__(self, own: TokenStatistics, *, guarded: bool = False) -> None:
        self._own = own
        self._guarded = guarded
        self.label = LABEL + (", guarded prompt" if guarded else "")
        self.probabilities = True

    def answer(self, task: Task, passages: Sequence[Passage]) -> Reply:
        """Answer a task from the passages."""
        if isinstance(task, FillMasks):
            return Reply(self._fill(task, passages))
        if isinstance(task, YesNo):
            return Reply(self._decide(task, passages))
        if isinstance(task, NextWord):
            before = words(task.retrieval)[-_LONGEST:]
            return Reply(task.word, (math.log(self._probability(task.word.lower(), before, passages)),))
        return self._continue(task, passages)

    def _fill(self, task: FillMasks, passages: Sequence[Passage]) -> str:
        parts = [words(part) for part in _SPLIT.split(task.retrieval)]
        lines = []
        for number in range(1, len(parts)):
            left, right = parts[number - 1][-_AROUND:], parts[number][:_AROUND]
            minimum = min(_LEAST_MATCH, len(left) + len(right))
            result = max((_gap(p, left, right, minimum) for p in passages), default=(0, ""))
            if result[0] >= minimum:
                lines.append(f"[Mask_{number}]: {result[1]}")
        return "\n".join(lines) or _UNKNOWN

    def _decide(self, task: YesNo, passages: Sequence[Passage]) -> str:
        if task.presence:
            if self._guarded:
                return "I cannot say what the context contains."
            wanted = grams(words(task.statement), 3)
            share = max((len(wanted & p.triples) / max(1, len(wanted)) for p in passages), default=0.0)
            return "Yes" if share >= 0.5 else "No"
        requested = words(task.statement)
        told = {w for w in requested if w not in STOP_WORDS}
        covering = [p for p in passages if told and len(told & p.counts.keys()) / len(told) >= 0.7]
        if not covering:
            return _UNKNOWN
        wanted = grams(requested, 2)
        share = max(len(wanted & p.pairs) / max(1, len(wanted)) for p in covering)
        return "Yes" if share >= 0.999 else "No"

    def _continue(self, task: Continue, passages: Sequence[Passage]) -> Reply:
        before = words(task.retrieval)[-_LONGEST:]
        length, passage, place = max(
            ((*_longest(p, before), n) for n, p in enumerate(passages)),
            key=lambda actual: (actual[0], -actual[2]),
            default=(0, 0, -1),
        )
        if place < 0:
            return Reply(_UNKNOWN, (math.log(self._own.probability("know", ["don't"])),))
        source = passages[place]
        if self._guarded:
            told = [w for w in source.words if w not in STOP_WORDS and len(w) > 2]
            text = "In short: " + ", ".join(dict.fromkeys(told[: task.maximum // 2]))
        elif length >= 2:
            text = " ".join(source.words[passage : passage + task.maximum])
        else:
            text = " ".join(" ".join(sentences(source.text)).split()[: task.maximum])
        if not task.probabilities:
            return Reply(text or _UNKNOWN)
        written = words(text)[: task.maximum]
        context = [*before, *written]
        logs = tuple(
            math.log(self._probability(w, context[max(0, len(before) + i - 4) : len(before) + i], passages))
            for i, w in enumerate(written)
        )
        return Reply(text if text else _UNKNOWN, logs or (math.log(0.5),))

    def _probability(self, word: str, before: Sequence[str], passages: Sequence[Passage]) -> float:
        """A cache model: words after the longest match in the passages, then the passages' words, then its own."""
        best, following = 0, [0, 0]
        for p in passages:
            for place in p.places.get(before[-1], ()) if before else ():
                length = _match(p.words, place, before)
                if length < best or place + 1 >= len(p.words):
                    continue
                if length > best:
                    best, following = length, [0, 0]
                following[0] += p.words[place + 1] == word
                following[1] += 1
        counts = sum(p.counts[word] for p in passages)
        seen = counts / max(1, sum(len(p.words) for p in passages))
        flat = 0.3 * seen + 0.7 * self._own.probability(word, before[-2:])
        if self._guarded:
            return 0.5 * seen + 0.5 * flat
        trust = 1 - 0.5**best if best else 0.0
        return (
            trust * (following[0] / following[1] if following[1] else 0.0) * 0.98 + (1 - 0.98 * trust) * flat
        )


def _match(of: Sequence[str], place: int, before: Sequence[str]) -> int:
    """How many words up to a place are the last ones of `before`."""
    length = 0
    while length < len(before) and place >= length and of[place - length] == before[-1 - length]:
        length += 1
    return length


def _longest(passage: Passage, before: Sequence[str]) -> tuple[int, int]:
    """The longest match of the last words in a passage, and the place after it."""
    result = [
        (_match(passage.words, place, before), place + 1)
        for place in (passage.places.get(before[-1], ()) if before else ())
    ]
    return max(result, default=(0, 0))


def _gap(passage: Passage, left: Sequence[str], right: Sequence[str], minimum: int) -> tuple[int, str]:
    """The word, or the two or three of a fragmented one, between words like those around a mask, and the number of
    agreeing words.

    :param minimum: minimum number of agreeing words; with fewer the result is either such a word or empty
    """
    w, best = passage.words, (0, "")
    size, reach = len(w), len(right)
    starts = {p + 1 for p in (passage.places.get(left[-1], ()) if left else ())}
    for first in starts:
        length = _match(w, first - 1, left)
        if length + reach < minimum:
            continue
        for last in range(first, min(first + 3, size)):
            follows = reach and last + 1 < size and w[last + 1] == right[0]
            agree = length + (_ahead(w, last + 1, right) if follows else 0)
            if agree > best[0]:
                best = (agree, "-".join(w[first : last + 1]))
    if reach < max(1, minimum):
        return best
    # Elsewhere the word before the mask is another one, so only those behind it agree.
    for last in {p - 1 for p in passage.places.get(right[0], ())} - starts:
        if last < 0 or last + minimum >= size or w[last + minimum] != right[minimum - 1]:
            continue
        agree = _ahead(w, last + 1, right)
        if agree > best[0]:
            best = (agree, w[last])
    return best


def _ahead(of: Sequence[str], place: int, after: Sequence[str]) -> int:
    length = 0
    while length < len(after) and place + length < len(of) and of[place + length] == after[length]:
        length += 1
    return length


def exact_match(passages: Sequence[Passage], answers: Sequence[str]) -> bool:
    """Whether a gold answer occurs in the generator's passages, its only source to copy from."""
    wanted = [" ".join(tokens(a)).lower() for a in answers]
    return any(w and w in " ".join(p.small) for p in passages for w in wanted)
