"""Drafting a policy with the usual constants and its derived fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from rag_audit.commit.provable import check_encoder
from rag_audit.mechanisms import Mechanism
from rag_audit.mechanisms.base import Scores, Tenant
from rag_audit.mechanisms.noise import Noise
from rag_audit.models.constants import Constants
from rag_audit.models.manifest import DEFAULT_TABLE, ProvableConstants
from rag_audit.models.policy import DAY_MS, DEFAULT_SCORE_WINDOW, Calibration, Policy, sigma_text
from rag_audit.proofs.coalition import coalition_proof_policy
from rag_audit.proofs.description import default_system
from rag_audit.proofs.proving import backend
from rag_audit.relation.noise import table_digest
from rag_audit.relation.scores import LARGEST_PRODUCT


def exact_scores(dimension: int) -> Scores:
    """The score window of a tenant without noise: each positive score has a step of its own, so ranks are exact."""
    hi = LARGEST_PRODUCT * dimension
    return Scores(0, hi, 1 << (hi - 1).bit_length())


@dataclass(frozen=True)
class Period:
    """The time of a window.

    :param window: the window's id
    :param opens_at: milliseconds since the epoch, as is `closes_at`
    :param retention_days: days after the closing until the provider deletes the data that proving needs
    """

    window: str
    opens_at: int
    closes_at: int
    retention_days: int = 30


@dataclass(frozen=True)
class Tenants:
    """The tenants of a policy.

    :param capacities: committed positions by tenant
    :param accounts_max: accounts that a tenant may ever have in the window
    :param system: proof system of all tenants, or of each tenant; None for the default one
    :param mechanisms: each tenant's mechanism before it is `placed`; None gives every tenant the noise
    """

    capacities: Mapping[str, int]
    accounts_max: int = 16
    system: str | Mapping[str, str] | None = None
    mechanisms: Mapping[str, Mechanism] | None = None

    @property
    def noisy(self) -> bool:
        """Whether a tenant has noise."""
        return any(self.mechanism_of(tenant).noised for tenant in self.capacities)

    @property
    def noised_positions(self) -> int:
        """The largest number of positions of a document of a tenant with noise (`Policy.noised_positions`)."""
        own = map(self.mechanism_of, self.capacities)
        return max((m.positions_per_document for m in own if m.noised), default=1)

    def mechanism_of(self, tenant: str) -> Mechanism:
        """A tenant's mechanism before it is `placed`."""
        return Noise() if self.mechanisms is None else self.mechanisms[tenant]

    def system_of(self, tenant: str) -> str:
        """A tenant's proof system."""
        if isinstance(self.system, Mapping):
            return self.system[tenant]
        return self.system or default_system()


@dataclass(frozen=True)
class PrivacyTarget:
    """The number of queries that the policy allows, and the epsilon that its noise has for them.

    :param n: queries an account may make in the window
    :param k_max: the largest coalition that the bound covers
    :param eps_acc: epsilon of one account, at `delta_acc`
    :param delta_policy: delta of eps_audit
    :param calibration: the method that chose the noise
    """

    n: int
    k_max: int
    eps_acc: str
    delta_acc: str = "1e-7"
    delta_policy: str = "1e-5"
    calibration: Calibration = "exact"


@dataclass(frozen=True)
class NoiseParameters:
    """The noise and the scores that it is added to.

    :param lattice: R, the number of steps of a score
    :param score_window: lo and hi in raw units (`DEFAULT_SCORE_WINDOW`)
    """

    gains: Sequence[int] = (1, 8)
    lattice: int = 64
    score_window: tuple[int, int] = DEFAULT_SCORE_WINDOW


@dataclass(frozen=True)
class Embedding:
    """The embedder's properties that a policy depends on.

    :param dimension: components of a vector
    :param table: the constants of the embedder's table or encoder; None where it has neither, and A1 is not proved
    :param tokens: the numbers of tokens at which queries and documents are truncated
    :param relevance: minimum raw score of a passage that a retriever returns; None if it was not measured
    """

    dimension: int = 768
    table: ProvableConstants | None = DEFAULT_TABLE
    tokens: tuple[int, int] = (64, 512)
    relevance: int | None = None


