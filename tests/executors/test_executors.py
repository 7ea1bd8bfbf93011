"""Proving jobs on processes and on a real Dask cluster: what travels, what a lost worker costs, what is refused."""

from __future__ import annotations

import dataclasses
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from rag_audit.errors import EncodingError, ExecutorError, SetupError, VersionError, WitnessError
from rag_audit.proofs import executors
from rag_audit.proofs.backends.scan.column import SlotProofJob
from rag_audit.proofs.backends.scan.key import ScanKey, commit_index
from rag_audit.proofs.executors import (
    KEY_VARIABLE,
    LocalProcesses,
    SealedExecutor,
    open_executor,
    run_job,
    run_jobs,
    run_sealed,
    worker_key,
)
from rag_audit.proofs.statements.private import NoiseProof
from rag_audit.relation.commitments import seed_commitment
from rag_audit.relation.field import to_bytes
from tests.executors.conftest import Cluster, DaskCluster

S0, S1 = 2**200 + 11, 2**199 + 22


@dataclasses.dataclass(frozen=True)
class Echo:
    """A job that gives its value, or ends its process the first time."""

    value: int
    fatal_once: Path | None = None

    def run(self) -> int:
        if self.fatal_once is not None and not self.fatal_once.exists():
            self.fatal_once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.value


@dataclasses.dataclass(frozen=True)
class Sized(Echo):
    blob: bytes = b""


class AlwaysFatal(Echo):
    def run(self) -> int:
        os.kill(os.getpid(), signal.SIGKILL)
        return self.value


class Raising(Echo):
    def run(self) -> int:
        if self.value:
            raise WitnessError("no proof", field="record")
        raise ZeroDivisionError("with what was divided")


class Recorder(Executor):
    """Keeps what it is given to carry, and may change it, or its results, on the way."""

    def __init__(
        self, there: Callable[[bytes], bytes] = bytes, back: Callable[[bytes], bytes] = bytes
    ) -> None:
        self.sent: list[bytes] = []
        self.there, self.back = there, back

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.sent += [pickle.dumps((fn, args, kwargs))]
        future: Future[Any] = Future()
        try:
            future.set_result(self.back(fn(self.there(args[0]), *args[1:], **kwargs)))
        except Exception as exc:
            future.set_exception(exc)
        return future


@pytest.fixture(scope="module")
def scan_key() -> ScanKey:
    rows = bytes(i % 8 for i in range(500 * 4))
    points = commit_index(rows, 4, 500, bytes(32))
    return ScanKey(points, 4, 500, bytes(32), (1,), 2, lo=5, hi=90, lattice=64)


def slot_proof_job(key: ScanKey, slot: int) -> SlotProofJob:
    return SlotProofJob(key, seed_commitment(S0, S1), 33, slot, S0, S1)


# -- what travels --------------------------------------------------------------------------------------------


def test_a_sealed_job_shows_no_secret_and_gives_its_result(key_file: Path, scan_key: ScanKey) -> None:
    job, carrier = slot_proof_job(scan_key, 1), Recorder()
    result = SealedExecutor(carrier, worker_key()).submit(run_job, job).result()
    assert isinstance(result, NoiseProof)
    (sent,) = carrier.sent
    plain = pickle.dumps((run_job, job))
    for secret in (S0, S1):
        halves = (to_bytes(secret), secret.to_bytes(32, "little").rstrip(b"\0"))
        assert any(half in plain for half in halves), "the job holds it"
        assert not any(half in sent for half in halves)
    assert b"SlotProofJob" in plain and b"SlotProofJob" not in sent


def test_an_executor_that_is_not_of_this_machine_is_sealed(key_file: Path) -> None:
    carrier = Recorder()
    assert dict(run_jobs([("a", Echo(7)), ("b", Echo(8))], carrier)) == {"a": 7, "b": 8}
    assert len(carrier.sent) == 2 and all(b"Echo" not in sent for sent in carrier.sent)


def test_without_a_key_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    carrier = Recorder()
    with pytest.raises(SetupError, match=KEY_VARIABLE):
        list(run_jobs([("a", Echo(7))], carrier))
    assert carrier.sent == []
    with pytest.raises(SetupError, match=KEY_VARIABLE), open_executor("dask://127.0.0.1:1"):
        pass


