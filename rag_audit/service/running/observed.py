"""The events of a run that its folder does not contain, counted for the metrics since the process began."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Observed:
    """Counts of a run's failures and of its requests to witnesses. Safe to use from several threads.

    :param failures: failed attempts by the kind of the act, such as `prepare`
    :param retries: attempts after a failed one, by kind
    :param reasons: the last error of each act that failed at its last attempt, without the names of files
    :param requests: successful requests by witness, and `seconds` their total duration
    :param refused: failed requests by witness
    :param down_since: the time since which a witness answers no request, in milliseconds since the epoch
    :param stepped_at: the time of the run's last look for the next act, in milliseconds since the epoch
    """

    failures: Counter[str] = field(default_factory=Counter)
    retries: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, str] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    down_since: dict[str, int] = field(default_factory=dict)
    stepped_at: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def failed(self, action: str, reason: str, *, again: bool) -> None:
        """Count a failed attempt.

        :param action: the act, such as `prepare w-2`
        :param again: whether the attempt before this one failed too
        """
        with self._lock:
            self.failures[kind_of(action)] += 1
            self.retries[kind_of(action)] += again
            self.reasons = {**self.reasons, action: reason}

    def succeeded(self, action: str, *, again: bool) -> None:
        """Count a successful attempt.

        :param again: whether the attempt before this one failed
        """
        with self._lock:
            self.retries[kind_of(action)] += again
            self.reasons = {name: reason for name, reason in self.reasons.items() if name != action}

    def answered(self, witness: str, seconds: float) -> None:
        """Count a successful request to a witness."""
        with self._lock:
            self.requests[witness] += 1
            self.seconds[witness] = self.seconds.get(witness, 0.0) + seconds
            self.down_since.pop(witness, None)

    def unanswered(self, witness: str, now: int) -> None:
        """Count a failed request to a witness."""
        with self._lock:
            self.refused[witness] += 1
            self.down_since.setdefault(witness, now)


KINDS = {"prepare": "prepare", "the": "open", "close": "close", "prove": "prove", "challenge": "challenge",
         "challenges": "challenge", "deletion": "delete"}  # fmt: skip
"""The kinds of acts, by the first word of an act's name. All other acts are about an open window (`window`)."""


def kind_of(action: str) -> str:
    """The kind of an act, a label of the metrics.

    >>> kind_of("prepare w-2"), kind_of("the next window"), kind_of("w-2")
    ('prepare', 'open', 'window')
    """
    return KINDS.get(action.partition(" ")[0], "window")
