"""Coalition certificates in the scan argument, on small windows, through the interface that a window uses."""

from __future__ import annotations

import base64
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from rag_audit.errors import (
    EncodingError,
    InvalidProof,
    PolicyError,
    RagAuditError,
    SchemaError,
    SetupError,
    WitnessError,
)
from rag_audit.proofs.backends.scan import coalition
from rag_audit.proofs.backends.scan.coalition import MAX_DIMENSION, MAX_RECORDS, PROTOCOL, SYSTEM
from rag_audit.proofs.backends.scan.engine import native_coalition
from rag_audit.proofs.proving import backend
from rag_audit.proofs.statements.coalition import CoalitionSize
from tests.circuits.coalition_case import NEAR_A, TINY, A, B, C, Row, Window, window

# Three tenants; accounts 0, 1 and 4 are near to each other, the others to nobody.
ROWS: list[Row] = [A, B, NEAR_A, C, B, A, C, NEAR_A]
ACCOUNTS = [0, 2, 1, 3, 2, 4, 3, 0]


@pytest.fixture(scope="module")
def case() -> Window:
    return window(ROWS, ACCOUNTS, [0, 0, 1, 2, 1])


@pytest.fixture(scope="module")
def certificate(case: Window) -> dict[str, Any]:
    return SYSTEM.prove(case.statement, case.private)


