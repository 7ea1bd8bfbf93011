"""What a witness signs, what it refuses, and that its state is durable before a signature leaves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_audit.errors import EncodingError, SetupError, SignatureError, SizeError, StoreError
from rag_audit.log.checkpoint import CLOCK_LEEWAY_SECONDS, Checkpoint, open_checkpoint
from rag_audit.log.merging import merge_signatures
from rag_audit.log.note import Note, cosign_note, verify_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.records import log_origin
from rag_audit.witness import witness as witness_module
from rag_audit.witness.witness import Witness, WitnessRefused

from .conftest import (
    HOUR,
    OPENS,
    ORIGIN,
    Clock,
    Ledger,
    beacon_of,
    enrolment,
    header,
    query,
    witness_beacon_of,
)

MakeWitness = Callable[[str], Witness]
LOG = log_origin(ORIGIN, "w1")


@pytest.fixture
def witness(make_witness: MakeWitness) -> Witness:
    return make_witness("w.example")


def opened(log_key: SigningKey, **changes: Any) -> Ledger:
    entry = header(**changes)
    ledger = Ledger(log_key, log_origin(entry["origin"], entry["window"]))
    ledger.append(entry)
    return ledger


def cosign_first(witness: Witness, ledger: Ledger) -> Note:
    return witness.cosign_header(ledger.checkpoint(1), ledger.entries[0], log_key=ledger.key.verifier)


def run_window(witness: Witness, ledger: Ledger, window: str) -> None:
    cosign_first(witness, ledger)
    end(witness, ledger, window)


def end(witness: Witness, ledger: Ledger, window: str, **changes: Any) -> Note:
    """A closing record, cosigned: of a window with its beacon and one query, unless `changes` say otherwise."""
    if not changes:
        ledger.add(beacon_of())
        ledger.add(query(window))
    trailer = ledger.close(window, **(changes or {"queries": 1}))
    return witness.cosign(
        ledger.checkpoint(),
        log_key=ledger.key.verifier,
        consistency=ledger.consistency(1),
        trailer=trailer,
        entries=ledger.entries,
    )


def named(ledger: Ledger, abandoned: int = 0, empty: int = 0) -> dict[str, Any]:
    return {
        "header": ledger.digest(), "root": ledger.tree.root().hex(), "abandoned": abandoned, "empty": empty,
    }  # fmt: skip


def successor(ledger: Ledger, log_key: SigningKey, **changes: Any) -> Ledger:
    previous = named(ledger)
    fields = {"window": "w2", "previous": previous, "opens_at": OPENS + HOUR, "closes_at": OPENS + 2 * HOUR}
    return opened(log_key, **{**fields, **changes})


def test_an_opening_is_cosigned_at_the_witness_time(
    witness: Witness, log_key: SigningKey, clock: Clock
) -> None:
    note = cosign_first(witness, opened(log_key))
    signed = open_checkpoint(note, origin=LOG, log_key=log_key.verifier, witnesses=[witness.vkey])
    assert signed.cosignatures == {witness.vkey: clock.now // 1000}
    assert witness.last(LOG) == (1, signed.checkpoint.root)


def test_the_same_opening_may_be_cosigned_again(witness: Witness, log_key: SigningKey) -> None:
    ledger = opened(log_key)
    assert cosign_first(witness, ledger) == cosign_first(witness, ledger)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"opens_at": OPENS - HOUR}, "in the past"),
        ({"closes_at": OPENS}, "before it opens"),
        (
            {"previous": {"header": "00" * 32, "root": "00" * 32, "abandoned": 0, "empty": 0}},
            "no earlier window",
        ),
    ],
)
def test_a_first_opening_that_is_refused(
    witness: Witness, log_key: SigningKey, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(WitnessRefused, match=message):
        cosign_first(witness, opened(log_key, **changes))
    assert witness.last(LOG) is None


def test_an_opening_under_another_root_is_refused(witness: Witness, log_key: SigningKey) -> None:
    other = opened(log_key, closes_at=OPENS + 2 * HOUR)
    with pytest.raises(WitnessRefused, match="the checkpoint does not cover the window header"):
        witness.cosign_header(opened(log_key).checkpoint(), other.entries[0], log_key=log_key.verifier)


def test_an_opening_in_a_longer_tree_is_refused(witness: Witness, log_key: SigningKey) -> None:
    ledger = opened(log_key)
    ledger.close("w1")
    with pytest.raises(WitnessRefused, match="the checkpoint does not cover the window header"):
        witness.cosign_header(ledger.checkpoint(), ledger.entries[0], log_key=log_key.verifier)


def test_only_the_provider_can_ask(witness: Witness, log_key: SigningKey) -> None:
    ledger = opened(SigningKey.generate(ORIGIN))
    with pytest.raises(SignatureError):
        witness.cosign_header(ledger.checkpoint(), ledger.entries[0], log_key=log_key.verifier)


def test_an_entry_that_is_not_canonical_is_refused(witness: Witness, log_key: SigningKey) -> None:
    ledger = opened(log_key)
    ledger.entries[0] = ledger.entries[0].replace(b'"v":1', b'"v": 1')
    with pytest.raises(WitnessRefused, match="canonical"):
        cosign_first(witness, ledger)


def test_windows_chain(witness: Witness, log_key: SigningKey) -> None:
    first = opened(log_key)
    run_window(witness, first, "w1")
    second = successor(first, log_key)
    run_window(witness, second, "w2")
    assert witness.last(second.log) == (4, second.tree.root())


def test_a_second_window_with_the_same_predecessor_is_refused(witness: Witness, log_key: SigningKey) -> None:
    first = opened(log_key)
    run_window(witness, first, "w1")
    run_window(witness, successor(first, log_key), "w2")
    with pytest.raises(WitnessRefused, match="the previous window is not the last window"):
        cosign_first(
            witness,
            successor(first, log_key, window="w3", opens_at=OPENS + 5 * HOUR, closes_at=OPENS + 6 * HOUR),
        )


def test_a_second_first_window_is_refused(witness: Witness, log_key: SigningKey) -> None:
    run_window(witness, opened(log_key), "w1")
    with pytest.raises(WitnessRefused, match="the previous window is not the last window"):
        cosign_first(witness, opened(log_key, window="w2", opens_at=OPENS + HOUR, closes_at=OPENS + 2 * HOUR))


def test_a_predecessor_that_is_not_closed_is_refused(witness: Witness, log_key: SigningKey) -> None:
    first = opened(log_key)
    cosign_first(witness, first)
    with pytest.raises(WitnessRefused, match="not closed"):
        cosign_first(witness, successor(first, log_key))


def test_a_predecessor_with_another_end_is_refused(witness: Witness, log_key: SigningKey) -> None:
    first = opened(log_key)
    run_window(witness, first, "w1")
    root = {**named(first), "root": first.tree.root(1).hex()}
    with pytest.raises(WitnessRefused, match="the previous window is not the last window"):
        cosign_first(witness, successor(first, log_key, previous=root))


def test_overlapping_windows_are_refused(witness: Witness, log_key: SigningKey, clock: Clock) -> None:
    """The interval ends with its closing record, whose time may be a little ahead of the witness's clock."""
    first = opened(log_key)
    cosign_first(witness, first)
    ended = clock.now + 30_000
    end(witness, first, "w1", queries=0, ts=ended)
    with pytest.raises(WitnessRefused, match="overlap"):
        cosign_first(witness, successor(first, log_key, previous=named(first, 1), opens_at=ended - 1))
    cosign_first(witness, successor(first, log_key, previous=named(first, 1), opens_at=ended))


