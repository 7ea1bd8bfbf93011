"""Checks of policies with an integer encoder, whose vectors are proved for each record."""

from __future__ import annotations

from rag_audit._internal.errors import PolicyError
from rag_audit.models.constants import Constants
from rag_audit.models.manifest import EncoderConstants
from rag_audit.proofs.backends import proof_system
from rag_audit.proofs.description import default_system


def check_encoder(tenant: str, system: str, constants: Constants) -> None:
    """Refuse a tenant of an integer encoder whose proof system does not prove A1 for its constants.

    :param constants: the constants of the tenant's proofs; others than an integer encoder's pass
    :raises PolicyError: the query limit is no length class, or the system does not prove the encoder
    """
    if not isinstance(constants.table, EncoderConstants):
        return
    constants.table.check_tokens(constants.query_tokens)
    if "embed" not in proof_system(system).circuits(constants):
        raise PolicyError("the proof system does not prove the vectors of the integer encoder",
                          field=f"policy.tenants.{tenant}.system", expected=default_system(), actual=system,
                          hint=f"rag-audit provider policy new --system {default_system()}")  # fmt: skip
