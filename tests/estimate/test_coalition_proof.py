"""Certificates in windows: made at close, bound to one ledger, judged by a stranger; and every way to lie with one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal.canonical import digest_hex, jcs
from rag_audit.account.account import Account
from rag_audit.attest.window import Window
from rag_audit.commit.commitment import check_coalition_proof
from rag_audit.errors import ExitCode, PolicyError, RequestRefused, StoreError, WitnessError
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.groth16 import coalition
from rag_audit.proofs.backends.groth16.encoding import BASE_MODULUS
from rag_audit.proofs.statements.coalition import CoalitionSize
from rag_audit.report.verification import verify_window
from rag_audit.verify.case import Status
from tests.cli.conftest import Shell
from tests.drafting import draft
from tests.window.certified import Certified, outcome
from tests.window.simulator import QUESTIONS, TEXTS, Service

pytestmark = pytest.mark.circuits

PROBE = "Did the clinic treat Jane Roe for hepatitis in 2019?"
ASKED = {
    "law-1": PROBE,
    "law-2": PROBE + " Please.",
    "medicine-1": QUESTIONS["medicine"][0],
    "medicine-2": QUESTIONS["medicine"][1],
}
SMALL = ("groth16", 8)


def requested(root: Path, texts: dict[str, str] = ASKED, **policy: Any) -> tuple[Service, Window]:
    """An active window in which each account has asked once."""
    service = Service(root)
    window = service.open(**{"coalition_proof": SMALL, **policy})
    for account, text in texts.items():
        service.ask(window, account, text)
    return service, window


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    return Certified(*requested(tmp_path_factory.mktemp("certified")))


def test_a_stranger_checks_the_certificate(certified: Certified) -> None:
    case = certified.judge(certified.value)
    assert outcome(case) == {}
    assert case.figures["coalition"] == "checked"
    assert case.figures["c"] == {"all": 2, "tenant": 2}
    result = {c.id: c.actual for c in case.checks}
    assert (
        result["coalition.cap"]
        == "c = 2: 2 accounts repeated a question almost word for word, 2 in one tenant (proved)"
    )
    assert case.setups == {"unsafe"}

    verdict = verify_window(certified.file, trust=certified.trust)
    status = {c.id: c.status for c in verdict.checks}
    assert status["trust.coalition"] is Status.PASS
    assert status["coalition.proof"] is Status.PASS


def test_nothing_that_is_published_names_a_coalition(certified: Certified) -> None:
    text = jcs(certified.file.coalition_proof).decode() + jcs(certified.file.entries[-1]).decode()
    assert not any(account in text for account in ASKED)
    assert set(certified.value["coalition_proof"]) == {"system", "circuit", "a", "b", "c"}
    kept = json.loads((certified.directory / "coalition.json").read_text())
    assert kept["coalition_proof"] == certified.value["coalition_proof"]


def test_a_certificate_by_the_scan_argument(tmp_path: Path) -> None:
    """No key, but the pin of the protocols; its lies are refused like the circuit's."""
    result = Certified(*requested(tmp_path, coalition_proof=("scan", 64)))
    assert result.value["verification_keys"] == {}
    case = result.judge(result.value)
    assert outcome(case) == {}
    assert (case.figures["coalition"], case.figures["c"]) == ("checked", {"all": 2, "tenant": 2})
    for pin in (None, "00" * 32):
        pins = result.trust.pins.model_copy(update={"scan": pin})
        assert outcome(result.judge(result.value, result.trust.model_copy(update={"pins": pins}))) == {
            "coalition.key": UNDECIDED
        }
    for lie in ("dropped record", "altered vector", "record under another account", "later entry changed",
                "smaller c", "smaller c in one tenant", "wrong tau"):  # fmt: skip
        value = result.value
        MALICIOUS[lie][0](value)
        assert outcome(result.judge(value)) == {"coalition.proof": FAIL}, lie


# -- lies ----------------------------------------------------------------------------------------------------


def query(value: Any, number: int) -> Any:
    return [e for e in value["entries"] if e["type"] == "query"][number]


def dropped_record(value: Any) -> None:
    """law-2's record: without it nobody colludes."""
    value["entries"].remove(query(value, 1))
    value["entries"][-1]["coalition"].update(c=1, c_tenant=1)


def swapped_commitments(value: Any) -> None:
    a, b = query(value, 0), query(value, 2)
    a["cq"], b["cq"] = b["cq"], a["cq"]


def one_tau(value: Any, tau: int) -> None:
    value["policy"]["estimator"]["tau"] = value["entries"][-1]["coalition"]["tau"] = tau


