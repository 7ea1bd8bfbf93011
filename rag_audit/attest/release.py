"""The release schedule of eagerly proved answers. It reveals no information about the computation.

A proof's duration may depend on secrets (docs/security.md, "Side channels"). So an eager answer is released, and its
record gets its time, at a multiple of a public period after the request arrived: the first multiple after the answer is
ready.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable

from rag_audit._internal.errors import PolicyError

log = logging.getLogger(__name__)

MIN_S = 1.0
DRAWS_PER_S = 100_000
MIN_PERIOD_S = 0.001
MAX_PERIOD_S = 3600.0


def period_of(capacity: int, components: int) -> float:
    """The seconds between two release slots, from public sizes: one, and another for each 10^5 draws of noise.

    :param capacity: positions of the tenant's index
    :param components: gains of the noise
    """
    return MIN_S + math.ceil(capacity * components / DRAWS_PER_S)


class Release:
    """The release schedule of one window's eager answers. Safe to use from several threads.

    `period_s` may be set at any time. `missed` counts the answers that were not ready in the first release slot after
    their request.
    """

    def __init__(
        self,
        period_s: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.period_s = period_s
        self.missed = 0
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()

    @property
    def period_s(self) -> float | None:
        """The seconds between two release slots, or None for `period_of` each tenant's sizes.

        :raises PolicyError: the new value is not from a thousandth of a second to an hour
        """
        return self._period_s

    @period_s.setter
    def period_s(self, value: float | None) -> None:
        if value is not None and not MIN_PERIOD_S <= value <= MAX_PERIOD_S:
            raise PolicyError(
                "the period is not valid",
                field="release.period_s",
                expected=f"{MIN_PERIOD_S}..{MAX_PERIOD_S}",
                actual=value,
            )
        self._period_s = value

    def now(self) -> float:
        """The seconds since some fixed instant."""
        return self._clock()

    def delay(self, arrived: float, *, capacity: int, components: int) -> None:
        """Wait until the next release slot of a request that arrived at `arrived`. The caller must hold no lock.

        :param capacity: positions of the tenant's index
        :param components: gains of the noise
        """
        period = self.period_s if self.period_s is not None else period_of(capacity, components)
        slots = max(1, math.ceil((self._clock() - arrived) / period))
        due = arrived + slots * period
        while (left := due - self._clock()) > 0:
            self._sleep(left)
        if slots > 1:
            with self._lock:
                self.missed += 1
                missed = self.missed
            log.warning(
                "an eager answer was not ready in its first slot, %g s after its request (%d so far): "
                "a longer period reveals less of the time that its proof took",
                period,
                missed,
            )
