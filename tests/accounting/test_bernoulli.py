"""The closed forms of sampling and listing, against every transcript of tiny cases."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_audit.errors import PolicyError
from rag_audit.mechanisms.accounting import curves, gaussian_epsilon
from rag_audit.mechanisms.accounting.bernoulli import (
    ChanceListing,
    Sampling,
    exclusion_factor_over_windows,
)
from rag_audit.mechanisms.accounting.curves import floor_epsilon, probability_over_range
from rag_audit.relation.bernoulli import PROBABILITY_RANGE

Query = tuple[int, frozenset[int]]
"""The account that asks, and the positions that are relevant to its question."""
Laws = dict[tuple[tuple[int, ...], ...], Fraction]

HALF, QUARTER = PROBABILITY_RANGE // 2, PROBABILITY_RANGE // 4
COINS = st.integers(1, PROBABILITY_RANGE - 1)


def law(
    queries: Sequence[Query], *, positions: int, keep: Fraction, flip_probability: Fraction, maximum: int
) -> Laws:
    """The probability of every transcript of lists of one set for each account, by all coins: docs/accounting.md,
    "Listing by chance"."""
    # As integers over a common denominator, for time.
    unit, once = keep.denominator**positions, flip_probability.denominator**positions
    draws = [(drawn, int(q * once)) for drawn, q in coins(positions, flip_probability)]
    laws: dict[tuple[tuple[int, ...], ...], int] = defaultdict(int)
    for kept in itertools.product((0, 1), repeat=positions):
        start = math.prod((keep if bit else 1 - keep for bit in kept), start=Fraction(1))
        states: dict[tuple[tuple[tuple[int, ...], ...], frozenset[tuple[int, int]]], int]
        states = {((), frozenset()): int(start * unit)}
        for account, relevant in queries:
            after: dict[tuple[tuple[tuple[int, ...], ...], frozenset[tuple[int, int]]], int]
            after = defaultdict(int)
            for (lists, held), p in states.items():
                for drawn, q in draws:
                    winners = [
                        i
                        for i in range(positions)
                        if i in drawn or (i in relevant and kept[i] and (account, i) not in held)
                    ]
                    listed = tuple(winners[:maximum])
                    now = held | {(account, i) for i in listed}
                    after[((*lists, listed), now)] += p * q
            states = after
        for (lists, _), p in states.items():
            laws[lists] += p
    whole = unit * once ** len(queries)
    assert sum(laws.values()) == whole
    return {lists: Fraction(p, whole) for lists, p in laws.items()}


def coins(positions: int, flip_probability: Fraction) -> Iterator[tuple[frozenset[int], Fraction]]:
    """Every outcome of the Bernoulli bits, with its probability."""
    for drawn in itertools.product((0, 1), repeat=positions):
        yield (
            frozenset(i for i, bit in enumerate(drawn) if bit),
            math.prod(
                (flip_probability if bit else 1 - flip_probability for bit in drawn), start=Fraction(1)
            ),
        )


def worlds(
    accounts: int, queries: int, positions: int
) -> Iterator[list[tuple[int, bool, bool, frozenset[int]]]]:
    """Every sequence of questions: who asks, whether position 0 is relevant to it with the one document and with the
    other, and which of the other positions are. A question that depends on earlier lists is, on each transcript, one of
    these.
    """
    others = [
        frozenset(c) for n in (0, positions - 1) for c in itertools.combinations(range(1, positions), n)
    ]
    one = itertools.product(range(accounts), (False, True), (False, True), others)
    yield from map(list, itertools.product(list(one), repeat=queries))


def requested(questions: list[tuple[int, bool, bool, frozenset[int]]], document: int) -> list[Query]:
    """The questions in a world: document 1 or 2 at position 0, or 0 for none."""
    return [
        (account, others | {0} if document and (x, y)[document - 1] else others)
        for account, x, y, others in questions
    ]


CASES = [
    # positions, accounts, queries, keep, flip_probability, most
    (3, 1, 2, HALF, QUARTER, 3),
    (3, 1, 2, HALF, QUARTER, 1),
    (3, 2, 2, 3 * QUARTER, QUARTER, 3),
    (3, 2, 2, QUARTER, HALF, 2),
    (4, 1, 2, HALF, HALF, 4),
    (4, 1, 1, 3 * QUARTER, QUARTER, 2),
    (2, 2, 3, HALF, QUARTER, 2),
]


@pytest.mark.parametrize(("positions", "accounts", "queries", "keep", "flip_probability", "maximum"), CASES)
def test_every_transcript_of_a_listing(
    positions: int, accounts: int, queries: int, keep: int, flip_probability: int, maximum: int
) -> None:
    pi, q = Fraction(keep, PROBABILITY_RANGE), Fraction(flip_probability, PROBABILITY_RANGE)
    upper = pi / q**accounts + 1 - pi
    found_added, found_replaced, found_unlisted = Fraction(0), Fraction(0), Fraction(0)
    laws: dict[tuple[Query, ...], Laws] = {}

    def of(questions: list[Query]) -> Laws:
        key = tuple(questions)
        if key not in laws:
            laws[key] = law(questions, positions=positions, keep=pi, flip_probability=q, maximum=maximum)
        return laws[key]

    for questions in worlds(accounts, queries, positions):
        none, one, other = (of(requested(questions, document)) for document in (0, 1, 2))
        assert none.keys() == one.keys()  # no transcript is impossible in one world alone
        for lists, p in one.items():
            ratio = p / none[lists]
            assert 1 - pi <= ratio <= upper
            found_added = max(found_added, ratio)
            if not any(0 in listed for listed in lists):
                assert ratio <= 1
                found_unlisted = max(found_unlisted, 1 / ratio)
            found_replaced = max(found_replaced, p / other[lists])
    listing = ChanceListing(keep, flip_probability)
    assert found_added == upper
    assert curves.epsilon_of_adding(listing, accounts) == pytest.approx(
        float(max(math.log(upper), -math.log(1 - pi))), rel=2e-4
    )
    assert found_unlisted == 1 / (1 - pi)
    assert math.log(found_replaced) <= listing.epsilon(accounts)
    if queries > accounts and maximum == positions:
        # Both documents are relevant, at different questions: the bound is met.
        assert found_replaced == upper / (1 - pi)
        assert listing.epsilon(accounts) == pytest.approx(math.log(found_replaced), rel=1e-4)


def top_k_law(
    scores: Sequence[tuple[int, ...]], *, keep: Fraction, noises: Sequence[int], maximum: int
) -> Laws:
    """The probability of every transcript of first-K lists of noised scores, of which those that are not kept are 0.

    :param scores: of each question, by position
    :param noises: values that the noise of a score takes, alike often
    """
    laws: Laws = defaultdict(Fraction)
    positions = len(scores[0])
    for kept in itertools.product((0, 1), repeat=positions):
        start = math.prod((keep if bit else 1 - keep for bit in kept), start=Fraction(1))
        steps = []
        for row in scores:
            step: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
            for noise in itertools.product(noises, repeat=positions):
                ranks = [u * bit + z for u, bit, z in zip(row, kept, noise, strict=True)]
                order = sorted(range(positions), key=lambda i: (-ranks[i], i))
                step[tuple(order[:maximum])] += Fraction(1, len(noises) ** positions)
            steps.append(step)
        for lists in itertools.product(*steps):
            laws[lists] += start * math.prod(
                (s[i] for s, i in zip(steps, lists, strict=True)), start=Fraction(1)
            )
    return laws


@pytest.mark.parametrize("noises", [(0,), (-1, 0, 2)], ids=["exact", "noised"])
@pytest.mark.parametrize("maximum", [1, 2])
@pytest.mark.parametrize("keep", [HALF, 3 * QUARTER])
def test_every_transcript_of_a_sampled_index(keep: int, maximum: int, noises: Sequence[int]) -> None:
    """First K of all positions, any number of accounts: they share what is kept, so one account stands for all."""
    pi = Fraction(keep, PROBABILITY_RANGE)
    seen, rows = Fraction(0), list(itertools.product((0, 2), (0, 1), (0, 1)))
    for asked_for in itertools.product(rows, repeat=2):
        empty = [(0, *row[1:]) for row in asked_for]
        one, none = (top_k_law(s, keep=pi, noises=noises, maximum=maximum) for s in (asked_for, empty))
        for lists, p in none.items():
            if not any(0 in listed for listed in lists):
                ratio = one.get(lists, Fraction(0)) / p
                assert 1 - pi <= ratio <= 1
                seen = max(seen, 1 / ratio)
    if noises == (0,):
        assert seen == 1 / (1 - pi)
    assert 1 < seen <= Fraction(Sampling(keep).exclusion_factor(2))


def test_listing_again_what_an_account_holds_costs_again() -> None:
    """The rule that a held position is not relevant any more is what makes one account cost 1/q and not more."""
    pi, q = Fraction(1, 2), Fraction(1, 4)
    # An account without memory is like two accounts: neither holds what the other was listed.
    forgetful = [(i, frozenset({0})) for i in range(2)]
    one = law(forgetful, positions=3, keep=pi, flip_probability=q, maximum=3)
    none = law([(i, frozenset[int]()) for i in range(2)], positions=3, keep=pi, flip_probability=q, maximum=3)
    assert max(p / none[lists] for lists, p in one.items()) > pi / q + 1 - pi


@pytest.mark.parametrize(
    ("keep", "epsilons", "odds"),
    [
        ("0.7", [7.5562, 14.264, 67.931], [4.2558, 5.4334, 38.355]),
        ("0.9", [8.9057, 15.614, 69.281], [12.768, 16.3, 115.07]),
    ],
)
def test_figures_of_the_specification(keep: str, epsilons: list[float], odds: list[float]) -> None:
    listing = ChanceListing(
        probability_over_range(keep, "keep"), probability_over_range(str(5 / 4096), "flip_probability")
    )
    assert [listing.epsilon(k) for k in (1, 2, 10)] == epsilons
    assert [listing.exclusion_factor(200 * k) for k in (1, 2, 10)] == odds
    assert listing.list_without_relevance(200) == pytest.approx(0.217, abs=5e-4)


ENDS = [
    (keep, flip_probability)
    for keep in (1, PROBABILITY_RANGE - 1)
    for flip_probability in (1, PROBABILITY_RANGE - 1)
]


@pytest.mark.parametrize(("keep", "flip_probability"), ENDS)
@pytest.mark.parametrize("k", [1, 2, 17, 18, 40])
def test_a_bound_at_the_ends_of_its_parameters(keep: int, flip_probability: int, k: int) -> None:
    not_below_the_truth(keep, flip_probability, k)


@given(COINS, COINS, st.integers(1, 40))
def test_a_bound_is_not_below_the_truth(keep: int, flip_probability: int, k: int) -> None:
    not_below_the_truth(keep, flip_probability, k)


def not_below_the_truth(keep: int, flip_probability: int, k: int) -> None:
    pi, q = Fraction(keep, PROBABILITY_RANGE), Fraction(flip_probability, PROBABILITY_RANGE)
    with localcontext() as context:
        context.prec = 60

        def ln(x: Fraction) -> Decimal:
            return (Decimal(x.numerator) / Decimal(x.denominator)).ln()

        maximum = pi / q**k + 1 - pi
        replaced, added = ln(maximum / (1 - pi)), max(ln(maximum), -ln(1 - pi))
        listing = ChanceListing(keep, flip_probability)
        for result, truth in ((listing.epsilon(k), replaced), (curves.epsilon_of_adding(listing, k), added)):
            assert truth <= Decimal(result) <= truth * Decimal("1.0002") + (k + 1) * Decimal(2) ** -51


@given(COINS, COINS, st.integers(1, 10**6))
def test_a_bound_rises_with_k(keep: int, flip_probability: int, k: int) -> None:
    listing = ChanceListing(keep, flip_probability)
    assert listing.epsilon(k) <= listing.epsilon(k + 1)
    assert curves.epsilon_of_adding(listing, k) <= listing.epsilon(k)


@pytest.mark.parametrize("keep", [1, PROBABILITY_RANGE - 1, probability_over_range("0.99996", "keep")])
def test_probabilities_stay_below_one(keep: int) -> None:
    listing = ChanceListing(keep, PROBABILITY_RANGE // 1000)
    assert 0.5 < curves.auc(listing) <= 1 and curves.roc(listing, 0.5) <= 1 and curves.roc(listing, 1.0) <= 1
    assert listing.list_without_relevance(10**6) == 1
    assert curves.auc_for(listing, 10**6) <= 1


def test_many_windows_and_large_coalitions() -> None:
    assert (
        exclusion_factor_over_windows([(Sampling(probability_over_range("0.9", "keep")), 1)] * 400)
        == math.inf
    )
    assert exclusion_factor_over_windows([(Sampling(HALF), 1)] * 365) > 1e109
    assert floor_epsilon(0.5, 5 / 4096, 2000) == pytest.approx(
        2000 * floor_epsilon(0.5, 5 / 4096, 1), rel=1e-12
    )
    assert floor_epsilon(0.5, 5 / 4096, 2000, delta=1e-5) == 0


@given(COINS, COINS, st.integers(1, 50), st.floats(1e-6, 0.999))
def test_a_tradeoff_is_a_concave_curve_between_chance_and_certainty(
    keep: int, flip_probability: int, k: int, fpr: float
) -> None:
    listing = ChanceListing(keep, flip_probability)
    corners = curves.tradeoff(listing, k)
    assert corners[0] == (0, 0)
    assert corners[-1] == (1, 1)
    slopes = [(y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in itertools.pairwise(corners) if x1 - x0 > 1e-9]
    assert all(a >= b * (1 - 1e-6) for a, b in itertools.pairwise(slopes))
    assert fpr <= curves.tpr(listing, k, fpr) <= 1
    assert 0.5 <= curves.auc_for(listing, k) <= 1
    # Never above what (eps, 0) alone allows, nor what sampling alone does.
    assert curves.tpr(listing, k, fpr) <= min(1.0, math.exp(min(listing.epsilon(k), 700.0)) * fpr) * (
        1 + 2e-4
    )
    assert curves.tpr(listing, k, fpr) <= curves.roc(listing, fpr) * (1 + 2e-4)
    assert curves.auc_for(listing, k) <= curves.auc(listing) * (1 + 2e-4)


@pytest.mark.parametrize(
    ("accounts", "queries", "flip_probability"),
    [(1, 2, QUARTER), (1, 2, 3 * QUARTER), (1, 3, HALF), (2, 2, HALF)],
)
def test_the_tradeoff_of_a_tiny_case_lies_above_every_test(
    accounts: int, queries: int, flip_probability: int
) -> None:
    """The most powerful tests, by likelihood ratio, of all pairs of worlds, on both sides of q^k = 1/2."""
    pi, q = Fraction(1, 2), Fraction(flip_probability, PROBABILITY_RANGE)
    listing, tightest = ChanceListing(HALF, flip_probability), 1.0
    for questions in worlds(accounts, queries, 2):
        one, other = (
            law(requested(questions, document), positions=2, keep=pi, flip_probability=q, maximum=2)
            for document in (1, 2)
        )
        ranked = sorted(one.keys() | other.keys(), key=lambda t: one.get(t, 0) / other[t], reverse=True)
        fpr = tpr = area = Fraction(0)
        for lists in ranked:
            area += other[lists] * (tpr + one[lists] / 2)
            fpr, tpr = fpr + other[lists], tpr + one[lists]
            if fpr < 1:
                slack = curves.tpr(listing, accounts, float(fpr)) - float(tpr)
                assert slack >= -1e-12
                tightest = min(tightest, slack)
        assert area <= Fraction(curves.auc_for(listing, accounts))
    assert tightest < 0.05


@pytest.mark.parametrize("written", ["0", "1", "1e-13", "0.9999999999999", "-0.1", "x", "nan"])
def test_a_coin_that_always_falls_alike_is_refused(written: str) -> None:
    with pytest.raises(PolicyError) as refused:
        probability_over_range(written, "keep")
    assert refused.value.field == "keep"


@pytest.mark.parametrize("value", [0, PROBABILITY_RANGE, -1, True, 0.5])
def test_a_coin_outside_its_range_is_refused(value: int) -> None:
    with pytest.raises(PolicyError):
        Sampling(value)
    with pytest.raises(PolicyError):
        ChanceListing(HALF, value)


def test_a_coin_is_rounded_half_up() -> None:
    assert probability_over_range("0.5", "keep") == HALF
    assert probability_over_range("0.9", "keep") == math.floor(
        Fraction(9, 10) * PROBABILITY_RANGE + Fraction(1, 2)
    )
    assert probability_over_range("4.55e-13", "keep") == 1  # 2^-41 is 4.547e-13
    with pytest.raises(PolicyError):
        probability_over_range("4.54e-13", "keep")


def test_windows_multiply() -> None:
    assert exclusion_factor_over_windows([(Sampling(HALF), 1), (Sampling(3 * QUARTER), 1)]) == pytest.approx(
        8, rel=2e-4
    )


def test_the_floor_of_independent_mechanisms() -> None:
    """Any list that hands out a relevant document with p and an irrelevant one with q: the event that all k list it."""
    assert floor_epsilon(0.5, 5 / 4096, 1) == pytest.approx(6.0152, abs=1e-4)
    assert floor_epsilon(0.5, 5 / 4096, 10) == pytest.approx(10 * floor_epsilon(0.5, 5 / 4096, 1), rel=1e-12)
    assert floor_epsilon(0.5, 0.5, 3) == 0
    assert floor_epsilon(0.01, 0.001, 3, delta=1e-5) == 0
    # Listing pays little more than the floor at its own p and q.
    listing = ChanceListing(
        probability_over_range("0.7", "keep"), probability_over_range(str(5 / 4096), "flip_probability")
    )
    assert floor_epsilon(0.7, 5 / 4096, 1) < listing.epsilon(1) < floor_epsilon(0.7, 5 / 4096, 1) + 1.3
    # Noise pays for every query: this Gaussian, of 200, has many times the floor's epsilon.
    assert gaussian_epsilon(1.0, 200, 1e-5) > 20 * floor_epsilon(0.5, 5 / 4096, 1)