def one_theta(value: Any, theta: list[int], *, circuit: bool) -> None:
    value["policy"]["estimator"]["theta"] = value["entries"][-1]["coalition"]["theta"] = theta
    if circuit:
        other = coalition.SYSTEM.digest(CoalitionSize(8, 64, (theta[0], theta[1])))
        value["policy"]["estimator"]["coalition_proof"]["circuit"] = other


def named(value: Any, coalition_proof: Any) -> None:
    """Put a certificate in, and its digest into the closing record."""
    value["coalition_proof"] = coalition_proof
    value["entries"][-1]["coalition"]["coalition_proof"] = digest_hex(coalition_proof)


def negated(coalition_proof: Any) -> Any:
    """(-A, -B, C): another proof of the same statement, which anybody can make."""

    def minus(y: Any) -> Any:
        return [minus(part) for part in y] if isinstance(y, list) else f"{-int(y, 16) % BASE_MODULUS:064x}"

    return {
        **coalition_proof,
        **{name: [coalition_proof[name][0], minus(coalition_proof[name][1])] for name in "ab"},
    }


def declared(**changes: Any) -> Callable[[Any], None]:
    return lambda value: value["entries"][-1]["coalition"].update(changes)


FAIL, UNDECIDED = "fail", "undecided"

MALICIOUS: dict[str, tuple[Callable[[Any], Any], dict[str, str]]] = {
    "dropped record": (dropped_record, {"coalition.proof": FAIL}),
    "altered vector": (lambda v: query(v, 1).update(cq="0" * 63 + "1"), {"coalition.proof": FAIL}),
    "vectors of two records exchanged": (swapped_commitments, {"coalition.proof": FAIL}),
    "record under another account": (
        lambda v: query(v, 1).update(account="law-1", i=2),
        {"coalition.proof": FAIL},
    ),
    "account under another tenant": (
        lambda v: query(v, 1).update(tenant="medicine"),
        {"coalition.proof": FAIL},
    ),
    "later entry changed": (
        lambda v: query(v, 3).update(ts=query(v, 3)["ts"] + 1),
        {"coalition.proof": FAIL},
    ),
    "smaller c": (declared(c=1, c_tenant=1), {"coalition.proof": FAIL}),
    "smaller c in one tenant": (declared(c_tenant=1), {"coalition.proof": FAIL}),
    "larger c": (declared(c=3), {"coalition.proof": FAIL, "coalition.cap": FAIL}),
    "c above the accounts that asked": (
        declared(c=5),
        {"coalition.count": FAIL, "coalition.cap": FAIL, "coalition.proof": FAIL},
    ),
    "wrong tau": (lambda v: one_tau(v, 1), {"coalition.proof": FAIL}),
    "tau of the closing record is not the policy's": (
        declared(tau=1),
        {"coalition.parameters": FAIL, "coalition.proof": FAIL},
    ),
    "wrong theta under the right circuit": (
        lambda v: one_theta(v, [9, 10], circuit=False),
        {"coalition.circuit": UNDECIDED},
    ),
    "wrong theta and its circuit, which nobody pinned": (
        lambda v: one_theta(v, [9, 10], circuit=True),
        {"coalition.key": UNDECIDED},
    ),
    "valid certificate that the closing record does not name": (
        lambda v: v.update(coalition_proof=negated(v["coalition_proof"])),
        {"coalition.proof": FAIL},
    ),
    "no certificate in the window": (
        lambda v: v.update(coalition_proof=None),
        {"coalition.proof": UNDECIDED},
    ),
    "no certificate in the closing record": (
        declared(coalition_proof=None),
        {"coalition.proof": UNDECIDED},
    ),
    "no estimate at all": (
        lambda v: v["entries"][-1].update(coalition=None),
        {"coalition.proof": UNDECIDED},
    ),
    "a certificate that the policy does not ask for": (
        lambda v: v["policy"]["estimator"].update(coalition_proof=None),
        {"coalition.proof": UNDECIDED},
    ),
    "certificate of another system": (
        lambda v: named(v, {**v["coalition_proof"], "system": "scan"}),
        {"coalition.proof": UNDECIDED},
    ),
    "certificate off the curve": (
        lambda v: named(v, {**v["coalition_proof"], "a": ["0" * 63 + "1"] * 2}),
        {"coalition.proof": UNDECIDED},
    ),
    "certificate with its points exchanged": (
        lambda v: named(
            v, {**v["coalition_proof"], "a": v["coalition_proof"]["c"], "c": v["coalition_proof"]["a"]}
        ),
        {"coalition.proof": FAIL},
    ),
    "no verification key": (lambda v: v.update(verification_keys={}), {"coalition.key": UNDECIDED}),
    "circuit for more records than there is": (
        lambda v: v["policy"]["estimator"]["coalition_proof"].update(records=1024),
        {"coalition.circuit": UNDECIDED},
    ),
}


