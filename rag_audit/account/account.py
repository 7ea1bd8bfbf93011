"""The account's side: it signs requests, checks answers, stores receipts, and gives them to a verifier.

The account's folder contains its key and its receipts; no other party's process opens the folder.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rag_audit._internal.canonical import Json, parse_json, read_json
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import (
    InvalidProof,
    NotSent,
    OtherWindow,
    RagAuditError,
    RequestRefused,
    SchemaError,
    SetupError,
    SignatureError,
    StoreError,
)
from rag_audit._internal.lock import locked
from rag_audit.account.names import (
    NamedPassage,
    NamesReport,
    StoredNames,
    check_names,
    check_proof,
    entry_of,
    passages_at,
    requested,
)
from rag_audit.log.keys import VerifierKey
from rag_audit.log.signing import SigningKey
from rag_audit.models.final_log import FinalLog
from rag_audit.models.manifest import check_manifest, re_executable
from rag_audit.models.models import Hex32, Identifier, Model, Positive
from rag_audit.models.names import NamesAnswer, NamesRequest
from rag_audit.models.publication import Publication
from rag_audit.models.receipts import OpenedReceipt, contradictions, open_receipt
from rag_audit.models.records import (
    CountersignedReceipt,
    DisclosedQuery,
    RosterEntry,
    document_digest,
    request_message,
)
from rag_audit.models.requests import MAX_ANSWER_BYTES, UNDECIDED, Answer, Refusal, SignedRequest
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.interface import Pins
from rag_audit.proofs.row_names import NamesSetup
from rag_audit.relation.field import to_hex
from rag_audit.retrieval.embedders import Embedder, get_embedder
from rag_audit.retrieval.embedders.declared import ManifestEmbedder
from rag_audit.retrieval.query import OpenedQuery, check_question, commit_all

KEY_FILE = "account.skey"


class AccountKeys:
    """The keys in an account's folder. Old keys stay there: receipts of a window are countersigned with the key of that
    window.

    :param directory: the account's folder
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        if not (directory / KEY_FILE).exists():
            raise SetupError("the folder holds no account", field=str(directory), expected=f"{KEY_FILE} in it",
                             hint="name the account's folder; `rag-audit account new FOLDER --id ID --tenant TENANT`"
                                  " makes one")  # fmt: skip
        self._keys = [SigningKey.load(directory / KEY_FILE)]
        while (path := self._path(len(self._keys) + 1)).exists():
            self._keys.append(SigningKey.load(path))

    @staticmethod
    def create(directory: Path, account: str) -> None:
        """Make the first key.

        :raises StoreError: there is one already
        """
        SigningKey.generate(account).save(directory / KEY_FILE)

    @property
    def newest(self) -> SigningKey:
        """The key that requests for enrolment announce."""
        return self._keys[-1]

    @property
    def before(self) -> SigningKey | None:
        """The key that the newest one replaces."""
        return self._keys[-2] if len(self._keys) > 1 else None

    def of(self, window: Publication, account: str) -> SigningKey:
        """The key that a window's roster has of the account; the newest, if the window has none of them."""
        if len(self._keys) > 1:
            on_roster = {
                line["key"]
                for line in window.roster
                if isinstance(line, dict) and line.get("account") == account
            }
            for key in self._keys:
                if key.verifier.public.hex() in on_roster:
                    return key
        return self.newest

    def renew(self, account: str) -> SigningKey:
        """Make a key that replaces the newest one."""
        key = SigningKey.generate(account)
        key.save(self._path(len(self._keys) + 1))
        self._keys.append(key)
        return key

    def _path(self, number: int) -> Path:
        return self._directory / f"account-{number}.skey"


