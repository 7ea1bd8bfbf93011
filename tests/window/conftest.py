from pathlib import Path

import pytest

from tests.window.simulator import Finished, Service, finished_window


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Finished:
    return finished_window(tmp_path_factory.mktemp("finished"))


@pytest.fixture
def service(tmp_path: Path) -> Service:
    return Service(tmp_path)
