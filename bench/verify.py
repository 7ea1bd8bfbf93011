"""Verification of large windows without proofs: `python -m bench.verify --records 1000 10000 100000 [--json]`.

A separate process writes a window of N records. Accounts, provider and witnesses really sign it, with enrolments, their
beacons and receipts. Stand-ins of --proof-bytes characters replace the proofs. Another process reads and verifies the
file up to the statements of the proofs, and is measured; it leaves out only decoding a proof and verifying it. The
verdict must be PASS. Target: 10^5 records in 60 s and 1.5 GB, and 2 GB with proofs of 10 KB each.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest import mock

from bench.common import Cost, by_figure, emit, measured, parser
from rag_audit._internal.canonical import Json, digest_hex, sha256
from rag_audit._internal.durable import replace_file
from rag_audit.attest import query as attest
from rag_audit.attest.receipts import make_receipt
from rag_audit.commit.commitment import (
    Commitment,
    CommittedTenant,
    WindowSecrets,
    check_inputs,
    commit,
    commit_tenant,
)
from rag_audit.commit.draft import Embedding, Period, PrivacyTarget, Tenants, draft_policy
from rag_audit.errors import RagAuditError
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.keys import ALG_COSIGNATURE, ALG_ED25519
from rag_audit.log.merkle import leaf_hash
from rag_audit.log.note import cosign_note, sign_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.tree import MerkleTree
from rag_audit.models.beacon import Reveal, combine, nonce_commitment
from rag_audit.models.manifest import manifest_digest
from rag_audit.models.passage import Passage
from rag_audit.models.policy import Policy
from rag_audit.models.question import RequestSalts
from rag_audit.models.records import (
    BeaconEntry,
    BeaconSource,
    BeaconWitness,
    CoalitionEstimate,
    CountersignedReceipt,
    Enrolment,
    Entry,
    QueryRecord,
    RosterEntry,
    WindowTrailer,
    WitnessBeacon,
    answer_digest,
    request_message,
)
from rag_audit.models.trust import Require, Trust
from rag_audit.models.trust_template import trust_template
from rag_audit.models.window_writer import save_window
from rag_audit.models.windowfile import MEDIA_TYPE, WindowFile
from rag_audit.proofs import records as record_proofs
from rag_audit.proofs.backends.scan.embed import TABLE_ARTEFACT, table_columns
from rag_audit.proofs.backends.scan.key import points_json
from rag_audit.proofs.backends.scan.records import ScanProofs
from rag_audit.proofs.backends.scan.release import protocols_digest
from rag_audit.proofs.backends.scan.system import SYSTEM
from rag_audit.proofs.records import Group
from rag_audit.relation.field import MODULUS, to_bytes, to_hex
from rag_audit.relation.native_secrets import topk_commitment
from rag_audit.relation.noise import table_digest
from rag_audit.report.verification import ReportedVerdict, verify_window
from rag_audit.retrieval.embedders import Embedder, get_embedder
from rag_audit.retrieval.engine import build_index

ORIGIN = "bench.example/rag"
START, STEP, DAY = 1_800_000_000_000, 10, 86_400_000
TENANTS = ("law", "medicine")
WITNESSES = ("w1", "w2")
CAPACITY, TOP_K = 8, 2
STAND_IN: dict[str, Json] = {"retrieve": "none", "embed": "none"}
"""The content of a record's proofs in these windows."""
TEXTS = ("One thing.", "Another thing.", "A third thing.")


