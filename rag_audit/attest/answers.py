"""The answering of a window's queries, from signed requests to durable records and answers with their receipts.

Requests that wait together are answered together, step by step: what one of them is refused for, or fails with, is its
outcome alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TypedDict, cast

from rag_audit._internal.canonical import MAX_SAFE_INTEGER, Json
from rag_audit._internal.errors import RagAuditError, RequestRefused, SchemaError
from rag_audit.attest import answering
from rag_audit.attest.answering import Retained
from rag_audit.attest.certificates import CertificateStore
from rag_audit.attest.columns import Holder, Keeper
from rag_audit.attest.context import Context
from rag_audit.attest.proving import Prover
from rag_audit.attest.receipts import make_receipt, signed_head
from rag_audit.attest.release import Release
from rag_audit.attest.state import Appending
from rag_audit.attest.waiting import ended, not_open_yet
from rag_audit.log.note import Note
from rag_audit.mechanisms.listing import Listing
from rag_audit.models.records import DocumentOpening, QueryRecord, SlotKey
from rag_audit.models.requests import Answer, DescribedDocument, Refusal, SignedRequest
from rag_audit.retrieval.engine import Int8Array, Int32Array
from rag_audit.retrieval.noise_pool import Drawn, NoisePool
from rag_audit.retrieval.query import OpenedQuery, commit_all


@dataclass
class Turn:
    """A request on its way, with what each step made of it. It is at its end once it has an outcome."""

    request: SignedRequest = field(repr=False)
    asked: OpenedQuery = field(repr=False)
    drawn: bool = False
    """whether what is drawn for its slot was taken from the pool"""
    positions: tuple[int, ...] = field(default=(), repr=False)
    withheld: frozenset[int] = field(default=frozenset(), repr=False)
    """the positions that the answer returns without a text"""
    htopk: str | None = None
    documents: Sequence[DocumentOpening] = field(default=(), repr=False)
    retained: Retained | None = field(default=None, repr=False)
    sealed: bytes | None = None
    record: QueryRecord | None = None
    """its draft, and from the append on what is in the ledger"""
    appending: Appending | None = None
    outcome: Answer | Exception | None = field(default=None, repr=False)

    @property
    def slot(self) -> SlotKey:
        return SlotKey(self.request.tenant, self.request.account, self.request.i)

    @property
    def drafted(self) -> QueryRecord:
        assert self.record is not None
        return self.record


def each(turns: Iterable[Turn], *steps: Callable[[Turn], None]) -> None:
    """Do each step of every turn that has no outcome before the next step. What one raises is its turn's outcome."""
    for step in steps:
        for turn in turns:
            if turn.outcome is None:
                try:
                    step(turn)
                except Exception as exc:
                    turn.outcome = exc


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
        self._head: tuple[int, Note] | None = None
        self.release = Release()

    # -- requests --------------------------------------------------------------------------------------------

    def received(self, value: Json) -> SignedRequest | Refusal:
        """A request whose form, names and signature are right, or why it is refused; its question is not looked at."""
        try:
            request = SignedRequest.parse(value, field="request")
            self._check_signed(request)
        except RagAuditError as exc:
            return self._refused(exc, value)
        return request

    def answer_all(
        self, requests: Sequence[SignedRequest], *, eager: bool = False
    ) -> list[Answer | Refusal | Exception]:
        """Answer requests that were `received`, at most one of an account, together: their scores, their commitments
        and their append take little longer than one's.

        :returns: for each its answer or refusal; or a fault of this program, which is nobody else's
        """
        return [
            self._refused(outcome, request.dump()) if isinstance(outcome, RagAuditError) else outcome
            for request, outcome in zip(requests, self._outcomes(requests, eager), strict=True)
        ]

    def query(self, request: SignedRequest, *, eager: bool) -> Answer:
        """See `Window.query`."""
        self._check_signed(request)
        (outcome,) = self._outcomes([request], eager)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def handle(self, value: Json, *, eager: bool) -> Answer | Refusal:
        """See `Window.handle`."""
        try:
            return self.query(SignedRequest.parse(value, field="request"), eager=eager)
        except RagAuditError as exc:
            return self._refused(exc, value)

    def refuse(self, reason: str, detail: str, *, account: str = "", i: int = 0, hq: str = "") -> Refusal:
        """See `Window.refuse`."""
        context = self._context
        refusal = Refusal(type="refusal", v=1, origin=context.opening.origin, opening=context.opening_digest,
                          account=account, i=i, hq=hq, reason=reason, detail=detail, sig="0" * 128)  # fmt: skip
        return refusal.model_copy(update={"sig": context.key.sign(refusal.message()).hex()})

    @property
    def together(self) -> bool:
        """Whether requests may be answered together. Those whose answers are proved first, and those that no static
        table embeds, would wait for each other.
        """
        return self._context.policy.proving != "eager" and self._context.embedder.table is not None

    def _refused(self, exc: RagAuditError, value: Json) -> Refusal:
        if isinstance(exc, RequestRefused):
            return self.refuse(exc.reason, exc.message, **named_in(value))
        if isinstance(exc, SchemaError):
            return self.refuse("malformed", str(exc), **named_in(value))
        return self.refuse("unavailable", exc.message, **named_in(value))

    def _check_signed(self, request: SignedRequest) -> None:
        context = self._context
        answering.check_signed(
            request,
            opening=context.opening,
            opening_digest=context.opening_digest,
            account=context.state.accounts.get(request.account),
            policy=context.policy,
        )

    # -- the steps -------------------------------------------------------------------------------------------

    def _outcomes(self, requests: Sequence[SignedRequest], eager: bool) -> list[Answer | Exception]:
        turns, arrived = [self._turn(request) for request in requests], self.release.now()
        at_once = eager or self._context.policy.proving == "eager"
        with ExitStack() as claims:
            commit_all([turn.asked for turn in turns])
            each(turns, self._open, lambda turn: self._claim(turn, claims))
            self._select(turns)
            self._commit(turns)
            each(turns, self._draft)
            if at_once:
                each(turns, self._prove)
            each(turns, self._seal)
            if at_once:
                each(turns, lambda turn: self._hold(turn, arrived))
            # Nothing that was computed from a slot leaves before its append is durable.
            each(turns, self._append, self._appended, self._finish)
        for turn in turns:
            if turn.drawn:
                self._noise.follow(turn.slot)
        found = [turn.outcome for turn in turns]
        assert all(outcome is not None for outcome in found)
        return cast("list[Answer | Exception]", found)

    def _turn(self, request: SignedRequest) -> Turn:
        return Turn(request, OpenedQuery(request.query, bytes.fromhex(request.salt), self._context.embedder))

    def _open(self, turn: Turn) -> None:
        answering.check_opened(turn.request, turn.asked)

    def _claim(self, turn: Turn, claims: ExitStack) -> None:
        """See that it is the account's turn, until all are answered; a request that is recorded is answered again."""
        request, state = turn.request, self._context.state
        claims.enter_context(state.query_of(request.account))
        known = state.by_slot.get((request.account, request.i))
        if known is not None:
            turn.outcome = self._again(request, known)
            return
        answering.check_visible(request)  # a recorded one is answered again, whatever it asked
        self._check_turn(request)
        self._sample(request.tenant)

    def _select(self, turns: Sequence[Turn]) -> None:
        """Find the positions of every turn: those of a tenant in common passes over its index."""
        policy, scored = self._context.policy, defaultdict[str, list[tuple[Turn, Int32Array]]](list)

        def prepare(turn: Turn) -> None:
            if policy.mechanism_of(turn.request.tenant).remembers:
                turn.positions = self._listed(turn)
            else:
                answering.vector_of(turn.asked)
                scored[turn.request.tenant].append((turn, self._noise_of(turn)))

        each(turns, prepare)
        for name, found in scored.items():
            together = [turn for turn, _ in found]
            try:
                selected = answering.select_positions(
                    [(turn.asked, noise) for turn, noise in found],
                    tenant=self._context.commitment.tenants[name],
                    policy=policy,
                    kept=self._keeper.bits(name),
                )
            except Exception as exc:
                selected = [exc for _ in found]
            for turn, positions in zip(together, selected, strict=True):
                if isinstance(positions, Exception):
                    turn.outcome = positions
                else:
                    turn.positions = positions

    def _commit(self, turns: Sequence[Turn]) -> None:
        """Commit to the positions of those that are no list of randomised response."""
        mechanism_of = self._context.policy.mechanism_of
        scored = [t for t in turns if t.outcome is None and mechanism_of(t.request.tenant).ranked]
        made = answering.list_commitments([(turn.asked, turn.positions) for turn in scored])
        for turn, htopk in zip(scored, made, strict=True):
            turn.htopk = htopk

    def _draft(self, turn: Turn) -> None:
        """Make the record, but for its place and time."""
        context, request, positions = self._context, turn.request, turn.positions
        tenant = context.commitment.tenants[request.tenant]
        turn.withheld = self._withheld(request.tenant, turn.asked, positions)
        turn.documents = answering.document_openings(tenant, positions, context.secrets, turn.withheld)
        remembers = context.policy.mechanism_of(request.tenant).remembers
        turn.record = answering.query_record(
            request, turn.asked, positions, turn.documents, window=context.opening.window,
            capacity=tenant.index.capacity, htopk=turn.htopk,
            held=self._holder.after(turn.slot, request.hq, positions) if remembers else None,
        )  # fmt: skip

    def _prove(self, turn: Turn) -> None:
        proof = self._prover.prove_now(turn.drafted, turn.asked, turn.positions)
        turn.record = turn.drafted.model_copy(update={"proof": proof})

    def _seal(self, turn: Turn) -> None:
        """Encrypt what a later proof or the same answer again needs."""
        context = self._context
        turn.retained = Retained.of(turn.asked, turn.positions)
        turn.sealed = answering.seal_retained(
            turn.retained, context.secrets.retention_key, context.sealed_under(turn.drafted)
        )

    def _hold(self, turn: Turn, arrived: float) -> None:
        """Wait until the record may get its time, which its account and the window file show."""
        draft = turn.drafted
        components = len(self._context.policy.mechanism_of(draft.tenant).gains)
        capacity = self._context.commitment.tenants[draft.tenant].index.capacity
        self.release.hold(arrived, capacity=capacity, components=max(1, components))

    def _append(self, turn: Turn) -> None:
        """Hand the record to the ledger's writer, who commits those together that wait together."""
        state, draft = self._context.state, turn.drafted
        turn.appending = state.begin(
            lambda seq: draft.model_copy(update={"seq": seq, "ts": state.timestamp_inside()}),
            slot=(draft.account, draft.i),
            private=turn.sealed,
        )

    def _appended(self, turn: Turn) -> None:
        """Wait until the record is durable."""
        assert turn.appending is not None
        record = turn.appending()
        assert isinstance(record, QueryRecord)
        if record.proof is not None:
            self._certificates.drop(turn.slot)
        turn.record = record

    def _finish(self, turn: Turn) -> None:
        assert turn.retained is not None
        turn.outcome = self._answer(turn.drafted, turn.retained, turn.documents, turn.withheld)

    # -- what the steps need ---------------------------------------------------------------------------------

    def _sample(self, tenant: str) -> None:
        """Commit to a sampled tenant's kept positions, where that was interrupted after the beacon was drawn.

        :raises RequestRefused: the window is being closed, so that the ledger takes no such entry any more
        """
        self._keeper.ensure(tenant, low_memory=self._prover.low_memory)
        if tenant in self._keeper.sampled and tenant not in self._context.state.kept:
            raise RequestRefused("closed", "the window is closed")

    def _listed(self, turn: Turn) -> tuple[int, ...]:
        """The positions that a listing tenant's mechanism lists for a question in its slot."""
        context, slot = self._context, turn.slot
        tenant, mechanism = context.commitment.tenants[slot.tenant], context.policy.mechanism_of(slot.tenant)
        kept = self._keeper.bits(slot.tenant)
        assert isinstance(mechanism, Listing) and kept is not None  # listing tenants sample
        held, chance = self._holder.before(slot), cast(Int8Array, self._drawn(turn))
        return answering.select_list(
            turn.asked, tenant=tenant, rules=mechanism.rules, kept=kept, held=held, chance=chance
        )

    def _noise_of(self, turn: Turn) -> Int32Array:
        """The slot's noise, drawn ahead where the tenant has any."""
        context, slot = self._context, turn.slot
        if not context.policy.mechanism_of(slot.tenant).gains:
            return context.noise(slot)  # which is none
        return cast(Int32Array, self._drawn(turn))

    def _drawn(self, turn: Turn) -> Drawn:
        """What is drawn for the slot. The account's next slots are drawn once this query is answered."""
        turn.drawn = True
        return self._noise.get(turn.slot, follow=False)

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
        asked = retained.opened(self._context.embedder)
        withheld = self._withheld(record.tenant, asked, retained.positions)
        documents = answering.document_openings(tenant, retained.positions, self._context.secrets, withheld)
        return self._answer(record, retained, documents, withheld)

    def _withheld(self, tenant: str, asked: OpenedQuery, positions: Sequence[int]) -> frozenset[int]:
        """The positions that an answer returns without a text."""
        context = self._context
        return answering.withheld_positions(
            asked, positions, tenant=context.commitment.tenants[tenant], policy=context.policy,
            kept=self._keeper.bits(tenant),
        )  # fmt: skip

    def _signed_head(self) -> tuple[int, Note]:
        """The ledger's size and signed checkpoint, which is the same for all that are answered at one size."""
        context, head = self._context, self._head
        if head is None or head[0] != context.state.tree.size:
            head = self._head = signed_head(context.state.tree, context.opening.log, context.key)
        return head

    def _answer(
        self,
        record: QueryRecord,
        retained: Retained,
        documents: Sequence[DocumentOpening],
        withheld: frozenset[int],
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
            head=self._signed_head(),
        )
        found = answering.documents_of(tenant, retained.positions, withheld)
        described = any(isinstance(document, DescribedDocument) for document in found)
        return Answer(type="answer", v=2 if described else 1, documents=found, receipt=receipt)
