"""A forge that answers and proves again, so that a fault leaves nothing else wrong behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from rag_audit._internal.canonical import digest_hex, jcs
from rag_audit.attest import query as steps
from rag_audit.attest.context import column_bits, slot_key
from rag_audit.commit.commitment import CommittedTenant
from rag_audit.commit.tables import WindowTable
from rag_audit.estimate.clusters import coalition_private, estimate_window
from rag_audit.estimate.statement import coalition_statement
from rag_audit.log.checkpoint import Checkpoint
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.models.manifest import check_manifest
from rag_audit.models.policy import Policy
from rag_audit.models.records import (
    CoalitionEstimate,
    QueryRecord,
    SlotKey,
    TenantEntry,
    WindowHeader,
    answer_digest,
)
from rag_audit.proofs.proving import backend
from rag_audit.proofs.statements.column import ColumnPublic
from rag_audit.proofs.statements.document_table import DocumentTablePublic
from rag_audit.proofs.statements.private import ColumnPrivate, CommittedColumn
from rag_audit.proofs.statements.retrieve import RecordPublic, record_public
from rag_audit.proofs.statements.sample import sample_public
from rag_audit.proofs.statements.tenant import ColumnCommitment, TenantPublic, tenant_public
from rag_audit.relation.commitments import vector_commitment
from rag_audit.relation.field import to_hex
from rag_audit.relation.native import slot_id
from rag_audit.relation.native_secrets import topk_commitment
from rag_audit.retrieval.query import OpenedQuery
from rag_audit.retrieval.serving import Asked, serving
from tests.simulate.windows import Base
from tests.window.forge import Forge

Slot = tuple[str, int]


@dataclass
class Answerer(Forge):
    """A `Forge` over a simulated window, which it proves from stored proofs.

    :param finished: the window, not proved yet
    """

    finished: Base
    proving: bool = False
    """whether records whose slots changed are answered again, and all proved again"""
    indices: dict[str, str] = field(default_factory=dict)
    """the tenant from whose index another one's questions are answered"""
    vectors: dict[Slot, list[int]] = field(default_factory=dict)
    """the vector in the place of a question's own"""
    eager: set[Slot] = field(default_factory=set)
    """records that name their proofs"""
    declared: dict[str, Any] = field(default_factory=dict)
    """what the closing record says of the coalition in the place of what is proved"""
    restated: Callable[[ColumnPublic], ColumnPublic] | None = None
    """what is proved of a tenant's kept positions, instead of what the policy says; needs `proving`"""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._slots = {(e["account"], e["i"]): self._slot(e) for e in self.queries}
        retained = self.finished.retained
        self._positions = {(e["account"], e["i"]): retained[e["hq"]].positions for e in self.queries}
        self._kept: dict[str, CommittedColumn] = {}
        self._sample()
        self._prove()

    # -- what records rest on --------------------------------------------------------------------------------

    @property
    def _policy(self) -> Policy:
        return Policy.parse(self.policy, field="policy")

    @property
    def _header(self) -> WindowHeader:
        return WindowHeader.parse(self.header, field="header")

    def _beacon_of(self, account: str) -> bytes:
        """The value that an account's slots use, as a verifier finds it."""
        enrolled = (e["seq"] for e in self.entries if e["type"] == "enrolment" and e["account"] == account)
        source = next(enrolled, 0)
        drawn = [e for e in self.entries if e["type"] == "beacon" and e["entry"] == source]
        return bytes.fromhex(drawn[-1]["value"]) if drawn else b""

    def _slot(self, e: dict[str, Any]) -> tuple[object, ...]:
        """What a record's noise and scores follow from, besides the question."""
        slot = slot_id(e["window"], e["tenant"], e["account"], e["i"])
        return self._beacon_of(e["account"]), slot, self.indices.get(e["tenant"])

    def _committed(self, tenant: str) -> CommittedTenant:
        return self.finished.commitment.tenants[self.indices.get(tenant, tenant)]

    def _public(self, name: str, policy: Policy) -> TenantPublic:
        entry = next(t for t in self.value["tenants"] if t["tenant"] == name)
        kept = self._kept.get(name)
        return tenant_public(
            TenantEntry.parse(entry, field="tenant"), policy=policy, manifest=check_manifest(self.value["embedder"]),
            header_digest=digest_hex(self.header), points=self._committed(name).points,
            table=self.finished.embedder.table, columns={} if kept is None else {"sample": kept.commitment},
        )  # fmt: skip

    def _query(self, e: dict[str, Any]) -> OpenedQuery:
        slot = e["account"], e["i"]
        retained = self.finished.retained[e["hq"]]
        vector = np.array(self.vectors[slot], np.int8).tobytes() if slot in self.vectors else None
        return OpenedQuery(retained.query, bytes.fromhex(retained.salt), self.finished.embedder, vector)

    def _drawn(self, e: dict[str, Any], policy: Policy) -> Any:
        """The slot's noise, or its coins."""
        secrets, rules = self.finished.commitment.secrets, policy.mechanism_of(e["tenant"])
        slot, beacon = SlotKey(e["tenant"], e["account"], e["i"]), self._beacon_of(e["account"])
        capacity = self._committed(e["tenant"]).index.capacity
        return serving(rules).draw(slot_key(secrets, e["window"], slot, beacon), capacity)

    # -- answering -------------------------------------------------------------------------------------------

    def answered(self) -> None:
        if self.proving:
            if self.restated is not None:
                self._sample()
            for e in self.queries:
                slot = e["account"], e["i"]
                if slot in self.vectors or self._slot(e) != self._slots.get(slot):
                    self._answer(e)
            self._prove()
        for e in self.queries:
            slot = e["account"], e["i"]
            if slot in self.eager:
                e["proof"] = digest_hex(self.proofs[slot])
        self._certify()

    def _answer(self, e: dict[str, Any]) -> None:
        """The record and its receipt as the slot's noise and the question give them."""
        policy, query, slot = self._policy, self._query(e), (e["account"], e["i"])
        tenant = self._committed(e["tenant"])
        noise = self._drawn(e, policy)
        mechanism = serving(policy.mechanism_of(e["tenant"]))
        (selected,) = mechanism.select(tenant.index, [Asked(query.vector, noise)], {})
        assert not isinstance(selected, Exception)
        positions = tuple(selected)
        documents = steps.document_openings(tenant, positions, self.finished.commitment.secrets, ())
        if slot in self.vectors:
            e["cq"] = to_hex(vector_commitment(query.salts.vector, self.vectors[slot]))
        e["htopk"] = to_hex(topk_commitment(query.salts.top_k, positions))
        e["hans"] = answer_digest(query.salts.answer, [bytes.fromhex(d.hash) for d in documents]).hex()
        self._positions[slot] = positions
        for held in self.receipts:
            if (held.account, held.i) == slot and not held.frozen:
                held.body["positions"] = list(positions)
                held.body["documents"] = [d.model_dump() for d in documents]

    # -- proving ---------------------------------------------------------------------------------------------

    def _sample(self) -> None:
        """The commitment and proof of each sampled tenant's kept positions, in the place of those just made."""
        policy, secrets, stored_proofs = (
            self._policy,
            self.finished.commitment.secrets,
            self.finished.stored_proofs,
        )
        for entry in (e for e in self.entries if e["type"] == "sample"):
            name = entry["tenant"]
            part = policy.tenant(name)
            assert part is not None
            system = backend(part.system)
            public, table = self._sampled(name, policy)

            def prove(
                system: Any = system, public: Any = public, name: str = name, table: Any = table
            ) -> Any:
                private: Any = ColumnPrivate(secrets.s0, secrets.s1, secrets.column_salt("sample", name))
                if table is not None:
                    public = replace(public, table=table.commit(system))
                    private = table.proof_inputs(secrets.s0, secrets.s1, low_memory=False)
                job = system.column("sample").prove(public, private)
                column = job.run()
                return {
                    "carried": None if table is None else column.carried.digest,
                    "digest": column.commitment.digest,
                    "points": column.commitment.points.hex(),
                    "proof": column.proof,
                    "opening": column.opening.hex(),
                }

            drawn = f"{public.beacon}/{public.slot}/{public.bound}"
            label = digest_hex(["sample", part.system, public.context.hex(), drawn])
            column = stored_proofs.other(label, prove)
            commitment = ColumnCommitment(column["digest"], bytes.fromhex(column["points"]))
            self._kept[name] = CommittedColumn(commitment, column["proof"], bytes.fromhex(column["opening"]))
            entry["commitment"] = commitment.digest
            entry["carried"] = column.get("carried")
            self.samples[name] = {"sample": column["proof"]}

    def _sampled(self, tenant: str, policy: Policy) -> tuple[ColumnPublic, WindowTable | None]:
        """The public values of a tenant's kept positions, and the tenant's table if they are about one."""
        public = sample_public(
            self._public(tenant, policy), policy, header=self._header, beacon=self._beacon_of("")
        )
        if self.restated is not None:
            public = self.restated(public)
        return public, self._committed(tenant).table if isinstance(public, DocumentTablePublic) else None

    def _prove(self) -> None:
        """A proof of each record, stored or made now."""
        policy, header = self._policy, self._header
        for e in self.queries:
            part = policy.tenant(e["tenant"])
            if part is None:
                continue
            system = backend(part.system)
            public = self._public(e["tenant"], policy)
            beacon = self._beacon_of(e["account"])
            values = record_public(self._parsed(e), public, header=header, beacon=beacon)

            def prove(
                name: str, e: dict[str, Any] = e, values: RecordPublic = values, system: Any = system
            ) -> Any:
                job = system.records(name, values.tenant).prove(
                    {"record": values}, [self._private(e, policy)]
                )
                return job.run()

            self.proofs[e["account"], e["i"]] = {
                name: self.finished.stored_proofs.proof(
                    [part.system, name, circuit],
                    system.records(name, public).steps.statement(values),
                    partial(prove, name),
                )
                for name, circuit in part.circuits.items()
                if name in ("retrieve", "embed")
            }

    def _parsed(self, e: dict[str, Any]) -> QueryRecord:
        return QueryRecord.parse(e, field="record")

    def _private(self, e: dict[str, Any], policy: Policy) -> Any:
        name, secrets = e["tenant"], self.finished.commitment.secrets
        rules, tenant = policy.mechanism_of(name), self._committed(name)
        sample = None
        if rules.columns:
            bits = column_bits(secrets, *self._sampled(name, policy))
            sample = bits.tobytes(), self._kept[name].opening
        return steps.record_private(
            self._query(e), self._positions[e["account"], e["i"]], tenant=tenant, window_secrets=secrets,
            noise=lambda: self._drawn(e, policy), noise_proof=lambda: None, low_memory=False, sample=sample,
        )  # fmt: skip

    # -- the coalition's proof -------------------------------------------------------------------------------

    def _certify(self) -> None:
        """The coalition proof that the policy asks for, over the entries before the closing record."""
        policy = self._policy
        requested = policy.estimator.coalition_proof
        if (
            requested is None
            or self.value["coalition_proof"] is not None
            or self.trailer["type"] != "trailer"
        ):
            return
        records = [self._parsed(e) for e in self.queries]
        queries = [self._query(e) for e in self.queries]
        estimate = estimate_window(records, [q.vector for q in queries], policy)
        declared: CoalitionEstimate = estimate.public()
        before: Sequence[Any] = self.entries[:-1]
        tree = HashTree(leaf_hash(jcs(e)) for e in before)
        statement = coalition_statement(
            records, declared, header_digest=digest_hex(self.header), dimension=self.finished.embedder.dimension,
            head=Checkpoint(self.log, tree.size, tree.root()), capacity=requested.records,
        )  # fmt: skip
        witness = coalition_private(
            records, estimate, [q.vector for q in queries], [q.salts.vector for q in queries]
        )
        proofs = backend(requested.system).coalition
        coalition_proof = self.finished.stored_proofs.other(
            digest_hex(["coalition", requested.system, requested.circuit, to_hex(statement.ctx)]),
            lambda: proofs.prove(statement, witness),
        )
        self.value["coalition_proof"] = coalition_proof
        proved = declared.model_copy(update={"coalition_proof": digest_hex(coalition_proof)}).model_dump()
        self.trailer["coalition"] = {**proved, **self.declared}
