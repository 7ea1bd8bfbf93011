"""A verifier's draw of the records that must be proved, over a window file's final checkpoint."""

from __future__ import annotations

from rag_audit._internal.canonical import jcs
from rag_audit._internal.errors import SchemaError
from rag_audit.log.checkpoint import Checkpoint, open_checkpoint
from rag_audit.log.keys import Signer, VerifierKey
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.models.challenge import Challenge, sample_size
from rag_audit.models.records import WindowHeader, log_origin, parse_entry
from rag_audit.models.trust import Trust, decimal
from rag_audit.models.windowfile import WindowFile


def draw_challenge(file: WindowFile, trusted: Trust, signer: Signer) -> Challenge:
    """The challenge by a verifier's key, with the number of records in its trust file.

    :raises SignatureError: the provider did not sign the final checkpoint, or the quorum is not complete
    :raises SchemaError: the entries are not the ones under the checkpoint, or beta or eta is missing
    """
    require = trusted.require
    head = _cosigned_head(trusted, file)
    sample = None
    if require.mode == "sampled":
        beta, eta = decimal(require.beta), decimal(require.eta)
        if beta is None or eta is None or not (0 < beta < 1 and 0 < eta < 1):
            raise SchemaError("sampled mode needs beta and eta", field="trust.require", expected="both in (0, 1)",
                              actual=f"beta {beta}, eta {eta}")  # fmt: skip
        sample = sample_size(beta, eta, _queries(file))
    return Challenge.new(
        signer, trusted.provider.origin, header_entry(file).window, head.size, head.root, sample
    )


def number_drawn(drawn: Challenge, file: WindowFile) -> int:
    """How many records a challenge draws.

    >>> from pathlib import Path
    >>> file = WindowFile.load(Path("docs/examples"))
    >>> number_drawn(Challenge("example.org/rag", "w-1", 10, bytes(32), bytes(32), None), file)
    7
    """
    return _queries(file) if drawn.sample is None else drawn.sample


def _queries(file: WindowFile) -> int:
    return sum(isinstance(e, dict) and e.get("type") == "query" for e in file.entries)


def _cosigned_head(trusted: Trust, file: WindowFile) -> Checkpoint:
    """The final checkpoint, if it can no longer change. Otherwise a provider could replace it after seeing a draw over
    it.

    :raises SignatureError: the provider did not sign the checkpoint, or the quorum is not complete
    :raises SchemaError: the entries do not match the checkpoint
    """
    signed = open_checkpoint(
        file.final_checkpoint,
        origin=log_origin(trusted.provider.origin, header_entry(file).window),
        log_key=VerifierKey.parse(trusted.provider.vkey, field="trust.provider.vkey"),
        witnesses=[VerifierKey.parse(w.vkey, field=f"trust.witness.{w.name}") for w in trusted.witness],
        field="final_checkpoint",
    )
    signed.quorum_time(trusted.quorum)
    head, tree = signed.checkpoint, HashTree(leaf_hash(jcs(entry)) for entry in file.entries)
    if (tree.size, tree.root()) != (head.size, head.root):
        raise SchemaError(
            "the entries are not the ones under the final checkpoint",
            field="entries",
            expected=f"{head.size} entries, root {head.root.hex()}",
            actual=f"{tree.size} entries, root {tree.root().hex()}",
        )
    return head


def header_entry(file: WindowFile) -> WindowHeader:
    """The window header, entry 0 of its ledger.

    >>> from pathlib import Path
    >>> header_entry(WindowFile.load(Path("docs/examples"))).window
    'w-1'
    """
    entry = parse_entry(file.entries[0] if file.entries else None, field="entries[0]")
    if not isinstance(entry, WindowHeader):
        raise SchemaError("entry 0 is not a window header", field="entries[0].type", actual=entry.type)
    return entry
