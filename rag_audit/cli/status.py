"""`rag-audit provider status` and `clean`: a window's state, and the unneeded files in its folder."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict
from pathlib import Path

import click

from rag_audit._internal.clock import local_time, now_ms
from rag_audit._internal.errors import SetupError
from rag_audit._internal.words import counted
from rag_audit.attest.reading import WindowReader
from rag_audit.cli.common import PATH, emit, json_option
from rag_audit.commit.stored import lock_folder, unfinished
from rag_audit.models.layout import Layout
from rag_audit.models.window_writer import stray_siblings
from rag_audit.service.running.config import RunConfig
from rag_audit.service.running.directory import Failure, is_running, load_state, standings

DONE = (
    "all {} windows are done: raise schedule.windows in provider.toml, or set it to 0 for no end, and start"
    " `rag-audit run` for further windows"
)


@click.command()
@click.argument("directory", type=PATH)
@json_option
def status(directory: Path, as_json: bool) -> None:
    """Show the state of the window in DIRECTORY and its next step, also while it serves.

    DIRECTORY may also be the folder of `rag-audit run`, or its configuration file. The command then shows each window
    of the run. A run without a stored state is starting.
    """
    if not directory.exists():
        raise SetupError(
            "there is no such file or folder",
            field=str(directory),
            expected="provider.toml, the folder of `rag-audit run`, or the folder of a window",
            hint="name the configuration file that `rag-audit run` has; `rag-audit init` writes one",
        )
    if (directory / "provider.toml").is_file() and not Layout(directory).commitment.exists():
        directory = directory / "provider.toml"  # the folder that `rag-audit init` made
    configured, windows = directory.is_file(), 0
    if configured:
        config = RunConfig.load(directory)
        directory, windows = config.folder, config.told.schedule.windows
    state = load_state(directory)
    if state is not None or configured:
        running = is_running(directory)
        done = 0 < windows <= len({*state.published} - {*state.abandoned}) if state is not None else False
        rows = [] if state is None else standings(directory, state, now_ms())
        failures = [] if state is None else state.failures
        status, head = _run_status(directory, running=running, begun=state is not None, windows=bool(rows))
        if done and not running:
            status, head = "done", DONE.format(windows)
        if not running and any(failure.next_at == 0 for failure in failures):
            head = "no process runs it: correct the object of the failure below, and start `rag-audit run`"
        progress = [] if state is None or not running else state.progress
        unresponsive = [] if state is None or not running else state.unresponsive
        free = free_bytes(directory)
        value = {
            "status": status,
            "running": running,
            "windows": rows,
            "failures": [failure.dump() for failure in failures],
            "progress": [
                {**each.dump(), "rate": each.rate, "seconds_left": each.seconds_left} for each in progress
            ],
            "unresponsive": [each.dump() for each in unresponsive],
            "free_bytes": free,
        }
        emit(value, as_json, [head, *(_row(row) for row in rows), *map(str, progress), *map(str, unresponsive),
                              *map(_failure, failures),
                              f"free disk space: {free / 1e9:.1f} GB"])  # fmt: skip
        return
    if unfinished(directory) and Layout(directory).prepared.exists():
        waits = (
            f"`rag-audit provider open {directory}`, with --opens-in, and with --previous after the previous window"
            " is closed"
        )
        emit({"status": "prepared", "waits_for": waits}, as_json, ["prepared", f"waits for {waits}"])
        return
    state_of = WindowReader(directory).standing(now_ms())
    by = "open in a process" if state_of.is_open else "open in no process"
    lines = [
        f"{state_of.status} since {local_time(state_of.since)}, {by}",
        f"waits for {state_of.waits_for}",
        f"{counted(state_of.records, 'record')} of {state_of.requested} of {counted(state_of.accounts, 'account')};"
        f" {state_of.proved} proved, {state_of.records - state_of.proved} not proved",
    ]
    emit(asdict(state_of), as_json, lines)


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
        return "stopped", "no process runs it: start `rag-audit run` to continue"
    return (
        "starting",
        f"starting: {directory} has no state yet; if no process is starting, start `rag-audit run`",
    )


def _row(row: dict[str, object]) -> str:
    """A window of a run: its status and the start of the status, its records and proofs, and its next event."""
    since = f" since {local_time(row['since'])}" if isinstance(row["since"], int) and row["since"] else ""
    records = ""
    if isinstance(row.get("records"), int):
        records = f", {counted(row['records'], 'record')}"  # type: ignore[arg-type]
        if row["status"] in ("closed", "final"):
            records += f" ({row['proved']} proved)"
    return f"{row['window']}: {row['status']}{since}{records}; waits for {row['waits_for']}"


def _failure(failure: Failure) -> str:
    """An act that failed, its error and its next attempt."""
    times = (
        "once" if failure.attempts == 1 else f"{failure.attempts} times since {local_time(failure.first_at)}"
    )
    following = f"the next attempt follows at {local_time(failure.next_at)}" if failure.next_at else (
        "the run makes no further attempt"
    )  # fmt: skip
    return (
        f"{failure.action} failed {times}, at {local_time(failure.last_at)}: {failure.message}; {following}"
    )


def free_bytes(folder: Path) -> int:
    """The free bytes of the disk on which a folder is, or will be."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return shutil.disk_usage(folder).free


@click.command()
@click.argument("directory", type=PATH)
@json_option
def clean(directory: Path, as_json: bool) -> None:
    """Remove unused parts of earlier window files from the public folder of the window in DIRECTORY.

    The parts of a large window file are in the same folder, with their digests as names. The command removes only the
    parts that the published window.json does not name.
    """
    public = Layout(directory).public
    if not public.window.exists():
        raise SetupError("no window file is published", field=str(public.window),
                         hint="publish it with `rag-audit provider close`")  # fmt: skip
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
