"""The small model: with every claim there is no false statement, without any one there is."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest

from tests.model import draws, encoder, rounding, selection, small_encoder
from tests.model.draws import Sizes
from tests.model.layers import (
    LARGE,
    P,
    Run,
    best_round,
    vanishing_fractions,
    vanishing_powers,
    vanishing_tuples,
)

QUICK = {"residual", "root: below", "row of GELU", "row of exp", "key", "used rows", "step: upper", "maximum"}
SMALL, LONG = Sizes(97, 2, 3), Sizes(65_521, 5, 6)


def without(claim: str) -> frozenset[str]:
    return frozenset({claim})


@pytest.mark.parametrize("positions", [2, 3, pytest.param(4, marks=pytest.mark.full)])
def test_no_list_but_the_first_positions_is_accepted(positions: int) -> None:
    for listed in range(1, positions + 1):
        assert list(selection.accepted_and_false(positions, listed)) == []


@pytest.mark.parametrize("claim", sorted(selection.CLAIMS - {"no other mark", "kept"}))
def test_each_claim_of_a_list_is_needed(claim: str) -> None:
    # Of three that are listed two can be changed round whose keys are not the least.
    assert next(selection.accepted_and_false(3, 3 if "order" in claim else 2, without(claim)), None)


def test_marks_are_bits_by_the_order_alone() -> None:
    """What the page says of claims 3 and 4; the claim about marks is needed where the order is not claimed."""
    for positions, listed in ((2, 2), (3, 2)):
        assert not list(selection.accepted_and_false(positions, listed, without("no other mark")))
    assert not list(selection.accepted_and_false(2, 2, without("order")))
    assert next(selection.accepted_and_false(2, 2, frozenset({"order", "no other mark"})), None)


def test_what_is_not_kept_scores_nothing() -> None:
    assert not list(selection.sampled())
    assert next(selection.sampled(without("kept")), None)


@pytest.mark.parametrize(
    "sizes", [SMALL, Sizes(251, 2, 4), pytest.param(LONG, marks=pytest.mark.full)], ids=str
)
def test_a_word_has_one_decomposition(sizes: Sizes) -> None:
    sizes.check()
    assert list(draws.words_accepted_and_false(sizes)) == []
    # Of all words those cannot be proved whose upper bits are the modulus's, and no others.
    upper = sizes.p >> sizes.draw
    proved = draws.words_proved(sizes)
    assert set(range(sizes.p)) - proved == {word for word in range(sizes.p) if word >> sizes.draw == upper}


@pytest.mark.parametrize("claim", sorted(draws.WORDS))
def test_each_claim_of_a_word_is_needed(claim: str) -> None:
    assert next(draws.words_accepted_and_false(SMALL, without(claim)), None)


@pytest.mark.parametrize("claim", [None, *sorted(draws.CHOICES)])
def test_choices_and_each_claim_of_them(claim: str | None) -> None:
    result = next(draws.choices_accepted_and_false(P, 4, without(claim or "")), None)
    assert (result is None) == (claim is None)


@pytest.mark.parametrize("claim", [None, *sorted(draws.COINS)])
def test_coins_and_each_claim_of_them(claim: str | None) -> None:
    result = next(draws.coins_accepted_and_false(P, 2, 3, without(claim or "")), None)
    assert (result is None) == (claim is None)


@pytest.mark.parametrize(("maximum", "reach", "factor"), [(1, 4, 5), (2, 6, 3), (7, 14, 3)])
def test_a_component_is_the_rounded_quotient(maximum: int, reach: int, factor: int) -> None:
    assert list(rounding.accepted_and_false(maximum, reach, factor)) == []


@pytest.mark.parametrize("claim", sorted(rounding.CLAIMS))
def test_each_claim_of_a_component_is_needed(claim: str) -> None:
    assert next(rounding.accepted_and_false(2, 6, 3, without(claim)), None)


@pytest.mark.parametrize("claim", [None, *sorted(rounding.ROOT)])
def test_roots_and_each_claim_of_them(claim: str | None) -> None:
    result = next(rounding.roots_accepted_and_false(1_097, 5, without(claim or "")), None)
    assert (result is None) == (claim is None)


@pytest.mark.parametrize("claim", [None, *sorted(rounding.NEAR)])
@pytest.mark.parametrize("theta", [(9, 10), (1, 2)])
def test_near_vectors_and_each_claim_of_their_threshold(theta: tuple[int, int], claim: str | None) -> None:
    result = next(rounding.near_and_accepted(2, 2, theta, without(claim or "")), None)
    assert (result is None) == (claim is None)


@pytest.mark.parametrize("claim", [None, *sorted(encoder.DIVISION)])
@pytest.mark.parametrize("bits", [2, 3])
def test_quotients_of_the_encoder_and_each_claim_of_them(bits: int, claim: str | None) -> None:
    result = next(encoder.quotients_accepted_and_false(bits, without(claim or "")), None)
    assert (result is None) == (claim is None)


@pytest.mark.parametrize("claim", [None, *sorted(encoder.ROOT)])
@pytest.mark.parametrize("target", [6, 20])
def test_roots_of_variances_and_each_claim_of_them(target: int, claim: str | None) -> None:
    result = next(encoder.roots_accepted_and_false(2_503, target, without(claim or "")), None)
    assert (result is None) == (claim is None)


@pytest.mark.parametrize("claim", [None, *sorted(encoder.MAXIMUM)])
@pytest.mark.parametrize("scores", [(3, 5), (6, 2)])
def test_maxima_and_each_claim_of_them(scores: tuple[int, ...], claim: str | None) -> None:
    result = next(encoder.maxima_accepted_and_false(scores, without(claim or "")), None)
    assert (result is None) == (claim is None)


@pytest.mark.parametrize("claim", [None, *sorted(encoder.NORMALISER)])
def test_normalisers_and_each_claim_of_them(claim: str | None) -> None:
    result = next(encoder.normalisers_accepted_and_false(251, 9, without(claim or "")), None)
    assert (result is None) == (claim is None)


@pytest.mark.parametrize("claim", [None, *sorted(encoder.USED)])
def test_sums_of_used_places_and_each_claim_of_them(claim: str | None) -> None:
    result = next(encoder.sums_accepted_and_false((3, 5, 60), without(claim or "")), None)
    assert (result is None) == (claim is None)


@pytest.mark.parametrize("claim", [None, *sorted(encoder.TOKEN)])
@pytest.mark.parametrize("vocabulary", [2, 3])
def test_digits_of_tokens_and_each_claim_of_them(vocabulary: int, claim: str | None) -> None:
    result = next(encoder.tokens_accepted_and_false(vocabulary, without(claim or "")), None)
    assert (result is None) == (claim is None)


@pytest.mark.parametrize("claim", [None, *sorted(encoder.MATRICES)])
@pytest.mark.parametrize(("d", "nu"), [(16, 31), (3, 96)])
def test_products_of_weights_and_activations_and_each_claim_of_them(
    d: int, nu: int, claim: str | None
) -> None:
    result = next(encoder.products_accepted_and_false(d, nu, without(claim or "")), None)
    assert (result is None) == (claim is None)


PRIMES = (17_179_869_143, 17_179_869_209)
"""The primes next to 2^34. Below 2^33, equations of the small encoder can wrap around."""
TEXTS = [text for count in (1, 2) for text in product(range(small_encoder.VOCABULARY), repeat=count)]


@pytest.mark.parametrize("p", PRIMES)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 12))])
def test_a_small_encoder_has_no_vector_but_the_true_one(seed: int, p: int) -> None:
    """Of two layers and width 16. A text begins with the first word, which an unused place has too, so that the text has a
    proof if it has a vector."""
    model = small_encoder.random_model(seed)
    search = small_encoder.Search(model, p)
    search.check()
    assert list(search.false()) == []
    accepted = {tokens for tokens, _ in search.accepted()}
    true = {text: vector for text in TEXTS if (vector := small_encoder.vector(model, text))}
    assert {text for text in true if text[0] == 0} <= accepted
    assert len(set(true.values())) > 6, "the texts have vectors of their own"


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(claim, marks=() if claim in QUICK else pytest.mark.full)
        for claim in sorted(small_encoder.CLAIMS)
    ],
)
def test_each_claim_of_the_small_encoder_is_needed(claim: str) -> None:
    """A prover with one value of one place that no claim of this name is about."""
    model = small_encoder.random_model(1)
    search = small_encoder.Search(model, PRIMES[0], claim, small_encoder.CLAIMS[claim])
    assert next(search.false(), None)


@pytest.mark.parametrize("t", [0, 1, 2, 49])
def test_a_false_sum_becomes_true_at_most_at_as_many_challenges_as_its_degree(t: int) -> None:
    rng = Random(t)
    for degree in (1, 2):
        truth = [rng.randrange(P) for _ in range(degree)]
        maximum = best_round(t, rng.randrange(1, P), truth)
        assert maximum <= degree
        # At least one message of some degree reaches it.
        assert maximum >= 1


def test_fractions_of_a_value_that_is_no_row_vanish_at_few_challenges() -> None:
    # Two values and two rows: at most as many alpha as leaves, for the best multiplicities.
    assert vanishing_fractions([3, 5], [3, 5]) > P - 4, "true ones vanish wherever there is no pole"
    for looked in ([3, 4], [4, 4], [4, 6]):
        assert 0 < vanishing_fractions(looked, [3, 5]) <= 4
    # Tuples of two entries, by the page: leaves (entries + 1) P pairs.
    rows = [(1, 2), (2, 1)]
    assert vanishing_tuples([(1, 2), (1, 2)], rows, [2, 0]) > (P - 4) ** 2
    for tuples in ([(1, 1), (1, 2)], [(2, 2), (1, 1)]):
        for counts in ([1, 1], [2, 0], [1, P - 1]):
            assert vanishing_tuples(tuples, rows, counts) <= 4 * 3 * P


def test_errors_of_claims_cancel_under_few_powers() -> None:
    rng = Random(1)
    for count in range(1, 6):
        for _ in range(50):
            errors = [rng.randrange(P) for _ in range(count - 1)] + [rng.randrange(1, P)]
            assert vanishing_powers(errors) <= count - 1
            assert vanishing_powers(errors, first=1) <= count


def hashed(rng: Random) -> tuple[list[list[int]], list[list[int]], list[list[int]]]:
    """States of three words, constants of six rounds, and a matrix."""

    def elements(rows: int) -> list[list[int]]:
        return [[rng.randrange(LARGE) for _ in range(3)] for _ in range(rows)]

    return elements(4), elements(6), elements(3)


def outputs(
    states: list[list[int]], constants: list[list[int]], matrix: list[list[int]], full: int
) -> list[int]:
    """Word 0 of each state's permutation."""
    out = []
    for state in states:
        for number, row in enumerate(constants):
            partial = full <= number < len(constants) - full
            added = [(x + c) % LARGE for x, c in zip(state, row, strict=True)]
            raised = [x if partial and i else pow(x, 5, LARGE) for i, x in enumerate(added)]
            state = [sum(m * x for m, x in zip(line, raised, strict=True)) % LARGE for line in matrix]
        out.append(state[0])
    return out


