"""A window's publications, and the notes that it accepts for them: checkpoints and their cosignatures, beacons, the
window header, the window file.

While the ledger grows, window.json contains the entries that witnesses read, and no proofs. Entries are append-only: a
full tile of them never changes, so the cost of one publication does not depend on the number of entries. Proofs are
ordered by tenant, and an additional proof moves all later ones. Verification needs a closed window, so the proofs are
added when the window closes (docs/decisions/0045-large-windows-are-in-tiles.md).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

from rag_audit._internal.canonical import Json, digest_hex, jcs, read_json
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import StoreError, WindowStateError
from rag_audit.attest.context import Context
from rag_audit.attest.state import source_of
from rag_audit.commit.stored import StoredCommitment, fix_keys
from rag_audit.log.checkpoint import Checkpoint, SignedCheckpoint, open_checkpoint
from rag_audit.log.merging import merge_signatures
from rag_audit.log.note import Note, parse_note
from rag_audit.mechanisms import COLUMNS
from rag_audit.models import window_writer
from rag_audit.models.beacon import Reveal, drand_beacon, members_of, witness_beacon
from rag_audit.models.drand import DrandChain
from rag_audit.models.models import FieldHex, Model
from rag_audit.models.publication import Publication
from rag_audit.models.records import (
    MAX_CHECKPOINT_BYTES,
    BeaconEntry,
    ColumnEntry,
    DrandBeacon,
    Entry,
    QueryRecord,
    WindowTrailer,
)
from rag_audit.models.tiles import FOLDER, EntryTile, EntryTiles, ProofTiles
from rag_audit.models.window_writer import save_window, write_entries
from rag_audit.models.windowfile import MEDIA_TYPE, TiledParts, WindowFile
from rag_audit.proofs.interface import places
from rag_audit.proofs.proving import backend
from rag_audit.proofs.statements.coalition import CoalitionSize

OPEN_TILE_BYTES = 256 << 10
"""An entry ends a tile of an open window if it brings the tile to this number of bytes. Fewer bytes remain in the
file."""


class GrowingFile:
    """The writer of an open window's file, which looks at the entries after the last full tile only.

    :param path: window.json
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._full: list[EntryTile] = []
        self._covered = 0
        self._ends: list[str] = []
        self.size = 0
        """how many entries the file has that this process wrote last"""

    def save(self, head: WindowFile, entries: Sequence[Entry]) -> None:
        """Write the file.

        :param head: all of it but entries and proofs
        :param entries: the ledger's entries, from the first on, at least as many as in the last call
        """
        rest = [e.dump() for e in entries[self._covered :]]
        if not self._full and sum(len(jcs(e)) for e in rest) < OPEN_TILE_BYTES:
            save_window(head.model_copy(update={"entries": rest}), self._path)
        else:
            folder, header = self._path.parent / FOLDER, digest_hex(entries[0].dump())
            first, full = len(self._full), self._full
            more = write_entries(rest, folder, header, number=first, tile_bytes=OPEN_TILE_BYTES).tiles
            parts = EntryTiles(tiles=full + more)
            save_window(
                head, self._path, TiledParts(header=header, entries=parts, proofs=ProofTiles(tiles=[]))
            )
            # The last tile may or may not be full: it is written a second time in either case, with the same content.
            self._full, end = parts.tiles[:-1], parts.tiles[-1].sha256
            self._covered = sum(tile.count for tile in self._full)
            self._forget(folder, end, {tile.sha256 for tile in more})
        self.size = len(entries)

    def _forget(self, folder: Path, end: str, written: set[str]) -> None:
        """Delete last tiles of earlier files, but for the one before: a reader may have begun with that file."""
        self._ends = [e for e in self._ends if e not in written] + [end]
        for digest in self._ends[:-2]:
            (folder / f"{digest}.json").unlink(missing_ok=True)
        self._ends = self._ends[-2:]


MAX_PROOF_BYTES = 1 << 20
MAX_COALITION_BYTES = 64 << 20


class CoalitionProof(Model):
    """coalition.json: the coalition proof that the window trailer names.

    :param ctx: the statement's context, which identifies a proof of an earlier estimate
    """

    ctx: FieldHex
    coalition_proof: dict[str, Json]

    @classmethod
    def load(cls, path: Path) -> CoalitionProof:
        """Read the file."""
        return cls.parse(read_json(path, max_bytes=MAX_COALITION_BYTES), field=path.name)


