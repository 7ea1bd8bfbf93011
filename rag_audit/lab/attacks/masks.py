"""Masks of the mask-based attack (MBA): its algorithms 2, 3 and 4, with the proxy model's ranks.

A document is cut into M parts of equal length; in each the word with the largest rank is masked. Stop words, marks and
neighbours of a mask are never masked. Fragmented words (`beta-blocker`) count as one, with the largest rank of their
parts; of a misspelled word the correction is ranked, and both spellings are right answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from rag_audit.lab.attacks.proxy import Proxy, RankOf, Speller
from rag_audit.lab.attacks.text import JOINERS, STOP_WORDS, tokens

Variant = Literal["full", "plm", "no-spelling", "random"]
"""The full algorithm, or the variants of the paper's ablation: without fragmented words and spelling, without
spelling, random words."""


@dataclass(frozen=True)
class Masked:
    """A masked text, with `[Mask_1]`, `[Mask_2]`, .. in place of words.

    :param answers: for each mask the spellings that are right, in small letters
    """

    text: str
    answers: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Unit:
    """A word, or the parts of a fragmented one, as places in the list of tokens."""

    first: int
    last: int
    rank: int
    answers: tuple[str, ...]


def mask(
    text: str,
    count: int,
    model: Proxy,
    speller: Speller,
    *,
    variant: Variant = "full",
    random: Random | None = None,
) -> Masked:
    """Mask at most `count` words of a text; fewer if it has too few words that may be masked.

    :param random: draws the words of the variant `random`
    """
    spans = [(m, s) for m, s in _spans(text)]
    toks = [m for m, _ in spans]
    units = _units(toks, spans, model.ranks(text), speller, variant, text)
    chosen: list[_Unit] = []
    if variant == "random":
        eligible = [u for u in units if u.rank > 0]
        drawn = (random or Random(0)).sample(eligible, min(count, len(eligible)))
        chosen = sorted(drawn, key=lambda u: u.first)
    else:
        length = len(toks)
        for part in range(count):
            low, high = part * length // count, (part + 1) * length // count
            inside = [u for u in units if low <= u.first < high and u.rank > 0]
            if chosen:
                inside = [u for u in inside if u.first > chosen[-1].last + 1]
            if inside:
                chosen.append(max(inside, key=lambda u: (u.rank, len(u.answers[0]))))
    out, at = [], 0
    for number, unit in enumerate(chosen, 1):
        start, end = spans[unit.first][1], spans[unit.last][1] + len(spans[unit.last][0])
        out += [text[at:start], f"[Mask_{number}]"]
        at = end
    return Masked("".join([*out, text[at:]]), tuple(unit.answers for unit in chosen))


def _spans(text: str) -> list[tuple[str, int]]:
    result, at = [], 0
    for token in tokens(text):
        at = text.index(token, at)
        result.append((token, at))
        at += len(token)
    return result


def _units(
    toks: Sequence[str],
    spans: Sequence[tuple[str, int]],
    rank_of: RankOf,
    speller: Speller,
    variant: Variant,
    text: str,
) -> list[_Unit]:
    units, i = [], 0
    while i < len(toks):
        last = i
        if variant in ("full", "no-spelling", "random"):
            while last + 2 < len(toks) and _joined(spans, last):
                last += 2
        if any(toks[j][0].isalnum() for j in range(i, last + 1)):
            units.append(_unit(toks, spans, i, last, rank_of, speller, variant, text))
        i = last + 1
    return units


def _joined(spans: Sequence[tuple[str, int]], at: int) -> bool:
    """Whether the token, a joiner and the next token follow each other without a space."""
    (a, x), (b, y), (c, z) = spans[at : at + 3]
    return b in JOINERS and x + len(a) == y and y + 1 == z and c[0].isalnum() and a[0].isalnum()


def _unit(
    toks: Sequence[str],
    spans: Sequence[tuple[str, int]],
    first: int,
    last: int,
    rank_of: RankOf,
    speller: Speller,
    variant: Variant,
    text: str,
) -> _Unit:
    places = [j for j in range(first, last + 1) if toks[j][0].isalnum()]
    parts = [toks[j] for j in places]
    whole = text[spans[first][1] : spans[last][1] + len(spans[last][0])].lower()
    if all(p.lower() in STOP_WORDS or len(p) < 2 for p in parts):
        return _Unit(first, last, -1, (whole,))
    before = toks[first - 1].lower() if first else None
    answers: tuple[str, ...] = (whole,)
    corrected = speller.correct(parts[0]) if variant == "full" and len(parts) == 1 else None
    if corrected is not None:
        answers = (whole, corrected)
        return _Unit(first, last, rank_of(spans[first][1], corrected, before), answers)
    rank, previous = 0, before
    for place in places:
        word = toks[place].lower()
        rank, previous = max(rank, rank_of(spans[place][1], word, previous)), word
    return _Unit(first, last, rank, answers)
