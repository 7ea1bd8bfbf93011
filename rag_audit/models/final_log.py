"""A closed window's ledger under its final checkpoint, the source of inclusion proofs."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit._internal.canonical import jcs
from rag_audit._internal.errors import InvalidProof, WindowStateError
from rag_audit.log.checkpoint import open_checkpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.note import Note, parse_note
from rag_audit.log.tlog_proof import TlogProof
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.records import QueryRecord
from rag_audit.models.windowfile import WindowFile


@dataclass(frozen=True)
class FinalLog:
    """A closed window's ledger under its final checkpoint.

    :param note: the checkpoint with its cosignatures, as published
    :param entries: the canonical bytes of each entry
    """

    closed: ClosedWindow
    note: Note
    entries: list[bytes]
    tree: HashTree

    @classmethod
    def of(cls, file: WindowFile, *, log_key: VerifierKey | None = None) -> FinalLog:
        """The final log in a window file.

        :param log_key: the provider's key; if given, the function checks the provider's signature and that at least one
            cosignature is present. The reader decides which cosignatures count
        :raises SchemaError: the window is not closed, or its entries are not the ones under the checkpoint
        :raises SignatureError: the checkpoint is not signed by `log_key` for this window
        :raises WindowStateError: the checkpoint has no cosignature
        """
        closed = ClosedWindow.of(file, field="entries")
        note = parse_note(file.final_checkpoint, field="final_checkpoint")
        if log_key is not None:
            open_checkpoint(note, origin=closed.header.log, log_key=log_key, field="final_checkpoint")
            if all((s.name, s.key_id) == (log_key.name, log_key.key_id) for s in note.signatures):
                raise WindowStateError(
                    "no witness has cosigned the final checkpoint yet",
                    field="final_checkpoint",
                    hint="fetch the window after its witnesses have cosigned it",
                )
        entries = [jcs(entry) for entry in file.entries]
        return cls(closed, note, entries, HashTree(leaf_hash(entry) for entry in entries))

    def proof(self, record: QueryRecord) -> TlogProof:
        """The proof that a record is in the ledger, without the openings that a receipt carries.

        :raises InvalidProof: the ledger does not contain the record
        """
        data = record.canonical()
        result = self.entries[record.seq] if record.seq < len(self.entries) else b""
        if result != data:
            raise InvalidProof("the window does not contain the record", field=f"entries[{record.seq}]")
        return TlogProof(record.seq, tuple(self.tree.inclusion_path(record.seq)), self.note)
