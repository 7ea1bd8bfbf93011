"""`proof.sample.*`: the sampled positions of a tenant are the Bernoulli bits of the committed seed and the beacon. The
same holds for every other column that a window commits to, by the column's name (`mechanisms.COLUMNS`)."""

from __future__ import annotations

from rag_audit._internal.errors import ExitCode, RagAuditError
from rag_audit.proofs.backends import SYSTEMS, proof_system
from rag_audit.proofs.interface import FileProof
from rag_audit.proofs.statements import COLUMNS
from rag_audit.proofs.statements.document_table import OpenedTable
from rag_audit.proofs.statements.tenant import ColumnCommitment, tenant_public
from rag_audit.verify.case import Case, Status, refusal


def check(case: Case) -> dict[str, dict[str, ColumnCommitment]]:
    """Run the group, in sampled mode too, since every record of a tenant may be about its columns.

    :returns: the accepted commitments of each tenant by column
    """
    result: dict[str, dict[str, ColumnCommitment]] = {}
    for part in case.policy.tenants:
        if part.system not in SYSTEMS:
            continue
        opened = {name: check_column(case, part.tenant, name) for name in case.policy.mechanism(part).columns}
        result[part.tenant] = {name: column for name, column in opened.items() if column is not None}
    return result


def check_column(case: Case, owner: str, name: str) -> ColumnCommitment | None:
    """Check a tenant's column.

    :returns: its commitment, if the proof is valid
    """
    check_id, entry = f"proof.{name}.{owner}", case.columns.get((owner, name))
    if entry is None:
        case.record(check_id, Status.UNDECIDED, f"a {name} entry in the ledger", f"no {name} entry")
        return None
    place = f"proofs.{entry.seq}.{name}"
    value = case.proofs_of(str(entry.seq))
    if not isinstance(value, dict) or set(value) != {name}:
        result = "the file has no such proof" if value is None else "the file has another value"
        case.record(check_id, Status.UNDECIDED, f"a proof of the {name} positions", result, place)
        return None
    part, beacon = case.policy.tenant(owner), case.beacons().get(0)
    assert part is not None
    if owner not in case.tenants or beacon is None:
        case.record(
            check_id, Status.UNDECIDED, f"tenant {owner} and a beacon", "one of them is missing", place
        )
        return None
    try:
        system = proof_system(part.system)
        tenant = tenant_public(case.tenants[owner], policy=case.policy, manifest=case.manifest,
                               header_digest=case.header_digest)  # fmt: skip
        named, circuit = part.circuits.get(name), system.circuits(tenant.constants).get(name)
        if named != circuit:
            case.record(check_id, Status.UNDECIDED, circuit, named, "policy.tenants")
            return None
        public = COLUMNS[name](tenant, case.policy, header=case.header, beacon=bytes.fromhex(beacon.value))
        opened = system.column(name).open(
            public, entry.commitment, FileProof(value[name], place), case.file.verification_keys, case.trust.pins,
            engine=case.engine,
        )  # fmt: skip
    except RagAuditError as exc:
        status = Status.FAIL if exc.exit_code is ExitCode.FAIL else Status.UNDECIDED
        case.record(check_id, status, exc.expected or "a valid proof", refusal(exc), exc.field or place)
        return None
    carried = opened.carried.digest if isinstance(opened, OpenedTable) else None
    if carried != entry.carried:
        case.report(
            check_id, False, f"carried = {carried}", f"carried = {entry.carried}", f"entries[{entry.seq}]"
        )
        return None
    case.setups.add(opened.setup or "transparent")
    case.report(check_id, True, entry.commitment, f"a valid proof of {entry.commitment}")
    return opened.commitment
