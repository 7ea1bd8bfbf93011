"""`rag-audit provider status` and `clean`: a window's state, and the unneeded files in its folder."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path

import click

from rag_audit._internal.clock import now_ms
from rag_audit._internal.errors import SetupError
from rag_audit.attest.reading import WindowReader
from rag_audit.cli.common import PATH, emit, json_option
from rag_audit.commit.stored import lock_folder, unfinished
from rag_audit.models.layout import Layout
from rag_audit.models.window_writer import stray_siblings
from rag_audit.service.running.config import RunConfig
from rag_audit.service.running.shelf import in_order, is_running, load_state, standing_of


@click.command()
@click.argument("directory", type=PATH)
@json_option
def status(directory: Path, as_json: bool) -> None:
    """Say where the window in DIRECTORY stands and what it waits for, while it serves too.

    DIRECTORY may also be the folder of `rag-audit run`, or its configuration file: each window of the run is shown. A
    run that has written nothing yet is starting.
    """
    configured = directory.is_file()
    if configured:
        directory = RunConfig.load(directory).folder
    state = load_state(directory)
    if state is not None or configured:
        running = is_running(directory)
        rows = [] if state is None else [standing_of(p, state, now_ms()) for p in in_order(directory, state)]
        status, head = _run_status(directory, running=running, begun=state is not None, windows=bool(rows))
        emit({"status": status, "running": running, "windows": rows}, as_json,
             [head, *(_row(row) for row in rows)])  # fmt: skip
        return
    if unfinished(directory) and Layout(directory).prepared.exists():
        waits = (
            f"`rag-audit provider open {directory}`, with --opens-in, and --previous once the window before it"
            " is closed"
        )
        emit({"status": "prepared", "waits_for": waits}, as_json, ["prepared", f"waits for {waits}"])
        return
    found = WindowReader(directory).standing(now_ms())
    by = "open in a process" if found.held else "open in no process"
    lines = [
        f"{found.status}, {by}",
        f"waits for {found.waits_for}",
        f"{found.records} records of {found.asked} accounts, of {found.accounts}; {found.proved} with proofs",
    ]
    emit(asdict(found), as_json, lines)


def _run_status(directory: Path, *, running: bool, begun: bool, windows: bool) -> tuple[str, str]:
    """The state of a whole run, in one word and in a line for people.

    :param running: whether a process runs the folder
    :param begun: whether the run's state was written
    :param windows: whether there is a window
    """
    if running:
        if windows:
            return "running", "a process runs it"
        return "starting", "starting: a process runs it, and the first window follows"
    if begun:
        return "stopped", "no process runs it: `rag-audit run` goes on"
    return (
        "starting",
        f"starting: {directory} holds nothing yet; if no process is about to, start `rag-audit run`",
    )


def _row(row: dict[str, object]) -> str:
    records = f", {row['records']} records" if "records" in row else ""
    return f"{row['window']}: {row['status']}{records}; waits for {row['waits_for']}"


@click.command()
@click.argument("directory", type=PATH)
@json_option
def clean(directory: Path, as_json: bool) -> None:
    """Remove the parts of earlier window files from the public folder of the window in DIRECTORY.

    A large window file has its parts beside it, named by their digests. Those that the published window.json does not
    name are removed; nothing else is.
    """
    public = Layout(directory).public
    if not public.window.exists():
        raise SetupError("no window file is published", field=str(public.window),
                         hint="`rag-audit provider close` publishes it")  # fmt: skip
    lock = lock_folder(
        directory
    )  # a process that is proving writes parts before the window file that names them
    try:
        removed = stray_siblings(public.window)
        size = sum(path.stat().st_size for path in removed)
        for path in removed:
            path.unlink()
    finally:
        os.close(lock)
    emit({"removed": [path.name for path in removed], "bytes": size}, as_json,
         f"removed {len(removed)} files, {size:,} bytes")  # fmt: skip
