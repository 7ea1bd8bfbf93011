"""The common base of all commands: errors without tracebacks, results on stdout, everything else on stderr.

Everything that is printed is escaped here (`printable`), so that a file's content cannot add a line.
"""

from __future__ import annotations

import io
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from rag_audit._internal.errors import (
    EncodingError,
    ExitCode,
    MemoryLimitError,
    RagAuditError,
    SetupError,
    StoreError,
)
from rag_audit._internal.extras import EXTRAS, missing
from rag_audit._internal.printable import json_text, printable

if TYPE_CHECKING:
    from rag_audit.account.client.sync import Client
    from rag_audit.log.keys import VerifierKey
    from rag_audit.log.signing import SigningKey

LOGGED_EVERY_S = 10.0
"""How often a command without a terminal shows its progress."""
BAR = 20
"""Characters of a bar on a terminal."""
SILENT_S = 2.0
"""How long a command on a terminal may be silent."""
json_option = click.option("--json", "as_json", is_flag=True, help="print one JSON object on stdout")


class FilePath(click.Path):
    """The path of a file or folder, which may be missing. Pipes and devices are refused, because reading them may
    not end."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        try:
            mode = os.stat(path).st_mode
        except (OSError, ValueError):
            return path  # the command reports a missing file, or creates it
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise EncodingError(
                "the path is neither a file nor a folder", field=str(path), expected="a regular file"
            )
        return path


PATH = FilePath(path_type=Path)
SOCKET = click.Path(path_type=Path)


class Group(click.Group):
    """A group with commands that end in named errors and documented exit codes."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **kwargs: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a terminal without UTF-8 is no reason to fail
        try:
            return super().main(args, *rest, **kwargs)
        except Exception as exc:
            _internal(exc, self._path(sys.argv[1:] if args is None else args))

    def _path(self, words: Sequence[str]) -> list[str]:
        """The names of the command that was called, since any other word may be a secret or somebody's text."""
        path: list[str] = []
        command: click.Command | None = self
        context = click.Context(self)
        for word in words:
            command = command.get_command(context, word) if isinstance(command, click.Group) else None
            if command is None:
                break
            path.append(word)
        return path

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return self._reported(ctx)
        except BrokenPipeError:
            # The reader of the output, or of the error, has left. click itself would exit with 1, which means here that
            # a check failed. Data that Python would flush at its end has no reader either.
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(int(ExitCode.MALFORMED))

    def _reported(self, ctx: click.Context) -> Any:
        """Run the command, print a named error, and exit with the error's code."""
        try:
            return self._named(ctx)
        except RagAuditError as exc:
            if "--json" in sys.argv:
                click.echo(json_text(exc.as_json()))
            tell(exc)
            ctx.exit(int(exc.exit_code))
        except click.Abort:
            # A prompt was not answered; click itself would exit with 1, which here means that a check failed.
            click.echo(
                "rag-audit: the prompt got no answer; supply the value as an option (--help)", err=True
            )
            ctx.exit(int(ExitCode.MALFORMED))
        except KeyboardInterrupt:
            click.echo(
                "rag-audit: interrupted; finished work is stored, and the same command continues", err=True
            )
            ctx.exit(130)

    def _named(self, ctx: click.Context) -> Any:
        """Run the command, and turn the system's errors on input, output and memory into named errors."""
        try:
            return super().invoke(ctx)
        except Exception as exc:
            error = named(exc)
            if error is None or error is exc:
                raise
            raise error from exc


def named(exc: Exception) -> RagAuditError | None:
    """An exception as a named error: itself, or the system's on input, output and memory; None for a fault of this
    program, and for a reader who left.
    """
    if isinstance(exc, RagAuditError):
        return exc
    if isinstance(exc, MemoryError):
        return MemoryLimitError("not enough memory", field="command")
    if isinstance(exc, ModuleNotFoundError):
        name = exc.name or ""
        return missing(name) if name.partition(".")[0] in EXTRAS else None
    if isinstance(exc, UnicodeDecodeError):
        return EncodingError("not UTF-8 text", field="input", actual=f"byte {exc.start}")
    if isinstance(exc, OSError) and not isinstance(exc, BrokenPipeError):
        place = exc.filename if isinstance(exc.filename, str) else "input or output"
        return StoreError("cannot be read or written", field=place, actual=exc.strerror or str(exc))
    return None


