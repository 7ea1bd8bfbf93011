"""A window's Groth16 proofs as files for snarkjs: proof, public inputs, key, and the commands to run.

The public inputs are rebuilt from the published entries, as `verify` rebuilds them. snarkjs cannot tell whether a key
is the right one, nor anything else about a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rag_audit._internal.canonical import Json, digest_hex, jcs
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import SchemaError, StoreError
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.constants import STATEMENTS
from rag_audit.models.manifest import check_manifest
from rag_audit.models.policy import Policy
from rag_audit.models.records import (
    BeaconEntry,
    ColumnEntry,
    Enrolment,
    QueryRecord,
    TenantEntry,
    parse_entry,
)
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.groth16 import snarkjs
from rag_audit.proofs.backends.groth16.coalition import coalition_circuit_statement
from rag_audit.proofs.backends.groth16.system import SYSTEM, column_of
from rag_audit.proofs.backends.groth16.verifiers import (
    parse_key,
    parse_proof,
    public_inputs,
)
from rag_audit.proofs.interface import FileProof, places
from rag_audit.proofs.statements import COLUMNS
from rag_audit.proofs.statements.coalition import CoalitionStatement
from rag_audit.proofs.statements.retrieve import RecordPublic, record_public
from rag_audit.proofs.statements.tenant import ColumnCommitment, PublicValues, TenantPublic, tenant_public

SNARKJS = "snarkjs@0.7.6"
"""The release of snarkjs in the commands, pinned by circuits/package-lock.json."""
_SCRIPT = """\
#!/bin/sh
# Checks each proof of this folder with snarkjs. The keys are the window's own: index.json has the digest of each in the
# form that trust.toml pins, and the public inputs were rebuilt from the window's entries by `rag-audit provider
# export`.
# Another snarkjs: SNARKJS="node .../snarkjs/build/cli.cjs" sh verify.sh
set -e
cd "$(dirname "$0")"
"""


@dataclass(frozen=True)
class Exported:
    """One Groth16 proof in snarkjs's formats.

    :param records: `seq` of the records that the proof is about
    :param names: names of the public inputs, in the order of the circuit's `main`
    """

    folder: str
    statement: str
    records: list[int]
    circuit: str
    names: list[str]
    files: dict[str, str]


def write_snarkjs(file: WindowFile, directory: Path, coalition: CoalitionStatement | None) -> list[Exported]:
    """Write every Groth16 proof of a window for snarkjs: key, public inputs, proof, and `verify.sh` with the commands.

    :param coalition: the statement of the window's coalition proof; None if the window declares none
    :returns: the written proofs; scan tenants have none
    :raises SchemaError: the window has no Groth16 proof, a part is not well-formed, or a key is missing
    :raises StoreError: a file cannot be written
    """
    proofs = list(_proofs(file, coalition))
    if not proofs:
        raise SchemaError("the window has no Groth16 proof", field="proofs",
                          hint="snarkjs does not verify proofs of scan tenants")  # fmt: skip
    keys = {result.circuit: result.files["key"] for result in proofs}
    index: dict[str, Json] = {
        "window": digest_hex(file.entries[0]),
        "keys": {circuit: digest_hex(file.verification_keys[circuit]) for circuit in sorted(keys)},
        "proofs": [
            {
                "folder": p.folder,
                "statement": p.statement,
                "records": [*p.records],
                "circuit": p.circuit,
                "inputs": [*p.names],
            }
            for p in proofs
        ],
    }  # fmt: skip
    commands = [
        f"$S groth16 verify keys/{p.circuit}.json {p.folder}/public.json {p.folder}/proof.json"
        for p in proofs
    ]
    for circuit, text in keys.items():
        _write(directory / "keys" / f"{circuit}.json", text)
    for result in proofs:
        for name in ("public", "proof"):
            _write(directory / result.folder / f"{name}.json", result.files[name])
    _write(directory / "index.json", jcs(index).decode() + "\n")
    script = f'{_SCRIPT}S="${{SNARKJS:-npx --yes {SNARKJS}}}"\n' + "".join(f"{line}\n" for line in commands)
    _write(directory / "verify.sh", script)
    return proofs


def _proofs(file: WindowFile, coalition: CoalitionStatement | None) -> Iterator[Exported]:
    closed = ClosedWindow.of(file, field="entries")
    entries = [parse_entry(value, field=f"entries[{i}]") for i, value in enumerate(file.entries)]
    queries = [e for e in entries if isinstance(e, QueryRecord)]
    enrolled = {e.account: e.seq for e in entries if isinstance(e, Enrolment)}
    beacons = {e.entry: bytes.fromhex(e.value) for e in entries if isinstance(e, BeaconEntry)}
    policy = Policy.parse(file.policy, field="policy")
    columns = {(e.tenant, e.type): e for e in entries if isinstance(e, ColumnEntry)}
    slots = {(q.account, q.i): q for q in queries}
    for number, value in enumerate(file.tenants):
        tenant = TenantEntry.parse(value, field=f"tenants[{number}]")
        part = policy.tenant(tenant.tenant)
        if part is None or part.system != "groth16":
            continue
        own = {name: entry for (owner, name), entry in columns.items() if owner == tenant.tenant}
        public = tenant_public(
            tenant, policy=policy, manifest=check_manifest(file.embedder), header_digest=closed.digest,
            columns={name: ColumnCommitment(entry.commitment) for name, entry in own.items()},
        )  # fmt: skip
        for entry in own.values():
            yield from _column(file, closed, policy, public, entry, beacons.get(0, b""))
        facts = {
            q.seq: record_public(
                q,
                public,
                header=closed.header,
                beacon=beacons.get(enrolled.get(q.account, 0), b""),
                before=slots.get((q.account, q.i - 1)),
            )
            for q in queries
            if q.tenant == tenant.tenant
        }
        for name in (n for n in STATEMENTS if n in part.circuits):
            yield from _statements(file, public, name, facts)
    wanted = policy.estimator.coalition_proof
    if (
        coalition is not None
        and file.coalition_proof is not None
        and wanted is not None
        and wanted.system == "groth16"
    ):
        circuit, values = coalition_circuit_statement(coalition)
        proof = parse_proof(file.coalition_proof, circuit, field="coalition_proof")
        yield _exported(file, "coalition", "coalition", [q.seq for q in queries], circuit, values, proof)


def _column(
    file: WindowFile,
    closed: ClosedWindow,
    policy: Policy,
    tenant: TenantPublic,
    entry: ColumnEntry,
    beacon: bytes,
) -> Iterator[Exported]:
    """The proof of a tenant's column."""
    name = entry.type
    value, field = _proof(file, entry.seq, name), f"proofs.{entry.seq}.{name}"
    if value is None:
        return
    circuit = SYSTEM.column(name).circuit(tenant.constants)
    public = COLUMNS[name](tenant, policy, header=closed.header, beacon=beacon)
    values, proof = column_of(name).read(public, entry.commitment, FileProof(value, field))
    yield _exported(file, f"{name}-{entry.tenant}", name, [entry.seq], circuit, values, proof)