def test_a_key_that_others_may_read_or_that_is_no_key_is_refused(key_file: Path) -> None:
    key_file.chmod(0o644)
    with pytest.raises(SetupError, match="access a secret file"):
        worker_key()
    key_file.chmod(0o600)
    key_file.write_text("abc")
    with pytest.raises(EncodingError):
        worker_key()


def test_a_worker_with_another_key_opens_nothing(key_file: Path) -> None:
    carrier = Recorder()
    with pytest.raises(SetupError, match="different keys"):
        SealedExecutor(carrier, bytes(32)).submit(run_job, Echo(1)).result()


def flip(blob: bytes) -> bytes:
    return blob[:-1] + bytes([blob[-1] ^ 1])


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_changed_job_or_result_is_refused(key_file: Path, way: str) -> None:
    carrier = Recorder(**{way: flip})
    with pytest.raises(SetupError, match="cannot be opened"):
        SealedExecutor(carrier, worker_key()).submit(run_job, Echo(1)).result()


def test_a_result_of_another_job_is_refused(key_file: Path) -> None:
    results: list[bytes] = []

    def first(result: bytes) -> bytes:
        results.append(result)
        return results[0]

    sealed = SealedExecutor(Recorder(back=first), worker_key())
    assert sealed.submit(run_job, Echo(1)).result() == 1
    with pytest.raises(SetupError):
        sealed.submit(run_job, Echo(2)).result()


def test_a_job_is_not_taken_for_a_result(key_file: Path) -> None:
    blobs: list[bytes] = []
    sealed = SealedExecutor(Recorder(there=lambda b: blobs.append(b) or b), worker_key())
    sealed.submit(run_job, Echo(1)).result()
    with pytest.raises(SetupError):
        run_sealed(run_sealed(blobs[0]))


