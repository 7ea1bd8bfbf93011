"""The circuits that a policy names, and the circuits with a `main` component in circuits/main."""

from __future__ import annotations

from rag_audit.models.manifest import DEFAULT_TABLE, ProvableConstants
from rag_audit.models.policy import Policy
from rag_audit.proofs.backends.groth16 import coalition
from rag_audit.proofs.backends.groth16.instance import (
    CoalitionInstance,
    DocumentsInstance,
    EmbedInstance,
    Instance,
    NamesInstance,
    RetrieveInstance,
    SampleInstance,
)
from rag_audit.proofs.backends.groth16.shared import record_instance
from rag_audit.proofs.backends.groth16.system import instances
from rag_audit.proofs.statements.coalition import CoalitionSize

SHIPPED: tuple[Instance, ...] = (
    *(
        RetrieveInstance(capacity, 256, 5, gains, 101, 810, lattice)
        for capacity in (64, 256)
        for gains, lattice in (((1,), 64), ((1, 8, 64), 128))
    ),
    RetrieveInstance(1024, 256, 5, (1,), 101, 810, 64),
    RetrieveInstance(256, 256, 5, (1, 8, 64), 101, 810, 128, queries=4),
    *(SampleInstance(capacity) for capacity in (64, 256)),
    DocumentsInstance(64, 64),
    DocumentsInstance(256, 64),
    NamesInstance(64, 64),
    *(
        RetrieveInstance(capacity, 256, 5, gains, 101, 810, lattice, sampled)
        for capacity in (64, 256)
        for gains, lattice, sampled in (((), 64, True), ((1,), 64, True), ((), 64, False))
    ),
    EmbedInstance(24),
    EmbedInstance(64),
    CoalitionInstance(16),
    CoalitionInstance(64),
)
"""The instances with a `main` component in circuits/main."""


def policy_instances(
    policy: Policy,
    dimension: int = 768,
    table: ProvableConstants | None = DEFAULT_TABLE,
    *,
    batch: int | None = None,
) -> list[Instance]:
    """The Groth16 circuits that the policy names, each once. Each of them needs keys.

    :param dimension: as `Policy.constants`
    :param table: as `Policy.constants`
    :param batch: add the tenants' circuits for batches of this many records
    :raises PolicyError: no circuit proves batches of that size
    """
    named = {
        instance.digest(): instance
        for tenant in policy.tenants
        if tenant.system == "groth16"
        for name, instance in instances(policy.constants(tenant, dimension, table)).items()
        if name in tenant.circuits
    }
    if batch is not None:
        for tenant in policy.tenants:
            if tenant.system == "groth16":
                many = record_instance(policy.constants(tenant, dimension, table), batch)
                named[many.digest()] = many
    coalition_proof = policy.estimator.coalition_proof
    if coalition_proof is not None and coalition_proof.system == "groth16":
        p, q = policy.estimator.theta
        result = coalition.instance(CoalitionSize(coalition_proof.records, dimension, (p, q)))
        named[result.digest()] = result
    return list(named.values())


def names_instances(policy: Policy) -> list[NamesInstance]:
    """The circuits of names of documents, one for each size of a document table of a Groth16 tenant.

    No policy names them, because no window has their proofs: the service proves names at an account's request, and the
    account pins the key.
    """
    named = {}
    for tenant in policy.tenants:
        table = policy.mechanism(tenant).table
        if tenant.system == "groth16" and table is not None:
            instance = NamesInstance(tenant.capacity, table.rows)
            named[instance.digest()] = instance
    return list(named.values())