class StoredProofs(Mapping[str, Json]):
    """The existing proofs, by the `seq` of their entry. The constructor iterates over `by_entry` once. Proofs of large
    windows are not in memory; each access reads them from their files.
    """

    def __init__(
        self, entries: Iterable[Entry], result: Callable[[QueryRecord | ColumnEntry], dict[str, Json]]
    ) -> None:
        self._made = result
        self._entries = {str(e.seq): e for e in entries if isinstance(e, QueryRecord | ColumnEntry)}
        self._kept: dict[str, dict[str, Json]] | None = {}

    def by_entry(self) -> Iterator[tuple[QueryRecord | ColumnEntry, dict[str, Json]]]:
        """Each entry that has proofs, with them."""
        size = 0
        for seq, entry in list(self._entries.items()):
            if not (result := self._made(entry)):
                del self._entries[seq]
                continue
            if self._kept is not None:
                self._kept[seq] = result
                size += len(jcs(result))
                if size > window_writer.TILED_BYTES:
                    self._kept = None
            yield entry, result

    def __getitem__(self, seq: str) -> Json:
        if self._kept is not None:
            return self._kept[seq]
        return self._made(self._entries[seq])

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


class Publisher:
    """The writer of a window's public folder. Safe to use from several threads: one thread writes at a time, so that
    the last written file is the most complete one. A writer does not hold the lock of the ledger's state.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._public = context.layout.public
        self._writing = threading.RLock()
        self._growing = GrowingFile(self._public.window)

    # -- checkpoints -----------------------------------------------------------------------------------------

    def checkpoint(self, size: int | None = None) -> str:
        """The signed checkpoint note of the ledger's first `size` entries (all by default)."""
        tree = self._context.state.tree
        count = tree.size if size is None else size
        return str(Checkpoint(self._context.header.log, count, tree.root(count)).sign(self._context.key))

    def publish_checkpoint(self, size: int) -> str:
        """The checkpoint of that size from the public folder. The method publishes it if it is missing."""
        path = self._public.checkpoint(size)
        with self._writing:
            if not path.exists():
                replace_file(path, self.checkpoint(size).encode())
            return path.read_text()

    def cosign(self, note: Note) -> None:
        """Merge a note's cosignatures into the published checkpoint of its size.

        :raises WindowStateError: no such checkpoint was published
        :raises RagAuditError: the note is not a checkpoint of this log, or a signature is wrong
        """
        head = Checkpoint.parse(note.text)
        self.open_checkpoint(note)
        path = self._public.checkpoint(head.size)
        keys = (self._context.key.verifier, *self._context.witnesses)
        with self._writing:
            if not path.exists():
                raise WindowStateError(
                    "no such checkpoint was published",
                    field="checkpoint",
                    expected=[p.name for p in self._public.checkpoints()],
                    actual=head.size,
                    hint="the witness cosigned another copy of the window: give this public folder to the witness",
                )
            merged = merge_signatures(
                [parse_note(path.read_bytes()), note], keys, max_bytes=MAX_CHECKPOINT_BYTES
            )
            replace_file(path, str(merged).encode())

    def cosigned(self, size: int) -> SignedCheckpoint:
        """The published checkpoint of that size with its cosignatures."""
        return self.open_checkpoint(self._public.checkpoint(size).read_bytes())

    def open_checkpoint(self, note: Note | bytes) -> SignedCheckpoint:
        """Open a checkpoint of this window's log, and check its signatures."""
        context = self._context
        return open_checkpoint(
            note, origin=context.header.log, log_key=context.key.verifier, witnesses=context.witnesses
        )

    def fully_cosigned(self, size: int) -> bool:
        """Whether all of the window's witnesses have cosigned the checkpoint of that size."""
        if not self._public.checkpoint(size).exists():
            return False
        return len(self.cosigned(size).cosignatures) == len(self._context.witnesses)

    def check_ledger(self) -> None:
        """Check that the stored ledger starts with this window header and contains every published entry.

        :raises StoreError: the ledger does not
        """
        context, state = self._context, self._context.state
        if not state.entries or state.entries[0] != context.header:
            raise StoreError(
                "the ledger does not start with the header of this window", field=str(context.layout.folder)
            )
        for path in self._public.checkpoints():
            head = open_checkpoint(path.read_bytes(), origin=context.header.log, log_key=context.key.verifier,
                                   field=path.name).checkpoint  # fmt: skip
            if head.size > state.tree.size or state.tree.root(head.size) != head.root:
                raise StoreError("the ledger lost or changed entries that were published", field=path.name,
                                 expected=f"{head.size} entries", actual=f"{state.tree.size}")  # fmt: skip

    # -- notes of witnesses and drand ------------------------------------------------------------------------

    def admit(self, notes: Iterable[str]) -> None:
        """Take cosigned checkpoints and beacon notes (`Window.admit`)."""
        reveals: defaultdict[int, list[str]] = defaultdict(list)
        for text in notes:
            note = parse_note(text)
            if note.text.startswith("rag-audit/beacon/"):
                reveals[Reveal.parse(note.text).size].append(text)
            else:
                self.cosign(note)
        for size, group in sorted(reveals.items()):
            self._admit_reveals(size, group)

    def admit_drand(self, signatures: Sequence[str], chain: DrandChain) -> None:
        """Take the drand round that the window header names (`Window.admit_drand`)."""
        state = self._context.state
        source = state.beacon_source(0)
        if not isinstance(source, DrandBeacon):
            raise WindowStateError("the window header names no drand round", field="beacon", actual=source.source,
                                   hint="the witnesses reveal: `witness beacon`, then run"
                                    " `provider open` again")  # fmt: skip
        if 0 in state.beacons:
            return
        signed, quorum = self.cosigned(1), len(self._context.witnesses)
        value, _ = drand_beacon(source, signatures, signed, chain=chain, quorum=quorum)
        self._append_beacons([0], "drand", value, list(signatures), signed)

    def _admit_reveals(self, size: int, notes: Sequence[str]) -> None:
        """Draw the beacon of the last entry under a checkpoint of that size, and of all entries that share its draw."""
        context, state, entry = self._context, self._context.state, size - 1
        source = state.beacon_source(entry)
        with state.changed:
            batch = state.waiting.get(source_of(source), {}) if entry else {}
            due = [e for e in dict.fromkeys([*batch, entry]) if e < size and e not in state.beacons]
        if not due:
            return
        if isinstance(source, DrandBeacon):
            raise WindowStateError("the beacon is a drand round, not witnesses' nonces", field="beacon",
                                   hint=f"`rag-audit provider open --drand-signature` takes"
                                        f" round {source.round}")  # fmt: skip
        signed = self.cosigned(size)
        value, _ = witness_beacon(source, notes, signed, trusted=[m.vkey for m in members_of(source)],
                                  quorum=len(context.witnesses), window=context.header.window)  # fmt: skip
        self._append_beacons(due, "witnesses", value, list(notes), signed)

    def _append_beacons(
        self, entries: Sequence[int], source: str, value: bytes, notes: list[str], signed: SignedCheckpoint
    ) -> None:
        fields = {"type": "beacon", "v": 1, "seq": 1, "source": source, "value": value.hex(), "notes": notes,
                  "checkpoint": str(signed.note)}  # fmt: skip
        with self._context.state.beacons_of(entries) as due:
            self._context.state.append_all(
                [BeaconEntry.parse({**fields, "entry": entry}, field="beacon") for entry in due]
            )

    # -- the window header and the window file --------------------------------------------------------------------

    def publish(self) -> None:
        """Write the files that accounts and witnesses need, if a crash prevented it."""
        state = self._context.state
        with state.changed:
            enrolled = {seq + 1 for seq in state.last_of.values()}
            sizes = {1, len(state.entries)} if state.ended else {1}
        with self._writing:
            for size in sorted(enrolled):
                if not state.ended and not self._public.checkpoint(size).exists():
                    self.publish_enrolments(size)
            for size in sizes | enrolled:
                self.publish_checkpoint(size)
            if not self._public.header.exists():
                replace_file(self._public.header, self._publication().canonical())

    def publish_enrolments(self, size: int) -> None:
        """Publish the checkpoint that ends with an enrolment, and the entries up to it. Witnesses read these entries to
        check that the ledger only grew, and to see the root for their reveals. Later entries are not included.
        """
        state = self._context.state
        with self._writing:  # the checkpoint last: without it, a crash is noticed
            # Otherwise a later file is published, or about to be.
            if size > self._growing.size and not state.ended:
                with state.changed:
                    entries = state.entries[:size]
                self._growing.save(self._head(size), entries)
            self.publish_checkpoint(size)

    def _publication(self) -> Publication:
        return StoredCommitment.of(self._context.commitment, self._context.witnesses).publication()

    def export(self, path: Path | None = None) -> Path:
        """Write the current window.json (to the public folder by default): entries, checkpoints, proofs, keys."""
        path = path or self._public.window
        with self._writing:
            save_window(self._window_file(), path)
        return path

    def _window_file(self) -> WindowFile:
        state = self._context.state
        with state.changed:
            entries = list(state.entries)
        proofs = StoredProofs(entries, self._made)
        coalition_proof = self._coalition_proof(
            entries[-1] if isinstance(entries[-1], WindowTrailer) else None
        )
        head = self._head(len(entries))
        return head.model_copy(
            update={
                "entries": [e.dump() for e in entries],
                "verification_keys": self._keys(self._kinds(proofs), certified=coalition_proof is not None),
                "proofs": proofs,
                "challenges": sorted(p.read_text() for p in self._public.challenges.glob("*.txt")),
                "coalition_proof": coalition_proof,
            }
        )

    def _head(self, size: int) -> WindowFile:
        """The window file of the first `size` entries, but for these and for all that is proved."""
        told, final = self._publication(), self._public.checkpoint(size)
        return WindowFile(
            mediaType=MEDIA_TYPE,
            entries=[],
            header_checkpoint=self._public.checkpoint(1).read_text(),
            final_checkpoint=final.read_text() if final.exists() else self.checkpoint(size),
            policy=told.policy,
            embedder=told.embedder,
            roster=told.roster,
            tenants=told.tenants,
            verification_keys={},
            proofs={},
            challenges=[],
            coalition_proof=None,
        )

    def _made(self, entry: QueryRecord | ColumnEntry) -> dict[str, Json]:
        """The proofs of an entry that exist, by statement."""
        if isinstance(entry, QueryRecord):
            return self.proofs(entry)
        proof = self.column_proof(entry)
        return {} if proof is None else {entry.type: proof}

    def _kinds(self, proofs: StoredProofs) -> set[tuple[str, str, int]]:
        """Tenant, statement and number of records of every proof."""
        return {
            (entry.tenant, name, places(name, proof))
            for entry, result in proofs.by_entry()
            for name, proof in result.items()
        }

    def _keys(self, kinds: Iterable[tuple[str, str, int]], *, certified: bool) -> dict[str, Json]:
        """The verification keys of all proofs in the file, which are fixed for the window from now on."""
        context = self._context
        keys: dict[str, Json] = {}
        for tenant, name, count in sorted(kinds):
            system, public = context.system(tenant), context.public(tenant)
            if name in COLUMNS:
                keys |= system.column(name).published_keys(public)
            else:
                keys |= system.records(name, public, count).published_keys()
        requested = context.policy.estimator.coalition_proof
        if certified and requested is not None:
            p, q = context.policy.estimator.theta
            size = CoalitionSize(requested.records, context.embedder.dimension, (p, q))
            keys |= backend(requested.system).coalition.published_keys(size)
        by_setup = {c: k for c, k in keys.items() if isinstance(k, dict) and k.get("circuit") == c}
        self.fix_keys({c: digest_hex(k) for c, k in by_setup.items()})
        return keys

    def fix_keys(self, keys: Mapping[str, str]) -> None:
        """Fix verification keys for this window (`commit.stored.fix_keys`)."""
        with self._writing:
            fix_keys(self._context.layout.folder, keys)

    # -- proofs as they are stored ---------------------------------------------------------------------------

    def proof_path(self, record: QueryRecord, name: str = "") -> Path:
        """The path of a record's proofs: one file if they were made with the answer, else one for each statement."""
        return self._context.layout.proof(record.proof or f"{record.seq}-{name}")

    def proofs(self, record: QueryRecord) -> dict[str, Json]:
        """The record's proofs that exist, by statement."""
        if record.proof is not None:
            path = self.proof_path(record)
            kept = read_json(path, max_bytes=MAX_PROOF_BYTES) if path.exists() else {}
            return cast("dict[str, Json]", kept)  # written by `Prover.prove_now`
        paths = {name: self.proof_path(record, name) for name in self._context.statements(record.tenant)}
        return {n: read_json(p, max_bytes=MAX_PROOF_BYTES) for n, p in paths.items() if p.exists()}

    def column_proof(self, entry: ColumnEntry) -> Json:
        """The stored proof of the column that an entry names, or None if there is none."""
        path = self._context.layout.column_proof(entry.type, entry.tenant)
        return read_json(path, max_bytes=MAX_PROOF_BYTES) if path.exists() else None

    def _coalition_proof(self, trailer: WindowTrailer | None) -> Json:
        """The coalition proof that the window trailer names, or None."""
        named = trailer.coalition.coalition_proof if trailer is not None and trailer.coalition else None
        if named is None:
            return None
        path = self._context.layout.coalition
        kept = CoalitionProof.load(path)
        if digest_hex(kept.coalition_proof) != named:
            raise StoreError(
                "the file differs from the coalition proof that the window trailer names",
                field=path.name,
                expected=named,
            )
        return kept.coalition_proof
