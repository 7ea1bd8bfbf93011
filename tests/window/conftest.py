from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from rag_audit import _native
from rag_audit.relation import poseidon
from rag_audit.relation.field import to_bytes
from tests.window.simulator import Finished, Service, finished_window


@pytest.fixture(scope="session", autouse=True)
def native_poseidon() -> Iterator[None]:
    """Time: the reference permutation takes 9 ms. The native one is the same function (tests/native)."""

    def permute(state: Sequence[int]) -> list[int]:
        data = _native.poseidon_permute(b"".join(to_bytes(x) for x in state))
        return [int.from_bytes(data[i : i + 32], "big") for i in range(0, len(data), 32)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(poseidon, "permute", permute)
        yield


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
    """One tenant of each proof system."""
    return finished_window(tmp_path_factory.mktemp("mixed"), system={"law": "scan", "medicine": "groth16"})


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)
