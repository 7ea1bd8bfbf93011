"""The policy: every parameter of a window that is fixed before it opens and published with it.

C_policy is the SHA-256 over its canonical JSON (the paper's eq. 5.1). A policy that is not well-formed is refused
when the provider opens a window **and** by every verifier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeAlias

from pydantic import Field, field_validator

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import PolicyError, VersionError
from rag_audit.mechanisms import Mechanism, of_policy
from rag_audit.mechanisms.base import ChainConstants, Tenant
from rag_audit.models.constants import STATEMENTS, Constants
from rag_audit.models.manifest import ProvableConstants
from rag_audit.models.models import Count, DecimalText, Hex32, Identifier, Millis, Model, One, Positive
from rag_audit.models.tenants import (
    NoisePolicy,
    SystemName,
    TenantPolicy,
)
from rag_audit.relation import noise
from rag_audit.relation.scores import LARGEST_PRODUCT, MAX_DIMENSION, MAX_LATTICE

if TYPE_CHECKING:
    from rag_audit.mechanisms.accounting.figures import PolicyFigures

Calibration: TypeAlias = Literal["classical", "split", "theorem-3.9", "analytic", "exact"]
"""The method that chose the noise for eps_acc (docs/accounting.md, "Calibration")."""

DEFAULT_SCORE_WINDOW = (420, 1680)
"""The score window of the default embedder in raw units (docs/relation.md, "Scores")."""
DAY_MS = 86_400_000
MAX_LISTED = 1024
"""The maximum K. A receipt opens every listed position, and this number fits its limit at any capacity."""
OWN_DOCUMENTS = (
    "The provider chose this policy with the help of its own documents; no bound covers this choice."
)
"""The meaning of `Policy.own_documents`, in the words of every report."""
MAX_TOKENS = 1 << 16
"""Maximum tokens of a text. Within it, the sum of squares that normalises the text's vector fits into 64 bits."""


class CoalitionProofPolicy(Model):
    """The coalition proof that the window trailer must name (docs/estimator.md, "Coalition proof")."""

    system: SystemName
    records: Positive
    """maximum query records of the proof"""
    circuit: Hex32
    """circuit (or protocol) digest"""


class EstimatorPolicy(Model):
    """The coalition estimator's parameters: two queries are near if their cosine is at least theta, within tau."""

    theta: Annotated[list[Positive], Field(min_length=2, max_length=2)]
    """theta as the fraction [p, q], q <= 1000"""
    tau: Count
    """span between two queries; 0 means the whole window"""
    tau_unit: Literal["positions", "seconds"]
    coalition_proof: CoalitionProofPolicy | None
    """the coalition proof; null if the estimate is only declared"""


class TokenLimits(Model):
    """The numbers of tokens at which the tokeniser truncates texts."""

    query: Positive
    document: Positive


