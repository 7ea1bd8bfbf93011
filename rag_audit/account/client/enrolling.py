"""An account's enrolment over HTTP: the request, and the interpretation of the reply. This module uses no socket."""

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
    """The account's request. It contains no random value, so every call returns the same request.

    :param window: the window; by default the last window for which the provider takes requests
    :raises SchemaError: the provider takes no requests for it
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
    """Interpret a response: return the provider's checked answer, or the time until the next attempt.

    :raises RequestRefused: the service does not take the request; the reason is the name of its error
    :raises SignatureError: the provider did not sign the answer
    :raises SetupError: the response is no answer, or patience is exhausted
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
        raise RequestRefused(name, str(value.get("message", "")), field="provider", actual=value.get("actual"),
                             expected=value.get("expected"))  # fmt: skip
    raise SetupError("the address does not belong to a service", field="url", expected="an answer to an enrolment"
        " request",
                     actual=f"status {status}", hint="check the URL that the provider gave you")  # fmt: skip
