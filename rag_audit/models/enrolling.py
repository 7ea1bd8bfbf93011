"""An account's signed request to be put on a roster, or to have its key there replaced."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rag_audit._internal.canonical import jcs
from rag_audit._internal.errors import SchemaError, SignatureError
from rag_audit.log.keys import Signer, VerifierKey, signed_by
from rag_audit.models.models import Hex32, Hex64, Identifier, Line, Model, One, Positive
from rag_audit.models.records import RosterEntry

MAX_REQUEST_BYTES = 4096
MAX_REASON = 500


class EnrolmentRequest(Model):
    """A roster line signed by its own key. If the line replaces a key, the replaced key signs it too.

    The signatures cover "rag-audit/enrolment/v1" || JCS of every field except the two signatures.

    :param window: the window that the account wants to join; a request for another window admits no account
    :param previous: the replaced key
    """

    type: Literal["enrolment-request"]
    v: One
    origin: Line
    window: Identifier
    account: Identifier
    tenant: Identifier
    key: Hex32
    previous: Hex32 | None
    sig: Hex64
    previous_sig: Hex64 | None

    @classmethod
    def sign(
        cls,
        line: RosterEntry,
        key: Signer,
        *,
        origin: str,
        window: str,
        previous: Signer | None = None,
    ) -> EnrolmentRequest:
        """Make a request.

        :param key: the key of the roster line
        :raises SchemaError: origin or window is no name of one
        """
        old = None if previous is None else previous.verifier.public.hex()
        fields = {
            "type": "enrolment-request", "v": 1, "origin": origin, "window": window, "account": line.account,
            "tenant": line.tenant, "key": line.key, "previous": old, "sig": "0" * 128,
            "previous_sig": None if old is None else "0" * 128,
        }  # fmt: skip
        draft = cls.parse(fields, field="request")
        message = draft.message()
        signed = {"sig": key.sign(message).hex()}
        if previous is not None:
            signed["previous_sig"] = previous.sign(message).hex()
        return draft.model_copy(update=signed)

    def message(self) -> bytes:
        """The bytes that are signed."""
        body = {name: value for name, value in self.dump().items() if name not in ("sig", "previous_sig")}
        return b"rag-audit/enrolment/v1" + jcs(body)

    def roster_entry(self) -> RosterEntry:
        """The line that the account asks for; its key is its own."""
        return RosterEntry(account=self.account, tenant=self.tenant, key=self.key, custody="account")

    def check(self, *, origin: str, window: str) -> None:
        """Check that the holder of the key, and of the one it replaces, asks for this window.

        :raises SchemaError: the request is for another provider or window
        :raises SignatureError: a signature is missing or wrong
        """
        for name, wanted, actual in (("origin", origin, self.origin), ("window", window, self.window)):
            if wanted != actual:
                raise SchemaError(f"the request is for another {name}", field=self.account, expected=wanted,
                                  actual=actual)  # fmt: skip
        message = self.message()
        _verify(self.key, self.sig, message, f"{self.account}.sig")
        if self.previous is not None or self.previous_sig is not None:
            if self.previous is None or self.previous_sig is None:
                raise SignatureError(
                    "the replaced key also has to sign", field=f"{self.account}.previous_sig"
                )
            _verify(self.previous, self.previous_sig, message, f"{self.account}.previous_sig")


def _verify(key: str, signature: str, message: bytes, field: str) -> None:
    if not signed_by(bytes.fromhex(key), message, bytes.fromhex(signature)):
        raise SignatureError("the request is not signed by its key", field=field)


Standing = Literal["pending", "approved", "enrolled", "rejected"]
"""The state of a request. A `pending` request has no decision yet. The line of an `approved` request is on the
roster file of the next window, and waits for its entry if its own window is open. An `enrolled` request has its
entry."""


class EnrolmentAnswer(Model):
    """A provider's answer to an enrolment request, signed with the provider's key.

    The signature covers "rag-audit/enrolment-answer/v1" || JCS of every field except `sig`.

    :param request: SHA-256 over the request's canonical JSON
    :param reason: the reason, for people; it may be empty
    :param seq: for an enrolled account, the index of its entry in the log of the window that the request names
    """

    type: Literal["enrolment-answer"]
    v: One
    origin: Line
    window: Identifier
    account: Identifier
    request: Hex32
    status: Standing
    reason: Annotated[str, Field(max_length=MAX_REASON)]
    seq: Positive | None
    sig: Hex64

    @classmethod
    def sign(
        cls, request: EnrolmentRequest, key: Signer, status: Standing, reason: str, seq: int | None
    ) -> EnrolmentAnswer:
        """Make an answer.

        :param key: the provider's key
        """
        draft = cls(
            type="enrolment-answer", v=1, origin=request.origin, window=request.window, account=request.account,
            request=request.digest(), status=status, reason=reason[:MAX_REASON], seq=seq, sig="0" * 128,
        )  # fmt: skip
        return draft.model_copy(update={"sig": key.sign(draft.message()).hex()})

    def message(self) -> bytes:
        """The bytes that are signed."""
        return b"rag-audit/enrolment-answer/v1" + jcs({k: v for k, v in self.dump().items() if k != "sig"})

    def check(self, request: EnrolmentRequest, provider: VerifierKey) -> None:
        """Check that this is the provider's answer to a request.

        :raises SignatureError: the provider did not sign the answer
        :raises SchemaError: the answer is about another request
        """
        if not provider.verifies(bytes.fromhex(self.sig), self.message()):
            raise SignatureError("the answer is not signed by the provider", field="answer.sig")
        mine = (request.origin, request.window, request.account, request.digest())
        if (self.origin, self.window, self.account, self.request) != mine:
            raise SchemaError("the answer is about another request", field="answer.request", expected=request.digest(),
                              actual=self.request)  # fmt: skip


class EnrolmentOffer(Model):
    """The windows for which a provider takes enrolment requests.

    :param open: the open window; a request that names it asks for an entry in its log
    """

    origin: Line
    windows: list[Identifier]
    open: Identifier | None