def _statements(
    file: WindowFile, tenant: TenantPublic, name: str, facts: dict[int, RecordPublic]
) -> Iterator[Exported]:
    """The proofs of one statement about one tenant's records, by `seq`; a proof for several records is given once."""
    steps = SYSTEM.steps(name, tenant)
    stated = {seq: steps.statement(record) for seq, record in facts.items()}
    whose = {steps.digest(statement): seq for seq, statement in stated.items()}
    written: set[str] = set()
    for seq in stated:
        value, field = _proof(file, seq, name), f"proofs.{seq}.{name}"
        if value is None or (digest := digest_hex(value)) in written:
            continue
        written.add(digest)
        own = SYSTEM.steps(name, tenant, places(name, value))
        proof = own.parse_proof(value, field=field)
        if unknown := next((d.hex() for d in proof.records if d not in whose), None):
            raise SchemaError(
                "the proof is also for a record that the ledger does not have", field=field, actual=unknown
            )
        numbers = [whose[d] for d in proof.records]
        values = own.joined([stated[number] for number in numbers])
        [part] = proof.parts or (b"",)
        folder = f"record-{seq}-{name}" if own.places == 1 else f"records-{seq}-{name}"
        yield _exported(file, folder, name, sorted(set(numbers)), own.instance.digest(), values, part)


def _exported(
    file: WindowFile,
    folder: str,
    statement: str,
    records: list[int],
    circuit: str,
    values: PublicValues,
    proof: bytes,
) -> Exported:
    if circuit not in file.verification_keys:
        raise SchemaError("the window has no verification key", field=f"verification_keys.{circuit[:16]}")
    key = parse_key(file.verification_keys[circuit], field=f"verification_keys.{circuit[:16]}")
    names, inputs = public_inputs(values)
    return Exported(folder, statement, records, circuit, names, snarkjs.files(key.snarkjs, proof, inputs))


def _proof(file: WindowFile, seq: int, name: str) -> Json:
    result = file.proofs.get(str(seq))
    return result.get(name) if isinstance(result, dict) else None


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise StoreError("cannot be made", field=str(path.parent), actual=exc.strerror or str(exc)) from exc
    replace_file(path, text.encode())
