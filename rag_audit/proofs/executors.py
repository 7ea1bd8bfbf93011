"""Executors of proving jobs: processes of this machine, or a cluster that sees none of the jobs' private inputs.

A job contains the seed, the index or every score. It travels to another machine sealed with ChaCha20-Poly1305 under a
key that provider and workers read from the file named by RAG_AUDIT_WORKER_KEY, and its result returns in the same form.
The network, and the scheduler with its logs and spilled data, therefore see no private input
(docs/decisions/0014-sealed-proving-jobs.md). If a worker is lost, its job runs once more.
"""

from __future__ import annotations

import importlib
import logging
import os
import pickle
import secrets
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from rag_audit import __version__
from rag_audit._internal.canonical import parse_hex, sha256
from rag_audit._internal.durable import create_private, read_private
from rag_audit._internal.errors import (
    ExecutorError,
    RagAuditError,
    SetupError,
    StoreError,
    VersionError,
    WitnessError,
)
from rag_audit._internal.sealed import seal, unseal
from rag_audit.proofs.interface import Job

log = logging.getLogger(__name__)

KEY_VARIABLE = "RAG_AUDIT_WORKER_KEY"
IN_FLIGHT = 128
"""Maximum jobs at a cluster at a time, since their private inputs are in this process's memory."""
IN_FLIGHT_BYTES = 1 << 28
"""Fewer large jobs are sent at a time, but enough for two workers, each with one job running and one waiting."""
FEWEST_IN_FLIGHT = 4
CONNECT_S = 10
SILENCE_S = 300.0
"""Seconds without a result before a warning that the cluster is silent: it may have no workers left."""
_JOB, _RESULT = b"rag-audit/worker/v1/job", b"rag-audit/worker/v1/result"

K = TypeVar("K")
T = TypeVar("T")


# -- keys and seals ------------------------------------------------------------------------------------------


def new_worker_key(path: Path) -> None:
    """Write a fresh key to a new file with mode 0600.

    :raises StoreError: the file exists already or cannot be written
    """
    create_private(path, secrets.token_hex(32).encode() + b"\n")


def worker_key() -> bytes:
    """The key from the file that RAG_AUDIT_WORKER_KEY names, here or on a worker.

    :raises SetupError: the variable or the file is missing, or others may read the file
    :raises EncodingError: the file does not contain 64 hexadecimal digits
    """
    name = os.environ.get(KEY_VARIABLE)
    if not name:
        raise SetupError(
            "proving jobs leave this machine only under a key, and there is none",
            field=KEY_VARIABLE,
            expected="the path of a key file, here and on every worker",
            hint="rag-audit provider worker-key FILE, and copy FILE to the workers by a safe way",
        )
    text = read_private(Path(name), max_bytes=66).decode("ascii", "replace")
    return parse_hex(text.removesuffix("\n").removesuffix("\r"), 32, field=name)


def _seal(key: bytes, value: object, context: bytes) -> bytes:
    return seal(pickle.dumps(value), key, context)


def _open(key: bytes, blob: bytes, context: bytes) -> Any:  # what pickle gives
    # The bytes are unpickled only after the tag is checked, so their maker has the key.
    try:
        plain = unseal(blob, key, context, what="job or result")
    except StoreError as exc:
        raise SetupError(
            "a sealed job or result cannot be opened: altered, or provider and workers have different keys",
            field=KEY_VARIABLE,
        ) from exc
    return pickle.loads(plain)


def run_sealed(blob: bytes) -> bytes:
    """Open a sealed call, make the call, and seal its result. A worker runs this function.

    :raises SetupError: this machine has no key, or another key than the provider's
    :raises VersionError: provider and worker have different releases
    """
    key = worker_key()
    release, call = _open(key, blob, _JOB)
    if release != __version__:
        raise VersionError(
            "a worker has another release than the provider", expected=release, actual=__version__
        )
    fn, args, kwargs = pickle.loads(call)
    outcome: tuple[Any, RagAuditError | None]
    try:
        outcome = (fn(*args, **kwargs), None)
    except RagAuditError as exc:
        outcome = (None, exc)
    except Exception as exc:
        outcome = (None, ExecutorError("a job failed on its worker", actual=type(exc).__name__))
    return _seal(key, outcome, _RESULT + sha256(blob))


