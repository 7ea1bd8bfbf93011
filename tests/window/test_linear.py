"""The verifier's work grows with the window and not with its square. Counted, not timed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from bench.verify import build
from rag_audit.errors import PolicyError
from rag_audit.models.header import check_roster
from rag_audit.models.models import repeated
from rag_audit.models.records import RosterEntry
from rag_audit.models.trust import AccountTrust, Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs import records as record_proofs
from rag_audit.proofs.backends.scan.records import ScanProofs
from rag_audit.proofs.statements import retrieve
from rag_audit.relation import poseidon
from rag_audit.report.cumulative import WindowPart, compose
from rag_audit.report.verification import verify_window
from rag_audit.verify.case import Case, Status
from rag_audit.verify.checks import coalition, header, ledger, proof, receipt
from rag_audit.verify.checks import trust as trust_checks
from rag_audit.verify.inputs import load_receipts
from rag_audit.verify.verifier import open_case
from tests.counting import calls
from tests.drafting import draft
from tests.window.simulator import Finished
from tests.window.standins import taken_as_valid

SIZES = (60, 120, 240)


@pytest.fixture(autouse=True)
def without_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins where proofs would be: everything up to their statements is as in a real window."""
    monkeypatch.setattr(ScanProofs, "parse_proof", lambda *_, **__: b"")
    monkeypatch.setattr(record_proofs, "verify_groups", taken_as_valid)


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Windows by their number of records: half as many accounts, a sixth of them enrolled late, as many receipts."""
    result = {}
    for records in SIZES:
        result[records] = tmp_path_factory.mktemp(f"window-{records}")
        build(str(result[records]), records, records // 2, records // 12, records // 12)
    return result


def opened(folder: Path) -> Case:
    """The case that `verify_window` makes."""
    trust = Trust.load(folder / "trust.toml")
    receipts, _ = load_receipts([folder / "receipts"])
    return open_case(WindowFile.load(folder), trust, receipts, "native")


def all_checks(case: Case) -> None:
    """Every group but the bounds, whose work depends on the policy alone."""
    header.check(case)
    ledger.check(case)
    proof.check(case)
    receipt.check(case, None)
    coalition.check(case)
    trust_checks.check(case)


class Counted:
    """A value whose comparisons with others are counted, by its class."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        type(self).compared += 1
        return super().__eq__(other)

    def __hash__(self) -> int:
        return super().__hash__()


class CountedText(Counted, str):
    pass


class CountedNumber(Counted, int):
    pass


def test_these_windows_pass(windows: dict[int, Path]) -> None:
    folder = windows[SIZES[0]]
    verdict = verify_window(folder, trust=folder / "trust.toml", receipts=[folder / "receipts"])
    assert verdict.passed, verdict.line
    assert (
        verdict.figures["enrolments"] == verdict.figures["receipts"] + verdict.figures["receipts_other"] == 5
    )


@pytest.mark.parametrize(
    "group", [header.check, ledger.check, proof.check, lambda c: receipt.check(c, None), all_checks]
)
def test_a_window_of_twice_the_size_takes_twice_the_calls(
    windows: dict[int, Path], group: Callable[[Case], None]
) -> None:
    cases = [opened(windows[records]) for records in SIZES]
    small, middle, large = (calls(lambda case=case: group(case)) for case in cases)  # type: ignore[misc]
    assert all(c.status is not Status.FAIL for case in cases for c in case.checks)
    # Linear: 2; quadratic: 4. What does not depend on the size falls out of the differences.
    assert large - middle <= 2.4 * (middle - small)


def test_parsing_takes_twice_the_calls_too(windows: dict[int, Path]) -> None:
    small, middle, large = (calls(lambda r=r: opened(windows[r])) for r in SIZES)  # type: ignore[misc]
    assert large - middle <= 2.4 * (middle - small)


def test_lists_of_records_are_not_searched(windows: dict[int, Path]) -> None:
    case = opened(windows[SIZES[-1]])
    case.queries = [q.model_copy(update={"seq": CountedNumber(q.seq)}) for q in case.queries]
    CountedNumber.compared = 0
    proof.check(case)
    assert case.figures["proved"] == SIZES[-1]
    # An order's mark in a set of this many: some comparisons a record, not one with every other.
    assert CountedNumber.compared <= 20 * SIZES[-1]


