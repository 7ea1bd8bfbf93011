"""The answering of a window's queries, from a signed request to a durable record and an answer with its receipt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, cast

from rag_audit.attest import answering
from rag_audit.attest.answering import Retained
from rag_audit.attest.certificates import CertificateStore
from rag_audit.attest.release import Release
from rag_audit.encoding.canonical import MAX_SAFE_INTEGER, Json
from rag_audit.errors import RagAuditError, RequestRefused, SchemaError
from rag_audit.formats.publics import SlotKey
from rag_audit.formats.receipts import make_receipt
from rag_audit.formats.records import DocumentOpening, QueryRecord
from rag_audit.formats.requests import Answer, DescribedDocument, Refusal, SignedRequest
from rag_audit.index.engine import Int8Array, Int32Array, NoisePool
from rag_audit.index.query import OpenedQuery
from rag_audit.parties.provider.context import Context
from rag_audit.parties.provider.holding import Holder
from rag_audit.parties.provider.keeping import Keeper
from rag_audit.parties.provider.proving import Prover
from rag_audit.parties.provider.waiting import ended, not_open_yet


class Named(TypedDict):
    """What a refusal says of its request."""

    account: str
    i: int
    hq: str


def named_in(value: Json) -> Named:
    """Account, number and commitment of a request that may be malformed, as far as it has them."""
    if not isinstance(value, dict):
        return {"account": "", "i": 0, "hq": ""}
    number = value.get("i")
    return {
        "account": str(value.get("account", ""))[:128],
        "i": number if type(number) is int and 0 <= number <= MAX_SAFE_INTEGER else 0,
        "hq": str(value.get("hq", ""))[:64],
    }


class Answers:
    """The answering of one window's requests. Safe to use from several threads.

    `release` is the schedule by which eagerly proved answers leave.
    """

    def __init__(
        self,
        context: Context,
        noise: NoisePool,
        certificates: CertificateStore,
        prover: Prover,
        keeper: Keeper,
    ) -> None:
        self._context = context
        self._noise = noise
        self._certificates = certificates
        self._prover = prover
        self._keeper = keeper
        self._holder = Holder(context)
        self.release = Release()

    def query(self, request: SignedRequest, *, eager: bool) -> Answer:
        """See `Window.query`."""
        arrived = self.release.now()
        context, state = self._context, self._context.state
        asked = answering.check_request(
            request,
            opening=context.opening,
            opening_digest=context.opening_digest,
            account=state.accounts.get(request.account),
            policy=context.policy,
            embedder=context.embedder,
        )
        with state.query_of(request.account):
            known = state.by_slot.get((request.account, request.i))
            if known is not None:
                return self._again(request, known)
            self._check_turn(request)
            slot = SlotKey(request.tenant, request.account, request.i)
            tenant = context.commitment.tenants[request.tenant]
            self._sample(request.tenant)
            positions = self._positions(asked, slot)
            documents = answering.document_openings(tenant, positions, context.secrets)
            listing = context.policy.rules_by_name(request.tenant).listing is not None
            draft = answering.query_record(
                request, asked, positions, documents, window=context.opening.window,
                capacity=tenant.index.capacity,
                held=self._holder.after(slot, request.hq, positions) if listing else None,
            )  # fmt: skip
            at_once = eager or context.policy.proving == "eager"
            proof = self._prover.prove_now(draft, asked, positions) if at_once else None
            retained = Retained.of(asked, positions)
            blob = answering.seal_retained(
                retained, context.secrets.retention_key, context.sealed_under(draft)
            )
            if at_once:
                # The wait comes before the record gets its time, which its account and the window file show.
                components = len(context.policy.rules_by_name(request.tenant).gains)
                self.release.hold(arrived, capacity=tenant.index.capacity, components=max(1, components))
            record = state.append(
                lambda seq: draft.model_copy(
                    update={"seq": seq, "ts": state.timestamp_inside(), "proof": proof}
                ),
                slot=(request.account, request.i),
                private=blob,
            )
            assert isinstance(record, QueryRecord)
            if record.proof is not None:
                self._certificates.drop(slot)
            return self._answer(record, retained, documents)

    def handle(self, value: Json, *, eager: bool) -> Answer | Refusal:
        """See `Window.handle`."""
        try:
            return self.query(SignedRequest.parse(value, field="request"), eager=eager)
        except RequestRefused as exc:
            reason, detail = exc.reason, exc.message
        except SchemaError as exc:
            reason, detail = "malformed", str(exc)
        except RagAuditError as exc:
            reason, detail = "unavailable", exc.message
        return self.refuse(reason, detail, **named_in(value))

    def refuse(self, reason: str, detail: str, *, account: str = "", i: int = 0, hq: str = "") -> Refusal:
        """See `Window.refuse`."""
        context = self._context
        refusal = Refusal(type="refusal", v=1, origin=context.opening.origin, opening=context.opening_digest,
                          account=account, i=i, hq=hq, reason=reason, detail=detail, sig="0" * 128)  # fmt: skip
        return refusal.model_copy(update={"sig": context.key.sign(refusal.message()).hex()})

    def _sample(self, tenant: str) -> None:
        """Commit to a sampled tenant's kept positions, where that was interrupted after the beacon was drawn.

        :raises RequestRefused: the window is being closed, so that the ledger takes no such entry any more
        """
        self._keeper.ensure(tenant, low_memory=self._prover.low_memory)
        if tenant in self._keeper.sampled and tenant not in self._context.state.kept:
            raise RequestRefused("closed", "the window is closed")

    def _positions(self, asked: OpenedQuery, slot: SlotKey) -> tuple[int, ...]:
        """The positions that answer a question in its slot, by the tenant's mechanism."""
        context, kept = self._context, self._keeper.bits(slot.tenant)
        tenant, rules = context.commitment.tenants[slot.tenant], context.policy.rules_by_name(slot.tenant)
        if rules.listing is None:
            return answering.select_positions(
                asked, tenant=tenant, noise=self._noise_of(slot), policy=context.policy, kept=kept
            )
        assert kept is not None  # listing tenants sample
        held, chance = self._holder.before(slot), cast(Int8Array, self._noise.get(slot))
        return answering.select_list(
            asked, tenant=tenant, rules=rules.listing, kept=kept, held=held, chance=chance
        )

    def _noise_of(self, slot: SlotKey) -> Int32Array:
        """The slot's noise, drawn ahead where the tenant has any."""
        context = self._context
        if not context.policy.rules_by_name(slot.tenant).gains:
            return context.noise(slot)  # which is none
        return cast(Int32Array, self._noise.get(slot))

    def _check_turn(self, request: SignedRequest) -> None:
        """Check that a request is its account's next, and that the account's slots have a beacon."""
        opening, state = self._context.opening, self._context.state
        if state.closing:
            raise RequestRefused("closed", "the window is closed")
        now = state.clock()
        drawn = state.beacon(request.account) is not None
        if not drawn or now < opening.opens_at:
            raise RequestRefused(
                "not-open", not_open_yet(opening, drawn=drawn), expected=opening.opens_at, found=now
            )
        if now > opening.closes_at:
            raise RequestRefused("closed", ended(opening), expected=opening.closes_at, found=now)
        if request.i > (limit := self._context.policy.n):
            raise RequestRefused(
                "limit", "the account has used its queries", field="request.i", expected=limit
            )
        if request.i != (following := state.next[request.account]):
            raise RequestRefused("out-of-order", "the number i is not the account's next", field="request.i",
                                 expected=following, found=request.i)  # fmt: skip

    def _again(self, request: SignedRequest, record: QueryRecord) -> Answer:
        """Answer a repeated request identically, and refuse any other under its i without computation."""
        if (request.hq, request.sig) != (record.hq, record.sig):
            raise RequestRefused("slot-used", "another request is recorded under this i", field="request.i",
                                 expected=record.hq, found=request.hq)  # fmt: skip
        retained = self._context.retained(record)
        tenant = self._context.commitment.tenants[record.tenant]
        documents = answering.document_openings(tenant, retained.positions, self._context.secrets)
        return self._answer(record, retained, documents)

    def _answer(
        self, record: QueryRecord, retained: Retained, documents: Sequence[DocumentOpening]
    ) -> Answer:
        context = self._context
        tenant = context.commitment.tenants[record.tenant]
        receipt = make_receipt(
            record,
            salt=bytes.fromhex(retained.salt),
            positions=retained.positions,
            documents=documents,
            tree=context.state.tree,
            origin=context.opening.origin,
            opening_digest=context.opening_digest,
            key=context.key,
        )
        found = answering.documents_of(tenant, retained.positions)
        described = any(isinstance(document, DescribedDocument) for document in found)
        return Answer(type="answer", v=2 if described else 1, documents=found, receipt=receipt)
