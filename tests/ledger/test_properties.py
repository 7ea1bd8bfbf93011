"""What holds for any note, proof, tile and JSON text, and not only for those that a test thought of."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from rag_audit._internal.canonical import MAX_SAFE_INTEGER, jcs, parse_json
from rag_audit.errors import EncodingError, InvalidProof, RagAuditError, SignatureError
from rag_audit.log import tiles
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import ALG_COSIGNATURE, VerifierKey
from rag_audit.log.merging import merge_signatures
from rag_audit.log.merkle import HashTree, leaf_hash, root_of
from rag_audit.log.note import Note, cosign_note, parse_note, sign_note, verify_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.tlog_proof import TlogProof

LOG = SigningKey("log.example/a", 1, bytes(range(32)))
WITNESSES = [SigningKey(f"w{n}", ALG_COSIGNATURE, bytes([n]) * 32) for n in range(3)]
KEYS = [LOG.verifier, *(w.verifier for w in WITNESSES)]
visible = st.characters(exclude_categories=("Cs", "Cc"))
"""What a note's text may have besides line breaks."""
noted = st.lists(st.text(visible, max_size=20), min_size=1, max_size=5).map(
    lambda lines: "\n".join([*lines, "x\n"])
)
signed = st.builds(
    lambda text, times: _cosigned(sign_note(text, LOG), times),
    noted,
    st.lists(st.integers(0, 2**40), max_size=3),
)
odd = st.text(st.sampled_from(" \n\r\t—+=/.0aAé\u2028") | visible, max_size=60)
"""Texts of the characters that formats give a meaning."""
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.text(visible, max_size=8)
)
values = st.recursive(
    scalars, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(visible, max_size=5), v, max_size=4)
)


def _cosigned(note: Note, times: list[int]) -> Note:
    for witness, time in zip(WITNESSES, times, strict=False):
        note = cosign_note(note, witness, time)
    return note


def assert_no_other_form(parse: Callable[[str], object], text: str) -> None:
    """Whatever is read from a text is written as that text."""
    try:
        value = parse(text)
    except RagAuditError:
        return
    assert str(value) == text


@st.composite
def spoiled(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """A text with a piece of it replaced."""
    text = draw(texts)
    at = draw(st.integers(0, len(text)))
    end = min(len(text), at + draw(st.integers(0, 3)))
    return text[:at] + draw(odd | st.sampled_from(["", "\n", "\n\n", " ", "="])) + text[end:]


@given(signed)
def test_a_note_is_read_as_it_was_written(note: Note) -> None:
    assert parse_note(str(note)) == note
    assert {v.key for v in verify_note(note, KEYS)} == {
        k for k in KEYS if k.name in {s.name for s in note.signatures}
    }


@given(spoiled(signed.map(str)) | odd)
def test_what_is_read_as_a_note_has_no_other_form(text: str) -> None:
    try:
        note = parse_note(text)
    except RagAuditError:
        return
    assert str(note) == text


@given(signed, st.data())
def test_a_note_whose_text_was_changed_has_no_signature(note: Note, data: st.DataObject) -> None:
    text = data.draw(noted.filter(lambda other: other != note.text))
    try:
        verify_note(Note(text, note.signatures), KEYS)
    except SignatureError:
        return
    raise AssertionError("another text has the signatures")


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=6), st.randoms())
def test_signatures_merge_in_any_order(cosigned: list[tuple[int, int]], order: Any) -> None:
    plain = sign_note("a\n1\n", LOG)
    notes = [cosign_note(plain, WITNESSES[number], time) for number, time in cosigned]
    once = merge_signatures(notes, KEYS)
    order.shuffle(notes)
    again = merge_signatures([*notes, once], KEYS)
    times = {v.key.name: v.timestamp for v in verify_note(once, KEYS)}
    assert times == {v.key.name: v.timestamp for v in verify_note(again, KEYS)}
    assert times == {
        "log.example/a": None,
        **{f"w{n}": min(time for number, time in cosigned if number == n) for n in {n for n, _ in cosigned}},
    }


