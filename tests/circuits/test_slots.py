"""The templates' arithmetic of slots, read from the sources, against integers: whatever parameters a template takes,
nothing that it computes of them wraps modulo r, every honest value is in range, and equal packings are equal slots."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from math import isqrt

import pytest

from rag_audit.errors import PolicyError
from rag_audit.proofs.backends.groth16.instance import RetrieveInstance
from rag_audit.relation.field import MODULUS
from rag_audit.relation.scores import ScoreWindow
from tests.circuits.compile_time import (
    HALF,
    Refused,
    Residue,
    bit_length,
    bounds,
    function,
    slots,
    template,
    without,
)

SWEPT = 20_000
"""Parameter sets of the default suite, among which a bound that is missing shows."""
LARGEST, SMALLEST = 64, -56
"""Products of components in -8..7."""


def near(rng: random.Random, value: int) -> int:
    """At or just beyond a bound, on the side of zero or of r."""
    return value + rng.choice((-2, -1, 0, 1, 2))


def wild(rng: random.Random) -> int:
    """Of any magnitude, residues of negative numbers among them."""
    value = rng.getrandbits(rng.randint(0, 256)) % MODULUS
    return rng.choice((value, value, MODULUS - value, near(rng, HALF), near(rng, MODULUS)))


def one_of(rng: random.Random, *choices: Callable[[], int]) -> int:
    return rng.choice(choices)()


@cache
def inverse_shift(bits: int) -> int:
    return pow(2, -bits, MODULUS)


def only_equal_slots(
    rng: random.Random, w: int, g: int, slot: tuple[int, int], value: tuple[int, int]
) -> None:
    """The forger's way: all values but the last are chosen, and the last is what the equation leaves for it."""
    held = [rng.choice((*slot, rng.randint(*slot))) for _ in range(g)]
    inside = [min(max(x, value[0]), value[1]) for x in held]
    chosen = [
        min(max(rng.choice((*value, x, x + 1, x - 1, x + (1 << w), x - (1 << w))), value[0]), value[1])
        for x in inside
    ]
    rest = sum((a - b) << (w * i) for i, (a, b) in enumerate(zip(held, [*chosen[:-1], 0], strict=True)))
    last = rest * inverse_shift(w * (g - 1)) % MODULUS
    last -= MODULUS if last > HALF else 0
    if chosen[:-1] != held[:-1]:
        assert not value[0] <= last <= value[1], f"{held} is packed as {[*chosen[:-1], last]}"
    else:
        assert last == held[-1]


def integers(*residues: Residue) -> list[int]:
    return [int(x) for x in residues]


def scores(rng: random.Random) -> None:
    """Scores and Quantise. The bounds of RetrieveInstance are the template's, or narrower."""
    sane = rng.random() < 0.8
    d = one_of(rng, lambda: rng.randint(1, 300), lambda: near(rng, 4096)) if sane else wild(rng)
    hi = one_of(rng, lambda: rng.randint(0, max(1, 64 * d)), lambda: near(rng, 64 * d))
    below = lambda: rng.randint(0, max(1, hi))  # noqa: E731
    lo = one_of(rng, below, below, below, lambda: near(rng, hi), lambda: near(rng, 0))
    lattice = 1 << rng.randint(0, 26)
    if not sane:
        place = rng.randrange(3)
        lo, hi, lattice = (wild(rng) if i == place else x for i, x in enumerate((lo, hi, lattice)))
        d = rng.choice((d, 16, 256))
    instance = None
    with suppress(PolicyError):
        instance = RetrieveInstance(8, d, 5, (1,), lo, hi, lattice)
    parameters = [Residue(x) for x in (d, lo, hi, lattice)]
    try:
        one = template("Quantise")(*parameters)
        all_of = template("Scores")(Residue(64), *parameters)
        g = int(all_of["G"])
        given = [slots("Scores", all_of, count=count)[0] for count in (g, 1 + rng.randrange(g))]
    except Refused:
        assert instance is None, f"{instance} cannot be compiled"
        raise
    d, lo, hi, lattice = integers(*parameters)
    width, h, offset = hi - lo, int(one["h"]), lo * lattice - (hi - lo) // 2
    assert integers(one["width"], one["offset"]) == [width, offset]
    # Every honest score has a quotient, and the clamped quotient is the quantiser's.
    window = ScoreWindow(lo, hi, lattice)
    for s in (SMALLEST * d, LARGEST * d, lo, hi, 0, rng.randint(SMALLEST * d, LARGEST * d)):
        quotient = (lattice * s - offset) // width
        assert -(h + 1) * lattice <= quotient < (h + 1) * lattice
        assert min(max(quotient, 0), lattice) == window.quantise(s)
    # What the constraints admit: scaled = width (low + R (more + (h + 1)(positive - 1))) + remainder + offset.
    reached = (
        width * (-(h + 1) * lattice) + offset,
        width * (lattice - 1 + lattice * h) + width - 1 + offset,
    )
    held = (SMALLEST * d * lattice, LARGEST * d * lattice)
    for w, count, *ranges in (integers(*arguments) for arguments in given):
        assert ranges == [*held, *reached]
        only_equal_slots(rng, w, count, held, reached)


