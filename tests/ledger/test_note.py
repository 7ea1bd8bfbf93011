"""Signed notes: C2SP's own examples, strict reading, and signatures that must not count."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_audit.errors import EncodingError, SetupError, SignatureError, SizeError, StoreError, VersionError
from rag_audit.log.keys import ALG_COSIGNATURE, VerifierKey
from rag_audit.log.merging import merge_signatures
from rag_audit.log.note import (
    MAX_SIGNATURES,
    Note,
    NoteSignature,
    cosign_note,
    parse_note,
    sign_note,
    verify_note,
)
from rag_audit.log.signing import SigningKey

# c2sp.org/signed-note, "Example".
C2SP_VKEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
C2SP_NOTE = (
    "This is an example message.\n\n"
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)
# A key pair printed by a Go implementation of the same format.
GO_SKEY = "PRIVATE+KEY+binarytransparency.log/example+5de0f997+AXNNv9racVtMynH7oHIogZ4xS5sAIHBl47hlrcf6vsfu"
GO_VKEY = "binarytransparency.log/example+5de0f997+AcPfp2roeTxqSqmPdDkA9rIAd0pe3C5Je6Rze2SqBDUp"


@pytest.fixture
def key() -> SigningKey:
    return SigningKey("log.example/a", 1, bytes(range(32)))


@pytest.fixture
def witness() -> SigningKey:
    return SigningKey("witness.example/w", ALG_COSIGNATURE, bytes(range(1, 33)))


def test_the_c2sp_example_verifies() -> None:
    vkey = VerifierKey.parse(C2SP_VKEY)
    note = parse_note(C2SP_NOTE)
    assert str(vkey) == C2SP_VKEY
    assert str(note) == C2SP_NOTE
    assert [v.key for v in verify_note(note, [vkey])] == [vkey]


def test_a_private_key_of_another_implementation_gives_its_public_key() -> None:
    skey = SigningKey.parse(GO_SKEY)
    assert str(skey.verifier) == GO_VKEY
    assert skey.export() == GO_SKEY


def test_a_changed_text_does_not_verify() -> None:
    note = parse_note(C2SP_NOTE.replace("example message", "exemplary message"))
    with pytest.raises(SignatureError, match="does not verify"):
        verify_note(note, [VerifierKey.parse(C2SP_VKEY)])


def test_unknown_signatures_are_ignored_but_one_known_is_needed(key: SigningKey) -> None:
    stranger = SigningKey.generate("stranger.example")
    note = sign_note("hello\n", stranger, key)
    assert [v.key for v in verify_note(note, [key.verifier])] == [key.verifier]
    with pytest.raises(SignatureError, match="no known key signed the note"):
        verify_note(sign_note("hello\n", stranger), [key.verifier])


def test_another_key_under_a_known_name_is_a_stranger(key: SigningKey) -> None:
    impostor = SigningKey.generate(key.name)
    with pytest.raises(SignatureError, match="no known key signed the note"):
        verify_note(sign_note("hello\n", impostor), [key.verifier])


def test_a_forged_line_with_a_known_name_and_id_is_refused(key: SigningKey) -> None:
    other = SigningKey.generate("other.example")
    forged = NoteSignature(key.name, key.verifier.key_id, bytes(64))
    note = Note("hello\n", (*sign_note("hello\n", other).signatures, forged))
    with pytest.raises(SignatureError, match="does not verify"):
        verify_note(note, [key.verifier, other.verifier])


def test_a_repeated_line_counts_once(key: SigningKey, witness: SigningKey) -> None:
    note = cosign_note(sign_note("hello\n", key, key), witness, 9)
    repeated = parse_note(str(Note(note.text, (*note.signatures, note.signatures[-1]))))
    result = verify_note(repeated, [key.verifier, witness.verifier])
    assert [(v.key, v.timestamp) for v in result] == [(key.verifier, None), (witness.verifier, 9)]


@pytest.mark.parametrize("times", [(5, 9), (9, 5), (9, 5, 9, 7)])
def test_of_several_cosignatures_the_earliest_counts(
    key: SigningKey, witness: SigningKey, times: tuple[int, ...]
) -> None:
    text = "log\n1\nroot\n"
    lines = [cosign_note(Note(text, ()), witness, t).signatures[0] for t in times]
    note = Note(text, (*sign_note(text, key).signatures, *lines))
    assert [v.timestamp for v in verify_note(note, [witness.verifier])] == [5]
    merged = merge_signatures([note], [key.verifier, witness.verifier])
    assert [s for s in merged.signatures if s.name == witness.name] == [lines[times.index(5)]]


@pytest.mark.parametrize("forged_time", [1, 9])
def test_each_line_of_a_known_key_must_verify(key: SigningKey, witness: SigningKey, forged_time: int) -> None:
    """Nobody makes a witness's cosignature earlier, nor hides a wrong line behind a good one."""
    note = cosign_note(sign_note("log\n1\nroot\n", key), witness, 5)
    good = note.signatures[-1]
    forged = NoteSignature(good.name, good.key_id, forged_time.to_bytes(8, "big") + good.payload[8:])
    for lines in ((good, forged), (forged, good)):
        changed = Note(note.text, (note.signatures[0], *lines))
        with pytest.raises(SignatureError, match="does not verify"):
            verify_note(changed, [key.verifier, witness.verifier])
        with pytest.raises(SignatureError, match="does not verify"):
            merge_signatures([changed], [key.verifier, witness.verifier])


