"""The theorems of docs/accounting.md, "Documents", by exact enumeration of small cases, and the printed figures.

Each case has documents of one to three positions in up to three windows, with edits, deletions, additions, copies and
moves between positions. `enumeration` has the rules of the mechanisms, and switches that break one rule each.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_audit.errors import PolicyError
from rag_audit.mechanisms.accounting import documents
from rag_audit.mechanisms.accounting.curves import probability_over_range
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from tests.accounting.enumeration import (
    Answer,
    Ask,
    Chain,
    Flip,
    PooledListing,
    Question,
    Sampling,
    Step,
    Window,
    answers_of,
    as_planned,
    largest_ratio,
    law,
    rows_of,
    seen,
    shows,
    until_listed,
)
from tests.accounting.test_bernoulli import top_k_law

HALF, QUARTER, EIGHTH = Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)
SCORES = (0, 0, 1, 2, 3)


def over_range(probability: Fraction) -> int:
    """A probability as a policy writes it."""
    return int(probability * PROBABILITY_RANGE)


def not_below(printed: float, truth: Fraction) -> None:
    """A printed figure bounds the exact one, and is rounded up by its fifth digit at most."""
    assert truth <= Fraction(printed) <= truth * Fraction(10002, 10000)


@dataclass(frozen=True)
class Case:
    """A chain with document X in row 0, and in row 3 if it has a copy; documents A and B fill rows 1 and 2.

    :param copies: the handles of X's content, in all windows
    :param present: pairs of window and handle in which X's content has positions
    """

    chain: Chain
    copies: int
    present: int

    @property
    def queries(self) -> int:
        """The questions of all windows."""
        return sum(len(window.questions) for window in self.chain)

    @property
    def absent(self) -> Chain:
        """The chain of the world without X."""
        return [window.without("X") for window in self.chain]

    @property
    def replaced(self) -> Chain:
        """The chain of the world with document Y at the positions of X."""

        def named(place: tuple[int, str] | None) -> tuple[int, str] | None:
            return None if place is None else (place[0], place[1].replace("X", "Y"))

        return [replace(window, places=tuple(map(named, window.places))) for window in self.chain]


def cases(seed: int, number: int, *, windows: int, questions: int, copy: bool = False) -> Iterator[Case]:
    """Random chains: X is edited, deleted for a window or added late; all texts move between positions."""
    random = Random(seed)
    while number:
        size, chain, handles, present = random.randint(1, 3), [], set(), 0
        for _ in range(windows):
            version, deleted = random.choice("ab"), windows > 1 and random.random() < 0.3
            rows = [(0, f"X{i}{version}") for i in range(size) if not deleted]
            rows += [(3, f"X{i}{random.choice('ab')}") for i in range(size) if copy and random.random() < 0.6]
            places: list[tuple[int, str] | None] = [*rows, (1, "A0"), (2, "B0"), None]
            random.shuffle(places)
            texts = [f"{name}{i}{v}" for name in "XY" for i in range(size) for v in "ab"] + ["A0", "B0"]
            asked = tuple({t: s for t in texts if (s := random.choice(SCORES))} for _ in range(questions))
            chain.append(Window(tuple(places), (0, 1, 2, 3), asked))
            used = {row for row, _ in rows}
            handles |= used
            present += len(used)
        if handles:
            number -= 1
            yield Case(chain, len(handles), present)


def adaptive(seed: int, case: Case) -> Ask:
    """A decision tree: the next question depends on all answers so far."""
    random = Random(seed)
    tree = [question for window in case.chain for question in window.questions]
    random.shuffle(tree)

    def ask(answers: tuple[Answer, ...], planned: Question) -> Question:
        return tree[zlib.crc32(repr(answers).encode()) % len(tree)]

    return ask


def least_ratio(
    present: Mapping[tuple[Answer | int, ...], Fraction], absent: Mapping[tuple[Answer | int, ...], Fraction]
) -> tuple[Fraction, Fraction | None]:
    """The least and the largest ratio over all transcripts without a text of X; None for an infinite ratio."""
    low, high = Fraction(1), Fraction(0)
    for transcript, p in absent.items():
        assert not shows(transcript, "X")
        ratio = present.get(transcript, Fraction(0)) / p
        low, high = min(low, ratio), max(high, ratio)
    unbounded = any(not shows(t, "X") and t not in absent for t in present)
    return low, None if unbounded else high


def returned(present: Mapping[tuple[Answer | int, ...], Fraction]) -> Fraction:
    """The probability that an account receives X."""
    return sum((p for t, p in present.items() if shows(t, "X")), start=Fraction(0))


def sampled(
    rules: Sampling, case: Case, ask: Ask = as_planned
) -> tuple[dict[tuple[Answer | int, ...], Fraction], dict[tuple[Answer | int, ...], Fraction]]:
    """The laws of the transcripts with X and without X."""

    def of(chain: Chain) -> dict[tuple[Answer | int, ...], Fraction]:
        return law(lambda flip: rules.answers(chain, flip, ask))

    return of(case.chain), of(case.absent)


def pooled(rules: PooledListing, chain: Chain, ask: Ask = as_planned) -> dict[tuple[Step, ...], Fraction]:
    """The law of newly listed rows and answers."""
    return law(lambda flip: rules.steps(chain, flip, ask))


# -- sampling by document ----------------------------------------------------------------------------------------

FORMS = [
    # windows, questions in each, copies under a second handle, persistent bits
    (1, 1, False, True),
    (1, 2, False, True),
    (1, 3, True, True),
    (2, 1, False, True),
    (2, 2, True, True),
    (3, 1, False, True),
    (2, 1, False, False),
    (3, 1, True, False),
]


@pytest.mark.parametrize(("windows", "questions", "copy", "persistent"), FORMS)
@pytest.mark.parametrize("adapt", [False, True], ids=["planned", "adaptive"])
def test_every_transcript_of_sampling_by_document(
    windows: int, questions: int, copy: bool, persistent: bool, adapt: bool
) -> None:
    tightest = Fraction(2)
    for number, case in enumerate(cases(windows, 40, windows=windows, questions=questions, copy=copy)):
        pi = (HALF, 3 * QUARTER)[number % 2]
        rules = Sampling(pi, top_k=1 + number % 3, persistent=persistent)
        present, absent = sampled(rules, case, adaptive(number, case) if adapt else as_planned)
        bits = case.copies if persistent else case.present
        bound = (1 - pi) ** bits
        low, high = least_ratio(present, absent)
        assert bound <= low
        assert high is not None and high <= 1
        not_below(documents.sampling_factor(over_range(pi), bits=bits), 1 / bound)
        assert returned(present) <= Fraction(documents.return_probability(float(1 / bound)))
        tightest = min(tightest, low / bound)
    assert tightest == 1


ASKED: Question = {"X0a": 3, "X1a": 2, "X2a": 1}


def alone(size: int, windows: int = 1, questions: int = 1) -> Case:
    """An index with X and an empty row, where each question asks for all texts of X."""
    places = (*((0, f"X{i}a") for i in range(size)), None)
    return Case([Window(places, (0, 1), (ASKED,) * questions)] * windows, 1, windows)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("windows", [1, 2, 3])
def test_a_document_that_is_asked_for_attains_the_factor(size: int, windows: int) -> None:
    """Equality of the exposure theorem; the presence of the document has no protection."""
    present, absent = sampled(Sampling(3 * QUARTER, top_k=1), alone(size, windows))
    assert least_ratio(present, absent)[0] == QUARTER
    assert returned(present) == 3 * QUARTER  # 1 - 1/F
    assert returned(absent) == 0
    fresh, _ = sampled(Sampling(3 * QUARTER, top_k=1, persistent=False), alone(size, windows))
    assert 1 - returned(fresh) == QUARTER**windows


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_bit_for_each_position_raises_the_factor_to_a_power(size: int) -> None:
    present, absent = sampled(Sampling(HALF, top_k=3, by_position=True), alone(size))
    assert least_ratio(present, absent)[0] == HALF**size


def test_texts_at_score_zero_leave_no_factor() -> None:
    """Without a better position, the list is filled with positions of score 0, and X is returned in any case."""
    rules = Sampling(HALF, top_k=2, text_at_zero=True)
    present, _ = sampled(rules, alone(1))
    assert returned(present) == 1
    present, absent = sampled(replace(rules, text_at_zero=False), alone(1))
    assert least_ratio(present, absent)[0] == HALF


LATE = Case(
    [
        Window((None, (1, "A0")), (9, 1), ({"A0": 1},)),
        Window(((0, "X0a"), (1, "A0")), (0, 1), (ASKED,)),
    ],
    1,
    1,
)
"""X is added in the second window, under a new handle."""


def test_new_rows_in_every_sample_leave_no_factor() -> None:
    present, absent = sampled(Sampling(HALF, top_k=1, new_kept=True), LATE)
    assert least_ratio(present, absent)[0] == 0
    present, absent = sampled(Sampling(HALF, top_k=1), LATE)
    assert least_ratio(present, absent)[0] == HALF


def test_a_public_number_of_new_documents_shows_an_added_document() -> None:
    present, absent = sampled(Sampling(HALF, top_k=1, public_count=True), LATE)
    assert least_ratio(present, absent) == (0, None)


def test_a_new_handle_in_each_window_multiplies_the_factor() -> None:
    """A refreshed row that was in use gets another bit."""
    chain = [replace(window, handles=(number, 9)) for number, window in enumerate(alone(1, 3).chain)]
    present, absent = sampled(Sampling(HALF, top_k=1), Case(chain, 3, 3))
    assert least_ratio(present, absent)[0] == EIGHTH


def both(present: Chain, absent: Chain) -> tuple[Fraction, Fraction | None]:
    """The least and the largest ratio for two worlds that differ in more than the positions of X."""
    rules = Sampling(HALF, top_k=1)
    return least_ratio(
        law(lambda flip: rules.answers(present, flip)), law(lambda flip: rules.answers(absent, flip))
    )


def test_a_document_that_waits_for_a_new_row_shows_the_presence_of_another() -> None:
    """Both X and A are new, and the window has one new handle: A waits only in the world with X."""
    asked: Question = {"A0": 1}
    waits = Window(((0, "X0a"), None), (0, 1), (asked,))
    present = Window((None, (0, "A0")), (0, 1), (asked,))
    assert both([waits], [present])[0] == 0


def test_a_row_that_is_replaced_because_of_another_document_draws_a_second_bit() -> None:
    """A is absent in the second window, in which one of two rows is replaced. In the world with X both rows have had a
    document, so the replaced row may be A's; A then returns under a new handle."""
    a, asked = (1, "A0"), ({"A0": 1},)
    absent = [
        Window((None, a), (0, 1), asked),
        Window((None, None), (2, 1), ({},)),
        Window((None, a), (3, 1), asked),
    ]
    present = [
        Window(((0, "X0a"), a), (0, 1), asked),
        Window((None, None), (0, 2), ({},)),
        Window((None, a), (0, 3), asked),
    ]
    assert both(present, absent)[1] is None


