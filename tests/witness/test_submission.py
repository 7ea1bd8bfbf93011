"""The text of C2SP's add-checkpoint, read strictly."""

from __future__ import annotations

import base64

import pytest

from rag_audit.errors import EncodingError, SignatureError, SizeError
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import ALG_COSIGNATURE
from rag_audit.log.note import cosign_note, verify_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.submission import (
    MAX_SUBMISSION_BYTES,
    Submission,
    cosignature_lines,
    parse_size,
    read_cosignature,
)

KEY = SigningKey("log.example", 1, bytes(range(32)))
WITNESS = SigningKey("w.example", ALG_COSIGNATURE, bytes(range(1, 33)))
NOTE = Checkpoint("log.example/w1", 3, bytes(32)).sign(KEY)
LINE = base64.b64encode(bytes(32)).decode()


def test_a_submission_is_written_as_the_specification_shows_it() -> None:
    told = Submission(2, (bytes(32), bytes(32)), NOTE)
    assert str(told).startswith(f"old 2\n{LINE}\n{LINE}\n\nlog.example/w1\n3\n")
    assert Submission.parse(str(told)) == told
    assert Submission.parse(str(Submission(0, (), NOTE))) == Submission(0, (), NOTE)


@pytest.mark.parametrize(
    ("head", "error"),
    [
        ("old 02\n\n", EncodingError),
        ("old -1\n\n", EncodingError),
        ("old 2 \n\n", EncodingError),
        ("new 2\n\n", EncodingError),
        (f"old {10**19}\n\n", EncodingError),
        (f"old {2**63}\n\n", EncodingError),
        ("old 2\nnot base64\n\n", EncodingError),
        ("old 2\nAAAA\n\n", EncodingError),
        ("old 2\n", EncodingError),
        ("old 2\n" + f"{LINE}\n" * 64 + "\n", SizeError),
        ("old 2\n" + "A" * MAX_SUBMISSION_BYTES, SizeError),
    ],
)
def test_a_body_that_is_no_submission_is_refused(head: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        Submission.parse(head + str(NOTE))


def test_a_cosignature_is_taken_from_the_answer() -> None:
    lines = cosignature_lines(cosign_note(NOTE, WITNESS, 7), WITNESS.verifier)
    assert lines.startswith("— w.example ") and lines.count("\n") == 1
    stranger = cosignature_lines(cosign_note(NOTE, OTHER, 7), OTHER.verifier)
    note = read_cosignature(NOTE, (stranger + lines).encode(), WITNESS.verifier, field="w")
    assert {s.name for s in note.signatures} == {"log.example", "w.example"}
    assert verify_note(note, [WITNESS.verifier])[0].timestamp == 7


OTHER = SigningKey("x.example", ALG_COSIGNATURE, bytes(range(2, 34)))


def test_an_answer_without_this_witness_s_cosignature_is_refused() -> None:
    over_another = Checkpoint("log.example/w1", 4, bytes(32)).sign(KEY)
    wrong = cosignature_lines(cosign_note(over_another, WITNESS, 7), WITNESS.verifier)
    with pytest.raises(SignatureError, match="does not verify"):
        read_cosignature(NOTE, wrong.encode(), WITNESS.verifier, field="w")
    stranger = cosignature_lines(cosign_note(NOTE, OTHER, 7), OTHER.verifier)
    with pytest.raises(SignatureError, match="without its cosignature"):
        read_cosignature(NOTE, stranger.encode(), WITNESS.verifier, field="w")
    for junk in (b"", b"<html>", b"\xff\n"):
        with pytest.raises(EncodingError):
            read_cosignature(NOTE, junk, WITNESS.verifier, field="w")


def test_a_size_is_a_canonical_number() -> None:
    assert parse_size(b"20852014\n", field="w") == 20852014
    for wrong in (b"", b"1", b"01\n", b"1\n\n", b"-1\n", b"9" * 30 + b"\n"):
        with pytest.raises(EncodingError):
            parse_size(wrong, field="w")
