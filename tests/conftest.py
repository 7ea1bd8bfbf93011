"""Rules and fixtures for every test."""

import os
import shutil
from collections.abc import Callable, Generator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from rag_audit import _native
from rag_audit.relation import poseidon
from rag_audit.relation.field import MODULUS, to_bytes

# Before numpy is loaded: products are small here, and the threads of two processes would spin waiting for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Tests start processes by the hundred, of which each would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# In memory, where there is enough of it: a ledger syncs each entry, and no test is about what a disk does then.
MEMORY = Path("/dev/shm")
if (
    MEMORY.is_dir()
    and shutil.disk_usage(MEMORY).free > 4 << 30
    and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


class Permutation:
    """Poseidon's permutation in tests. The reference takes milliseconds, and the suite needs thousands of permutations, so
    the native core computes them, and the reference repeats each `COMPARED`-th one. Tests that compare the two
    (`REFERENCE`) use only the reference.
    """

    COMPARED = 64
    REFERENCE = ("engine/", "native/", "relation/")

    def __init__(self, reference: Callable[[Sequence[int]], list[int]]) -> None:
        self.reference = lru_cache(maxsize=1 << 13)(lambda state: tuple(reference(state)))
        self.native = lru_cache(maxsize=1 << 13)(self._native)
        self.alone = True

    def __call__(self, state: Sequence[int]) -> list[int]:
        permute = self.reference if self.alone or len(state) not in poseidon.PARTIAL_ROUNDS else self.native
        return list(permute(tuple(state)))

    def _native(self, state: tuple[int, ...]) -> tuple[int, ...]:
        data = _native.poseidon_permute(b"".join(to_bytes(x % MODULUS) for x in state))
        result = tuple(int.from_bytes(data[i : i + 32], "big") for i in range(0, len(data), 32))
        if self.native.cache_info().misses % self.COMPARED == 0:
            assert result == self.reference(state), "the native core's permutation is not the reference's"
        return result


# Before others import it by its name.
PERMUTATION = Permutation(poseidon.permute)
poseidon.permute = PERMUTATION


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    PERMUTATION.alone = _file(item.nodeid).startswith(Permutation.REFERENCE)


from tests import node, skips  # noqa: E402, of the package's modules, which take the permutation above and load numpy

node.keep()
node.compile_little()

# A deadline would be a test of the machine: examples take as long as it lets them.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

TOGETHER = {
    "cli/service": (
        "cli/test_cli.py",
        "cli/test_injection.py",
        "cli/test_open.py",
        "cli/test_attack_service.py",
    ),
    "report": (
        "report/test_explanations.py",
        "report/test_report_formats.py",
        "report/test_model.py",
        "report/test_page.py",
        "report/test_page_in_browser.py",
        "report/test_text.py",
    ),
    "window/finished": (
        "window/test_bad_files.py",
        "window/test_checks.py",
        "window/test_export.py",
        "window/test_hiding.py",
        "window/test_linear.py",
        "window/test_quorum.py",
        "window/test_receipts.py",
        "window/test_scan_windows.py",
        "window/test_batch.py",
        "window/test_verdict.py",
    ),
}
"""Files that share what takes long to make, by the name of their group."""
SLOW = (
    "window/test_crash.py",  # forks, like the next: the less its process holds by then, the better
    "ledger/test_store.py",
    "setup/test_ceremony.py",
    "cli/service",
    "window/finished",
    "executors/test_cluster_window.py",
    "groth16/test_verifiers.py",
    "window/test_samples.py",
    "circuits/test_retrieve.py",
    "circuits/test_embed_proofs.py",
    "circuits/test_many.py",
    "scan/test_memory.py",
    "estimate/test_coalition_proof.py",
)
"""The slowest files and groups. They start first, so that no process runs them at the end while the others are idle."""
APART = ("window/test_crash.py", "accounting/test_exact_bound.py")
"""Slow files with independent tests: each of their tests may run in any process."""
_GROUPS = {file: group for group, files in TOGETHER.items() for file in files}


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0].removeprefix("tests/")


def _group(nodeid: str) -> str:
    """The group of tests that must run in the same process as the test."""
    file = _file(nodeid)
    return nodeid if file in APART else _GROUPS.get(file, file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The slow ones first, the others in their order."""
    rank = {name: place for place, name in enumerate(SLOW)}
    items.sort(key=lambda item: rank.get(_file(_group(item.nodeid)), len(rank)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give each group's tests, or each file's, to one process, so that no process makes twice what tests share."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _group(nodeid)

    return Together(config, log)


def _unlisted(report: pytest.TestReport | pytest.CollectReport) -> str | None:
    """Why a skip is a failure: CONTRIBUTING lists each test that may be skipped, with the reason that pytest prints."""
    if not report.skipped or hasattr(report, "wasxfail"):
        return None
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    reason = reason.removeprefix("Skipped: ")
    if skips.is_listed(_file(report.nodeid), reason):
        return None
    return f"This skip is not listed in CONTRIBUTING.md, under 'Skipped tests': {reason}"


def _fail_unlisted(report: pytest.TestReport | pytest.CollectReport) -> None:
    if (fault := _unlisted(report)) is not None:
        report.outcome, report.longrepr = "failed", fault


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_unlisted(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_unlisted(report)
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(crashitem: str) -> None:
    """Print the name of a test as soon as its process ends. The summary prints it only after all other tests."""
    print(f"\n{crashitem}: its process ended, or the test took longer than faulthandler_timeout", flush=True)
