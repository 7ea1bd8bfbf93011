"""Checks of a policy by its proof systems: the constants of each tenant."""

from __future__ import annotations

from rag_audit._internal.errors import PolicyError
from rag_audit.models.policy import Policy
from rag_audit.proofs.backends import proof_system
from rag_audit.relation.scores import MAX_DIMENSION


def check_policy(policy: Policy, dimension: int | None) -> None:
    """Refuse a policy that is not well-formed, or has tenants with proof systems that cannot prove their records.

    :param dimension: as `Policy.check`
    :raises PolicyError: a field is not well-formed; the error names it, with the expected and the actual value
    """
    policy.check(dimension)
    for tenant in policy.tenants:
        constants = policy.constants(tenant, MAX_DIMENSION if dimension is None else dimension, None)
        try:
            proof_system(tenant.system).check_constants(constants)
        except PolicyError as exc:
            raise PolicyError(f"the policy is not well-formed: {exc.message}",
                              field=f"policy.tenants.{tenant.tenant} ({exc.field})",
                              expected=exc.expected, actual=exc.actual) from exc  # fmt: skip