@pytest.mark.parametrize("lie", MALICIOUS)
def test_a_lie_is_refused(certified: Certified, lie: str) -> None:
    change, expected = MALICIOUS[lie]
    value = certified.value
    change(value)
    case = certified.judge(value)
    assert outcome(case) == expected
    assert case.figures["coalition"] == "not-checked"


def test_the_negated_certificate_verifies_once_it_is_named(certified: Certified) -> None:
    value = certified.value
    named(value, negated(value["coalition_proof"]))
    assert outcome(certified.judge(value)) == {}


def test_another_verification_key_than_the_pinned_one(certified: Certified) -> None:
    value = certified.value
    key = next(iter(value["verification_keys"].values()))
    key["ic"][0] = key["ic"][1]
    case = certified.judge(value)
    assert outcome(case) == {"coalition.key": FAIL}


def test_a_certificate_of_another_window(certified: Certified, tmp_path: Path) -> None:
    """The same accounts, the same questions, the same counts: only the window is another one."""
    other = Certified(*requested(tmp_path))
    value = certified.value
    assert other.value["entries"][-1]["coalition"]["c"] == value["entries"][-1]["coalition"]["c"]
    named(value, other.value["coalition_proof"])
    assert outcome(certified.judge(value)) == {"coalition.proof": FAIL}


def test_a_certificate_of_the_same_records_in_another_window(certified: Certified) -> None:
    """Only the opening differs: what binds a certificate to its window is ctx alone."""
    value = certified.value
    value["entries"][0]["window"] = "w-2"
    assert outcome(certified.judge(value)) == {"coalition.proof": FAIL}


# -- closing -------------------------------------------------------------------------------------------------


def test_a_coalition_of_ten_is_failed_by_a_stranger(tmp_path: Path) -> None:
    """Ten accounts over three times k_max: the certificate says c = 10 to whoever holds window.json and trust.toml."""
    service = Service(tmp_path)
    for tenant in TEXTS:
        for number in (3, 4, 5):
            name = f"{tenant}-{number}"
            service.accounts[name] = Account.create(tmp_path / "accounts" / name, name, tenant)
    window = service.open(coalition_proof=("groth16", 12), k_max=4, accounts_max=5)
    for number, account in enumerate(service.accounts):
        service.ask(window, account, PROBE + " Please." * (number % 2))
    service.finish(window)
    trust = tmp_path / "trust.toml"
    trust.write_text(service.trust_text(window.policy, coalition="checked", min_k_max=4))
    window.shut()

    done = Shell(tmp_path).run(
        "verify", window.directory / "public" / "window.json", "--trust", trust, "--json"
    )
    assert done.returncode == ExitCode.FAIL
    report = json.loads(done.stdout)
    assert report["line"] == "FAIL coalition.cap"
    assert report["figures"]["coalition"] == "not established"
    cap = next(c for c in report["checks"] if c["id"] == "coalition.cap")
    assert (cap["expected"], cap["actual"]) == (
        "c at most k_max = 4",
        "c = 10: 10 accounts repeated a question almost word for word, 5 in one tenant (proved)",
    )
    failed = [c for c in report["checks"] if c["outcome"] == "fail"]
    assert failed == [cap]
    assert not any(account in jcs(cap).decode() for account in service.accounts)


class Stop(Exception):
    pass


def test_a_crash_before_the_closing_record_keeps_the_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, window = requested(tmp_path)

    def crash(*args: Any, **kwargs: Any) -> None:
        raise Stop

    monkeypatch.setattr(window.state, "append", crash)
    with pytest.raises(Stop):
        window.close()
    kept = (window.directory / "coalition.json").read_bytes()
    window.shut()

    window = Window.resume(window.directory, key=service.key, clock=service.clock)
    assert window.status == "active"
    with monkeypatch.context() as patch:
        patch.setattr(type(coalition.SYSTEM), "prove", crash)
        window.close()
    assert (window.directory / "coalition.json").read_bytes() == kept
    file = WindowFile.load(window.directory / "public")
    assert digest_hex(file.coalition_proof) == file.entries[-1]["coalition"]["coalition_proof"]
    window.shut()


