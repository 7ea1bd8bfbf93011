"""Crash safety of a whole window: the provider dies at every write boundary in turn and comes back.

The child answers queries over a pipe, one line an answer, and dies without cleaning up: at its k-th ledger statement,
or at its k-th step of replacing a file. The accounts live in the parent and repeat what was not answered, as their
own rule is. No proofs here: what is proved is the ledger's content, which these tests compare.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from rag_audit._internal import durable
from rag_audit._internal.canonical import jcs
from rag_audit.attest import answers
from rag_audit.attest.query import Query
from rag_audit.attest.release import Release
from rag_audit.attest.window import Window
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.log.store import LedgerStore
from rag_audit.models.records import SlotKey
from rag_audit.models.requests import Answer, Refusal
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.embed import EmbedJob
from rag_audit.proofs.backends.scan.query_vector import embed_form
from rag_audit.proofs.backends.scan.retrieve import FORM, RecordsJob
from rag_audit.proofs.statements.private import NoiseProof
from tests import child
from tests.window.simulator import QUESTIONS, RELEASE_S, Service
from tests.window.test_requests import signed

KILLED = 41
PLAN = [("law-1", 1), ("medicine-1", 1), ("law-1", 2)]
TOGETHER = [PLAN[:2], PLAN[2:]]
ONE_BY_ONE = [[slot] for slot in PLAN]


class Death:
    """Ends the process at its k-th boundary."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, *_: Any) -> None:
        if self.left == 0:
            os._exit(KILLED)
        self.left -= 1


def die_in_store(at: int) -> None:
    LedgerStore._boundary = Death(at)  # type: ignore[method-assign, assignment]