def top_k(rng: random.Random) -> None:
    n = 8 * one_of(rng, lambda: rng.randint(1, 40), lambda: 1 << rng.randint(0, 14))
    k = one_of(rng, lambda: rng.randint(1, 12), lambda: rng.randint(1, n), lambda: near(rng, n))
    reach = one_of(rng, lambda: 127 * rng.randint(1, 80), lambda: 1 << rng.randint(1, 40))
    lattice = 1 << rng.randint(0, 30)
    if rng.random() < 0.3:
        n, k, reach, lattice = (wild(rng) if rng.random() < 0.4 else x for x in (n, k, reach, lattice))
    parameters = [Residue(x) for x in (n, k, -reach, lattice + reach)]
    result = template("TopK")(*parameters)
    ((w, g, *ranges),) = (integers(*arguments) for arguments in slots("TopK", result))
    n, k, y_min, y_max = integers(*parameters)
    assert y_min <= y_max and 1 <= k <= n
    y_bits, f = (y_max - y_min).bit_length(), k.bit_length()
    assert integers(result["y_bits"], result["f"]) == [y_bits, f] and k < 1 << f
    # excess = y_i - y_T + before, for y_T of y_bits digits; then chosen (1 + 2^f excess), and K of them at most.
    excess = (-((1 << y_bits) - 1), y_max - y_min + 1)
    value = (min(0, 1 + (excess[0] << f)), max(1, 1 + (excess[1] << f)))
    listed = (1 - (((1 << y_bits) - 1) << f), 1 + ((1 << y_bits) << f))
    held = (min(0, k * listed[0]), max(0, k * listed[1]))
    assert ranges[0] <= held[0] and held[1] <= ranges[1] and ranges[2] <= value[0] and value[1] <= ranges[3]
    only_equal_slots(rng, w, g, held, value)


