"""The stage of the demo's parties: their folders, the runs of their commands, and the lines that a person sees."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rag_audit._internal.errors import SetupError


@dataclass
class Demo:
    """The folders of the parties, the timings, and the runs of the parties' commands."""

    root: Path
    seconds: dict[str, float] = field(default_factory=dict)
    slowest: float = 0.0
    """duration of the slowest command that works on small files only, in seconds"""

    @property
    def provider(self) -> Path:
        """The provider's own folder."""
        return self.root / "provider"

    @property
    def window(self) -> Path:
        """The provider's window."""
        return self.provider / "window"

    @property
    def public(self) -> Path:
        """The window's public folder."""
        return self.window / "public"

    @property
    def verifier(self) -> Path:
        """The verifier's own folder."""
        return self.root / "verifier"

    def run(self, *arguments: str | Path, expect: Sequence[int] = (0,)) -> subprocess.CompletedProcess[str]:
        """Run one command in a process of its own, whose standard error is shown."""
        command = [sys.executable, "-m", "rag_audit", *map(str, arguments)]
        started = time.monotonic()
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if arguments[0] in ("witness", "trust"):
            self.slowest = max(self.slowest, time.monotonic() - started)
        if done.returncode not in expect:
            raise SetupError(
                "a step of the demo failed",
                field=f"rag-audit {' '.join(map(str, arguments))}",
                expected=f"exit code {expect[0]}",
                found=f"{done.returncode}: {done.stdout[-2000:]}",
            )
        return done

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Announce and time a phase."""
        say(f"\n== {name}")
        started = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - started


def say(text: str = "") -> None:
    """Print a line for the person who watches."""
    print(text, flush=True)