# -- executors -----------------------------------------------------------------------------------------------


class LocalProcesses(Executor):
    """An executor of spawned processes on this machine. When one dies, all are replaced and the pool continues.

    :param workers: how many processes
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = self._new()

    def _new(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As `Executor.submit`."""
        try:
            return self._pool.submit(fn, *args, **kwargs)
        except BrokenProcessPool:
            self._pool.shutdown(wait=False)
            self._pool = self._new()
            return self._pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As `Executor.shutdown`."""
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


class SealedExecutor(Executor):
    """A wrapper of any executor on other machines, which then sees only sealed calls and sealed results.

    :param remote: the executor that runs the sealed calls
    :param key: 32 bytes, which the workers have too
    """

    def __init__(self, remote: Executor, key: bytes) -> None:
        self._remote = remote
        self._key = key
        self.largest = 1
        """Size of the largest call so far in bytes."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As `Executor.submit`. The job's own errors are raised unchanged; any other means that the job was lost."""
        blob = _seal(self._key, (__version__, pickle.dumps((fn, args, kwargs))), _JOB)
        self.largest = max(self.largest, len(blob))
        outer: Future[Any] = Future()
        inner = self._remote.submit(run_sealed, blob)

        def settle(done: Future[Any]) -> None:
            if not outer.set_running_or_notify_cancel():
                return
            try:
                value, error = _open(self._key, done.result(), _RESULT + sha256(blob))
            except BaseException as exc:
                value, error = None, exc
            if error is not None:
                outer.set_exception(error)
            else:
                outer.set_result(value)

        inner.add_done_callback(settle)
        outer.add_done_callback(lambda future: future.cancelled() and inner.cancel())
        return outer


