"""A malicious provider that has the signing keys of all other parties.

A `Forge` takes a finished window apart, lets a test change any part, and recreates the tree, checkpoints, cosignatures,
beacon notes, request signatures and receipts, so that the changed part is the only fault that `verify` can detect.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_audit._internal.canonical import digest_hex, jcs, parse_json, read_json
from rag_audit._internal.durable import replace_file
from rag_audit.log.checkpoint import Checkpoint, open_checkpoint
from rag_audit.log.keys import ALG_COSIGNATURE, ALG_ED25519
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.note import cosign_note, parse_note, sign_note
from rag_audit.log.signing import SigningKey
from rag_audit.log.tlog_proof import TlogProof
from rag_audit.mechanisms import COLUMNS
from rag_audit.models.beacon import Reveal, combine, nonce_commitment
from rag_audit.models.header import list_root
from rag_audit.models.records import (
    CountersignedReceipt,
    QueryRecord,
    ReceiptBody,
    RosterEntry,
    SignedReceiptBody,
    TenantEntry,
    log_origin,
    receipt_message,
    request_message,
)
from rag_audit.models.windowfile import WindowFile
from rag_audit.report.verification import ReportedVerdict
from tests.window.simulator import ORIGIN, Finished


@dataclass
class StoredReceipt:
    """An account's receipt, apart: `body` is remade for its record unless `frozen` keeps the text as it was."""

    account: str
    i: int
    body: dict[str, Any]
    disclosed: dict[str, Any] | None
    text: str
    frozen: bool = False
    by: str | None = None
    """another account that hands it in"""
    signer: SigningKey | None = None
    """another key than the account's to countersign with"""
    provider: SigningKey | None = None
    """another key than the provider's to sign the openings with"""


