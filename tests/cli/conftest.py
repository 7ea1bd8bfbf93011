"""One window through the command line, every party in a folder of its own, run as a person would."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.cli import forked
from tests.cli.forked import CLOCK
from tests.window.simulator import EMBEDDER, ORIGIN, QUESTIONS, TEXTS

EMBEDDING = ("--embedder", EMBEDDER)
LEAD_SECONDS = 3600
"""From the policy to its opening. Nobody waits for it: the clock is put forward once the window is witnessed."""
TIMEOUT = 300


@dataclass
class Shell:
    """Runs the command in a folder, each time in a process of its own and under a clock of the folder's own
    (`clock/`); `opened` collects the files that the provider's processes open. Such processes, and those with an
    environment of their own, are started anew; the others are forked (`forked`)."""

    root: Path
    opened: set[Path] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.put_forward(0)

    @property
    def clock(self) -> Path:
        """The file that says how many seconds the commands' clock is ahead."""
        return self.root / "clock"

    def put_forward(self, seconds: float) -> None:
        """Let the commands that follow see a clock that is so much ahead of the system's."""
        self.clock.write_text(str(seconds))

    def run(
        self, *arguments: object, stdin: str | None = None, traced: bool = False, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        words = list(map(str, arguments))
        settings = {**self._environment(), **environment}
        if not traced and not environment:
            done = forked.run(words, cwd=self.root, stdin=stdin or "", environment=settings, timeout=TIMEOUT)
            assert "Traceback" not in done.stderr, done.stderr
            return done
        command = [sys.executable, "-m", "rag_audit", *words]
        log = self.root / "trace.log"
        if traced and (strace := shutil.which("strace")):
            command = [
                strace,
                "-f",
                "--seccomp-bpf",
                "-qq",
                "-e",
                "trace=open,openat",
                "-o",
                str(log),
                *command,
            ]
        done = subprocess.run(
            command,
            cwd=self.root,
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT,
            env=settings,
        )
        assert "Traceback" not in done.stderr, done.stderr
        if traced and log.exists():
            for name in re.findall(r'open(?:at)?\([^"\n]*"([^"\n]+)"', log.read_text(errors="replace")):
                self.opened.add((self.root / name).resolve())
            log.unlink()
        return done

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join([str(CLOCK), str(Path(__file__).parents[2])])
        return {**os.environ, "PYTHONPATH": path, "TESTS_CLOCK_AHEAD": str(self.clock)}

    @contextmanager
    def serving(self) -> Iterator[tuple[str, str]]:
        """The window's service, forked too, as `query` is told of it; `--provider-dir` starts one anew for each
        question."""
        streams = Path(tempfile.mkdtemp(dir=self.root))
        (streams / "in").touch()
        arguments = ["provider", "serve", "window", "--socket", "socket"]
        process = forked.start(arguments, self.root, streams, self._environment())
        try:
            said = ""
            while "listening on" not in said:
                assert process.is_alive(), said
                time.sleep(0.01)
                said = (streams / "err").read_text() if (streams / "err").exists() else ""
            yield "--socket", "socket"
        finally:
            process.terminate()
            process.join(TIMEOUT)
            process.kill()
            process.join()
            (self.root / "socket").unlink(missing_ok=True)

    def ok(self, *arguments: object, **options: Any) -> str:
        """Run, expect success, give the standard output."""
        done = self.run(*arguments, **options)
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def value(self, *arguments: object, **options: Any) -> Any:
        """`ok` with --json."""
        return json.loads(self.ok(*arguments, "--json", **options))

    def fails(self, code: int, error: str, *arguments: object, **options: Any) -> dict[str, Any]:
        """Run as text and with --json: the same named error, nothing but it, and this exit code."""
        done = self.run(*arguments, **options)
        assert (done.returncode, done.stdout) == (code, ""), (done.stdout, done.stderr)
        assert done.stderr.startswith("rag-audit: ") and error not in done.stderr, done.stderr
        again = self.run(*arguments, "--json", **options)
        assert again.returncode == code
        result: dict[str, Any] = json.loads(again.stdout)
        if result.get("type") == "report":  # of verify
            result = {
                **result["malformed"],
                "field": result["malformed"]["object"],
                "actual": result["malformed"]["actual"],
            }
        assert result["error"] == error and result["message"]
        return result


WITNESSES = ("w1", "w2")
ACCOUNTS = {"law-1": "law", "medicine-1": "medicine"}
LATE = "law-9"
"""enrolled while the window is open"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A finished, proved and cosigned window, with two receipts and the verifier's trust.toml."""
    sh = Shell(tmp_path_factory.mktemp("cli"))
    for tenant, texts in TEXTS.items():
        folder = sh.root / "docs" / tenant
        folder.mkdir(parents=True)
        for number, text in enumerate(texts):
            (folder / f"{number}.txt").write_text(text)
    (sh.root / "provider").mkdir()
    sh.ok("provider", "keygen", "provider/key", "--name", ORIGIN)
    (sh.root / "verifier").mkdir()
    sh.ok("provider", "keygen", "verifier/key", "--name", "verifier.example.org")
    for name in WITNESSES:
        vkey = sh.ok("witness", "init", name, "--name", name)
        (sh.root / f"{name}.pub").write_text(vkey)
        (sh.root / f"{name}.nonce").write_text(sh.ok("witness", "nonce", name))
    for account, tenant in ACCOUNTS.items():
        line = sh.ok("account", "new", f"accounts/{account}", "--id", account, "--tenant", tenant)
        (sh.root / f"{account}.line").write_text(line)
        sh.ok("account", "add", "roster.json", "-", stdin=line)
    # Keys first: making them takes longer than the time between policy and opening.
    policy = [
        "provider",
        "policy",
        "new",
        "policy.json",
        "--window",
        "w-1",
        "--tenant",
        "law=8:groth16",
        "--tenant",
        "medicine=8:groth16",
        "--n",
        "3",
        "--k-max",
        "2",
        "--mechanism",
        "noise",
        "--eps-acc",
        "14",
        "--gains",
        "1,4",
        "--lattice",
        "64",
        "--top-k",
        "2",
        "--accounts-max",
        "3",
        "--lasts",
        "1h",
        "--query-tokens",
        "2",
        "--theta",
        "0.8",
        "--coalition-proof",
        "none",
        *EMBEDDING,
    ]
    sh.ok(*policy)
    (sh.root / "setup.json").write_text(
        json.dumps(sh.value("provider", "setup", "new", "policy.json", "--batch", 2, *EMBEDDING))
    )
    sh.ok("verifier", "trust", "new", "verifier/trust.toml", "--origin", ORIGIN, "--provider", "provider/key.pub",
          "--witness", "w1.pub", "--witness", "w2.pub", "--verifier", "verifier/key.pub",
          "--account", "law-1.line", "--setup", "setup.json", *EMBEDDING,
          *(a for s in ("max_epsilon=60", "max_delta=1e-5", "min_k_max=2", "max_theta=0.8", "min_tau=0",
                        "max_K_share=0.25", "query_embedding=proved", "coalition=not-checked", "min_receipts=1",
                        "allow_unsafe_setup=true") for a in ("--require", s)))  # fmt: skip
    for name in ("policy.json", "policy.json.explained.txt"):
        (sh.root / name).unlink()  # a policy is never overwritten, and this one opens later
    sh.ok(*policy, "--opens-in", f"{LEAD_SECONDS}s")
    first = ["provider", "open", "window", "--policy", "policy.json", "--roster", "roster.json", "--docs", "docs",
             "--key", "provider/key", "--witness", "w1.nonce", "--witness", "w2.nonce", *EMBEDDING]  # fmt: skip
    assert sh.value(*first, traced=True)["status"] == "committed"
    public = "window/public"
    for name in WITNESSES:
        sh.ok("witness", "cosign", name, public, "--trust", "verifier/trust.toml")
    for name in WITNESSES:
        sh.ok("witness", "beacon", name, public, "--trust", "verifier/trust.toml")
    assert sh.value("provider", "open", "window", traced=True)["status"] == "active"
    sh.put_forward(LEAD_SECONDS + 1)
    sh.ok(*question("law-1", "law", 0), "--provider-dir", "window")
    with sh.serving() as there:
        sh.ok(*question("medicine-1", "medicine", 0), *there)
    enrol_late(sh)
    assert sh.value("provider", "close", "window", traced=True)["status"] == "closed"
    for name in WITNESSES:
        sh.ok("witness", "cosign", name, public, "--trust", "verifier/trust.toml")
    assert sh.value("provider", "close", "window", traced=True)["status"] == "final"
    sh.ok("verifier", "challenge", f"{public}/window.json", "--key", "verifier/key", "--trust", "verifier/trust.toml",
          "--out", "challenge.txt")  # fmt: skip
    assert (
        sh.value("provider", "prove", "window", "--challenge", "challenge.txt", "--batch", 2, traced=True)[
            "created"
        ]
        == 6
    )
    for account in (*ACCOUNTS, LATE):
        sh.ok("account", "receipt", "export", "--account", f"accounts/{account}", "--window", public,
              "--out", "verifier/receipts", "--disclose")  # fmt: skip
    return sh


def question(account: str, tenant: str, number: int) -> Sequence[str]:
    """An account's question, but for where it goes."""
    return (
        "account",
        "query",
        QUESTIONS[tenant][number],
        "--account",
        f"accounts/{account}",
        "--window",
        "window/public",
        "--provider",
        "provider/key.pub",
    )


def enrol_late(sh: Shell) -> None:
    """One more account: its own entry, cosigned, its own beacon, and then a query."""
    line = sh.ok("account", "new", f"accounts/{LATE}", "--id", LATE, "--tenant", "law")
    (sh.root / f"{LATE}.line").write_text(line)
    nonces = []
    for name in WITNESSES:
        (sh.root / f"{name}.late").write_text(sh.ok("witness", "nonce", name))
        nonces += ["--witness", f"{name}.late"]
    sh.ok("provider", "enrol", "window", f"{LATE}.line", *nonces, traced=True)
    ask = question(LATE, "law", 1)
    with sh.serving() as there:
        assert sh.fails(2, "RequestRefused", *ask, *there)["field"] == "provider"
    for step in ("cosign", "beacon"):
        for name in WITNESSES:
            sh.ok("witness", step, name, "window/public", "--trust", "verifier/trust.toml")
    sh.ok("provider", "open", "window", traced=True)
    with sh.serving() as there:
        sh.ok(*ask, *there)


def arguments(window: str = "window/public/window.json") -> Sequence[object]:
    """`verify` as the verifier runs it."""
    return ("verify", window, "--trust", "verifier/trust.toml", "--receipts", "verifier/receipts")
