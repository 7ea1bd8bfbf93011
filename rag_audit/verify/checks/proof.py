"""`proof.*`: every record's proof verifies against public inputs that are rebuilt here, never read from the proof."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence, Set

from rag_audit._internal.canonical import digest_hex
from rag_audit._internal.errors import ExitCode, RagAuditError
from rag_audit._internal.words import counted
from rag_audit.models.constants import STATEMENTS
from rag_audit.models.manifest import ENCODER_ARTEFACT, PUBLISHED, EmbedderManifest, manifest_digest
from rag_audit.models.records import QueryRecord
from rag_audit.models.trust import Trust
from rag_audit.proofs.backends import SYSTEMS, proof_system
from rag_audit.proofs.batch import Lazy
from rag_audit.proofs.interface import FileProof, ProofSystem, places
from rag_audit.proofs.statements.retrieve import RecordPublic, record_public
from rag_audit.proofs.statements.tenant import ColumnCommitment, TenantPublic, proof_constants, tenant_public
from rag_audit.verify.case import Case, Status, refusal
from rag_audit.verify.checks import columns
from rag_audit.verify.checks.challenge import required_records

Given = Mapping[int, Mapping[str, int]]
"""The statements that a record's proofs in the file are of, by its seq, and for how many records each proof is."""


def check(case: Case) -> None:
    """Run the group. It reads the proofs twice: once for their subjects, and a second time to verify them, because
    the proofs of a large window do not fit into memory."""
    case.figures["proofs"] = "none"
    requested = required_records(case)
    given, unknown, unpinned = _given(case)
    if requested is not None:
        case.required = frozenset(requested)
        case.tallies["requested"] = len(requested)
        _present(case, requested, given)
    strangers = unknown + _unknown_entries(case, given)
    case.record("proof.records", Status.UNDECIDED if strangers else Status.PASS,
                "only proofs of query records, for their tenants' statements",
                f"other proofs: {', '.join(strangers[:3])}" if strangers else "each proof has its record")  # fmt: skip
    _eager(case, unpinned)
    _chains(case)
    accepted = columns.check(case)
    case.checking.expect(sum(map(len, given.values())))
    valid = _valid(case, given, accepted)
    proved = [q for q in case.queries if (q.seq, "retrieve") in valid]
    tenants = {q.tenant for q in proved}
    systems = {p.system for p in case.policy.tenants if p.tenant in tenants}
    case.figures["proofs"] = "+".join(sorted(systems)) or "none"
    case.figures["proved"] = len(proved)
    if requested is not None:
        _query_embedding(case, requested, valid)


def check_records(case: Case, tenant: str, accepted: Mapping[str, ColumnCommitment]) -> None:
    """Check that every record of a tenant has a valid proof of `retrieve`, in a window before the verified one.

    :param accepted: the tenant's accepted columns by name
    """
    given, *_ = _given(case)
    records = [q for q in case.queries if q.tenant == tenant]
    missing = [q.seq for q in records if "retrieve" not in given.get(q.seq, ())]
    if missing:
        case.record("proof.present", Status.UNDECIDED, f"proofs of {counted(len(records), 'record')} of {tenant}",
                    f"{counted(len(missing), 'record')} without a proof, the first: record {missing[0]}",
                    f"record {missing[0]}")  # fmt: skip
    elif records:
        _verify(case, tenant, "retrieve", [(q, given[q.seq]["retrieve"]) for q in records], accepted)


def _given(case: Case) -> tuple[Given, list[str], list[int]]:
    """Returns the proofs by record and statement, the unknown entries under `proofs`, and the records with a proof
    that does not match the digest in the record."""
    records = {str(q.seq): q for q in case.queries}
    of_columns = {str(e.seq) for e in case.columns.values()}
    given: dict[int, Mapping[str, int]] = {}
    same: dict[tuple[tuple[str, int], ...], Mapping[str, int]] = {}
    unknown, unpinned = [], []
    for seq in case.file.proofs:
        record = records.get(seq)
        if record is None:
            if seq not in of_columns and not case.partial:
                unknown.append(seq)
            continue
        if (value := case.proofs_of(seq)) is None:
            continue
        if record.proof is not None and digest_hex(value) != record.proof:
            unpinned.append(record.seq)
        if isinstance(value, dict):
            result = tuple((n, places(n, p)) for n, p in value.items())
            given[record.seq] = same.setdefault(result, dict(result))
    return given, sorted(unknown), sorted(unpinned)


def _system(case: Case, tenant: str) -> ProofSystem | None:
    """The proof system of a tenant, or None where this release knows neither."""
    part = case.policy.tenant(tenant)
    return None if part is None or part.system not in SYSTEMS else proof_system(part.system)