def tell(error: RagAuditError) -> None:
    """Print a named error on stderr."""
    click.echo(f"rag-audit: {error.diagnostics()}", err=True)


def internal_error(exc: BaseException, command: Sequence[str]) -> list[str]:
    """Report an exception that is not a named error, and return lines that name the report's place.

    :param command: the names of command and subcommands
    """
    from rag_audit.cli.internal import WHERE, write_report  # a successful command does not need it

    text, path = write_report(exc, command)
    place = [f"  report: {path}"] if path is not None else ["  report:", *text.rstrip().split("\n")]
    name = type(exc).__name__
    return [f"InternalError: a fault of this program, not of its input ({name})", *place, f"  {WHERE}"]


def _internal(exc: Exception, command: Sequence[str]) -> NoReturn:
    from rag_audit.cli.internal import WHERE

    result = internal_error(exc, command)
    if "--json" in sys.argv:
        message = result[0].removeprefix("InternalError: ")
        click.echo(json_text({"error": "InternalError", "message": message, "hint": WHERE}))
    click.echo(lines([f"rag-audit: {result[0]}", *result[1:]]), err=True)
    sys.exit(int(ExitCode.INTERNAL))


def on_terminal() -> bool:
    """Whether a person can answer questions."""
    return sys.stdin.isatty()


def emit(value: Mapping[str, object], as_json: bool, text: str | Sequence[str] | None = None) -> None:
    """Print the command's result as one JSON object or as text for people.

    :param text: one line or several, to which the content of files cannot add any
    """
    click.echo(json_text(value) if as_json else lines(_pairs(value) if text is None else text))


def lines(text: str | Sequence[str]) -> str:
    """Values as text for people, one line for each value."""
    return printable(text) if isinstance(text, str) else "\n".join(printable(line) for line in text)


def _pairs(value: Mapping[str, object]) -> list[str]:
    return [f"{key}: {item}" for key, item in value.items()]


def say(text: str) -> None:
    """Print a remark for people on stderr."""
    click.echo(f"rag-audit: {printable(text)}", err=True)


def bar(done: int, total: int) -> str:
    """A bar for a terminal.

    >>> bar(1, 4)
    '[#####---------------]'
    """
    full = BAR if total <= 0 else BAR * min(done, total) // total
    return f"[{'#' * full}{'-' * (BAR - full)}]"


def progress(what: str) -> Callable[[int, int], None]:
    """A function that shows progress on stderr: a bar that grows on a terminal, else a line every ten seconds."""
    started = shown = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        line = f"{printable(what)} {done}/{total}  {now - started:.0f} s"
        if sys.stderr.isatty():
            click.echo(f"\r{bar(done, total)} {line}", err=True, nl=done == total)
        elif now - shown >= LOGGED_EVERY_S:
            shown = now
            say(line)

    return show


def estimated(what: str) -> Callable[[int, int], None]:
    """`progress` with the remaining time, extrapolated from the speed so far. Work that ends at once shows no
    progress."""
    started = shown = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        left = (now - started) * (total - done) / max(1, done)
        line = f"{printable(what)} {done}/{total}  {now - started:.0f} s, about {left:.0f} s left"
        if sys.stderr.isatty():
            if now - started >= SILENT_S:
                click.echo(f"\r{bar(done, total)} {line:70}", err=True, nl=done == total)
        elif now - shown >= LOGGED_EVERY_S:
            shown = now
            say(line)

    return show


