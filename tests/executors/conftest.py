"""A key that jobs travel under, and a real Dask cluster of two workers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rag_audit.executors import KEY_VARIABLE, new_worker_key

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "worker.key"
    new_worker_key(path)
    monkeypatch.setenv(KEY_VARIABLE, str(path))
    return path


class Cluster:
    """A scheduler and two workers, processes of their own. A task whose worker dies is not repeated by Dask."""

    def __init__(self, folder: Path) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0",
        }
        file = folder / "scheduler.json"
        options = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file)]

        def start(program: str, *more: str) -> subprocess.Popen[bytes]:
            command = [sys.executable, "-m", "dask", program, *options, *more]
            return subprocess.Popen(
                command, env=environment, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )

        self.scheduler = start("scheduler", "--port", "0")
        self.workers = {
            name: start("worker", "--name", name, "--no-nanny", "--nthreads", "1") for name in ("one", "two")
        }
        while not file.exists():
            assert self.scheduler.poll() is None
            time.sleep(0.05)
        self.address = json.loads(file.read_text())["address"].replace("tcp://", "dask://")

    def kill_a_busy_worker(self, running: Callable[[], bool]) -> str | None:
        """Wait until a worker has a task, and kill it; its name, or None if nothing is `running` any more."""
        from distributed import Client

        with Client(self.address.replace("dask://", "tcp://")) as client:
            client.wait_for_workers(2, timeout=60)
            names = {at: worker["name"] for at, worker in client.scheduler_info()["workers"].items()}
            while running():
                for at, tasks in client.processing().items():
                    if tasks:
                        self.workers[names[at]].kill()
                        return str(names[at])
        return None

    def stop(self) -> None:
        for process in (*self.workers.values(), self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(key_file: Path, tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    made = Cluster(tmp_path)
    try:
        yield made
    finally:
        made.stop()