class Policy(Model):
    """A window's policy; docs/protocol.md, "Policy", has each field with a worked example. Each tenant names its
    mechanism; the noise fields are null if no tenant has noise."""

    v: One
    window: Identifier
    opens_at: Millis
    closes_at: Millis
    eps_acc: DecimalText | None
    delta_acc: DecimalText | None
    n: Positive
    """queries an account may make in the window"""
    k_max: Positive
    delta_policy: DecimalText
    unit: Literal["position", "document"]
    """document if every tenant has a document table, else position"""
    adjacency: Literal["replace-one"]
    """one committed position changes its vector; adding and removing a document are special cases"""
    top_k: Positive
    noise: NoisePolicy | None
    calibration: Calibration | None
    tenants: Annotated[list[TenantPolicy], Field(min_length=1)]
    proving: Literal["eager", "on-challenge"]
    estimator: EstimatorPolicy
    relevance: Positive | None
    """minimum raw score of a passage that a retriever returns; null if the embedder has no measured threshold"""
    tokens: TokenLimits
    delete_after: Millis
    """when the provider deletes the data that on-challenge proving had to retain"""
    sigma: DecimalText | None
    """derived from the gains: the noise's standard deviation in lattice units"""
    own_documents: Literal[True] | None = None
    """true if the provider chose the policy with the help of its own documents (`OWN_DOCUMENTS`); else the field is
    absent"""

    @field_validator("own_documents", mode="before")
    @classmethod
    def _stated(cls, value: object) -> object:
        """A field that is present has one value, and no other value is equal to it: 1 is not true."""
        if value is not True:
            raise ValueError("Input should be true")
        return value

    def dump(self) -> dict[str, Json]:
        """See `Model.dump`; the statement is absent unless it is true."""
        return {k: v for k, v in super().dump().items() if k != "own_documents" or v is not None}

    @classmethod
    def parse(cls, value: object, *, field: str) -> Self:
        """Check a JSON value (`Model.parse`).

        :raises PolicyError: fields contradict one another: the noise and its dependent fields, or those of a tenant's
            mechanism; the error names the first such field
        """
        policy = super().parse(value, field=field)
        policy._agree()
        return policy

    def _agree(self) -> None:
        noise = self.noise
        expected = (
            "null, since the policy has no noise" if noise is None else "a value, since the policy has noise"
        )
        for name in ("eps_acc", "delta_acc", "calibration", "sigma"):
            if ((value := getattr(self, name)) is None) != (noise is None):
                raise PolicyError(
                    "the policy is not well-formed", field=f"policy.{name}", expected=expected, actual=value
                )
        for tenant in self.tenants:
            self.mechanism(tenant)
        self._agree_on_size()
        unit = "document" if all(tenant.documents is not None for tenant in self.tenants) else "position"
        if self.unit != unit:
            raise PolicyError(
                "the policy is not well-formed",
                field="policy.unit",
                expected=f"{unit}, since {'every' if unit == 'document' else 'not every'} tenant has a document table",
                actual=self.unit,
            )

    def _agree_on_size(self) -> None:
        """Refuse documents of several sizes under one noise, whose figures are for one size."""
        sizes = {t.tenant: m.positions_per_document for t in self.tenants if (m := self.mechanism(t)).noised}
        first = min(sizes, default="")
        for tenant, positions in sizes.items():
            if positions != sizes[first]:
                raise PolicyError(
                    "tenants with noise have documents of different sizes",
                    field=f"policy.tenants.{tenant}.documents.positions_per_document",
                    expected=f"{sizes[first]}, as for tenant {first}: the figures of the policy's noise are for one"
                    " number of positions per document, which is 1 without a document table",
                    actual=positions,
                )

    def mechanism(self, tenant: TenantPolicy) -> Mechanism:
        """A tenant's mechanism.

        :raises PolicyError: the tenant's fields contradict one another, or are out of range
        """
        return of_policy(tenant, self.noise, Tenant(tenant.capacity, self.top_k, tenant.accounts_max, self.n))

    def mechanism_of(self, tenant: str) -> Mechanism:
        """`mechanism` of the named tenant, which the policy has."""
        result = self._mechanisms.get(tenant)
        if result is None:
            result = self._mechanisms[tenant] = self.mechanism(self._by_name[tenant])
        return result

    def chain_constants(self, tenant: str) -> ChainConstants:
        """`Mechanism.chain_constants` of the named tenant, which the policy has, and its proof system: another system
        can neither open nor continue the commitments of a table."""
        return {**self.mechanism_of(tenant).chain_constants, "system": self._by_name[tenant].system}

    def tenant(self, tenant: str) -> TenantPolicy | None:
        """The named tenant's part of the policy, or None."""
        return self._by_name.get(tenant)

    @cached_property
    def _mechanisms(self) -> dict[str, Mechanism]:
        return {}

    @cached_property
    def _by_name(self) -> dict[str, TenantPolicy]:
        return {t.tenant: t for t in reversed(self.tenants)}

    def moved(self, opens_at: int) -> Policy:
        """The same policy with another opening time; all its dates move by the same difference.

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

    @property
    def noised_positions(self) -> int:
        """The maximum number of positions of a document of a tenant with noise, which all such tenants share."""
        sizes = [m.positions_per_document for m in map(self.mechanism, self.tenants) if m.noised]
        return max(sizes, default=1)

    def constants(self, tenant: TenantPolicy, dimension: int, table: ProvableConstants | None) -> Constants:
        """The constants that fix the circuits of one tenant's proofs.

        :param dimension: components of the embedder's vectors
        :param table: the constants of the embedder's table or encoder, None where it has neither
        """
        return Constants.of(
            self.mechanism(tenant),
            dimension=dimension,
            query_tokens=self.tokens.query,
            table=table,
        )

    def figures(self, windows: Mapping[str, int] | None = None) -> PolicyFigures:
        """Every figure that follows from this policy without other inputs (`mechanisms.figures.window_figures`).

        :param windows: for each tenant the number of windows of its chain to count (`Mechanism.over`); 1 if omitted
        :raises PolicyError: a parameter is outside the accountant's ranges
        """
        from rag_audit.mechanisms import accounting
        from rag_audit.mechanisms.figures import window_figures

        noise = self.noise
        figures = None
        if noise is not None:
            assert self.eps_acc is not None and self.delta_acc is not None  # `_check_noise`
            figures = accounting.policy_figures(
                noise.mechanism(),
                n=self.n,
                eps_acc=self.eps_acc,
                delta_acc=self.delta_acc,
                k=self.k_max,
                delta=self.delta_policy,
                accounts_max=max(t.accounts_max for t in self.tenants),
                positions=self.noised_positions,
            )
        return window_figures(
            figures,
            {t.tenant: self.mechanism(t).over((windows or {}).get(t.tenant, 1)) for t in self.tenants},
            n=self.n,
            k=self.k_max,
            accounts_max=max(t.accounts_max for t in self.tenants),
        )

    def check(self, dimension: int | None) -> None:
        """Refuse a policy that is not well-formed (docs/protocol.md, "Policy"). This method cannot ask the policy's
        proof systems. Parties call `proofs.policy.check_policy`, which asks them too.

        :param dimension: components of the embedder's vectors, which the manifest states and the policy does not; None
            if no manifest is available, and the score window is compared with the largest dimension
        :raises PolicyError: a field is not well-formed; the error names it, with the expected and the actual value
        """
        from rag_audit.mechanisms.accounting.exact import MAX_COMPOSITIONS

        def need(ok: bool, field: str, expected: str, actual: object) -> None:
            if not ok:
                raise PolicyError(
                    "the policy is not well-formed", field=f"policy.{field}", expected=expected, actual=actual
                )

        need(self.opens_at < self.closes_at, "closes_at", "later than opens_at", self.closes_at)
        need(self.delete_after >= self.closes_at, "delete_after", "not before closes_at", self.delete_after)
        components = MAX_DIMENSION if dimension is None else dimension
        need(1 <= components <= MAX_DIMENSION, "dimension", f"an embedder of 1..{MAX_DIMENSION}", components)
        maximum = LARGEST_PRODUCT * components
        if self.noise is not None:
            _check_table(self.noise)
        for place, scores in [("noise", self.noise), *((f"tenants.{t.tenant}.scores", t.scores)
                              for t in self.tenants)]:  # fmt: skip
            if scores is None:
                continue
            need(scores.lo < scores.hi, f"{place}.hi", "greater than lo", scores.hi)
            lattice = scores.lattice
            need(
                lattice <= MAX_LATTICE and lattice & (lattice - 1) == 0,
                f"{place}.lattice",
                f"a power of two up to {MAX_LATTICE}",
                lattice,
            )
            need(scores.hi <= maximum, f"{place}.hi", f"at most {maximum}, the largest score", scores.hi)
        need(
            (self.relevance or 1) <= maximum,
            "relevance",
            f"at most {maximum}, the largest score",
            self.relevance,
        )
        mechanisms = {tenant.tenant: self.mechanism(tenant) for tenant in self.tenants}
        for name, mechanism in mechanisms.items():
            for ok, field, expected, actual in mechanism.limits(components):
                need(ok, f"tenants.{name}.{field}", expected, actual)
        for name, limit in (("query", self.tokens.query), ("document", self.tokens.document)):
            need(limit <= MAX_TOKENS, f"tokens.{name}", f"at most {MAX_TOKENS}", limit)
        names = [t.tenant for t in self.tenants]
        need(len(set(names)) == len(names), "tenants", "each tenant once", names)
        need(names == sorted(names), "tenants", "sorted by id", names)
        need(self.top_k <= MAX_LISTED, "top_k", f"at most {MAX_LISTED}, whose receipt fits", self.top_k)
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
            columns = mechanisms[tenant.tenant].columns
            known = [*STATEMENTS, *columns]
            unknown = sorted(set(tenant.circuits) - set(known))
            need(not unknown, f"tenants.{tenant.tenant}.circuits", f"digests for {known}", unknown)
            for name in columns:
                need(name in tenant.circuits, f"tenants.{tenant.tenant}.circuits",
                     f"a digest for {name}, since positions are sampled", "none")  # fmt: skip
            own = mechanisms[tenant.tenant]
            size = own.positions_per_document if own.noised else 1
            about = "" if size == 1 else f" about each of {size} positions"
            counted = tenant.accounts_max * self.n * size
            need(counted <= MAX_COMPOSITIONS, f"tenants.{tenant.tenant}.accounts_max",
                 f"at most {MAX_COMPOSITIONS} queries of all accounts{about}", counted)  # fmt: skip
        composed = self.k_max * self.n * self.noised_positions
        need(
            composed <= MAX_COMPOSITIONS,
            "k_max",
            f"at most {MAX_COMPOSITIONS} queries of a coalition",
            composed,
        )
        p, q = self.estimator.theta
        need(0 < p < q <= 1000, "estimator.theta", "a fraction p/q in (0, 1) with q <= 1000", f"{p}/{q}")
        self._check_noise(need)

    def _check_noise(self, need: Callable[[bool, str, str, object], None]) -> None:
        """Check the noise fields: a policy with noise needs its accounting, and one without noise must have none."""
        from rag_audit.mechanisms import accounting

        if self.noise is None:
            return
        need(
            any(self.mechanism(t).noised for t in self.tenants),
            "noise",
            "null, since no tenant has noise",
            "noise",
        )
        assert self.eps_acc is not None and self.delta_acc is not None and self.calibration is not None
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
            positions=self.noised_positions,
        )


def _check_table(part: NoisePolicy) -> None:
    noise.check_gains(part.gains)
    if part.table != noise.table_digest():
        raise VersionError(
            "the noise table is unknown to this release",
            field="policy.noise.table",
            expected=noise.table_digest(),
            actual=part.table,
        )


def sigma_text(gains: list[int]) -> str:
    """sigma = 16 sqrt(sum of g^2) to six decimals, which is the policy's derived field."""
    return str((16 * Decimal(sum(g * g for g in gains)).sqrt()).quantize(Decimal("0.000001")))
