"""Answers a window's queries: from signed requests to durable records, and to answers with their receipts.

The window answers waiting queries in batches, step by step. A refusal or failure of one query is the outcome of that
query only. A single query is a batch of one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import TypedDict

import numpy as np

from rag_audit._internal.canonical import MAX_SAFE_INTEGER, Json
from rag_audit._internal.errors import RagAuditError, RequestRefused, SchemaError
from rag_audit.attest import query as steps
from rag_audit.attest.columns import SampleStore
from rag_audit.attest.context import Context
from rag_audit.attest.listed_rows import ListedRowSets
from rag_audit.attest.noise_proofs import NoiseProofStore
from rag_audit.attest.proving import Prover
from rag_audit.attest.query import Query, Retained
from rag_audit.attest.receipts import make_receipt, signed_head
from rag_audit.attest.release import Release
from rag_audit.attest.waiting import ended, not_open_yet
from rag_audit.log.note import Note
from rag_audit.models.manifest import StaticTable
from rag_audit.models.records import QueryRecord
from rag_audit.models.requests import Answer, Refusal
from rag_audit.relation.native import hash_lists
from rag_audit.retrieval.noise_pool import NoisePool
from rag_audit.retrieval.query import OpenedQuery, commit_all
from rag_audit.retrieval.serving import Asked
from rag_audit.retrieval.serving.pooled_listing import PooledListingServing


class Named(TypedDict):
    """The fields of a refusal that name its request."""

    account: str
    i: int
    hq: str


def named_in(value: Json) -> Named:
    """Account, number and commitment of a request that may be malformed, if it has them."""
    if not isinstance(value, dict):
        return {"account": "", "i": 0, "hq": ""}
    number = value.get("i")
    return {
        "account": str(value.get("account", ""))[:128],
        "i": number if type(number) is int and 0 <= number <= MAX_SAFE_INTEGER else 0,
        "hq": str(value.get("hq", ""))[:64],
    }


class Answers:
    """Answers one window's queries. Safe to use from several threads.

    `release` is the release schedule of eagerly proved answers.
    """

    def __init__(
        self,
        context: Context,
        pool: NoisePool,
        noise_proofs: NoiseProofStore,
        prover: Prover,
        samples: SampleStore,
    ) -> None:
        self._context = context
        self._pool = pool
        self._noise_proofs = noise_proofs
        self._prover = prover
        self._samples = samples
        self._listed = ListedRowSets(context, samples)
        self._head: tuple[int, Note] | None = None
        self.release = Release()

    def end(self) -> None:
        """Store the sets that the next window begins with (`ListedRowSets.end`), once no record can follow."""
        self._listed.end()

    # -- requests --------------------------------------------------------------------------------------------

    def receive(self, query: Query) -> None:
        """Check a query's names and signature. This method does not check the question.

        :raises RequestRefused: the request is refused, with a reason from `requests.REFUSALS`
        """
        context = self._context
        steps.check_signed(
            query.request,
            header=context.header,
            header_digest=context.header_digest,
            account=context.state.accounts.get(query.account),
            policy=context.policy,
        )

    def answer(self, queries: Sequence[Query]) -> list[Answer | Refusal | Exception]:
        """Answer received queries, at most one per account, in one batch. Scores, commitments and append of a batch
        take little longer than those of one query.

        :returns: for each query its outcome: its answer or refusal, or an exception for a fault of this program, which
            affects no other query
        """
        self._take_steps(queries)
        for query in queries:
            if isinstance(query.outcome, RagAuditError):
                query.outcome = self.refusal(query.outcome, query.request.dump())
        return [outcome for query in queries if (outcome := query.outcome) is not None]

    def handle(self, value: Json, *, eager: bool) -> Answer | Refusal:
        """See `Window.handle`."""
        try:
            query = Query.parse(value, self._context.embedder)
            return self.query(query, eager=eager)
        except RagAuditError as exc:
            return self.refusal(exc, value)

    def query(self, query: Query, *, eager: bool) -> Answer:
        """See `Window.query`."""
        query.eager = eager
        self.receive(query)
        self._take_steps([query])
        if isinstance(query.outcome, Exception):
            raise query.outcome
        assert isinstance(query.outcome, Answer)
        return query.outcome

    def returned(self, record: QueryRecord) -> list[int]:
        """The positions of which the record's answer has a text.

        :raises StoreError: the record has no retained data, or they cannot be decrypted
        """
        context = self._context
        retained = context.retained(record)
        question, tenant = retained.opened(context.embedder), context.tenant(record.tenant)
        withheld = self._withheld(record.tenant, question, retained.positions)
        return [p for p in retained.positions if p not in withheld and p in tenant.documents_at]

    def refuse(self, reason: str, detail: str, *, account: str = "", i: int = 0, hq: str = "") -> Refusal:
        """See `Window.refuse`."""
        context = self._context
        refusal = Refusal(type="refusal", v=1, origin=context.header.origin, header=context.header_digest,
                          account=account, i=i, hq=hq, reason=reason, detail=detail, sig="0" * 128)  # fmt: skip
        return refusal.model_copy(update={"sig": context.key.sign(refusal.message()).hex()})

    def refusal(self, exc: RagAuditError, value: Json) -> Refusal:
        """The refusal of a request that ended with an error.

        :param value: the request, well-formed or not
        """
        if isinstance(exc, RequestRefused):
            return self.refuse(exc.reason, exc.message, **named_in(value))
        if isinstance(exc, SchemaError):
            return self.refuse("malformed", str(exc), **named_in(value))
        return self.refuse("unavailable", exc.message, **named_in(value))

    @property
    def batch(self) -> bool:
        """Whether queries may be answered in a batch. Queries with eager proofs, and queries without a static table for
        embedding, would delay each other.
        """
        static = isinstance(self._context.embedder.table, StaticTable)
        return self._context.policy.proving != "eager" and static

    # -- the steps -------------------------------------------------------------------------------------------

    def _take_steps(self, queries: Sequence[Query]) -> None:
        arrived = self.release.now()
        with ExitStack() as claims:
            commit_all([query.question for query in queries])
            _each(queries, self._open, lambda query: self._claim(query, claims), self._draw)
            self._select(queries, claims)
            _each(queries, self._draft, self._prove, self._seal, lambda query: self._delay(query, arrived))
            # No value computed from a slot leaves the process before its append is durable.
            _each(queries, self._append, self._appended, self._finish)
        for query in queries:
            if query.drawn is not None:
                self._pool.follow(query.slot)
            query.drawn = None

    def _open(self, query: Query) -> None:
        steps.check_opened(query.request, query.question)

    def _claim(self, query: Query, claims: ExitStack) -> None:
        """Reserve the account's turn until the batch ends. A recorded request gets its answer a second time."""
        request, state = query.request, self._context.state
        claims.enter_context(state.query_of(request.account))
        known = state.by_slot.get((request.account, request.i))
        if known is not None:
            self._again(query, known)
            return
        steps.check_visible(request)  # only for new requests
        self._check_turn(query)
        self._sample(request.tenant)

    def _draw(self, query: Query) -> None:
        """Fetch the values that the mechanism needs for the query's slot. The account's next slots are drawn after
        its answer."""
        steps.vector_of(query.question)
        if self._context.serving(query.tenant).draws:
            query.drawn = self._pool.get(query.slot, follow=False)

    def _select(self, queries: Sequence[Query], claims: ExitStack) -> None:
        """Select and commit to the positions of every query; the queries of a tenant share passes over its index.

        With pooled listing, the batch takes its tenant's turn until its records are durable, since each query starts
        from the set of listed rows that the query before it produced.
        """
        requested = defaultdict[str, list[Query]](list)
        for query in queries:
            if query.outcome is None:
                requested[query.tenant].append(query)
        context, result = self._context, list[Query]()
        for name, own in sorted(
            requested.items()
        ):  # in one order, so that no two batches wait for each other
            selected: Sequence[list[int] | Exception]
            if context.mechanism(name).pools:
                result += self._select_in_order(name, own, claims)
                continue
            try:
                selected = steps.select_positions(
                    own,
                    serving=context.serving(name),
                    tenant=context.tenant(name),
                    columns=self._samples.bits(name),
                )
            except Exception as exc:
                selected = [exc for _ in own]
            for query, positions in zip(own, selected, strict=True):
                if isinstance(positions, Exception):
                    query.outcome = positions
                else:
                    query.positions = tuple(positions)
                    result.append(query)
        lists = [
            context.mechanism(q.tenant).list_elements(q.question.salts.top_k, q.positions) for q in result
        ]
        for query, htopk in zip(result, hash_lists(lists), strict=True):
            query.htopk = htopk

    def _select_in_order(self, tenant: str, queries: Sequence[Query], claims: ExitStack) -> list[Query]:
        """Select the positions of queries of one tenant with pooled listing, one by one.

        :returns: the queries that have an answer
        """
        context, result = self._context, list[Query]()
        claims.enter_context(self._listed.turn(tenant))
        try:
            serving = context.serving(tenant)
            assert isinstance(serving, PooledListingServing)
            before, listed = self._listed.start(tenant)
            asked = [Asked(steps.vector_of(query.question), query.drawn) for query in queries]
            index, rows = context.tenant(tenant).index, self._samples.rows(tenant)
            for query, answer in zip(queries, serving.in_order(index, asked, rows, listed), strict=True):
                if isinstance(answer, Exception):
                    query.outcome = answer
                    continue
                query.positions = tuple(p for p in answer.places if p is not None)
                query.listed = tuple(int(row) for row in np.flatnonzero(answer.listed & ~listed))
                listed = answer.listed
                after = self._listed.commit(query.slot, query.request.hq, before, listed)
                query.chain = before, after
                before = after
                result.append(query)
        except Exception as exc:
            for query in queries:
                if query.chain is None and query.outcome is None:
                    query.outcome = exc
        return result

    def _draft(self, query: Query) -> None:
        """Make the record, except its place and time."""
        self._find_documents(query)
        after = None if query.chain is None else query.chain[1]
        query.record = steps.query_record(
            query.request, query.question, query.documents, window=self._context.header.window,
            htopk=query.htopk, listed_rows=after,
        )  # fmt: skip

    def _prove(self, query: Query) -> None:
        """Prove the record of an eagerly proved answer."""
        if self._is_eager(query):
            proof = self._prover.prove_now(query.drafted, query.question, query.positions)
            query.record = query.drafted.model_copy(update={"proof": proof})

    def _seal(self, query: Query) -> None:
        """Encrypt the data for a later proof or a repeated answer."""
        context, retained = self._context, Retained.of(query.question, query.positions, query.listed)
        query.sealed = steps.seal_retained(
            retained, context.secrets.retention_key, context.sealed_under(query.drafted)
        )

    def _delay(self, query: Query, arrived: float) -> None:
        """Wait until the release slot of a proved answer's record: its account and the window file show the time."""
        if self._is_eager(query):
            components = len(self._context.mechanism(query.tenant).gains)
            capacity = self._context.tenant(query.tenant).index.capacity
            self.release.delay(arrived, capacity=capacity, components=max(1, components))

    def _append(self, query: Query) -> None:
        """Pass the record to the ledger's writer, which commits all waiting records in one transaction."""
        draft = query.drafted
        query.appending = self._context.state.begin(
            draft,
            slot=(draft.account, draft.i),
            private=query.sealed,
            preceding=None if query.chain is None else query.chain[0],
        )

    def _appended(self, query: Query) -> None:
        """Wait until the record is durable."""
        assert query.appending is not None
        record = query.appending()
        assert isinstance(record, QueryRecord)
        if record.proof is not None:
            self._noise_proofs.drop(query.slot)
        query.record = record

    def _finish(self, query: Query) -> None:
        """Make the answer with its receipt."""
        context = self._context
        receipt = make_receipt(
            query.drafted,
            salt=query.question.salt,
            positions=query.positions,
            documents=query.documents,
            tree=context.state.tree,
            origin=context.header.origin,
            header_digest=context.header_digest,
            key=context.key,
            head=self._signed_head(),
        )
        query.outcome = Answer(type="answer", v=1, documents=[*query.returned], receipt=receipt)

    # -- helpers of the steps -------------------------------------------------------------------------------------

    def _is_eager(self, query: Query) -> bool:
        return query.eager or self._context.policy.proving == "eager"

    def _sample(self, tenant: str) -> None:
        """Commit to a sampled tenant's positions, if an interruption after the beacon's draw prevented it.

        :raises RequestRefused: the window is being closed, so the ledger accepts no such entry any more
        """
        self._samples.ensure(tenant, low_memory=self._prover.low_memory)
        if not self._samples.complete(tenant):
            raise RequestRefused("closed", "the window is closed")

    def _check_turn(self, query: Query) -> None:
        """Check that a request has its account's next number, and that the account's slots have a beacon."""
        request, header, state = query.request, self._context.header, self._context.state
        if state.trailer:
            raise RequestRefused("closed", "the window is closed")
        now = state.clock()
        drawn = state.beacon(request.account) is not None
        if not drawn or now < header.opens_at:
            raise RequestRefused(
                "not-open", not_open_yet(header, drawn=drawn), expected=header.opens_at, actual=now
            )
        if now > header.closes_at:
            raise RequestRefused("closed", ended(header), expected=header.closes_at, actual=now)
        if request.i > (limit := self._context.policy.n):
            raise RequestRefused(
                "limit", "the account has used its queries", field="request.i", expected=limit
            )
        if request.i != (following := state.next[request.account]):
            raise RequestRefused("out-of-order", "the number i is not the account's next", field="request.i",
                                 expected=following, actual=request.i)  # fmt: skip

    def _again(self, query: Query, record: QueryRecord) -> None:
        """Answer a repeated request identically, and refuse any other under its i without computation."""
        request = query.request
        if (request.hq, request.sig) != (record.hq, record.sig):
            raise RequestRefused("slot-used", "another request is recorded under this i", field="request.i",
                                 expected=record.hq, actual=request.hq)  # fmt: skip
        retained = self._context.retained(record)
        query.record, query.positions = record, retained.positions
        query.question = retained.opened(self._context.embedder)
        self._find_documents(query)
        self._finish(query)

    def _find_documents(self, query: Query) -> None:
        """Find which positions the answer returns without a text, the openings of all, and the returned documents.

        :raises StoreError: a position with a text has no row in the tenant's document table. The slot stays unused,
            since the record is not in the ledger yet
        """
        context, tenant = self._context, self._context.tenant(query.tenant)
        query.withheld = self._withheld(query.tenant, query.question, query.positions)
        query.documents = steps.document_openings(tenant, query.positions, context.secrets, query.withheld)
        query.returned = steps.documents_of(tenant, query.positions, query.withheld)

    def _withheld(self, tenant: str, question: OpenedQuery, positions: Sequence[int]) -> frozenset[int]:
        """The selected positions that an answer returns without a text."""
        committed = self._context.tenant(tenant)
        return self._context.serving(tenant).withheld(
            committed.index,
            lambda: steps.vector_of(question),
            positions,
            columns=self._samples.bits(tenant),
            documents=committed.documents_at,
        )

    def _signed_head(self) -> tuple[int, Note]:
        """The ledger's size and signed checkpoint. All answers at one size share the checkpoint."""
        context, head = self._context, self._head
        if head is None or head[0] != context.state.tree.size:
            head = self._head = signed_head(context.state.tree, context.header.log, context.key)
        return head


def _each(queries: Iterable[Query], *steps: Callable[[Query], None]) -> None:
    """Run each step for every query without an outcome, then the next step. An exception in a step becomes its
    query's outcome."""
    for step in steps:
        for query in queries:
            if query.outcome is None:
                try:
                    step(query)
                except Exception as exc:
                    query.outcome = exc
