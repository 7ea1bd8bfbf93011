"""A window whose ledger is in a PostgreSQL database that is killed while the window serves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_audit.attest.reading import WindowReader
from rag_audit.attest.window import Window
from rag_audit.commit.stored import unfinished
from rag_audit.errors import StoreError
from rag_audit.log.place import choose
from rag_audit.models.layout import Layout
from rag_audit.models.requests import Answer, Refusal
from tests.postgres import Cluster, cluster
from tests.window.simulator import QUESTIONS, Service
from tests.window.test_requests import signed


@pytest.fixture(scope="module")
def database() -> Iterator[Cluster]:
    with cluster(durable=True) as result:
        yield result


def test_a_window_goes_on_after_its_database_was_killed(database: Cluster, tmp_path: Path) -> None:
    service = Service(tmp_path)
    folder = tmp_path / "window"
    folder.mkdir()
    choose(Layout(folder).ledger_place, database.address)
    assert unfinished(folder)
    window = service.open()
    first = signed(service, window, QUESTIONS["law"][0], account="law-1", i=1)
    answer = window.handle(first)
    assert isinstance(answer, Answer)
    assert not Layout(folder).ledger.exists()
    assert WindowReader(folder).standing(service.clock()).records == 1
    database.kill()
    lost = window.handle(signed(service, window, QUESTIONS["law"][1], account="law-1", i=2))
    assert isinstance(lost, Refusal)
    assert window.state.store.failure is not None
    window.shut()
    with pytest.raises(StoreError, match="does not answer"):
        Window.resume(folder, key=service.key, clock=service.clock)
    database.start()
    with Window.resume(folder, key=service.key, clock=service.clock) as again:
        assert [(r.account, r.i) for r in again.records] == [("law-1", 1)]
        repeated = again.handle(first)
        assert isinstance(repeated, Answer) and repeated.dump()["documents"] == answer.dump()["documents"]
        other = again.handle(signed(service, again, QUESTIONS["law"][2], account="law-1", i=1))
        assert other.reason == "slot-used"  # type: ignore[union-attr]
        service.ask(again, "medicine-1", QUESTIONS["medicine"][0])
        service.finish(again)
        assert again.status == "final"
