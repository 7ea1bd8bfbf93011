"""The proof of an account's names over HTTP: the interpretation of the reply. This module uses no socket."""

from __future__ import annotations

from rag_audit._internal.canonical import parse_json
from rag_audit._internal.errors import RagAuditError, RequestRefused, SetupError
from rag_audit.account.client.attempts import AGAIN, Attempts, Wait
from rag_audit.models.names import MAX_NAMES_ANSWER_BYTES, MAX_POSITIONS, NamesAnswer

NAMES = "/v1/names"
HINTS = {
    "not-returned": "the account's folder has an answer that the provider does not have in its log: run `rag-audit"
    " account receipt check`",
    "proof-limit": "name the window with --window in place of --url: the folder has the proof of earlier answers",
    "no-proof": "compare the names with one another and with earlier windows only: name the window with --window in"
    " place of --url",
    "NotFound": "the service is of another release, which proves no names: name the window with --window in place of"
    " --url",
    "wrong-window": "the provider serves another window by now: repeat the command",
}
"""The account's next step after a refusal, by its reason."""


def proved(attempts: Attempts, status: int, after: str | None, body: bytes) -> NamesAnswer | Wait:
    """Interpret a response: return the provider's answer, which is not checked here, or the time until the next
    attempt.

    :raises RequestRefused: the service does not take the request; the reason is the name of its error
    :raises SetupError: the response is no answer, or patience is exhausted
    """
    try:
        value = parse_json(
            body, source="names", max_bytes=MAX_NAMES_ANSWER_BYTES, max_values=2 * MAX_POSITIONS + 128
        )
    except RagAuditError:
        value = None
    if isinstance(value, dict) and status == 200:
        return NamesAnswer.parse(value, field="names")
    if status in AGAIN:
        return attempts.again(status, after)
    if isinstance(value, dict) and isinstance(name := value.get("error"), str):
        raise RequestRefused(name, str(value.get("message", "")), field="provider", actual=value.get("actual"),
                             expected=value.get("expected"), hint=HINTS.get(name))  # fmt: skip
    raise SetupError("the address does not belong to a service", field="url",
                     expected="an answer to a request for names", actual=f"status {status}",
                     hint="check the URL that the provider gave you")  # fmt: skip
