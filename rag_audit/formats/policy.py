"""The policy: every parameter of a window that is fixed before it opens and published with it.

C_policy is the SHA-256 over its canonical JSON (the paper's eq. 5.1). A policy that is not well-formed is refused
when the provider opens a window **and** by every verifier.
"""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from rag_audit.errors import PolicyError, VersionError
from rag_audit.formats.constants import STATEMENTS, Constants
from rag_audit.formats.models import Count, DecimalText, Hex32, Identifier, Millis, Model, One, Positive
from rag_audit.relation import noise
from rag_audit.relation.scores import LARGEST_PRODUCT, MAX_DIMENSION, MAX_LATTICE, ScoreWindow

if TYPE_CHECKING:
    from rag_audit import accounting
    from rag_audit.accounting.figures import PolicyFigures

Calibration: TypeAlias = Literal["classical", "split", "theorem-3.9", "analytic", "exact"]
"""The method by which the noise was chosen for eps_acc (docs/accounting.md, "Calibration")."""

SystemName: TypeAlias = Literal["groth16", "scan"]
"""A proof system (`proofs.interface.SYSTEMS`)."""

DEFAULT_SCORE_WINDOW = (101, 810)
"""The default score window in raw units, for scale 0.22 (docs/relation.md, "Scores")."""
DAY_MS = 86_400_000
MAX_TOKENS = 1 << 16
"""The most tokens of a text, with which the sum of squares that normalises its vector stays within 64 bits."""


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
        from rag_audit import accounting

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


class CertificatePolicy(Model):
    """The coalition proof that the closing record must name (docs/estimator.md, "Certificate")."""

    system: Literal["groth16", "scan"]
    records: Positive
    """the most query records that the proof covers"""
    circuit: Hex32
    """circuit (or protocol) digest"""


class EstimatorPolicy(Model):
    """The coalition estimator's parameters: two queries are near if their cosine is at least theta, within tau."""

    theta: Annotated[list[Positive], Field(min_length=2, max_length=2)]
    """theta as the fraction [p, q], q <= 1000"""
    tau: Count
    """span between two queries; 0 means the whole window"""
    tau_unit: Literal["positions", "seconds"]
    certificate: CertificatePolicy | None
    """the coalition proof; null if the estimate is only declared"""


class TokenLimits(Model):
    """The numbers of tokens at which the tokeniser cuts texts."""

    query: Positive
    document: Positive


