"""docs/quickstart.md as a newcomer follows it: every command word for word, apart from the port. The windows' times pass
when the test puts the clock of all processes forward.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources.test_files import pdf

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "quickstart.md").read_text()
CLOCK = Path(__file__).parents[1] / "running" / "clock"
PATIENCE_S = 600
LASTS_S, LEAD_S = 300, 20
TEN_MINUTES_S = 600
PORT = "127.0.0.1:8080"
PAGES = (
    "The landlord pays for the heating.",
    "Pets are allowed.",
    "Rent is due on the first day of each month.",
)
CLAUSES = tuple(f"The landlord pays for the heating of flat {number}." for number in range(1, 17))
"""The sample leaves each passage out with a chance of one in ten, and all of them with none that a test could meet."""
REAL = (
    *sorted((ROOT / "docs" / "decisions").glob("*.md"))[:12],
    ROOT / "README.md",
    ROOT / "docs" / "report-example.html",
)
"""Files that were not written for a test: Markdown, and a long page in HTML."""
EPSILON = re.search(r"begins with `(PASS eps_audit=[0-9.]+)`", PAGE)[1]  # type: ignore[index]
"""The beginning of the first line for the default mechanism, in the page's words."""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def free_port() -> int:
    with socket.socket() as result:
        result.bind(("127.0.0.1", 0))
        return int(result.getsockname()[1])


class Newcomer:
    """A shell in an empty folder. What it leaves running ends with the test."""

    def __init__(self, root: Path) -> None:
        self.root, self.port = root, f"127.0.0.1:{free_port()}"
        self.running: list[subprocess.Popen[bytes]] = []
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.clock = root / "ahead"
        self.clock.write_text("0")
        self.environment = {**os.environ, "PATH": path, "PYTHONPATH": str(CLOCK),
                            "TESTS_CLOCK_AHEAD": str(self.clock)}  # fmt: skip

    def wait(self, seconds: int) -> None:
        """Put the clock forward."""
        new = self.clock.with_suffix(".new")
        new.write_text(str(float(self.clock.read_text()) + seconds))
        new.replace(self.clock)

    def text(self, block: str) -> str:
        return block.replace(PORT, self.port)

    def run(self, block: str) -> str:
        """The lines of a block, one after another; those that end in & go on."""
        out = ""
        for line in self.text(block).splitlines():
            if line.startswith("pip install") or not line:
                continue
            if line.endswith("&"):
                with (self.root / "log.txt").open("ab") as log:
                    self.running.append(
                        subprocess.Popen(
                            ["bash", "-c", f"exec {line[:-1]}"],
                            cwd=self.root,
                            env=self.environment,
                            stdout=log,
                            stderr=log,
                        )
                    )
                continue
            done = subprocess.run(["bash", "-c", line], cwd=self.root, env=self.environment, capture_output=True,
                                  text=True, check=False)  # fmt: skip
            assert done.returncode == 0, (line, done.stdout, done.stderr, self.log())
            out += done.stdout
        return out

    def until(self, line: str, wanted: str) -> None:
        """Ask again and again, until the answer matches a pattern."""
        end, result = time.monotonic() + PATIENCE_S, ""
        while re.search(wanted, result) is None:
            assert time.monotonic() < end, (wanted, result, self.log())
            time.sleep(0.5)
            done = subprocess.run(["bash", "-c", self.text(line)], cwd=self.root, env=self.environment,
                                  capture_output=True, text=True, check=False)  # fmt: skip
            result = done.stdout + done.stderr

    def log(self) -> str:
        path = self.root / "log.txt"
        return path.read_text()[-4000:] if path.exists() else ""


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    result = Newcomer(tmp_path)
    try:
        yield result
    finally:
        for process in result.running:
            process.send_signal(signal.SIGTERM)
        for process in result.running:
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def found_or_outside_the_sample(answer: str) -> bool:
    """One of ten documents is outside the sample, and then the other returned passages may not reach the relevance
    threshold."""
    return any(text in answer for text in PAGES + CLAUSES) or any(
        told in answer for told in ("relevance threshold", "no passage was returned")
    )


