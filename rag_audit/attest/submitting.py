"""A provider's client for a witness's HTTP interface: it requests the witness's notes that a window's public folder
lacks.

One call makes one request for each missing note. The caller decides about further calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rag_audit._internal.canonical import Json, jcs, parse_json, read_bytes, read_text
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import EncodingError, RagAuditError, SetupError, SizeError
from rag_audit._internal.printable import without_userinfo
from rag_audit._internal.proxies import Address, address_of
from rag_audit.log.checkpoint import Checkpoint, open_checkpoint
from rag_audit.log.keys import ALG_ED25519, VerifierKey
from rag_audit.log.merging import merge_signatures
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.note import MAX_NOTE_BYTES, Note, parse_note, verify_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.submission import ADD_CHECKPOINT, SIZE_TYPE, Submission, parse_size, read_cosignature
from rag_audit.log.tree import MerkleTree
from rag_audit.models.beacon import Reveal, members_of
from rag_audit.models.ending import entry_type, read_ending
from rag_audit.models.layout import PublicFolder
from rag_audit.models.publication import Publication
from rag_audit.models.records import BeaconSource, Entry, QueryRecord, WitnessBeacon
from rag_audit.models.windowfile import WindowFile
from rag_audit.models.witnessing import HEADER, NONCE, REVEAL, TRAILER, NonceRequest

MAX_ANSWER_BYTES = MAX_NOTE_BYTES + 4096
MAX_TRIES = 4
"""How often a witness may name another size before it is given up for now."""


class WitnessDown(RagAuditError):
    """A witness does not answer, or reports that it is unavailable."""


class WitnessSaidNo(RagAuditError):
    """A witness refuses a request."""


@dataclass(frozen=True)
class Remote:
    """A witness with an address.

    :param url: the prefix of its addresses, C2SP's submission prefix
    :param plain: whether it supports only C2SP's protocol: it cosigns growth, and reveals no nonces
    :param patience_s: maximum seconds for one answer
    """

    key: VerifierKey
    url: str
    plain: bool = False
    patience_s: float = 20.0

    def __post_init__(self) -> None:
        _ = self.address

    @property
    def address(self) -> Address:
        """The prefix, read.

        :raises SetupError: it is no URL of HTTP, or names a user
        """
        result = address_of(self.url)
        if result is None or "@" in self.url.partition("//")[2].partition("/")[0]:
            raise SetupError("the value is not the URL of a witness", field="url", expected="https://HOST/PREFIX",
                             actual=without_userinfo(self.url))  # fmt: skip
        return result


@dataclass(frozen=True)
class _Reply:
    status: int
    kind: str
    body: bytes


def _ask(remote: Remote, path: str, body: bytes, kind: str = "text/plain") -> _Reply:
    """One request.

    :raises WitnessDown: no answer came in time, or one of a service that is overloaded or broken
    :raises SetupError: the environment names an unusable proxy
    :raises SizeError: the answer is too long
    """
    import httpx  # of the extra `client`

    from rag_audit._internal.http import body_of, error_in_words, single_requests

    address, headers = remote.address.url + path, {"Content-Type": kind}
    try:
        with (
            single_requests(remote.address, remote.patience_s) as client,
            client.stream("POST", address, content=body, headers=headers) as answer,
        ):  # a redirection is an answer like another
            content = body_of(answer, MAX_ANSWER_BYTES, remote.patience_s)
    except SizeError as exc:
        raise SizeError("the witness's answer is too long", field=address, expected=exc.expected) from exc
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise WitnessDown("the witness cannot be reached", field=address, actual=error_in_words(exc)) from exc
    media_type = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    reply = _Reply(answer.status_code, media_type, content)
    if reply.status >= 500 or reply.status in (408, 429):
        raise WitnessDown("the witness cannot answer now", field=address, actual=_words(reply))
    return reply


def _words(reply: _Reply) -> str:
    """A witness's response text, for people; errors escape and shorten it."""
    text = reply.body.decode("utf-8", "replace").strip()
    try:
        value = parse_json(reply.body, source="answer")
        if isinstance(value, dict):
            text = "; ".join(str(value[k]) for k in ("message", "field", "expected", "actual") if k in value)
    except RagAuditError:
        pass
    return f"{reply.status} {text}".strip()


def _taken(remote: Remote, path: str, reply: _Reply) -> bytes:
    if reply.status != 200:
        raise WitnessSaidNo(
            "the witness refuses", field=f"{remote.key.name}, {path.rpartition('/')[2]}", actual=_words(reply)
        )
    return reply.body


def fetch_nonce(remote: Remote, origin: str, window: str, key: SigningKey) -> WitnessBeacon:
    """A witness's nonce line for a window header, as a beacon with only this witness.

    :raises WitnessDown: the witness does not answer
    :raises WitnessSaidNo: the witness refuses
    :raises SchemaError: the response is no nonce line
    """
    note = NonceRequest.parse({"origin": origin, "window": window}, field="nonce request").sign(key)
    body = _taken(remote, NONCE, _ask(remote, NONCE, str(note).encode()))
    place = f"{remote.key.name}, nonce"
    beacon = WitnessBeacon.parse(
        {"source": "witnesses", "witnesses": [parse_json(body, source=place)]}, field=place
    )
    if members_of(beacon, field=place)[0].vkey != remote.key:
        raise WitnessSaidNo("the nonce line belongs to another key", field=place, expected=str(remote.key),
                            actual=beacon.witnesses[0].vkey)  # fmt: skip
    return beacon