@pytest.mark.parametrize(
    "name",
    [
        "two words",
        "plus+sign",
        "no\u00a0break",
        "zero\u200bwidth",
        "\u202eesrever",
        "\ue000",
        "\U0001f511",
        "é",
        "+",
        "\x85",
    ],
    ids=ascii,
)
def test_lines_of_unknown_keys_are_ignored_whatever_their_names(key: SigningKey, name: str) -> None:
    signed = sign_note("hello\n", key)
    text = str(signed) + f"— {name} Uw2QOkn8srV1\n"
    note = parse_note(text)
    assert str(note) == text
    assert [v.key for v in verify_note(note, [key.verifier])] == [key.verifier]
    assert merge_signatures([note, signed], [key.verifier]).signatures == note.signatures


def test_a_name_that_looks_like_a_known_one_is_another(key: SigningKey) -> None:
    line = sign_note("hello\n", key).signatures[0]
    for name in (f"{key.name} ", f" {key.name}", f"{key.name}\u200b"):
        lookalike = parse_note(str(Note("hello\n", (NoteSignature(name, line.key_id, line.payload),))))
        with pytest.raises(SignatureError, match="no known key signed the note"):
            verify_note(lookalike, [key.verifier])


def test_lines_of_strangers_do_not_crowd_out_a_known_key(key: SigningKey, witness: SigningKey) -> None:
    strangers = tuple(NoteSignature(f"k{i}", bytes(4), b"x" * 68) for i in range(MAX_SIGNATURES))
    signed = cosign_note(sign_note("hello\n", key), witness, 5)
    keys = [key.verifier, witness.verifier]
    full = merge_signatures([Note(signed.text, strangers), signed], keys)
    assert len(full.signatures) == MAX_SIGNATURES and len(verify_note(full, keys)) == 2
    small = merge_signatures([Note(signed.text, strangers), signed], keys, max_bytes=1000)
    assert 900 < len(str(small)) <= 1000 and len(verify_note(small, keys)) == 2
    assert parse_note(str(small)) == small


def test_a_cosignature_binds_its_time(key: SigningKey, witness: SigningKey) -> None:
    note = cosign_note(sign_note("log\n1\nroot\n", key), witness, 1_700_000_000)
    assert {v.timestamp for v in verify_note(note, [witness.verifier])} == {1_700_000_000}
    line = note.signatures[-1]
    backdated = NoteSignature(line.name, line.key_id, (1_600_000_000).to_bytes(8, "big") + line.payload[8:])
    with pytest.raises(SignatureError, match="does not verify"):
        verify_note(Note(note.text, (backdated,)), [witness.verifier])