@pytest.mark.parametrize(
    ("option", "first"),
    [("", EPSILON), (" --rights", "PASS eps_audit=none(sampling)")],
    ids=["pooled", "rights"],
)
def test_a_newcomer_gets_from_documents_to_a_verdict_with_five_commands(
    newcomer: Newcomer, option: str, first: str
) -> None:
    """Word for word with the default mechanism, and once with the page's option for users with individual rights."""
    root, started = newcomer.root, time.monotonic()
    (root / "docs" / "law").mkdir(parents=True)
    (root / "docs" / "law" / "lease.pdf").write_bytes(pdf(*PAGES[:2]))
    (root / "docs" / "law" / "rent.pdf").write_bytes(pdf(PAGES[2]))
    for number, clause in enumerate(CLAUSES):
        (root / "docs" / "law" / f"{number}.txt").write_text(clause)
    for path in REAL:
        shutil.copy(path, root / "docs" / "law" / path.name)
    install, make, joining, service, question, of_alice, verdict, again, second = blocks("sh")
    assert all(len(block.splitlines()) == 1 for block in (install, make, service, question, verdict))
    assert "Five commands lead to the first\nverdict" in PAGE and all(
        len(block.splitlines()) == 1 for block in (again, second)
    )
    assert f"`{option.strip()}`" in PAGE and make.endswith(" --yes\n")
    newcomer.run(make.rstrip("\n") + option)
    newcomer.run(joining)
    config = root / "pilot" / "provider.toml"
    assert f'http = "{PORT}"' in config.read_text()
    config.write_text(newcomer.text(config.read_text()))
    newcomer.run(service)
    status = "rag-audit provider status pilot/provider.toml"
    newcomer.until(status, "w-1: active since [^,]*, 0 records; waits for (its time|queries)")
    newcomer.wait(LEAD_S)
    newcomer.until(status, "w-1: active since [^,]*, 0 records; waits for queries until")
    with urllib.request.urlopen(f"http://{newcomer.port}/metrics") as reply:
        metrics = reply.read().decode()
    assert 'rag_audit_witness_request_seconds_count{witness="pilot-1-not-independent"}' in metrics
    answer = newcomer.run(question)
    assert found_or_outside_the_sample(answer), answer
    assert found_or_outside_the_sample(newcomer.run(of_alice))
    newcomer.wait(LASTS_S)
    newcomer.until("cat log.txt", "w-1/public/window.json is complete")
    # The run proves w-1 in this time, so the lead of w-2 may be over before the first look.
    newcomer.until(status, "w-2: active since [^,]*, 0 records; waits for (its time|queries)")
    newcomer.wait(LEAD_S)
    newcomer.until(status, "w-2: active since [^,]*, 0 records; waits for queries until")
    report = newcomer.run(verdict)
    assert report.startswith(first + " "), report
    assert "records=2 receipts=1 query_embedding=proved" in report, report  # trust.toml does not name alice
    assert "2 records (2 proved, 2 require a proof) sent by 2 of 2 accounts" in report, report
    passed = time.monotonic() - started + LEAD_S + LASTS_S
    assert passed < TEN_MINUTES_S, f"the page promises ten minutes, and the first PASS took {passed:.0f} s"
    assert "pilot-1-not-independent" in report, "a report has to name the witnesses as not independent"
    answer = newcomer.run(again)
    assert found_or_outside_the_sample(answer), answer
    newcomer.wait(LASTS_S)
    assert newcomer.running[-1].wait(PATIENCE_S) == 0, newcomer.log()
    last = newcomer.run(second)
    assert last.startswith(first + " ") and "records=1 receipts=1 query_embedding=proved" in last, last
    assert " abandoned=0 empty=0 " in last, last