_Tree = HashTree | MerkleTree


class FinalLog(Protocol):
    """A ledger in memory. It has at least as many entries as its published part."""

    @property
    def entries(self) -> Sequence[Entry]:
        """All entries in order."""

    @property
    def tree(self) -> MerkleTree:
        """Their tree."""


@dataclass(frozen=True)
class _Log:
    """The published part of a log: its checkpoint's note and size, a tree of that size, the last entry, and the
    first query record with its place, if there is one."""

    checkpoint: str
    size: int
    tree: _Tree
    last: bytes
    query: tuple[int, bytes] | None


class Submitting:
    """The notes of a witness that one window's public folder lacks.

    :param public: the public folder
    :param log_key: the provider's key
    :param known: the keys of all witnesses with counting cosignatures in the folder
    :param ledger: the ledger in memory, if available: the object then does not read the growing number of entries in
        the folder
    """

    def __init__(
        self, public: Path, log_key: VerifierKey, known: Sequence[VerifierKey], ledger: FinalLog | None = None
    ) -> None:
        self._public, self._log_key, self._known = PublicFolder(public), log_key, known
        self._ledger = ledger
        self._read: tuple[object, _Log] | None = None

    def cosign(self, remote: Remote) -> Path | None:
        """Ask for a missing cosignature: on the end if there is one, else on the window header.

        :returns: the note, or None if the cosignature is there
        :raises WitnessDown: the witness does not answer
        :raises WitnessSaidNo: it refuses, or knows another history than the folder has
        :raises SignatureError: its cosignature is missing or wrong
        """
        log = self._log()
        note = parse_note(log.checkpoint if log else self._text(1))
        size = Checkpoint.parse(note.text).size
        path = self._public.note("cosign", size, remote.key.name)
        if path.exists() or any((s.name, s.key_id) == (remote.key.name, remote.key.key_id)
                                for s in note.signatures):  # fmt: skip
            return None
        if log is not None:
            trailer = None if remote.plain or entry_type(log.last) != "trailer" else log.last
            lines = self._follow(remote, note, log.tree, 1, trailer, log.query)
        elif remote.plain:
            lines = self._follow(remote, note, HashTree([leaf_hash(self._header())]), 0)
        else:
            body = jcs({"checkpoint": str(note), "header": Publication.load(self._public.folder).header})
            lines = _taken(remote, HEADER, _ask(remote, HEADER, body, "application/json"))
        signed = read_cosignature(note, lines, remote.key, field=remote.key.name)
        return self._leave(path, signed)

    def reveal(self, remote: Remote, quorum: int) -> Path | None:
        """Ask for this witness's nonce that the window header, or the enrolment at the end, names.

        :param quorum: the number of cosignatures that must be in the folder before the witness is asked
        :returns: the note, or None if the folder already has it, none is due, or cosignatures are missing
        :raises WitnessDown: the witness does not answer
        :raises WitnessSaidNo: the witness refuses
        """
        entry, index, log = self._header(), 0, self._log()
        if log is not None:
            if entry_type(log.last) != "enrolment":
                return None
            entry, index = log.last, log.size - 1
        value = parse_json(entry, source="entry")
        named = WitnessBeacon.parse(value["beacon"], field="beacon") if (
            isinstance(value, dict) and _source(value) == "witnesses"
        ) else None  # fmt: skip
        if named is None or all(m.vkey != remote.key for m in members_of(named)):
            return None
        path = self._public.note("beacon", index + 1, remote.key.name)
        if path.exists():
            return None
        note = self._merged(index + 1)
        origin = Checkpoint.parse(note.text).origin
        signed = open_checkpoint(note, origin=origin, log_key=self._log_key, witnesses=self._known)
        if len({k.public for k in signed.cosignatures}) < quorum:
            return None
        proof: list[Json] = [] if log is None else [h.hex() for h in log.tree.inclusion_path(index, log.size)]
        body = jcs({"checkpoint": str(note), "entry": value, "index": index, "path": proof})
        revealed = parse_note(
            _taken(remote, REVEAL, _ask(remote, REVEAL, body, "application/json")), field=remote.key.name
        )
        verify_note(revealed, [remote.key.with_algorithm(ALG_ED25519)], field=remote.key.name)
        actual = Reveal.parse(revealed.text, field=remote.key.name)
        if (actual.size, actual.root) != (signed.checkpoint.size, signed.checkpoint.root):
            raise WitnessSaidNo(
                "the nonce is revealed over another root",
                field=remote.key.name,
                expected=signed.checkpoint.root.hex(),
                actual=actual.root.hex(),
            )
        return self._leave(path, revealed)

    def _log(self) -> _Log | None:
        """The log that window.json has, if there is one.

        :raises EncodingError: it is not the one of its checkpoint
        """
        path = self._public.window
        if not path.exists():
            return None
        result = path.stat()
        version = (result.st_ino, result.st_mtime_ns, result.st_size)
        if self._read is None or self._read[0] != version:
            self._read = version, self._read_log(path)
        return self._read[1]

    def _read_log(self, path: Path) -> _Log:
        if self._ledger is None:
            end = read_ending(path)
            log = _Log(end.checkpoint, end.size, end.tree, end.last, end.query)
        else:
            file, _ = WindowFile.load_after(path, lambda parts: len(parts.entries.tiles))
            size, entries = file.final_head().size, self._ledger.entries
            last = entries[min(size, len(entries)) - 1]
            query = next(((e.seq, e.canonical()) for e in entries if isinstance(e, QueryRecord)), None)
            log = _Log(file.final_checkpoint, size, self._ledger.tree, last.canonical(), query)
        head = Checkpoint.parse(parse_note(log.checkpoint).text)
        if log.tree.size < head.size or log.tree.root(head.size) != head.root:
            raise EncodingError("the checkpoint does not match the entries", field="window.json", expected=head.size,
                                actual=log.tree.size)  # fmt: skip
        return log

    def _follow(
        self,
        remote: Remote,
        note: Note,
        tree: _Tree,
        old: int,
        trailer: bytes | None = None,
        query: tuple[int, bytes] | None = None,
    ) -> bytes:
        """Submit a checkpoint. The consistency proof begins at the size that the witness reports.

        :param trailer: the window trailer, if the checkpoint ends with it
        :param query: a query record of the log and its place, which a witness asks for with a window trailer
        """
        path = ADD_CHECKPOINT if trailer is None else TRAILER
        size = Checkpoint.parse(note.text).size
        for _ in range(MAX_TRIES):
            proof = tree.consistency_path(old, size) if old else []
            body, kind = str(Submission(old, proof, note)).encode(), "text/plain"
            if trailer is not None:
                last: list[Json] = [h.hex() for h in tree.inclusion_path(size - 1, size)]
                value = parse_json(trailer, source="entry")
                told: dict[str, Json] = {"submission": body.decode(), "trailer": value, "path": last}
                if query is not None:
                    index, record = query
                    shown: list[Json] = [h.hex() for h in tree.inclusion_path(index, size)]
                    told["query"] = {
                        "entry": parse_json(record, source="entry"),
                        "index": index,
                        "path": shown,
                    }
                body = jcs(told)
                kind = "application/json"
            reply = _ask(remote, path, body, kind)
            if reply.status != 409 or reply.kind != SIZE_TYPE:
                return _taken(remote, path, reply)
            known = parse_size(reply.body, field=remote.key.name)
            if known > size or known == old:
                raise WitnessSaidNo(
                    "the witness cosigned another history of this log",
                    field=remote.key.name,
                    expected=f"a tree of at most {size} entries that ours extends",
                    actual=f"size {known}",
                )
            old = known
        raise WitnessDown("the witness's size changes with every request", field=remote.key.name)

    def _header(self) -> bytes:
        return jcs(Publication.load(self._public.folder).header)

    def _text(self, size: int) -> str:
        return read_text(self._public.checkpoint(size), max_bytes=MAX_NOTE_BYTES)

    def _merged(self, size: int) -> Note:
        """A checkpoint with every valid cosignature in the folder."""
        notes = [parse_note(self._text(size))]
        # By name: an open window has notes for each of its enrolments.
        for path in sorted({self._public.note("cosign", size, key.name) for key in self._known}):
            if not path.exists():
                continue
            try:
                other = parse_note(read_bytes(path, max_bytes=MAX_NOTE_BYTES), field=path.name)
                if other.text == notes[0].text:
                    verify_note(other, [self._log_key, *self._known], field=path.name)
                    notes.append(other)
            except RagAuditError:
                continue
        return merge_signatures(notes, [self._log_key, *self._known])

    def _leave(self, path: Path, note: Note) -> Path:
        path.parent.mkdir(exist_ok=True)
        replace_file(path, str(note).encode())
        return path


def _source(value: dict[str, Json]) -> Json:
    beacon = value.get("beacon")
    return beacon.get("source") if isinstance(beacon, dict) else None


def patiently_asked(
    act: Callable[[], Path | None], seconds: float, say: Callable[[str], None]
) -> Path | None:
    """Repeat an act, with growing pauses, until the witness answers or the time is over.

    :raises WitnessDown: the witness did not answer in that time
    """
    end, pause = time.monotonic() + seconds, 1.0
    while True:
        try:
            return act()
        except WitnessDown as exc:
            if time.monotonic() + pause > end:
                raise
            say(f"{exc}; the next request follows in {pause:g} s")
            time.sleep(pause)
            pause = min(2 * pause, 30.0)


def names_nonce(beacon: BeaconSource, key: VerifierKey) -> bool:
    """Whether an entry's beacon has a nonce of this witness."""
    return isinstance(beacon, WitnessBeacon) and any(m.vkey == key for m in members_of(beacon))