def embed(rng: random.Random) -> None:
    """Embed and Normalise."""
    tokens, d = rng.randint(1, 70), one_of(rng, lambda: rng.randint(1, 800), lambda: near(rng, 4096))
    factor = one_of(
        rng, lambda: rng.randint(1, 20_000), lambda: near(rng, 1 << 20), lambda: 1 << rng.randrange(20)
    )
    if rng.random() < 0.3:
        tokens, d, factor = (wild(rng) if rng.random() < 0.4 else x for x in (tokens, d, factor))
    parameters = [Residue(x) for x in (tokens, d, factor)]
    t, d_, a = parameters
    whole = template("Embed")(t, d_, Residue(5), Residue(32_000), a)
    one = template("Normalise")(d_, a, Residue(8) * t)
    (sums,) = (integers(*arguments) for arguments in slots("Embed", whole, slots=rng.randint(1, 25)))
    (both,) = (integers(*arguments) for arguments in slots("Normalise", one))
    tokens, d, factor = integers(*parameters)
    reach, bits = 8 * tokens, int(one["threshold_bits"])
    # t_7 for the longest sum, and the range of its digits.
    root = longest_root(d, reach)
    assert max(-(-13 * root // (2 * factor)), reach + 1) < 1 << bits
    held, value = (0, 15 * tokens), (0, (1 << int(whole["slot_bits"])) - 1)
    assert sums[2:] == [*held, *value] and held[1] <= value[1]
    only_equal_slots(rng, *sums[:2], held, value)
    above = (1 << reach.bit_length()) - 1
    held, value = (0, (1 << bits) - 1), (-reach - above, reach + 1 + (1 << bits) - 1)
    assert both[2:] == [*held, *value]
    only_equal_slots(rng, *both[:2], held, value)


def longest_root(d: int, reach: int) -> int:
    """w of the longest sum of rows."""

    return isqrt((d * reach * reach) << 16)


def coalition(rng: random.Random) -> None:
    """The two counts of Coalition; InnerProducts has digits for its slots, whose number is bounded."""
    records, d, a = (
        4 * rng.randint(0, 20),
        one_of(rng, lambda: rng.randint(1, 300), lambda: near(rng, 4096)),
        rng.randint(0, 20),
    )
    if rng.random() < 0.3:
        records, d, a = (wild(rng) if rng.random() < 0.4 else x for x in (records, d, a))
    parameters = [Residue(x) for x in (records, d, a)]
    inner = template("InnerProducts")(*parameters)
    result = template("Coalition")(*parameters[:2], Residue(4), Residue(5), parameters[2])
    n, d, a = integers(*parameters)
    width, rows = int(inner["W"]), int(inner["R"])
    assert 64 * d <= 1 << width - 1 and rows in (3, 4) and rows**2 * width <= 252 and 1 <= a < width
    bits = (n - 1).bit_length()
    ((w, g, *ranges),) = (integers(*x) for x in slots("Coalition", result, count_bits=bits))
    held, value = (1 - n, n - 1), (0, (1 << bits) - 1)
    assert ranges == [*held, *value]
    only_equal_slots(rng, w, g, held, value)


def swept(count: int) -> Counter[str]:
    """Random parameter sets of each template, mostly of scores; how many were taken and refused."""
    rng = random.Random(12)
    kinds = [scores] * 5 + [top_k] * 3 + [embed, coalition]
    seen: Counter[str] = Counter()
    for _ in range(count):
        kind = rng.choice(kinds)
        try:
            kind(rng)
        except Refused:
            seen[f"{kind.__name__} refused"] += 1
        else:
            seen[kind.__name__] += 1
    return seen


def outcomes() -> Iterator[str]:
    for kind in ("scores", "top_k", "embed", "coalition"):
        yield from (kind, f"{kind} refused")


@pytest.mark.parametrize("count", [SWEPT, pytest.param(100_000, marks=pytest.mark.full)])
def test_no_parameters_make_slots_wrap(count: int) -> None:
    seen = swept(count)
    assert min(seen[name] for name in outcomes()) >= count // 100, seen


def test_bit_length_counts_as_circom_does() -> None:
    rng = random.Random(1)
    for value in [0, 1, 2, MODULUS - 1, HALF, HALF + 1, *(wild(rng) for _ in range(50))]:
        assert function("bit_length")(Residue(value)) == bit_length(Residue(value))


def wrapping(product: int, *, negative: bool) -> int:
    """A residue, negative or larger than any parameter, that 64 times is `product` or a little more."""
    result = (x * inverse_shift(6) % MODULUS for x in range(product, product + 64) if x % 64)
    return next(x for x in result if (x > HALF) == negative)


SLOTS = {
    "1 <= W": (0, 1, 0, 0, 0, 0),
    "W <= 64": (65, 1, 0, 0, 0, 0),
    "1 <= G": (10, 0, 0, 0, 0, 0),
    "G <= 252": (64, wrapping(1, negative=False), 0, 0, 0, 0),
    "W * G <= 252": (64, 4, 0, 0, 0, 0),
    "-(1 << 64) < low": (8, 2, -(1 << 64), -(1 << 64), 1 - (1 << 64), 1 - (1 << 64)),
    "low <= high": (8, 2, 1, 0, 0, 0),
    "high < 1 << 64": (8, 2, (1 << 64) - 1, 1 << 64, (1 << 64) - 1, (1 << 64) - 1),
    "-(1 << 64) < least": (8, 2, 1 - (1 << 64), 1 - (1 << 64), -(1 << 64), 1 - (1 << 64)),
    "least <= most": (8, 2, 0, 0, 1, 0),
    "most < 1 << 64": (8, 2, (1 << 64) - 1, (1 << 64) - 1, (1 << 64) - 1, 1 << 64),
    "high - least < 1 << W": (8, 2, 0, 256, 0, 0),
    "most - low < 1 << W": (8, 2, 0, 0, 0, 256),
}
REFUSED: dict[str, dict[str, tuple[object, ...]]] = {
    "Bits": {"n <= 253": (254,)},
    "Bounded": {"n >= 1": (0,)},
    "LessThanBounded": {"n <= 252": (253,)},
    "SquareRoot": {"n <= 100": (101,)},
    "Noise": {
        "1 <= N": (0, 1, [1]),
        "1 <= m": (8, 0, []),
        "m <= 6": (8, 7, [1] * 7),
        "1 <= gains[c]": (8, 2, [1, -1]),
        "gains[c] <= 32768": (8, 2, [1, 32_769]),
    },
    "SlotEquality": SLOTS,
    "quotient_groups": {
        "1 <= d": (wrapping(810, negative=True), 101, 810, 64),
        "d <= 4096": (4097, 101, 810, 64),
        "0 <= lo": (256, -1, 810, 64),
        "lo < hi": (256, HALF - 1, -HALF, 64),
        "hi <= 64 * d": (16, 20, 1025, 64),
        "1 <= R": (256, 101, 810, -64),
        "R <= 1 << 24": (256, 101, 810, 1 << 25),
        "width >= 2": (256, 101, 102, 64),
    },
    "Quantise": {"R == 1 << log_R": (256, 101, 810, 48)},
    "TopK": {
        "N == 8 * groups": (12, 5, 0, 64),
        "N <= 1 << 17": ((1 << 17) + 8, 5, 0, 64),
        "1 <= K": (8, 0, 0, 64),
        "K <= N": (8, 9, 0, 64),
        "-(1 << 32) < y_min": (8, 5, -(1 << 32), 64),
        "y_min <= y_max": (8, 5, 64, 0),
        "y_max < 1 << 32": (8, 5, 0, 1 << 32),
    },
    "Normalise": {
        "1 <= d": (0, 8145, 8),
        "d <= 4096": (4097, 8145, 8),
        "1 <= reach": (256, 8145, 0),
        "reach <= 512": (256, 8145, 513),
        "1 <= A": (256, -1, 8),
        "A <= 1 << 20": (256, (1 << 20) + 1, 8),
    },
    "Embed": {
        "1 <= T": (0, 256, 5, 0, 8145),
        "T <= 64": (65, 256, 5, 0, 8145),
        "1 <= depth": (24, 256, 0, 0, 8145),
        "depth <= 5": (24, 256, 6, 0, 8145),
        "0 <= zero_row": (24, 256, 5, -1, 8145),
        "zero_row < 1 << (3 * depth)": (24, 256, 5, 32_768, 8145),
    },
    "InnerProducts": {
        "4 <= N": (0, 256, 11),
        "N <= 1 << 16": ((1 << 16) + 4, 256, 11),
        "N % 4 == 0": (6, 256, 11),
        "1 <= d": (16, wrapping(4096, negative=True), 11),
        "d <= 4096": (16, 4097, 11),
        "1 <= a": (16, 256, 0),
        "a < W": (16, 256, 15),
    },
    "PackedBits": {"1 <= N": (0,)},
    "Uniforms": {"1 <= N": (0,), "N <= 1 << 17": ((1 << 17) + 1,)},
    "Slots": {"1 <= count": (0, 8)},
    "Documents": {"1 <= D": (8, 0), "D <= N": (8, 9), "N <= 1 << 17": ((1 << 17) + 1, 1)},
    "Names": {"1 <= D": (8, 0), "D <= N": (8, 9), "N <= 1 << 17": ((1 << 17) + 1, 1)},
    "Coalition": {
        "0 < p": (16, 256, 0, 5, 11),
        "p < q": (16, 256, 5, 5, 11),
        "q <= 1000": (16, 256, 4, 1001, 11),
    },
}
"""By function or template and part of an assert: parameters that this part refuses, and no other."""
DIVISORS: dict[tuple[str, str], tuple[object, ...]] = {
    ("Slots", "1 <= W"): (1, 0),
    ("Slots", "W <= 252"): (1, 253),
}
"""Parts of asserts without which the template divides by zero, and parameters that they refuse."""
LENGTHS = {"Hash", "partial_rounds"}
"""Their asserts are about numbers of inputs that stand in the sources."""


def run(name: str, values: tuple[object, ...]) -> None:
    def residue(value: object) -> object:
        return [residue(v) for v in value] if isinstance(value, list) else Residue(int(str(value)))

    result = function if name == "quotient_groups" else template
    result(name)(*map(residue, values))


@pytest.mark.parametrize("name, bound", [(n, bound) for n, cases in REFUSED.items() for bound in cases])
def test_each_bound_refuses_what_no_other_does(name: str, bound: str) -> None:
    with pytest.raises(Refused) as caught:
        run(name, REFUSED[name][bound])
    assert bound in str(caught.value)
    with without(name, bound):
        run(name, REFUSED[name][bound])


def test_no_bound_is_left_untried() -> None:
    # What tags say of a signal, such as `a.width`, only the compiler knows: test_tags.py tries those asserts.
    tried = {(name, bound) for name, bound in bounds() if name not in LENGTHS and "." not in bound}
    assert tried == {*DIVISORS, *((name, bound) for name, cases in REFUSED.items() for bound in cases)}


@pytest.mark.parametrize("name, bound", DIVISORS)
def test_a_bound_is_refused_before_a_division_by_zero(name: str, bound: str) -> None:
    with pytest.raises(Refused) as caught:
        run(name, DIVISORS[name, bound])
    assert bound in str(caught.value)
    with without(name, bound), pytest.raises(Refused, match="division by zero"):
        run(name, DIVISORS[name, bound])


def test_slots_that_fit_are_taken() -> None:
    for arguments in ((8, 31, 0, 255, 0, 255), (63, 4, 0, 0, 0, (1 << 63) - 1), (1, 252, 0, 1, 0, 1)):
        template("SlotEquality")(*map(Residue, arguments))


@pytest.mark.parametrize("name, bound", [("quotient_groups", "hi <= 64 * d"), ("TopK", "K <= N")])
def test_the_sweep_finds_a_bound_that_is_missing(name: str, bound: str) -> None:
    with without(name, bound), pytest.raises(AssertionError):
        swept(SWEPT)
