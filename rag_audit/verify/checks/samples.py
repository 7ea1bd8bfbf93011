"""`proof.kept.*`: the positions that a sampled tenant keeps are the coins of the committed seed and the beacon."""

from __future__ import annotations

from rag_audit._internal.errors import ExitCode, RagAuditError
from rag_audit.models.constants import KEPT
from rag_audit.models.records import KeptEntry
from rag_audit.proofs.backends import SYSTEMS, backend
from rag_audit.proofs.statements.sample import kept_public
from rag_audit.proofs.statements.tenant import KeptCommitment, tenant_public
from rag_audit.verify.case import Case, Status, refusal


def check(case: Case) -> dict[str, KeptCommitment | None]:
    """Run the group, in sampled mode too, since every record of the tenant is about these positions.

    :returns: the accepted commitment of each sampled tenant, None where there is none
    """
    found: dict[str, KeptCommitment | None] = {}
    for part in case.policy.tenants:
        if not case.policy.mechanism(part).sampled or part.system not in SYSTEMS:
            continue
        tenant = part.tenant
        check_id, entry = f"proof.kept.{tenant}", case.kept.get(tenant)
        found[tenant] = None if entry is None else _open(case, entry, check_id)
        if entry is None:
            case.record(check_id, Status.UNDECIDED, "a commitment in the ledger", "none")
    return found


def _open(case: Case, entry: KeptEntry, check_id: str) -> KeptCommitment | None:
    place = f"proofs.{entry.seq}.{KEPT}"
    value = case.proofs_of(str(entry.seq))
    if not isinstance(value, dict) or set(value) != {KEPT}:
        found = "none" if value is None else "another value"
        case.record(check_id, Status.UNDECIDED, "a proof of the kept positions", found, place)
        return None
    part, beacon = case.policy.tenant(entry.tenant), case.beacons().get(0)
    assert part is not None
    if entry.tenant not in case.tenants or beacon is None:
        case.record(check_id, Status.UNDECIDED, "the tenant and the window's beacon", "missing", place)
        return None
    system = backend(part.system)
    try:
        tenant = tenant_public(case.tenants[entry.tenant], policy=case.policy, manifest=case.manifest,
                               opening_digest=case.opening_digest)  # fmt: skip
        named, circuit = part.circuits.get(KEPT), system.circuits(tenant.constants).get(KEPT)
        if named != circuit:
            case.record(check_id, Status.UNDECIDED, circuit, named, "policy.tenants")
            return None
        public = kept_public(tenant, case.policy, opening=case.opening, beacon=bytes.fromhex(beacon.value))
        opened = system.open_kept(
            public, entry.commitment, value[KEPT], case.file.verification_keys, case.trust.pins,
            engine=case.engine, field=place,
        )  # fmt: skip
    except RagAuditError as exc:
        status = Status.FAIL if exc.exit_code is ExitCode.FAIL else Status.UNDECIDED
        case.record(check_id, status, exc.expected or "a proof that holds", refusal(exc), exc.field or place)
        return None
    case.setups.add(opened.setup or "transparent")
    case.report(check_id, True, entry.commitment, f"{entry.commitment} holds")
    return opened.commitment
