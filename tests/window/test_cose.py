"""COSE Receipts as bytes: the encoding, what the one signature is over, and which windows get none.

`tests/interop/test_cose.py` reads the same files with a COSE library.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit._internal.canonical import jcs
from rag_audit.cli.export import export
from rag_audit.errors import (
    EncodingError,
    RagAuditError,
    SchemaError,
    SignatureError,
    StoreError,
    WindowStateError,
)
from rag_audit.log.keys import ALG_COSIGNATURE
from rag_audit.log.note import Note, cosign_note, parse_note, sign_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.final_log import FinalLog
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.export import CoseReceipts, cbor, write_cose

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "window.json"
NAME = "example.org/rag"


def window_of(key: SigningKey, *, cosigned: bool = True) -> WindowFile:
    """The documentation's window under a checkpoint that a key at hand signed, and a witness."""
    file = WindowFile.load(EXAMPLE)
    note = sign_note(parse_note(file.final_checkpoint).text, key)
    if cosigned:
        note = cosign_note(note, SigningKey("w.example", ALG_COSIGNATURE, b"w" * 32), 1_800_000_000)
    return file.model_copy(update={"final_checkpoint": str(note)})


@pytest.fixture(scope="module")
def key() -> SigningKey:
    return SigningKey(NAME, 1, b"k" * 32)


def test_the_encoding_is_the_deterministic_one() -> None:
    """Known answers from RFC 8949, appendix A, and its order of a map's keys (4.2.1)."""
    for value, told in (
        (0, "00"), (23, "17"), (24, "1818"), (1000, "1903e8"), (1_000_000, "1a000f4240"), (2**64 - 1, "1b" + "ff" * 8),
        (-1, "20"), (-100, "3863"), (-1000, "3903e7"), (None, "f6"), (b"", "40"), (b"\1\2\3\4", "4401020304"),
        ("", "60"), ("IETF", "6449455446"), ("水", "63e6b0b4"), ([1, [2, 3], [4, 5]], "8301820203820405"),
        ({1: 2, 3: 4}, "a201020304"), ({"a": 3, -1: 2, 100: 1, 10: 0}, "a40a00186401200261" + "6103"),
    ):  # fmt: skip
        assert cbor(value).hex() == told
    with pytest.raises(EncodingError, match="not a CBOR number"):
        cbor(2**64)


def test_what_is_written_and_what_is_signed(key: SigningKey, tmp_path: Path) -> None:
    file = window_of(key)
    size = len(file.entries)
    assert write_cose(file, tmp_path, key) == list(range(size))
    assert {p.name for p in tmp_path.iterdir()} == {
        f"{i}.{kind}" for i in range(size) for kind in ("entry", "cose")
    }
    log = FinalLog.of(file)
    protected = cbor({1: -19, 4: key.verifier.key_id, 15: {1: NAME, 2: log.closed.header.log}, 395: 1,
                      "rag-audit/checkpoint": file.final_checkpoint})  # fmt: skip
    signed = cbor(["Signature1", protected, b"", log.tree.root()])
    assert signed[0] == 0x84  # which starts no UTF-8: nothing else that the key signs begins so
    for index, entry in enumerate(file.entries):
        assert (tmp_path / f"{index}.entry").read_bytes() == jcs(entry)
        receipt = (tmp_path / f"{index}.cose").read_bytes()
        head = b"\xd2\x84" + cbor(protected)
        proof = cbor([size, index, log.tree.inclusion_path(index)])
        assert receipt[:-66] == head + cbor({396: {-1: [proof]}}) + b"\xf6"
        assert receipt[-66:-64] == b"\x58\x40" and key.verifier.verifies(receipt[-64:], signed)


def test_single_entries(key: SigningKey, tmp_path: Path) -> None:
    file = window_of(key)
    assert write_cose(file, tmp_path, key, only=[3, 1, 3]) == [1, 3]
    assert {p.name for p in tmp_path.iterdir()} == {"1.entry", "1.cose", "3.entry", "3.cose"}


def without_cosignature(key: SigningKey) -> WindowFile:
    return window_of(key, cosigned=False)


def without_its_end(key: SigningKey) -> WindowFile:
    file = window_of(key)
    return file.model_copy(update={"entries": file.entries[:-1]})


def with_another_record(key: SigningKey) -> WindowFile:
    file = window_of(key)
    entries: list[Any] = list(file.entries)
    entries[2] = {**entries[2], "ts": entries[2]["ts"] + 1}
    return file.model_copy(update={"entries": entries})


def signed_by_another(_key: SigningKey) -> WindowFile:
    return window_of(SigningKey(NAME, 1, b"o" * 32))


@pytest.mark.parametrize(
    ("result", "error", "said"),
    [
        (without_cosignature, WindowStateError, "no witness has cosigned"),
        (without_its_end, SchemaError, "not closed"),
        (with_another_record, SchemaError, "the window's entries do not match its final checkpoint"),
        (signed_by_another, SignatureError, "no known key signed the note"),
    ],
)
def test_no_receipt_of_what_is_no_final_log(
    result: Callable[[SigningKey], WindowFile],
    error: type[RagAuditError],
    said: str,
    key: SigningKey,
    tmp_path: Path,
) -> None:
    with pytest.raises(error, match=said):
        write_cose(result(key), tmp_path / "out", key)
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_written(key: SigningKey, tmp_path: Path) -> None:
    file = window_of(key)
    with pytest.raises(EncodingError, match="outside the tree"):
        write_cose(file, tmp_path / "out", key, only=[len(file.entries)])
    assert not (tmp_path / "out").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made"):
        write_cose(file, tmp_path / "file", key)
    with pytest.raises(EncodingError, match="another signature type"):
        CoseReceipts(FinalLog.of(file), key.with_algorithm(ALG_COSIGNATURE))


def test_the_checkpoint_inside_is_the_published_note(key: SigningKey) -> None:
    file = window_of(key)
    note: Note = parse_note(file.final_checkpoint)
    assert len(note.signatures) == 2
    assert file.final_checkpoint.encode() in CoseReceipts(FinalLog.of(file), key).receipt(0)


def test_the_command(key: SigningKey, tmp_path: Path) -> None:
    window, secret, out = tmp_path / "window.json", tmp_path / "key", tmp_path / "out"
    save_window(window_of(key), window)
    key.save(secret)

    def run(*options: object) -> tuple[int, str]:
        done = CliRunner().invoke(export, [str(window), *map(str, options)])
        return done.exit_code, done.output

    assert run("--cose", out, "--key", secret, "--entry", 3)[0] == 0
    assert {p.name for p in out.iterdir()} == {"3.entry", "3.cose"}
    for options, said in (
        ([], "give --tiles, --snarkjs or --cose"),
        (["--cose", out], "--cose needs --key"),
        (["--tiles", out, "--key", secret], "--cose needs --key"),
        (["--tiles", out, "--entry", 3], "--entry needs --cose"),
    ):
        code, output = run(*options)
        assert code == 2 and said in output
    # Bad input is an error with a name; the group of commands prints it.
    other = tmp_path / "other"
    SigningKey(NAME, 1, b"o" * 32).save(other)
    done = CliRunner().invoke(export, [str(window), "--cose", str(tmp_path / "none"), "--key", str(other)])
    assert isinstance(done.exception, SignatureError)
