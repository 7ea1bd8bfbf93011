"""Which proofs a window makes, where they lie, and what a stop between them leaves. The jobs here prove nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from rag_audit._internal.canonical import digest_hex
from rag_audit.attest.window import Window
from rag_audit.errors import PolicyError, SetupError, StoreError, WitnessError
from rag_audit.models.manifest import TableConstants
from rag_audit.models.policy import Policy
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.groth16.instance import EmbedInstance
from rag_audit.proofs.backends.groth16.system import SYSTEM
from rag_audit.proofs.statements.private import RecordPrivate
from rag_audit.proofs.statements.retrieve import RecordPublic
from tests.drafting import draft
from tests.window.simulator import QUERY_TOKENS, QUESTIONS, Service


class Stopped(Exception):
    """The process ends here."""


@dataclass(frozen=True)
class Canned:
    """Says what it was asked to prove."""

    name: str
    slot: int
    tokens: int

    keys: ClassVar[dict[str, str]] = {}

    def run(self) -> dict[str, Any]:
        return {"name": self.name, "slot": str(self.slot), "tokens": self.tokens}


@dataclass(frozen=True)
class CannedSteps:
    """The steps of a statement whose jobs are `Canned`."""

    name: str
    requested: list[tuple[str, int]]

    published: ClassVar[dict[str, Any]] = {}

    def job(self, records: Mapping[str, tuple[RecordPublic, RecordPrivate]]) -> Canned:
        [(public, private)] = records.values()
        self.requested.append((self.name, public.slot))
        return Canned(self.name, public.slot, len(private.tokens))

    def carried(self, proof: dict[str, Any], number: int) -> dict[str, Any]:
        return proof

    def published_keys(self) -> dict[str, Any]:
        return self.published or {"00" * 32: self.name}


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Windows whose jobs are `Canned`; (statement, slot) of every job that was made."""
    result: list[tuple[str, int]] = []
    monkeypatch.setattr(SYSTEM, "steps", lambda name, tenant, places=1: CannedSteps(name, result))
    return result


def closed(service: Service, **changes: Any) -> Window:
    window = service.open(system="groth16", **changes)
    for account in ("law-1", "medicine-1"):
        service.ask(window, account, QUESTIONS[account.split("-")[0]][0])
    service.finish(window)
    return window


def proofs(window: Window) -> dict[str, Any]:
    return WindowFile.load(window.directory / "public").proofs


def test_every_record_gets_a_proof_of_every_statement(
    service: Service, requested: list[tuple[str, int]]
) -> None:
    with closed(service) as window:
        assert window.prove() == 4
        result = proofs(window)
        assert [sorted(p) for p in result.values()] == [["embed", "retrieve"]] * 2
        assert all(p[name]["name"] == name for p in result.values() for name in p)
        assert len(set(requested)) == 4
        assert window.prove() == 0 and len(requested) == 4


