"""What holds for every test."""

import pytest
from hypothesis import settings

# A deadline would be a test of the machine: examples take as long as it lets them.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

TOGETHER = {
    "cli/service": ("cli/test_cli.py", "cli/test_injection.py"),
    "window/finished": (
        "window/test_bad_files.py",
        "window/test_checks.py",
        "window/test_export.py",
        "window/test_hiding.py",
        "window/test_quorum.py",
        "window/test_receipts.py",
        "window/test_scan_windows.py",
        "window/test_together.py",
        "window/test_verdict.py",
    ),
}
"""Files that share what takes long to make, by the name of their group."""
APART = ("window/test_crash.py", "accounting/test_exact_bound.py")
"""Files whose tests share nothing and take long: each test may run anywhere."""
_GROUPS = {f"tests/{file}": group for group, files in TOGETHER.items() for file in files}


@pytest.hookimpl(tryfirst=True)  # before the plugin reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test the process that it runs in: its group's, or its file's, so that no process makes twice what tests
    share (`pytest --dist loadgroup`)."""
    for item in items:
        file = item.nodeid.partition("::")[0]
        if file.removeprefix("tests/") not in APART:
            item.add_marker(pytest.mark.xdist_group(_GROUPS.get(file, file)))
