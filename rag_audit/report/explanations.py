"""The meaning of each check (explanations.toml), and the possible causes of a false check: the provider, the reader's
own pin, or a file that differs from the published one.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from rag_audit._internal.errors import SetupError
from rag_audit._internal.words import marked
from rag_audit.report.model import CheckLine, Explanation
from rag_audit.verify.checks.trust import ABSENT
from rag_audit.verify.standing import base_id

GROUPS = ("header", "ledger", "proof", "receipt", "coalition", "bound", "trust")


@cache
def explanations() -> Mapping[str, Explanation]:
    """Every check's explanation by its id, in the order of docs/protocol.md."""
    text = resources.files("rag_audit.report").joinpath("explanations.toml").read_text(encoding="utf-8")
    return dict(_flat(tomllib.loads(text), ""))


def _flat(table: Mapping[str, Any], prefix: str) -> list[tuple[str, Explanation]]:
    if "means" in table:
        own = {k: v for k, v in table.items() if not isinstance(v, dict)}
        own["honest_causes"] = own.pop("causes")
        return [(prefix, Explanation.parse(own, field=f"explanations.{prefix}"))]
    return [
        explanation
        for name, inner in table.items()
        for explanation in _flat(inner, f"{prefix}.{name}" if prefix else name)
    ]


def explained(check: str) -> Explanation:
    """The explanation of a check, named with or without its tenant.

    :raises SetupError: there is no such check; the error names the ids that come nearest
    """
    base, _ = base_id(check.strip())
    explanation = explanations().get(base)
    if explanation is None:
        near = difflib.get_close_matches(base, explanations(), n=3, cutoff=0.5)
        raise SetupError(
            "no check has this id",
            field="CHECK",
            expected=", ".join(near) if near else "an id of docs/protocol.md",
            actual=check,
            hint="`rag-audit verifier explain` without CHECK lists all checks",
        )
    return explanation


NO_CAUSE = "no honest cause is known"
_PINS = frozenset({"proof.key", "proof.embed.key", "coalition.key", "trust.noise_table", "trust.embedder",
                   "trust.manifest"})  # fmt: skip
"""The checks that compare a value of the window with a value that trust.toml pins."""
_KEY = "trust.toml: provider.vkey"
"""The place of a checkpoint that another key than the pinned one signed."""
_SIGNATURES = frozenset({"header.signature", "ledger.checkpoint"})
_BEACONS = frozenset({"header.beacon", "ledger.enrolment"})
_FOLLOW = frozenset({"header.tables"})
"""Checks that repeat the checks of earlier windows, and fail with them under a wrong pin."""
_FILE = frozenset({"ledger.root", "ledger.size"})
"""The checks that a damaged or incomplete copy of the window file fails."""


def evidence(check: CheckLine) -> str:
    """The value that the verifier read and the value that it expected, in words."""
    return f"Read by the verifier: {check.actual}. Expected: {check.expected}."


def causes(explanation: Explanation) -> str:
    """The honest causes of a failure, in one sentence."""
    listed = "; ".join(explanation.honest_causes)
    return f"N{listed[1:]}." if listed.startswith(NO_CAUSE) else f"Possible honest causes: {listed}."


class Cause(StrEnum):
    """Where a reader looks first."""

    PIN = "pin"
    """every false check compares the window with a pin of trust.toml"""
    FILE = "file"
    """the file is not the ledger that the provider signed"""
    WINDOW = "window"
    """a false statement of the window that neither a pin nor a damaged copy explains"""


def cause_of(checks: Sequence[CheckLine]) -> Cause:
    """The possible cause of a report's false checks."""
    wrong = [check for check in checks if check.outcome == "fail"]
    false = {check.base for check in wrong}
    if false & _FILE:
        return Cause.FILE
    # One key signed both ends, and another key is pinned: no part of the file is a statement of the pinned provider.
    if {check.base for check in wrong if check.at == _KEY} >= _SIGNATURES:
        return Cause.PIN
    pinned = {c.base for c in wrong if c.base in _BEACONS and (c.at or "").startswith("trust.toml")}
    pins = _PINS | pinned | (_FOLLOW if pinned else set())
    return Cause.PIN if false and false <= pins else Cause.WINDOW


_NOT_SUPPLIED = " was not supplied: "
"""The words of `header.tables` about a window that the verifier did not supply (`verify.checks.tables`)."""


class Own(StrEnum):
    """The verifier's own input that does not fit a window."""

    RECEIPTS = "receipts"
    PREVIOUS = "previous"
    MISSING = "missing"
    TRUST = "trust"


def own_input(checks: Sequence[CheckLine]) -> Own | None:
    """The verifier's own input that alone kept a window from a verdict, or None.

    Such a result is no evidence about the provider: a receipt of another window, an earlier window of another service,
    an earlier window that the verifier did not supply, or a trust file with another key or without a limit gives it for
    each honest provider.
    """
    deciding = [check for check in checks if check.decides]
    if not deciding:
        return None
    outcome, bases = deciding[0].outcome, {check.base for check in deciding}
    if outcome == "fail":
        return Own.TRUST if cause_of(checks) is Cause.PIN else None
    if outcome == "undecided" and all(base.startswith("receipt.") for base in bases):
        return Own.RECEIPTS
    if outcome == "undecided" and bases == {"header.chain"}:
        return Own.PREVIOUS
    if outcome == "unproven" and bases == {"header.tables"} and _NOT_SUPPLIED in deciding[0].actual:
        return Own.MISSING
    absent = all(c.expected.startswith(ABSENT) or c.actual.endswith(" absent") for c in deciding)
    return Own.TRUST if outcome in ("unmet", "unproven") and absent else None


OWN_SENTENCES = {
    Own.RECEIPTS: marked(
        "A receipt that the verifier supplied does not fit this window. Nothing is established, and this result says"
        " nothing about the provider."
    ),
    Own.PREVIOUS: marked(
        "An earlier window that the verifier supplied does not fit this window. Nothing is established, and this result"
        " says nothing about the provider."
    ),
    Own.MISSING: marked(
        "The verifier did not supply an earlier window, on which the figures of this window depend. Nothing is"
        " established, and this result says nothing about the provider."
    ),
}
"""The meaning of a window without a verdict, by the verifier's own input that does not fit."""


def decisive(checks: Sequence[CheckLine]) -> CheckLine | None:
    """The deciding check that a reader looks at first, or None if every check passed.

    If the file is not the ledger that the provider signed, the result is the check that shows this.
    """
    deciding = [check for check in checks if check.decides]
    if cause_of(checks) is Cause.FILE:
        deciding.sort(key=lambda check: check.base not in _FILE)
    return deciding[0] if deciding else None


SENTENCES = {
    Cause.PIN: marked(
        "The window does not match a value that the reader's trust file pins. Compare that pin with its source first:"
        " a wrong pin gives the same result. Rely on no figure of this page."
    ),
    Cause.FILE: marked(
        "The window file differs from the ledger that the provider signed. Fetch the file a second time"
        " first, because a damaged copy gives the same result. Rely on no figure of this page."
    ),
    Cause.WINDOW: marked("At least one statement of the window is false. Rely on no figure of this page."),
}
"""The meaning of a failed window, by its cause."""
CAVEAT = marked(
    "The file differs from the ledger that the provider signed, and other failures may have the same cause: fetch the"
    " file a second time before you blame the provider for any failure."
)
"""Printed with the checks that did not pass, if the cause is the file."""