def test_a_cosignature_is_not_a_note_signature_by_the_same_key(witness: SigningKey) -> None:
    plain = witness.with_algorithm(1)
    text = "log\n1\nroot\n"
    cosigned = cosign_note(Note(text, ()), witness, 5).signatures[0]
    as_note = NoteSignature(plain.name, plain.verifier.key_id, cosigned.payload[8:])
    with pytest.raises(SignatureError, match="does not verify"):
        verify_note(Note(text, (as_note,)), [plain.verifier])
    signed = sign_note(text, plain).signatures[0]
    as_cosignature = NoteSignature(witness.name, witness.verifier.key_id, bytes(8) + signed.payload)
    with pytest.raises(SignatureError, match="does not verify"):
        verify_note(Note(text, (as_cosignature,)), [witness.verifier])


def test_cosigning_again_replaces_the_line(key: SigningKey, witness: SigningKey) -> None:
    note = cosign_note(cosign_note(sign_note("a\n", key), witness, 1), witness, 2)
    assert [v.timestamp for v in verify_note(note, [witness.verifier])] == [2]


def test_each_type_of_key_signs_only_its_own_kind(key: SigningKey, witness: SigningKey) -> None:
    with pytest.raises(VersionError):
        sign_note("a\n", witness)
    with pytest.raises(VersionError):
        cosign_note(sign_note("a\n", key), key, 1)


@pytest.mark.parametrize("time", [-1, 2**63])
def test_a_time_outside_its_range_is_refused(witness: SigningKey, time: int) -> None:
    with pytest.raises(EncodingError):
        cosign_note(Note("a\n", ()), witness, time)


def test_merging_joins_signatures_over_one_text(key: SigningKey, witness: SigningKey) -> None:
    base = sign_note("a\n", key)
    merged = merge_signatures([base, cosign_note(base, witness, 7)])
    assert len(verify_note(merged, [key.verifier, witness.verifier])) == 2
    with pytest.raises(EncodingError, match="different texts"):
        merge_signatures([base, sign_note("b\n", key)])
    with pytest.raises(EncodingError):
        merge_signatures([])


SIGNATURE = C2SP_NOTE.split("\n")[2]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("text\n", id="no signatures"),
        pytest.param(f"text\n{SIGNATURE}\n", id="no blank line"),
        pytest.param(f"text\n\n{SIGNATURE}", id="no final newline"),
        pytest.param(f"text\n\n{SIGNATURE}\n\n", id="blank line at the end"),
        pytest.param(f"text\r\n\n{SIGNATURE}\n", id="carriage return"),
        pytest.param(f"te\x00xt\n\n{SIGNATURE}\n", id="control character"),
        pytest.param(f"te\ud800xt\n\n{SIGNATURE}\n", id="surrogate"),
        pytest.param(f"\n\n{SIGNATURE}\n", id="no text"),
        pytest.param("text\n\n- example.com/foo Uw2QOkn8srV1\n", id="hyphen for dash"),
        pytest.param("text\n\n— Uw2QOkn8srV1\n", id="no name"),
        pytest.param("text\n\n—  Uw2QOkn8srV1\n", id="empty name"),
        pytest.param("text\n\n— a\x1bb Uw2QOkn8srV1\n", id="control character in a name"),
        pytest.param("text\n\n— example.com/foo Uw2QOkn8srV1 \n", id="space at the end"),
        pytest.param("text\n\n— example.com/foo Uw2QOkn8srV\n", id="base64 without padding"),
        pytest.param("text\n\n— example.com/foo Uw2QOkn8srW=\n", id="base64 with stray bits"),
        pytest.param("text\n\n— example.com/foo Uw2Q-kn8srV1\n", id="url-safe base64"),
        pytest.param("text\n\n— example.com/foo Uw2QOg==\n", id="key ID only"),
        pytest.param(f"text\n\n{SIGNATURE}\nmore\n", id="trailing line"),
    ],
)
def test_what_is_not_a_signed_note(text: str) -> None:
    with pytest.raises(EncodingError):
        parse_note(text)