# -- pooled listing ----------------------------------------------------------------------------------------------

POOLED = [
    # windows, questions in each, copies under a second handle, settings
    (1, 1, False, 60),
    (1, 2, False, 30),
    (1, 3, False, 8),
    (2, 1, False, 20),
    (2, 1, True, 20),
    (3, 1, False, 8),
]


@pytest.mark.parametrize(("windows", "questions", "copy", "settings"), POOLED)
@pytest.mark.parametrize("adapt", [False, True], ids=["planned", "adaptive"])
def test_every_transcript_of_pooled_listing(
    windows: int, questions: int, copy: bool, settings: int, adapt: bool
) -> None:
    """The exclusion factor for accounts that see texts, and epsilon until the row is listed."""
    random_cases = cases(20 + windows, settings, windows=windows, questions=questions, copy=copy)
    for number, case in enumerate(random_cases):
        pi, q = (HALF, 3 * QUARTER)[number % 2], (QUARTER, EIGHTH)[number // 2 % 2]
        rules = PooledListing(pi, q, top_k=1 + number % 2, threshold=1 + number % 3)
        ask = adaptive(number, case) if adapt else as_planned
        present, absent = pooled(rules, case.chain, ask), pooled(rules, case.absent, ask)
        bound = ((1 - pi) * (1 - q) ** case.queries) ** case.copies
        low, high = least_ratio(seen(present, answers_of), seen(absent, answers_of))
        assert bound <= low
        assert high is not None and high <= 1
        not_below(
            documents.pooled_factor(over_range(pi), over_range(q), queries=case.queries, handles=case.copies),
            1 / bound,
        )
        if copy:
            continue
        other = pooled(rules, case.replaced, ask)
        upper = pi / q + 1 - pi
        views = (until_listed(0),) if adapt else (until_listed(0), rows_of)
        for view in views:
            one, none, two = (seen(laws, view) for laws in (present, absent, other))
            for first, second, most in (
                (one, none, upper),
                (none, one, 1 / (1 - pi)),
                (one, two, upper / (1 - pi)),
                (two, one, upper / (1 - pi)),
            ):
                ratio = largest_ratio(first, second)
                assert ratio is not None and ratio <= most


def renewed(seed: int, number: int, windows: int) -> Iterator[Case]:
    """Random chains with a new handle in each window after the first. X keeps its handle, or returns under a new one
    after a window without it; A is present throughout, and B enters with a new handle."""
    random = Random(seed)
    while number:
        handles, chain, used, of_x = [0, 1, 2], [], set(), 0
        for window in range(windows):
            if window:  # a row without positions gets a new handle
                free = [row for row in (0, 2) if not any(p and p[0] == row for p in chain[-1].places)]
                row = random.choice(free) if free else 3
                handles = [2 + window if r == row else h for r, h in enumerate(handles)]
                handles += [2 + window] if row == 3 else []
            places: list[tuple[int, str] | None] = [(1, "A0"), None]
            if random.random() < 0.6:
                places.append((0, f"X0{random.choice('ab')}"))
                used.add(handles[0])
                of_x += 1
            if window and len(handles) > 2 and random.random() < 0.5 and handles[2] > 2:
                places.append((2, "B0"))
            random.shuffle(places)
            texts = ["X0a", "X0b", "Y0a", "Y0b", "A0", "B0"]
            asked = {t: s for t in texts if (s := random.choice(SCORES))}
            chain.append(Window(tuple(places), tuple(handles), (asked,)))
        if used:
            number -= 1
            yield Case(chain, len(used), of_x)


@pytest.mark.parametrize(("windows", "settings"), [(2, 60), (3, 25)])
def test_chains_with_new_and_carried_rows_and_other_flip_probabilities(windows: int, settings: int) -> None:
    """The largest epsilon of the windows bounds the loss of the chain while X keeps one handle, and the factor counts
    the flips of each window and the handles of X."""
    kept = moved = 0
    for number, case in enumerate(renewed(windows, settings, windows)):
        pi, flips = (HALF, 3 * QUARTER)[number % 2], (QUARTER, EIGHTH, Fraction(1, 3))[:windows]
        rules = PooledListing(pi, QUARTER, top_k=1 + number % 2, threshold=1 + number % 3, flips=flips)
        present, absent = pooled(rules, case.chain), pooled(rules, case.absent)
        bound = ((1 - pi) * math.prod(1 - q for q in flips)) ** case.copies
        low, high = least_ratio(seen(present, answers_of), seen(absent, answers_of))
        assert bound <= low
        assert high is not None and high <= 1
        if case.copies > 1:
            moved += 1
            continue
        kept += 1
        other = pooled(rules, case.replaced)
        most = (pi / min(flips) + 1 - pi) / (1 - pi)
        one, two = seen(present, rows_of), seen(other, rows_of)
        for first, second in ((one, two), (two, one)):
            ratio = largest_ratio(first, second)
            assert ratio is not None and ratio <= most
        printed = max(documents.pooled_epsilon(over_range(pi), over_range(q)) for q in flips)
        assert math.log(most) <= printed <= math.log(most) * 1.0002
    assert kept and bool(moved) == (windows == 3)  # a window without X precedes its new handle


def turns(windows: int, before: int, *, first: str = "Y0a", then: str = "X0a") -> Case:
    """Questions for Y, followed by a question for X, in each window."""
    questions: tuple[Question, ...] = (*({first: 2},) * before, {then: 2})
    return Case([Window(((0, "X0a"), None), (0,), questions)] * windows, 1, windows)


def attained(rules: PooledListing, case: Case) -> Fraction | None:
    """The largest ratio of the sequences of newly listed rows with X and with Y."""
    one, other = (seen(pooled(rules, chain), rows_of) for chain in (case.chain, case.replaced))
    return largest_ratio(one, other)


@pytest.mark.parametrize(("pi", "q"), [(HALF, QUARTER), (3 * QUARTER, EIGHTH), (QUARTER, HALF)])
def test_two_documents_that_are_asked_for_in_turn_attain_epsilon(pi: Fraction, q: Fraction) -> None:
    rules = PooledListing(pi, q, top_k=1)
    for windows in (1, 2, 3):
        one_set = (pi / q + 1 - pi) / (1 - pi)
        assert attained(rules, turns(windows, 1)) == one_set
        cleared = (pi / q**windows + 1 - pi) / (1 - pi)
        assert attained(replace(rules, carry=False), turns(windows, 1)) == cleared
        # Bits that each window draws anew need more: the set alone does not limit the loss.
        anew = replace(rules, persistent=False)
        assert attained(replace(anew, carry=False), turns(windows, 1)) == one_set**windows
        late = [turns(1, 1, then="Z0a").chain[0]] * (windows - 1) + list(turns(1, 1).chain)
        assert attained(anew, Case(late, 1, 1)) == (pi / q + 1 - pi) / (1 - pi) ** windows
        for truth, resets in ((one_set, 1), (cleared, windows)):
            printed = documents.pooled_epsilon(over_range(pi), over_range(q), resets=resets)
            assert math.log(truth) <= printed <= math.log(truth) * 1.0002


def test_a_set_without_the_last_request_exceeds_epsilon() -> None:
    """A window that starts with an older set lists the row for the first time once more."""
    pi, q = Fraction(7, 10), Fraction(1, 5)
    case = turns(2, 1)
    carried, skipped = (attained(PooledListing(pi, q, top_k=1, skip=skip), case) for skip in (False, True))
    assert carried is not None and skipped is not None
    assert round(math.log(carried), 4) == 2.539
    assert round(math.log(skipped), 4) == 4.0832


def test_two_requests_on_one_set_exceed_epsilon() -> None:
    """A batch without an order: the row is newly listed to both requests."""
    pi, q = Fraction(7, 10), Fraction(1, 5)
    batch = turns(1, 1)
    batch = Case([replace(batch.chain[0], questions=({"X0a": 2}, {"X0a": 2}))], 1, 1)
    before = turns(1, 1).chain[0].questions[0]

    def log_ratio(rules: PooledListing) -> float:
        # Y is asked for in an earlier window, whose set the batch starts with.
        chain = [replace(batch.chain[0], questions=(before,)), batch.chain[0]]
        ratio = attained(rules, Case(chain, 1, 1))
        assert ratio is not None
        return math.log(ratio)

    assert round(log_ratio(PooledListing(pi, q, top_k=1)), 4) == 2.539
    assert round(log_ratio(PooledListing(pi, q, top_k=1, one_set=True)), 4) == 4.0832
    in_policy = (probability_over_range("0.7", "keep"), probability_over_range("0.2", "flip_probability"))
    assert documents.pooled_epsilon(*in_policy) == 2.539


def test_rows_without_documents_need_flips() -> None:
    """Otherwise a flip shows that the row has a document."""
    case = turns(1, 1)
    for only_filled in (False, True):
        rules = PooledListing(HALF, QUARTER, top_k=1, only_filled=only_filled)
        one, none = (seen(pooled(rules, chain), rows_of) for chain in (case.chain, case.absent))
        ratio = largest_ratio(one, none)
        assert ratio is None if only_filled else ratio == HALF / QUARTER + HALF


def test_new_rows_in_the_set_of_listed_rows_leave_no_factor() -> None:
    for new_listed in (False, True):
        rules = PooledListing(HALF, QUARTER, top_k=1, new_listed=new_listed)
        present, absent = (seen(pooled(rules, chain), answers_of) for chain in (LATE.chain, LATE.absent))
        low, _ = least_ratio(present, absent)
        assert low == (0 if new_listed else HALF * (1 - QUARTER))


def test_a_maximum_length_of_lists_breaks_the_upper_side() -> None:
    """X takes the place of B in the list, so answers without X reveal its presence."""
    window = Window(((0, "X0a"), (1, "A0"), (2, "B0")), (0, 1, 2), ({"A0": 1}, {"X0a": 1, "A0": 2, "B0": 3}))
    for most in (None, 1):
        rules = PooledListing(3 * QUARTER, EIGHTH, top_k=1, most=most)
        present, absent = (
            seen(pooled(rules, [chain]), answers_of) for chain in (window, window.without("X"))
        )
        _, high = least_ratio(present, absent)
        assert high is not None
        assert (high > 1) == (most is not None)


def test_texts_at_score_zero_break_pooled_listing() -> None:
    window = Window(((0, "X0a"), None), (0,), ({},))
    for text_at_zero in (False, True):
        rules = PooledListing(HALF, QUARTER, top_k=1, text_at_zero=text_at_zero)
        present = seen(pooled(rules, [window]), answers_of)
        assert returned(present) == int(text_at_zero)


# -- errors of figures for positions -----------------------------------------------------------------------------


@pytest.mark.parametrize("queries", [1, 2, 3])
def test_flips_lower_the_probability_that_a_document_is_missing(queries: int) -> None:
    """1/(1 - pi) is no exclusion factor where chance lists documents."""
    case = alone(1, questions=queries)
    present = seen(pooled(PooledListing(HALF, QUARTER, top_k=1), case.chain), answers_of)
    missing = 1 - returned(present)
    assert missing == HALF * Fraction(3, 4) ** queries < HALF


@pytest.mark.parametrize(("size", "queries"), [(1, 1), (2, 1), (3, 1), (1, 2), (2, 2)])
def test_noise_lists_documents_outside_the_sample(size: int, queries: int) -> None:
    """One bit for the document; its positions are uniform, no other document scores, and lists contain all texts."""
    positions, top_k, pi = 4, 1, HALF
    row = tuple(9 if i < size else 0 for i in range(positions))
    laws = [
        top_k_law([tuple(u * bit for u in row)] * queries, keep=Fraction(1), noises=(-1, 0, 2), maximum=top_k)
        for bit in (0, 1)
    ]

    def missing(laws: Mapping[tuple[tuple[int, ...], ...], Fraction], place: range) -> Fraction:
        return sum((p for ls, p in laws.items() if not any(set(place) & set(li) for li in ls)), Fraction(0))

    # Without the bit all positions score 0, so each place of the document has the same law.
    outside = sum(missing(laws[0], range(i, i + 1)) for i in range(positions)) / positions
    bound = (1 - pi) * Fraction(math.comb(positions - size, top_k), math.comb(positions, top_k)) ** queries
    if size == 1 and queries == 1:
        assert (1 - pi) * outside + pi * missing(laws[1], range(size)) == bound < 1 - pi
    printed = documents.noised_sampling_factor(
        over_range(pi), listed=top_k, capacity=positions, queries=queries, positions=size
    )
    not_below(printed, 1 / bound)


# -- noise over the positions of a document ----------------------------------------------------------------------

NOISE = {-2: Fraction(1, 16), -1: QUARTER, 0: Fraction(3, 8), 1: QUARTER, 2: Fraction(1, 16)}
REACH = 1
"""The largest change of one score."""


@cache
def noised(scores: tuple[int, ...]) -> dict[tuple[int, ...], Fraction]:
    """The law of the list of all positions in the order of their noised scores."""
    values = sorted(NOISE)

    def game(flip: Flip) -> tuple[int, ...]:
        ranks = []
        for score in scores:
            rest, drawn = Fraction(1), values[-1]
            for value in values[:-1]:
                if flip(NOISE[value] / rest):
                    drawn = value
                    break
                rest -= NOISE[value]
            ranks.append(score + drawn)
        return tuple(sorted(range(len(scores)), key=lambda i: (-ranks[i], i)))

    return law(game)


def excess(
    one: Mapping[tuple[int, ...], Fraction], other: Mapping[tuple[int, ...], Fraction], e: Fraction
) -> Fraction:
    """The least delta of two laws at e = exp(eps)."""
    return sum((max(Fraction(0), p - e * other.get(t, Fraction(0))) for t, p in one.items()), Fraction(0))


def composed(times: int) -> tuple[dict[tuple[int, ...], Fraction], dict[tuple[int, ...], Fraction]]:
    """The dominating pair of laws: a value of the noise, and the value after a change by `REACH`, several times."""
    laws: list[dict[tuple[int, ...], Fraction]] = []
    for change in (0, REACH):
        whole: dict[tuple[int, ...], Fraction] = {(): Fraction(1)}
        for _ in range(times):
            whole = {
                (*values, value + change): p * NOISE[value] for values, p in whole.items() for value in NOISE
            }
        laws.append(whole)
    return laws[0], laws[1]


@pytest.mark.parametrize("e", [Fraction(1), Fraction(3, 2), Fraction(3), Fraction(8)])
def test_noise_composes_over_the_positions_of_a_document(e: Fraction) -> None:
    """A document of two positions changes two scores of a query: two losses bound it, and one loss does not."""
    exceeded = False
    for before, after in (((0, 0, 1), (1, 1, 1)), ((1, 1, 0), (0, 0, 0)), ((0, 1, 0), (1, 0, 0))):
        delta = max(excess(noised(before), noised(after), e), excess(noised(after), noised(before), e))
        assert delta <= excess(*composed(2), e)
        exceeded |= delta > excess(*composed(1), e)
    assert exceeded or e > 2


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("e", [Fraction(1), Fraction(3)])
def test_every_document_of_a_few_positions_loses_no_more_than_its_positions(size: int, e: Fraction) -> None:
    """A document is added, removed or replaced: every change of the scores of its positions, in both directions."""
    bound, most = excess(*composed(size), e), Fraction(0)
    for before, after in itertools.product(itertools.product(range(REACH + 1), repeat=size), repeat=2):
        laws = noised((*before, 1)), noised((*after, 1))
        most = max(most, excess(*laws, e))
    assert 0 < most <= bound or e > 1
    assert size == 1 or e > 1 or most > excess(*composed(size - 1), e)


def placed(sizes: tuple[int, int], positions: int) -> dict[tuple[int, ...], Fraction]:
    """The law of a list over uniform places of a document, which scores 1, and of another with score 2."""
    laws: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    places = list(itertools.permutations(range(positions), sum(sizes)))
    for place in places:
        scores = [0] * positions
        for position, score in zip(place, (1,) * sizes[0] + (2,) * sizes[1], strict=True):
            scores[position] = score
        for ranks, p in noised(tuple(scores)).items():
            laws[ranks] += p / len(places)
    return laws


@pytest.mark.parametrize("e", [Fraction(1), Fraction(3, 2), Fraction(3)])
def test_a_replaced_document_at_uniform_places_needs_no_further_loss(e: Fraction) -> None:
    """Three scores differ if a document at {0, 1} is replaced by one at {2}; two differ if the places are uniform."""
    two, one = placed((2, 1), 4), placed((1, 1), 4)
    bound = excess(*composed(2), e)
    assert max(excess(two, one, e), excess(one, two, e)) <= bound
    if e == 1:
        assert excess(noised((1, 1, 0)), noised((0, 0, 1)), e) > bound


# -- the lower bound ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pi", "q"), [(HALF, EIGHTH), (3 * QUARTER, EIGHTH), (3 * QUARTER, Fraction(1, 16))])
@pytest.mark.parametrize("queries", [2, 3, 4])
def test_pooled_listing_is_above_the_lower_bound(pi: Fraction, q: Fraction, queries: int) -> None:
    """p, f and epsilon of the theorem, all by enumeration: document t is relevant only to question t."""
    questions: tuple[Question, ...] = tuple({f"{name}0": 1} for name in "ABCDE"[:queries])

    def rows(name: str) -> dict[tuple[frozenset[int], ...], Fraction]:
        window = Window(((0, f"{name}0"),), (0,), questions)
        return seen(pooled(PooledListing(pi, q, top_k=1), [window]), rows_of)

    listed = Fraction(1)
    for t, name in enumerate("ABCDE"[:queries]):
        by_then = (p for sets, p in rows(name).items() if any(sets[: t + 1]))
        listed = min(listed, sum(by_then, Fraction(0)))
    unrequested = sum((p for sets, p in rows("Z").items() if any(sets)), Fraction(0))
    assert listed == pi + (1 - pi) * q
    assert unrequested == 1 - (1 - q) ** queries
    bound = documents.listing_lower_bound(
        queries=queries, requested=float(listed), unrequested=float(unrequested)
    )
    actual = max(
        ratio
        for one in "ABCDE"[:queries]
        for other in "ABCDEZ"
        if (ratio := largest_ratio(rows(one), rows(other))) is not None
    )
    assert bound <= math.log(actual) <= documents.pooled_epsilon(over_range(pi), over_range(q))
    distance = documents.pooled_distance(over_range(pi), over_range(q), queries=queries)
    assert math.log(actual) - bound <= distance


@pytest.mark.parametrize(
    ("keep", "m", "eps", "lower"), [("0.9", 200, 9.75, 7.4), ("0.9", 1000, 11.4, 9.0), ("0.95", 60, 9.3, 6.2)]
)
def test_the_distance_from_the_lower_bound_is_the_logarithm_of_the_dropped_share(
    keep: str, m: int, eps: float, lower: float
) -> None:
    pi, q = probability_over_range(keep, "keep"), documents.flip_probability_for("0.1", queries=m)
    assert documents.pooled_epsilon(pi, q) == pytest.approx(eps, abs=0.05)
    assert documents.listing_lower_bound(queries=m, requested=float(keep), unrequested=0.1) == pytest.approx(
        lower, abs=0.05
    )
    over = documents.pooled_distance(pi, q, queries=m) + math.log(1 - float(keep))
    assert 0.05 < over < 0.1


def test_no_distance_is_claimed_without_a_gap() -> None:
    assert documents.listing_lower_bound(queries=10, requested=0.1, unrequested=0.1) == 0
    assert documents.listing_lower_bound(queries=1000, requested=0.9, unrequested=0.1, delta=0.8) == 0


# -- parameters --------------------------------------------------------------------------------------------------


@given(st.fractions(Fraction(1, 1000), Fraction(999, 1000)), st.integers(1, 300))
def test_the_flip_probability_is_rounded_down(listed: Fraction, queries: int) -> None:
    """The rounded q keeps f, and the next larger one does not."""
    written = f"{float(listed):.6f}"
    f = Fraction(written)
    q = documents.flip_probability_for(written, queries=queries)
    assert 1 - (1 - Fraction(q, PROBABILITY_RANGE)) ** queries <= f
    assert 1 - (1 - Fraction(q + 1, PROBABILITY_RANGE)) ** queries >= f


@pytest.mark.parametrize("written", ["0", "1", "-0.1", "x", "1e-12"])
def test_a_flip_probability_out_of_range_is_refused(written: str) -> None:
    with pytest.raises(PolicyError) as refused:
        documents.flip_probability_for(written, queries=100)
    assert refused.value.field == "f"


@pytest.mark.parametrize(("keep", "most"), [("0.9", 257), ("0.95", 122), ("0.7", 994), ("0.99999", 0)])
def test_the_largest_number_of_queries(keep: str, most: int) -> None:
    """The largest m with a printed epsilon of at most 10, at f = 0.1."""
    pi = probability_over_range(keep, "keep")
    assert documents.largest_queries(pi, "0.1") == most

    def printed(queries: int) -> float:
        return documents.pooled_epsilon(pi, documents.flip_probability_for("0.1", queries=queries))

    assert printed(most + 1) > 10
    assert most == 0 or printed(most) <= 10


def test_the_factor_of_pooled_listing_follows_from_f() -> None:
    for m in (60, 200, 1000):
        q = documents.flip_probability_for("0.1", queries=m)
        factor = documents.pooled_factor(probability_over_range("0.9", "keep"), q, queries=m)
        assert factor == pytest.approx(1 / (0.1 * 0.9), rel=2e-4)
        assert documents.expected_by_flips(1000, q, queries=m) == pytest.approx(100, rel=2e-4)


def test_exposure() -> None:
    assert documents.exposure_limit(10, queries=3, longest=2) == 6
    assert documents.exposure_limit(5, queries=3, longest=2) == 5
    assert documents.exposes_more_than_exact("1.61", "1")
    assert not documents.exposes_more_than_exact("1.6", "1")
    assert documents.return_probability(math.inf) == 1
    assert documents.return_probability(1.0) == 0
    for wrong in (0, -1, True):
        with pytest.raises(PolicyError):
            documents.exposure_limit(wrong, queries=1, longest=1)
        with pytest.raises(PolicyError):
            documents.noise_compositions(accounts=1, queries=wrong, positions=1)
