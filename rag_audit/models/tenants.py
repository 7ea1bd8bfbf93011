"""A tenant's part of a policy: its constants, its proof system, and the effect of its mechanism on scores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from rag_audit.models.models import Count, Hex32, Identifier, Model, Positive
from rag_audit.relation.scores import ScoreWindow

if TYPE_CHECKING:
    from rag_audit.mechanisms import accounting

SystemName: TypeAlias = Literal["groth16", "scan"]
"""A proof system (`proofs.backends.SYSTEMS`)."""


class NoisePolicy(Model):
    """The mechanism: DGS-1 noise with these gains, on scores quantised to 0..lattice over lo..hi."""

    version: Literal["dgs-1"]
    table: Hex32
    """SHA-256 of the alias table that `vectors/` publishes"""
    gains: Annotated[list[Positive], Field(min_length=1, max_length=6)]
    lattice: Positive
    """R: the sensitivity of one score in lattice units"""
    lo: Count
    hi: Positive

    def mechanism(self) -> accounting.Mechanism:
        """The mechanism that the accountant bounds."""
        # The accountant's libraries take most of a second to import, which accounts and witnesses need not wait for.
        from rag_audit.mechanisms import accounting

        return accounting.Mechanism(tuple(self.gains), self.lattice)

    def score_window(self) -> ScoreWindow:
        """The map from raw scores to lattice scores."""
        return ScoreWindow(self.lo, self.hi, self.lattice)


class ScoresPolicy(Model):
    """The score window lo..hi in raw units and the lattice 0..lattice of a tenant without noise."""

    lattice: Positive
    lo: Count
    hi: Positive


class DocumentsPolicy(Model):
    """The document table of a tenant: with sampling or pooled listing, one Bernoulli bit decides for all positions of a
    document (docs/scan/document-table.md)."""

    rows: Positive
    """D: rows of the table, each for at most one document; chosen without looking at the documents"""
    positions_per_document: Positive
    """s: maximum positions of a document"""
    fresh_rows: Positive | None
    """F: rows that each window after the first replaces; null if each window draws the bits of all rows anew"""


class TenantPolicy(Model):
    """One tenant's public contract constants, its proof system and its mechanism (docs/protocol.md, "Mechanisms")."""

    tenant: Identifier
    capacity: Positive
    """committed positions; chosen without looking at the index"""
    accounts_max: Positive
    """cap on roster plus enrolments of this tenant"""
    system: SystemName
    circuits: dict[str, Hex32]
    """circuit (or protocol) digest of each statement that a record's proofs prove (`models.constants.STATEMENTS`)"""
    mechanism: Literal["top-k", "pooled-listing"]
    noise: bool
    """whether scores get the policy's noise"""
    scores: ScoresPolicy | None
    """the score window without noise; null with a threshold, and with noise, because then the noise's window counts"""
    keep: Positive | None
    """Pi: a position, or with a document table a document, is sampled with probability Pi / 2^40; null samples all
    positions"""
    flip_probability: Positive | None
    """Q: pooled listing only, the probability over 2^40 that a query lists a document whatever its content"""
    threshold: Positive | None
    """pooled listing only: the minimum raw score of a relevant position"""
    documents: DocumentsPolicy | None
    """noise, sampling and pooled listing: the document table, which pooled listing requires; null if every position is
    a document of its own, with a new bit in each window of a sampled tenant"""