@dataclass(frozen=True)
class EstimatorParameters:
    """The rule by which the coalition estimator calls two queries near.

    :param theta: the cosine from which they are, as the fraction (p, q)
    :param tau: the maximum span between them, in `tau_unit`; 0 is the whole window
    :param coalition_proof: system of the coalition proof, and its maximum number of query records
    """

    theta: tuple[int, int] = (4, 5)
    tau: int = 0
    tau_unit: Literal["positions", "seconds"] = "positions"
    coalition_proof: tuple[str, int] | None = None

    def fields(self, dimension: int) -> dict[str, object]:
        """The estimator's part of a policy, over vectors of a dimension."""
        coalition_proof = self.coalition_proof
        return {
            "theta": list(self.theta),
            "tau": self.tau,
            "tau_unit": self.tau_unit,
            "coalition_proof": None
            if coalition_proof is None
            else coalition_proof_policy(*coalition_proof, dimension, self.theta),
        }


def draft_policy(
    period: Period,
    tenants: Tenants,
    target: PrivacyTarget,
    *,
    noise: NoiseParameters = NoiseParameters(),
    embedding: Embedding = Embedding(),
    estimator: EstimatorParameters = EstimatorParameters(),
    top_k: int = 5,
    proving: Literal["eager", "on-challenge"] = "on-challenge",
    own_documents: bool = False,
) -> Policy:
    """A policy with the usual constants, its derived fields filled in.

    :param top_k: positions in an answer
    :param proving: whether records are proved before their answers leave, or once a verifier has drawn them
    :param own_documents: whether the provider chose the policy with the help of its own documents
    """
    lo, hi = noise.score_window

    def tenant_part(name: str, capacity: int) -> dict[str, object]:
        mechanism = tenants.mechanism_of(name).placed(
            Tenant(capacity, top_k, tenants.accounts_max, target.n), gains=tuple(noise.gains),
            noised=Scores(lo, hi, noise.lattice), exact=exact_scores(embedding.dimension),
        )  # fmt: skip
        constants = Constants.of(
            mechanism, dimension=embedding.dimension, query_tokens=embedding.tokens[0],
            table=embedding.table,
        )  # fmt: skip
        system = tenants.system_of(name)
        check_encoder(name, system, constants)
        return {
            "tenant": name,
            "capacity": capacity,
            "accounts_max": tenants.accounts_max,
            "system": system,
            "circuits": backend(system).circuits(constants),
            **mechanism.fields(),
        }

    noisy = tenants.noisy
    by_document = all(tenants.mechanism_of(tenant).table is not None for tenant in tenants.capacities)
    fields = {
        "v": 1,
        "window": period.window,
        "opens_at": period.opens_at,
        "closes_at": period.closes_at,
        "eps_acc": target.eps_acc if noisy else None,
        "delta_acc": target.delta_acc if noisy else None,
        "n": target.n,
        "k_max": target.k_max,
        "delta_policy": target.delta_policy,
        "unit": "document" if by_document else "position",
        "adjacency": "replace-one",
        "top_k": top_k,
        "noise": {
            "version": "dgs-1",
            "table": table_digest(),
            "gains": list(noise.gains),
            "lattice": noise.lattice,
            "lo": lo,
            "hi": hi,
        }
        if noisy
        else None,
        "calibration": target.calibration if noisy else None,
        "tenants": [tenant_part(name, capacity) for name, capacity in sorted(tenants.capacities.items())],
        "proving": proving,
        "estimator": estimator.fields(embedding.dimension),
        "relevance": embedding.relevance,
        "tokens": {"query": embedding.tokens[0], "document": embedding.tokens[1]},
        "delete_after": period.closes_at + period.retention_days * DAY_MS,
        "sigma": sigma_text(list(noise.gains)) if noisy else None,
        **({"own_documents": True} if own_documents else {}),
    }
    return Policy.parse(fields, field="policy")
