"""How an account asks over HTTP to be enrolled: what is sent, and what a reply means. No socket is used here."""

from __future__ import annotations

from rag_audit._internal.canonical import parse_json
from rag_audit._internal.errors import RagAuditError, RequestRefused, SchemaError, SetupError
from rag_audit.account.account import Account
from rag_audit.account.client.attempts import AGAIN, Attempts, Wait
from rag_audit.account.client.reading import Reading
from rag_audit.log.keys import VerifierKey
from rag_audit.models.enrolling import EnrolmentAnswer, EnrolmentOffer, EnrolmentRequest

ENROLMENTS = "/v1/enrolments"
MAX_BYTES = 1 << 16


def offered() -> Reading[EnrolmentOffer]:
    """For which windows the provider takes requests."""
    data = yield ENROLMENTS, MAX_BYTES
    value = parse_json(data, source="enrolments", max_bytes=MAX_BYTES)
    return EnrolmentOffer.parse(value, field="enrolments")


def request_of(account: Account, offer: EnrolmentOffer, window: str | None) -> EnrolmentRequest:
    """The account's request, the same as often as it is asked for: nothing of it is drawn.

    :param window: the window; by default the last one that the provider takes requests for
    :raises SchemaError: the provider takes none for it
    """
    chosen = window or (offer.windows[-1] if offer.windows else "")
    if not chosen:
        raise SchemaError("the provider takes no enrolment requests at the moment", field="window")
    return EnrolmentRequest.sign(
        account.roster_entry,
        account.keys.newest,
        origin=offer.origin,
        window=chosen,
        previous=account.keys.before,
    )


def answered(
    attempts: Attempts,
    request: EnrolmentRequest,
    provider: VerifierKey,
    status: int,
    after: str | None,
    body: bytes,
) -> EnrolmentAnswer | Wait:
    """What a response says: the provider's answer, checked, or when to send the request again.

    :raises RequestRefused: the service does not take the request; the reason is the name of its error
    :raises SignatureError: the provider did not sign the answer
    :raises SetupError: the response is no answer, or patience has an end
    """
    try:
        value = parse_json(body, source="answer", max_bytes=MAX_BYTES)
    except RagAuditError:
        value = None
    if isinstance(value, dict) and status in (200, 202):
        answer = EnrolmentAnswer.parse(value, field="answer")
        answer.check(request, provider)
        return answer
    if status in AGAIN:
        return attempts.again(status, after)
    if isinstance(value, dict) and isinstance(name := value.get("error"), str):
        raise RequestRefused(name, str(value.get("message", "")), field="provider", found=value.get("found"),
                             expected=value.get("expected"))  # fmt: skip
    raise SetupError("the address is not a service's", field="url", expected="an answer to an enrolment request",
                     found=f"status {status}", hint="is this the URL that the provider named?")  # fmt: skip
