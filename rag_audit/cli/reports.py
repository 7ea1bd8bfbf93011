"""The outputs of a verdict's report formats: standard output or files, and their order."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import RagAuditError
from rag_audit.cli.common import internal_error, lines, say, signing_key
from rag_audit.models.windowfile import window_file
from rag_audit.report.languages import LANGUAGES

if TYPE_CHECKING:
    from rag_audit.log.signing import SigningKey
    from rag_audit.report.model import Report, ShortReport
    from rag_audit.report.verification import ReportedVerdict
    from rag_audit.verify.inputs import Inputs

FORMATS = ("text", "json", "html", "sarif", "junit", "vsa", "svr")
SIGNED = frozenset({"text", "json", "html", "vsa", "svr"})
"""The formats that carry a verifier's signature."""
STDOUT = Path("-")


@dataclass(frozen=True)
class Plan:
    """The format for standard output, and the others with their files.

    :param key: the key that signs the report and the in-toto statements
    :param given: the paths of window and trust file, by role
    :param inputs: the paths of all files that the verdict is made from
    :param language: of the HTML report
    """

    printed: str
    files: Sequence[tuple[str, Path]]
    key: SigningKey | None
    given: Mapping[str, Path]
    inputs: Sequence[Path]
    language: str = "en"

    def begin(self, command: Sequence[str]) -> None:
        """Replace every file by a report of an unfinished run, so that no earlier report remains if the run is stopped.
        If a file cannot be written, the command reports it at the end of the run.
        """
        from rag_audit.report.build import filing_of, report_of_beginning
        from rag_audit.verify.inputs import Inputs

        if self.files:
            report = report_of_beginning(filing_of(Inputs(), command=command))
            for name, path in self.files:
                try:
                    content = self._render(report, name)
                except Exception:  # reported when the run ends
                    content = f"{report.line}\n"
                with suppress(RagAuditError):
                    replace_file(path, content.encode())

    def write(self, verdict: ReportedVerdict, *, checks: bool, command: Sequence[str]) -> None:
        """Print the verdict, and then write every file. An unwritable file only causes a warning: a script that reads
        the exit code must not take a full disk for a verdict, nor a verdict for a full disk.
        """
        from rag_audit.report.build import filing_of, report_of, report_without_window
        from rag_audit.verify.inputs import Inputs

        def short(fault: Exception) -> ShortReport:
            return report_without_window(verdict, fault, filing_of(Inputs(), self.given, command))

        report: Report | ShortReport
        try:
            report = report_of(verdict, command=tuple(command))
        except Exception as exc:
            _faulty("report", exc)
            report = short(exc)
        self._put(report, short, checks=checks)

    def refuse(self, error: RagAuditError, inputs: Inputs, command: Sequence[str]) -> None:
        """Write the report of a run that ended in a named error. The error itself is the text for people, on standard
        error, so standard output gets a report only in the other formats.
        """
        from rag_audit.report.build import filing_of, report_of_error

        self._put(
            report_of_error(error, filing_of(inputs, self.given, command), self.inputs), None, text=False
        )

    def fail(self, error: Exception, inputs: Inputs, command: Sequence[str]) -> None:
        """Write the report of a run that ended in a fault of this program before the checks had decided."""
        from rag_audit.report.build import filing_of, report_of_fault

        report = report_of_fault(error, filing_of(inputs, self.given, command))
        self._put(report, None, text=False, stdout="--json" not in sys.argv)

    def _put(
        self,
        report: Report | ShortReport,
        short: Callable[[Exception], ShortReport] | None,
        *,
        checks: bool = False,
        text: bool = True,
        stdout: bool = True,
    ) -> None:
        """Print a report, and write its files.

        :param short: makes the replacement for a report that could not be rendered
        :param text: whether text or the summary goes to standard output
        """
        report = self._signed(report)
        if stdout and (text or self.printed not in ("text", "summary")):
            colour = coloured()
            text_of = self._made(report, self.printed, short, checks=checks, colour=colour)
            click.echo(report.line + "\n" if text_of is None else text_of, nl=False, color=colour)
            sys.stdout.flush()
        for name, path in self.files:
            # An unreadable file is better than the report of an earlier run.
            content = self._made(report, name, short, checks=checks) or f"{report.line}\n"
            try:
                replace_file(path, content.encode())
            except RagAuditError as exc:
                say(f"WARNING: the {name} report was not written; the verdict is valid: {exc}")

    def _signed(self, report: Report | ShortReport) -> Report | ShortReport:
        """The report with the verifier's signature, if the run has a key. A failure causes a warning, since a report
        without a signature must not cost the verdict."""
        if self.key is None:
            return report
        from rag_audit.report.signature import signed

        try:
            return signed(report, self.key)
        except Exception as exc:
            _faulty("signature", exc)
            return report

    def _made(
        self,
        report: Report | ShortReport,
        name: str,
        short: Callable[[Exception], ShortReport] | None,
        **options: bool,
    ) -> str | None:
        """A report in one format, or the short report if that fails, or None if both fail."""
        try:
            return self._render(report, name, **options)
        except Exception as exc:
            _faulty(f"{name} report", exc)
            if short is None:
                return None
            try:
                return self._render(short(exc), name, **options)
            except Exception:
                return None

    def _render(self, report: Report | ShortReport, name: str, **options: bool) -> str:
        from rag_audit.report import render_report

        places = {role: _place(path, role) for role, path in self.given.items()}
        return render_report(report, name, key=self.key, places=places, language=self.language, **options)


