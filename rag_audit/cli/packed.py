"""The part of `rag-audit verify` that reads a bundle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_audit._internal.errors import RagAuditError
from rag_audit.cli.common import verifier_key
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.checking import Checking
from rag_audit.report.archive import opened
from rag_audit.verify.inputs import Inputs, Published, VerifierOptions

if TYPE_CHECKING:
    from rag_audit.report.verification import ReportedVerdict


@dataclass(frozen=True)
class Reader:
    """What the reader of a bundle gives.

    :param trust: the reader's own trust file, or None for the sender's
    :param challenges: notes that the reader drew; none without `trust`
    :param options: the engine, and with `trust` the reader's requirements
    :param signer: the public key that must have signed the packed report, as text or file
    """

    trust: Path | None
    challenges: tuple[Path, ...]
    options: VerifierOptions
    signer: str | None


def verify_packed(
    path: Path, reader: Reader, inputs: Inputs, checking: Callable[[WindowFile], Checking]
) -> ReportedVerdict:
    """The verdict on the files of a bundle, compared with the packed report.

    :param inputs: receives the names and digests of the files as they are read
    :param checking: makes the object that verifies the window's proofs
    :raises RagAuditError: the bundle, a file in it or its report cannot be used; the error names no file outside
    """
    from rag_audit.report.bundled import Comparison, compared
    from rag_audit.report.verification import verify_window

    signer = None if reader.signer is None else verifier_key(reader.signer, field="--signer")
    with opened(path) as packed:
        options = reader.options
        # The reader drew none of the packed challenges: the sender may have chosen one of several draws.
        challenges: list[Path | Published] = [*map(Published, packed.challenges), *reader.challenges]
        if reader.trust is None:
            own = packed.manifest.options
            options = replace(options, max_epsilon=own.max_epsilon, allow_unsafe_setup=own.allow_unsafe_setup)
        try:
            verdict = verify_window(
                packed.window,
                trust=packed.trust if reader.trust is None else reader.trust,
                receipts=packed.receipts,
                previous=packed.previous,
                challenges=packed.challenges if reader.trust is None else challenges,
                options=options,
                inputs=inputs,
                checking=checking,
            )
            return compared(verdict, packed, Comparison(reader.trust is not None, signer))
        except RagAuditError as exc:
            for name in ("message", "field", "expected", "actual", "hint"):
                text = getattr(exc, name)
                if isinstance(text, str):
                    setattr(exc, name, text.replace(f"{packed.folder}/", ""))
            raise
