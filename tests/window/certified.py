"""Closed windows with a coalition proof, and only the checks of this proof."""

from __future__ import annotations

import json
from typing import Any

from rag_audit._internal.canonical import jcs
from rag_audit.attest.window import Window
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.verify.case import Case, Status
from rag_audit.verify.checks import coalition as checks
from rag_audit.verify.verifier import open_case
from tests.window.simulator import Service


class Certified:
    """A window that this closes with its certificate, and what its verifier trusts."""

    def __init__(self, service: Service, window: Window) -> None:
        self.service = service
        service.finish(window)
        self.file = WindowFile.load(window.directory / "public")
        self.trust: Trust = service.trust(window.policy, coalition="checked")
        self.directory = window.directory
        window.shut()

    @property
    def value(self) -> Any:
        """The file as a fresh JSON value."""
        return json.loads(jcs(self.file.dump()))

    def judge(self, value: Any, trust: Trust | None = None) -> Case:
        """Run only the group `coalition` on a file, without recreating the rest of the window."""
        case = open_case(WindowFile.parse(value, field="window.json"), trust or self.trust, [], "native")
        checks.check(case)
        return case


def outcome(case: Case) -> dict[str, str]:
    """The checks that did not pass."""
    return {c.id: c.status.value for c in case.checks if c.status is not Status.PASS}
