"""What a policy's proof systems have to say of it: its constants, its circuits, its coalition certificate."""

from __future__ import annotations

from rag_audit.errors import PolicyError
from rag_audit.formats.policy import Policy
from rag_audit.proofs.coalition import coalition_system
from rag_audit.proofs.interface import proof_system
from rag_audit.relation.scores import MAX_DIMENSION


def check_policy(policy: Policy, dimension: int | None) -> None:
    """Refuse a policy that is not well-formed, or that its tenants' proof systems cannot prove anything for.

    :param dimension: as `Policy.check`
    :raises PolicyError: naming the field, what was expected and what was found
    """
    policy.check(dimension)
    for tenant in policy.tenants:
        constants = policy.constants(tenant, MAX_DIMENSION if dimension is None else dimension, None)
        try:
            proof_system(tenant.system).check_constants(constants)
        except PolicyError as exc:
            raise PolicyError(f"the policy is not well-formed: {exc.message}",
                              field=f"policy.tenants.{tenant.tenant} ({exc.field})",
                              expected=exc.expected, found=exc.found) from exc  # fmt: skip


def check_certificate(policy: Policy, dimension: int) -> None:
    """Refuse a policy whose coalition certificate this release could not make when the window is closed.

    :raises PolicyError: no such system or circuit, or another release's
    """
    wanted = policy.estimator.certificate
    if wanted is None:
        return
    p, q = policy.estimator.theta
    made = certificate_of(wanted.system, wanted.records, dimension, (p, q))["circuit"]
    if wanted.circuit != made:
        raise PolicyError("another circuit than this release's", field="policy.estimator.certificate.circuit",
                          expected=made, found=wanted.circuit)  # fmt: skip


def certificate_of(system: str, records: int, dimension: int, theta: tuple[int, int]) -> dict[str, object]:
    """The policy's part that asks for a coalition certificate of this release.

    :raises PolicyError: the system has none for these parameters
    """
    circuit = coalition_system(system).digest(records=records, dimension=dimension, theta=theta)
    return {"system": system, "records": records, "circuit": circuit}
