"""A skip is a failure unless CONTRIBUTING.md lists it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import skips

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest

def test_unlisted():
    pytest.skip("the moon is full")

@pytest.mark.skipif(True, reason="the moon is new")
def test_unlisted_mark():
    pass

def test_listed():
    pytest.skip("circomspect is not installed: cargo install circomspect")
"""


def _run(folder: Path, name: str, text: str) -> list[str]:
    """The summary lines of pytest over one file, under this suite's conftest."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "--color=no", "-p", "tests.conftest", "--import-mode=importlib",
         "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(folder), "-c", os.devnull, name],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return [
        line for line in done.stdout.splitlines() if line.startswith(("FAILED", "SKIPPED", "ERROR", "PASSED"))
    ]


def test_an_unlisted_skip_fails_its_test(tmp_path: Path) -> None:
    result = _run(tmp_path, "circuits/test_circomspect.py", TESTS)
    # pytest says ERROR of a mark, which skips before the test is called.
    assert [line.split()[0] for line in result] == ["SKIPPED", "ERROR", "FAILED"]
    assert "test_unlisted_mark" in result[1] and all("This skip is not lis" in line for line in result[1:])


def test_a_listed_reason_counts_in_its_file_alone(tmp_path: Path) -> None:
    result = _run(tmp_path, "circuits/test_other.py", TESTS)
    assert [line.split()[0] for line in result] == ["ERROR", "FAILED", "FAILED"]


def test_a_whole_file_that_is_skipped_fails(tmp_path: Path) -> None:
    (result,) = _run(tmp_path, "test_file.py", "import pytest\npytest.importorskip('no_such_module')\n")
    assert result.startswith("ERROR test_file.py")


@pytest.mark.parametrize(
    "text",
    [
        "# no heading",
        "\n### Skipped tests\n",
        "\n### Skipped tests\n\n| a | b | c |\n|---|---|---|\n| bare | cells | here |\n",
    ],
)
def test_a_table_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"Skipped tests|skipped tests"):
        skips.parse(text)


def test_every_listed_file_exists() -> None:
    assert [s for s in skips.listed() if not list(ROOT.glob(s.file))] == []
