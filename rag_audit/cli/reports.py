"""Where the faces of a verdict's report go: which on standard output, which into files, in which order."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_audit.cli.common import internal_error, lines, say, signing_key
from rag_audit.encoding.durable import replace_file
from rag_audit.errors import RagAuditError
from rag_audit.errors.printable import json_text

if TYPE_CHECKING:
    from rag_audit.ledger.keys import SigningKey
    from rag_audit.verify.verifier import Verdict

FORMATS = ("text", "json", "html", "sarif", "junit", "vsa")
STDOUT = Path("-")
OBJECT = "object"
"""The face of `--json`, the verdict's own object."""


@dataclass(frozen=True)
class Plan:
    """The face for standard output, and the others with their files.

    :param key: what signs a verification summary
    """

    printed: str
    files: Sequence[tuple[str, Path]]
    key: SigningKey | None

    def write(self, verdict: Verdict, *, checks: bool, command: Sequence[str]) -> None:
        """Print the verdict, and then write every file. What cannot be written is a warning: a script that reads the
        exit code must not take a full disk for a verdict, nor a verdict for a full disk.
        """
        from rag_audit.verify.report.build import report_of
        from rag_audit.verify.report.faces import face

        if self.printed == OBJECT:
            click.echo(json_text(verdict.as_json()))
            if not self.files:
                return
        try:
            report = report_of(verdict, command=tuple(command))
        except Exception as exc:
            if self.printed != OBJECT:
                click.echo(verdict.line)
            _faulty("report", exc)
            return
        if self.printed != OBJECT:
            colour = coloured()
            try:
                text = face(report, self.printed, checks=checks, colour=colour, key=self.key)
            except Exception as exc:
                click.echo(verdict.line)
                _faulty(f"{self.printed} report", exc)
            else:
                click.echo(text, nl=False, color=colour)
        sys.stdout.flush()
        for name, path in self.files:
            try:
                replace_file(path, face(report, name, checks=checks, key=self.key).encode())
            except RagAuditError as exc:
                say(f"WARNING: the {name} report was not written; the verdict stands: {exc}")
            except Exception as exc:
                _faulty(f"{name} report", exc)


def _faulty(what: str, exc: Exception) -> None:
    """Say that a report could not be made, and where the fault is described. The verdict keeps its exit code."""
    said = internal_error(exc, ["verify"])
    click.echo(
        lines([f"rag-audit: WARNING: the {what} was not made; the verdict stands: {said[0]}", *said[1:]]),
        err=True,
    )


def coloured() -> bool:
    """Whether text on standard output gets colour: on a terminal, unless NO_COLOR says no or FORCE_COLOR says yes."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def planned(
    formats: Sequence[str],
    outputs: Sequence[Path],
    *,
    as_json: bool,
    sign_key: Path | None,
    inputs: Sequence[Path],
) -> Plan:
    """The plan that the options ask for.

    :param inputs: the files that the verdict is made from, none of which a report may replace
    :raises click.UsageError: the options contradict one another, or an output is an input, a folder, or named twice
    :raises SetupError: the key's file is missing, or others can read it
    """
    if len(outputs) > len(formats):
        raise click.UsageError("each --output needs its --format, in the same order")
    if sign_key is not None and "vsa" not in formats:
        raise click.UsageError("--sign-key signs --format vsa, which is not asked for")
    pairs = [
        (name, outputs[number] if number < len(outputs) else STDOUT) for number, name in enumerate(formats)
    ]
    printed = [name for name, path in pairs if path == STDOUT]
    if as_json:
        printed.append(OBJECT)
    if len(printed) > 1:
        raise click.UsageError("standard output takes one report: give the others an --output")
    files = [(name, path) for name, path in pairs if path != STDOUT]
    _distinct([path for _, path in files], inputs)
    return Plan(printed[0] if printed else "text", files, None if sign_key is None else signing_key(sign_key))


def _distinct(outputs: Sequence[Path], inputs: Sequence[Path]) -> None:
    taken = {os.path.realpath(path) for path in inputs}
    for path in inputs:
        if path.is_dir():
            with suppress(OSError):
                taken |= {os.path.realpath(inside) for inside in path.iterdir()}
    for path in outputs:
        if path.is_dir():
            raise click.UsageError(f"the output {path} is a folder")
        if (real := os.path.realpath(path)) in taken:
            raise click.UsageError(
                f"the output {path} would replace a file that is read, or that another report is in"
            )
        taken.add(real)


def command_line(
    ctx: click.Context,
    window: Path,
    trust: Path,
    receipts: Sequence[Path],
    previous: Sequence[Path],
    challenges: Sequence[Path],
) -> list[str]:
    """The command that verifies again, with the files' last names alone: it is read elsewhere."""
    named = [
        ("--trust", trust),
        *(("--receipts", p) for p in receipts),
        *(("--previous", p) for p in previous),
    ]
    named += [("--challenge", p) for p in challenges]
    words = ["rag-audit", "verify", _name(window)]
    for option, path in named:
        words += [option, _name(path)]
    for option, parameter in (("--engine", "engine"), ("--max-epsilon", "max_epsilon")):
        if ctx.get_parameter_source(parameter) is click.core.ParameterSource.COMMANDLINE:
            words += [option, str(ctx.params[parameter])]
    if ctx.params["allow_unsafe_setup"]:
        words.append("--allow-unsafe-setup")
    return [shlex.quote(word) for word in words]


def _name(path: Path) -> str:
    return os.fsencode(path.name or path.resolve().name).decode(errors="backslashreplace")
