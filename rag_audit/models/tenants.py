"""A tenant's part of a policy: its constants, its proof system, and what its retrieval does to scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from rag_audit._internal.errors import PolicyError
from rag_audit.models import defaults
from rag_audit.models.models import Count, Hex32, Identifier, Model, Positive
from rag_audit.relation.coins import check_coin
from rag_audit.relation.noise import check_gains
from rag_audit.relation.scores import MAX_LATTICE, ScoreWindow

if TYPE_CHECKING:
    from rag_audit.mechanisms import accounting

SystemName: TypeAlias = Literal["groth16", "scan"]
"""A proof system (`proofs.interface.SYSTEMS`)."""

MechanismName: TypeAlias = Literal["noise", "sampling", "listing", "none"]
"""What keeps a tenant's answers private: the paper's noise on every score, a sample of the index without noise,
randomised response, or nothing (docs/accounting.md)."""


DEFAULT_LISTED_MAX = 32
"""M where a draft does not say it (`default_listing`)."""
UNRELATED = 5
"""Positions that chance puts into a list, on average, where a draft does not say how many (`default_listing`)."""
THRESHOLDS = {"wordllama-256": 354}
"""Raw scores from which passages are relevant, by embedder: chosen on public collections (cosine 0.35), never on a
provider's."""


def default_listing(capacity: int) -> tuple[Fraction, int]:
    """The chance and the longest list of a listing tenant whose draft names neither: lists of at most 32 positions and
    of at most the share of an index that `trust new` accepts, of which chance fills five and at most half.

    :param capacity: the tenant's positions
    :returns: the probability that a position is listed at a query whatever it holds, and M
    """
    most = max(1, min(DEFAULT_LISTED_MAX, math.floor(Fraction(defaults.K_SHARE) * capacity)))
    return min(Fraction(UNRELATED), Fraction(most, 2)) / capacity, most


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


class TenantPolicy(Model):
    """One tenant's public contract constants and the proof system that serves it."""

    tenant: Identifier
    capacity: Positive
    """committed positions; chosen without looking at the index"""
    accounts_max: Positive
    """cap on roster plus enrolments of this tenant"""
    system: SystemName
    circuits: dict[str, Hex32]
    """circuit (or protocol) digest of each statement that a record's proofs prove (`formats.constants.STATEMENTS`)"""


class ScoresPolicy(Model):
    """The score window lo..hi in raw units and the lattice 0..lattice of a tenant without noise."""

    lattice: Positive
    lo: Count
    hi: Positive

    def score_window(self) -> ScoreWindow:
        """The map from raw scores to lattice scores."""
        return ScoreWindow(self.lo, self.hi, self.lattice)


class TenantPolicyV2(TenantPolicy):
    """A tenant's part of a policy of version 2, which names its mechanism (docs/protocol.md, "Mechanisms")."""

    mechanism: Literal["top-k", "listing"]
    noise: bool
    """whether scores get the policy's noise"""
    scores: ScoresPolicy | None
    """the score window without noise; null with noise, whose window counts, and with a threshold"""
    keep: Positive | None
    """Pi: a position is kept for the window with probability Pi / 2^40; null keeps all"""
    chance: Positive | None
    """Q: listing only, a position is listed at a query whatever it holds with probability Q / 2^40"""
    listed_max: Positive | None
    """M: listing only, the most positions of a list"""
    threshold: Positive | None
    """listing only, the raw score from which a position is relevant"""


@dataclass(frozen=True)
class ListingRules:
    """What makes a list of a listing tenant (docs/accounting.md, "Listing").

    :param chance: Q, over 2^40, the probability that a position is listed at a query whatever it holds
    :param most: M, the most positions of a list
    :param threshold: the raw score from which a position is relevant
    """

    chance: int
    most: int
    threshold: int


