"""A key that jobs travel under, and real clusters of two workers: Dask's, and Ray's where it is installed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rag_audit.proofs.executors import KEY_VARIABLE, new_worker_key

ROOT = Path(__file__).resolve().parents[2]
START_S = 60


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "worker.key"
    new_worker_key(path)
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    return path


class Cluster(ABC):
    """Two workers, processes of their own, and where they are reached."""

    address: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []

    @abstractmethod
    def begin(self) -> None:
        """Start its processes, and wait until it can be reached."""

    def start(self, *command: object, **environment: str) -> subprocess.Popen[bytes]:
        """One of its processes. Its workers import the package and the tests from this checkout."""
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.processes.append(process)
        return process

    @abstractmethod
    def kill_a_busy_worker(self, running: Callable[[], bool]) -> bool:
        """Wait until a worker has a task, and kill the worker. Returns False if no task is `running`."""

    def stop(self) -> None:
        """End whatever of its processes was started, the last one first; also where `begin` failed."""
        for process in reversed(self.processes):
            process.kill()
            process.wait()


class DaskCluster(Cluster):
    """Dask itself does not repeat a task after the death of its worker."""

    def begin(self) -> None:
        file = self.folder / "scheduler.json"
        options = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", file)
        scheduler = self.start("-m", "dask", "scheduler", *options, "--port", "0",
                                    DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")  # fmt: skip
        while (address := self._address(file)) is None:
            assert scheduler.poll() is None
            time.sleep(0.05)
        self.address = address.replace("tcp://", "dask://")
        # Only now: workers read the file too.
        worker = ("-m", "dask", "worker", *options, "--no-nanny", "--nthreads", "1", "--name")
        self.workers = {name: self.start(*worker, name) for name in ("one", "two")}

    @staticmethod
    def _address(file: Path) -> str | None:
        """The scheduler's, once its file is there as a whole."""
        try:
            return str(json.loads(file.read_text())["address"])
        except (FileNotFoundError, ValueError):
            return None

    def kill_a_busy_worker(self, running: Callable[[], bool]) -> bool:
        from distributed import Client

        with Client(self.address.replace("dask://", "tcp://")) as client:
            client.wait_for_workers(2, timeout=START_S)
            names = {at: worker["name"] for at, worker in client.scheduler_info()["workers"].items()}
            while running():
                for at, tasks in client.processing().items():
                    if tasks:
                        self.workers[names[at]].kill()
                        return True
        return False


class RayCluster(Cluster):
    """One node with two workers, reached as a client on another machine would."""

    def __init__(self, key_file: Path) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="ray-")))  # its sockets' names must be short
        self.mark = f"{KEY_VARIABLE}={key_file}".encode()

    def begin(self) -> None:
        ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        port, client_port = (p.getsockname()[1] for p in ports)
        for reserved in ports:
            reserved.close()
        node = self.start(
            "-m", "ray.scripts.scripts", "start", "--head", "--block", "--node-ip-address", "127.0.0.1",
            "--port", port, "--ray-client-server-port", client_port, "--num-cpus", "2",
            "--include-dashboard", "false", "--disable-usage-stats", "--temp-dir", self.folder,
        )  # fmt: skip
        self.address = f"ray://127.0.0.1:{client_port}"
        until = time.monotonic() + START_S
        while not self._listens(client_port):
            assert node.poll() is None and time.monotonic() < until
            time.sleep(0.1)

    @staticmethod
    def _listens(port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    def kill_a_busy_worker(self, running: Callable[[], bool]) -> bool:
        while running():
            for process in Path("/proc").iterdir():
                if process.name.isdecimal() and self._busy(process):
                    os.kill(int(process.name), signal.SIGKILL)
                    return True
        return False

    def _busy(self, process: Path) -> bool:
        """A worker of this cluster, by its environment, that is at a task: Ray puts its name on the process."""
        try:
            title, environment = ((process / name).read_bytes() for name in ("cmdline", "environ"))
        except OSError:
            return False
        return title.startswith(b"ray::run_sealed") and self.mark in environment.split(b"\0")

    def stop(self) -> None:
        for node in self.processes:
            node.terminate()
            node.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(params=["dask", pytest.param("ray", marks=pytest.mark.full)])
def cluster(request: pytest.FixtureRequest, key_file: Path, tmp_path: Path) -> Iterator[Cluster]:
    if request.param == "dask":
        pytest.importorskip("distributed")
        result: Cluster = DaskCluster(tmp_path)
    else:
        pytest.importorskip(
            "ray", reason="Ray is not tested: it is not installed (pip install 'ray[client]')"
        )
        result = RayCluster(key_file)
    try:
        result.begin()
        yield result
    finally:
        result.stop()