class Policy(Model):
    """A window's policy; docs/protocol.md, "Policy", has each field with a worked example."""

    v: One
    window: Identifier
    opens_at: Millis
    closes_at: Millis
    eps_acc: DecimalText
    delta_acc: DecimalText
    n: Positive
    """queries an account may make in the window"""
    k_max: Positive
    delta_policy: DecimalText
    unit: Literal["position"]
    adjacency: Literal["replace-one"]
    """one committed position holds another vector; adding and removing a document are special cases"""
    top_k: Positive
    noise: NoisePolicy
    calibration: Calibration
    tenants: Annotated[list[TenantPolicy], Field(min_length=1)]
    proving: Literal["eager", "on-challenge"]
    estimator: EstimatorPolicy
    tokens: TokenLimits
    delete_after: Millis
    """when the provider deletes the data that on-challenge proving had to retain"""
    sigma: DecimalText
    """derived from the gains: the noise's standard deviation in lattice units"""

    def tenant(self, tenant: str) -> TenantPolicy | None:
        """The named tenant's part of the policy, or None."""
        return self._by_name.get(tenant)

    @cached_property
    def _by_name(self) -> dict[str, TenantPolicy]:
        return {t.tenant: t for t in reversed(self.tenants)}

    def moved(self, opens_at: int) -> Policy:
        """The same policy with another opening time, by which all its dates are moved.

        :param opens_at: milliseconds since the epoch
        """
        by = opens_at - self.opens_at
        return self.model_copy(
            update={
                "opens_at": opens_at,
                "closes_at": self.closes_at + by,
                "delete_after": self.delete_after + by,
            }
        )

    def constants(self, tenant: TenantPolicy, dimension: int, norm_factor: int | None) -> Constants:
        """The constants that fix the circuits of one tenant's proofs.

        :param dimension: components of the embedder's vectors
        :param norm_factor: factor of the embedder's integer normalisation, None where it has none
        """
        return Constants(
            capacity=tenant.capacity,
            dimension=dimension,
            top_k=self.top_k,
            gains=tuple(self.noise.gains),
            lo=self.noise.lo,
            hi=self.noise.hi,
            lattice=self.noise.lattice,
            query_tokens=self.tokens.query,
            norm_factor=norm_factor,
        )

    def figures(self) -> PolicyFigures:
        """Every figure that follows from this policy alone (`accounting.policy_figures`).

        :raises PolicyError: a parameter is outside the ranges that the accountant takes
        """
        from rag_audit import accounting

        return accounting.policy_figures(
            self.noise.mechanism(),
            n=self.n,
            eps_acc=self.eps_acc,
            delta_acc=self.delta_acc,
            k=self.k_max,
            delta=self.delta_policy,
            accounts_max=max(t.accounts_max for t in self.tenants),
        )

    def check(self, dimension: int | None) -> None:
        """Refuse a policy that is not well-formed (docs/protocol.md, "Policy"), as far as can be told without its proof
        systems. Parties call `proofs.policy.check_policy`, which asks the proof systems too.

        :param dimension: components of the embedder's vectors, which the manifest states and the policy does not; None
            where no manifest is at hand, and the score window is compared with the largest dimension
        :raises PolicyError: a field is not well-formed; it is named, with what was expected and found
        """
        from rag_audit import accounting
        from rag_audit.accounting.exact import MAX_COMPOSITIONS

        def need(ok: bool, field: str, expected: str, found: object) -> None:
            if not ok:
                raise PolicyError(
                    "the policy is not well-formed", field=f"policy.{field}", expected=expected, found=found
                )

        need(self.opens_at < self.closes_at, "closes_at", "later than opens_at", self.closes_at)
        need(self.delete_after >= self.closes_at, "delete_after", "not before closes_at", self.delete_after)
        noise.check_gains(self.noise.gains)
        if self.noise.table != noise.table_digest():
            raise VersionError(
                "the noise table is unknown to this release",
                field="policy.noise.table",
                expected=noise.table_digest(),
                found=self.noise.table,
            )
        need(self.noise.lo < self.noise.hi, "noise.hi", "greater than lo", self.noise.hi)
        lattice = self.noise.lattice
        need(
            lattice <= MAX_LATTICE and lattice & (lattice - 1) == 0,
            "noise.lattice",
            f"a power of two up to {MAX_LATTICE}",
            lattice,
        )
        components = MAX_DIMENSION if dimension is None else dimension
        need(1 <= components <= MAX_DIMENSION, "dimension", f"an embedder of 1..{MAX_DIMENSION}", components)
        most = LARGEST_PRODUCT * components
        need(self.noise.hi <= most, "noise.hi", f"at most {most}, the largest score", self.noise.hi)
        for name, limit in (("query", self.tokens.query), ("document", self.tokens.document)):
            need(limit <= MAX_TOKENS, f"tokens.{name}", f"at most {MAX_TOKENS}", limit)
        names = [t.tenant for t in self.tenants]
        need(len(set(names)) == len(names), "tenants", "each tenant once", names)
        need(names == sorted(names), "tenants", "sorted by id", names)
        for tenant in self.tenants:
            need(
                self.top_k <= tenant.capacity, "top_k", f"at most the capacity of {tenant.tenant}", self.top_k
            )
            need(
                "retrieve" in tenant.circuits,
                f"tenants.{tenant.tenant}.circuits",
                "a digest for retrieve",
                "none",
            )
            unknown = sorted(set(tenant.circuits) - set(STATEMENTS))
            need(not unknown, f"tenants.{tenant.tenant}.circuits", f"digests for {list(STATEMENTS)}", unknown)
            counted = tenant.accounts_max * self.n
            need(counted <= MAX_COMPOSITIONS, f"tenants.{tenant.tenant}.accounts_max",
                 f"at most {MAX_COMPOSITIONS} queries of all accounts", counted)  # fmt: skip
        composed = self.k_max * self.n
        need(
            composed <= MAX_COMPOSITIONS,
            "k_max",
            f"at most {MAX_COMPOSITIONS} queries of a coalition",
            composed,
        )
        p, q = self.estimator.theta
        need(0 < p < q <= 1000, "estimator.theta", "a fraction p/q in (0, 1) with q <= 1000", f"{p}/{q}")
        expected_sigma = sigma_text(self.noise.gains)
        need(self.sigma == expected_sigma, "sigma", expected_sigma, self.sigma)
        accounting.check_policy(
            gains=self.noise.gains,
            lattice=self.noise.lattice,
            n=self.n,
            k_max=self.k_max,
            eps_acc=self.eps_acc,
            delta_acc=self.delta_acc,
            delta_policy=self.delta_policy,
            calibration=self.calibration,
        )


def sigma_text(gains: list[int]) -> str:
    """sigma = 16 sqrt(sum of g^2) to six decimals, which is the policy's derived field."""
    return str((16 * Decimal(sum(g * g for g in gains)).sqrt()).quantize(Decimal("0.000001")))