def test_each_slot_is_hashed_once(windows: dict[int, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[tuple[Any, ...]] = []
    slot_id = retrieve.slot_id
    monkeypatch.setattr(retrieve, "slot_id", lambda *slot: hashed.append(slot) or slot_id(*slot))
    case = opened(windows[SIZES[0]])
    proof.check(case)
    assert {"retrieve", "embed"} <= {name for t in case.policy.tenants for name in t.circuits}
    assert sorted(hashed) == sorted((q.window, q.tenant, q.account, q.i) for q in case.queries)


def counted(roster: Iterable[RosterEntry]) -> list[RosterEntry]:
    """The lines with names and keys whose comparisons count."""
    return [
        r.model_copy(update={"account": CountedText(r.account), "key": CountedText(r.key)}) for r in roster
    ]


def test_accounts_are_not_searched_for_each_account(windows: dict[int, Path]) -> None:
    case = opened(windows[SIZES[-1]])
    case.roster = counted(case.roster)
    CountedText.compared = 0
    ledger._accounts(case)
    check_roster(case.roster, case.policy)
    assert [c.status for c in case.checks if c.id == "ledger.accounts"] == [Status.PASS]
    assert CountedText.compared <= 20 * len(case.roster)


def test_what_occurs_twice_is_found_all_the_same(windows: dict[int, Path]) -> None:
    assert repeated(["b", "a", "b", "c", "a", "b"]) == ["a", "b"]
    case = opened(windows[SIZES[0]])
    with pytest.raises(PolicyError) as caught:
        check_roster([*case.roster, case.roster[3]], case.policy)
    assert caught.value.actual == [case.roster[3].account]


def test_independent_accounts_are_not_searched(windows: dict[int, Path]) -> None:
    trust = opened(windows[SIZES[0]]).trust
    names = [CountedText(f"account-{n}") for n in range(200)]
    accounts = [AccountTrust.model_construct(id=name, key="00" * 32) for name in names]
    trust = trust.model_copy(update={"account": accounts})
    CountedText.compared = 0
    assert all((result := trust.listed(name)) and result.id is name for name in names)
    assert CountedText.compared <= 20 * len(names)
    assert trust.listed("nobody") is None


def test_a_policys_tenants_are_not_searched() -> None:
    policy = draft(window="w", opens_at=1, closes_at=2, capacities={f"t-{n:03}": 8 for n in range(200)}, n=1,
                          k_max=1, eps_acc="14", top_k=2)  # fmt: skip
    parts = [
        t.model_copy(update={"tenant": name, "capacity": CountedNumber(8)})
        for t in policy.tenants
        for name in [CountedText(t.tenant)]
    ]
    policy = policy.model_copy(update={"tenants": parts})
    CountedText.compared = 0
    assert all(policy.tenant(part.tenant) is part for part in parts)
    assert CountedText.compared <= 20 * len(parts)


def test_a_changed_copy_looks_up_its_own_tenants() -> None:
    policy = draft(
        window="w", opens_at=1, closes_at=2, capacities={"a": 8}, n=1, k_max=1, eps_acc="14", top_k=2
    )
    part = policy.tenant("a")
    assert part is not None
    before = policy.dump()
    changed = policy.model_copy(update={"tenants": [part.model_copy(update={"tenant": "b"})]})
    assert (changed.tenant("a"), policy.tenant("b")) == (None, None) and changed.tenant("b") is not None
    assert policy.dump() == before and policy.model_copy() == policy


def test_windows_given_twice_are_found() -> None:
    policy = draft(
        window="w", opens_at=1, closes_at=2, capacities={"a": 8}, n=1, k_max=1, eps_acc="14", top_k=2
    )
    with pytest.raises(PolicyError, match="the same window is supplied twice"):
        compose([WindowPart("one", policy), WindowPart("two", policy)])


@pytest.mark.parametrize("name", ["finished", "scanned"])
def test_a_verifier_never_calls_the_reference_permutation(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    window: Finished = request.getfixturevalue(name)

    def refuse(state: Any) -> list[int]:
        raise AssertionError("5 ms a call")

    monkeypatch.setattr(poseidon, "permute", refuse)
    assert window.verify().line.startswith("PASS")
