"""An account's folder that is an older copy: the refusal says so, and `account status` agrees with the log."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit.account.account import Account
from rag_audit.account.client.asynchronous import AsyncClient
from rag_audit.account.client.sync import Client
from rag_audit.cli import main
from rag_audit.errors import InvalidProof, RequestRefused
from tests.serving.conftest import Served, serving
from tests.window.simulator import QUESTIONS, Service

FIRST, SECOND, THIRD = QUESTIONS["law"]


@pytest.fixture
def served(tmp_path: Path) -> Any:
    parties = Service(tmp_path)
    with parties.open(system="scan", n=8, eps_acc="60") as window, serving(parties, window) as result:
        yield result


def status(served: Served, folder: Path, *words: str) -> tuple[dict[str, Any], str]:
    command = ["account", "status", str(folder), "--url", served.service.url, "--provider",
               str(served.parties.key.verifier)]  # fmt: skip
    text, value = (CliRunner().invoke(main, [*command, *more]) for more in ((), ("--json",)))
    assert (text.exit_code, value.exit_code) == (0, 0), text.output
    return json.loads(value.stdout), text.stdout


def test_an_older_copy_of_a_folder_is_explained(served: Served, tmp_path: Path) -> None:
    account, copy = served.parties.accounts["law-1"], tmp_path / "copy"
    key = served.parties.key.verifier
    with Client(served.service.url, key) as client:
        client.ask(account, FIRST)
        shutil.copytree(account.directory, copy)
        client.ask(account, SECOND)
        client.ask(account, THIRD)
        older = Account(copy)
        for question in (THIRD, FIRST):
            with pytest.raises(RequestRefused) as caught:
                client.ask(older, question)
            assert caught.value.reason == "slot-used"
            shown = caught.value.diagnostics()
            assert (
                "older copy" in shown and "another program" in shown and "wait for the next window" in shown
            )
    done = CliRunner().invoke(main, ["account", "query", SECOND, "--account", str(copy), "--url", served.service.url,
                                     "--provider", str(key)])  # fmt: skip
    assert done.exit_code == 2 and "older copy" in done.stderr
    value, text = status(served, copy)
    assert (value["used"], value["left"], value["recorded"], value["without_receipt"]) == (3, 5, 3, [2, 3])
    assert "older copy" in value["hint"] and text.startswith(
        "3 of 8 queries used, 5 left\n2 of these queries are "
    )
    value, text = status(served, account.directory)
    assert (value["used"], value["left"], value["recorded"], value["without_receipt"]) == (3, 5, 3, [])
    assert "hint" not in value and text == "3 of 8 queries used, 5 left\n"


def test_a_query_whose_answer_was_lost_is_no_sign_of_a_copy(served: Served) -> None:
    account = served.parties.accounts["law-1"]
    request = account.request(served.publication, FIRST)
    assert served.post("/v1/query", request.canonical()).status == 200  # recorded, and the answer is lost
    value, text = status(served, account.directory)
    assert (value["used"], value["left"], value["unanswered"]) == (0, 7, 1)
    assert (value["recorded"], value["without_receipt"]) == (1, [])
    assert "1 waits for its answer" in text


def test_what_the_log_says_of_an_account_is_checked(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that leaves an account's record out of what it serves is caught by the signed checkpoint."""
    key, public = served.parties.key.verifier, served.publication
    for name, question in (("law-1", FIRST), ("law-2", SECOND), ("law-1", THIRD)):
        served.parties.ask(served.window, name, question)

    async def read() -> dict[int, str]:
        async with AsyncClient(served.service.url, key) as client:
            return (await client.recorded("law-1", public)).queries

    with Client(served.service.url, key) as client:
        result = client.recorded("law-1", public)
        records = [r for r in served.window.records if r.account == "law-1"]
        assert result.queries == {r.i: r.hq for r in records} == asyncio.run(read()) and len(records) == 2
        assert client.recorded("medicine-1", public).queries == {}
        from rag_audit.service.public import LiveLog

        served_file = LiveLog.file

        def another(self: LiveLog, name: str) -> bytes | None:
            data = served_file(self, name)
            return data.replace(b'"law-1"', b'"law-2"') if data and "entries" in name else data

        monkeypatch.setattr(LiveLog, "file", another)
        with pytest.raises(InvalidProof, match="do not match the checkpoint"):
            client.recorded("law-1", public)
