"""The chain of an origin's windows: abandoned ones are counted, and a witness that was away takes up what it missed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rag_audit.errors import SignatureError
from rag_audit.formats.chain import abandoned_after, is_complete
from rag_audit.formats.records import Closing
from rag_audit.ledger.keys import SigningKey
from rag_audit.ledger.note import Note, cosign_note, merge_signatures
from rag_audit.parties.witness import Witness, WitnessRefused

from .conftest import HOUR, OPENS, ORIGIN, Ledger
from .test_witness import cosign_first, end, named, opened

MakeWitness = Callable[[str], Witness]
ABANDONED = {"abandoned": True}


def window(log_key: SigningKey, number: int, before: Ledger | None, abandoned: int = 0) -> Ledger:
    """The opening of window `number`, an hour after the one before it."""
    previous = None if before is None else named(before, abandoned)
    start = OPENS + number * HOUR
    return opened(
        log_key, window=f"w{number}", previous=previous, opens_at=start, closes_at=start + HOUR
    )  # fmt: skip


@pytest.fixture
def witness(make_witness: MakeWitness) -> Witness:
    return make_witness("w.example")


def closed(witness: Witness, ledger: Ledger, number: int, **changes: Any) -> Ledger:
    cosign_first(witness, ledger)
    end(witness, ledger, f"w{number}", **changes)
    return ledger


@pytest.mark.parametrize(
    "nothing",
    [{"abandoned": True}, {"queries": 0}, {"queries": 9}, {"queries": 1, "enrolments": 1}],
    ids=["abandoned", "without a query", "more queries than entries", "more enrolments than entries"],
)
def test_what_came_to_nothing_is_counted_until_a_window_is_complete(
    witness: Witness, log_key: SigningKey, nothing: dict[str, Any]
) -> None:
    first = closed(witness, window(log_key, 1, None), 1, **nothing)
    for wrong in (0, 2):
        with pytest.raises(WitnessRefused, match="the count of abandoned windows"):
            cosign_first(witness, window(log_key, 2, first, wrong))
    second = closed(witness, window(log_key, 2, first, 1), 2, **nothing)
    with pytest.raises(WitnessRefused, match="the count of abandoned windows"):
        cosign_first(witness, window(log_key, 3, second, 1))
    third = closed(witness, window(log_key, 3, second, 2), 3)
    with pytest.raises(WitnessRefused, match="the count of abandoned windows"):
        cosign_first(witness, window(log_key, 4, third, 3))
    cosign_first(witness, window(log_key, 4, third, 0))


def test_a_window_that_is_never_closed_ends_the_chain(witness: Witness, log_key: SigningKey) -> None:
    """Opened, its beacon seen, and dropped without a closing record: no count hides it, nothing follows it."""
    first = window(log_key, 1, None)
    cosign_first(witness, first)
    for abandoned in (0, 1):
        with pytest.raises(WitnessRefused, match="not closed"):
            cosign_first(witness, window(log_key, 2, first, abandoned))
    with pytest.raises(WitnessRefused, match="not closed"):
        cosign_first(witness, window(log_key, 2, None))


@pytest.mark.parametrize(
    ("size", "fields", "expected"),
    [
        (4, {"queries": 1}, True),
        (3, {"queries": 1}, False),
        (5, {"queries": 1}, False),
        (3, {"queries": 0}, False),
        (4, {"queries": 0}, False),
        (4, {"queries": 1, "abandoned": True}, False),
        (5, {"queries": 1, "enrolments": 1}, True),
        (6, {"queries": 1, "enrolments": 1}, True),
        (7, {"queries": 1, "enrolments": 1}, False),
        (2, {"queries": 2**53 - 1}, False),
    ],
)
def test_a_complete_window_has_entries_for_what_it_counts(
    size: int, fields: dict[str, Any], expected: bool
) -> None:
    value = {"type": "closing", "v": 1, "seq": 1, "ts": 1, "window": "w", "queries": 0, "enrolments": 0,
             "coalition": None, "abandoned": False}  # fmt: skip
    assert is_complete(Closing.parse({**value, **fields}, field="closing"), size) is expected
    assert abandoned_after(3, expected) == (0 if expected else 4)


# A witness that joins late, or was away.


class Pair:
    """Two witnesses, of whom one sees everything."""

    def __init__(self, make_witness: MakeWitness, log_key: SigningKey) -> None:
        self.there, self.away, self.key = make_witness("there.example"), make_witness("away.example"), log_key
        self.finals: dict[str, Note] = {}

    def run(self, number: int, before: Ledger | None, count: int = 0, **changes: Any) -> Ledger:
        ledger = window(self.key, number, before, count)
        cosign_first(self.there, ledger)
        self.finals[ledger.log] = end(self.there, ledger, f"w{number}", **changes)
        return ledger

    def follow(self, ledger: Ledger, **changes: Any) -> None:
        size = len(ledger.entries)
        last = self.away.last(ledger.log)
        arguments: dict[str, Any] = {
            "note": self.finals[ledger.log],
            "opening": (ledger.entries[0], ledger.tree.inclusion_path(0)),
            "closing": (ledger.entries[-1], ledger.tree.inclusion_path(size - 1)),
            "log_key": self.key.verifier,
            "witnesses": [self.there.vkey],
            "quorum": 1,
            "consistency": ledger.consistency(last[0]) if last else (),
        }
        self.away.follow(**{**arguments, **changes})


@pytest.fixture
def pair(make_witness: MakeWitness, log_key: SigningKey) -> Pair:
    return Pair(make_witness, log_key)


def test_a_witness_joins_late_with_the_last_window_alone(pair: Pair) -> None:
    first = pair.run(1, None, **ABANDONED)
    second = pair.run(2, first, 1, **ABANDONED)
    third = window(pair.key, 3, second, 2)
    with pytest.raises(WitnessRefused, match="no earlier window"):
        cosign_first(pair.away, third)
    pair.follow(second)
    with pytest.raises(WitnessRefused, match="the count of abandoned windows"):
        cosign_first(pair.away, window(pair.key, 3, second, 0))
    note = merge_signatures([cosign_first(pair.there, third), cosign_first(pair.away, third)])
    assert len(note.signatures) == 3


def test_a_witness_that_was_away_takes_up_each_window_in_order(pair: Pair) -> None:
    first = pair.run(1, None)
    pair.follow(first)
    second = pair.run(2, first, **ABANDONED)
    third = pair.run(3, second, 1, **ABANDONED)
    with pytest.raises(WitnessRefused, match="not the one after the last"):
        pair.follow(third)
    pair.follow(second)
    pair.follow(third)
    pair.follow(third)  # once more changes nothing
    cosign_first(pair.away, window(pair.key, 4, third, 2))


def test_a_witness_that_missed_the_end_takes_it_up(pair: Pair) -> None:
    first = window(pair.key, 1, None)
    cosign_first(pair.there, first)
    cosign_first(pair.away, first)
    pair.finals[first.log] = end(pair.there, first, "w1")
    pair.follow(first)
    assert pair.away.last(first.log) == (4, first.tree.root())
    cosign_first(pair.away, window(pair.key, 2, first))


def test_the_end_of_a_fork_is_not_taken_up(pair: Pair, make_witness: MakeWitness) -> None:
    """A quorum that lies, and a witness that saw something else: it keeps what it saw."""
    seen, other = window(pair.key, 1, None), window(pair.key, 1, None)
    cosign_first(pair.away, seen)
    seen.append({"type": "beacon"})
    pair.away.cosign(seen.checkpoint(), log_key=pair.key.verifier, consistency=seen.consistency(1))
    cosign_first(pair.there, other)
    pair.finals[other.log] = end(pair.there, other, "w1", queries=0)
    with pytest.raises(WitnessRefused, match="not an extension"):
        pair.follow(other, consistency=())
    assert pair.away.last(seen.log) == (2, seen.tree.root())
    # Another opening of a window whose opening it cosigned.
    liar = make_witness("liar.example")
    rewritten = opened(pair.key, window="w1", closes_at=OPENS + 9 * HOUR)
    cosign_first(liar, rewritten)
    pair.finals[rewritten.log] = end(liar, rewritten, "w1")
    with pytest.raises(WitnessRefused, match="not an extension"):
        pair.follow(rewritten, witnesses=[liar.vkey])


def test_a_closed_window_does_not_end_twice(pair: Pair) -> None:
    first = pair.run(1, None)
    pair.follow(first)
    # The others forgot what they signed, and sign a longer ledger that closes again.
    first.close("w1", queries=1)
    longer = merge_signatures([first.checkpoint(), cosigned_by(pair.there._key, first)])
    pair.finals[first.log] = longer
    with pytest.raises(WitnessRefused, match="not an extension"):
        pair.follow(first)


def cosigned_by(key: SigningKey, ledger: Ledger) -> Note:
    return cosign_note(ledger.checkpoint(), key, OPENS // 1000)


def test_a_window_with_a_count_that_does_not_follow_is_not_taken_up(pair: Pair) -> None:
    first = pair.run(1, None, **ABANDONED)
    pair.follow(first)
    # The one that was there lost its state and cosigns a count that it should not.
    second = window(pair.key, 2, first, 0)
    second.close("w2", queries=0)
    pair.finals[second.log] = cosigned_by(pair.there._key, second)
    with pytest.raises(WitnessRefused, match="the count of abandoned windows"):
        pair.follow(second)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"quorum": 2}, SignatureError, "too few"),
        ({"witnesses": []}, SignatureError, "too few"),
        ({"log_key": SigningKey.generate(ORIGIN).verifier}, SignatureError, "not signed by the log"),
        ({"opening": None}, WitnessRefused, "not in the checkpointed tree"),
        ({"closing": "opening"}, WitnessRefused, "the entry is not a closing record"),
    ],
    ids=["quorum", "strangers", "provider", "another opening", "no closing record"],
)
def test_what_is_not_taken_up(
    pair: Pair, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    first = pair.run(1, None)
    if "opening" in changes:
        other = opened(pair.key, closes_at=OPENS + 9 * HOUR)
        changes = {"opening": (other.entries[0], first.tree.inclusion_path(0))}
    if "closing" in changes:
        changes = {"closing": (first.entries[0], first.tree.inclusion_path(0))}
    with pytest.raises(error, match=message):
        pair.follow(first, **changes)
    assert pair.away.last(first.log) is None
