"""Beacon values: the formula, and every way in which a set of reveals is not the named beacon."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import pytest

from rag_audit.errors import (
    EncodingError,
    InvalidProof,
    RagAuditError,
    SchemaError,
    SignatureError,
    VersionError,
)
from rag_audit.log.checkpoint import SignedCheckpoint, open_checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merging import merge_signatures
from rag_audit.log.note import parse_note, sign_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.beacon import Reveal, combine, members_of, nonce_commitment, witness_beacon
from rag_audit.models.records import WitnessBeacon
from rag_audit.witness.witness import Witness

from .conftest import OPENS, Clock, Ledger, header, witness_beacon_of


class Scene:
    """Two witnesses, one opening, its cosigned checkpoint and both reveals."""

    def __init__(self, make_witness: Callable[[str], Witness], log_key: SigningKey, clock: Clock) -> None:
        self.witnesses = [make_witness("b.example"), make_witness("a.example")]
        beacon = witness_beacon_of([(w, w.nonce_commitment()) for w in self.witnesses])
        self.source = WitnessBeacon.parse(beacon, field="beacon")
        ledger = Ledger(log_key)
        ledger.append(header(beacon=beacon))
        self.log_key = log_key
        keys = [w.vkey for w in self.witnesses]
        note = merge_signatures(
            w.cosign_header(ledger.checkpoint(), ledger.entries[0], log_key=log_key.verifier)
            for w in self.witnesses
        )
        self.signed = open_checkpoint(note, origin=ledger.log, log_key=log_key.verifier, witnesses=keys)
        clock.now += 1500
        self.notes = [
            str(w.reveal(note, ledger.entries[0], log_key=log_key.verifier, witnesses=keys, quorum=2))
            for w in self.witnesses
        ]

    def value(self, **changes: object) -> tuple[bytes, int]:
        args: dict[str, object] = {
            "trusted": [w.vkey for w in self.witnesses],
            "quorum": 2,
            "window": "w1",
            **changes,
        }
        source = args.pop("source", self.source)
        notes = args.pop("notes", self.notes)
        signed = args.pop("signed", self.signed)
        return witness_beacon(source, notes, signed, **args)  # type: ignore[arg-type]

    def resign(self, at: int, **changes: object) -> list[str]:
        """The notes with one reveal changed and signed again by its own witness."""
        reveal = replace(Reveal.parse(parse_note(self.notes[at]).text), **changes)  # type: ignore[arg-type]
        key = self.witnesses[at]._key.with_algorithm(1)
        notes = list(self.notes)
        notes[at] = str(sign_note(reveal.text, key))
        return notes


@pytest.fixture
def scene(make_witness: Callable[[str], Witness], log_key: SigningKey, clock: Clock) -> Scene:
    return Scene(make_witness, log_key, clock)


def test_the_value_is_the_documented_one(scene: Scene, clock: Clock) -> None:
    reveals = {
        w.vkey.name: Reveal.parse(parse_note(n).text)
        for w, n in zip(scene.witnesses, scene.notes, strict=True)
    }
    expected = hashlib.sha256(
        b"rag-audit/beacon/v1"
        + b"\x00\x00\x00\x09a.example\x00\x00\x00\x20"
        + reveals["a.example"].nonce
        + b"\x00\x00\x00\x09b.example\x00\x00\x00\x20"
        + reveals["b.example"].nonce
        + scene.signed.checkpoint.root
    ).digest()
    assert scene.value() == (expected, clock.now)
    assert scene.value(notes=scene.notes[::-1]) == (expected, clock.now)


def test_a_known_answer() -> None:
    value = combine({"b": bytes([2]) * 32, "a": bytes([1]) * 32}, bytes(32))
    assert value.hex() == "b6f22250b7e532df36386073279b7f00df1db8bed18e7da725635f01d793b27d"
    assert (
        nonce_commitment(bytes(32)).hex()
        == "1888bc3ccd06cbe414eff482bdd1ec49fb97c0cf896c4e4da53e145fb3d4ca35"
    )


def test_names_and_nonces_cannot_run_into_one_another() -> None:
    assert combine({"ab": b"c" * 32}, bytes(32)) != combine({"a": b"b" + b"c" * 32}, bytes(32))


@pytest.mark.parametrize("at", [0, 1])
def test_a_missing_reveal_voids_the_window(scene: Scene, at: int) -> None:
    with pytest.raises(InvalidProof, match="void"):
        scene.value(notes=[scene.notes[1 - at]])


def test_a_repeated_reveal_is_refused(scene: Scene) -> None:
    with pytest.raises(InvalidProof, match="twice"):
        scene.value(notes=[scene.notes[0], *scene.notes])


@pytest.mark.parametrize(
    "changes",
    [{"nonce": bytes(32)}, {"root": bytes(32)}, {"size": 2}, {"window": "w2"}, {"origin": "other.example"}],
    ids=lambda c: next(iter(c)),
)
def test_a_witness_that_signs_something_else_is_refused(scene: Scene, changes: dict[str, object]) -> None:
    with pytest.raises(InvalidProof):
        scene.value(notes=scene.resign(0, **changes))


def test_a_reveal_before_the_quorum_is_refused(scene: Scene) -> None:
    at = 1000 * scene.signed.quorum_time(2)
    assert scene.value(notes=scene.resign(0, ts=at))
    with pytest.raises(InvalidProof, match="before the quorum"):
        scene.value(notes=scene.resign(0, ts=at - 1))


def test_a_nonce_signed_by_another_key_is_refused(scene: Scene) -> None:
    text = parse_note(scene.notes[0]).text
    for key in (scene.log_key, SigningKey.generate("b.example")):
        with pytest.raises(SignatureError):
            scene.value(notes=[str(sign_note(text, key)), scene.notes[1]])


def test_one_witness_cannot_reveal_for_another(scene: Scene) -> None:
    text = parse_note(scene.notes[0]).text
    stolen = str(sign_note(text, scene.witnesses[1]._key.with_algorithm(1)))
    with pytest.raises(InvalidProof, match="commitment"):
        scene.value(notes=[stolen, scene.notes[1]])


def test_a_cosignature_is_not_a_reveal(scene: Scene) -> None:
    with pytest.raises(RagAuditError):
        scene.value(notes=[str(scene.signed.note), scene.notes[1]])


def test_only_exactly_the_trusted_witnesses_count(scene: Scene) -> None:
    a, b = (w.vkey for w in scene.witnesses)
    third = SigningKey.generate("c.example", 4).verifier
    for trusted in ([a], [a, b, third], [a, third], []):
        with pytest.raises(SignatureError, match="the beacon's witnesses differ from the trusted witnesses"):
            scene.value(trusted=trusted)


def test_a_key_found_only_in_the_window_does_not_count(scene: Scene) -> None:
    impostor = VerifierKey(scene.witnesses[0].vkey.name, 4, SigningKey.generate("x").verifier.public)
    with pytest.raises(SignatureError, match="the beacon's witnesses differ from the trusted witnesses"):
        scene.value(trusted=[impostor, scene.witnesses[1].vkey])


def test_without_a_quorum_there_is_no_beacon(scene: Scene) -> None:
    with pytest.raises(SignatureError, match="too few"):
        scene.value(quorum=3)
    alone = SignedCheckpoint(scene.signed.checkpoint, scene.signed.note, {})
    with pytest.raises(SignatureError, match="too few"):
        scene.value(signed=alone, quorum=1)


def test_a_source_that_names_a_witness_twice_is_refused(scene: Scene) -> None:
    first, second = scene.source.witnesses
    for twin in (first, second.model_copy(update={"commitment": first.commitment})):
        with pytest.raises(SchemaError, match="twice"):
            members_of(scene.source.model_copy(update={"witnesses": [first, twin]}))
    renamed = VerifierKey("c.example", 4, VerifierKey.parse(first.vkey).public)
    alias = first.model_copy(
        update={"name": "c.example", "vkey": str(renamed), "commitment": second.commitment}
    )
    with pytest.raises(SchemaError, match="key occurs twice"):
        members_of(scene.source.model_copy(update={"witnesses": [first, alias]}))


def test_a_source_with_a_key_of_another_name_or_type_is_refused(scene: Scene) -> None:
    first = scene.source.witnesses[0]
    plain = str(scene.witnesses[0].vkey.with_algorithm(1))
    for wrong in (first.model_copy(update={"name": "z.example"}), first.model_copy(update={"vkey": plain})):
        with pytest.raises(SchemaError, match="not the named witness"):
            members_of(scene.source.model_copy(update={"witnesses": [wrong]}))


REVEAL = Reveal("o", "w", 1, bytes(32), bytes(32), OPENS)


def test_a_reveal_reads_back() -> None:
    assert Reveal.parse(REVEAL.text) == REVEAL


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("", VersionError, id="empty"),
        pytest.param(REVEAL.text.replace("/v1", "/v2"), VersionError, id="version"),
        pytest.param(REVEAL.text[:-1], EncodingError, id="truncated"),
        pytest.param(REVEAL.text + "more\n", EncodingError, id="extra line"),
        pytest.param(REVEAL.text.replace("\n1\n", "\n01\n"), EncodingError, id="leading zero"),
        pytest.param(REVEAL.text.replace("\n1\n", "\n1_0\n"), EncodingError, id="underscore"),
        pytest.param(REVEAL.text.replace("\n1\n", "\n¹\n"), EncodingError, id="superscript"),
        pytest.param(REVEAL.text.replace(str(OPENS), "9" * 5000), EncodingError, id="huge"),
        pytest.param(REVEAL.text.replace("00" * 32, "00" * 31), EncodingError, id="short nonce"),
        pytest.param(REVEAL.text.replace("\no\n", "\n\n"), EncodingError, id="no origin"),
    ],
)
def test_what_is_not_a_reveal(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        Reveal.parse(text)
