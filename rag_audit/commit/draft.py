"""Drafting a policy with the usual constants and its derived fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from rag_audit.mechanisms import Mechanism
from rag_audit.mechanisms.base import Scores, Tenant
from rag_audit.mechanisms.noise import Noise
from rag_audit.models.constants import NORM_FACTOR, Constants
from rag_audit.models.policy import DAY_MS, DEFAULT_SCORE_WINDOW, Calibration, Policy, sigma_text
from rag_audit.proofs.description import default_system
from rag_audit.proofs.policy import certificate_of
from rag_audit.proofs.proving import backend
from rag_audit.relation import noise
from rag_audit.relation.scores import LARGEST_PRODUCT


def exact_scores(dimension: int) -> Scores:
    """The score window of a tenant without noise: each positive score has a step of its own, so ranks are exact."""
    hi = LARGEST_PRODUCT * dimension
    return Scores(0, hi, 1 << (hi - 1).bit_length())


def draft_policy(
    *,
    window: str,
    opens_at: int,
    closes_at: int,
    capacities: Mapping[str, int],
    n: int,
    k_max: int,
    eps_acc: str,
    delta_acc: str = "1e-7",
    delta_policy: str = "1e-5",
    accounts_max: int = 16,
    gains: Sequence[int] = (1, 8),
    lattice: int = 64,
    score_window: tuple[int, int] = DEFAULT_SCORE_WINDOW,
    dimension: int = 256,
    norm_factor: int | None = NORM_FACTOR,
    top_k: int = 5,
    system: str | Mapping[str, str] | None = None,
    proving: Literal["eager", "on-challenge"] = "on-challenge",
    calibration: Calibration = "exact",
    theta: tuple[int, int] = (4, 5),
    tau: int = 0,
    tau_unit: Literal["positions", "seconds"] = "positions",
    certificate: tuple[str, int] | None = None,
    tokens: tuple[int, int] = (64, 512),
    retention_days: int = 30,
    mechanisms: Mapping[str, Mechanism] | None = None,
) -> Policy:
    """A policy with the usual constants, its derived fields filled in.

    :param capacities: committed positions by tenant
    :param system: proof system of all tenants, or of each tenant; None for the default one
    :param score_window: lo and hi in raw units (`DEFAULT_SCORE_WINDOW`)
    :param norm_factor: factor of the embedder's integer normalisation; None where it has none, and A1 is not proved
    :param certificate: system of the coalition proof, and its maximum number of query records
    :param mechanisms: each tenant's mechanism before it is `placed`, in a policy of version 2; None writes one of
        version 1, with the noise for every tenant
    """
    lo, hi = score_window

    systems = system if isinstance(system, Mapping) else dict.fromkeys(capacities, system or default_system())
    noisy = mechanisms is None or any(m.noised for m in mechanisms.values())

    def tenant_part(name: str, capacity: int) -> dict[str, object]:
        own = Noise() if mechanisms is None else mechanisms[name]
        mechanism = own.placed(
            Tenant(capacity, top_k, accounts_max), gains=tuple(gains), noised=Scores(lo, hi, lattice),
            exact=exact_scores(dimension),
        )  # fmt: skip
        constants = Constants.of(
            mechanism, dimension=dimension, query_tokens=tokens[0], norm_factor=norm_factor
        )
        part: dict[str, object] = {
            "tenant": name,
            "capacity": capacity,
            "accounts_max": accounts_max,
            "system": systems[name],
            "circuits": backend(systems[name]).circuits(constants),
        }
        return part if mechanisms is None else part | mechanism.fields()

    fields = {
        "v": 1 if mechanisms is None else 2,
        "window": window,
        "opens_at": opens_at,
        "closes_at": closes_at,
        "eps_acc": eps_acc if noisy else None,
        "delta_acc": delta_acc if noisy else None,
        "n": n,
        "k_max": k_max,
        "delta_policy": delta_policy,
        "unit": "position",
        "adjacency": "replace-one",
        "top_k": top_k,
        "noise": {
            "version": "dgs-1",
            "table": noise.table_digest(),
            "gains": list(gains),
            "lattice": lattice,
            "lo": lo,
            "hi": hi,
        }
        if noisy
        else None,
        "calibration": calibration if noisy else None,
        "tenants": [tenant_part(name, capacity) for name, capacity in sorted(capacities.items())],
        "proving": proving,
        "estimator": {
            "theta": list(theta),
            "tau": tau,
            "tau_unit": tau_unit,
            "certificate": None if certificate is None else certificate_of(*certificate, dimension, theta),
        },
        "tokens": {"query": tokens[0], "document": tokens[1]},
        "delete_after": closes_at + retention_days * DAY_MS,
        "sigma": sigma_text(list(gains)) if noisy else None,
    }
    return Policy.parse(fields, field="policy")