@st.composite
def proofs(draw: st.DrawFn) -> tuple[TlogProof, bytes]:
    """A proof with its leaf."""
    leaves = [leaf_hash(bytes([n])) for n in range(draw(st.integers(1, 40)))]
    tree, index = HashTree(leaves), draw(st.integers(0, len(leaves) - 1))
    note = Checkpoint(LOG.name, tree.size, tree.root()).sign(LOG)
    extra = draw(st.none() | st.binary(min_size=1, max_size=20))
    return TlogProof(index, tuple(tree.inclusion_path(index, tree.size)), note, extra), leaves[index]


@given(proofs())
def test_a_proof_is_read_as_it_was_written(made: tuple[TlogProof, bytes]) -> None:
    proof, leaf = made
    again = TlogProof.parse(str(proof))
    assert again == proof
    assert again.verify(leaf, origin=LOG.name, log_key=LOG.verifier).checkpoint.size > proof.index


@given(spoiled(proofs().map(lambda made: str(made[0]))))
def test_what_is_read_as_a_proof_has_no_other_form(text: str) -> None:
    assert_no_other_form(TlogProof.parse, text)


@given(proofs(), st.integers(0, 39), st.data())
def test_a_proof_of_another_place_does_not_verify(
    made: tuple[TlogProof, bytes], index: int, data: st.DataObject
) -> None:
    proof, leaf = made
    path = list(proof.path)
    if path and data.draw(st.booleans()):
        at = data.draw(st.integers(0, len(path) - 1))
        path[at] = bytes([path[at][0] ^ 1]) + path[at][1:]
    elif index == proof.index:
        return
    else:
        proof = TlogProof(index, proof.path, proof.checkpoint)
    try:
        TlogProof(proof.index, tuple(path), proof.checkpoint).verify(
            leaf, origin=LOG.name, log_key=LOG.verifier
        )
    except InvalidProof:
        return
    raise AssertionError("it verifies")


@given(spoiled(st.sampled_from([str(k) for k in KEYS])) | odd)
def test_what_is_read_as_a_key_has_no_other_form(text: str) -> None:
    assert_no_other_form(VerifierKey.parse, text)


@given(values)
def test_canonical_json_is_read_back(value: Any) -> None:
    data = jcs(value)
    assert parse_json(data, source="x") == value
    assert jcs(parse_json(data, source="x")) == data


@given(
    st.binary(max_size=40)
    | spoiled(values.map(lambda v: jcs(v).decode())).map(lambda t: t.encode("utf-8", "surrogatepass"))
)
def test_json_is_refused_by_name_or_has_one_canonical_form(data: bytes) -> None:
    try:
        value = parse_json(data, source="x")
    except EncodingError:
        return
    canonical = jcs(value)
    assert parse_json(canonical, source="x") == value


@settings(max_examples=25)
@given(st.integers(0, 600), st.data())
def test_tiles_are_read_as_they_were_written_and_no_changed_file_is_taken(
    size: int, data: st.DataObject
) -> None:
    entries = [b"%d" % n * (n % 3) for n in range(size)]
    note = Checkpoint(LOG.name, size, root_of(leaf_hash(e) for e in entries)).sign(LOG)
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        tiles.export_tiles(directory, entries, note)
        assert tiles.read_tiles(directory) == (note, entries)
        written = sorted(p for p in directory.rglob("*") if p.is_file() and p.name != "checkpoint")
        if not written:
            return
        path = data.draw(st.sampled_from(written))
        old = bytearray(path.read_bytes())
        way = data.draw(st.sampled_from(["flip", "cut", "more", "gone"]))
        if way == "gone":
            path.unlink()
        else:
            at = data.draw(st.integers(0, len(old) - 1))
            new = (
                bytes(old[:at]) + bytes([old[at] ^ 1]) + bytes(old[at + 1 :])
                if way == "flip"
                else bytes(old[:at])
            )
            path.write_bytes(new if way != "more" else bytes(old) + b"\x00")
        try:
            tiles.read_tiles(directory)
        except RagAuditError:
            return
        raise AssertionError(f"{path.name} was changed ({way}) and read")