class Builder:
    """A window with all its parties in one process. It equals a service's window, except that it has no proofs.

    :param enrolments: how many of the accounts join while the window is open, evenly between the records
    """

    def __init__(
        self, folder: Path, records: int, accounts: int, enrolments: int, receipts: int, proof_bytes: int = 0
    ) -> None:
        self.folder, self.rng = folder, random.Random(records)
        self.proof_bytes = proof_bytes
        self.provider = SigningKey.generate(ORIGIN)
        self.witnesses = {name: SigningKey.generate(name, ALG_COSIGNATURE) for name in WITNESSES}
        names = [(f"account-{n}", TENANTS[n % len(TENANTS)]) for n in range(accounts)]
        self.keys = {name: SigningKey.generate(name) for name, _ in names}
        lines = [
            RosterEntry(account=a, tenant=t, key=self.keys[a].verifier.public.hex(), custody="account")
            for a, t in names
        ]
        self.enrolled, self.roster = lines[:enrolments], lines[enrolments:]
        self.tenant_of = dict(names)
        self.embedder = get_embedder(query_tokens=4)
        self.result = self._commit(records, accounts)
        self.header = self.result.header
        self.header_digest = digest_hex(self.header.dump())
        self.entries: list[Entry] = []
        self.tree = MerkleTree()
        self.receipts: list[tuple[QueryRecord, bytes, tuple[int, ...]]] = []
        self._fill(records, receipts)

    def _commit(self, records: int, accounts: int) -> Commitment:
        policy = _policy(self.embedder, records, accounts)
        documents = {tenant: [Passage(text) for text in TEXTS] for tenant in TENANTS}
        manifest = check_inputs(policy, self.roster, documents, self.embedder)
        drawn = WindowSecrets.draw(TENANTS)
        vectors = self.embedder.embed_documents(TEXTS)
        tenants = {}
        for tenant in TENANTS:
            index = build_index(vectors, CAPACITY)
            blinding, path = to_bytes(drawn.index_salts[tenant]), self.folder / f"{tenant}.points"
            committed = SYSTEM.commit_index(index.rows, blinding, path)
            texts = dict(zip(index.positions, map(Passage, TEXTS), strict=True))
            tenants[tenant] = commit_tenant(tenant, index, texts, drawn, committed)
        return commit(origin=ORIGIN, policy=policy, roster=self.roster, manifest=manifest, tenants=tenants,
                      window_secrets=drawn, beacon=self._source("header"), previous=None)  # fmt: skip

    # -- the ledger ------------------------------------------------------------------------------------------

    def _fill(self, records: int, receipts: int) -> None:
        self._append(self.header)
        self.header_checkpoint = self._cosigned(self.header.opens_at - 10_000)
        self._beacon(0, "header", self.header_checkpoint, self.header.opens_at - 5_000)
        waiting = list(self.enrolled)
        every = max(1, records // (len(waiting) + 1))
        asking = [line.account for line in self.roster]
        requested = dict.fromkeys(self.keys, 0)
        ts = self.header.opens_at
        for number in range(records):
            if number % every == 0 and waiting:
                # The beacon's witnesses need whole seconds, so the window has no other entries for two seconds.
                line = waiting.pop()
                ts += 2_000
                self._enrol(line, ts)
                asking.append(line.account)
            ts += STEP
            account = asking[number % len(asking)]
            requested[account] += 1
            self._query(account, requested[account], ts, keep=number < receipts)
        self._append(
            WindowTrailer(type="trailer", v=1, seq=len(self.entries), ts=ts, window=self.header.window, queries=records,
                    enrolments=len(self.enrolled), coalition=_estimate(self.result.policy), abandoned=False)
        )  # fmt: skip
        self.final_checkpoint = self._cosigned(ts + 10_000)

    def _append(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.tree.append(leaf_hash(entry.canonical()))

    def _query(self, account: str, i: int, ts: int, *, keep: bool) -> None:
        salt, tenant = self.rng.randbytes(32), self.result.tenants[self.tenant_of[account]]
        opened = {"hq": self._element(), "cq": self._element(), "htopk": self._element(), "hans": salt.hex()}
        positions = (0, 1)
        if keep:
            salts = RequestSalts.derive(salt)
            documents = attest.document_openings(tenant, positions, self.result.secrets, ())
            digests = [bytes.fromhex(d.hash) for d in documents]
            opened["htopk"] = to_hex(topk_commitment(salts.top_k, positions))
            opened["hans"] = answer_digest(salts.answer, digests).hex()
        name = tenant.entry.tenant
        message = request_message(ORIGIN, self.header_digest, name, account, i, opened["hq"])
        record = QueryRecord(
            type="query", v=1, window=self.header.window, seq=len(self.entries), account=account, tenant=name, i=i,
            ts=ts, sig=self.keys[account].sign(message).hex(), proof=None, listed_rows=None, **opened,
        )  # fmt: skip
        self._append(record)
        if keep:
            self.receipts.append((record, salt, positions))

    def _element(self) -> str:
        return to_hex(self.rng.randrange(MODULUS))

    # -- witnesses -------------------------------------------------------------------------------------------

    def _enrol(self, line: RosterEntry, ts: int) -> None:
        source = self._source(line.account)
        entry = Enrolment(type="enrolment", v=1, seq=len(self.entries), ts=ts, beacon=source, **line.dump())
        self._append(entry)
        self._beacon(entry.seq, line.account, self._cosigned(ts), ts)

    def _nonce(self, of: str, witness: str) -> bytes:
        return sha256(f"{of} {witness}".encode())

    def _source(self, of: str) -> BeaconSource:
        members = [
            BeaconWitness(name=n, vkey=str(k.verifier), commitment=nonce_commitment(self._nonce(of, n)).hex())
            for n, k in self.witnesses.items()
        ]
        return WitnessBeacon(source="witnesses", witnesses=members)

    def _head(self) -> Checkpoint:
        return Checkpoint(self.header.log, self.tree.size, self.tree.root())

    def _cosigned(self, ts: int) -> str:
        note = self._head().sign(self.provider)
        for key in self.witnesses.values():
            note = cosign_note(note, key, ts // 1000)
        return str(note)

    def _beacon(self, of: int, name: str, checkpoint: str, ts: int) -> None:
        head, window = self._head(), self.result.policy.window
        nonces = {n: self._nonce(name, n) for n in self.witnesses}
        notes = [
            str(sign_note(Reveal(ORIGIN, window, head.size, head.root, nonces[n], ts).text,
                          key.with_algorithm(ALG_ED25519)))
            for n, key in self.witnesses.items()
        ]  # fmt: skip
        self._append(
            BeaconEntry(type="beacon", v=1, seq=len(self.entries), entry=of, source="witnesses",
                        value=combine(nonces, head.root).hex(), notes=notes, checkpoint=checkpoint)
        )  # fmt: skip

    # -- the verifier's files --------------------------------------------------------------------------------

    def save(self) -> None:
        """Write window.json, trust.toml and the receipts."""
        keys = keys_of(self.result.tenants.values(), self.embedder)
        stand_in = {**STAND_IN, "retrieve": "A" * self.proof_bytes} if self.proof_bytes else STAND_IN
        proofs = {str(e.seq): stand_in for e in self.entries if isinstance(e, QueryRecord)}
        file = WindowFile(
            mediaType=MEDIA_TYPE,
            entries=[e.dump() for e in self.entries],
            header_checkpoint=self.header_checkpoint,
            final_checkpoint=self.final_checkpoint,
            policy=self.result.policy.dump(),
            embedder=self.result.manifest,
            roster=[r.dump() for r in self.roster],
            tenants=[t.entry.dump() for t in self.result.tenants.values()],
            verification_keys=keys,
            proofs=proofs,
            challenges=[],
            coalition_proof=None,
        )
        save_window(file, self.folder / "window.json")
        for record, salt, positions in self.receipts:
            self._save_receipt(record, salt, positions)
        named = [(line.account, line.key) for line in self.roster[:1000]]
        text = trust_text(self.provider, list(self.witnesses.values()), named, self.embedder)
        (self.folder / "trust.toml").write_text(text)

    def _save_receipt(self, record: QueryRecord, salt: bytes, positions: tuple[int, ...]) -> None:
        tenant = self.result.tenants[record.tenant]
        text = make_receipt(
            record,
            salt=salt,
            positions=positions,
            documents=attest.document_openings(tenant, positions, self.result.secrets, ()),
            tree=self.tree,
            origin=ORIGIN,
            header_digest=self.header_digest,
            key=self.provider,
        )
        draft = CountersignedReceipt(type="receipt", v=1, account=record.account, receipt=text, disclosed=None,
                                     sig="0" * 128)  # fmt: skip
        signed = draft.model_copy(update={"sig": self.keys[record.account].sign(draft.message()).hex()})
        replace_file(self.folder / "receipts" / f"{record.seq}.json", signed.canonical())


def trust_text(
    provider: SigningKey,
    witnesses: Sequence[SigningKey],
    independent: Sequence[tuple[str, str]],
    embedder: Embedder,
    verifiers: Sequence[tuple[str, str]] = (),
    **changes: Any,
) -> str:
    """Return a verifier's trust file with limits that a policy of `_policy` meets."""
    wanted: dict[str, Any] = {
        "max_epsilon": "1000",
        "max_delta": "1e-5",
        "min_k_max": 1,
        "max_theta": "0.8",
        "min_tau": 0,
        "max_K_share": "0.25",
        "max_score_hi": 1680,
        "min_score_width": 1260,
        "max_abandoned": 0,
        "query_embedding": "proved",
        "coalition": "not-checked",
        "min_receipts": 1,
    }
    trust = {
        "version": 1,
        "quorum": len(witnesses),
        "provider": {"origin": provider.name, "vkey": str(provider.verifier)},
        "witness": [{"name": k.name, "vkey": str(k.verifier)} for k in witnesses],
        "beacon": {"witnesses": [k.name for k in witnesses]},
        "verifier": [{"name": name, "vkey": vkey} for name, vkey in verifiers],
        "account": [{"id": account, "key": key} for account, key in independent],
        "pins": {
            "noise_table": table_digest(),
            "embedder": dict(embedder.manifest()["artefacts"]),
            "manifest": manifest_digest(embedder.manifest()),
            "scan": protocols_digest(),
        },
        "require": Require(**{**wanted, **changes}),
    }
    return trust_template(Trust.parse(trust, field="trust.toml"))


def keys_of(tenants: Iterable[CommittedTenant], embedder: Embedder) -> dict[str, Json]:
    """Return the keys for verifying proofs about these tenants."""
    table = embedder.table
    assert table is not None
    keys: dict[str, Json] = {t.entry.c_idx: points_json(t.points) for t in tenants}
    keys[embedder.manifest()["artefacts"][TABLE_ARTEFACT]] = points_json(table_columns(table))
    return keys


def _policy(embedder: Embedder, records: int, accounts: int) -> Policy:
    # Each account that enrols late asks at most as often as each of the first accounts.
    return draft_policy(
        Period("bench", START, START + 30 * DAY),
        Tenants(dict.fromkeys(TENANTS, CAPACITY), accounts_max=accounts),
        PrivacyTarget(n=2 * -(-records // accounts), k_max=2, eps_acc="14"),
        embedding=Embedding(embedder.dimension, tokens=(embedder.limits.query, embedder.limits.document)),
        top_k=TOP_K,
    )


def _estimate(policy: Policy) -> CoalitionEstimate:
    part = policy.estimator
    return CoalitionEstimate(
        c=1, c_tenant=1, theta=list(part.theta), tau=part.tau, tau_unit=part.tau_unit, coalition_proof=None
    )


def build(
    folder: str, records: int, accounts: int, enrolments: int, receipts: int, proof_bytes: int = 0
) -> int:
    """Write a window, its trust file and receipts; return the window's size in bytes."""
    (Path(folder) / "receipts").mkdir()
    Builder(Path(folder), records, accounts, enrolments, receipts, proof_bytes).save()
    written = [*Path(folder).glob("*.json"), *Path(folder).glob("tiles/*.json")]
    return sum(p.stat().st_size for p in written)


def _read_only(proofs: Sequence[Group], own: Sequence[bytes], *_: object) -> dict[int, RagAuditError]:
    """Replace the verification of proofs: make every statement, and accept it."""
    for number in range(len(proofs)):
        proofs[number], own[number]
    return {}


def _as_it_stands(_: object, value: Json, *, field: str) -> Group:
    return Group((), b"", (str(value).encode(),))


@contextmanager
def without_proofs() -> Iterator[None]:
    """Accept stand-ins for proofs; the rest of the check is the same as for a real window."""
    with (
        mock.patch.object(ScanProofs, "parse_proof", _as_it_stands),
        mock.patch.object(record_proofs, "verify_groups", _read_only),
    ):
        yield


def check(folder: str) -> tuple[dict[str, Cost], str]:
    """Return the cost of reading and of verifying the files of `build`, and the verdict's line."""
    place, costs = Path(folder), {}
    with without_proofs():
        costs["read"], window = measured(lambda: WindowFile.load(place))

        def work() -> ReportedVerdict:
            return verify_window(window, trust=place / "trust.toml", receipts=[place / "receipts"])

        costs["verify"], verdict = measured(work)
    return costs, verdict.line


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--records", type=int, nargs="+", default=[1000, 10_000])
    options.add_argument("--accounts", type=int, help="a tenth of the records")
    options.add_argument("--enrolments", type=int, help="a hundredth of the records")
    options.add_argument("--receipts", type=int, help="a hundredth of the records")
    options.add_argument("--proof-bytes", type=int, default=0,
                         help="characters of a record's stand-in for a proof: 13,300 for 10 KB in base64")  # fmt: skip
    args = options.parse_args()
    windows: dict[str, Any] = {}
    for records in args.records:
        accounts = args.accounts or max(4, records // 10)
        counts = [max(1, records // 100) if n is None else n for n in (args.enrolments, args.receipts)]
        with (
            tempfile.TemporaryDirectory(prefix=".bench-", dir=".") as folder,
            ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as alone,
        ):
            size = alone.submit(build, folder, records, accounts, *counts, args.proof_bytes).result()
            costs, line = alone.submit(check, folder).result()
        if not line.startswith("PASS "):
            raise SystemExit(f"the window of {records} records does not pass: {line}")
        windows[str(records)] = {
            "accounts": accounts,
            "enrolments": counts[0],
            "receipts": counts[1],
            "bytes": size,
            **by_figure(costs),
        }
    emit({"records": args.records, "windows": windows}, as_json=args.json)


if __name__ == "__main__":
    main()
