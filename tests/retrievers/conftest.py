"""A service on loopback with documents that have metadata, and a program's account of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rag_audit.models.passage import Passage
from tests.serving.conftest import Served, serving
from tests.window.simulator import TEXTS, Service

DESCRIBED = {
    tenant: [
        Passage.of(text, {"id": f"{tenant}/{n}", "source": f"{tenant}.txt"}) for n, text in enumerate(texts)
    ]
    for tenant, texts in TEXTS.items()
}


@dataclass
class Program:
    """Everything that a program is told of a service."""

    served: Served
    url: str
    account: Path
    provider: str


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    """A service with a window of its own."""
    parties = Service(tmp_path)
    with (
        parties.open(system="scan", n=8, eps_acc="60", documents=DESCRIBED) as window,
        serving(parties, window) as served,
    ):
        folder = parties.accounts["law-1"].directory
        yield lambda: Program(served, served.service.url, folder, str(parties.key.verifier))