def test_a_kept_certificate_of_fewer_entries_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, window = requested(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(window.state, "append", lambda *args: (_ for _ in ()).throw(Stop))
        with pytest.raises(Stop):
            window.close()
    window.shut()
    kept = (window.directory / "coalition.json").read_bytes()
    window = Window.resume(window.directory, key=service.key, clock=service.clock)
    service.ask(window, "law-1", QUESTIONS["law"][2])
    service.finish(window)
    assert (window.directory / "coalition.json").read_bytes() != kept
    verdict = verify_window(window.directory / "public", trust=service.trust(window.policy))
    assert verdict.figures["coalition"] == "checked"
    window.shut()


def test_the_window_can_be_used_while_it_is_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lock is held while embedding and proving: status and refusals stay at hand."""
    service, window = requested(tmp_path)
    seen: list[str] = []

    def certify(*args: Any, **kwargs: Any) -> Any:
        def look() -> None:
            seen.append(window.status)
            with pytest.raises(RequestRefused, match="closed"):
                service.ask(window, "law-1", PROBE)
            seen.append("refused")

        other = threading.Thread(target=look)
        other.start()
        other.join(timeout=60)
        return {"system": "groth16"}

    monkeypatch.setattr(type(coalition.SYSTEM), "prove", certify)
    window.close()
    assert seen == ["active", "refused"]
    assert window.status == "closed"
    window.shut()


def test_a_window_too_large_for_its_certificate(tmp_path: Path) -> None:
    service, window = requested(tmp_path)
    for account, text in ASKED.items():
        service.ask(window, account, text)
    service.ask(window, "law-1", PROBE)
    with pytest.raises(WitnessError, match="does not fit") as caught:
        window.close()
    assert (caught.value.expected, caught.value.actual) == ("1..8", 9)
    assert "--no-coalition-proof" in str(caught.value.hint)
    window.close(certify=False)
    verdict = verify_window(window.directory / "public", trust=service.trust(window.policy))
    decided = {c.id: c.status for c in verdict.checks}
    assert decided["coalition.proof"] is Status.UNDECIDED
    assert verdict.figures["coalition"] == "not-checked"
    window.shut()


def test_a_certificate_for_an_empty_window(certified: Certified, tmp_path: Path) -> None:
    """Nothing to certify: none is made, and one that is claimed is refused."""
    _, window = requested(tmp_path, {})
    window.close()
    value = json.loads((window.directory / "public" / "window.json").read_text())
    assert value["coalition_proof"] is None
    case = certified.judge(value)
    assert (outcome(case), case.figures["coalition"]) == ({}, "not-checked")
    named(value, certified.value["coalition_proof"])
    assert outcome(certified.judge(value)) == {"coalition.proof": UNDECIDED}
    window.shut()


@pytest.mark.parametrize("account", [{"law-1": PROBE}, dict.fromkeys(ASKED, PROBE)], ids=["one", "identical"])
def test_windows_with_one_account_or_identical_queries(tmp_path: Path, account: dict[str, str]) -> None:
    result = Certified(*requested(tmp_path, account))
    case = result.judge(result.value)
    assert case.figures["coalition"] == "checked"
    assert case.figures["c"]["all"] == len(account)
    assert outcome(case) == ({} if len(account) <= 2 else {"coalition.cap": FAIL})


def test_a_lost_certificate_is_named(tmp_path: Path) -> None:
    service, window = requested(tmp_path)
    service.finish(window)
    path = window.directory / "coalition.json"
    kept = json.loads(path.read_text())
    path.write_bytes(jcs({**kept, "coalition_proof": {}}))
    with pytest.raises(
        StoreError, match="the file differs from the coalition proof that the window trailer names"
    ):
        window.export()
    window.shut()


# -- policies ------------------------------------------------------------------------------------------------


def test_a_policy_for_another_circuit_is_not_opened(tmp_path: Path) -> None:
    service = Service(tmp_path)
    policy = service.policy(coalition_proof=SMALL)
    part = policy.estimator
    assert part.coalition_proof is not None
    other = part.model_copy(
        update={"coalition_proof": part.coalition_proof.model_copy(update={"circuit": "00" * 32})}
    )
    with pytest.raises(PolicyError, match="the circuit differs from the circuit of this release") as caught:
        check_coalition_proof(policy.model_copy(update={"estimator": other}), 64)
    assert caught.value.field == "policy.estimator.coalition_proof.circuit"
    check_coalition_proof(policy, 64)
    with pytest.raises(PolicyError):
        check_coalition_proof(policy, 384)


@pytest.mark.parametrize(
    "change, field",
    [
        ({"coalition_proof": ("groth16", 65)}, "coalition_proof.records"),
        ({"coalition_proof": ("groth16", 0)}, "coalition_proof.records"),
        ({"coalition_proof": SMALL, "theta": (1, 1)}, None),
        ({"coalition_proof": SMALL, "theta": (0, 1)}, None),
    ],
)
def test_a_certificate_that_no_circuit_makes_cannot_be_asked_for(
    change: dict[str, Any], field: str | None
) -> None:
    with pytest.raises(PolicyError) as caught:
        draft(window="w", opens_at=1, closes_at=2, capacities={"a": 8}, n=1, k_max=1, eps_acc="4", **change)
    assert field is None or caught.value.field == field