def test_bytes_that_are_not_utf8() -> None:
    with pytest.raises(EncodingError, match="UTF-8"):
        parse_note(b"\xff\n\n" + SIGNATURE.encode() + b"\n")


def test_text_may_hold_empty_lines() -> None:
    assert parse_note(f"a\n\nb\n\n{SIGNATURE}\n").text == "a\n\nb\n"


def test_limits() -> None:
    with pytest.raises(SizeError):
        parse_note("x" * (1 << 20))
    lines = [str(NoteSignature(f"k{i}", bytes(4), b"x")) for i in range(MAX_SIGNATURES + 1)]
    assert len(parse_note("a\n\n" + "\n".join(lines[:-1]) + "\n").signatures) == MAX_SIGNATURES
    with pytest.raises(SizeError):
        parse_note("a\n\n" + "\n".join(lines) + "\n")


@pytest.mark.parametrize("text", ["", "a", "\n", "a\tb\n", "\ud800\n"])
def test_what_cannot_be_signed(key: SigningKey, text: str) -> None:
    with pytest.raises(EncodingError):
        sign_note(text, key)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", EncodingError),
        ("name+00000000", EncodingError),
        (C2SP_VKEY.replace("530d903a", "530d903b"), EncodingError),
        (C2SP_VKEY.replace("530d903a", "530D903A"), EncodingError),
        (C2SP_VKEY.replace("example.com/foo", "example.com/bar"), EncodingError),
        (C2SP_VKEY[:-4], EncodingError),
        (C2SP_VKEY.replace("+Aeky", "+Buky"), VersionError),
        (C2SP_VKEY.replace("example.com/foo", ""), EncodingError),
    ],
)
def test_what_is_not_a_verifier_key(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        VerifierKey.parse(text)


def test_key_files(tmp_path: Path) -> None:
    path = tmp_path / "log.key"
    skey = SigningKey.generate("log.example")
    skey.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert SigningKey.load(path).verifier == skey.verifier
    assert SigningKey.generate("log.example").verifier != skey.verifier
    with pytest.raises(StoreError, match="exists"):
        skey.save(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660, 0o644])
def test_a_key_file_that_others_can_access_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "log.key"
    SigningKey.generate("log.example").save(path)
    path.chmod(mode)
    with pytest.raises(SetupError, match="can access a secret file"):
        SigningKey.load(path)


def test_a_credential_of_systemd_has_the_mode_of_an_access_control_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    credentials, other = tmp_path / "credentials", tmp_path / "other"
    key = SigningKey.generate("log.example")
    for folder in (credentials, other):
        folder.mkdir()
        key.save(folder / "provider.skey")
        (folder / "provider.skey").chmod(0o440)
    with pytest.raises(SetupError):
        SigningKey.load(credentials / "provider.skey")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(credentials))
    assert SigningKey.load(credentials / "provider.skey").verifier == key.verifier
    for path, mode in ((other, 0o440), (credentials, 0o444), (credentials, 0o460)):
        (path / "provider.skey").chmod(mode)
        with pytest.raises(SetupError, match="can access a secret file"):
            SigningKey.load(path / "provider.skey")


def test_missing_and_damaged_key_files(tmp_path: Path) -> None:
    path = tmp_path / "log.key"
    with pytest.raises(SetupError):
        SigningKey.load(path)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.write(fd, b"\xffnot a key")
    os.close(fd)
    with pytest.raises(EncodingError):
        SigningKey.load(path)


def test_errors_and_repr_never_show_the_secret() -> None:
    secret = GO_SKEY.split("+")[-1]
    assert secret not in repr(SigningKey.parse(GO_SKEY))
    for damaged in (GO_SKEY + "=", GO_SKEY[:-1] + "*", GO_SKEY.replace("5de0f997", "00000000")):
        with pytest.raises(EncodingError) as caught:
            SigningKey.parse(damaged)
        assert secret[:20] not in caught.value.diagnostics()
