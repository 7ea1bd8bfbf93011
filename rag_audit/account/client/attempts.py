"""When a request is sent again, and which error its sender finally gets. This module uses no socket.

A request is signed and durable before it leaves, and the same request gets the same answer, so it may be sent any
number of times. It counts as unanswered only if it never left, or if the provider refused it finally.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from rag_audit._internal.canonical import Json, parse_json
from rag_audit._internal.errors import NotSent, RagAuditError, SetupError
from rag_audit._internal.printable import without_userinfo
from rag_audit._internal.retry_after import retry_after
from rag_audit.models.requests import MAX_ANSWER_BYTES, UNDECIDED

AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""Statuses of responses that are no reply to the request, or one after which it is only ever repeated."""


@dataclass(frozen=True)
class Patience:
    """How long and how often a request is sent.

    :param seconds: the time after which no new attempt begins
    :param attempts: maximum attempts
    :param pause_s: the pause after the first attempt; it doubles with each up to `longest_s`, and is drawn between half
        of that and the whole, so that accounts do not come back all at once. It is never less than `Retry-After`
    :param response_s: how long a response may take
    """

    seconds: float = 60.0
    attempts: int = 20
    pause_s: float = 0.2
    longest_s: float = 5.0
    response_s: float = 60.0


@dataclass(frozen=True)
class Wait:
    """A decision to send the request once more after this number of seconds."""

    seconds: float


class Attempts:
    """The attempts at sending one request.

    :param address: where to, for errors
    """

    def __init__(
        self, patience: Patience, address: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._patience = patience
        self._address = without_userinfo(address)
        self._clock = clock
        self._until = clock() + patience.seconds
        self._made = 0
        self._sent = False
        """whether any part of the request may have arrived"""

    def reply(self, status: int, after: str | None, body: bytes) -> Json | Wait:
        """Interpret a response: return a reply for the account to check, or the time until the next attempt.

        :param after: the header `Retry-After`, a number of seconds or a date
        :raises SetupError: the response is no reply, and patience is exhausted
        """
        self._sent = True
        value = _reply(body)
        final = status == 200 or (value is not None and value.get("reason") not in UNDECIDED)
        if value is not None and final:
            return {**value}
        if value is None and status not in AGAIN:
            raise SetupError("the address does not belong to a service", field=self._address,
                             expected="an answer or a refusal", actual=f"status {status}",
                             hint="check the URL that the provider gave you")  # fmt: skip
        wait = self._wait(retry_after(after) or 0.0)
        if wait is not None:
            return wait
        if value is not None:
            return {**value}  # the account gets the signed reason, and stores its request
        raise self._given_up(f"status {status}")

    def lost(self, actual: str, *, sent: bool) -> Wait:
        """The time until the next attempt after a connection that ended without a response.

        :param sent: whether any part of the request may have left
        :raises NotSent: no part of the request ever left, and patience is exhausted
        :raises SetupError: a part may have left, and patience is exhausted
        """
        self._sent = self._sent or sent
        wait = self._wait(0.0)
        if wait is None:
            raise self._given_up(actual)
        return wait

    def again(self, status: int, after: str | None) -> Wait:
        """The time until the next attempt of an idempotent request, after a response that asks for one.

        :raises SetupError: patience is exhausted
        """
        self._sent = True
        wait = self._wait(retry_after(after) or 0.0)
        if wait is None:
            raise self._given_up(f"status {status}")
        return wait

    def _wait(self, minimum: float) -> Wait | None:
        self._made += 1
        pause = min(self._patience.pause_s * 2 ** (self._made - 1), self._patience.longest_s)
        wait = max(minimum, pause * random.uniform(0.5, 1.0))
        if self._made >= self._patience.attempts or self._clock() + wait >= self._until:
            return None
        return Wait(wait)

    def _given_up(self, actual: str) -> SetupError:
        if not self._sent:
            return NotSent("the provider does not answer", field=self._address, actual=actual,
                           hint="no request was sent: repeat the command after the provider's service has"
                                " started")  # fmt: skip
        return SetupError("the provider does not answer", field=self._address, actual=actual,
                          hint="repeat the question; the client sends the same request")  # fmt: skip


def _reply(body: bytes) -> dict[str, Json] | None:
    """An answer or a refusal, recognised by its form only; the account checks it."""
    try:
        value = parse_json(body, source="reply", max_bytes=MAX_ANSWER_BYTES)
    except RagAuditError:
        return None
    return value if isinstance(value, dict) and value.get("type") in ("answer", "refusal") else None
