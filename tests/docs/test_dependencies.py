"""Each dependency has its reason on docs/dependencies.md, and each lock its digests."""

import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/dependencies.md").read_text()


def _named(section: str) -> list[str]:
    """The packages of a section's first column."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return [name for row in text.splitlines() if row.startswith("| `")
            for name in re.findall(r"`([^`]+)`", row.split("|")[1])]  # fmt: skip


def _crates() -> list[dict[str, str]]:
    packages = tomllib.loads((ROOT / "native/Cargo.lock").read_text())["package"]
    return [package for package in packages if not package["name"].startswith("ragaudit-")]


def _python() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(r for rs in project["optional-dependencies"].values() for r in rs)]
    return {re.split(r"[\[<>=]", requirement)[0] for requirement in wanted}


def _npm() -> set[str]:
    files = ("circuits/package.json", "rag_audit/report/browser/locked/package.json")
    return {name for file in files for name in json.loads((ROOT / file).read_text())["dependencies"]}


@pytest.mark.parametrize("section", ["Rust", "Python", "npm"])
def test_each_dependency_has_a_reason_and_each_reason_a_dependency(section: str) -> None:
    result = {"Rust": {crate["name"] for crate in _crates()}, "Python": _python(), "npm": _npm()}[section]
    named = _named(section)
    assert sorted(named) == sorted(set(named)), "named twice"
    assert set(named) == result


def test_crates_are_locked_by_digest_from_one_registry() -> None:
    crates = _crates()
    assert len({crate.get("source") for crate in crates}) == 1
    assert [
        crate["name"] for crate in crates if not re.fullmatch("[0-9a-f]{64}", crate.get("checksum", ""))
    ] == []


def test_fuzzing_has_the_core_s_crates_and_libfuzzer() -> None:
    core, fuzz = (
        {(crate["name"], crate["version"], crate["checksum"]) for crate in lock if "source" in crate}
        for lock in (tomllib.loads((ROOT / path / "Cargo.lock").read_text())["package"]
                     for path in ("native", "native/fuzz"))
    )  # fmt: skip
    assert {name for name, _, _ in fuzz - core} == {
        *("libfuzzer-sys", "arbitrary"),
        *("jobserver", "getrandom", "r-efi"),  # with which its C++ is compiled
    }


@pytest.mark.parametrize("lock", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda path: path.name)
def test_python_packages_are_locked_by_digest(lock: Path) -> None:
    blocks = re.split(r"\n(?=[a-zA-Z])", lock.read_text())
    pinned = [block for block in blocks if re.match(r"[\w.-]+(?:\[[^]]*\])?==[^\s;]+", block)]
    assert pinned and len(pinned) == len(blocks)
    assert [block for block in pinned if not re.search("--hash=sha256:[0-9a-f]{64}", block)] == []


def test_the_page_s_packages_are_locked_by_integrity_without_addresses() -> None:
    lock = json.loads((ROOT / "rag_audit/report/browser/locked/package-lock.json").read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    assert packages and all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert "resolved" not in json.dumps(lock)


def test_allowed_licences_are_those_of_the_page() -> None:
    """None of them asks that a work under Apache-2.0 be given another licence."""
    allowed = tomllib.loads((ROOT / "native/deny.toml").read_text())["licenses"]["allow"]
    assert set(allowed) == {
        "Apache-2.0",
        "Apache-2.0 WITH LLVM-exception",
        "BSD-3-Clause",
        "MIT",
        "Unicode-3.0",
    }


def test_what_is_installed_into_one_environment_agrees() -> None:
    """The Makefile installs these locks beside each other, and the last one would replace what another has locked."""
    versions: dict[str, set[str]] = {}
    for name in ("dev", "frameworks", "interop", "fuzz", "supply", "language-model"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text()
        for package, version in re.findall(r"^([\w.-]+)==([\w.]+)", text, re.M):
            versions.setdefault(re.sub(r"[-_.]+", "-", package).lower(), set()).add(version)
    assert len(versions) > 100 and {name: v for name, v in versions.items() if len(v) > 1} == {}
