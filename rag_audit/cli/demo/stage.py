"""The stage of the demo's parties: their folders, the runs of their commands, and the lines that a person sees."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rag_audit._internal.errors import SetupError
from rag_audit.models.layout import Named


@dataclass
class Demo:
    """The folders of the parties, the timings, and the runs of the parties' commands."""

    folder: Path
    seconds: dict[str, float] = field(default_factory=dict)
    slowest: float = 0.0
    """duration of the slowest command that works on small files only, in seconds"""

    provider = Named("provider")
    """The provider's own folder."""
    window = Named("provider/window")
    """The provider's window."""
    public = Named("provider/window/public")
    """The window's public folder."""
    verifier = Named("verifier")
    """The verifier's own folder."""

    def run(
        self,
        command: str,
        *arguments: str | Path,
        expect: Sequence[int] = (0,),
        **options: str | Path | bool | Sequence[str | Path],
    ) -> subprocess.CompletedProcess[str]:
        """Run one command in a separate process. Its standard error is shown.

        :param command: its words, such as `witness cosign`
        :param options: its options by their names with `_` for `-`: True for a flag, several values for a repeated
            option
        """
        words = [*command.split(), *_options(options), "--", *map(str, arguments)]
        started = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "rag_audit", *words], stdout=subprocess.PIPE, text=True, check=False
        )
        if words[0] == "witness" or words[:2] == ["verifier", "trust"]:
            self.slowest = max(self.slowest, time.monotonic() - started)
        if done.returncode not in expect:
            raise SetupError(
                "a step of the demo failed",
                field=f"rag-audit {' '.join(words)}",
                expected=f"exit code {expect[0]}",
                actual=f"{done.returncode}: {done.stdout[-2000:]}",
            )
        return done

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Announce and time a phase."""
        say(f"\n== {name}")
        started = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - started


def _options(given: Mapping[str, str | Path | bool | Sequence[str | Path]]) -> Iterator[str]:
    """Options as they are typed."""
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, bool):
            yield option
        else:
            for one in [value] if isinstance(value, str | Path) else value:
                yield from (option, str(one))


def say(text: str = "") -> None:
    """Print a line for the person who watches."""
    print(text, flush=True)
