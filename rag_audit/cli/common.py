"""What every command shares: errors without tracebacks, results on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from rag_audit.errors import EncodingError, ExitCode, RagAuditError, SetupError, StoreError
from rag_audit.ledger.note import SigningKey, VerifierKey

PATH = click.Path(path_type=Path)
LOGGED_EVERY_S = 30.0
json_option = click.option("--json", "as_json", is_flag=True, help="print one JSON object on stdout")


class Group(click.Group):
    """A group whose commands end in named errors and documented exit codes."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return self._named(ctx)
        except RagAuditError as exc:
            if "--json" in sys.argv:
                click.echo(json.dumps(exc.as_json()))
            click.echo(f"rag-audit: {exc.name}: {exc.diagnostics()}", err=True)
            ctx.exit(int(exc.exit_code))
        except BrokenPipeError:
            ctx.exit(int(ExitCode.MALFORMED))
        except click.Abort:
            # An unanswered question; click itself would leave with 1, which here says that a check failed.
            click.echo("rag-audit: no answer was given; give it as an option (--help)", err=True)
            ctx.exit(int(ExitCode.MALFORMED))
        except KeyboardInterrupt:
            click.echo(
                "rag-audit: interrupted; what was finished is kept, run the same command to go on", err=True
            )
            ctx.exit(130)

    def _named(self, ctx: click.Context) -> Any:
        """Run the command; what the system refuses to read or write is named like everything else."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except UnicodeDecodeError as exc:
            raise EncodingError("not UTF-8 text", field="input", found=f"byte {exc.start}") from exc
        except OSError as exc:
            place = exc.filename if isinstance(exc.filename, str) else "input or output"
            raise StoreError(
                "cannot be read or written", field=place, found=exc.strerror or str(exc)
            ) from exc


def emit(value: dict[str, Any], as_json: bool, text: str | None = None) -> None:
    """The command's result: one JSON object, or text for people."""
    click.echo(
        json.dumps(value, ensure_ascii=False) if as_json else (text if text is not None else _lines(value))
    )


def _lines(value: dict[str, Any]) -> str:
    return "\n".join(f"{key}: {item}" for key, item in value.items())


def say(text: str) -> None:
    """A remark for people, on stderr."""
    click.echo(f"rag-audit: {text}", err=True)


def progress(what: str) -> Callable[[int, int], None]:
    """A progress line on stderr when it is a terminal; elsewhere, in a log say, a line every half minute."""
    started = shown = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        line = f"{what} {done}/{total}  {now - started:.0f} s"
        if sys.stderr.isatty():
            click.echo(f"\r{line}", err=True, nl=done == total)
        elif now - shown >= LOGGED_EVERY_S:
            shown = now
            say(line)

    return show


def stages() -> Callable[[str, int, int], None]:
    """`progress` of work in several steps, each by its name."""
    shown: dict[str, Callable[[int, int], None]] = {}

    def show(step: str, done: int, total: int) -> None:
        if step not in shown:
            shown[step] = progress(step)
        shown[step](done, total)

    return show


def verifier_key(text: str, *, field: str) -> VerifierKey:
    """A vkey given on the command line, as text or as a file that holds it."""
    path = Path(text)
    if "+" not in text or path.exists():
        try:
            text = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as exc:
            raise SetupError("no such key file", field=field, found=str(path)) from exc
    return VerifierKey.parse(text, field=field)


def signing_key(path: Path) -> SigningKey:
    """A secret key file, which only its owner may be able to open."""
    return SigningKey.load(path)
