"""A database or a disk that does not answer: accounts are told to come again, and never that a file is missing."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rag_audit.cli import main
from rag_audit.commit.stored import unfinished
from rag_audit.log.place import choose
from rag_audit.models.layout import Layout
from rag_audit.service import public
from rag_audit.service.windows import Windows
from tests.postgres import Cluster, cluster
from tests.serving.conftest import Reply, Served, serving
from tests.window.simulator import QUESTIONS, Service

BUNDLE = "/windows/w-1/tile/entries/000.p/2"


@pytest.fixture(scope="module")
def database() -> Iterator[Cluster]:
    with cluster(durable=True) as result:
        yield result


def told_to_come_again(reply: Reply, error: str = "StoreError") -> None:
    assert (reply.status, reply.value["error"]) == (503, error), reply
    assert reply.headers["retry-after"] == "1"


def test_a_database_outage_is_no_missing_file(database: Cluster, tmp_path: Path) -> None:
    parties, folder = Service(tmp_path), tmp_path / "window"
    folder.mkdir()
    choose(Layout(folder).ledger_place, database.address)
    assert unfinished(folder)
    with parties.open(system="scan") as window, serving(parties, window) as served:
        parties.ask(window, "law-1", QUESTIONS["law"][0])
        status = ["account", "status", str(parties.accounts["law-1"].directory), "--url", served.service.url,
                  "--provider", str(parties.key.verifier)]  # fmt: skip
        assert served.get(BUNDLE).status == 200 and CliRunner().invoke(main, status).exit_code == 0
        assert served.get("/windows/w-1/tile/entries/000.p/200").status == 404
        database.kill()
        reply = served.get(BUNDLE)
        told_to_come_again(reply)
        assert str(database.folder).encode() not in reply.body and b"postgres" not in reply.body
        done = CliRunner().invoke(main, status)
        assert (
            done.exit_code == 2
            and "status 503" in done.stderr
            and "the service cannot answer at the moment: repeat the request later" in done.stderr
        )
        assert served.get("/public/header.json").status == 200
        assert (
            served.get("/windows/w-1/tile/entries/000.p/200").status == 404
        )  # the log is known to have none
        reply = served.post("/v1/query", served.signed("law-1", QUESTIONS["law"][1], 2).canonical())
        assert (reply.status, served.refusal(reply).reason) == (503, "unavailable")
        assert served.faults == []
    database.start()


def test_while_no_window_is_open_no_file_is_missing(opened: Any) -> None:
    with serving(*opened, served=Windows()) as served:
        for path in ("/public/header.json", "/windows/w-1/header.json", BUNDLE):
            told_to_come_again(served.get(path), "WindowStateError")


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE, errno.ENOMEM])
def test_a_disk_that_does_not_answer_is_no_missing_file(
    number: int, fresh: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def failing(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
        if path == "header.json":
            raise OSError(number, os.strerror(number))
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(public.os, "open", failing)
    told_to_come_again(fresh.get("/public/header.json"))
    assert fresh.get("/public/window.json").status == 404  # there is none yet
    monkeypatch.undo()
    assert fresh.get("/public/header.json").status == 200


def test_a_public_folder_that_is_gone_is_no_missing_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        public.open_public(tmp_path / "unmounted", "header.json")
    assert public.open_public(tmp_path, "header.json") is None
    (tmp_path / "notes").write_text("a file")
    assert public.open_public(tmp_path, "notes/x.txt") is None
