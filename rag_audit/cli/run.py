"""`rag-audit run`: all of a provider's windows in one process."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType

import click

from rag_audit._internal.clock import now_ms
from rag_audit._internal.errors import SetupError
from rag_audit._internal.log_lines import FORMS, log_lines, remove_handler
from rag_audit.cli.common import PATH, internal_error, named, signing_key
from rag_audit.cli.options import choice_option
from rag_audit.log.keys import VerifierKey
from rag_audit.log.signing import SigningKey
from rag_audit.service.lines import listening
from rag_audit.service.running.config import RunConfig
from rag_audit.service.running.directory import RunDirectory
from rag_audit.service.running.supervisor import Supervisor

log = logging.getLogger("rag_audit.run")

POLL_S = 0.5
"""Seconds that an idle run waits before its next look."""
STOP_S = 18.0
"""Seconds from the end of the schedule, or from a signal, in which answers leave and jobs end. Each job can be cut
off, and service managers end a process after 20 to 90 seconds."""


@click.command()
@click.argument("config", type=PATH)
@choice_option(
    "--log", "form", choices=tuple(FORMS), default="text", help="the form of the lines on standard error"
)
def run(config: Path, form: str) -> None:
    """Open, serve, close and prove windows on the schedule in the file CONFIG (docs/deploy/README.md).

    The run's folder contains its complete state: after any end, also by SIGKILL, the same command continues. After
    SIGTERM or Ctrl-C the run sends the answers that it has started, and ends. `rag-audit provider status CONFIG` shows
    its state.
    """
    told = RunConfig.load(config)
    key = signing_key(told.path(told.told.key))
    told.check(now_ms())
    with _logging(form), _stopping() as stop, _pilots(told, key) as told:
        supervisor = Supervisor(
            told, RunDirectory(told.folder, told.told.schedule.prefix), key, say=log.info, warn=log.warning
        )
        until = 0.0
        try:
            with ExitStack() as stack:
                _listen(stack, supervisor, told)

                @stack.callback
                def halt() -> None:
                    nonlocal until
                    until = time.monotonic() + STOP_S
                    supervisor.halt()  # jobs end during the time that the answers need

                while not stop.is_set() and not supervisor.finished:
                    if supervisor.step() is None:
                        stop.wait(POLL_S)
        finally:
            ended = supervisor.stop(max(0.0, until - time.monotonic()))
        log.info("stopped" if stop.is_set() else DONE)
    if not ended:  # a longer proof is cut off, and the next run makes it
        os._exit(0)


DONE = (
    "all windows are done: schedule.windows in provider.toml limits their number; raise it, or set it to 0 for no end,"
    " and repeat the command for further windows"
)


@contextmanager
def _logging(form: str) -> Iterator[None]:
    """Write the log of the run and of its services to standard error during the block.

    An error that ends the run is a line of the log too, so that every line has one form.
    """
    handler = log_lines(form=form)
    try:
        yield
    except Exception as exc:
        if (error := named(exc)) is None:
            raise
        log.error(str(error) if error.hint is None else f"{error} ({error.hint})")
        raise SystemExit(int(error.exit_code)) from exc
    finally:
        remove_handler(handler)


@contextmanager
def _pilots(told: RunConfig, key: SigningKey) -> Iterator[RunConfig]:
    """Operate the witnesses of a pilot in this process during the block. They cosign the windows of this provider only.

    :returns: the configuration with their addresses
    :raises SetupError: a folder contains no witness, or a witness with another key
    """
    with ExitStack() as stack:
        urls = {
            witness.name: stack.enter_context(_pilot(told, key, witness, folder))
            for witness, folder in told.pilots
        }
        if urls:
            log.warning(f"this process operates {', '.join(urls)}: these witnesses are NOT independent of the provider,"
                        " and a verdict under their keys is for a pilot only")  # fmt: skip
        yield told.with_addresses(urls) if urls else told


@contextmanager
def _pilot(told: RunConfig, key: SigningKey, named: VerifierKey, folder: Path) -> Iterator[str]:
    """Operate one witness on a free port of this machine during the block; the value is its address."""
    from rag_audit.service.limits import Limits
    from rag_audit.service.server import Server, listen
    from rag_audit.witness.http import Provider, WitnessApplication, WitnessService
    from rag_audit.witness.offers import Offers
    from rag_audit.witness.witness import Witness

    member = Witness(folder)
    if member.vkey != named:
        raise SetupError("the folder holds another witness", field=f"witness.pilot {folder}", expected=str(named),
                         actual=str(member.vkey), hint="correct vkey or pilot in provider.toml")  # fmt: skip
    witnesses, limits = told.witnesses, Limits()
    provider = Provider(told.told.origin or key.name, key.verifier, witnesses, len(witnesses))
    app = WitnessApplication(
        WitnessService(member, Offers(folder, member), [provider]), limits, _report_fault
    )
    with Server(app, listen("127.0.0.1", 0), limits) as server:
        server.start()
        yield server.url


def _listen(stack: ExitStack, supervisor: Supervisor, told: RunConfig) -> None:
    """Accept requests at all addresses in the configuration, until the stack is closed.

    :raises SetupError: a socket or port is taken, or the package that serves HTTP is not installed
    """
    serve, served = told.told.serve, supervisor.served
    if serve.socket is not None:
        stack.enter_context(listening(served, told.path(serve.socket), log.info, _report_fault))
    if serve.http is not None:
        from rag_audit.service.connections import allow_connections
        from rag_audit.service.limits import Limits
        from rag_audit.service.running.health import RunHealth
        from rag_audit.service.server import http_service, parse_address

        allow_connections(Limits())
        service = stack.enter_context(
            http_service(
                served,
                parse_address(serve.http, field="serve.http"),
                intake=supervisor.intake,
                on_fault=_report_fault,
            )
        )
        health = RunHealth(supervisor)
        service.app.add(health)
        service.app.cause = health.cause
        service.start()
        log.info(f"listening on {service.url}")


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set; a second one ends the process at once."""
    stop = threading.Event()

    def told(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    before = {number: signal.signal(number, told) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report_fault(exc: BaseException) -> None:
    for line in internal_error(exc, ["run"]):
        log.error(line)
