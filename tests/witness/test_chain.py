"""The chain of an origin's windows: abandoned ones are counted, and a witness that was away takes up what it missed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from rag_audit.errors import SchemaError, SignatureError
from rag_audit.log.merging import merge_signatures
from rag_audit.log.note import Note, cosign_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.chain import Outcome, Unanswered, outcome_of
from rag_audit.models.records import WindowTrailer, parse_entry
from rag_audit.witness.rules import outcome_by_size
from rag_audit.witness.witness import Witness, WitnessRefused

from .conftest import HOUR, OPENS, ORIGIN, Ledger, beacon_of, enrolment, header, kept, query
from .test_witness import cosign_first, end, named, opened

MakeWitness = Callable[[str], Witness]
ABANDONED = {"abandoned": True}
CLOSING = {"type": "trailer", "v": 1, "ts": OPENS, "window": "w1", "queries": 1, "enrolments": 0, "coalition": None,
           "abandoned": False}  # fmt: skip


def window(
    log_key: SigningKey, number: int, before: Ledger | None, abandoned: int = 0, empty: int = 0
) -> Ledger:
    """The opening of window `number`, an hour after the one before it."""
    previous = None if before is None else named(before, abandoned, empty)
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


def quiet(witness: Witness, ledger: Ledger, number: int) -> Ledger:
    """A window that is closed properly, with its beacon and without a query."""
    cosign_first(witness, ledger)
    ledger.add(beacon_of())
    end(witness, ledger, f"w{number}", queries=0)
    return ledger


@pytest.mark.parametrize(
    "nothing",
    [{"abandoned": True}, {"queries": 0}, {"queries": 9}, {"queries": 1, "enrolments": 1}],
    ids=["abandoned", "without a beacon", "more queries than entries", "more enrolments than entries"],
)
def test_what_came_to_nothing_is_counted_until_a_window_is_complete(
    witness: Witness, log_key: SigningKey, nothing: dict[str, Any]
) -> None:
    first = closed(witness, window(log_key, 1, None), 1, **nothing)
    for wrong in (0, 2):
        with pytest.raises(WitnessRefused, match="the count of abandoned windows"):
            cosign_first(witness, window(log_key, 2, first, wrong))
    with pytest.raises(WitnessRefused, match="the count of abandoned windows"):
        cosign_first(witness, window(log_key, 2, first, 0, 1))  # an abandoned window, stated as an empty one
    second = closed(witness, window(log_key, 2, first, 1), 2, **nothing)
    with pytest.raises(WitnessRefused, match="the count of abandoned windows"):
        cosign_first(witness, window(log_key, 3, second, 1))
    third = closed(witness, window(log_key, 3, second, 2), 3)
    with pytest.raises(WitnessRefused, match="the count of abandoned windows"):
        cosign_first(witness, window(log_key, 4, third, 3))
    cosign_first(witness, window(log_key, 4, third, 0))


def test_windows_without_a_query_are_counted_apart_until_a_window_is_complete(
    witness: Witness, log_key: SigningKey
) -> None:
    first = quiet(witness, window(log_key, 1, None), 1)
    for wrong in (0, 2):
        with pytest.raises(WitnessRefused, match="the count of empty windows"):
            cosign_first(witness, window(log_key, 2, first, 0, wrong))
    with pytest.raises(WitnessRefused, match="the count of abandoned windows"):
        cosign_first(witness, window(log_key, 2, first, 1))
    second = closed(witness, window(log_key, 2, first, 0, 1), 2, **ABANDONED)
    with pytest.raises(WitnessRefused, match="the count of empty windows"):
        cosign_first(witness, window(log_key, 3, second, 1))  # neither kind ends the count of the other
    third = quiet(witness, window(log_key, 3, second, 1, 1), 3)
    fourth = closed(witness, window(log_key, 4, third, 1, 2), 4)
    with pytest.raises(WitnessRefused, match="the count of empty windows"):
        cosign_first(witness, window(log_key, 5, fourth, 0, 2))
    cosign_first(witness, window(log_key, 5, fourth))


@pytest.mark.parametrize("zero", [False, None, -1])
def test_a_window_header_counts_empty_windows_by_a_number(
    witness: Witness, log_key: SigningKey, zero: Any
) -> None:
    """Otherwise one header would have two canonical forms."""
    first = closed(witness, window(log_key, 1, None), 1)
    second = opened(log_key, window="w2", previous={**named(first), "empty": zero})
    with pytest.raises(SchemaError, match="empty"):
        cosign_first(witness, second)


def test_a_window_that_is_never_closed_ends_the_chain(witness: Witness, log_key: SigningKey) -> None:
    """Opened, its beacon seen, and dropped without a closing record: no count hides it, nothing follows it."""
    first = window(log_key, 1, None)
    cosign_first(witness, first)
    for abandoned in (0, 1):
        with pytest.raises(WitnessRefused, match="not closed"):
            cosign_first(witness, window(log_key, 2, first, abandoned))
    with pytest.raises(WitnessRefused, match="not closed"):
        cosign_first(witness, window(log_key, 2, None))


def ledger_of(log_key: SigningKey, *entries: dict[str, Any], tenants: int = 1, **trailer: Any) -> Ledger:
    """A closed window with its beacon, and with these entries after the beacon."""
    result = opened(log_key, tenants={"root": "00" * 32, "count": tenants})
    result.add(beacon_of())
    for entry in entries:
        result.add(entry)
    counts = {"queries": sum(e["type"] == "query" for e in entries),
              "enrolments": sum(e["type"] == "enrolment" for e in entries)}  # fmt: skip
    result.close("w1", **{**counts, **trailer})
    return result


def joining(seq: int) -> dict[str, Any]:
    return enrolment(seq, {"source": "drand", "chain": "00" * 32, "round": 1})


def by_entries(ledger: Ledger) -> Outcome:
    return outcome_of([parse_entry(json.loads(e), field="entry") for e in ledger.entries])


def by_size(ledger: Ledger) -> Outcome:
    trailer, first = (json.loads(e) for e in (ledger.entries[-1], ledger.entries[0]))
    return outcome_by_size(
        WindowTrailer.parse(trailer, field="trailer"), len(ledger.entries), first["tenants"]["count"]
    )


TRUE: dict[str, tuple[Sequence[dict[str, Any]], int, Outcome]] = {
    "one query": ([query()], 1, Outcome.COMPLETE),
    "a sample and one query": ([kept("t"), query()], 1, Outcome.COMPLETE),
    "three samples, one query": ([kept("t"), kept("u"), query(), kept("v")], 3, Outcome.COMPLETE),
    "an enrolment that stayed void": ([joining(2), query()], 1, Outcome.COMPLETE),
    "an enrolment with its beacon": ([joining(2), beacon_of(2), query()], 1, Outcome.COMPLETE),
    "two enrolments, one beacon, a sample": (
        [joining(2), joining(3), kept("t"), beacon_of(3), query()], 1, Outcome.COMPLETE),
    "no query": ([], 1, Outcome.EMPTY),
    "no query, two samples": ([kept("t"), kept("u")], 2, Outcome.EMPTY),
    "no query, an enrolment with its beacon": ([joining(2), beacon_of(2)], 1, Outcome.EMPTY),
}  # fmt: skip
FALSE: dict[str, tuple[Sequence[dict[str, Any]], dict[str, Any]]] = {
    "abandoned": ([query()], {"abandoned": True}),
    "no query, and one counted": ([], {"queries": 1}),
    "a sample that is counted as a query": ([kept("t")], {"queries": 1}),
    "a query more than is counted": ([query(), query(i=2)], {"queries": 1}),
    "a query that is not counted": ([query()], {"queries": 0}),
    "an enrolment that is not counted": ([joining(2), query()], {"enrolments": 0}),
    "a beacon that is counted as an enrolment": ([beacon_of(0), query()], {"enrolments": 1}),
    "a second beacon of the opening": ([beacon_of(0), query()], {}),
    "a second beacon of an enrolment": ([joining(2), beacon_of(2), beacon_of(2), query()], {}),
    "a beacon of nothing": ([query(), beacon_of(2)], {}),
    "more samples than tenants": ([kept("t"), kept("u"), query()], {}),
    "a sample twice": ([kept("t"), kept("t"), query()], {"tenants": 2}),
    "a second opening": ([header("w1"), query()], {}),
    "a second closing record": ([CLOSING, query()], {}),
    "a closing record of another place": ([query()], {"seq": 2}),
}  # fmt: skip


@pytest.mark.parametrize("name", TRUE)
def test_every_true_window_has_its_outcome_with_and_without_its_entries(
    log_key: SigningKey, name: str
) -> None:
    entries, tenants, outcome = TRUE[name]
    ledger = ledger_of(log_key, *entries, tenants=tenants)
    assert (by_entries(ledger), by_size(ledger)) == (outcome, outcome)


@pytest.mark.parametrize("name", FALSE)
def test_a_window_whose_entries_contradict_its_closing_record_is_abandoned(
    log_key: SigningKey, name: str
) -> None:
    entries, changes = FALSE[name]
    assert by_entries(ledger_of(log_key, *entries, **changes)) is Outcome.ABANDONED


def test_a_window_without_its_beacon_is_abandoned(log_key: SigningKey) -> None:
    ledger = opened(log_key)
    ledger.close("w1")
    assert (by_entries(ledger), by_size(ledger)) == (Outcome.ABANDONED, Outcome.ABANDONED)


def test_a_witness_without_the_entries_bounds_what_a_closing_record_may_hide(log_key: SigningKey) -> None:
    """At most a beacon for each enrolment and a sample for each tenant; a query that is counted has to be shown."""
    hidden = [query(i=i) for i in (1, 2, 3)]
    assert by_size(ledger_of(log_key, *hidden, queries=2)) is Outcome.COMPLETE
    assert by_size(ledger_of(log_key, *hidden, queries=1)) is Outcome.ABANDONED
    assert by_size(ledger_of(log_key, *hidden, queries=2, tenants=0)) is Outcome.ABANDONED
    assert by_size(ledger_of(log_key, *hidden, queries=4)) is Outcome.ABANDONED


@pytest.mark.parametrize("order", ["entries first", "entries second"])
def test_the_outcome_that_the_entries_show_stands_however_often_the_end_is_submitted(
    witness: Witness, log_key: SigningKey, order: str
) -> None:
    """By its size this window is complete; its entries have a query that the closing record does not count."""
    first = opened(log_key, window="w1", opens_at=OPENS + HOUR, closes_at=OPENS + 2 * HOUR,
                   tenants={"root": "00" * 32, "count": 1})  # fmt: skip
    cosign_first(witness, first)
    for entry in (beacon_of(), query(), query(i=2)):
        first.add(entry)
    trailer = first.close("w1", queries=1)
    ways: list[dict[str, Any]] = [{"entries": first.entries}, {"query": first.shown()}]
    if order == "entries second":
        ways.reverse()
    for at, way in enumerate([*ways, {"query": first.shown()}, {}]):
        size = 1 if at == 0 else len(first.entries)
        note = witness.cosign(first.checkpoint(), log_key=log_key.verifier, consistency=first.consistency(size),
                              trailer=trailer, **way)  # fmt: skip
        assert len(note.signatures) == 2
    with pytest.raises(WitnessRefused, match="the count of abandoned windows"):
        cosign_first(witness, window(log_key, 2, first, 0))
    cosign_first(witness, window(log_key, 2, first, 1))


def test_the_counts_that_follow() -> None:
    before = Unanswered(3, 2)
    assert before.after(Outcome.COMPLETE) == Unanswered(0, 0)
    assert before.after(Outcome.EMPTY) == Unanswered(3, 3)
    assert before.after(Outcome.ABANDONED) == Unanswered(4, 2)


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
        last = self.away.last(ledger.log)
        arguments: dict[str, Any] = {
            "note": self.finals[ledger.log],
            "entries": ledger.entries,
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
    with pytest.raises(
        WitnessRefused, match="the window does not follow the last window that this witness knows"
    ):
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
    with pytest.raises(WitnessRefused, match="the checkpoint does not extend the last cosigned checkpoint"):
        pair.follow(other, consistency=())
    assert pair.away.last(seen.log) == (2, seen.tree.root())
    # Another opening of a window whose opening it cosigned.
    liar = make_witness("liar.example")
    rewritten = opened(pair.key, window="w1", closes_at=OPENS + 9 * HOUR)
    cosign_first(liar, rewritten)
    pair.finals[rewritten.log] = end(liar, rewritten, "w1")
    with pytest.raises(WitnessRefused, match="the checkpoint does not extend the last cosigned checkpoint"):
        pair.follow(rewritten, witnesses=[liar.vkey])


def test_a_closed_window_does_not_end_twice(pair: Pair) -> None:
    first = pair.run(1, None)
    pair.follow(first)
    # The others forgot what they signed, and sign a longer ledger that closes again.
    first.close("w1", queries=1)
    longer = merge_signatures([first.checkpoint(), cosigned_by(pair.there._key, first)])
    pair.finals[first.log] = longer
    with pytest.raises(WitnessRefused, match="the checkpoint does not extend the last cosigned checkpoint"):
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
        ({"entries": "another opening"}, WitnessRefused, "the entries do not match the checkpoint"),
        ({"entries": "a query less"}, WitnessRefused, "the entries do not match the checkpoint"),
        ({"entries": []}, WitnessRefused, "the entry is not a window header"),
        ({"note": "not closed"}, WitnessRefused, "the entry is not a window trailer"),
    ],
    ids=[
        "quorum",
        "strangers",
        "provider",
        "another opening",
        "a query less",
        "no entries",
        "no closing record",
    ],
)
def test_what_is_not_taken_up(
    pair: Pair, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    first = pair.run(1, None)
    if changes.get("entries") == "another opening":
        other = opened(pair.key, closes_at=OPENS + 9 * HOUR)
        changes = {"entries": [other.entries[0], *first.entries[1:]]}
    if changes.get("entries") == "a query less":
        changes = {"entries": [*first.entries[:2], first.entries[3]]}
    if "note" in changes:
        early = first.checkpoint(3)
        changes = {"note": cosign_note(early, pair.there._key, OPENS // 1000), "entries": first.entries[:3]}
    with pytest.raises(error, match=message):
        pair.follow(first, **changes)
    assert pair.away.last(first.log) is None
