"""The Groth16 circuits that a policy asks for."""

from __future__ import annotations

from rag_audit.models.policy import Policy
from rag_audit.proofs.backends.groth16 import coalition
from rag_audit.proofs.backends.groth16.instance import EmbedInstance, Instance
from rag_audit.proofs.backends.groth16.shared import many_instance
from rag_audit.proofs.backends.groth16.system import instances
from rag_audit.proofs.statements.coalition import CoalitionSize


def policy_instances(
    policy: Policy,
    dimension: int = 256,
    norm_factor: int | None = EmbedInstance.norm_factor,
    *,
    together: int | None = None,
) -> list[Instance]:
    """The Groth16 circuits that the policy names, each once, for which keys are needed.

    :param dimension: as `Policy.constants`
    :param norm_factor: as `Policy.constants`
    :param together: add the tenants' circuits that prove this many records at once
    :raises PolicyError: no circuit proves that many records
    """
    named = {
        instance.digest(): instance
        for tenant in policy.tenants
        if tenant.system == "groth16"
        for name, instance in instances(policy.constants(tenant, dimension, norm_factor)).items()
        if name in tenant.circuits
    }
    if together is not None:
        for tenant in policy.tenants:
            if tenant.system == "groth16":
                many = many_instance(policy.constants(tenant, dimension, norm_factor), together)
                named[many.digest()] = many
    certificate = policy.estimator.certificate
    if certificate is not None and certificate.system == "groth16":
        p, q = policy.estimator.theta
        made = coalition.instance(CoalitionSize(certificate.records, dimension, (p, q)))
        named[made.digest()] = made
    return list(named.values())