class _Ray(Executor):
    """An executor that runs its calls as Ray's tasks."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        # Tasks are never cancelled, since a thread of Ray's fails on that. Leaving the cluster ends them.
        future.set_running_or_notify_cancel()

        def settle(done: Future[Any]) -> None:
            try:
                future.set_result(done.result())
            except BaseException as exc:
                future.set_exception(getattr(exc, "cause", None) or exc)  # an error of the call comes wrapped

        task = self._ray.remote(max_retries=0)(fn)
        task.remote(*args, **kwargs).future().add_done_callback(settle)
        return future


@contextmanager
def open_executor(address: str | None = None, *, workers: int = 1) -> Iterator[Executor]:
    """An executor of spawned processes, or of the cluster at an address.

    :param address: ``dask://host:port`` or ``ray://host:port``
    :param workers: number of processes, if there is no address
    :raises SetupError: the cluster's package or the workers' key is missing
    :raises ExecutorError: the address has another form, or no cluster answers there
    """
    if address is None:
        with LocalProcesses(workers) as pool:
            yield pool
        return
    scheme, separator, place = address.partition("://")
    if scheme not in ("dask", "ray") or not separator or not place:
        raise ExecutorError(
            "the address is not an executor's", field="--executor", expected="dask://host:port or ray://host:port",
            actual=address,
        )  # fmt: skip
    key = worker_key()
    if scheme == "dask":
        distributed = _package("distributed", "dask")
        with _answering(address):
            client = distributed.Client(f"tcp://{place}", timeout=CONNECT_S)
        with client:
            yield SealedExecutor(client.get_executor(pure=False), key)
    else:
        ray = _package("ray", "ray")
        with _answering(address):
            ray.init(address)
        try:
            yield SealedExecutor(_Ray(ray), key)
        finally:
            ray.shutdown()


def _package(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as exc:
        raise SetupError(
            "the executor's package is not installed", field=name, hint=f"pip install 'ragaudit-zk[{extra}]'"
        ) from exc


@contextmanager
def _answering(address: str) -> Iterator[None]:
    try:
        yield
    except Exception as exc:
        raise ExecutorError(
            "no cluster answers at the address", field=address, actual=type(exc).__name__
        ) from exc


# -- jobs ----------------------------------------------------------------------------------------------------


def run_job(job: Job[T]) -> T:
    """Run a picklable job and return its proof. An executor runs this function."""
    return job.run()


def run_jobs(jobs: Iterable[tuple[K, Job[T]]], executor: Executor | None) -> Iterator[tuple[K, T]]:
    """Run jobs, and yield the name and result of each when it finishes, in any order.

    The function takes jobs from the iterable when it has room for them. If a worker is lost, its job runs once more.
    After an error it starts no further job, but it waits for the running ones and yields their results, so that no
    finished proof is lost.

    :param executor: threads or processes of this machine are used directly, any other executor is sealed
        (`SealedExecutor`, with the key of `worker_key`); None runs the jobs one after another in this thread
    :raises ExecutorError: a job's second worker was lost too, or the executor accepts no more jobs
    :raises RagAuditError: the error that a job raised; a `WitnessError`'s field starts with the job's name
    """
    if executor is None:
        for name, job in jobs:
            try:
                result = run_job(job)
            except WitnessError as exc:
                raise _of_job(exc, name) from None
            yield name, result
        return
    limit = 2 * executor.workers if isinstance(executor, LocalProcesses) else IN_FLIGHT
    if not isinstance(executor, LocalProcesses | SealedExecutor | ProcessPoolExecutor | ThreadPoolExecutor):
        executor = SealedExecutor(executor, worker_key())
    waiting: dict[Future[T], tuple[K, Job[T], bool]] = {}
    failure: RagAuditError | None = None
    source = iter(jobs)

    def room() -> bool:
        maximum = limit
        if isinstance(executor, SealedExecutor):
            maximum = min(limit, max(FEWEST_IN_FLIGHT, IN_FLIGHT_BYTES // executor.largest))
        return len(waiting) < maximum

    def send(name: K, job: Job[T], *, again: bool) -> None:
        nonlocal failure
        try:
            waiting[executor.submit(run_job, job)] = (name, job, again)
        except Exception as exc:
            failure = failure or ExecutorError(
                "no job can be sent to the executor", actual=f"{type(exc).__name__}: {exc}"
            )

    try:
        while True:
            # Room is checked once per job, since a failed submission ends the loop.
            while failure is None and room() and (following := next(source, None)):
                send(*following, again=False)
            if not waiting:
                break
            finished = wait(waiting, timeout=SILENCE_S, return_when=FIRST_COMPLETED).done
            if not finished:
                log.warning(
                    "the cluster gave no result for %.0f s; %d jobs are running there",
                    SILENCE_S,
                    len(waiting),
                )
            for future in finished:
                name, job, again = waiting.pop(future)
                error = None if future.cancelled() else future.exception()
                if isinstance(error, RagAuditError):
                    failure = failure or _of_job(error, name)
                elif error is None and not future.cancelled():
                    yield name, future.result()
                elif again:
                    failure = failure or ExecutorError(
                        "a job was lost twice with its worker", field=str(name),
                        actual="cancelled" if error is None else f"{type(error).__name__}: {error}",
                        hint="finished proofs are stored: repeat the command",
                    )  # fmt: skip
                elif failure is None:
                    log.warning("a worker was lost; its job runs once more")
                    send(name, job, again=True)
    finally:
        for future in waiting:
            future.cancel()
    if failure is not None:
        raise failure


def _of_job(error: RagAuditError, name: object) -> RagAuditError:
    if isinstance(error, WitnessError):
        error.field = str(name) if error.field is None else f"{name}: {error.field}"
    return error
