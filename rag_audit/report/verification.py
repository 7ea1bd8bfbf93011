"""Verifies a window with all optional packages of this installation, and adds the report's description of the
window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rag_audit._internal.errors import RagAuditError
from rag_audit.mechanisms.descriptions import ALL
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.checking import Checking
from rag_audit.report.facts import Facts, facts_of, facts_without
from rag_audit.retrieval.query import reembedding
from rag_audit.verify.inputs import Inputs, VerifierOptions
from rag_audit.verify.verdict import Verdict
from rag_audit.verify.verifier import judge, open_window

if TYPE_CHECKING:
    from rag_audit.report.model import Attacks

DOES_NOT_PROVE = (
    "what a selected position holds: the figures cover the list of selected positions; the text found there, its "
    "emptiness, and digests in receipts are disclosed with certainty and are outside the bound",
    "the generation channel: what a model writes from the documents",
    "documents of several positions: each figure is for a document of one position. A document of s positions loses up"
    " to s times epsilon, and the factor by which its absence becomes more likely is at least the s-th power",
    "a true coalition above k_max",
    "in sampled mode, records that no proof was asked for",
    "coalitions that diversify their queries below theta: the estimate finds accounts that repeat a question almost"
    " word for word, and a checked estimate says nothing of others",
    "D1 and A1 below `proved`: that a committed vector, or a query vector, is the embedding of its text; nobody"
    " can compute an endpoint's vectors again, not even an account those of its own queries",
    "answers given off the ledger without a receipt",
    "selective refusal and stalling: the provider knows scores and noise",
    "behaviour of honest accounts that depends on their answers (counts, times, c) beyond the all-accounts figure",
    "a second origin over the same index",
    "the same documents as several tenants: committed again under fresh salts they look like others, and each "
    "figure, that for all accounts too, covers the accounts of one tenant",
    "windows that the provider filled with queries of its own, closed and showed to nobody: they do not count as "
    "abandoned",
    "the seed's entropy and secrecy",
    "subliminal channels: timestamps, salts drawn by the library",
    "that embeddings cannot be inverted",
    "the computational assumptions: SHA-256, Poseidon, Ed25519, and the proof system's (docs/security.md)",
)
"""Printed with every verdict, in this order."""
RETURNED_TEXTS = (
    "which texts a tenant with a sample returned: the provider returns no text of a position that the window does not"
    " keep and, with mechanism sampling, none of a position of score 0. No proof covers this yet, odds_unlisted of"
    " mechanism sampling rests on it. Receipts do not show a text that the provider withholds at the end of a list"
    " (mechanism sampling), or from every answer whose receipt the verifier has (noise with sampling, listing)"
)
"""An additional line, printed if a tenant samples."""


@dataclass(frozen=True)
class ReportedVerdict(Verdict):
    """A verdict with the report's description of the window.

    :param described: the facts of the window, or the exception that prevented this description: a fault of the
        description does not affect the verdict
    :param measured: a provider's own run of attacks; it does not affect the verdict
    """

    described: Facts | Exception = field(kw_only=True, repr=False, compare=False)
    measured: Attacks | None = None

    @property
    def facts(self) -> Facts:
        """The report's description of the window.

        :raises Exception: the exception that prevented the description
        """
        if isinstance(self.described, Exception):
            raise self.described
        return self.described

    @property
    def does_not_prove(self) -> list[str]:
        """The claims that the verdict does not make, in sentences for people."""
        tenants = self.figures.get("tenants", {}).values()
        present = {t["mechanism"] for t in tenants}
        return [
            *(
                kind.does_not_prove
                for kind in ALL
                if kind.mechanism.name in present and kind.does_not_prove is not None
            ),
            *([RETURNED_TEXTS] if any(t.get("odds_unlisted") for t in tenants) else []),
            *DOES_NOT_PROVE,
        ]


def reported(
    verdict: Verdict, described: Facts | Exception, measured: Attacks | None = None
) -> ReportedVerdict:
    """A verdict with facts and measurements, which have no privacy figure where the verdict has none."""
    if not verdict.established:
        described = described if isinstance(described, Exception) else facts_without(described)
        if measured is not None:
            from rag_audit.report.measured import uncertified

            measured = uncertified(measured)
    return ReportedVerdict(
        verdict.exit_code,
        verdict.checks,
        verdict.figures,
        verdict.notes,
        verdict.needed,
        measured=measured,
        described=described,
    )


def verify_window(
    window: Path | WindowFile,
    *,
    trust: Path | Trust,
    receipts: Sequence[Path] = (),
    previous: Sequence[Path] = (),
    challenges: Sequence[Path] = (),
    options: VerifierOptions = VerifierOptions(),
    model: Path | None = None,
    attacks: Path | None = None,
    inputs: Inputs | None = None,
    checking: Callable[[WindowFile], Checking] | None = None,
) -> ReportedVerdict:
    """Verify a window as a third party that trusts only `trust`. The other parameters are those of `open_window`.

    :param model: the folder of the embedder's files, if it has any, to re-execute A1 on disclosed queries
    :param attacks: the measurements of `rag-audit lab attack run`, attacks.json, to be shown with the verdict
    :param checking: makes the object that verifies the window's proofs; by default this process verifies all of them
    :raises MeasurementError: the attacks are not on this window or its policy (exit code 3)
    :raises RagAuditError: the window, the trust file, the attacks or a challenge of the verifier's own cannot be read
        (exit code 2)
    """
    inputs = Inputs() if inputs is None else inputs
    case = open_window(
        window,
        trust=trust,
        receipts=receipts,
        previous=previous,
        challenges=challenges,
        options=options,
        inputs=inputs,
    )
    measured = None
    if attacks is not None:
        from rag_audit.report.measured import read_measured  # most verifiers have none

        try:
            measured = read_measured(attacks, case, inputs)
        except RagAuditError as exc:
            case.unreadable.append(exc)
    if checking is not None:
        case.checking = checking(case.file)
    verdict = judge(case, partial(reembedding, folder=model))
    described: Facts | Exception
    try:
        described = facts_of(case, inputs)
    except Exception as exc:
        # The checks have decided: whatever goes wrong from here on must not take that back.
        described = exc
    return reported(verdict, described, measured)
