"""Checkpoints: C2SP's example, strict reading, quorum counting."""

from __future__ import annotations

import pytest

from rag_audit.errors import EncodingError, SignatureError
from rag_audit.log.checkpoint import Checkpoint, open_checkpoint
from rag_audit.log.keys import ALG_COSIGNATURE
from rag_audit.log.note import cosign_note, parse_note
from rag_audit.log.signing import SigningKey

LOG = SigningKey("log.example/a", 1, bytes(range(32)))
WITNESSES = [SigningKey(f"w{i}.example", ALG_COSIGNATURE, bytes([i]) * 32) for i in range(3)]
ROOT = bytes(range(32))

# c2sp.org/tlog-cosignature's example, of which only the form is checked (its keys are not published there).
EXAMPLE = """example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

— example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
— witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
"""


def test_the_c2sp_example_reads_and_writes_back() -> None:
    note = parse_note(EXAMPLE)
    checkpoint = Checkpoint.parse(note.text)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert checkpoint.text == note.text
    assert str(note) == EXAMPLE
    assert int.from_bytes(note.signatures[1].payload[:8], "big") == 1679315147


def test_extension_lines_are_kept() -> None:
    text = Checkpoint("a", 0, ROOT, ("window w1",)).text
    assert Checkpoint.parse(text).extensions == ("window w1",)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("log\n1\n", id="no root"),
        pytest.param("log\n01\n" + Checkpoint("a", 0, ROOT).text.split("\n")[2] + "\n", id="leading zero"),
        pytest.param("log\n+1\n" + Checkpoint("a", 0, ROOT).text.split("\n")[2] + "\n", id="sign"),
        pytest.param(
            "log\n9223372036854775808\n" + Checkpoint("a", 0, ROOT).text.split("\n")[2] + "\n", id="2^63"
        ),
        pytest.param("log\n1\nAAAA\n", id="short root"),
        pytest.param("log\n1\n!!!!\n", id="root not base64"),
        pytest.param("\n1\n" + Checkpoint("a", 0, ROOT).text.split("\n")[2] + "\n", id="no origin"),
        pytest.param(Checkpoint("a", 0, ROOT).text + "\n", id="empty extension line"),
        pytest.param(Checkpoint("a", 0, ROOT).text[:-1], id="no final newline"),
    ],
)
def test_what_is_not_a_checkpoint(text: str) -> None:
    with pytest.raises(EncodingError):
        Checkpoint.parse(text)


def cosigned(*times: int, names: list[SigningKey] | None = None) -> str:
    note = Checkpoint("log.example/a", 3, ROOT).sign(LOG)
    for witness, time in zip(names or WITNESSES, times, strict=False):
        note = cosign_note(note, witness, time)
    return str(note)


KEYS = [w.verifier for w in WITNESSES]


def test_a_quorum_is_complete_when_its_last_member_signed() -> None:
    signed = open_checkpoint(
        cosigned(30, 10, 20), origin="log.example/a", log_key=LOG.verifier, witnesses=KEYS
    )
    assert [signed.quorum_time(q) for q in (1, 2, 3)] == [10, 20, 30]
    assert signed.checkpoint.root == ROOT


def test_too_few_witnesses_are_no_quorum() -> None:
    signed = open_checkpoint(cosigned(10), origin="log.example/a", log_key=LOG.verifier, witnesses=KEYS)
    assert signed.quorum_time(1) == 10
    with pytest.raises(SignatureError, match="too few"):
        signed.quorum_time(2)
    with pytest.raises(EncodingError):
        signed.quorum_time(0)


def test_one_key_under_two_names_counts_once() -> None:
    twin = SigningKey("twin.example", ALG_COSIGNATURE, bytes([0]) * 32)
    text = cosigned(10, 20, names=[WITNESSES[0], twin])
    signed = open_checkpoint(
        text, origin="log.example/a", log_key=LOG.verifier, witnesses=[KEYS[0], twin.verifier]
    )
    assert len(signed.cosignatures) == 2
    with pytest.raises(SignatureError, match="too few"):
        signed.quorum_time(2)


def test_a_witness_that_cosigned_again_counts_once_at_its_earlier_time() -> None:
    text = cosigned(30, 10)
    again = cosign_note(Checkpoint("log.example/a", 3, ROOT).sign(LOG), WITNESSES[0], 20).signatures[-1]
    text += f"{again}\n{again}\n"
    signed = open_checkpoint(text, origin="log.example/a", log_key=LOG.verifier, witnesses=KEYS)
    assert [signed.quorum_time(q) for q in (1, 2)] == [10, 20]
    with pytest.raises(SignatureError, match="too few"):
        signed.quorum_time(3)


def test_cosignatures_of_unknown_witnesses_do_not_count() -> None:
    signed = open_checkpoint(
        cosigned(1, 2, 3), origin="log.example/a", log_key=LOG.verifier, witnesses=KEYS[:1]
    )
    assert list(signed.cosignatures) == KEYS[:1]


def test_witnesses_alone_are_not_the_log() -> None:
    note = parse_note(cosigned(1, 2, 3))
    stripped = type(note)(note.text, note.signatures[1:])
    with pytest.raises(SignatureError, match="not signed by the log"):
        open_checkpoint(stripped, origin="log.example/a", log_key=LOG.verifier, witnesses=KEYS)


def test_another_origin_is_refused() -> None:
    with pytest.raises(SignatureError, match="another log"):
        open_checkpoint(cosigned(), origin="log.example/b", log_key=LOG.verifier)


def test_keys_of_the_wrong_type_are_refused() -> None:
    with pytest.raises(EncodingError, match="type"):
        open_checkpoint(cosigned(), origin="log.example/a", log_key=KEYS[0])
    with pytest.raises(EncodingError, match="type"):
        open_checkpoint(cosigned(), origin="log.example/a", log_key=LOG.verifier, witnesses=[LOG.verifier])
