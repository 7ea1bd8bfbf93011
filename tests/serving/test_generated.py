"""The client without asyncio is generated from the one with asyncio."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_committed_client_is_the_generated_one() -> None:
    spec = importlib.util.spec_from_file_location("sync_client", ROOT / "packaging/sync_client.py")
    assert spec is not None and spec.loader is not None
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    assert (ROOT / "rag_audit/account/client/sync.py").read_text() == generator.generated(), (
        "run: python packaging/sync_client.py"
    )
