"""A witness, which cosigns a provider's checkpoints, so that "published before the window opened" can be proved.

Its directory contains the key and one state file, both secret: the last checkpoint that it cosigned of every log (one
for each window), the last window of every provider, and the nonces that it committed to. The state is durable before a
signature leaves, so a witness that crashes and restarts never cosigns a fork and never reveals one nonce twice. The
rules are in docs/protocol.md, "Phases".
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rag_audit._internal.canonical import parse_json, sha256
from rag_audit._internal.clock import now_ms
from rag_audit._internal.durable import PRIVATE_MODE, create_private, read_private, replace_file
from rag_audit._internal.errors import SetupError, SizeError, StoreError
from rag_audit._internal.lock import locked
from rag_audit.log.checkpoint import CLOCK_LEEWAY_SECONDS, Checkpoint, open_checkpoint
from rag_audit.log.keys import ALG_COSIGNATURE, ALG_ED25519, VerifierKey
from rag_audit.log.merkle import HashTree, leaf_hash, verify_consistency, verify_inclusion
from rag_audit.log.note import Note, cosign_note, parse_note, sign_note
from rag_audit.log.signing import SigningKey
from rag_audit.models.beacon import NONCE_SIZE, Reveal, members_of, nonce_commitment
from rag_audit.models.records import Enrolment, WindowHeader, WitnessBeacon, log_origin
from rag_audit.witness.rules import (
    Log,
    Nonce,
    ShownQuery,
    State,
    WitnessRefused,
    bind,
    check_chain,
    check_link,
    check_nonce,
    check_trailer,
    outcome_of_log,
    outcome_of_trailer,
    parse_canonical,
    require,
    without_oldest,
)

__all__ = ["ShownQuery", "Witness", "WitnessRefused"]

KEY_FILE = "key"
STATE_FILE = "state.json"
MAX_STATE_BYTES = 64 * 1024 * 1024
MAX_OPEN_NONCES = 4096


class Witness:
    """A witness in its directory.

    :param directory: the directory, made by `init`
    :param clock: a function that gives the time in milliseconds since the epoch
    :raises SetupError: the directory is missing, or accessible to others
    """

    def __init__(self, directory: Path, *, clock: Callable[[], int] = now_ms) -> None:
        self._directory = directory
        self._clock = clock
        if not (directory / KEY_FILE).exists():
            raise SetupError("the folder holds no witness", field=str(directory), expected=f"{KEY_FILE} in it",
                             hint="name the witness's folder; `rag-audit witness init FOLDER --name NAME` makes"
                                  " one")  # fmt: skip
        self._key = SigningKey.load(directory / KEY_FILE)
        self._read()

    @classmethod
    def init(cls, directory: Path, name: str, *, clock: Callable[[], int] = now_ms) -> Witness:
        """Make a new witness with a fresh key of that name and an empty state.

        :raises StoreError: the directory already contains a witness, or cannot be written
        """
        key = SigningKey.generate(name, ALG_COSIGNATURE)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as exc:
            raise StoreError("cannot be made", field=str(directory), actual=exc.strerror or str(exc)) from exc
        key.save(directory / KEY_FILE)
        create_private(directory / STATE_FILE, State().canonical())
        return cls(directory, clock=clock)

    @property
    def vkey(self) -> VerifierKey:
        """The cosignature key (type 0x04); beacon notes are signed with the same key as type 0x01."""
        return self._key.verifier

    def nonce_commitment(self) -> bytes:
        """Draw a nonce for one opening or enrolment, and return the commitment to it (32 bytes).

        :raises WitnessRefused: too many nonces wait to be revealed
        """
        with self._locked() as state:
            if sum(n.revealed is None for n in state.nonces.values()) >= MAX_OPEN_NONCES:
                raise WitnessRefused(
                    "too many nonces are not revealed yet", expected=f"at most {MAX_OPEN_NONCES}"
                )
            nonce = secrets.token_bytes(NONCE_SIZE)
            commitment = nonce_commitment(nonce)
            entry = Nonce(nonce=nonce.hex(), revealed=None)
            self._write(state.model_copy(update={"nonces": {**state.nonces, commitment.hex(): entry}}))
        return commitment

    def cosign_header(self, note: Note | str | bytes, entry: bytes, *, log_key: VerifierKey) -> Note:
        """Cosign the size-1 checkpoint of a new window.

        :param entry: the window header, ledger entry 0, as its canonical bytes
        :param log_key: the provider's key, from this witness's own configuration
        :returns: the note with this witness's cosignature added
        :raises WitnessRefused: the root does not belong to this window header; another header of this window was
            cosigned; the window opens in the past; `previous` is not the origin's last window with its closed, cosigned
            end, or counts other windows as abandoned than this witness does; the windows overlap; the nonce that the
            header names is not a fresh one of this witness
        :raises SignatureError: the provider did not sign the checkpoint
        """
        header = parse_canonical(entry)
        if not isinstance(header, WindowHeader):
            raise WitnessRefused("the entry is not a window header", field="entry 0", actual=header.type)
        signed = open_checkpoint(note, origin=header.log, log_key=log_key)
        head = signed.checkpoint
        require(
            (head.size, head.root) == (1, leaf_hash(entry)),
            "the checkpoint does not cover the window header",
            "checkpoint",
        )
        digest = sha256(entry).hex()
        with self._locked() as state:
            now = self._clock()
            require(header.opens_at < header.closes_at, "the window ends before it opens", "header.closes_at")
            require(
                now < header.opens_at,
                "the window opens in the past",
                "header.opens_at",
                f"> {now}",
                header.opens_at,
            )
            log = state.logs.get(header.log)
            if log is None:
                last = state.chains.get(header.origin)
                check_chain(header, None if last is None else state.logs[last])
                check_nonce(header, state, self.vkey)
            else:
                # A log that started once never restarts, whatever the outcome of its window.
                require(
                    log.header == digest,
                    "this witness cosigned another header of this window",
                    "header.window",
                    log.header,
                    digest,
                )
                require(
                    log.size == 1, "the window has further entries", "checkpoint", f"size >= {log.size}", 1
                )
            update = Log.opened(header, digest, head)
            chains = {**state.chains, header.origin: header.log}
            state = state.model_copy(update={"chains": chains})
            return self._sign(state, header.log, update, signed.note, now)

    def cosign(
        self,
        note: Note | str | bytes,
        *,
        log_key: VerifierKey,
        consistency: Sequence[bytes],
        trailer: tuple[bytes, Sequence[bytes]] | None = None,
        entries: Sequence[bytes] | None = None,
        query: ShownQuery | None = None,
    ) -> Note:
        """Cosign a later checkpoint of a window. This witness must have cosigned the window's header.

        :param consistency: RFC 9162 path from the size of `last(log)` to the size of this checkpoint
        :param trailer: for the final checkpoint, the window trailer's bytes and its inclusion path as last entry; after
            it this window takes no further checkpoint, and the next window may open
        :param entries: with `trailer`, all entries as canonical bytes. The witness then decides from them whether the
            window is complete, even if it decided earlier without them
        :param query: with `trailer` and without `entries`, one query record, if the window trailer counts any
        :returns: the note with this witness's cosignature added
        :raises WitnessRefused: the log is unknown, the checkpoint does not extend the last cosigned one, the window is
            closed, or the window trailer counts queries and none is shown
        :raises SignatureError: the provider did not sign the checkpoint
        """
        parsed = note if isinstance(note, Note) else parse_note(note)
        name = Checkpoint.parse(parsed.text).origin
        head = open_checkpoint(parsed, origin=name, log_key=log_key).checkpoint
        with self._locked() as state:
            log = state.logs.get(name)
            if log is None:
                raise WitnessRefused(
                    "this witness has not cosigned a header of this window", field="checkpoint", actual=name
                )
            same = (head.size, head.root.hex()) == (log.size, log.root)
            require(
                same or not log.closed, "the window is closed", "checkpoint", f"size {log.size}", head.size
            )
            require(
                verify_consistency(log.size, head.size, consistency, bytes.fromhex(log.root), head.root),
                "the checkpoint does not extend the last cosigned checkpoint",
                "checkpoint",
                f"consistency with size {log.size}, root {log.root}",
                f"size {head.size}, root {head.root.hex()}",
            )
            log = log.model_copy(update={"size": head.size, "root": head.root.hex()})
            if trailer is not None:
                record = check_trailer(*trailer, head, log.window, self._clock())
                # The outcome of a closed window does not change, with one exception: entries are stronger evidence than
                # the window trailer. An outcome derived from the trailer must therefore not replace an outcome derived
                # from the entries.
                if entries is not None or not log.closed:
                    if entries is None:
                        outcome = outcome_of_trailer(record, head, log.tenants, query)
                    else:
                        outcome = outcome_of_log(entries, head)
                    log = log.ended(outcome, record)
            return self._sign(state, name, log, parsed, self._clock())

    def follow(
        self,
        note: Note | str | bytes,
        entries: Sequence[bytes],
        *,
        log_key: VerifierKey,
        witnesses: Collection[VerifierKey],
        quorum: int,
        consistency: Sequence[bytes] = (),
    ) -> None:
        """Accept a closed window on a quorum of the other witnesses, if this witness did not follow the window to its
        end.

        A witness that joins late, or was absent, continues from this window; it accepts successive windows in their
        order. It signs no checkpoint of them. Its later cosignatures on the chain depend, up to this window, on that
        quorum.

        :param note: the window's final checkpoint, cosigned by a quorum of `witnesses`
        :param entries: all entries of the window's log as canonical bytes
        :param consistency: RFC 9162 path from the size of `last(log)`, if this witness cosigned the window header
        :raises WitnessRefused: the window header or the tree differs from the one that this witness cosigned, or the
            window does not follow the last window of this origin that the witness knows
        :raises SignatureError: the provider's signature or the quorum is missing
        """
        record = parse_canonical(entries[0]) if entries else None
        if not isinstance(record, WindowHeader):
            actual = "no entry" if record is None else record.type
            raise WitnessRefused("the entry is not a window header", field="entry 0", actual=actual)
        signed = open_checkpoint(note, origin=record.log, log_key=log_key, witnesses=witnesses)
        signed.quorum_time(quorum)
        head, digest = signed.checkpoint, sha256(entries[0]).hex()
        outcome = outcome_of_log(entries, head)
        path = HashTree(map(leaf_hash, entries)).inclusion_path(head.size - 1, head.size)
        end = check_trailer(entries[-1], path, head, record.window, self._clock())
        result = Log.opened(record, digest, head).ended(outcome, end)
        with self._locked() as state:
            known, last = state.logs.get(record.log), state.chains.get(record.origin)
            if known is not None:
                require(
                    (not known.closed or known.size == head.size)
                    and verify_consistency(
                        known.size, head.size, consistency, bytes.fromhex(known.root), head.root
                    ),
                    "the checkpoint does not extend the last cosigned checkpoint",
                    "checkpoint",
                    f"consistency with size {known.size}, root {known.root}",
                    f"size {head.size}, root {head.root.hex()}",
                )
            elif last is not None:
                check_link(record, state.logs[last])
            logs = {**state.logs, record.log: result}
            chains = state.chains if known is not None else {**state.chains, record.origin: record.log}
            self._write(state.model_copy(update={"logs": logs, "chains": chains}))

    def last(self, log: str) -> tuple[int, bytes] | None:
        """Size and root of the last cosigned checkpoint of a log (`Opening.log`), or None if there is none."""
        with self._locked() as state:
            known = state.logs.get(log)
        return None if known is None else (known.size, bytes.fromhex(known.root))

    def spent(self, log: str, commitment: str = "") -> bool:
        """Whether a log's window is closed, or the nonce under a commitment (64 hex digits) is revealed or gone."""
        with self._locked() as state:
            known, nonce = state.logs.get(log), state.nonces.get(commitment)
        return bool(known and known.closed) or (commitment != "" and not (nonce and nonce.revealed is None))

    def reveal(
        self,
        note: Note | str | bytes,
        entry: bytes,
        *,
        log_key: VerifierKey,
        witnesses: Collection[VerifierKey],
        quorum: int,
        index: int = 0,
        path: Sequence[bytes] = (),
    ) -> Note:
        """Reveal the nonce that a window header or enrolment names, signed over a cosigned root that contains the
        entry.

        The quorum must be complete, and the checkpoint must be the last one that this witness cosigned. The witness
        reveals a nonce over one root only. Another call for that root returns the same note, unless `STORED_REVEALS`
        reveals followed.

        :param entry: the canonical bytes of the window header or enrolment
        :param index: the entry's place in the ledger; a header's checkpoint has size 1
        :param path: the entry's inclusion path
        :raises WitnessRefused: one of these conditions fails, or the entry names no nonce of this witness
        :raises SignatureError: the log's signature or the quorum is missing
        """
        parsed = note if isinstance(note, Note) else parse_note(note)
        log = Checkpoint.parse(parsed.text).origin
        signed = open_checkpoint(parsed, origin=log, log_key=log_key, witnesses=witnesses)
        head, quorum_time = signed.checkpoint, signed.quorum_time(quorum)
        record = parse_canonical(entry)
        if not isinstance(record, WindowHeader | Enrolment) or isinstance(record, WindowHeader) != (
            index == 0
        ):
            raise WitnessRefused(
                "the entry is not a window header or enrolment at this index",
                field=f"entry {index}",
                actual=record.type,
            )
        require(
            verify_inclusion(leaf_hash(entry), index, head.size, path, head.root),
            "the entry is not in the checkpointed tree",
            f"entry {index}",
        )
        require(
            index > 0 or head.size == 1,
            "the beacon of a window header covers only the header",
            "checkpoint",
            1,
            head.size,
        )
        if isinstance(record, Enrolment):
            # A beacon over this root would prove that the ledger's times are wrong (`ledger.clock`); without a beacon
            # the entry is void.
            latest = 1000 * (quorum_time + CLOCK_LEEWAY_SECONDS)
            require(
                record.ts <= latest,
                "the time of the enrolment is after its quorum: check the clocks",
                f"entry {index}, ts",
                f"at most {latest} ms",
                record.ts,
            )
        if not isinstance(record.beacon, WitnessBeacon):
            raise WitnessRefused("the entry's beacon is not a beacon of witnesses", field="beacon.source")
        commitment = next(
            (m.commitment.hex() for m in members_of(record.beacon) if m.vkey == self.vkey), None
        )
        with self._locked() as state:
            nonce = state.nonces.get(commitment) if commitment else None
            if commitment is None or nonce is None:
                raise WitnessRefused(
                    "the entry names no nonce of this witness", field="beacon", expected=str(self.vkey)
                )
            done = nonce.revealed
            if done is None:
                done = bind(state, signed, quorum_time, self._clock())
                entries = {**state.nonces, commitment: nonce.model_copy(update={"revealed": done})}
                self._write(state.model_copy(update={"nonces": without_oldest(entries, done)}))
        require(
            (log_origin(done.origin, done.window), done.size, done.root) == (log, head.size, head.root.hex()),
            "the nonce was revealed over another root",
            "checkpoint",
            f"size {done.size}, root {done.root}",
            f"size {head.size}, root {head.root.hex()}",
        )
        reveal = Reveal(done.origin, done.window, head.size, head.root, bytes.fromhex(nonce.nonce), done.ts)
        return sign_note(reveal.text, self._key.with_algorithm(ALG_ED25519))

    def _sign(self, state: State, name: str, log: Log, note: Note, now: int) -> Note:
        # A clock that was set back must not order cosignatures differently from the checkpoints.
        stamp = max(now // 1000, state.last_time)
        self._write(state.model_copy(update={"logs": {**state.logs, name: log}, "last_time": stamp}))
        return cosign_note(note, self._key, stamp)

    @contextmanager
    def _locked(self) -> Iterator[State]:
        with locked(self._directory / "lock"):
            yield self._read()

    def _read(self) -> State:
        path = self._directory / STATE_FILE
        data = read_private(path, max_bytes=MAX_STATE_BYTES)
        return State.parse(parse_json(data, source=str(path)), field=str(path))

    def _write(self, state: State) -> None:
        data = state.canonical()
        if len(data) > MAX_STATE_BYTES:  # otherwise the written state could not be read back
            raise SizeError(
                "the witness's state is full", field=STATE_FILE, expected=f"at most {MAX_STATE_BYTES} bytes"
            )
        replace_file(self._directory / STATE_FILE, data, mode=PRIVATE_MODE)
