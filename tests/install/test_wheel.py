"""A wheel is all that a verifier needs: no compiler, no checkout. `make wheels` hands in those that it built."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.install.test_version import VERSION

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "docs/examples"
MACHINES = {"x86_64": 62, "aarch64": 183}
"""The numbers that ELF files have for processors."""

pytestmark = pytest.mark.full


def _built() -> list[Path]:
    """The wheels of this version that `make wheels` built."""
    folder = os.environ.get("RAG_AUDIT_WHEELS")
    return [] if folder is None else sorted(Path(ROOT, folder).glob(f"ragaudit_zk-{VERSION}-*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel for this machine: a built one, or one from what `make native` compiled."""
    for built in _built():
        if built.name.endswith(f"{platform.machine()}.whl"):
            return built
    if shutil.which("cargo") is None:
        pytest.skip("needs Cargo")
    out = tmp_path_factory.mktemp("dist")
    command = [str(Path(sys.executable).with_name("maturin")), "build", "--release", "--locked", "--quiet"]
    subprocess.run([*command, "--compatibility", "off", "--out", str(out)], cwd=ROOT, check=True)
    (built,) = out.iterdir()
    return built


def test_a_wheel_holds_the_package_the_core_and_the_circuits(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.split("/")[0] for name in names}
    assert tops == {"rag_audit", f"ragaudit_zk-{VERSION}.dist-info"}
    tracked = subprocess.run(
        ["git", "ls-files", "rag_audit", "circuits"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    sources = {name for name in tracked if name.startswith("rag_audit/") and Path(ROOT, name).is_file()}
    circuits = {name.replace("circuits/", "rag_audit/_circuits/", 1) for name in tracked
                if name.endswith((".circom", ".json", ".cjs")) and name.startswith("circuits/")}  # fmt: skip
    module = (
        "rag_audit/report/browser/native.wasm"  # of no checkout; `make wheels` builds it before the wheels
    )
    assert ROOT.joinpath(module).exists() or not _built()
    built = {"rag_audit/_native.abi3.so", *([module] if ROOT.joinpath(module).exists() else [])}
    assert circuits and sources | circuits | built <= names


def test_a_verifier_needs_no_compiler(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    bare = {"PATH": str(home / "bin"), "HOME": str(tmp_path)}
    installed = subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(home / "bin/python"), "install", "--quiet",
         "--disable-pip-version-check", "--only-binary", ":all:", str(wheel)],
        env=bare, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "Could not find a version" in installed.stderr or "Connection" in installed.stderr:
        pytest.skip("no package index can be reached")
    assert installed.returncode == 0, installed.stderr

    def run(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(home / "bin/rag-audit"), *map(str, words)],
            cwd=tmp_path, env=bare, capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert run("--version").stdout == f"rag-audit, version {VERSION}\n"
    done = run("verify", EXAMPLES / "window.json", "--trust", EXAMPLES / "trust.toml",
               "--receipts", EXAMPLES / "receipts")  # fmt: skip
    assert (done.returncode, done.stdout[:5]) == (0, "PASS "), done.stderr
    done = run("verify", "--example")
    assert (done.returncode, done.stdout[:5]) == (0, "PASS "), done.stderr
    for role, code in (("verifier", 0), ("witness", 0), ("provider", 2), ("developer", 2)):
        assert run("doctor", "--role", role).returncode == code, role


@pytest.mark.skipif(not _built(), reason="`make wheels` hands in what it built")
@pytest.mark.parametrize("path", _built(), ids=lambda path: path.stem.rpartition(".")[2])
def test_a_built_wheel_is_for_the_machine_that_its_name_says(path: Path) -> None:
    """Its core needs no later C library than the name promises: 2.17, of 2012."""
    assert "-cp311-abi3-" in path.name and "manylinux_2_17_" in path.name
    with zipfile.ZipFile(path) as archive:
        core = archive.read("rag_audit/_native.abi3.so")
        parts = {name for name in archive.namelist() if "/sboms/" in name}
        places = [name for name in archive.namelist()
                  if any(str(place).encode() in archive.read(name) for place in (ROOT, Path.home()))]  # fmt: skip
    assert places == [], "they name folders of this machine"
    assert {name.rpartition("/")[2] for name in parts} == {"sbom.cdx.json"}
    cpu = next(cpu for cpu in MACHINES if path.name.endswith(f"{cpu}.whl"))
    assert int.from_bytes(core[18:20], "little") == MACHINES[cpu]
    wanted = {tuple(map(int, v.split(b"."))) for v in _glibc(core)}
    assert wanted and max(wanted) <= (2, 17)


def _glibc(core: bytes) -> set[bytes]:
    """The versions of the C library whose symbols a library asks for."""
    return {part.split(b"\0")[0] for part in core.split(b"\0GLIBC_")[1:] if part[:1].isdigit()}
