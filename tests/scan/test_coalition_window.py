"""Windows whose policy asks for a certificate of the scan argument: made at close, judged by a stranger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import digest_hex, jcs
from rag_audit.errors import ExitCode
from rag_audit.proofs.backends.scan.coalition import PROTOCOL
from rag_audit.report.verification import verify_window
from rag_audit.verify.case import Status
from tests.window.certified import Certified, outcome
from tests.window.simulator import QUESTIONS, Service

PROBE = "Did the clinic treat Jane Roe for hepatitis in 2019?"
ASKED = [
    ("law-1", PROBE),
    ("medicine-1", QUESTIONS["medicine"][0]),
    ("law-2", PROBE + " Please."),
    ("medicine-2", PROBE),
    ("law-1", QUESTIONS["law"][0]),
]


def certified_window(root: Path, k_max: int = 3) -> Certified:
    service = Service(root)
    window = service.open(coalition_proof=("scan", 3000), k_max=k_max)
    for account, text in ASKED:
        service.ask(window, account, text)
    return Certified(service, window)


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    return certified_window(tmp_path_factory.mktemp("scan-certified"))


def named(value: Any, certificate: Any) -> Any:
    """Put a certificate in, and its digest into the closing record."""
    value["coalition_proof"] = certificate
    value["entries"][-1]["coalition"]["coalition_proof"] = digest_hex(certificate)
    return value


def test_a_stranger_checks_the_certificate(certified: Certified) -> None:
    case = certified.judge(certified.value)
    assert outcome(case) == {}
    assert case.figures["coalition"] == "checked"
    assert case.figures["c"] == {"all": 3, "tenant": 2}
    assert case.setups == {"transparent"}
    assert certified.file.policy["estimator"]["coalition_proof"]["circuit"] == PROTOCOL
    verdict = verify_window(certified.file, trust=certified.trust)
    assert {c.status for c in verdict.checks if c.id.startswith("coalition.")} == {Status.PASS}
    text = jcs(certified.file.coalition_proof).decode() + jcs(certified.file.entries[-1]).decode()
    assert not any(account in text for account, _ in ASKED)


def query(value: Any, number: int) -> Any:
    return [e for e in value["entries"] if e["type"] == "query"][number]


def smaller(value: Any) -> None:
    value["entries"][-1]["coalition"]["c"] = 2


def dropped(value: Any) -> None:
    value["entries"].remove(query(value, 2))


def swapped(value: Any) -> None:
    a, b = query(value, 0), query(value, 1)
    a["cq"], b["cq"] = b["cq"], a["cq"]


def tau(value: Any) -> None:
    value["policy"]["estimator"]["tau"] = value["entries"][-1]["coalition"]["tau"] = 1


def theta(value: Any) -> None:
    value["policy"]["estimator"]["theta"] = value["entries"][-1]["coalition"]["theta"] = [9, 10]


@pytest.mark.parametrize("lie", [smaller, dropped, swapped, tau, theta])
def test_certificates_are_for_their_window_only(certified: Certified, lie: Any) -> None:
    value = certified.value
    lie(value)
    case = certified.judge(value)
    assert outcome(case)["coalition.proof"] == "fail"
    assert case.figures["coalition"] == "not-checked"


def test_the_certificate_of_another_window_is_refused(certified: Certified, tmp_path: Path) -> None:
    other = certified_window(tmp_path)
    case = certified.judge(named(certified.value, other.value["coalition_proof"]))
    assert outcome(case) == {"coalition.proof": "fail"}


def test_a_coalition_above_the_cap_is_proved_and_fails_the_window(tmp_path: Path) -> None:
    window = certified_window(tmp_path, k_max=2)
    verdict = verify_window(window.file, trust=window.trust)
    [cap] = [c for c in verdict.checks if c.id == "coalition.cap"]
    assert cap.status is Status.FAIL
    assert (
        cap.actual == "c = 3: 3 accounts repeated a question almost word for word, 2 in one tenant (proved)"
    )
    assert verdict.exit_code is ExitCode.FAIL
