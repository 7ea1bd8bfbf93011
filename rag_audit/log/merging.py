"""One note from several that sign the same text."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rag_audit._internal.errors import EncodingError
from rag_audit.log.keys import VerifierKey
from rag_audit.log.note import MAX_NOTE_BYTES, MAX_SIGNATURES, Note, NoteSignature, earliest


def merge_signatures(
    notes: Iterable[Note],
    keys: Collection[VerifierKey] = (),
    *,
    max_bytes: int = MAX_NOTE_BYTES,
    field: str = "note",
) -> Note:
    """One note with the signatures of all notes: the earliest line of each of `keys`, then each other line once.

    If the note would exceed `MAX_SIGNATURES` lines or `max_bytes` bytes, lines by other keys are omitted, so that added
    signatures cannot displace the signature of a known key.

    :raises EncodingError: no note is given, or the notes have different texts
    :raises SignatureError: a signature by a known key is wrong
    """
    texts: set[str] = set()
    lines: dict[NoteSignature, None] = {}
    for note in notes:
        texts.add(note.text)
        lines |= dict.fromkeys(note.signatures)
    if len(texts) != 1:
        raise EncodingError("the signatures are over different texts", field=field, expected="one text")
    text = texts.pop()
    counted = earliest(Note(text, tuple(lines)), keys, field)
    kept = [line for line, _ in counted.values()]
    known = {(k.name, k.key_id) for k in keys}
    others = [line for line in lines if (line.name, line.key_id) not in known]
    room = max_bytes - len(str(Note(text, tuple(kept))).encode())
    for line in others:
        room -= len(f"{line}\n".encode())
        if len(kept) == MAX_SIGNATURES or room < 0:
            break
        kept.append(line)
    return Note(text, tuple(kept))