def check_refusal(refusal: Refusal, request: SignedRequest, provider: VerifierKey) -> None:
    """Check that the provider signed a refusal, and that it refuses this request.

    >>> from rag_audit.models.trust import Trust
    >>> trust, folder = Trust.load(Path("docs/examples/trust.toml")), Path("docs/examples")
    >>> key = VerifierKey.parse(trust.provider.vkey, field="vkey")
    >>> refusal = Refusal.parse(read_json(folder / "refusal.json", max_bytes=4096), field="refusal")
    >>> request = SignedRequest.parse(read_json(folder / "request.json", max_bytes=4096), field="request")
    >>> check_refusal(refusal, request, key)

    :raises OtherWindow: the refusal belongs to another window, and leaves this request undecided in its own window
    :raises SignatureError: the refusal is for another request, or not signed by the provider
    """
    named = (refusal.origin, refusal.account, refusal.i, refusal.hq)
    mine = (request.origin, request.account, request.i, request.hq)
    if named != mine or not provider.verifies(bytes.fromhex(refusal.sig), refusal.message()):
        raise SignatureError("the refusal is not signed by the provider for this request", field="reply")
    if refusal.header != request.header:
        raise OtherWindow(
            "the provider now serves another window, and its refusal does not show whether the request was answered",
            field=f"i = {request.i}", expected=request.header, actual=refusal.header,
            hint="the request is kept. Ask anew in the window that is served, under the key that its roster has; the"
                 " ledger of the request's own window shows whether it has a record, once that window is closed",
        )  # fmt: skip


def check_openings(query: OpenedQuery, receipt: OpenedReceipt) -> None:
    """Check that a receipt's openings belong to the account's own question.

    The function checks cq if the account can embed its question to the last bit. For other embedders the provider
    declares cq, to its accounts as to a verifier.

    :raises InvalidProof: an opening belongs to another question
    """
    result = receipt.body
    checked = [("cq", query.cq, result.record.cq)] if re_executable(query.embedder.name) else []
    for name, expected, value in (
        *checked,
        ("salt_k", to_hex(query.salts.top_k), result.salt_k),
        ("salt_a", query.salts.answer.hex(), result.salt_a),
    ):
        if value != expected:
            raise InvalidProof(
                "the receipt is not about this query",
                field=f"receipt.{name}",
                expected=expected,
                actual=value,
            )


def check_documents(answer: Answer, receipt: OpenedReceipt, *, withholds: bool) -> None:
    """Check that an answer's documents are the committed ones at the receipt's positions, in rank order.

    A tenant with sampling returns unsampled positions without a text, and their digests stay closed.
    `receipts.contradictions` has already checked that the mechanism allows such positions. The account cannot
    distinguish an allowed position from a text that the provider withholds; docs/protocol.md, "Withheld texts",
    describes the remaining risk.

    :param withholds: whether the tenant's mechanism lists positions without their texts
    :raises InvalidProof: a text or its metadata differs, is omitted or was added, or the order differs
    """
    body = receipt.body
    texts = {d.position: d.passage.data for d in answer.documents}
    handed = [d.position for d in answer.documents]
    if handed != [p for p in body.positions if p in texts]:
        raise InvalidProof(
            "the answer is not in the receipt's order",
            field="answer.documents",
            expected=body.positions,
            actual=handed,
        )
    for position, document in zip(body.positions, body.documents, strict=True):
        if document.salt is None and withholds and position not in texts:
            continue
        data = texts.get(position, b"")
        if (salt := document.salt) is None or document_digest(
            bytes.fromhex(salt), data
        ).hex() != document.hash:
            raise InvalidProof(
                "a text or its metadata differs from the committed document",
                field=f"answer.documents, position {position}",
            )


MAX_FILE_BYTES = 16 << 20
MAX_RECEIPT_BYTES = MAX_ANSWER_BYTES
"""Maximum bytes of a stored receipt: the openings of an answer's names are parts of the answer."""
MAX_NAMES_BYTES = 256 << 20
RESTORED = (
    "this folder is an older copy of the account's folder, or another program asks with it: use the folder that has the"
    ' newest receipts, or wait for the next window (docs/accounts.md, "A restored folder")'
)
"""Hint for an account if the provider recorded more of its queries than its folder has receipts of."""
ROSTER = (
    "the provider adds the account's line (`rag-audit account new` prints it) to the roster of the next window, or"
    " approves a request (`rag-audit account request`)"
)
HINTS = {
    "slot-used": RESTORED,
    "closed": "ask again once the provider's next window is open",
    "unknown-account": ROSTER,
    "bad-signature": f"--account names another folder than the account's own, or the account has a new key: {ROSTER}",
    "limit": "ask again in the provider's next window",
}
"""The account's next step after a refusal, by its reason."""