def test_a_date_ends_an_interval_before_a_later_closing_record(
    witness: Witness, log_key: SigningKey, clock: Clock
) -> None:
    first = opened(log_key)
    cosign_first(witness, first)
    clock.now = OPENS + HOUR - 20_000
    end(witness, first, "w1", queries=0, ts=OPENS + HOUR + 30_000)
    for early in (1, 0):
        after = successor(first, log_key, previous=named(first, 1), opens_at=OPENS + HOUR - early)
        if early:
            with pytest.raises(WitnessRefused, match="overlap"):
                cosign_first(witness, after)
        else:
            cosign_first(witness, after)


def test_a_fork_is_refused(witness: Witness, log_key: SigningKey) -> None:
    honest = opened(log_key)
    cosign_first(witness, honest)
    fork = opened(log_key, closes_at=OPENS + 2 * HOUR)
    fork.append({"x": 1})
    with pytest.raises(WitnessRefused, match="the checkpoint does not extend the last cosigned checkpoint"):
        witness.cosign(fork.checkpoint(), log_key=log_key.verifier, consistency=fork.consistency(1))
    assert witness.last(LOG) == (1, honest.tree.root(1))


def test_another_opening_of_a_cosigned_window_is_refused(witness: Witness, log_key: SigningKey) -> None:
    """Its log would start again: a smaller tree, or another of the same size, under one origin line."""
    first = opened(log_key)
    cosign_first(witness, first)
    with pytest.raises(WitnessRefused, match="this witness cosigned another header of this window"):
        cosign_first(witness, opened(log_key, closes_at=OPENS + 2 * HOUR))
    assert witness.last(LOG) == (1, first.tree.root(1))


