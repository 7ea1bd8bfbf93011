"""The version stands in pyproject.toml; whatever has to repeat it says the same."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import rag_audit
from rag_audit.cli import main

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def _toml(name: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / name).read_text())


def test_the_package_says_the_version_of_its_distribution() -> None:
    assert rag_audit.__version__ == VERSION
    assert CliRunner().invoke(main, ["--version"]).output == f"rag-audit, version {VERSION}\n"


def test_manifests_say_the_same() -> None:
    assert _toml("native/Cargo.toml")["workspace"]["package"]["version"] == VERSION
    assert _toml("bench/provers/Cargo.toml")["package"]["version"] == VERSION
    assert json.loads((ROOT / "circuits/package.json").read_text())["version"] == VERSION
    lock = json.loads((ROOT / "circuits/package-lock.json").read_text())
    assert lock["version"] == lock["packages"][""]["version"] == VERSION


@pytest.mark.parametrize("lock", ["native/Cargo.lock", "bench/provers/Cargo.lock"])
def test_lock_files_say_the_same(lock: str) -> None:
    ours = {p["name"]: p["version"] for p in _toml(lock)["package"] if "source" not in p}
    assert any(name.startswith("ragaudit-") for name in ours)
    assert set(ours.values()) == {VERSION}


def test_no_crate_has_a_version_of_its_own() -> None:
    for member in _toml("native/Cargo.toml")["workspace"]["members"]:
        assert _toml(f"native/{member}/Cargo.toml")["package"]["version"] == {"workspace": True}


def test_the_changelog_says_what_this_version_has() -> None:
    headings = re.findall(
        r"^## \[([^\]]+)\](?: - (\S+))?$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    named = [name for name, _ in headings]
    assert VERSION in named[:2]
    assert named[0] in ("Unreleased", VERSION)
    for name, date in headings[named.index(VERSION) :]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d|unreleased", date), name
