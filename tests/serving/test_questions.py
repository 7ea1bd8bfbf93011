"""Questions that cannot be asked: refused before they are signed or written down, and blocking no other one."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rag_audit.account.account import Account, embedder_of
from rag_audit.account.client.asynchronous import AsyncClient
from rag_audit.account.client.sync import Client
from rag_audit.account.prepared import ASIDE, Prepared, Questions
from rag_audit.account.retrievers.source import Source
from rag_audit.cli import main
from rag_audit.errors import EncodingError, RagAuditError, SchemaError, SizeError
from rag_audit.models.enrolling import EnrolmentRequest
from rag_audit.models.question import MAX_QUESTION
from rag_audit.retrieval.embedders import NothingToEmbed
from rag_audit.retrieval.query import check_question
from tests.named import error_name
from tests.serving.conftest import Served, serving
from tests.window import simulator
from tests.window.simulator import QUESTIONS, Service

BAD: dict[str, tuple[str, type[RagAuditError]]] = {
    "empty": ("", NothingToEmbed),
    "spaces": (" \t\r\n\u00a0\u3000", NothingToEmbed),
    "invisible": ("\u200b\u200d\ufeff\u2060", NothingToEmbed),
    "control characters": ("\x00\x1b\x7f", NothingToEmbed),
    "too long": ("x" * (MAX_QUESTION + 1), SizeError),
    "too many bytes": ("\U0001f600" * MAX_QUESTION, SizeError),
    "too many bytes once escaped": ("x" + "\x01" * (MAX_QUESTION - 1), SizeError),
    "not Unicode": ("what is \udcff?", EncodingError),
}


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Any:
    result = Service(tmp_path_factory.mktemp("questions"))
    with result.open(system="scan", n=16, eps_acc="100") as window, serving(result, window) as served:
        yield served


def files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def run(*words: object) -> Result:
    done = CliRunner().invoke(main, [str(w) for w in words])
    assert "Traceback" not in done.output
    return done


@pytest.mark.parametrize(("text", "error"), BAD.values(), ids=BAD.keys())
def test_a_question_that_cannot_be_asked_uses_no_query(
    text: str, error: type[RagAuditError], parties: Served
) -> None:
    account = parties.parties.accounts["law-1"]
    key, url = parties.parties.key.verifier, parties.service.url
    before, records = files(account.directory), len(parties.window.records)
    window = parties.publication
    sent: list[Any] = []

    async def requested() -> None:
        async with AsyncClient(url, key) as client:
            await client.ask(account, text)

    with Client(url, key) as client:
        for ask in (
            lambda: account.request(window, text),
            lambda: account.ask(window, text, key, sent.append),  # type: ignore[arg-type, return-value]
            lambda: client.ask(account, text),
            lambda: asyncio.run(requested()),
            lambda: Source(url, account.directory, str(key)).ask(text),
            lambda: asyncio.run(Source(url, account.directory, str(key)).ask_async(text)),
            lambda: Questions(account.directory, window).add(text, embedder_of(window)),
        ):
            with pytest.raises(error):
                ask()
    assert not sent and len(parties.window.records) == records
    changed = {k: v for k, v in files(account.directory).items() if before.get(k) != v}
    assert not changed.keys() - {"lock"}


@pytest.mark.parametrize(("text", "error"), BAD.values(), ids=BAD.keys())
def test_the_command_names_a_question_that_cannot_be_asked(
    text: str, error: type[RagAuditError], parties: Served
) -> None:
    folder = parties.parties.accounts["law-1"].directory
    over_http = ("--url", parties.service.url, "--provider", parties.parties.key.verifier)
    for words in (over_http, ("--later", "--window", parties.window.directory / "public")):
        done = run("account", "query", text, "--account", folder, *words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert done.stderr.startswith("rag-audit: the ") and error_name(done) == error.__name__
        assert len(done.stderr) < 1000


def test_the_longest_question_is_answered(parties: Served) -> None:
    account = parties.parties.accounts["law-1"]
    for text in ("law " * (MAX_QUESTION // 4), "\u4e00" * MAX_QUESTION):
        assert len(text) == MAX_QUESTION
        check_question(text)
        with Client(parties.service.url, parties.parties.key.verifier) as client:
            client.ask(account, text)


def test_a_blank_question_of_another_program_uses_no_query(parties: Served) -> None:
    """A client that signs a blank question is refused by the service, and its number stays free."""
    name = "law-2"
    request = parties.signed(name, " \u200b", 1)
    reply = parties.post("/v1/query", request.canonical())
    assert (reply.status, parties.refusal(reply).reason) == (422, "empty-query")
    with Client(parties.service.url, parties.parties.key.verifier) as client:
        client.ask(parties.parties.accounts[name], QUESTIONS["law"][0])
    assert [r.i for r in parties.window.records if r.account == name] == [1]


def test_a_written_question_that_cannot_be_asked_blocks_no_other(parties: Served) -> None:
    account = parties.parties.accounts["law-1"]
    window = parties.publication
    questions, digest = Questions(account.directory, window), window.header_digest()
    folder = account.directory / "prepared"
    written = [questions.add(QUESTIONS["law"][0], embedder_of(window))]
    bad = {
        "long": Prepared(header=digest, query="x" * (MAX_QUESTION + 1)).canonical(),
        "blank": Prepared(header=digest, query=" ").canonical(),
        "json": b"{",
        "field": json.dumps({"header": digest}).encode(),
        "large": b" " * (1 << 19),
    }
    for number, (name, data) in enumerate(bad.items(), 2):
        path = folder / f"{digest[:16]}-{number:08}-{name}.json"
        path.write_bytes(data)
    written.append(questions.add(QUESTIONS["law"][1], embedder_of(window)))
    before = len(parties.window.records)
    words = ("account", "query", "--prepared", "--account", account.directory, "--url", parties.service.url,
             "--provider", parties.parties.key.verifier)  # fmt: skip
    done = run(*words)
    assert done.exit_code == 2, done.output
    requested = [r.query for r in account.receipts(window)][-2:]
    assert requested == QUESTIONS["law"][:2] and len(parties.window.records) == before + 2
    for name, data in bad.items():
        (moved,) = (folder / ASIDE).glob(f"*-{name}.json")
        assert moved.read_bytes() == data and f"set aside: {moved}" in done.stderr
    assert not any(path.exists() for path in written) and not list(folder.glob("*.json"))
    assert run(*words).exit_code == 0


@pytest.mark.parametrize("origin", ["", " ", "a\nb", "\u200b", "x" * 256, "\udcff"])
def test_an_origin_that_is_no_name_is_refused(origin: str, parties: Served, tmp_path: Path) -> None:
    account = Account(parties.parties.accounts["law-1"].directory)
    key = parties.parties.key.verifier
    for words in (
        ("account", "request", account.directory, "--origin", origin, "--window", "w-2"),
        ("account", "approve", tmp_path / "roster.json", tmp_path, "--origin", origin, "--window", "w-2", "--all"),
        ("verifier", "trust", "new", tmp_path / "trust.toml", "--origin", origin, "--provider", key, "--witness", key),
        ("provider", "open", tmp_path / "w", "--origin", origin),
    ):  # fmt: skip
        done = run(*words)
        assert (done.exit_code, done.stdout) == (2, "")
        assert (
            done.stderr.startswith("rag-audit: ")
            and error_name(done) == "SchemaError"
            and "--origin" in done.stderr
        )
    with pytest.raises(SchemaError):
        EnrolmentRequest.sign(account.roster_entry, account.keys.newest, origin=origin, window="w-2")
    with pytest.raises(SchemaError):
        EnrolmentRequest.sign(account.roster_entry, account.keys.newest, origin="example.org", window=origin)


def test_a_window_under_an_origin_that_is_no_name_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = Service(tmp_path)
    monkeypatch.setattr(simulator, "ORIGIN", " ")
    with pytest.raises(SchemaError, match="not a name"):
        result.commit(system="scan")