def test_the_id_of_a_closed_window_does_not_serve_again(witness: Witness, log_key: SigningKey) -> None:
    first = opened(log_key)
    run_window(witness, first, "w1")
    with pytest.raises(WitnessRefused, match="this witness cosigned another header of this window"):
        cosign_first(witness, successor(first, log_key, window="w1"))
    assert witness.last(LOG) == (4, first.tree.root())


def test_each_window_is_a_log_of_its_own(witness: Witness, log_key: SigningKey) -> None:
    """What any C2SP witness holds a log to: under one origin line the tree only grows."""
    first = opened(log_key)
    seen = [cosign_first(witness, first), end(witness, first, "w1")]
    second = successor(first, log_key)
    seen += [cosign_first(witness, second), end(witness, second, "w2")]
    heads = [Checkpoint.parse(note.text) for note in seen]
    assert [(head.origin, head.size) for head in heads] == [
        (f"{ORIGIN}/w1", 1), (f"{ORIGIN}/w1", 4), (f"{ORIGIN}/w2", 1), (f"{ORIGIN}/w2", 4)
    ]  # fmt: skip


def test_a_state_that_could_not_be_read_again_is_not_written(
    witness: Witness, log_key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch, pytest.raises(SizeError, match="full"):
        patch.setattr(witness_module, "MAX_STATE_BYTES", 200)
        cosign_first(witness, opened(log_key))
    assert witness.last(LOG) is None


def test_a_shrunk_ledger_is_refused(witness: Witness, log_key: SigningKey) -> None:
    ledger = opened(log_key)
    cosign_first(witness, ledger)
    for i in range(3):
        ledger.append({"i": i})
    witness.cosign(ledger.checkpoint(), log_key=log_key.verifier, consistency=ledger.consistency(1))
    with pytest.raises(WitnessRefused, match="the checkpoint does not extend the last cosigned checkpoint"):
        witness.cosign(ledger.checkpoint(2), log_key=log_key.verifier, consistency=[])
    with pytest.raises(WitnessRefused, match="the window has further entries"):
        cosign_first(witness, ledger)


def test_an_unknown_log_is_refused(witness: Witness, log_key: SigningKey) -> None:
    ledger = opened(log_key)
    with pytest.raises(WitnessRefused, match="this witness has not cosigned a header of this window"):
        witness.cosign(ledger.checkpoint(), log_key=log_key.verifier, consistency=[])


def test_a_closed_window_does_not_go_on(witness: Witness, log_key: SigningKey) -> None:
    ledger = opened(log_key)
    run_window(witness, ledger, "w1")
    final = ledger.checkpoint()
    assert witness.cosign(final, log_key=log_key.verifier, consistency=[]).text == final.text
    ledger.append({"late": True})
    with pytest.raises(WitnessRefused, match="closed"):
        witness.cosign(ledger.checkpoint(), log_key=log_key.verifier, consistency=ledger.consistency(4))


def test_only_a_closing_record_in_last_place_closes(witness: Witness, log_key: SigningKey) -> None:
    ledger = opened(log_key)
    cosign_first(witness, ledger)
    entry, path = ledger.close("w1")
    ledger.append({"after": True})
    ask = {"log_key": log_key.verifier, "consistency": ledger.consistency(1)}
    with pytest.raises(WitnessRefused, match="not the last entry"):
        witness.cosign(ledger.checkpoint(), **ask, trailer=(entry, path))
    with pytest.raises(WitnessRefused, match="the entry is not a window trailer"):
        witness.cosign(ledger.checkpoint(), **ask, trailer=(ledger.entries[0], path))


def test_the_closing_record_of_another_window_is_refused(witness: Witness, log_key: SigningKey) -> None:
    ledger = opened(log_key)
    cosign_first(witness, ledger)
    trailer = ledger.close("w9")
    with pytest.raises(WitnessRefused, match="another window"):
        witness.cosign(
            ledger.checkpoint(), log_key=log_key.verifier, consistency=ledger.consistency(1), trailer=trailer
        )


def test_a_closing_record_from_the_future_waits_for_its_time(
    witness: Witness, log_key: SigningKey, clock: Clock
) -> None:
    """Cosigned at once it could never pass: the verifier would find it stamped after the quorum."""
    ledger = opened(log_key)
    cosign_first(witness, ledger)
    leeway = 1000 * CLOCK_LEEWAY_SECONDS
    trailer = ledger.close("w1", ts=clock() + leeway + 1)
    ask = {"log_key": log_key.verifier, "consistency": ledger.consistency(1), "trailer": trailer}
    with pytest.raises(WitnessRefused, match="in the future") as caught:
        witness.cosign(ledger.checkpoint(), **ask)
    assert caught.value.actual == clock() + leeway + 1
    clock.now += 1
    assert len(witness.cosign(ledger.checkpoint(), **ask).signatures) == 2


def test_no_signature_leaves_before_the_state_is_durable(
    witness: Witness, log_key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object, **__: object) -> None:
        raise StoreError("cannot be written", actual="No space left on device")

    def sign_anyway(*_: object) -> Note:
        pytest.fail("signed before the state was written")

    monkeypatch.setattr(witness_module, "replace_file", full_disk)
    monkeypatch.setattr(witness_module, "cosign_note", sign_anyway)
    with pytest.raises(StoreError):
        cosign_first(witness, opened(log_key))
    assert witness.last(LOG) is None


def test_a_crash_between_state_and_signature_binds_the_witness(
    witness: Witness, log_key: SigningKey, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def die(*_: object) -> Note:
        raise Killed

    ledger = opened(log_key)
    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(witness_module, "cosign_note", die)
        cosign_first(witness, ledger)
    again = Witness(tmp_path / "w.example", clock=clock)
    with pytest.raises(WitnessRefused, match="not closed"):
        cosign_first(again, opened(log_key, window="other"))
    assert verify_note(cosign_first(again, ledger), [witness.vkey])


def test_the_state_outlives_the_process(
    witness: Witness, log_key: SigningKey, tmp_path: Path, clock: Clock
) -> None:
    cosign_first(witness, opened(log_key))
    again = Witness(tmp_path / "w.example", clock=clock)
    with pytest.raises(WitnessRefused, match="not closed"):
        cosign_first(again, opened(log_key, window="other"))


def test_a_clock_that_is_set_back_does_not_turn_times_round(
    witness: Witness, log_key: SigningKey, clock: Clock
) -> None:
    ledger = opened(log_key)
    cosign_first(witness, ledger)
    before = clock.now // 1000
    clock.now -= HOUR
    ledger.append({"x": 1})
    note = witness.cosign(ledger.checkpoint(), log_key=log_key.verifier, consistency=ledger.consistency(1))
    assert [v.timestamp for v in verify_note(note, [witness.vkey])] == [before]


def test_directories(tmp_path: Path, make_witness: MakeWitness) -> None:
    make_witness("w.example")
    with pytest.raises(StoreError, match="exists"):
        make_witness("w.example")
    with pytest.raises(SetupError):
        Witness(tmp_path / "none")
    for name in ("key", "state.json"):
        path = tmp_path / "w.example" / name
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o644)
        with pytest.raises(SetupError, match="can access a secret file"):
            Witness(tmp_path / "w.example")
        path.chmod(0o600)
    (tmp_path / "w.example" / "state.json").write_bytes(b'{"v":1,')
    with pytest.raises(EncodingError):
        Witness(tmp_path / "w.example")


# Nonces and beacons.


def beacon_window(witness: Witness, log_key: SigningKey) -> Ledger:
    return opened(log_key, beacon=witness_beacon_of([(witness, witness.nonce_commitment())]))


def ask(witness: Witness, ledger: Ledger, note: Note, **changes: Any) -> Note:
    args = {"log_key": ledger.key.verifier, "witnesses": [witness.vkey], "quorum": 1, **changes}
    return witness.reveal(note, ledger.entries[0], **args)


def test_a_nonce_is_revealed_once_for_one_root(witness: Witness, log_key: SigningKey, clock: Clock) -> None:
    ledger = beacon_window(witness, log_key)
    cosigned = cosign_first(witness, ledger)
    first = ask(witness, ledger, cosigned)
    clock.now += 5000
    assert ask(witness, ledger, cosigned) == first
    verify_note(first, [witness.vkey.with_algorithm(1)])


def test_no_reveal_before_the_quorum(
    witness: Witness, log_key: SigningKey, make_witness: MakeWitness
) -> None:
    ledger = beacon_window(witness, log_key)
    cosigned = cosign_first(witness, ledger)
    second = make_witness("second.example")
    keys = [witness.vkey, second.vkey]
    with pytest.raises(SignatureError, match="too few"):
        ask(witness, ledger, cosigned, witnesses=keys, quorum=2)
    stranger = SigningKey.generate("stranger.example", 4)
    with pytest.raises(SignatureError, match="too few"):
        ask(witness, ledger, cosign_note(cosigned, stranger, 1), witnesses=keys, quorum=2)
    both = merge_signatures([cosigned, cosign_first(second, ledger)])
    assert ask(witness, ledger, both, witnesses=keys, quorum=2).text.startswith("rag-audit/beacon/v1\n")


def test_no_reveal_over_what_this_witness_did_not_cosign(
    witness: Witness, log_key: SigningKey, make_witness: MakeWitness
) -> None:
    other = make_witness("other.example")
    ledger = beacon_window(witness, log_key)
    with pytest.raises(
        WitnessRefused, match="the checkpoint differs from the last checkpoint that this witness cosigned"
    ):
        ask(witness, ledger, cosign_first(other, ledger), witnesses=[other.vkey])


def test_a_nonce_does_not_serve_a_second_window(witness: Witness, log_key: SigningKey) -> None:
    first = beacon_window(witness, log_key)
    ask(witness, first, cosign_first(witness, first))
    end(witness, first, "w1")
    beacon = header_beacon(first)
    with pytest.raises(WitnessRefused, match="not a fresh nonce"):
        cosign_first(witness, successor(first, log_key, beacon=beacon))


def header_beacon(ledger: Ledger) -> dict[str, Any]:
    beacon: dict[str, Any] = json.loads(ledger.entries[0])["beacon"]
    return beacon


def test_a_nonce_that_two_origins_name_is_revealed_for_one(witness: Witness, log_key: SigningKey) -> None:
    beacon = witness_beacon_of([(witness, witness.nonce_commitment())])
    first = opened(log_key, beacon=beacon)
    cosigned = cosign_first(witness, first)
    second = opened(log_key, beacon=beacon, origin="elsewhere.example")
    head = Checkpoint(second.log, 1, second.tree.root()).sign(log_key)
    also = witness.cosign_header(head, second.entries[0], log_key=log_key.verifier)
    ask(witness, first, cosigned)
    with pytest.raises(WitnessRefused, match="another root"):
        ask(witness, second, also)


def test_commitments_that_are_not_this_witness_own_are_refused(
    witness: Witness, log_key: SigningKey, make_witness: MakeWitness
) -> None:
    stranger = make_witness("stranger.example")
    with pytest.raises(WitnessRefused, match="not a fresh nonce"):
        cosign_first(witness, opened(log_key, beacon=witness_beacon_of([(witness, bytes(32))])))
    theirs = witness_beacon_of([(stranger, stranger.nonce_commitment())])
    ledger = opened(log_key, beacon=theirs)
    with pytest.raises(WitnessRefused, match="no nonce of this witness"):
        ask(witness, ledger, cosign_first(witness, ledger))


def test_another_key_under_the_witness_name_is_refused(witness: Witness, log_key: SigningKey) -> None:
    beacon = witness_beacon_of([(witness, witness.nonce_commitment())])
    beacon["witnesses"][0]["vkey"] = str(SigningKey.generate("w.example", 4).verifier)
    with pytest.raises(WitnessRefused, match="another key"):
        cosign_first(witness, opened(log_key, beacon=beacon))


def test_every_commitment_is_another(witness: Witness) -> None:
    assert len({witness.nonce_commitment() for _ in range(20)}) == 20


def test_an_openings_nonce_is_not_revealed_over_a_later_root(witness: Witness, log_key: SigningKey) -> None:
    ledger = beacon_window(witness, log_key)
    cosign_first(witness, ledger)
    ledger.append({"x": 1})
    later = witness.cosign(ledger.checkpoint(), log_key=log_key.verifier, consistency=ledger.consistency(1))
    with pytest.raises(WitnessRefused, match="the beacon of a window header covers only the header"):
        ask(witness, ledger, later, path=ledger.tree.inclusion_path(0))


def test_an_enrolment_gets_its_own_nonce(witness: Witness, log_key: SigningKey) -> None:
    ledger = opened(log_key)
    cosign_first(witness, ledger)
    ledger.append({"type": "beacon"})
    entry = ledger.append(enrolment(2, witness_beacon_of([(witness, witness.nonce_commitment())])))
    note = witness.cosign(ledger.checkpoint(), log_key=log_key.verifier, consistency=ledger.consistency(1))
    args: dict[str, Any] = {"log_key": log_key.verifier, "witnesses": [witness.vkey], "quorum": 1}
    path = ledger.tree.inclusion_path(2)
    with pytest.raises(WitnessRefused, match="not in the checkpointed tree"):
        witness.reveal(note, entry, **args, index=1, path=path)
    assert "\nw1\n3\n" in witness.reveal(note, entry, **args, index=2, path=path).text


@pytest.mark.parametrize("ahead", [0, 1])
def test_an_enrolment_from_the_future_gets_no_beacon(
    ahead: int, witness: Witness, log_key: SigningKey, clock: Clock
) -> None:
    """Its ledger was cosigned before the time that it states: with a beacon, no verifier would pass the window."""
    ledger = opened(log_key)
    cosign_first(witness, ledger)
    ledger.append({"type": "beacon"})
    beacon = witness_beacon_of([(witness, witness.nonce_commitment())])
    latest = clock() // 1000 * 1000 + 1000 * CLOCK_LEEWAY_SECONDS
    entry = ledger.append(enrolment(2, beacon, ts=latest + ahead))
    note = witness.cosign(ledger.checkpoint(), log_key=log_key.verifier, consistency=ledger.consistency(1))
    args: dict[str, Any] = {"log_key": log_key.verifier, "witnesses": [witness.vkey], "quorum": 1}
    args.update(index=2, path=ledger.tree.inclusion_path(2))
    if not ahead:
        assert witness.reveal(note, entry, **args).signatures
        return
    with pytest.raises(
        WitnessRefused, match="the time of the enrolment is after its quorum: check the clocks"
    ):
        witness.reveal(note, entry, **args)


def test_a_quorum_in_the_future_is_refused(witness: Witness, log_key: SigningKey, clock: Clock) -> None:
    ledger = beacon_window(witness, log_key)
    cosigned = cosign_first(witness, ledger)
    clock.now -= HOUR
    with pytest.raises(WitnessRefused, match="future"):
        ask(witness, ledger, cosigned)


def test_a_lost_reveal_is_not_signed(
    witness: Witness, log_key: SigningKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = beacon_window(witness, log_key)
    cosigned = cosign_first(witness, ledger)

    def full_disk(*_: object, **__: object) -> None:
        raise StoreError("cannot be written")

    monkeypatch.setattr(witness_module, "replace_file", full_disk)
    monkeypatch.setattr(
        witness_module, "sign_note", lambda *_: pytest.fail("signed before the state was written")
    )
    with pytest.raises(StoreError):
        ask(witness, ledger, cosigned)


def test_two_processes_share_one_state(witness: Witness, tmp_path: Path) -> None:
    directory = tmp_path / "w.example"
    children = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                for _ in range(5):
                    Witness(directory).nonce_commitment()
                status = 0
            finally:
                os._exit(status)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 4
    assert (directory / "state.json").read_bytes().count(b'"nonce":') == 20