@dataclass(frozen=True)
class TenantRules:
    """What a tenant's retrieval does to scores, whatever the policy's version.

    :param gains: gains of the noise, empty without noise
    :param scores: the score window, which is checked where it is used (`window`)
    :param keep: Pi, over 2^40; None where every position is kept
    :param listing: how lists are made by randomised response; None where they are the first K positions
    """

    gains: tuple[int, ...]
    scores: NoisePolicy | ScoresPolicy
    keep: int | None = None
    listing: ListingRules | None = None

    @property
    def window(self) -> ScoreWindow:
        """The map from raw scores to lattice scores.

        :raises PolicyError: the score window is not well-formed
        """
        return self.scores.score_window()

    @property
    def sampled(self) -> bool:
        """Whether positions are sampled."""
        return self.keep is not None

    @property
    def mechanism(self) -> MechanismName:
        """What keeps answers private; with noise and sampling both, the noise, which bounds every outcome."""
        if self.listing is not None:
            return "listing"
        if self.gains:
            return "noise"
        return "sampling" if self.sampled else "none"


def rules_of(tenant: TenantPolicy, noise: NoisePolicy | None) -> TenantRules:
    """The rules of a tenant, from its part and the policy's noise.

    :raises PolicyError: the tenant's fields contradict one another, or are out of range; the field is named
    """
    if not isinstance(tenant, TenantPolicyV2):
        assert noise is not None  # policies of version 1 have noise
        return TenantRules(tuple(noise.gains), noise)

    def need(ok: bool, name: str, expected: str) -> None:
        if not ok:
            raise PolicyError("the tenant's mechanism is not well-formed",
                              field=f"policy.tenants.{tenant.tenant}.{name}",
                              expected=expected, found=getattr(tenant, name))  # fmt: skip

    place = f"policy.tenants.{tenant.tenant}"
    keep = None if tenant.keep is None else check_coin(tenant.keep, f"{place}.keep")
    if tenant.mechanism == "listing":
        need(not tenant.noise, "noise", "false, since listing draws coins instead")
        need(tenant.scores is None, "scores", "null, since the threshold is the score window")
        need(
            keep is not None,
            "keep",
            "a share of kept positions over 2^40, which listing rests on; 0.7 is usual",
        )
        for name in ("chance", "listed_max", "threshold"):
            need(getattr(tenant, name) is not None, name, "a value, which listing needs")
        chance = check_coin(tenant.chance, f"{place}.chance")
        most, threshold = tenant.listed_max, tenant.threshold
        assert most is not None and threshold is not None
        need(most <= tenant.capacity, "listed_max", f"at most the capacity, {tenant.capacity}")
        scores = ScoresPolicy(lattice=1, lo=threshold - 1, hi=threshold)
        return TenantRules((), scores, keep, ListingRules(chance, most, threshold))
    for name in ("chance", "listed_max", "threshold"):
        need(getattr(tenant, name) is None, name, "null, which belongs to listing")
    if tenant.noise:
        need(noise is not None, "noise", "false, since the policy has no noise")
        need(tenant.scores is None, "scores", "null, since the noise has its window")
        assert noise is not None
        check_gains(noise.gains)
        return TenantRules(tuple(noise.gains), noise, keep)
    need(tenant.scores is not None, "scores", "a score window, since the tenant has no noise")
    assert tenant.scores is not None
    lo, hi, lattice = tenant.scores.lo, tenant.scores.hi, tenant.scores.lattice
    for name, ok, expected, found in (
        ("hi", lo < hi, f"greater than lo, {lo}", hi),
        (
            "lattice",
            # Without noise a coarse lattice only makes ties, which favour low positions whatever is asked.
            lo >= hi or (hi - lo <= lattice <= MAX_LATTICE and lattice & (lattice - 1) == 0),
            f"a power of two from {hi - lo}, the width, up to {MAX_LATTICE}",
            lattice,
        ),
    ):
        if not ok:
            raise PolicyError(
                "the tenant's mechanism is not well-formed",
                field=f"policy.tenants.{tenant.tenant}.scores.{name}",
                expected=expected,
                found=found,
            )
    return TenantRules((), tenant.scores, keep)
