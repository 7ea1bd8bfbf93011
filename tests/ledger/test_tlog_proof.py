"""tlog-proof texts: written, read strictly, and verified against the log's key."""

from __future__ import annotations

import pytest

from rag_audit.errors import EncodingError, InvalidProof, SignatureError, SizeError, VersionError
from rag_audit.log import merkle
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import ALG_COSIGNATURE
from rag_audit.log.note import cosign_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.tlog_proof import TlogProof

LOG = SigningKey("log.example/a", 1, bytes(range(32)))
WITNESS = SigningKey("w.example", ALG_COSIGNATURE, bytes(range(1, 33)))
LEAVES = [merkle.leaf_hash(bytes([i])) for i in range(11)]


def proof(index: int = 6, extra: bytes | None = b"openings") -> TlogProof:
    note = Checkpoint("log.example/a", len(LEAVES), merkle.root_of(LEAVES)).sign(LOG)
    path = merkle.HashTree(LEAVES).inclusion_path(index)
    return TlogProof(index, tuple(path), cosign_note(note, WITNESS, 99), extra)


def test_the_text_is_the_documented_one() -> None:
    lines = str(proof()).split("\n")
    assert lines[0] == "c2sp.org/tlog-proof@v1"
    assert lines[1] == "extra b3BlbmluZ3M="
    assert lines[2] == "index 6"
    assert all(len(line) == 44 for line in lines[3:7])
    assert lines[7:10] == ["", "log.example/a", "11"]


@pytest.mark.parametrize("extra", [None, b"", b"x" * 1000])
@pytest.mark.parametrize("index", [0, 6, 10])
def test_round_trip_and_verification(index: int, extra: bytes | None) -> None:
    read = TlogProof.parse(str(proof(index, extra)))
    assert read == proof(index, extra)
    signed = read.verify(
        LEAVES[index], origin="log.example/a", log_key=LOG.verifier, witnesses=[WITNESS.verifier]
    )
    assert signed.checkpoint.size == 11
    assert signed.quorum_time(1) == 99


def test_a_proof_of_a_single_entry_has_no_path() -> None:
    note = Checkpoint("log.example/a", 1, LEAVES[0]).sign(LOG)
    read = TlogProof.parse(str(TlogProof(0, (), note)))
    assert read.verify(LEAVES[0], origin="log.example/a", log_key=LOG.verifier).checkpoint.root == LEAVES[0]


def test_another_entry_is_not_proved() -> None:
    with pytest.raises(InvalidProof):
        proof(6).verify(LEAVES[7], origin="log.example/a", log_key=LOG.verifier)


def test_another_place_is_not_proved() -> None:
    moved = TlogProof.parse(str(proof(6)).replace("index 6", "index 7"))
    with pytest.raises(InvalidProof):
        moved.verify(LEAVES[6], origin="log.example/a", log_key=LOG.verifier)


def test_an_edited_checkpoint_does_not_verify() -> None:
    edited = TlogProof.parse(str(proof(6)).replace("\n11\n", "\n12\n"))
    with pytest.raises(SignatureError):
        edited.verify(LEAVES[6], origin="log.example/a", log_key=LOG.verifier)


def test_another_logs_proof_is_refused() -> None:
    with pytest.raises(SignatureError):
        proof().verify(LEAVES[6], origin="log.example/b", log_key=LOG.verifier)


TEXT = str(proof())
PATH_LINE = TEXT.split("\n")[3]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param("", VersionError, id="empty"),
        pytest.param(TEXT.replace("@v1", "@v2"), VersionError, id="unknown version"),
        pytest.param(TEXT.split("\n\n")[0], EncodingError, id="truncated"),
        pytest.param(TEXT.replace("index 6", "index 06"), EncodingError, id="leading zero"),
        pytest.param(TEXT.replace("index 6", "index -6"), EncodingError, id="negative"),
        pytest.param(TEXT.replace("index 6\n", ""), EncodingError, id="no index"),
        pytest.param(
            TEXT.replace("extra b3BlbmluZ3M=", "extra b3BlbmluZ3M"), EncodingError, id="extra not base64"
        ),
        pytest.param(
            TEXT.replace("extra b3BlbmluZ3M=\nindex 6", "index 6\nextra b3BlbmluZ3M="),
            EncodingError,
            id="order",
        ),
        pytest.param(TEXT.replace(PATH_LINE, PATH_LINE[:-4]), EncodingError, id="short hash"),
        pytest.param(TEXT.replace("\n\nlog", "\n\n\nlog"), EncodingError, id="two blank lines"),
        pytest.param(TEXT.replace("index 6\n", "index 6\r\n"), EncodingError, id="carriage return"),
        pytest.param(
            TEXT.replace("index 6\n", "index 6\n" + (PATH_LINE + "\n") * 64), SizeError, id="long path"
        ),
        pytest.param(TEXT + "x" * (5 << 20), SizeError, id="too large"),
        pytest.param("\ud800", EncodingError, id="surrogate"),
    ],
)
def test_what_is_not_a_proof(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        TlogProof.parse(text)
