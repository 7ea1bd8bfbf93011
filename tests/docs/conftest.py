import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def generator() -> ModuleType:
    """docs/examples/generate.py, which names every example of docs/protocol.md."""
    return _load(ROOT / "docs/examples/generate.py")


@pytest.fixture(scope="session")
def schema_generator() -> ModuleType:
    return _load(ROOT / "docs/schemas/generate.py")