class _Profile(Model):
    account: Identifier
    tenant: Identifier


class StoredReceipt(Model):
    """An account's record of one query, which is private because it opens every commitment of the query."""

    header: Hex32
    i: Positive
    query: str
    salt: Hex32
    receipt: str
    names: Json = None
    """for a tenant with a document table, the openings of the names of the passages' documents (`StoredNames`); else
    null. Receipts of earlier releases have no such field. Only `openings` reads it, so that no damage to the openings
    prevents the export of the receipt"""

    @classmethod
    def read(cls, path: Path) -> StoredReceipt:
        """A receipt in an account's folder.

        :raises RagAuditError: the file is no receipt, or cannot be read
        """
        return cls.parse(read_json(path, max_bytes=MAX_RECEIPT_BYTES), field=path.name)

    @property
    def openings(self) -> StoredNames | None:
        """The openings of the names; None without openings, or if they are damaged."""
        try:
            return None if self.names is None else StoredNames.parse(self.names, field="names")
        except SchemaError:
            return None


class _ProvedNames(Model):
    """The answers with the proof of a window's names."""

    answers: list[NamesAnswer]


class Account:
    """An account that signs its own requests.

    :param directory: the account's folder, made by `create`
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.keys = AccountKeys(directory)
        profile = _Profile.parse(
            read_json(directory / "account.json", max_bytes=MAX_FILE_BYTES), field="account.json"
        )
        self.account, self.tenant = profile.account, profile.tenant
        self._answers: dict[str, int] = {}  # by window, the cached result of `_answered`
        self._asked: OpenedQuery | None = None

    @classmethod
    def create(cls, directory: Path, account: str, tenant: str) -> Account:
        """Make a new account with a fresh key.

        :raises StoreError: the folder already contains an account
        """
        profile = _Profile.parse({"account": account, "tenant": tenant}, field="account")
        try:
            (directory / "receipts").mkdir(parents=True, exist_ok=True)
            directory.chmod(0o700)
        except OSError as exc:
            raise StoreError.of_os_error(exc, "the account's folder cannot be made", field=directory) from exc
        AccountKeys.create(directory, account)
        replace_file(directory / "account.json", profile.canonical())
        return cls(directory)

    @property
    def roster_entry(self) -> RosterEntry:
        """The account's public line for the provider's roster."""
        key = self.keys.newest.verifier.public.hex()
        return RosterEntry(account=self.account, tenant=self.tenant, key=key, custody="account")

    def sign(self, message: bytes) -> bytes:
        """The account's Ed25519 signature of a message, for a program that stores its requests itself."""
        return self.keys.newest.sign(message)

    def used(self, window: Publication) -> tuple[int, int, bool]:
        """How many of a window's queries the account has receipts of, how many the policy grants, and whether one more
        waits for its answer."""
        digest = window.header_digest()
        granted = window.parsed_policy().n
        return self._answered(digest), granted, self._pending(digest) is not None

    def unknown(self, window: Publication, recorded: Mapping[int, str]) -> list[int]:
        """The numbers of this account's queries that are in the provider's log and unknown to this folder: the folder
        has neither a receipt of them nor a pending request.

        :param recorded: the account's records in the log, hq by number (`client.reading.recorded`)
        """
        digest = window.header_digest()
        known = {kept.i for kept in self._receipts(digest)}
        pending = self._pending(digest)
        return sorted(
            i for i, hq in recorded.items()
            if i not in known and (pending is None or (pending.i, pending.hq) != (i, hq))
        )  # fmt: skip

    def request(self, window: Publication, text: str, *, embedder: Embedder | None = None) -> SignedRequest:
        """The next signed request. Until it is answered or refused, another call returns the same request.

        :raises RequestRefused: another query is still unanswered
        :raises NothingToEmbed: the question is blank, or has no vector
        :raises SizeError: the question is too long to be sent
        :raises EncodingError: the question is not Unicode
        """
        check_question(text)
        window.check()
        header, digest = window.parsed_header(), window.header_digest()
        pending = self._pending(digest)
        if pending is not None:
            if pending.query != text:
                raise RequestRefused(
                    "in-flight",
                    "the last request is not answered yet",
                    field=f"i = {pending.i}",
                    hint="repeat that request first, because the provider answers only one request with the same i",
                )
            return pending
        query = OpenedQuery(text, secrets.token_bytes(32), embedder or embedder_of(window))
        if re_executable(query.embedder.name):
            _ = query.vector  # refuse a question without a vector here, before the provider does
        self._asked = query
        commit_all([query])
        i, hq = 1 + self._answered(digest), query.hq
        message = request_message(header.origin, digest, self.tenant, self.account, i, hq)
        named: dict[str, Json] = {
            "type": "request", "v": 1, "origin": header.origin, "header": digest, "tenant": self.tenant,
            "account": self.account, "i": i, "hq": hq,
            "sig": self.keys.of(window, self.account).sign(message).hex(), "query": text,
            "salt": query.salt.hex(),
        }  # fmt: skip
        request = SignedRequest.parse(named, field="request")
        # The request is durable before it leaves. After a crash the account repeats it, and never replaces it under the
        # same i.
        self._save_private(self._pending_path(digest), request.canonical())
        return request

    def accept(
        self,
        window: Publication,
        request: SignedRequest,
        reply: Json,
        provider: VerifierKey,
        *,
        embedder: Embedder | None = None,
    ) -> Answer:
        """Check an answer and store its receipt. After a signed refusal the account may replace the request.

        The account knows its query, so it checks all values that depend on the query: that cq is the committed
        embedder's vector (A1, for its own queries), and that the openings use the account's own salt.

        :raises RequestRefused: the provider refused, with its signed reason
        :raises OtherWindow: another window refused, because the request arrived after its own window; the request's
            number stays in use
        :raises SignatureError: `provider` did not sign the reply or the receipt
        :raises InvalidProof: the receipt contradicts the answer or the published commitments
        """
        digest = window.header_digest()
        if isinstance(reply, dict) and reply.get("type") == "refusal":
            refusal = Refusal.parse(reply, field="reply")
            check_refusal(refusal, request, provider)
            if refusal.reason not in UNDECIDED:
                self._pending_path(digest).unlink(missing_ok=True)
            hint = HINTS.get(refusal.reason)
            raise RequestRefused(refusal.reason, refusal.detail, field="provider", hint=hint)
        answer = Answer.parse(reply, field="reply")
        receipt = check_receipt(answer.receipt, window, provider, request=request)
        mechanism = window.parsed_policy().mechanism_of(request.tenant)
        check_documents(answer, receipt, withholds=mechanism.withholds)
        check_openings(self._opened(request, embedder or embedder_of(window)), receipt)
        names = StoredNames.of(window, request.tenant, answer.documents)
        kept = StoredReceipt(
            header=digest,
            i=request.i,
            query=request.query,
            salt=request.salt,
            receipt=answer.receipt,
            names=None if names is None else names.dump(),
        )
        stored = kept.canonical()
        # An answer whose receipt cannot be read back would make every receipt in the folder unreadable.
        parse_json(stored, source="the answer's receipt with openings", max_bytes=MAX_RECEIPT_BYTES)
        self._save_private(self._receipt_path(digest, request.i), stored)
        if self._answers.get(digest) == request.i - 1:
            self._answers[digest] = request.i
        self._pending_path(digest).unlink(missing_ok=True)
        return answer

    def ask(
        self,
        window: Publication,
        text: str,
        provider: VerifierKey,
        send: Callable[[SignedRequest], Json],
        *,
        embedder: Embedder | None = None,
    ) -> Answer:
        """Ask one question: sign and send the request, check the reply, and store the receipt.

        A lock serialises calls by several processes. If an earlier call left a question without an answer, this call
        first repeats that question and stores its receipt. A request that never left the account (`NotSent`) is
        deleted, and its number becomes free.

        :raises NothingToEmbed: the question is blank; no request is signed or sent
        :raises SizeError: the question is too long; no request is signed or sent
        """
        check_question(text)
        with locked(self.directory / "lock"):
            before = self._pending(window.header_digest())
            if before is not None and before.query != text:
                try:
                    self.accept(window, before, send(before), provider, embedder=embedder)
                except RequestRefused as exc:
                    if exc.reason in UNDECIDED:
                        raise
                before = None
            request = self.request(window, text, embedder=embedder)
            try:
                reply = send(request)
            except NotSent:
                if before is None:
                    self._pending_path(request.header).unlink(missing_ok=True)
                raise
            return self.accept(window, request, reply, provider, embedder=embedder)

    def receipts(self, window: Publication | str) -> list[StoredReceipt]:
        """The account's receipts of a window, in the order of its questions.

        :param window: the window, or the digest of its header
        """
        return self._receipts(window if isinstance(window, str) else window.header_digest())

    def check_names(self, window: Publication, *, column: str | None = None) -> NamesReport:
        """Compare the names of documents in this window's answers with metadata, with one another and with those of
        earlier windows (`names.check_names`).

        :param column: the metadata field that names documents
        :raises SetupError: the tenant has no document table
        :raises InvalidProof: a comparison fails; the error names the document
        """
        digest = window.header_digest()
        earlier = [
            names
            for kept in self.all_receipts()
            if kept.header != digest and (names := kept.openings) is not None
        ]
        own, answers = self._openings(window)
        return replace(check_names(own, earlier, column=column), answers=answers)

    def passages(self, window: Publication) -> dict[int, NamedPassage]:
        """The passage at each position of which the account received a text in this window, before any comparison.

        :raises SetupError: the tenant has no document table, or the account has no passage of the window
        """
        return passages_at(self._openings(window)[0])

    def _openings(self, window: Publication) -> tuple[list[StoredNames], int]:
        """The readable openings of a window's answers, and the number of its answers."""
        window.check()
        entry_of(window, self.tenant)
        kept = self.receipts(window)
        own = [names for answer in kept if (names := answer.openings) is not None]
        if not any(stored.passages for stored in own):
            raise SetupError(
                "the account has no passage of this window",
                field="window",
                expected="an answer with passages and the openings of their names",
                actual=f"{window.parsed_header().window}: {len(kept)} answers, {len(own)} of them with openings",
                hint="ask a question first, or name another window with --window",
            )
        return own, len(kept)

    def names_requests(self, window: Publication, at: Mapping[int, NamedPassage]) -> list[NamesRequest]:
        """The signed requests for the proof of the names at these positions, of at most `MAX_POSITIONS` each.

        One proof shows that equal names share a row, and two proofs do not show it together. One request therefore has
        all positions of a document.

        :raises SetupError: a document has more positions than one request can have
        """
        parts, header = requested(at), window.parsed_header()
        return [
            NamesRequest.sign(
                self.keys.of(window, self.account),
                origin=header.origin,
                header=window.header_digest(),
                tenant=self.tenant,
                account=self.account,
                positions=positions,
            )
            for positions in parts
        ]

    def stored_proof(
        self, window: Publication, at: Mapping[int, NamedPassage], pins: Pins | None = None
    ) -> NamesSetup | None:
        """The setup of the proof in the account's folder of the names at exactly these positions; None without one.

        :raises InvalidProof: the stored proof is false
        """
        path = self._names_path(window.header_digest())
        if not path.exists():
            return None
        stored = _ProvedNames.parse(read_json(path, max_bytes=MAX_NAMES_BYTES), field=path.name)
        if [answer.positions for answer in stored.answers] != requested(at):
            return None
        # All proofs are of one circuit, so they have one setup.
        setups = [check_proof(window, self.tenant, at, answer, pins) for answer in stored.answers]
        return setups[0] if setups else None

    def usable_proof(
        self, window: Publication, at: Mapping[int, NamedPassage], pins: Pins | None = None
    ) -> NamesSetup | Literal["damaged"] | None:
        """Like `stored_proof`; "damaged" if the stored proof is no valid proof, and needs another one in its place."""
        try:
            return self.stored_proof(window, at, pins)
        except RagAuditError:
            return "damaged"

    def accept_names(
        self,
        window: Publication,
        at: Mapping[int, NamedPassage],
        requests: Sequence[NamesRequest],
        answers: Sequence[NamesAnswer],
        pins: Pins | None = None,
    ) -> NamesSetup | None:
        """Check the proofs of the names at all positions, store them, and return their setup.

        :raises InvalidProof: a name is another one, or a proof is false
        :raises SchemaError: an answer is about other positions than its request
        """
        setup: NamesSetup | None = None
        for request, answer in zip(requests, answers, strict=True):
            if request.positions != answer.positions:
                raise SchemaError(
                    "the answer is about other positions than the request", field="names.positions"
                )
            setup = check_proof(window, self.tenant, at, answer, pins)
        path = self._names_path(window.header_digest())
        path.parent.mkdir(exist_ok=True)
        self._save_private(path, _ProvedNames(answers=[*answers]).canonical())
        return setup

    def _names_path(self, digest: str) -> Path:
        return self.directory / "names" / f"{digest[:16]}.json"

    def export_receipts(self, window: Publication, folder: Path, *, disclose: bool = False) -> list[Path]:
        """Countersign this window's receipts for a verifier.

        :param disclose: whether to show query texts and salts too, so that the verifier can re-execute the embedder
        """
        written, key = [], self.keys.of(window, self.account)
        for kept in self._receipts(window.header_digest()):
            disclosed = DisclosedQuery(query=kept.query, salt=kept.salt) if disclose else None
            draft = CountersignedReceipt(
                type="receipt",
                v=1,
                account=self.account,
                receipt=kept.receipt,
                disclosed=disclosed,
                sig="0" * 128,
            )
            signed = draft.model_copy(update={"sig": key.sign(draft.message()).hex()})
            path = folder / f"{self.account}-{kept.i}.json"
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(path, signed.canonical())
            written.append(path)
        return written

    def export_tlog_proofs(
        self, window: Publication, file: WindowFile, folder: Path, provider: VerifierKey
    ) -> list[Path]:
        """Write, for each receipt of this window, a C2SP ``.tlog-proof`` of its record and the record's bytes.

        The proof leads to the window's final checkpoint with its cosignatures. With the provider's key and the
        witnesses' keys, a reader can check from this file that the record is in the log. The file reveals none of the
        receipt's openings.

        :param file: the closed window, with a cosigned final checkpoint
        :raises InvalidProof: the window lacks a receipt's record; the receipt is the evidence
        :raises SchemaError: the file is of another window, is not closed, or its entries do not match its checkpoint
        :raises SignatureError: its final checkpoint is not the provider's
        :raises WindowStateError: the final checkpoint has no cosignature
        """
        log = FinalLog.of(file, log_key=provider)
        digest = window.header_digest()
        if log.closed.digest != digest:
            raise SchemaError(
                "the window file belongs to another window",
                field="window.json",
                expected=digest,
                actual=log.closed.digest,
            )
        written = []
        for kept in self._receipts(digest):
            receipt = check_receipt(kept.receipt, window, provider)
            for suffix, data in (
                ("tlog-proof", str(log.proof(receipt.record)).encode()),
                ("entry", receipt.record.canonical()),
            ):
                path = folder / f"{self.account}-{kept.i}.{suffix}"
                folder.mkdir(parents=True, exist_ok=True)
                replace_file(path, data)
                written.append(path)
        return written

    def _pending_path(self, digest: str) -> Path:
        return self.directory / f"pending-{digest[:16]}.json"

    def _pending(self, digest: str) -> SignedRequest | None:
        path = self._pending_path(digest)
        if not path.exists():
            return None
        return SignedRequest.parse(read_json(path, max_bytes=MAX_FILE_BYTES), field=path.name)

    def _receipt_path(self, digest: str, i: int) -> Path:
        return self.directory / "receipts" / f"{digest[:16]}-{i}.json"

    def _opened(self, request: SignedRequest, embedder: Embedder) -> OpenedQuery:
        """The opened question of a request: the cached last question, with its vector, or a new one."""
        requested = self._asked
        named = (request.query, request.salt, embedder)
        if requested is not None and (requested.text, requested.salt.hex(), requested.embedder) == named:
            return requested
        return OpenedQuery(request.query, bytes.fromhex(request.salt), embedder)

    def _answered(self, digest: str) -> int:
        """Number of a window's queries with a receipt. The value is cached, and recounted if another process has
        asked since."""
        known = self._answers.get(digest)
        if known is None or self._receipt_path(digest, known + 1).exists():
            known = self._answers[digest] = self._count(digest)
        return known

    def _count(self, digest: str) -> int:
        """Number of a window's receipts: the number of its last receipt, the only one that this method reads.

        A part of the digest names the files. If a file is missing or belongs to another window, the method reads all
        files.
        """
        folder, prefix = self.directory / "receipts", digest[:16]
        names = [path.name for path in folder.glob(f"{prefix}-*.json")]
        path = folder / f"{prefix}-{len(names)}.json"
        if path.name not in names:
            return len(self._receipts(digest))
        last = StoredReceipt.read(path)
        return last.i if (last.header, last.i) == (digest, len(names)) else len(self._receipts(digest))

    def all_receipts(self) -> list[StoredReceipt]:
        """The account's receipts of all windows.

        :raises RagAuditError: a file is no receipt, or cannot be read
        """
        paths = sorted((self.directory / "receipts").glob("*-*.json"))
        return [StoredReceipt.read(path) for path in paths]

    def _receipts(self, digest: str) -> list[StoredReceipt]:
        paths = (self.directory / "receipts").glob(f"{digest[:16]}-*.json")
        kept = [StoredReceipt.read(path) for path in paths]
        return sorted((k for k in kept if k.header == digest), key=lambda k: k.i)

    def _save_private(self, path: Path, data: bytes) -> None:
        replace_file(path, data, mode=0o600)