def _present(case: Case, requested: Set[int], given: Given) -> None:
    missing = [
        (q.seq, name)
        for q in case.queries
        if q.seq in requested
        for name in _statements(case, q.tenant)
        if name not in given.get(q.seq, ())
    ]
    short = {seq for seq, _ in missing}
    case.record(
        "proof.present",
        Status.UNDECIDED if missing else Status.PASS,
        f"proofs of every statement for each of {len(requested)} records",
        f"{len(requested) - len(short)} of {len(requested)} records have all proofs",
        f"record {missing[0][0]} ({missing[0][1]})" if missing else None,
    )


def _chains(case: Case) -> None:
    """Check that every record of a tenant with pooled listing has to be proved. One unproved record could claim that
    no row is listed, and list every document a second time."""
    pooling = {t.tenant for t in case.policy.tenants if case.policy.mechanism(t).pools}
    requested = sorted({q.tenant for q in case.queries} & pooling)
    if not requested:
        return
    whole = case.trust.require.mode == "full"
    case.record("proof.chain", Status.PASS if whole else Status.UNDECIDED,
                "full mode for tenants with pooled listing",
                "full mode" if whole else f"sampled mode for {', '.join(requested)}")  # fmt: skip


def _statements(case: Case, tenant: str) -> list[str]:
    """The statements that the policy asks to be proved of a tenant's records."""
    part = case.policy.tenant(tenant)
    return [name for name in STATEMENTS if part is None or name in part.circuits]


def _unknown_entries(case: Case, given: Given) -> list[str]:
    """The proofs for names that are no statement of their record's tenant."""
    return [
        f"{q.seq}.{name}"
        for q in case.queries
        for name in given.get(q.seq, ())
        if name not in _statements(case, q.tenant)
    ]


def _query_embedding(case: Case, requested: Set[int], valid: set[tuple[int, str]]) -> None:
    """Raise the level of A1 where every record that needs proofs has a valid proof of `embed`."""
    if not requested or any((seq, "embed") not in valid for seq in requested):
        return
    artefacts = case.manifest["embedder"]["artefacts"]
    tenants = {q.tenant for q in case.queries if q.seq in requested}
    parts = [p for p in case.policy.tenants if p.tenant in tenants]
    tables = {proof_system(p.system).artefact(proof_constants(case.policy, p, case.manifest)) for p in parts}
    pinned = all(case.trust.pins.artefact(table) == artefacts[table] for table in tables)
    if pinned and known_manifest(case.manifest["embedder"], case.trust):
        case.figures["query_embedding"] = "proved"
    elif ENCODER_ARTEFACT not in tables:
        case.figures["query_embedding"] = "proved(unpinned)"
    else:  # the provider chose the constants, and receipts decide the level
        case.unpinned_model = "manifest"


def known_manifest(part: EmbedderManifest, trust: Trust) -> bool:
    """Whether the manifest, without the policy's token limits, is the one that trust.toml pins or, without such a pin,
    this release's own. A proof of `embed` is about the quantiser and the commitment that the manifest names.
    """
    pin = trust.pins.manifest
    return manifest_digest(part) == (PUBLISHED.get(part["kind"]) if pin is None else pin)


def _eager(case: Case, wrong: Sequence[int]) -> None:
    pinned = sum(q.proof is not None for q in case.queries)
    case.report("proof.pinned", not wrong, "each early proof has the digest in its record",
                f"record {wrong[0]} has another digest" if wrong else counted(pinned, "early proof"))  # fmt: skip


def _valid(
    case: Case, given: Given, columns: Mapping[str, Mapping[str, ColumnCommitment]]
) -> set[tuple[int, str]]:
    """Verify every proof in the file by tenant and statement, and return the valid ones.

    :param columns: the accepted columns by tenant and name; no record that needs a missing column counts as proved
    """
    groups: dict[str, list[QueryRecord]] = defaultdict(list)
    for record in case.queries:
        if not given.get(record.seq):
            continue
        if _system(case, record.tenant) is None or record.tenant not in case.tenants:
            case.record("proof.system", Status.UNDECIDED, f"a known tenant with {' or '.join(SYSTEMS)}",
                        "an unknown tenant or proof system", f"record {record.seq}")  # fmt: skip
            continue
        groups[record.tenant].append(record)
    valid: set[tuple[int, str]] = set()
    for tenant, members in sorted(groups.items()):
        for name in _statements(case, tenant):
            proved = [(r, given[r.seq][name]) for r in members if name in given[r.seq]]
            if proved and name == "embed" and _unpinned_encoder(case, tenant):
                case.unpinned_model = "model"
            elif proved:
                valid |= {(seq, name) for seq in _verify(case, tenant, name, proved, columns.get(tenant))}
    return valid


def _unpinned_encoder(case: Case, tenant: str) -> bool:
    """Whether trust.toml pins another integer encoder than a tenant's, or none. Then proofs of A1 establish nothing,
    and no code reads the pins, which the provider chose."""
    part = case.policy.tenant(tenant)
    assert part is not None  # as for every tenant of a group
    artefact = proof_system(part.system).artefact(proof_constants(case.policy, part, case.manifest))
    committed = case.manifest["embedder"]["artefacts"].get(artefact)
    return artefact == ENCODER_ARTEFACT and case.trust.pins.artefact(artefact) != committed


