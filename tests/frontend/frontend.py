"""The page in a browser as a reader uses it, and the command on the same files."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.browser.chromium import Chromium
from tests.frontend.public import files_below

LIMIT_S = 600.0
BASE_INSTALL = """
import sys
sys.modules.update(wordllama=None, tokenizers=None)
import numpy
from rag_audit.cli import main
from rag_audit.errors import SetupError
def unpackbits(_):
    raise SetupError("the page has no numpy, and its replacement lacks unpackbits")
numpy.unpackbits = unpackbits
main()
"""
"""The command without what the page lacks: the extras that embed, and a function that embedders need of numpy."""
NOW = re.compile(r"(Verified|made at) [0-9-]+ [0-9:.]+ UTC")
PROGRESS = re.compile(r" rag-audit: [a-z ]+ [0-9]+/[0-9]+ [0-9]+ s, about [0-9]+ s left")
"""What the command tells after ten seconds of one step."""


class Outcome(NamedTuple):
    """How a verification ended: exit code, what is printed, and the report as JSON; without the time of
    verification and without progress."""

    exit_code: int
    printed: str
    report: Any

    @classmethod
    def of(cls, exit_code: int, printed: str, report: str | None) -> Outcome:
        if report is not None:
            now = json.loads(report)["filing"]["verified_at"]
            report = NOW.sub(r"\1 now", report.replace(str(now), "0"))
        # A time may stand across the end of a line.
        printed = PROGRESS.sub("", NOW.sub(r"\1 now", " ".join(printed.split())))
        return cls(exit_code, printed, None if report is None else json.loads(report))


class Frontend:
    """The page as a reader uses it."""

    def __init__(self, browser: Chromium, page: Path) -> None:
        self.browser = browser
        browser.open(page, width=1280)

    def drop(self, provider: list[Path], own: list[Path]) -> None:
        """Choose files in each area."""
        for area, files in (("provider", provider), ("own", own)):
            if files:
                self._drop(f"{area}-files", files, len(files), area)

    def drop_folder(self, folder: Path, area: str) -> None:
        """Choose a folder in an area."""
        self._drop(f"{area}-folder", [folder], len(files_below(folder)), area)

    def _drop(self, field: str, files: list[Path], more: int, area: str) -> None:
        root = self.browser.call("DOM.getDocument")["root"]["nodeId"]
        node = self.browser.call("DOM.querySelector", nodeId=root, selector=f"#{field}")["nodeId"]
        count = f"document.querySelectorAll('#{area}-list tbody tr').length"
        rows = self.value(count)
        self.browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(file.resolve()) for file in files])
        self.until(f"{count} === {rows + more}")

    def table(self, area: str) -> dict[str, tuple[str, str]]:
        """For each file of an area, by its path, the role that its row shows and the reason."""
        rows = self.value(
            f"[...document.querySelectorAll('#{area}-list tbody tr')].map((row) => [row.cells[0].textContent, "
            "row.querySelector('select').value, row.cells[3].textContent])"
        )
        return {path: (role, why) for path, role, why in rows}

    def value(self, expression: str) -> Any:
        return self.browser.value(expression)

    def until(self, condition: str) -> None:
        end = time.monotonic() + LIMIT_S
        while not self.value(condition):
            assert time.monotonic() < end, condition
            time.sleep(0.05)

    def verify(self) -> Outcome:
        """Press the button and wait."""
        assert self.value("!document.getElementById('verify').disabled"), self.value(
            "document.getElementById('readiness').textContent"
        )
        self.value(
            "document.getElementById('result').hidden = true; document.getElementById('verify').click()"
        )
        self.until("!document.getElementById('result').hidden")
        code = self.value("document.getElementById('result').dataset.exitCode")
        saved = "(async () => {{ const a = document.querySelector('#save a[download=\"{}\"]'); return a ? (await saved(a)) : null; }})()"
        report, html = (self.value(saved.format(name)) for name in ("report.json", "report.html"))
        assert (report is None) == (html is None) and (html is None or html.startswith("<!doctype html>"))
        return Outcome.of(int(code), self.value("document.getElementById('report').textContent"), report)

    def command(self, folder: Path) -> Outcome:
        """What the command says of the same files in the same places."""
        encoded = "laid().files.map(({path, bytes}) => [path, btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join(''))])"
        for path, content in self.value(encoded):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(base64.b64decode(content))
        words = self.value("laid().options")
        done = subprocess.run(
            [sys.executable, "-c", BASE_INSTALL, *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        report = folder / "report.json"
        printed = "\n".join(part for part in (done.stdout, done.stderr) if part)
        return Outcome.of(done.returncode, printed, report.read_text() if report.exists() else None)

    def clear(self) -> None:
        self.value("document.getElementById('clear').click()")
