"""A real PostgreSQL server for tests, from the system's package: it listens on a Unix socket alone, and ends with
them."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

USER = "postgres"


@dataclass(frozen=True)
class Cluster:
    """A running server.

    :param address: as libpq reads it
    """

    address: str
    options: str
    folder: Path
    run: Callable[..., None]

    def start(self) -> None:
        self.run("pg_ctl", "start", "-w", "-t", "240", "-l", str(self.folder / "log"), "-o", self.options)

    def kill(self) -> None:
        """End it as a crash does: nothing is written any more, and no connection is told."""
        self.run("pg_ctl", "stop", "-m", "immediate", "-w", "-t", "240")


def programs() -> Path:
    """The folder of the server's programs; the test is skipped where there is none."""
    result = [Path(p).parent for p in (shutil.which("initdb"),) if p] + sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), reverse=True
    )
    for folder in result:
        if (folder / "initdb").exists():
            return folder
    pytest.skip("no PostgreSQL server: apt-get install postgresql")


@contextmanager
def cluster(*, durable: bool = False) -> Iterator[Cluster]:
    """A new server.

    :param durable: whether it waits for the disk, as a ledger wants of it
    """
    bin_ = programs()
    # The server refuses to run as root.
    user = USER if os.geteuid() == 0 else None
    # In memory, where tests are: `initdb` would wait for a disk.
    folder = Path(tempfile.mkdtemp(prefix="rag-audit-pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    try:
        if user is not None:
            try:
                os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
            except KeyError:
                pytest.skip(f"no user {user} to run the server as")

        def run(program: str, *options: str) -> None:
            subprocess.run(
                [bin_ / program, "-D", folder / "data", *options],
                user=user, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300,
            )  # fmt: skip

        run("initdb", "-N", "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C")
        started = (
            f"-c listen_addresses='' -c unix_socket_directories={folder}{'' if durable else ' -c fsync=off'}"
        )
        try:
            result = Cluster(f"postgresql://{USER}@/postgres?host={folder}", started, folder, run)
            result.start()
            yield result
        finally:
            subprocess.run(
                [bin_ / "pg_ctl", "-D", folder / "data", "stop", "-m", "immediate", "-w"],
                user=user, cwd=folder, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300,
            )  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server() -> Iterator[str]:
    """A new server's address, as libpq reads it."""
    with cluster() as result:
        yield result.address