def _faulty(report: str, exc: Exception) -> None:
    """Print a warning that a report could not be written, and the path of the fault's description. The verdict's exit
    code does not change."""
    fault = internal_error(exc, ["verify"])
    first = f"rag-audit: WARNING: the {report} was not written; the verdict is valid: {fault[0]}"
    click.echo(lines([first, *fault[1:]]), err=True)


def _place(path: Path, role: str) -> str:
    """A path for a code host: relative to the working folder if the file is below it, else only the last name."""
    path = window_file(path) if role == "window" else path
    try:
        return os.fsencode(path.resolve().relative_to(Path.cwd())).decode(errors="backslashreplace")
    except (OSError, ValueError):
        return _name(path)


def coloured() -> bool:
    """Whether text on standard output gets colour: on a terminal, unless NO_COLOR forbids it or FORCE_COLOR demands
    it."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


@dataclass(frozen=True)
class Output:
    """The options about reports.

    :param formats: each report's format, and `outputs` its file: the first ones, in the same order
    :param language: of the HTML report
    :param sign: the file of the key that signs the report and the in-toto statements
    :param details: print every check and every figure
    :param brief: print the report in four lines
    """

    brief: bool
    details: bool
    formats: tuple[str, ...]
    outputs: tuple[Path, ...]
    language: str
    sign: Path | None
    as_json: bool

    @property
    def prints_default(self) -> bool:
        """Whether no option selects what standard output gets."""
        return not (self.formats or self.details or self.as_json or self.brief)

    def planned(self, inputs: Sequence[Path], given: Mapping[str, Path]) -> Plan:
        """The plan of the output.

        :param inputs: the input files of the verdict; a report must not replace any of them
        :param given: the paths of window and trust file, by role
        :raises click.UsageError: the options contradict one another, or an output is an input, a folder, or named twice
        :raises SetupError: the key's file is missing, or others can read it; or the language has no catalogue
        """
        if len(self.outputs) > len(self.formats):
            raise click.UsageError("each --output needs its --format, in the same order")
        paths = chain(self.outputs, repeat(STDOUT))
        pairs = list(zip(self.formats, paths, strict=False))
        printed = [name for name, path in pairs if path == STDOUT]
        printed += [name for name, chosen in (("json", self.as_json), ("brief", self.brief)) if chosen]
        if len(printed) > 1:
            raise click.UsageError("standard output takes one report: give the others an --output")
        if self.details and printed == ["brief"]:
            raise click.UsageError(
                "--brief prints four lines, and --details prints every check: give one of them"
            )
        files = [(name, path) for name, path in pairs if path != STDOUT]
        if self.sign is not None and SIGNED.isdisjoint(
            [*(printed or ["text"]), *(name for name, _ in files)]
        ):
            raise click.UsageError(
                f"--sign signs the formats {', '.join(sorted(SIGNED))}: ask for one of them"
            )
        if self.language != LANGUAGES[0] and "html" not in (*printed, *(name for name, _ in files)):
            raise click.UsageError("--language is the language of the HTML report: give --format html")
        if self.language != LANGUAGES[0]:
            from rag_audit.report.language import language_of

            language_of(self.language)  # a missing catalogue is an error before the verification
        key_file = [] if self.sign is None else [self.sign]
        read = [*inputs, *key_file]
        distinct([path for _, path in files], read)
        key = None if self.sign is None else signing_key(self.sign)
        shown = printed[0] if printed else "text" if self.details else "summary"
        return Plan(shown, files, key, given, read, self.language)


def distinct(outputs: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Check that no output replaces an input or another output.

    :raises click.UsageError: an output is a folder, an input, a file in an input folder, or another output
    """
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


def command_line(ctx: click.Context, window: Path, named: Sequence[tuple[str, Path]]) -> list[str]:
    """The command for repeating the verification. It is read on other machines, so a path outside the working folder
    is reduced to its last name.

    :param named: the verifier's files, each with the option that names it
    """
    words = ["rag-audit", "verify", _below(window)]
    if ctx.params["example"]:
        words, named = ["rag-audit", "verify", "--example"], []
    for option, path in named:
        words += [option, _below(path)]
    for option, parameter in (("--engine", "engine"), ("--max-epsilon", "max_epsilon")):
        if ctx.get_parameter_source(parameter) is click.core.ParameterSource.COMMANDLINE:
            words += [option, str(ctx.params[parameter])]
    if ctx.params["allow_unsafe_setup"]:
        words.append("--allow-unsafe-setup")
    return [shlex.quote(word) for word in words]


def _below(path: Path) -> str:
    """A path below the working folder as it was given, and the last name of any other."""
    if path.is_absolute() or ".." in path.parts or not path.name:
        return _name(path)
    return os.fsencode(path).decode(errors="backslashreplace")


def _name(path: Path) -> str:
    return os.fsencode(path.name or path.resolve().name).decode(errors="backslashreplace")
