"""Proofs of the names of documents, for accounts that ask for them (docs/protocol.md, "Names of documents").

An answer opens the names of its documents by key and salt. The proof that these are the names of the rows at the
account's positions takes longer than an answer, so an account asks for it in a request of its own. The proof is about
positions of which the account received a text, and about no others: the name of any other row would tell the account
whether two positions that it never received belong to one document.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import PolicyError, RequestRefused
from rag_audit.attest.answers import Answers
from rag_audit.attest.context import Context
from rag_audit.attest.query import check_signed
from rag_audit.models.names import NamesAnswer, NamesRequest
from rag_audit.proofs.row_names import RowNames, row_names_of
from rag_audit.proofs.statements.row_names import RowNamesPublic
from rag_audit.proofs.statements.tenant import ColumnCommitment

MAX_CACHED = 16
"""The number of proofs that a window stores in memory, the latest ones."""
SPARE_PROOFS = 8
"""How many proofs an account gets in a window beyond its number of queries."""
_Key: TypeAlias = tuple[str, tuple[int, ...]]
"""Account and positions. A proof that another account waited for would come at once, and its time would tell an account
which passages others received."""


class NameProofs:
    """The proofs of the names of one window's documents. Safe to use from several threads."""

    def __init__(self, context: Context, answers: Answers) -> None:
        self._context = context
        self._answers = answers
        self._lock = threading.Lock()
        self._proving = threading.Lock()
        self._made: Counter[str] = Counter()
        self._committed: dict[str, ColumnCommitment] = {}
        self._proofs: OrderedDict[_Key, dict[str, Json]] = OrderedDict()
        self._returned: dict[str, tuple[int, set[int]]] = {}

    def receive(self, request: NamesRequest) -> None:
        """Check a request's names and signature.

        :raises RequestRefused: the request is for another window, by no account of the tenant or not signed by its key
        """
        context = self._context
        check_signed(
            request,
            header=context.header,
            header_digest=context.header_digest,
            account=context.state.accounts.get(request.account),
            policy=context.policy,
        )

    def answer(self, request: NamesRequest) -> NamesAnswer:
        """The names at an account's positions, with their proof. Equal requests of an account get the same proof.

        :raises RequestRefused: as `receive`; or the tenant has no document table (`no-table`), or no proof of names by
            its system (`no-proof`); or the account received no text of a position (`not-returned`), or has every
            proof that it can have in the window (`proof-limit`)
        :raises StoreError: a record's retained data cannot be decrypted, or a passage has no row
        :raises WitnessError: the table is not the committed one
        :raises MemoryLimitError: the machine has too little memory for the proof
        """
        self.receive(request)
        context, system = self._context, self._system(request.tenant)
        self._check_returned(request)
        tenant = context.tenant(request.tenant)
        names = [opening.name for p in request.positions if (opening := tenant.name_at(p)) is not None]
        return NamesAnswer(
            type="names-proof",
            v=1,
            header=context.header_digest,
            tenant=request.tenant,
            positions=request.positions,
            names=[name.hex() for name in names],
            proof=self._proof(request, names, system),
        )

    def _system(self, tenant: str) -> RowNames:
        if self._context.tenant(tenant).table is None:
            raise RequestRefused(
                "no-table", "the tenant has no document table", field="request.tenant", actual=tenant
            )
        part = self._context.policy.tenant(tenant)
        assert part is not None
        try:
            return row_names_of(part.system)
        except PolicyError as exc:
            raise RequestRefused("no-proof", exc.message, field="system", expected=exc.expected,
                                 actual=exc.actual) from exc  # fmt: skip

    def _check_returned(self, request: NamesRequest) -> None:
        """Refuse positions that no answer to the account has a text of, whether or not they have a document."""
        returned = self._positions_of(request.account)
        for position in request.positions:
            if position not in returned:
                raise RequestRefused(
                    "not-returned",
                    "the account received no text of a position in this window",
                    field="request.positions",
                    expected="positions of the account's answers",
                    actual=position,
                )

    def _positions_of(self, account: str) -> set[int]:
        """The positions of which the account received a text. Each record is examined once."""
        state = self._context.state
        with self._lock:
            count, known = self._returned.get(account, (0, set[int]()))
        returned = set(known)
        while (record := state.by_slot.get((account, count + 1))) is not None:
            returned.update(self._answers.returned(record))
            count += 1
        with self._lock:
            self._returned[account] = count, returned
        return returned

    def _proof(self, request: NamesRequest, names: Sequence[bytes], system: RowNames) -> dict[str, Json]:
        tenant, key = request.tenant, (request.account, tuple(request.positions))
        with self._proving:  # an equal request waits for the proof, and gets it
            with self._lock:
                known = self._proofs.get(key)
            if known is not None:
                return known
            self._require_proof_left(request.account)
            table = self._context.tenant(tenant).table
            assert table is not None
            if tenant not in self._committed:
                self._committed[tenant] = table.commit(self._context.system(tenant))
            statement = RowNamesPublic(
                header=self._context.header_digest,
                tenant=tenant,
                capacity=len(table.row_of_position),
                rows=len(table.table.rows),
                table=self._committed[tenant],
                positions=tuple(request.positions),
                names=names,
            )
            proof = system.prove(statement, table.private())
            self._made[request.account] += 1
            with self._lock:
                self._proofs[key] = proof
                while len(self._proofs) > MAX_CACHED:
                    self._proofs.popitem(last=False)
            return proof

    def _require_proof_left(self, account: str) -> None:
        """Refuse an account whose proofs are made: each answer can have new positions, and no account needs more."""
        maximum = self._context.policy.n + SPARE_PROOFS
        if self._made[account] >= maximum:
            raise RequestRefused(
                "proof-limit",
                "the account has received all proofs of names that it can have in this window",
                field="request.positions",
                expected=f"at most {maximum} lists of positions in a window",
                actual=f"{self._made[account]} lists and another one",
            )