def test_a_window_s_proofs_are_made_under_one_key(
    service: Service, requested: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is installed in the meantime: the window file publishes one key of a circuit."""
    circuit, first, second = "00" * 32, "aa" * 32, "bb" * 32
    under: list[str] = []

    def install(vk: str) -> None:
        monkeypatch.setattr(Canned, "keys", property(lambda job: under.append(vk) or {circuit: vk}))

    with closed(service) as window:
        install(first)
        seqs = [record.seq for record in window.records]
        assert window.prove(seqs[:1]) == 2
        install(second)
        with pytest.raises(SetupError, match="the installed key belongs to another window") as caught:
            window.prove()
        assert (caught.value.expected, caught.value.actual) == (f"vk {first}", f"vk {second}")
        install(first)
        assert window.prove() == 2
        # Nor is another published beside proofs that are there.
        key = {"circuit": circuit}
        monkeypatch.setattr(CannedSteps, "published", {circuit: key})
        with pytest.raises(SetupError, match="the installed key belongs to another window"):
            window.export()
    assert under == [first, first, second, first, first]


def test_a_stop_between_the_two_proofs_of_a_record_loses_neither(
    service: Service, requested: list[tuple[str, int]]
) -> None:
    def stop(done: int, total: int) -> None:
        assert total == 4
        if done == 1:
            raise Stopped

    window = closed(service)
    with window, pytest.raises(Stopped):
        window.prove(progress=stop)
    seen = len(requested)
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        again.export()
        assert [len(p) for p in proofs(again).values()] == [1]
        assert again.prove() == 3
        assert [len(p) for p in proofs(again).values()] == [2, 2]
    # The one under way when it stopped is made again, the stored one is not.
    assert len(requested[seen:]) == 3 and requested[0] not in requested[seen:]


def test_a_job_that_fails_keeps_the_finished_proofs(
    service: Service, requested: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(job: Canned) -> dict[str, Any]:
        if job.name == "embed":
            raise WitnessError("no witness", field="tokens")
        return {"name": job.name}

    monkeypatch.setattr(Canned, "run", run)
    with closed(service) as window:
        with pytest.raises(WitnessError) as caught:
            window.prove()
        assert caught.value.field == f"embed of record {window.records[0].seq}: tokens"
        window.export()
        assert [sorted(p) for p in proofs(window).values()] == [["retrieve"]]


def test_eager_proofs_are_named_together_by_the_record(
    service: Service, requested: list[tuple[str, int]]
) -> None:
    with service.open(system="groth16") as window:
        service.ask(window, "law-1", QUESTIONS["law"][0], eager=True)
        window.export()
        (record,), (result,) = window.records, proofs(window).values()
        assert sorted(result) == ["embed", "retrieve"] and record.proof == digest_hex(result)
        (path,) = (window.directory / "proofs").glob("*.json")
        assert path.stem == record.proof and json.loads(path.read_bytes()) == result
        path.unlink()
        with pytest.raises(StoreError, match="is lost"):
            window.prove()


def test_a_tenant_without_a_circuit_for_embed_gets_the_other_proof(
    service: Service, requested: list[tuple[str, int]]
) -> None:
    with closed(service, table=None) as window:
        assert window.prove() == 2
        assert {name for name, _ in requested} == {"retrieve"}


def test_a_longer_question_is_cut_for_every_proof(service: Service, requested: list[tuple[str, int]]) -> None:
    question = QUESTIONS["law"][1]
    with service.open(system="groth16") as window:
        assert len(window.context.embedder.tokenize(question)) == QUERY_TOKENS
        service.ask(window, "law-1", question, eager=True)
        window.export()
        (result,) = proofs(window).values()
        assert {proof["tokens"] for proof in result.values()} == {QUERY_TOKENS}


def policy(**changes: Any) -> Policy:
    values: dict[str, Any] = {
        "window": "w", "opens_at": 1, "closes_at": 2, "capacities": {"law": 8}, "n": 3, "k_max": 2,
        "eps_acc": "14", "gains": (1, 4), "top_k": 2, "system": "groth16",
    }  # fmt: skip
    return draft(**{**values, **changes})


@pytest.mark.parametrize("tokens", [1, 24, 64])
def test_a_drafted_policy_names_the_circuit_of_its_query_limit(tokens: int) -> None:
    circuits = policy(tokens=(tokens, 512)).tenants[0].circuits
    assert circuits["embed"] == EmbedInstance(tokens).digest()


@pytest.mark.parametrize(
    "changes",
    [{"tokens": (65, 512)}, {"table": TableConstants(32_768, 16_593)}, {"table": None}],
    ids=["a limit above 64 tokens", "a table without room for a zero row", "an embedder without integers"],
)
def test_a_drafted_policy_names_no_circuit_where_none_exists(changes: dict[str, Any]) -> None:
    assert set(policy(**changes).tenants[0].circuits) == {"retrieve"}


def test_a_policy_that_names_an_unknown_statement_is_refused() -> None:
    result = policy()
    part = result.tenants[0]
    circuits = {**part.circuits, "taste": "00" * 32}
    changed = result.model_copy(update={"tenants": [part.model_copy(update={"circuits": circuits})]})
    result.check(64)
    with pytest.raises(PolicyError) as caught:
        changed.check(64)
    assert caught.value.field == "policy.tenants.law.circuits" and "taste" in str(caught.value.actual)


@pytest.mark.parametrize("name", ["retrieve", "embed"])
def test_a_window_is_not_opened_under_a_circuit_that_it_could_not_prove_with(
    service: Service, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    drafted = service.policy(system="groth16")
    tenants = [t.model_copy(update={"circuits": {**t.circuits, name: "00" * 32}}) for t in drafted.tenants]
    monkeypatch.setattr(service, "policy", lambda **_: drafted.model_copy(update={"tenants": tenants}))
    with pytest.raises(PolicyError) as caught:
        service.commit()
    assert caught.value.field == f"policy.tenants.law.circuits.{name}"