@dataclass
class Forge:
    """The parts of a window, all of them to be changed."""

    finished: Finished
    value: dict[str, Any] = field(init=False)
    proofs: dict[tuple[str, int], Any] = field(init=False)
    receipts: list[StoredReceipt] = field(init=False)
    samples: dict[str, Any] = field(init=False)
    """the proof of each tenant's column, such as a tenant's sample"""

    def __post_init__(self) -> None:
        service = self.finished.service
        self.value = self.finished.value()
        columns = [e for e in self.entries if e["type"] in COLUMNS]
        self.samples = {e["tenant"]: self.value["proofs"].get(str(e["seq"]), {}) for e in columns}
        self.proofs = {
            (e["account"], e["i"]): self.value["proofs"].get(str(e["seq"]), {}) for e in self.queries
        }
        self.accounts = {name: a.keys.newest for name, a in service.accounts.items()}
        self.witnesses = {name: w._key for name, w in service.witnesses.items()}
        self.provider = self.opening_key = self.final_key = service.key
        self.final_origin: str | None = None
        self.final_size_off_by = 0
        self.opening_times = self._times(self.value["header_checkpoint"])
        self.final_times = self._times(self.value["final_checkpoint"])
        self.reveals: dict[str, tuple[bytes, int]] = {}
        for text in self.entries[1]["notes"]:
            note = parse_note(text)
            reveal = Reveal.parse(note.text)
            self.reveals[note.signatures[0].name] = (reveal.nonce, reveal.ts)
        self.receipts = [self._held(p) for p in sorted(self.finished.receipts.glob("*.json"))]
        self.commit = self.number = self.count = self.sign = True
        self.value_override: str | None = None

    # -- parts -----------------------------------------------------------------------------------------------

    @property
    def entries(self) -> list[dict[str, Any]]:
        return self.value["entries"]

    @property
    def header(self) -> dict[str, Any]:
        return self.entries[0]

    @property
    def log(self) -> str:
        """The origin line of the window's checkpoints."""
        return log_origin(ORIGIN, self.header["window"])

    @property
    def policy(self) -> dict[str, Any]:
        return self.value["policy"]

    @property
    def queries(self) -> list[dict[str, Any]]:
        return [e for e in self.entries if e["type"] == "query"]

    @property
    def trailer(self) -> dict[str, Any]:
        return self.entries[-1]

    def record(self, account: str, i: int) -> dict[str, Any]:
        """The query record of a slot."""
        return next(e for e in self.queries if (e["account"], e["i"]) == (account, i))

    def receipt(self, account: str, i: int) -> StoredReceipt:
        """The receipt of a slot."""
        return next(r for r in self.receipts if (r.account, r.i) == (account, i))

    def move(self, account: str, i: int, to: int) -> None:
        """Give a record another i."""
        self.record(account, i)["i"] = to
        self.proofs[account, to] = self.proofs.pop((account, i))

    def drop_receipts_of(self, account: str, *i: int) -> None:
        """These accounts keep silent."""
        self.receipts = [r for r in self.receipts if r.account != account or (i and r.i not in i)]

    def insert(self, entry: dict[str, Any], at: int | None = None) -> dict[str, Any]:
        """A further entry before the closing record, or at a place."""
        self.entries.insert(len(self.entries) - 1 if at is None else at, entry)
        self._number()
        return entry

    def another_query(self, account: str, i: int, like: tuple[str, int]) -> dict[str, Any]:
        """A copy of a record for another slot, with the same proof."""
        result = {**copy.deepcopy(self.record(*like)), "account": account, "i": i, "proof": None}
        result["ts"] = self.queries[-1]["ts"]
        self.proofs[account, i] = self.proofs[like]
        return self.insert(result)

    def enrol(self, account: str, tenant: str, key: SigningKey | None = None) -> dict[str, Any]:
        """An enrolment with a fresh beacon source; `answer` adds its beacon."""
        self.accounts[account] = key or SigningKey.generate(account)
        members = [
            {
                "name": name,
                "vkey": str(k.verifier.with_algorithm(ALG_COSIGNATURE)),
                "commitment": nonce_commitment(self._nonce(account, name)).hex(),
            }
            for name, k in self.witnesses.items()
        ]
        return self.insert(
            {
                "type": "enrolment",
                "v": 1,
                "seq": 0,
                "ts": self.queries[-1]["ts"],
                "account": account,
                "tenant": tenant,
                "key": self.accounts[account].verifier.public.hex(),
                "custody": "account",
                "beacon": {"source": "witnesses", "witnesses": members},
            }
        )

    def answer(
        self, enrolment: dict[str, Any], cosigned_by: Sequence[str] = ("w1", "w2"), late: int = 0
    ) -> dict[str, Any]:
        """The enrolment's beacon entry, cosigned and drawn at the enrolment's own time (and `late` ms)."""
        size = enrolment["seq"] + 1
        for e in self.queries:
            self._sign_request(e)
        root = HashTree(leaf_hash(jcs(e)) for e in self.entries[:size]).root()
        note = Checkpoint(self.log, size, root).sign(self.provider)
        for name in cosigned_by:
            note = cosign_note(note, self.witnesses[name], (enrolment["ts"] + late) // 1000)
        nonces = {n: self._nonce(enrolment["account"], n) for n in self.witnesses}
        notes = [
            str(
                sign_note(
                    Reveal(ORIGIN, self.header["window"], size, root, nonces[n], enrolment["ts"] + late).text,
                    k.with_algorithm(ALG_ED25519),
                )
            )
            for n, k in self.witnesses.items()
        ]
        value = combine(nonces, root).hex()
        return self.insert(
            {"type": "beacon", "v": 1, "seq": 0, "entry": enrolment["seq"], "source": "witnesses",
             "value": value, "notes": notes, "checkpoint": str(note)}
        )  # fmt: skip

    # -- sealing ---------------------------------------------------------------------------------------------

    def seal(self, folder: Path) -> tuple[WindowFile, Path]:
        """The window file and the receipts, with new signatures of all parties."""
        header = self.header
        if self.commit:
            header.update(
                c_policy=digest_hex(self.policy),
                c_emb=digest_hex(self.value["embedder"]),
                roster=list_root([RosterEntry.parse(r, field="roster") for r in self.value["roster"]]).dump(),
                tenants=list_root(
                    [TenantEntry.parse(t, field="tenants") for t in self.value["tenants"]]
                ).dump(),
            )
        first = Checkpoint(self.log, 1, leaf_hash(jcs(header)))
        self.value["header_checkpoint"] = self._cosign(first, self.opening_key, self.opening_times)
        self._beacon(first)
        if self.number:
            self._number()
        for entry in self.entries:
            if entry["type"] == "query" and self.sign:
                self._sign_request(entry)
        self.answered()
        if self.trailer["type"] == "trailer" and self.count:
            self.trailer["queries"] = len(self.queries)
            self.trailer["enrolments"] = sum(e["type"] == "enrolment" for e in self.entries)
            asking = len({e["account"] for e in self.queries})
            estimate = self.trailer["coalition"]
            counts = {name: min(estimate[name], asking) for name in ("c", "c_tenant")}
            requested = {name: self.policy["estimator"][name] for name in ("theta", "tau", "tau_unit")}
            estimate.update(**requested, **counts)
        tree = HashTree(leaf_hash(jcs(e)) for e in self.entries)
        head = Checkpoint(self.final_origin or self.log, tree.size + self.final_size_off_by, tree.root())
        self.value["final_checkpoint"] = self._cosign(head, self.final_key, self.final_times)
        self.value["proofs"] = {
            str(e["seq"]): self.proofs[e["account"], e["i"]]
            for e in self.queries
            if (e["account"], e["i"]) in self.proofs
        } | {
            str(e["seq"]): self.samples[e["tenant"]]
            for e in self.entries
            if e["type"] in COLUMNS and e["tenant"] in self.samples
        }
        receipts = folder / "receipts"
        receipts.mkdir()
        for number, held in enumerate(self.receipts):
            self._write_receipt(held, tree, receipts / f"{held.account}-{held.i}-{number}.json")
        return WindowFile.parse(self.value, field="window.json"), receipts

    def verify(self, folder: Path, **options: Any) -> ReportedVerdict:
        """Seal, and verify as the honest window would be."""
        file, receipts = self.seal(folder)
        return self.finished.verify(file, receipts=[receipts], **options)

    def answered(self) -> None:
        """The proofs of a forge that can prove. They follow after header, numbers and signatures of requests are fixed."""

    # -- pieces ----------------------------------------------------------------------------------------------

    def _number(self) -> None:
        for seq, entry in enumerate(self.entries):
            if entry["type"] != "header":
                entry["seq"] = seq

    def _times(self, text: str) -> dict[str, int]:
        keys = [w.vkey for w in self.finished.service.witnesses.values()]
        signed = open_checkpoint(
            text, origin=self.log, log_key=self.finished.service.key.verifier, witnesses=keys
        )
        return {key.name: time for key, time in signed.cosignatures.items()}

    def _cosign(self, head: Checkpoint, key: SigningKey, times: dict[str, int]) -> str:
        note = head.sign(key)
        for name, time in times.items():
            note = cosign_note(note, self.witnesses[name], time)
        return str(note)

    def _beacon(self, head: Checkpoint) -> None:
        entry = self.entries[1]
        if entry["type"] != "beacon" or entry["entry"] != 0:
            return
        entry["notes"] = [
            str(
                sign_note(
                    Reveal(ORIGIN, self.header["window"], 1, head.root, nonce, ts).text,
                    self.witnesses[name].with_algorithm(ALG_ED25519),
                )
            )
            for name, (nonce, ts) in self.reveals.items()
        ]
        nonces = {name: nonce for name, (nonce, _) in self.reveals.items()}
        entry["value"] = self.value_override or combine(nonces, head.root).hex()
        entry["checkpoint"] = self.value["header_checkpoint"]

    def _sign_request(self, e: dict[str, Any]) -> None:
        digest = digest_hex(self.header)
        message = request_message(self.header["origin"], digest, e["tenant"], e["account"], e["i"], e["hq"])
        e["sig"] = self.accounts[e["account"]].sign(message).hex()

    def _held(self, path: Path) -> StoredReceipt:
        value = CountersignedReceipt.parse(read_json(path, max_bytes=1 << 20), field=path.name)
        extra = TlogProof.parse(value.receipt).extra
        assert extra is not None
        body = parse_json(extra, source="extra")["body"]
        disclosed = None if value.disclosed is None else value.disclosed.dump()
        return StoredReceipt(value.account, body["record"]["i"], body, disclosed, value.receipt)

    def _write_receipt(self, held: StoredReceipt, tree: HashTree, path: Path) -> None:
        text = held.text if held.frozen else self._receipt_text(held, tree)
        draft = CountersignedReceipt(
            type="receipt", v=1, account=held.by or held.account, receipt=text, disclosed=None, sig="0" * 128
        ).dump()
        draft = CountersignedReceipt.parse({**draft, "disclosed": held.disclosed}, field="receipt")
        key = held.signer or self.accounts[held.by or held.account]
        replace_file(path, draft.model_copy(update={"sig": key.sign(draft.message()).hex()}).canonical())

    def _receipt_text(self, held: StoredReceipt, tree: HashTree) -> str:
        value = self.record(held.account, held.i)
        record = QueryRecord.parse(value, field="record")
        body = ReceiptBody.parse({**held.body, "record": record.dump()}, field="body")
        message = receipt_message(
            self.header["origin"], digest_hex(self.header), leaf_hash(record.canonical()), body.canonical()
        )
        signed = SignedReceiptBody(body=body, sig=(held.provider or self.provider).sign(message).hex())
        return str(
            TlogProof(
                index=record.seq,
                path=tuple(tree.inclusion_path(record.seq, tree.size)),
                checkpoint=Checkpoint(self.log, tree.size, tree.root()).sign(self.provider),
                extra=signed.canonical(),
            )
        )

    @staticmethod
    def _nonce(account: str, witness: str) -> bytes:
        return f"{account} {witness}".encode().ljust(32, b".")[:32]
