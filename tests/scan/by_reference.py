"""A plugin of pytest (`-p tests.scan.by_reference`): the second verifier decides wherever a test names no engine."""

from __future__ import annotations

from typing import Any

from bench.proofs import failures, verify_batch
from rag_audit.proofs.backends.scan.coalition import ScanCoalition
from rag_audit.proofs.backends.scan.sample import BernoulliColumn
from rag_audit.proofs.records import verify_records
from rag_audit.report.verification import verify_window
from rag_audit.verify.inputs import VerifierOptions

decided: tuple[Any, ...] = (
    failures,
    verify_batch,
    BernoulliColumn.open,
    verify_records,
    ScanCoalition.verify,
)
for decides in decided:
    assert decides.__kwdefaults__["engine"] == "native"
    decides.__kwdefaults__["engine"] = "reference"

initialise = VerifierOptions.__init__
assert initialise.__defaults__ == ("native", None, False)
initialise.__defaults__ = ("reference", None, False)
options = verify_window.__kwdefaults__
assert options is not None and options["options"] == VerifierOptions(engine="native")
options["options"] = VerifierOptions()
