"""Defaults of provider and verifier agree: a window made with them passes, and what would not pass is said before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rag_audit.mechanisms import defaults
from tests.cli.conftest import Shell
from tests.window.simulator import ORIGIN

WITNESSES = ("w1", "w2")
SIZES = ("--accounts", 4, "--questions", 50)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that a window needs before it opens, with no option that has a default."""
    shell = Shell(tmp_path_factory.mktemp("defaults"))
    (shell.root / "docs").mkdir()
    lines = (json.dumps({"text": f"Clause {n} of the lease is about {what}."}) for n, what in
             enumerate(("rent", "heating", "repairs", "keys", "noise", "pets")))  # fmt: skip
    (shell.root / "docs" / "law.jsonl").write_text("\n".join(lines))
    shell.ok("provider", "keygen", "key", "--name", ORIGIN)
    shell.ok("provider", "keygen", "verifier", "--name", "verifier.example.org")
    for name in WITNESSES:
        (shell.root / f"{name}.pub").write_text(shell.ok("witness", "init", name, "--name", name))
        (shell.root / f"{name}.nonce").write_text(shell.ok("witness", "nonce", name))
    (shell.root / "alice.line").write_text(
        shell.ok("account", "new", "alice", "--id", "alice", "--tenant", "law")
    )
    shell.ok("account", "add", "roster.json", "alice.line")
    shell.ok("provider", "policy", "new", "policy.json", "--window", "w-1", "--tenant", "law=64", *SIZES)
    shell.ok(
        "verifier",
        "trust",
        "new",
        "trust.toml",
        "--origin",
        ORIGIN,
        "--provider",
        "key.pub",
        "--witness",
        "w1.pub",
        "--witness",
        "w2.pub",
        "--verifier",
        "verifier.pub",
        "--account",
        "alice.line",
        "--policy",
        "policy.json",
    )
    return shell.root


@pytest.fixture
def parties(made: Path, tmp_path: Path) -> Shell:
    """A copy of `made`."""
    return Shell(shutil.copytree(made, tmp_path / "parties"))


def header(*arguments: object) -> list[object]:
    return [
        "provider",
        "open",
        "window",
        "--policy",
        "policy.json",
        "--roster",
        "roster.json",
        "--docs",
        "docs",
        "--key",
        "key",
        "--witness",
        "w1.nonce",
        "--witness",
        "w2.nonce",
        "--trust",
        "trust.toml",
        *arguments,
    ]


def test_defaults_pass(parties: Shell) -> None:
    """The one walk with defaults alone: it proves a record and a coalition estimate, which takes seconds."""
    sh, public = parties, "window/public"
    assert "meets all requirements of trust.toml" in sh.ok(
        "provider", "policy", "check", "policy.json", "--trust", "trust.toml"
    )
    assert sh.value(*header())["status"] == "committed"
    for step in ("cosign", "beacon"):
        for name in WITNESSES:
            sh.ok("witness", step, name, public, "--trust", "trust.toml")
    assert sh.value("provider", "open", "window")["status"] == "active"
    sh.put_forward(16 * 60)
    sh.ok(
        "account",
        "query",
        "Who pays for the heating?",
        "--account",
        "alice",
        "--window",
        public,
        "--provider",
        "key.pub",
        "--provider-dir",
        "window",
    )
    sh.ok("provider", "close", "window")
    for name in WITNESSES:
        sh.ok("witness", "cosign", name, public, "--trust", "trust.toml")
    assert sh.value("provider", "close", "window")["status"] == "final"
    sh.ok(
        "verifier",
        "challenge",
        public,
        "--key",
        "verifier",
        "--trust",
        "trust.toml",
        "--out",
        "challenge.txt",
    )
    sh.ok("provider", "prove", "window", "--challenge", "challenge.txt")
    sh.ok("account", "receipt", "export", "--account", "alice", "--window", public, "--out", "receipts")
    verdict = sh.ok("verify", public, "--trust", "trust.toml", "--receipts", "receipts")
    first = verdict.split("\n")[0]
    assert first.startswith("PASS eps_audit=") and "allow=" not in first
    for part in ("records=1 receipts=1 query_embedding=proved", "coalition=checked", "setup=transparent"):
        assert part in first
    assert float(first.split("eps_audit=")[1].split()[0]) <= float(defaults.EPS_POOLED_LISTING)


def test_nothing_is_opened_that_would_not_pass(parties: Shell) -> None:
    sh = parties
    (sh.root / "roster.json").write_text("[]")
    done = sh.run(*header("--origin", "example.org/other"))
    assert (done.returncode, done.stdout) == (1, "") and not (sh.root / "window").exists()
    for part in (
        "the window was not opened",
        "receipt.independent",
        "header.signature",
        "example.org/other",
    ):
        assert part in done.stderr
    again = sh.run(*header("--json"))
    assert again.returncode == 3 and not (sh.root / "window").exists()
    (row,) = json.loads(again.stdout)["wanting"]
    assert (row["id"], row["outcome"]) == ("receipt.independent", "unmet")
    assert row["actual"] == "at most 0: no such account" and "--roster" in row["change"]


def test_a_window_of_other_witnesses_is_not_opened(parties: Shell) -> None:
    sh = parties
    (sh.root / "w2.nonce").write_text((sh.root / "w1.nonce").read_text())
    sh.ok("witness", "init", "w3", "--name", "w3")
    (sh.root / "w1.nonce").write_text(sh.ok("witness", "nonce", "w3"))
    done = sh.run(*header("--json"))
    result = {row["id"]: row["outcome"] for row in json.loads(done.stdout)["wanting"]}
    assert (done.returncode, result) == (1, {"header.quorum": "unproven", "header.beacon": "fail"})


def test_a_trust_file_is_never_overwritten(parties: Shell) -> None:
    path: Path = parties.root / "trust.toml"
    before = path.read_bytes()
    done = parties.run(
        "verifier",
        "trust",
        "new",
        "trust.toml",
        "--origin",
        "x",
        "--provider",
        "key.pub",
        "--witness",
        "w1.pub",
    )
    assert done.returncode == 2 and "not overwritten" in done.stderr and "hint" in done.stderr
    assert path.read_bytes() == before


def test_a_trust_file_without_accounts_says_what_it_lacks(parties: Shell) -> None:
    done = parties.run(
        "verifier",
        "trust",
        "new",
        "other.toml",
        "--origin",
        ORIGIN,
        "--provider",
        "key.pub",
        "--witness",
        "w1.pub",
    )
    assert done.returncode == 0 and "without --account no window can pass" in done.stderr
