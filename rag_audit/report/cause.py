"""What a false check can come from: the provider, the reader's own pin, or a file that is not the published one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from rag_audit.report.model import CheckLine

_PINS = frozenset({"proof.key", "proof.embed.key", "coalition.key", "trust.noise_table", "trust.embedder",
                   "trust.manifest"})  # fmt: skip
"""The checks that compare a value of the window with a value that trust.toml pins."""
_FILE = frozenset({"ledger.root", "ledger.size"})
"""The checks that a damaged or incomplete copy of the window file fails."""


class Cause(StrEnum):
    """Where a reader looks first."""

    PIN = "pin"
    """every false check compares the window with a pin of trust.toml"""
    FILE = "file"
    """the file is not the ledger that the provider signed"""
    WINDOW = "window"
    """a false statement of the window that neither a pin nor a damaged copy explains"""


def cause_of(checks: Sequence[CheckLine]) -> Cause:
    """What the false checks of a report can come from."""
    false = {check.base for check in checks if check.outcome == "fail"}
    if false & _FILE:
        return Cause.FILE
    return Cause.PIN if false and false <= _PINS else Cause.WINDOW


SENTENCES = {
    Cause.PIN: (
        "The window does not match a value that the reader's trust file pins. Compare that pin with its source first:"
        " a wrong pin gives the same result. Rely on no figure of this page."
    ),
    Cause.FILE: (
        "The window file is not the ledger that the provider signed. Fetch the file again first: a damaged copy gives"
        " the same result. Rely on no figure of this page."
    ),
    Cause.WINDOW: "At least one statement of the window is false. Rely on no figure of this page.",
}
"""What a failed window means, by its cause."""
CAVEAT = (
    "The file is not what the provider signed, so what else did not pass may follow from that: fetch the file again"
    " before you hold any of it against the provider."
)
"""Printed beside the checks that did not pass, where the cause is the file."""
