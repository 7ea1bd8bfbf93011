"""Attacks and canaries against a window that a process of its own serves, and how they end when it does not answer."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit.account.account import Account
from rag_audit.cli import account as account_commands
from rag_audit.cli import main
from rag_audit.cli.settings import store_settings
from rag_audit.lab.attacks import metrics
from rag_audit.mechanisms.none import Exact
from rag_audit.models.attacks import AttackRun
from rag_audit.models.publication import Publication
from tests.attacks.conftest import note
from tests.cli import forked
from tests.window.simulator import TEXTS, Clock, Service

MEMBERS = 20
"""The least that an attack takes."""
QUERIES = 50
"""n: one attack asks 40 questions of an account, so a second one cannot."""
ACCOUNTS = ("law-1", "law-2", "law-3", "law-4")


@dataclass
class Served:
    """A window with invented notes, canaries among them, whose service is started and killed as a test likes."""

    root: Path
    header: str
    process: Any = None

    @property
    def socket(self) -> Path:
        """Where the service answers."""
        return self.root / "socket"

    def start(self) -> None:
        """Start `rag-audit provider serve`, and wait until it listens."""
        streams = Path(tempfile.mkdtemp(dir=self.root))
        (streams / "in").touch()
        environment = {**os.environ, "TESTS_CLOCK_AHEAD": str(self.root / "clock")}
        self.process = forked.start(
            ["provider", "serve", "window", "--socket", "socket"], self.root, streams, environment
        )
        while "listening on" not in (
            said := (streams / "err").read_text() if (streams / "err").exists() else ""
        ):
            assert self.process.is_alive(), said
            time.sleep(0.01)

    def kill(self) -> None:
        """End the service at once; its socket stays, and nobody answers there."""
        self.process.kill()
        self.process.join()

    def requested(self, account: str) -> int:
        """How many answers an account has a receipt for."""
        return len(list((self.root / "accounts" / account / "receipts").iterdir()))

    def attack(self, *words: object, accounts: Sequence[str], out: str) -> Result:
        """`rag-audit lab attack run` or `canary test` with these words as these accounts."""
        options = [o for a in accounts for o in ("--account", self.root / "accounts" / a)]
        arguments = [*words, "--target", self.socket, "--window", self.root / "window/public", "--provider",
                     self.root / "key.pub", "--out", self.root / out, *options]  # fmt: skip
        return CliRunner().invoke(main, [str(a) for a in arguments])

    def run(self, *names: str, accounts: Sequence[str], out: str, options: Sequence[object] = ()) -> Result:
        """`rag-audit lab attack run` on the window's notes."""
        return self.attack("lab", "attack", "run", *names, "--data", self.root / "ours.jsonl", "--others",
                           self.root / "theirs.jsonl", *options, accounts=accounts, out=out)  # fmt: skip

    def kept(self, out: str) -> int:
        """How many replies a run has kept."""
        return (self.root / out / "replies.jsonl").read_text().count("\n")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A running service, which says exactly what it finds."""
    root = tmp_path_factory.mktemp("served")
    random = Random(3)
    notes = [note(random) for _ in range(3 * MEMBERS)]
    for name, part in (("ours", notes[:MEMBERS]), ("theirs", notes[MEMBERS:])):
        (root / f"{name}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in part))
    new = CliRunner().invoke(
        main, ["lab", "canary", "new", f"{root}/canaries", "--docs", f"{root}/ours.jsonl", "--count", "20"]
    )
    assert new.exit_code == 0, new.output
    marked = [json.loads(line) for line in (root / "canaries").read_text().splitlines()]
    inserted = [f"{c['prefix']} {c['suffix']}" for c in marked if c["inserted"]]
    service = Service(root, Clock(time.time_ns() // 1_000_000 - 60_000))
    for name in ACCOUNTS[2:]:
        service.accounts[name] = Account.create(root / "accounts" / name, name, "law")
    window = service.open(
        n=QUERIES,
        accounts_max=len(ACCOUNTS),
        top_k=4,
        capacities={"law": 64, "medicine": 8},
        documents={**TEXTS, "law": [*notes[:MEMBERS], *inserted]},
        mechanisms={tenant: Exact() for tenant in TEXTS},
        tokens=(64, 512),
    )
    header = Publication.load(window.directory / "public").header_digest()
    window.shut()
    service.key.save(root / "key")
    store_settings(window.directory, root / "key", None)
    (root / "key.pub").write_text(str(service.key.verifier))
    (root / "clock").write_text("0")
    result = Served(root, header)
    try:
        result.start()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(metrics, "REPEATS", 20)
            yield result
    finally:
        result.kill()


def test_an_attack_and_canaries_against_a_running_window(served: Served) -> None:
    match = served.run("rag-mia", "--json", accounts=["law-1"], out="alone")
    assert match.exit_code == 0, match.output
    value = json.loads(match.stdout)
    (result,) = value["results"]
    assert result["figures"]["auc"][0] > 0.9 and result["retrieval"][0] == 1
    assert result["bounds"] is None, "nobody can take a document out of a running window"
    assert "eps_audit inf" in value["certified"]
    written = AttackRun.load(served.root / "alone" / "attacks.json")
    assert (written.header, written.tenant) == (served.header, "law")
    assert served.requested("law-1") == served.kept("alone") == 2 * MEMBERS
    tested = served.attack(
        "lab", "canary", "test", served.root / "canaries", "--json", accounts=["law-2"], out="canaries-out"
    )
    assert tested.exit_code == 0, tested.output
    value = json.loads(tested.stdout)
    assert value["queries"] == served.requested("law-2") == 20 and value["eps_certified"] is None
    kept = (served.root / "canaries-out" / "replies.jsonl").read_text().splitlines()
    assert 0 < sum(json.loads(line)["actual"] for line in kept) <= value["inserted"]


def test_an_account_without_queries_left_is_named_and_its_answers_are_kept(served: Served) -> None:
    assert served.run("rag-mia", accounts=["law-1"], out="alone").exit_code == 0, "nothing is asked twice"
    result = served.run("mba", accounts=["law-1"], out="alone")
    assert result.exit_code == 2
    assert "rag-audit: the account has used all queries of the window's policy" in result.output
    assert "at: law-1" in result.output
    assert served.requested("law-1") == served.kept("alone") == QUERIES
    assert served.run("rag-mia", accounts=["law-4"], out="alone").exit_code == 0
    assert served.requested("law-4") == 2 * MEMBERS, "another account's answers are not taken for its own"


def test_a_service_that_goes_away_is_named_and_the_same_command_goes_on(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, requested = account_commands.over_socket, 0

    def dying(path: Path) -> Any:
        def send(request: Any) -> Any:
            nonlocal requested
            requested += 1
            if requested == 8:
                served.kill()
            return real(path)(request)

        return send

    with monkeypatch.context() as patch:
        patch.setattr(account_commands, "over_socket", dying)
        for _ in range(2):  # in the middle, and then from the start
            result = served.run("rag-mia", accounts=["law-3"], out="interrupted")
            assert result.exit_code == 2
            assert "rag-audit: the provider does not answer" in result.output
            assert f"at: {served.socket}" in result.output
            assert served.kept("interrupted") == served.requested("law-3") == 7
    served.start()
    result = served.run("rag-mia", accounts=["law-3"], out="interrupted")
    assert result.exit_code == 0, result.output
    assert served.requested("law-3") == served.kept("interrupted") == 2 * MEMBERS, (
        "no query was lost or used twice"
    )


def test_an_account_that_is_not_enrolled_is_named(served: Served) -> None:
    if not (served.root / "accounts" / "stranger").exists():
        Account.create(served.root / "accounts" / "stranger", "stranger", "law")
    for words in (
        lambda: served.run("rag-mia", accounts=["law-2", "stranger"], out="strange"),
        lambda: served.attack(
            "lab", "canary", "test", served.root / "canaries", accounts=["stranger"], out="strange"
        ),
    ):
        result = words()
        assert result.exit_code == 2
        assert "rag-audit: the account cannot send queries in this window" in result.output
        assert "at: stranger" in result.output and "unknown-account" in result.output