def _verify(
    case: Case,
    tenant: str,
    name: str,
    proved: Sequence[tuple[QueryRecord, int]],
    columns: Mapping[str, ColumnCommitment] | None,
) -> set[int]:
    """Verify one statement's proofs of one tenant, and return the records with a valid proof.

    :param proved: the records, each with the number of records that its proof is for
    """
    prefix = "proof" if name == "retrieve" else f"proof.{name}"
    part = case.policy.tenant(tenant)
    assert part is not None
    system = proof_system(part.system)
    with case.guarding(f"{prefix}.circuit.{tenant}"):
        public = tenant_public(case.tenants[tenant], policy=case.policy, manifest=case.manifest,
                               header_digest=case.header_digest, columns=columns)  # fmt: skip
        named, circuit = part.circuits[name], system.circuits(public.constants).get(name)
        # Another digest may belong to the circuit of an older or newer release, which is unknown here and not proven
        # false.
        status = Status.PASS if named == circuit else Status.UNDECIDED
        if not case.record(f"{prefix}.circuit.{tenant}", status, circuit, named, "policy.tenants"):
            return set()
        kinds: defaultdict[int, list[QueryRecord]] = defaultdict(list)
        for record, count in proved:
            kinds[count].append(record)
        valid: set[int] = set()
        for count, members in sorted(kinds.items()):
            if count > 1 and _incomplete(case, tenant):
                continue  # a batch proof needs all of its records, and some are unreadable
            valid |= _verify_kind(case, prefix, system, public, name, count, members)
        return valid
    return set()


def _incomplete(case: Case, tenant: str) -> bool:
    """Whether some of a tenant's records, or the proofs of some, cannot be read. No other error counts, so that an
    unrelated broken file hides no false proof.
    """
    columns = (entry for (owner, _), entry in case.columns.items() if owner == tenant)
    return (
        case.partial
        or any(str(entry.seq) in case.lost for entry in columns)
        or any(q.tenant == tenant and str(q.seq) in case.lost for q in case.queries)
    )


def _verify_kind(
    case: Case,
    prefix: str,
    system: ProofSystem,
    tenant: TenantPublic,
    name: str,
    count: int,
    proved: Sequence[QueryRecord],
) -> set[int]:
    """`_verify` for the proofs under one key, which are all for the same number of records."""

    def public(record: QueryRecord) -> RecordPublic:
        public = case.publics.get(record.seq)
        if public is None:
            beacon = case.beacon_of(record.account) or b""
            public = record_public(
                record, tenant, header=case.header, beacon=beacon, before=case.before(record)
            )
            case.publics[record.seq] = public
        return public

    def proof(record: QueryRecord) -> FileProof:
        proofs = case.file.proofs[str(record.seq)]
        return FileProof(proofs[name] if isinstance(proofs, dict) else None, f"proofs.{record.seq}.{name}")

    keys, pins = case.file.verification_keys, case.trust.pins
    with case.guarding(f"{prefix}.key.{tenant.tenant}"):
        opened = system.records(name, tenant, count).open(keys, pins, engine=case.engine)
        case.report(f"{prefix}.key.{tenant.tenant}", True, opened.digest, opened.digest)
        case.setups.add(opened.setup or "transparent")
        with case.guarding(f"{prefix}.valid.{tenant.tenant}"):
            every = [r for r in case.queries if r.tenant == tenant.tenant]
            # Proofs and statements are made on demand, so that memory contains only the current portion.
            with case.checking.of(len(proved)):
                bad = opened.verify(
                    Lazy(len(proved), lambda i: public(proved[i])),
                    Lazy(len(proved), lambda i: proof(proved[i])),
                    Lazy(len(every), lambda i: public(every[i])),
                    check=case.checking,
                )
            right = counted(len(proved), "valid proof")
            result, at, status = right, None, Status.PASS
            if bad:
                first, reason = _refusal(bad)
                said = f": {refusal(reason)}" if len(bad) == 1 else f"; the first: {refusal(reason)}"
                result = counted(len(bad), "invalid proof") + said
                at = f"record {proved[first].seq}"
                if reason.field is not None and reason.field.startswith("proofs."):
                    at += f", {reason.field}"
                status = Status.FAIL if reason.exit_code is ExitCode.FAIL else Status.UNDECIDED
            case.record(f"{prefix}.valid.{tenant.tenant}", status, right, result, at)
            return {r.seq for i, r in enumerate(proved) if i not in bad}
    return set()


def _refusal(bad: Mapping[int, RagAuditError]) -> tuple[int, RagAuditError]:
    """The first false proof, or else the first that is no proof at all, with the reason."""
    false = (i for i in sorted(bad) if bad[i].exit_code is ExitCode.FAIL)
    first = next(false, min(bad))
    return first, bad[first]