def test_a_worker_of_another_release_says_so(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def elsewhere(blob: bytes) -> bytes:
        monkeypatch.setattr(executors, "__version__", "0.0.1")
        return blob

    with pytest.raises(VersionError):
        SealedExecutor(Recorder(there=elsewhere), worker_key()).submit(run_job, Echo(1)).result()


def test_a_jobs_error_arrives_and_an_unknown_one_without_its_text(key_file: Path) -> None:
    sealed = SealedExecutor(Recorder(), worker_key())
    with pytest.raises(WitnessError, match="no proof; at record"):
        sealed.submit(run_job, Raising(1)).result()
    with pytest.raises(ExecutorError, match="ZeroDivisionError") as caught:
        sealed.submit(run_job, Raising(0)).result()
    assert "divided" not in str(caught.value)


# -- lost workers --------------------------------------------------------------------------------------------


def test_a_job_whose_process_dies_runs_once_more(tmp_path: Path) -> None:
    jobs = [(i, Echo(i, tmp_path / "died" if i == 2 else None)) for i in range(6)]
    with LocalProcesses(1) as pool:
        assert dict(run_jobs(jobs, pool)) == {i: i for i in range(6)}
    assert (tmp_path / "died").exists()


def test_a_job_lost_twice_is_named(tmp_path: Path) -> None:
    with (
        LocalProcesses(1) as pool,
        pytest.raises(ExecutorError, match="lost twice with its worker; at seven"),
    ):
        list(run_jobs([("seven", AlwaysFatal(7))], pool))


def test_what_is_under_way_when_a_job_fails_is_given() -> None:
    done: list[int] = []
    jobs = [("bad", Raising(1)), *((str(i), Echo(i)) for i in range(500))]
    with ThreadPoolExecutor(1) as pool, pytest.raises(WitnessError):
        for _, value in run_jobs(jobs, pool):
            done.append(value)
    assert done
    assert len(done) < 500, "no job is started after the error"


def test_a_cluster_without_workers_is_said_to_be_silent(
    key_file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Idle(Executor):
        """Its jobs wait for a worker for a while."""

        def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            future: Future[Any] = Future()
            Timer(0.3, lambda: future.set_result(fn(*args, **kwargs))).start()
            return future

    monkeypatch.setattr(executors, "SILENCE_S", 0.1)
    assert dict(run_jobs([("a", Echo(7))], Idle())) == {"a": 7}
    assert "the cluster gave no result for 0 s; 1 jobs are running there" in caplog.text


def test_jobs_are_built_as_there_is_room() -> None:
    built = 0

    def jobs() -> Iterator[tuple[int, Echo]]:
        nonlocal built
        for i in range(1000):
            built += 1
            yield i, Echo(i)

    with ThreadPoolExecutor(1) as pool:
        run = run_jobs(jobs(), pool)
        next(run)
        assert built <= executors.IN_FLIGHT
        assert sum(1 for _ in run) == 999


@pytest.mark.parametrize(("size", "maximum"), [(10, 128), (100_000, 10), (2_000_000, 4)])
def test_fewer_large_jobs_are_on_their_way(
    key_file: Path, monkeypatch: pytest.MonkeyPatch, size: int, maximum: int
) -> None:
    monkeypatch.setattr(executors, "IN_FLIGHT_BYTES", 1_050_000)
    carrier = Recorder()
    run = run_jobs([(i, Sized(i, blob=bytes(size))) for i in range(200)], carrier)
    next(run)
    assert len(carrier.sent) == maximum
    run.close()


# -- addresses -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["dask:/a", "http://a:1", "dask://", "a:1", ""])
def test_other_addresses_are_refused(key_file: Path, address: str) -> None:
    with pytest.raises(ExecutorError, match="address"), open_executor(address):
        pass


def test_a_missing_package_is_named(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, scheme in (("distributed", "dask"), ("ray", "ray")):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(SetupError) as caught, open_executor(f"{scheme}://127.0.0.1:1"):
            pass
        assert caught.value.hint == f"pip install 'ragaudit-zk[{scheme}]'"


# -- a cluster -----------------------------------------------------------------------------------------------


def test_a_worker_killed_in_the_middle_of_a_proof_costs_no_proof(
    cluster: Cluster, scan_key: ScanKey, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [(slot, slot_proof_job(scan_key, slot)) for slot in range(6)]
    with open_executor(cluster.address) as sealed, ThreadPoolExecutor(1) as thread:
        running = thread.submit(lambda: list(run_jobs(jobs, sealed)))
        killed = cluster.kill_a_busy_worker(lambda: not running.done())
        done = running.result()
    assert killed
    assert [record.message for record in caplog.records].count(
        "a worker was lost; its job runs once more"
    ) >= 1
    assert sorted(slot for slot, _ in done) == list(range(6))
    assert len({certificate.proof for _, certificate in done}) == 6


def test_errors_come_back_from_a_cluster_as_they_were(cluster: Cluster) -> None:
    if isinstance(cluster, DaskCluster):  # Ray has no executor of its own; open_executor wraps its tasks
        takes_a_client_as_it_is(cluster)
    with open_executor(cluster.address) as sealed:
        with pytest.raises(WitnessError, match="no proof; at a: record"):
            list(run_jobs([("a", Raising(1))], sealed))
        assert isinstance(sealed, SealedExecutor)
        with pytest.raises(SetupError) as caught:
            list(run_jobs([("a", Echo(1))], SealedExecutor(sealed._remote, bytes(32))))
        assert type(caught.value) is SetupError and caught.value.field == KEY_VARIABLE
        with pytest.raises(
            ExecutorError, match="lost twice with its worker; at seven"
        ):  # both workers die of it
            list(run_jobs([("seven", AlwaysFatal(7))], sealed))


def takes_a_client_as_it_is(cluster: Cluster) -> None:
    """As the library's `Window.prove(executor=...)` takes it; nothing leaves unsealed, since the workers open it."""
    from distributed import Client

    with Client(cluster.address.replace("dask://", "tcp://")) as client:
        jobs = [(i, Echo(i)) for i in range(20)]
        assert dict(run_jobs(jobs, client.get_executor())) == {i: i for i in range(20)}


class _Unreachable(Cluster):
    """Starts something, and then cannot be reached."""

    def begin(self) -> None:
        self.start("-c", "import time; time.sleep(600)")
        raise RuntimeError("not reached")

    def kill_a_busy_worker(self, running: Callable[[], bool]) -> bool:
        raise NotImplementedError


def test_what_a_cluster_started_ends_with_it_where_its_set_up_fails(tmp_path: Path) -> None:
    unreachable = _Unreachable(tmp_path)
    with pytest.raises(RuntimeError):
        unreachable.begin()
    unreachable.stop()
    assert [p.poll() is None for p in unreachable.processes] == [False]
