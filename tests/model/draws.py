"""Draws from a stream's words, and Bernoulli bits: claims 1 to 3 of `docs/scan/noise.md`, 1 and 2 of
`docs/scan/bernoulli-bits.md`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

WORDS = frozenset(
    {"word", "compared with the modulus", "range of draws", "range of the high part", "range of the rest"}
)
CHOICES = frozenset({"distance", "row", "range of t", "range of the distance"})
COINS = frozenset({"distance", "row", "range of t", "range of the distance"})


@dataclass(frozen=True)
class Sizes:
    """A word of two draws of so many bits and a high part, over the prime `p`, whose words the stream has."""

    p: int
    draw: int
    high: int

    @property
    def highest(self) -> int:
        """The largest last draw and high part that can be proved."""
        return (self.p >> self.draw) - 1

    @property
    def rest(self) -> int:
        """Bits of the difference between the bound and a word."""
        return self.highest.bit_length()

    def check(self) -> None:
        """The page's statements for these sizes: every word fits, and no sum of limbs wraps around."""
        assert 2 * self.draw + self.high >= self.p.bit_length()
        assert (1 << self.draw + self.high) + (1 << self.rest) < self.p


def words_accepted_and_false(
    sizes: Sizes, without: frozenset[str] = frozenset()
) -> Iterator[tuple[int, int, int]]:
    """Draws and a word of the stream that are accepted together, where the draws are not the word's own low bits."""
    p, draw = sizes.p, sizes.draw

    def within(claim: str, bits: int) -> range:
        return range(p if claim in without else 1 << bits)

    draws = within("range of draws", draw)
    for low, last, high in product(draws, draws, within("range of the high part", sizes.high)):
        rest = (sizes.highest - last - (high << draw)) % p
        if not {"compared with the modulus", "range of the rest"} & without and rest >= 1 << sizes.rest:
            continue
        result = (low + (last << draw) + (high << 2 * draw)) % p
        for word in range(p) if "word" in without else (result,):
            if (low, last) != (word & (1 << draw) - 1, word >> draw & (1 << draw) - 1):
                yield low, last, word


def words_proved(sizes: Sizes) -> set[int]:
    """The words that some draws are accepted for."""
    p, draw = sizes.p, sizes.draw
    return {
        word for word in range(p)
        if 0 <= sizes.highest - (word >> draw) < 1 << sizes.rest and word >> 2 * draw < 1 << sizes.high
    }  # fmt: skip


def choices_accepted_and_false(
    p: int, bits: int, without: frozenset[str] = frozenset()
) -> Iterator[tuple[int, int, int]]:
    """A threshold, t and a choice that are accepted, where the choice is not that t lies below the threshold."""
    assert 1 << bits + 2 < p
    size = 1 << bits
    for threshold, t in product(range(size), range(p if "range of t" in without else size)):
        for choice in range(p if "row" in without else 2):
            distance = ((2 * choice - 1) * (threshold - t) - choice) % p
            if not {"distance", "range of the distance"} & without and distance >= size:
                continue
            if choice != (t < threshold):
                yield threshold, t, choice


def coins_accepted_and_false(
    p: int, byte_bits: int, bits: int, without: frozenset[str] = frozenset()
) -> Iterator[tuple[int, int, int, int]]:
    """A bound, a byte, t and a coin that are accepted, where the coin is not that byte and t lie below the bound."""
    assert 1 << bits + 3 < p
    size, byte_size = 1 << bits, 1 << byte_bits
    for bound in range(1, size * byte_size):
        threshold, minimum = divmod(bound, byte_size)
        rows = [(byte, coin, int(byte < minimum)) for byte in range(byte_size) for coin in (0, 1)]
        if "row" in without:
            rows = list(product(range(2 * byte_size), range(3), (0, 1)))
        for (byte, coin, smaller), t in product(rows, range(p if "range of t" in without else size)):
            distance = ((2 * coin - 1) * (threshold + smaller - t) - coin) % p
            if not {"distance", "range of the distance"} & without and distance >= size:
                continue
            if coin != (byte + byte_size * t < bound):
                yield bound, byte, t, coin
