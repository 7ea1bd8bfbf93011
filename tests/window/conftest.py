from pathlib import Path
from typing import Any

import pytest

from rag_audit.proofs.backends.scan import store as index_store
from rag_audit.retrieval.embedders.static import StaticEmbedder
from tests.window.simulator import Finished, Service, finished_window


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return finished_window(tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="session")
def scanned(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """Both tenants' records are proved by the scan argument; their capacities differ."""
    return finished_window(
        tmp_path_factory.mktemp("scanned"), system="scan", capacities={"law": 8, "medicine": 80}
    )


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """One tenant of each proof system, with one record."""
    systems = {"law": "scan", "medicine": "groth16"}
    return finished_window(tmp_path_factory.mktemp("mixed"), rounds=1, system=systems)


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is computed from here on: documents embedded, and (rows, first component) of each run committed."""
    done: list[Any] = []
    embed, commit = StaticEmbedder.embed_documents, index_store._commit

    def embedding(self: Any, texts: Any, *, first: int = 0) -> Any:
        done.append(list(texts))
        return embed(self, texts, first=first)

    def committing(rows: Any, first: int, *rest: Any) -> bytes:
        done.append((Path(rows.filename).name, first))
        return commit(rows, first, *rest)

    monkeypatch.setattr(StaticEmbedder, "embed_documents", embedding)
    monkeypatch.setattr(index_store, "_commit", committing)
    return done
