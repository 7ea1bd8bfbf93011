"""The nonces that a witness gives over a network: one for each opening that a provider asks for, and one for the next
enrolments in each open window; not without end.

A nonce costs the witness a line of its state until it is revealed. So only a provider's signed request draws one, the
same request draws the same one, and a provider has few that no opening and no enrolment has used.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from rag_audit._internal.canonical import parse_json
from rag_audit._internal.durable import PRIVATE_MODE, read_private, replace_file
from rag_audit._internal.lock import locked
from rag_audit.models.models import Hex32, Model
from rag_audit.models.records import log_origin
from rag_audit.witness.rules import WitnessRefused
from rag_audit.witness.witness import Witness

OFFERS_FILE = "offers.json"
JOINING = "/enrolment"
"""Suffix that an offer for an open window's enrolments has after the window's id; it begins with a slash, which ids
exclude."""
MAX_OFFERS = 16
"""Maximum nonces of one provider that wait for a cosigned window header, or for a reveal over enrolments."""
MAX_OFFERS_BYTES = 8 << 20


class Offered(Model):
    """Commitments by provider, and by window or window and `JOINING`."""

    origins: dict[str, dict[str, Hex32]] = Field(default_factory=dict)


class Offers:
    """The nonces that a witness offers, stored in the witness's directory with its state.

    :param directory: the witness's directory
    """

    def __init__(self, directory: Path, witness: Witness) -> None:
        self.folder = directory
        self._file, self._lock, self._witness = directory / OFFERS_FILE, directory / "offers.lock", witness

    def commitment(self, origin: str, window: str) -> str:
        """The commitment to the nonce for a window's opening, or once that is cosigned for its next enrolments, 64 hex
        digits; the same one as often as it is asked for, until its opening is cosigned or it is revealed.

        :raises WitnessRefused: the window is closed, or too many nonces wait
        """
        with locked(self._lock):
            log = log_origin(origin, window)
            if self._witness.spent(log):
                raise WitnessRefused("the window is closed", field="window", actual=window)
            wanted = window if self._witness.last(log) is None else window + JOINING
            offered = self._read()
            waiting = offered.origins.get(origin, {})
            waiting = {w: c for w, c in waiting.items() if not self._over(origin, w, c)}
            if (known := waiting.get(wanted)) is not None:
                return known
            if len(waiting) >= MAX_OFFERS:
                raise WitnessRefused(
                    "too many nonces wait for their openings and enrolments",
                    field="window",
                    expected=f"at most {MAX_OFFERS} of one provider",
                    actual=window,
                )
            result = self._witness.nonce_commitment().hex()
            origins = {**offered.origins, origin: {**waiting, wanted: result}}
            replace_file(self._file, Offered(origins=origins).canonical(), mode=PRIVATE_MODE)
            return result

    def _over(self, origin: str, wanted: str, commitment: str) -> bool:
        """Whether an offer is spent: its opening is cosigned, its nonce revealed, or its window closed."""
        window = wanted.removesuffix(JOINING)
        log = log_origin(origin, window)
        if wanted == window:
            return self._witness.last(log) is not None
        return self._witness.spent(log, commitment)

    def _read(self) -> Offered:
        if not self._file.exists():
            return Offered()
        data = read_private(self._file, max_bytes=MAX_OFFERS_BYTES)
        return Offered.parse(parse_json(data, source=str(self._file)), field=str(self._file))
