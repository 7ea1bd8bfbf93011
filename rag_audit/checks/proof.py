"""`proof.*`: every record's proof verifies against public inputs rebuilt here, never read from the proof."""

from __future__ import annotations

from collections import defaultdict

from rag_audit.attest import retrieve_instance, statement_of
from rag_audit.canonical import digest_hex
from rag_audit.challenge import Challenge, sample_size
from rag_audit.checks.case import Case, Status
from rag_audit.errors import SignatureError
from rag_audit.ledger.note import VerifierKey, parse_note, verify_note
from rag_audit.proofs import groth16
from rag_audit.records import QueryRecord
from rag_audit.trust import decimal


def check(case: Case) -> None:
    """Run the group."""
    wanted = _wanted(case)
    if wanted is None:
        return
    present = {q.seq: q for q in case.queries if str(q.seq) in case.file.proofs}
    missing = [seq for seq in wanted if seq not in present]
    case.record(
        "proof.present",
        Status.PASS if not missing else Status.UNDECIDED,
        f"a proof for each of {len(wanted)} records",
        f"{len(wanted) - len(missing)} of {len(wanted)}",
        f"record {missing[0]} has no proof" if missing else None,
    )
    strangers = sorted(set(case.file.proofs) - {str(q.seq) for q in case.queries})
    case.record("proof.records", Status.UNDECIDED if strangers else Status.PASS,
                "proofs of query records only", strangers[:3] or "each has its record")  # fmt: skip
    _eager(case, present)
    _valid(case, [present[seq] for seq in sorted(present)])
    case.figures["proved"] = len(present)


def _wanted(case: Case) -> list[int] | None:
    """The records that must have proofs: all, or those that a trusted challenge names."""
    every = [q.seq for q in case.queries]
    require = case.trust.require
    case.figures["mode"] = require.mode
    if require.mode == "full":
        return every
    beta, eta = decimal(require.beta), decimal(require.eta)
    if beta is None or eta is None or not (0 < beta < 1 and 0 < eta < 1):
        case.record("proof.challenge", Status.UNMET, "beta and eta in (0, 1) in trust.toml", f"{beta}, {eta}")
        return None
    needed = sample_size(beta, eta, len(every))
    keys = [VerifierKey.parse(v.vkey, field=f"trust.verifier.{v.name}") for v in case.trust.verifier]
    found = "no challenge by a key that trust.toml names"
    # Every challenge over this ledger is answered in full: else the provider could publish the one that it likes.
    positions: set[int] = set()
    largest = 0
    for number, text in enumerate(case.file.challenges):
        with case.guarding("proof.challenge"):
            note = parse_note(text, field=f"challenges[{number}]")
            try:
                verify_note(note, keys, field=f"challenges[{number}]")
            except SignatureError as exc:
                found = str(exc)
                continue
            challenge = Challenge.parse(note.text, field=f"challenges[{number}]")
            named = (challenge.origin, challenge.window, challenge.size, challenge.root)
            if named != (case.opening.origin, case.opening.window, case.final.size, case.final.root):
                found = "a challenge over another ledger"
                continue
            drawn = challenge.positions(every)
            positions.update(drawn)
            largest = max(largest, len(drawn))
            found = f"a challenge of {largest} records"
    expected = f"a signed challenge of at least {needed} records"
    enough = largest >= needed and (largest > 0 or not every)
    if not case.record("proof.challenge", Status.PASS if enough else Status.UNDECIDED, expected, found):
        return None
    case.figures["sampled"] = len(positions)
    return sorted(positions)


def _eager(case: Case, present: dict[int, QueryRecord]) -> None:
    pinned = [q for q in case.queries if q.proof is not None]
    wrong = [
        q.seq for q in pinned if q.seq in present and digest_hex(case.file.proofs[str(q.seq)]) != q.proof
    ]
    case.report("proof.pinned", not wrong, "eager proofs are the ones that their records name",
                f"record {wrong[0]} names another proof" if wrong else f"{len(pinned)} eager")  # fmt: skip


def _valid(case: Case, records: list[QueryRecord]) -> None:
    groups: dict[str, list[QueryRecord]] = defaultdict(list)
    for record in records:
        part = case.policy.tenant(record.tenant)
        if part is None or part.system != "groth16" or record.tenant not in case.tenants:
            case.record(
                "proof.system",
                Status.UNDECIDED,
                "groth16",
                "unknown tenant or proof system",
                f"record {record.seq}",
            )
            continue
        groups[record.tenant].append(record)
    dimension = case.file.embedder["schema"]["dimension"]
    for tenant, members in sorted(groups.items()):
        with case.guarding(f"proof.valid.{tenant}"):
            instance = retrieve_instance(case.policy, tenant, dimension)
            circuit = instance.digest()
            part = case.policy.tenant(tenant)
            assert part is not None
            named = part.circuits.get("retrieve")
            # Another digest may be an older or newer release's circuit: unknown here, not proven false.
            status = Status.PASS if named == circuit else Status.UNDECIDED
            if not case.record(f"proof.circuit.{tenant}", status, circuit, named, "policy.tenants"):
                continue
            pin = case.trust.pin(circuit)
            if pin is None:
                case.record(
                    f"proof.key.{tenant}",
                    Status.UNDECIDED,
                    f"a pin for circuit {circuit} in trust.toml",
                    "none",
                )
                continue
            value = case.file.verification_keys.get(circuit)
            found = "absent" if value is None else digest_hex(value)
            if found != pin.vk:
                status = Status.UNDECIDED if value is None else Status.FAIL
                case.record(f"proof.key.{tenant}", status, pin.vk, found, f"verification_keys.{circuit[:16]}")
                continue
            key = groth16.VerificationKey.parse(value, field=f"verification_keys.{circuit[:16]}")
            case.report(f"proof.key.{tenant}", True, pin.vk, found)
            case.figures.setdefault("setups", set()).add(pin.setup)
            proofs, statements = [], []
            for record in members:
                proofs.append(
                    groth16.parse_proof(
                        case.file.proofs[str(record.seq)], circuit, field=f"proofs.{record.seq}"
                    )
                )
                beacon = case.beacon_of(record.account)
                statements.append(
                    statement_of(
                        record,
                        opening=case.opening,
                        opening_digest=case.opening_digest,
                        beacon=beacon if beacon is not None else b"",
                        c_idx=case.tenants[tenant].c_idx,
                    )
                )
            bad = groth16.verify_batch(key, proofs, statements, engine=case.engine)
            seqs = [members[b].seq for b in bad]
            case.report(f"proof.valid.{tenant}", not seqs, f"{len(members)} valid proofs",
                        f"{len(seqs)} invalid" if seqs else f"{len(members)} valid",
                        f"record {seqs[0]}" if seqs else None)  # fmt: skip