def die_in_files(at: int) -> None:
    """Before the temporary file, after it, after the rename, and after the directory is synced."""
    death = Death(at)
    write, rename, sync = durable._write_new, os.replace, durable.sync_directory

    def around(step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            death()
            result = step(*arguments, **options)
            death()
            return result

        return run

    durable._write_new = around(write)
    durable.os.replace = around(rename)  # type: ignore[attr-defined]
    durable.sync_directory = around(sync)


def in_child(work: Callable[[Callable[[Any], None]], None]) -> tuple[int, list[Any]]:
    """Run in a forked process; its exit status and what it reported before it died."""
    return child.in_child(
        lambda pipe: work(lambda value: os.write(pipe, json.dumps(value).encode() + b"\n") and None)
    )


def question(account: str, i: int) -> str:
    return QUESTIONS[account.split("-")[0]][i - 1]


def serve(
    service: Service,
    directory: Path,
    arm: Callable[[int], None],
    at: int,
    close: bool,
    plan: Sequence[Sequence[tuple[str, int]]],
) -> Callable[[Callable[[Any], None]], None]:
    """What the provider's process does: come back, answer the plan, close."""

    def work(report: Callable[[Any], None]) -> None:
        arm(at)
        window = Window.resume(directory, key=service.key, clock=service.clock)
        for slots in plan:
            service.clock.advance(1)
            values = [
                signed(service, window, question(account, i), account=account, i=i) for account, i in slots
            ]
            result = window.answers.answer([Query.parse(v, window.context.embedder) for v in values])
            for (account, i), answer in zip(slots, result, strict=True):
                assert isinstance(answer, Answer), answer
                report([account, i, answer.dump()["documents"]])
        if close:
            report(["closed", 0, window.close()])
        window.shut()

    return work


def check(service: Service, directory: Path, answered: list[Any]) -> None:
    """Every answered query is recorded; no slot serves two queries; the rest is served now, consistently."""
    with Window.resume(directory, key=service.key, clock=service.clock) as window:
        slots = [(r.account, r.i) for r in window.records]
        assert len(set(slots)) == len(slots)
        assert set(slots) >= {(account, i) for account, i, _ in answered if account != "closed"}
        given: dict[tuple[str, int], Any] = {}
        for account, i, documents in answered:
            if account == "closed":
                assert window.status == "closed"
                continue
            assert given.setdefault((account, i), documents) == documents
        if window.status == "active":
            for account, i in PLAN:
                answer = window.handle(signed(service, window, question(account, i), account=account, i=i))
                assert isinstance(answer, Answer)
                documents = answer.dump()["documents"]
                assert given.setdefault((account, i), documents) == documents
                other = window.handle(signed(service, window, "Another question?", account=account, i=i))
                assert other.reason == "slot-used"  # type: ignore[union-attr]
            assert [(r.account, r.i) for r in window.records] == sorted(
                ((r.account, r.i) for r in window.records), key=lambda s: [q for q in PLAN].index(s)
            )
        assert sorted((r.account, r.i) for r in window.records) == sorted(PLAN)


def close_and_cosign(service: Service, directory: Path) -> None:
    """The window can still be closed, and the witnesses find it one log."""
    with Window.resume(directory, key=service.key, clock=service.clock) as window:
        service.finish(window)
        assert window.status == "final"
    file = WindowFile.load(directory / "public")
    entries = file.entries
    assert [e.get("seq", 0) for e in entries] == list(range(len(entries)))
    assert entries[-1]["queries"] == len(PLAN)
    root = HashTree(leaf_hash(jcs(e)) for e in entries).root()
    from rag_audit.log.checkpoint import Checkpoint
    from rag_audit.log.note import parse_note

    assert Checkpoint.parse(parse_note(file.final_checkpoint).text).root == root


@pytest.fixture
def active(service: Service) -> tuple[Service, Path]:
    """An active window, shut, to be copied for every death."""
    window = service.open()
    window.shut()
    return service, window.directory


def deaths(
    arm: Callable[[int], None],
    close: bool,
    service: Service,
    active: Path,
    plan: Sequence[Sequence[tuple[str, int]]] = ONE_BY_ONE,
) -> int:
    """Die at every boundary in turn; how many there are."""
    for at in range(10_000):
        directory = active.with_name(f"{active.name}-{at}")
        shutil.copytree(active, directory)
        status, answered = in_child(serve(service, directory, arm, at, close, plan))
        if status == 0:
            assert len(answered) == len(PLAN) + close
            if not close:
                check(service, directory, answered)
                close_and_cosign(service, directory)
            return at
        assert status == KILLED
        # It comes back, goes on, and dies once more at the same count of boundaries.
        status, more = in_child(serve(service, directory, arm, at, close, plan))
        assert status in (0, KILLED)
        check(service, directory, answered + more)
        shutil.rmtree(directory)
    raise AssertionError("the workload never finished")


def test_killed_at_every_write_boundary_of_the_ledger(active: tuple[Service, Path]) -> None:
    # Two around each statement: those that open the file, then two answered together, four to six, and one, three.
    assert deaths(die_in_store, False, *active, TOGETHER) >= 2 * (4 + 4 + 3)


@pytest.mark.full
def test_killed_at_every_write_boundary_one_by_one(active: tuple[Service, Path]) -> None:
    # Three records of three statements each.
    assert deaths(die_in_store, False, *active) >= 2 * (4 + 3 * 3)


@pytest.mark.full
def test_killed_at_every_write_boundary_while_closing(active: tuple[Service, Path]) -> None:
    assert deaths(die_in_store, True, *active) >= 2 * (4 + 4 * 3)


def test_killed_at_every_step_of_a_replaced_file_while_closing(active: tuple[Service, Path]) -> None:
    assert deaths(die_in_files, True, *active) >= 6


def test_killed_at_every_step_while_a_window_is_opened(service: Service) -> None:
    """What is left either resumes as a committed window, with all that witnesses need, or is refused by name, and then
    the same call finishes it.
    """
    from rag_audit.errors import RagAuditError

    outcomes = set()
    for at in range(10_000):
        name = f"window-{at}"

        def work(report: Callable[[Any], None], at: int = at, name: str = name) -> None:
            die_in_files(at)
            service.commit(name, system="scan").shut()

        status, _ = in_child(work)
        try:
            with Window.resume(service.root / name, key=service.key, clock=service.clock) as window:
                public = window.directory / "public"
                assert window.status == "committed"
                assert (public / "header.json").exists() and (public / "checkpoint-1.txt").exists()
                outcomes.add("resumed")
        except RagAuditError as exc:
            outcomes.add(exc.name)
            assert status == KILLED
            service.commit(name, system="scan").shut()
        if status == 0:
            break
    assert "resumed" in outcomes and outcomes <= {
        "resumed", "StoreError", "EncodingError", "SetupError"
    }  # fmt: skip


def test_a_window_whose_opening_was_not_published_is_published_when_it_comes_back(service: Service) -> None:
    with service.commit() as window:
        public = window.directory / "public"
    for path in public.glob("*"):
        if path.is_file():
            path.unlink()
    with Window.resume(window.directory, key=service.key, clock=service.clock) as again:
        service.cosign_header(again)
        assert again.status == "active"


def test_a_ledger_that_lost_what_was_published_does_not_resume(active: tuple[Service, Path]) -> None:
    """A restored backup would use slots again; the published checkpoints tell."""
    from rag_audit.errors import StoreError

    service, directory = active
    backup = directory.with_name("backup")
    shutil.copytree(directory, backup)
    with Window.resume(directory, key=service.key, clock=service.clock) as window:
        window.handle(signed(service, window))
        window.close()
    for path in directory.glob("ledger.sqlite*"):
        path.unlink()
    for path in backup.glob("ledger.sqlite*"):
        shutil.copy(path, directory / path.name)
    with pytest.raises(StoreError, match="lost or changed"):
        Window.resume(directory, key=service.key, clock=service.clock)


# Certificates and eager proofs.

SLOT = SlotKey("law", "law-1", 1)


@pytest.fixture
def quick_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored, and when, matters here, not what it says; a noise proof's blindings differ each time."""

    def certify(job: SlotProofJob) -> NoiseProof:
        return NoiseProof(b"noise proof of %d" % job.slot, b"commitments", os.urandom(8))

    def prove(job: RecordsJob) -> dict[str, Any]:
        (record,) = job.records
        result = (
            record.noise_proof if isinstance(record.noise_proof, NoiseProof) else record.noise_proof.run()
        )
        assert result.proof == b"noise proof of %d" % record.statement.slot
        return FORM.json([record.statement], (result.proof, b"proof of %d" % record.statement.htopk))

    monkeypatch.setattr(answers, "Release", lambda: Release(RELEASE_S))
    monkeypatch.setattr(SlotProofJob, "run", certify)
    monkeypatch.setattr(RecordsJob, "run", prove)
    monkeypatch.setattr(
        EmbedJob,
        "run",
        lambda job: embed_form(job.key.argument).json(
            [job.statement], [b"proof of A1 of %d" % job.statement.hq]
        ),
    )


@pytest.mark.parametrize("arm", [die_in_store, die_in_files], ids=["ledger", "files"])
def test_killed_at_every_write_boundary_between_certificate_and_proved_answer(
    arm: Callable[[int], None], service: Service, quick_proofs: None
) -> None:
    """A noise proof is made, its slot's query answered with its proof, the noise proof dropped. Whatever dies where:
    the slot serves one query, a record that names a proof has it, and no half noise proof is ever used."""
    service.open(system="scan").shut()
    active = service.root / "window"

    def work_in(directory: Path, at: int) -> Callable[[Callable[[Any], None]], None]:
        def work(report: Callable[[Any], None]) -> None:
            arm(at)
            with Window.resume(directory, key=service.key, clock=service.clock) as window:
                window.precompute_noise_proofs(1)
                answer = window.handle(signed(service, window, question("law-1", 1)), eager=True)
                assert isinstance(answer, Answer), answer
                report(answer.dump()["documents"])

        return work

    for at in range(1_000):
        directory = active.with_name(f"window-{at}")
        shutil.copytree(active, directory)
        status, answered = in_child(work_in(directory, at))
        with Window.resume(directory, key=service.key, clock=service.clock) as window:
            noise_proof = window.noise_proofs.get(SLOT)
            assert noise_proof is None or noise_proof.proof.startswith(b"noise proof of")
            recorded = window.records
            assert len(recorded) <= 1 and (recorded or not answered)
            for record in recorded:
                assert record.proof is not None and set(window.publisher.proofs(record)) == {
                    "retrieve",
                    "embed",
                }
            again = window.handle(signed(service, window, question("law-1", 1)), eager=True)
            assert isinstance(again, Answer)
            assert all(documents == again.dump()["documents"] for documents in answered)
            other = window.handle(signed(service, window, "Another question?"), eager=True)
            assert isinstance(other, Refusal) and other.reason == "slot-used"
            window.precompute_noise_proofs(1)
            window.prove()
            assert window.noise_proofs.get(SLOT) is None
            assert window.noise_proofs.get(SLOT.shifted(1)) is not None
        assert not list((directory / "noise-proofs").glob(".*"))
        if status == 0:
            break
        assert status == KILLED
        shutil.rmtree(directory)
    assert at >= (2 * (4 + 3) if arm is die_in_store else 6 * 2)