def run_permutations(seed: int, lie: int | None, error: int = 0) -> Run:
    rng = Random(seed)
    states, constants, matrix = hashed(rng)
    out = outputs(states, constants, matrix, 2)
    out[2] = (out[2] + error) % LARGE
    run = Run(LARGE, rng, lie)
    run.permutations(states, out, constants, matrix, 2)
    return run


def run_lookups(seed: int, lie: int | None, wrong: int = 0) -> Run:
    rng = Random(seed)
    rows = rng.sample(range(LARGE), 8)
    values = [rng.choice(rows) for _ in range(8)]
    counts = [values.count(row) for row in rows]
    values[3] = (values[3] + wrong) % LARGE
    run = Run(LARGE, rng, lie)
    run.looked_up(values, rows, counts)
    return run


def run_matrices(seed: int, lie: int | None, error: int = 0) -> Run:
    rng = Random(seed)
    matrices = [[[rng.randrange(-5, 6) for _ in range(16)] for _ in range(16)] for _ in range(2)]
    rows = [[rng.randrange(-4, 4) for _ in range(16)] for _ in range(2)]
    run = Run(LARGE, rng, lie)
    run.multiplied(matrices, rows, [0, error] if seed % 2 else [error, 0])
    return run


@pytest.mark.parametrize(
    "layer", [pytest.param(run_permutations, marks=pytest.mark.full), run_lookups, run_matrices]
)
def test_layers_hold_what_is_so_and_refuse_a_lie_in_each_message(layer: object) -> None:
    assert callable(layer)
    honest = layer(1, None)
    assert honest.false == []
    accepted = sum(not layer(lie, lie).false for lie in range(honest.sent))
    # Each is refused but with about 40 / LARGE.
    assert accepted == 0
    assert all(layer(seed, None, 1).false for seed in range(20)), "a false output, a value of no row"
