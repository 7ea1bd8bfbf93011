"""Verifies a window with all optional packages of this installation, and adds the report's description of the
window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rag_audit._internal.errors import RagAuditError
from rag_audit._internal.words import marked
from rag_audit.mechanisms import named
from rag_audit.mechanisms.descriptions import ALL, description
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.checking import Checking
from rag_audit.report.facts import Facts, facts_of, facts_without
from rag_audit.retrieval.query import reembedding
from rag_audit.verify.inputs import Inputs, Published, VerifierOptions
from rag_audit.verify.verdict import Verdict
from rag_audit.verify.verifier import judge, open_window

if TYPE_CHECKING:
    from rag_audit.report.model import Attacks, Weakness

SAMPLED = marked("in sampled mode, records without a required proof")
"""Left out if every record needs a proof."""
BEYOND = marked("a coalition of more than k_max accounts")
"""Left out if every figure is the same for any number of accounts."""
DOES_NOT_PROVE = (
    marked(
        "the content of a selected position: the figures cover the list of selected positions. Answers and"
        " receipts disclose the text at a position, its emptiness and its digest with certainty, and the bound"
        " does not cover them"
    ),
    marked("the generation channel: the text that a model writes from the documents"),
    marked(
        "documents of several positions, in a tenant without a document table: each figure is for a"
        " document of one position. A document of s positions loses at most s times epsilon at s times delta, and the"
        " limit of the factor for its absence is the s-th power (higher with noise)"
    ),
    BEYOND,
    SAMPLED,
    marked(
        "coalitions that diversify their queries below theta: the estimate finds accounts that repeat a question almost"
        " word for word, and a checked estimate covers no other accounts"
    ),
    marked(
        "vectors below the level `proved` (query_embedding, A1, and document_embedding, D1): that a query vector, or a"
        " committed vector, is the embedding of its text; if an endpoint computes the vectors, no party can recompute"
        " them, and an account cannot recompute the vectors of its queries"
    ),
    marked("answers outside of the ledger and without a receipt"),
    marked("selective refusal and stalling: the provider knows scores and noise"),
    marked(
        "behaviour of honest accounts that depends on their answers (counts, times, c) beyond the all-accounts figure"
    ),
    marked("a second origin over the same index"),
    marked(
        "the same documents as several tenants: with other salts, their commitments look like commitments to"
        " other documents, and each figure, including the figure for all accounts, covers the accounts of one"
        " tenant"
    ),
    marked(
        "windows that the provider filled with its own queries, closed and never published: these windows do not count"
        " as abandoned"
    ),
    marked("the seed's entropy and secrecy"),
    marked("subliminal channels: timestamps, salts drawn by the library"),
    marked("that embeddings cannot be inverted"),
    marked(
        "the computational assumptions: SHA-256, Poseidon, Ed25519, and the assumptions of the proof system"
        " (docs/security.md)"
    ),
)
"""Printed with every verdict, in this order."""
RETURNED_TEXTS = marked(
    "the texts that a tenant with a sample returned: the provider returns no text of a position outside of the sample."
    " No proof covers this rule yet"
)
"""An additional line, printed if a tenant samples."""
PLACEMENT = marked(
    "the positions of documents, with noise and a document table: eps of a replaced document assumes that the provider"
    " places all texts at uniformly random positions. No proof covers this rule yet"
)
"""An additional line, printed if a tenant has noise and a document table."""
UNSHOWN = {
    "sampling": marked(
        "texts of mechanism sampling: the provider returns no text of a position with score 0. No proof covers this"
        " rule yet, exclusion_factor depends on it, and receipts do not show a text that the provider withholds at the"
        " end of a list"
    ),
    "noise": marked(
        "texts of noise with sampling: receipts do not show a text that the provider withholds from every answer with a"
        " receipt that the verifier has"
    ),
}
"""Further lines for a tenant with a sample, by mechanism."""


@dataclass(frozen=True)
class ReportedVerdict(Verdict):
    """A verdict with the report's description of the window.

    :param described: the facts of the window, or the exception that prevented this description: a fault of the
        description does not affect the verdict
    :param measured: a provider's own run of attacks; it does not affect the verdict
    :param bundle: of a bundle, what a reader must know beside the verdict line
    """

    described: Facts | Exception = field(kw_only=True, repr=False, compare=False)
    measured: Attacks | None = None
    bundle: Weakness | None = None

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
        any_number = bool(present) and all(description(name).any_coalition for name in present)
        sampled = {t["mechanism"] for t in tenants if t.get("exclusion_factor")}
        placed = any(named(t["mechanism"]).noised and t.get("documents") is not None for t in tenants)
        whole = bool(tenants) and all(t.get("documents") is not None for t in tenants)
        return [
            *(
                kind.does_not_prove
                for kind in ALL
                if kind.mechanism.name in present and kind.does_not_prove is not None
            ),
            *([RETURNED_TEXTS] if sampled else []),
            *([PLACEMENT] if placed else []),
            *(line for name, line in UNSHOWN.items() if name in sampled),
            *(
                line
                for line in DOES_NOT_PROVE
                if not (whole and line.startswith("documents of several positions"))
                if not (any_number and line == BEYOND)
                if not (self.figures.get("mode") != "sampled" and line == SAMPLED)
                if not (len(tenants) == 1 and line.startswith("the same documents as several tenants"))
            ),
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
    challenges: Sequence[Path | Published] = (),
    options: VerifierOptions = VerifierOptions(),
    model: Path | None = None,
    attacks: Path | None = None,
    inputs: Inputs | None = None,
    checking: Callable[[WindowFile], Checking] | None = None,
) -> ReportedVerdict:
    """Verify a window as a third party that trusts only `trust`. `open_window` describes the other parameters.

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
