from pathlib import Path

import pytest

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
    """One tenant of each proof system."""
    return finished_window(tmp_path_factory.mktemp("mixed"), system={"law": "scan", "medicine": "groth16"})


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)
