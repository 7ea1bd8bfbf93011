"""Commands in processes of their own that are forked from one that has imported everything: a window takes dozens, and
most of a short command's time goes to imports."""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

from rag_audit.cli import COMMANDS

CLOCK = Path(__file__).with_name("clock")
"""Goes on the commands' path, for its `sitecustomize`."""

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        *sorted({place.rpartition(".")[0] for place, _ in COMMANDS.values()}),
        "rag_audit.attest.window",
        "rag_audit.account.account",
        "rag_audit.witness.witness",
        "rag_audit.report.verification",
        "rag_audit.retrieval.embedders.wordllama",
    ]
)


def run(
    arguments: list[str], *, cwd: Path, stdin: str, environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """`python -m rag_audit` with these arguments, as `subprocess.run` would give it.

    :param environment: all of it; the path's `sitecustomize` is that of `clock/`
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").write_text(stdin)
        child = _SERVER.Process(target=_command, args=(arguments, str(cwd), name, dict(environment)))
        child.start()
        child.join(timeout)
        if child.is_alive():
            child.kill()
            raise subprocess.TimeoutExpired(arguments, timeout)
        out, err = ((folder / stream).read_text() for stream in ("out", "err"))
    assert child.exitcode is not None
    return subprocess.CompletedProcess(arguments, child.exitcode, out, err)


def start(arguments: list[str], cwd: Path, streams: Path, environment: Mapping[str, str]) -> BaseProcess:
    """Start a command that goes on by itself, such as a service.

    :param streams: a folder with its standard input, `in`; `out` and `err` are written there
    """
    child = _SERVER.Process(target=_command, args=(arguments, str(cwd), str(streams), dict(environment)))
    child.start()
    return child


def _command(arguments: list[str], cwd: str, streams: str, environment: dict[str, str]) -> None:
    for number, (name, flags) in enumerate(
        (("in", os.O_RDONLY), ("out", os.O_WRONLY | os.O_CREAT), ("err", os.O_WRONLY | os.O_CREAT))
    ):
        opened = os.open(os.path.join(streams, name), flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115, the process ends with it
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    runpy.run_path(str(CLOCK / "sitecustomize.py"))
    sys.argv = ["rag-audit", *arguments]
    runpy.run_module("rag_audit", run_name="__main__")