@contextmanager
def patiently(what: str) -> Iterator[Callable[[], None]]:
    """Say on stderr that the block is at work, with the time that it took so far: on a terminal after two seconds and
    then each second, else every ten seconds. The value is a function that ends it, once something else is shown.
    """
    done, started, terminal = threading.Event(), time.monotonic(), sys.stderr.isatty()

    def tell() -> None:
        pause, shown = (SILENT_S if terminal else LOGGED_EVERY_S), False
        while not done.wait(pause):
            line = f"{printable(what)}  {time.monotonic() - started:.0f} s"
            if terminal:
                click.echo(f"\r{line}", err=True, nl=False)
                pause, shown = 1.0, True
            else:
                say(line)
        if shown:
            click.echo("", err=True)

    def quiet() -> None:
        done.set()
        thread.join()

    thread = threading.Thread(target=tell, name="rag-audit-patience", daemon=True)
    thread.start()
    try:
        yield quiet
    finally:
        quiet()


def after(quiet: Callable[[], None], shown: Callable[[int, int], None]) -> Callable[[int, int], None]:
    """A progress function that first ends the previous display."""

    def show(done: int, total: int) -> None:
        quiet()
        shown(done, total)

    return show


@contextmanager
def reading_documents() -> Iterator[Callable[[int, int], None]]:
    """Show the time while the block reads one file, or the number of files while it reads several. The value is the
    progress function of `load_directory`."""
    with patiently("reading documents") as quiet:
        shown = after(quiet, progress("files read"))

        def show(done: int, total: int) -> None:
            if total > 1:
                shown(done, total)

        yield show


def stages() -> Callable[[str, int, int], None]:
    """A function that shows the progress (`progress`) of work in several steps, each with its name."""
    shown: dict[str, Callable[[int, int], None]] = {}

    def show(step: str, done: int, total: int) -> None:
        if step not in shown:
            shown[step] = progress(step)
        shown[step](done, total)

    return show


def verifier_key(text: str, *, field: str) -> VerifierKey:
    """A vkey given on the command line, as text or as a file that contains it."""
    from rag_audit._internal.canonical import read_text
    from rag_audit.log.keys import MAX_KEY_BYTES, VerifierKey

    path, place = Path(text), field
    hint = _maker(field)
    if "+" not in text or path.exists():
        place = f"{field} {path}"
        try:
            text = read_text(path, max_bytes=MAX_KEY_BYTES).strip()
        except RagAuditError as exc:
            raise SetupError(
                "there is no file with a public key",
                field=field,
                expected="a vkey, or a file that contains one",
                actual=str(path),
                hint=hint,
            ) from exc
    if text.startswith("PRIVATE+KEY+"):
        raise EncodingError("the option has a secret key, and needs the public key", field=place,
                            hint="name the file with the ending .pub beside the secret key")  # fmt: skip
    try:
        return VerifierKey.parse(text, field=place)
    except EncodingError as exc:
        exc.hint = exc.hint or hint
        raise


_MAKERS = {
    "--provider": "the provider's `rag-audit provider keygen OUT` writes its public key into OUT.pub",
    "--log": "the provider's `rag-audit provider keygen OUT` writes its public key into OUT.pub",
    "--witness": "each witness's `rag-audit witness init FOLDER` prints its public key",
    "--verifier": "the verifier's `rag-audit verifier keygen OUT` writes its public key into OUT.pub",
    "--signer": "the verifier's `rag-audit verifier keygen OUT` writes its public key into OUT.pub",
}
"""The command that makes the public key of an option."""


def _maker(option: str) -> str:
    """The hint of an option with a public key: the owner and the command that makes it."""
    made = _MAKERS.get(option, "`rag-audit provider keygen`, `verifier keygen` and `witness init` make keys")
    return f"ask the owner for the key; {made}"


def signing_key(path: Path) -> SigningKey:
    """Read a secret key file, which only its owner may be able to open."""
    from rag_audit.log.signing import SigningKey

    try:
        return SigningKey.load(path)
    except RagAuditError as exc:
        exc.hint = exc.hint or (
            "name the file of a secret key; `rag-audit provider keygen` or `rag-audit verifier keygen` makes one"
        )
        raise


def client_of(url: str, provider: VerifierKey) -> Client:
    """The client of a service; the package that it needs is an extra."""
    from rag_audit.account.client.sync import Client

    return Client(url, provider)