def test_is_the_system_that_a_policy_names() -> None:
    system = backend("scan").coalition
    assert system is SYSTEM
    assert system.digest(CoalitionSize(3000, 256, (4, 5))) == PROTOCOL


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"records": 0}, "records"),
        ({"records": MAX_RECORDS + 1}, "records"),
        ({"dimension": 0}, "dimension"),
        ({"dimension": MAX_DIMENSION + 1}, "dimension"),
        ({"theta": (5, 5)}, "theta"),
        ({"theta": (1, 1001)}, "theta"),
    ],
)
def test_there_is_no_protocol_beyond_its_limits(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(PolicyError) as caught:
        SYSTEM.digest(CoalitionSize(**{"records": 64, "dimension": 256, "theta": (4, 5), **changes}))
    assert caught.value.field == field


def test_certificates_verify(case: Window, certificate: dict[str, Any]) -> None:
    assert (case.statement.c, case.statement.c_tenant) == (3, 2)
    SYSTEM.steps.verify(case.statement, certificate, key=None)
    assert certificate["circuit"] == PROTOCOL
    assert len(certificate["pairs"]) == 1


@pytest.mark.parametrize("seed", [1, 2])
def test_windows_of_random_queries_are_certified(seed: int) -> None:
    rng = Random(seed)
    rows = [[rng.randint(-3, 3) for _ in range(3)] for _ in range(20)]
    accounts = [*range(6), *(rng.randrange(6) for _ in range(14))]
    result = window(rows, accounts, [0, 1, 0, 1, 2, 2], tau=rng.choice([0, 5]))
    result = result.stating(dimension=3, capacity=20)
    SYSTEM.steps.verify(result.statement, SYSTEM.prove(result.statement, result.private), key=None)


def test_one_record_is_certified() -> None:
    alone = window([A], [0])
    result = SYSTEM.prove(alone.statement, alone.private)
    assert result["pairs"] == []
    SYSTEM.steps.verify(alone.statement, result, key=None)


CHANGES: dict[str, Callable[[Window], Window]] = {
    "another window": lambda w: w.stating(ctx=w.statement.ctx + 1),
    "a dropped record": lambda w: w.stating(
        cq=w.statement.cq[:-1], account=w.statement.account[:-1], first=w.statement.first[:-1]
    ),
    "another vector": lambda w: w.stating(cq=(*w.statement.cq[1:], w.statement.cq[0])),
    "a record of another account": lambda w: w.stating(account=(1, *w.statement.account[1:])),
    "an account of another tenant": lambda w: w.stating(tenant=(1, *w.statement.tenant[1:])),
    "a larger theta": lambda w: w.stating(theta=(9, 10)),
    "a smaller tau": lambda w: w.stating(first=tuple(max(0, j - 1) for j in range(len(ROWS)))),
    "a smaller c": lambda w: w.stating(c=2),
    "a smaller c in a tenant": lambda w: w.stating(c_tenant=1),
}


@pytest.mark.parametrize("what", CHANGES)
def test_certificates_are_for_their_statement_only(
    case: Window, certificate: dict[str, Any], what: str
) -> None:
    with pytest.raises(InvalidProof) as caught:
        SYSTEM.steps.verify(CHANGES[what](case).statement, certificate, key=None)
    assert "equation" in str(caught.value.actual) or "labels" in str(caught.value.actual)


MALICIOUS: dict[str, Callable[[Window], Window]] = {
    "a split cluster": lambda w: w.knowing(labels=(0, 0, 2, 3, 4)),
    "a label of more accounts than c": lambda w: w.stating(c=2),
    "a label of more accounts of a tenant than c_tenant": lambda w: w.stating(c_tenant=1),
    "another salt": lambda w: w.knowing(salts=(1, *w.private.salts[1:])),
    "another vector": lambda w: w.knowing(vectors=bytes([6]) + w.private.vectors[1:]),
    "a component of 8": lambda w: w.knowing(vectors=bytes([8]) + w.private.vectors[1:]),
    "a vector missing": lambda w: w.knowing(vectors=w.private.vectors[TINY.dimension :]),
    "a label missing": lambda w: w.knowing(labels=(0, 0, 2, 3)),
    "a label of nobody": lambda w: w.knowing(labels=(0, 0, 2, 3, 5)),
    "a negative label": lambda w: w.knowing(labels=(0, 0, 2, 3, -1)),
    "more records than the policy takes": lambda w: w.stating(capacity=7),
}


@pytest.mark.parametrize("what", MALICIOUS)
def test_false_claims_have_no_certificate(case: Window, what: str) -> None:
    lie = MALICIOUS[what](case)
    with pytest.raises(WitnessError) as caught:
        SYSTEM.prove(lie.statement, lie.private)
    assert "internal" not in str(caught.value.actual)


def other(text: str) -> str:
    blob = bytearray(base64.b64decode(text))
    blob[len(blob) // 2] ^= 1
    return base64.b64encode(bytes(blob)).decode()


MALFORMED: dict[str, tuple[Callable[[dict[str, Any]], Any], type[RagAuditError]]] = {
    "no object": (lambda c: [c], SchemaError),
    "a field missing": (lambda c: {k: v for k, v in c.items() if k != "room"}, SchemaError),
    "a field of its own": (lambda c: {**c, "labels": []}, SchemaError),
    "another system": (lambda c: {**c, "system": "groth16"}, SchemaError),
    "another protocol": (lambda c: {**c, "circuit": "00" * 32}, SchemaError),
    "runs that are no list": (lambda c: {**c, "pairs": c["pairs"][0]}, SchemaError),
    "room as text": (lambda c: {**c, "room": "3"}, SchemaError),
    "room as truth": (lambda c: {**c, "room": True}, SchemaError),
    "base64 with line breaks": (lambda c: {**c, "records": c["records"][:76] + "\n"}, EncodingError),
    "more room": (lambda c: {**c, "room": c["room"] + 1}, InvalidProof),
    "room without end": (lambda c: {**c, "room": 2**70}, InvalidProof),
    "less room than none": (lambda c: {**c, "room": -1}, InvalidProof),
    "a run missing": (lambda c: {**c, "pairs": []}, InvalidProof),
    "a run twice": (lambda c: {**c, "pairs": c["pairs"] * 2}, InvalidProof),
    "an altered run over records": (lambda c: {**c, "records": other(c["records"])}, InvalidProof),
    "an altered run over pairs": (lambda c: {**c, "pairs": [other(c["pairs"][0])]}, InvalidProof),
    "no bytes": (lambda c: {**c, "records": ""}, InvalidProof),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_bad_certificates_are_refused_by_name(case: Window, certificate: dict[str, Any], what: str) -> None:
    change, error = MALFORMED[what]
    with pytest.raises(error):
        SYSTEM.steps.verify(case.statement, change(certificate), key=None)


def test_keys_and_other_engines_are_refused(case: Window, certificate: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        SYSTEM.steps.verify(case.statement, certificate, key={})
    with pytest.raises(SetupError):
        SYSTEM.steps.verify(case.statement, certificate, key=None, engine="py_ecc")


def test_two_certificates_of_a_window_share_nothing(case: Window, certificate: dict[str, Any]) -> None:
    again = SYSTEM.prove(case.statement, case.private)
    first, second = (base64.b64decode(c["records"]) for c in (certificate, again))
    assert len(first) == len(second)
    assert not {first[i : i + 32] for i in range(0, len(first), 32)} & {
        second[i : i + 32] for i in range(0, len(second), 32)
    }
    with pytest.raises(InvalidProof):
        SYSTEM.steps.verify(case.statement, {**certificate, "pairs": again["pairs"]}, key=None)


def test_runs_over_pairs_are_jobs(case: Window) -> None:
    steps: list[tuple[int, int]] = []
    with ThreadPoolExecutor(1) as executor:
        result = SYSTEM.prove(
            case.statement, case.private, executor=executor, progress=lambda *at: steps.append(at)
        )
    SYSTEM.steps.verify(case.statement, result, key=None)
    assert steps == [(1, 2), (2, 2)]


def test_jobs_travel_and_show_no_secret(case: Window) -> None:
    native = native_coalition(case.statement, 3)
    records, blindings = native.prove_records(coalition._native_private(case.private))
    job = coalition.PairsJob(case.statement, case.private, 3, records, blindings, 0)
    assert pickle.loads(pickle.dumps(job)) == job
    shown = repr(job)
    assert "CoalitionPrivate()" in shown
    assert "blindings" not in shown
    assert str(case.private.salts[0]) not in shown


def test_a_job_whose_claim_is_false_is_refused(case: Window) -> None:
    lie = case.knowing(labels=(0, 0, 2, 3, 4))
    room = 3
    records, blindings = native_coalition(lie.statement, room).prove_records(
        coalition._native_private(lie.private)
    )
    job = coalition.PairsJob(lie.statement, lie.private, room, records, blindings, 0)
    with pytest.raises(WitnessError, match="no coalition proof"):
        job.run()
    with pytest.raises(WitnessError, match="no coalition proof"):
        replace(job, number=1).run()
    with pytest.raises(WitnessError, match="no coalition proof"):
        replace(job, blindings=blindings[32:]).run()
