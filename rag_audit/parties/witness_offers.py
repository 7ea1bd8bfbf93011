"""The nonces that a witness gives over a network: one for each opening that a provider asks for, and not without end.

A nonce costs the witness a line of its state until it is revealed. So only a provider's signed request draws one, the
same request draws the same one, and a provider has few that no opening has used.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from rag_audit.encoding.canonical import parse_json
from rag_audit.encoding.durable import PRIVATE_MODE, read_private, replace_file
from rag_audit.encoding.lock import locked
from rag_audit.formats.models import Hex32, Model
from rag_audit.formats.records import log_origin
from rag_audit.parties.witness import Witness
from rag_audit.parties.witness_rules import WitnessRefused

OFFERS_FILE = "offers.json"
MAX_OFFERS = 16
"""The most nonces of one provider that wait for their opening to be cosigned."""
MAX_OFFERS_BYTES = 8 << 20


class Offered(Model):
    """Commitments by provider and window."""

    origins: dict[str, dict[str, Hex32]] = Field(default_factory=dict)


class Offers:
    """The nonces that a witness offers, kept beside its state.

    :param directory: the witness's directory
    """

    def __init__(self, directory: Path, witness: Witness) -> None:
        self._file, self._lock, self._witness = directory / OFFERS_FILE, directory / "offers.lock", witness

    def commitment(self, origin: str, window: str) -> str:
        """The commitment to the nonce for a window's opening, 64 hex digits; the same one as often as it is asked for.

        :raises WitnessRefused: the window's opening is cosigned, or too many others wait for theirs
        """
        with locked(self._lock):
            if self._witness.last(log_origin(origin, window)) is not None:
                raise WitnessRefused("the window's opening is cosigned already", field="window", found=window)
            offered = self._read()
            waiting = offered.origins.get(origin, {})
            if (known := waiting.get(window)) is not None:
                return known
            waiting = {w: c for w, c in waiting.items() if self._witness.last(log_origin(origin, w)) is None}
            if len(waiting) >= MAX_OFFERS:
                raise WitnessRefused(
                    "too many nonces wait for their openings",
                    field="window",
                    expected=f"at most {MAX_OFFERS} of one provider",
                    found=window,
                )
            made = self._witness.nonce_commitment().hex()
            origins = {**offered.origins, origin: {**waiting, window: made}}
            replace_file(self._file, Offered(origins=origins).canonical(), mode=PRIVATE_MODE)
            return made

    def _read(self) -> Offered:
        if not self._file.exists():
            return Offered()
        data = read_private(self._file, max_bytes=MAX_OFFERS_BYTES)
        return Offered.parse(parse_json(data, source=str(self._file)), field=str(self._file))