def embedder_of(window: Publication, model: Path | None = None) -> Embedder:
    """The embedder (or at least its tokeniser) that a window's manifest names.

    >>> embedder_of(Publication.load(Path("docs/examples"))).name
    'wordllama-lexical-768'

    :param model: the folder of its files, if it has any
    :raises SetupError: the embedder is not installed here
    :raises SchemaError: the manifest is not well-formed, or this release's embedder of that name has another
    """
    part = check_manifest(window.embedder)["embedder"]
    if model is None and not re_executable(part["kind"]):
        return ManifestEmbedder(part)
    tokens = part["tokens"]
    limits = {"query_tokens": tokens["query"], "document_tokens": tokens["document"]}
    embedder = get_embedder(part["kind"], folder=model, **limits)
    if embedder.manifest() != part:
        raise SchemaError(
            "this release's embedder differs from the committed embedder", field="embedder", expected=part
        )
    return embedder


def check_receipt(
    text: str, window: Publication, provider: VerifierKey, *, request: SignedRequest | None = None
) -> OpenedReceipt:
    """Check a receipt as an account can without other parties: signatures, inclusion, openings, and the match with its
    own request.

    >>> from rag_audit.models.records import CountersignedReceipt
    >>> from rag_audit.models.trust import Trust
    >>> trust, folder = Trust.load(Path("docs/examples/trust.toml")), Path("docs/examples")
    >>> key = VerifierKey.parse(trust.provider.vkey, field="vkey")
    >>> file = read_json(folder / "receipts/law-1-1.json", max_bytes=1 << 20)
    >>> text = CountersignedReceipt.parse(file, field="receipt").receipt
    >>> len(check_receipt(text, Publication.load(folder), key).body.positions)
    2

    :raises SignatureError: the provider did not sign the receipt for this window
    :raises InvalidProof: the provider's signed data contradict each other
    """
    window.check()
    header = window.parsed_header()
    receipt = open_receipt(
        text, origin=header.origin, header_digest=window.header_digest(), log_key=provider, field="receipt"
    )
    record = receipt.record
    tenant = next((t for t in window.parsed_tenants() if t.tenant == record.tenant), None)
    if tenant is None:
        raise InvalidProof(
            "the receipt names an unknown tenant", field="receipt.record", actual=record.tenant
        )
    wrong = contradictions(receipt, tenant, window.parsed_policy())
    if wrong:
        raise InvalidProof("the receipt contradicts its own record", field="receipt", actual=wrong[0])
    if request is not None:
        mine = (request.account, request.tenant, request.i, request.hq, request.sig)
        named = (record.account, record.tenant, record.i, record.hq, record.sig)
        if named != mine:
            raise InvalidProof(
                "the receipt belongs to another request", field="receipt.record", expected=mine, actual=named
            )
    return receipt
