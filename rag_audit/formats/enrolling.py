"""An account's signed request to be put on a roster, or to have its key there replaced."""

from __future__ import annotations

from typing import Literal

from cryptography.exceptions import InvalidSignature

from rag_audit.encoding.canonical import jcs
from rag_audit.errors import SchemaError, SignatureError
from rag_audit.formats.models import Hex32, Hex64, Identifier, Line, Model, One
from rag_audit.formats.records import RosterEntry
from rag_audit.ledger.keys import SigningKey, public_key

MAX_REQUEST_BYTES = 4096


class EnrolmentRequest(Model):
    """A roster line that its own key has signed; and, where it replaces a key, that key too.

    The signatures cover "rag-audit/enrolment/v1" || JCS of every field but the two.

    :param window: the window that the account wants to be in; a request for another window admits nobody
    :param previous: the key that is replaced
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
        key: SigningKey,
        *,
        origin: str,
        window: str,
        previous: SigningKey | None = None,
    ) -> EnrolmentRequest:
        """Make a request.

        :param key: the key of the roster line
        """
        old = None if previous is None else previous.verifier.public.hex()
        draft = cls(
            type="enrolment-request", v=1, origin=origin, window=window, account=line.account, tenant=line.tenant,
            key=line.key, previous=old, sig="0" * 128, previous_sig=None if old is None else "0" * 128,
        )  # fmt: skip
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
        for name, wanted, found in (("origin", origin, self.origin), ("window", window, self.window)):
            if wanted != found:
                raise SchemaError(f"the request is for another {name}", field=self.account, expected=wanted,
                                  found=found)  # fmt: skip
        message = self.message()
        _verify(self.key, self.sig, message, f"{self.account}.sig")
        if self.previous is not None or self.previous_sig is not None:
            if self.previous is None or self.previous_sig is None:
                raise SignatureError("a replaced key signs too", field=f"{self.account}.previous_sig")
            _verify(self.previous, self.previous_sig, message, f"{self.account}.previous_sig")


def _verify(key: str, signature: str, message: bytes, field: str) -> None:
    try:
        public_key(bytes.fromhex(key)).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError) as exc:
        raise SignatureError("the request is not signed by its key", field=field) from exc
