"""A release's parts list, its digests and its signature, by a key of the test's own."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


@pytest.fixture(scope="module")
def tools() -> Any:
    """packaging/release.py and packaging/sbom.py, which stand in no package."""
    sys.path.insert(0, str(ROOT / "packaging"))
    try:
        yield {name: importlib.import_module(name) for name in ("release", "sbom", "build")}
    finally:
        sys.path.remove(str(ROOT / "packaging"))


@pytest.fixture(scope="module")
def parts(tools: dict[str, ModuleType]) -> dict[str, Any]:
    if shutil.which("cargo") is None:
        pytest.skip("Cargo says what crates depend on")
    try:
        result: dict[str, Any] = tools["sbom"].bill()
    except subprocess.CalledProcessError:
        pytest.skip("the crates are not fetched")
    return result


def test_the_parts_are_those_of_the_locks(parts: dict[str, Any]) -> None:
    by_purl = {part["purl"]: part for part in parts["components"]}
    assert len(by_purl) == len(parts["components"])
    locked = {
        (p["name"], p["version"]): p
        for p in tomllib.loads((ROOT / "native/Cargo.lock").read_text())["package"]
    }
    for purl, part in by_purl.items():
        if purl.startswith("pkg:cargo/"):
            entry = locked[part["name"], part["version"]]
            expected = [entry["checksum"]] if "source" in entry else []
            assert [digest["content"] for digest in part.get("hashes", [])] == expected
            assert "/" not in part["licenses"][0]["expression"]
    pinned = (ROOT / "requirements/dev.txt").read_text()
    for name in ("cryptography", "py-ecc", "pydantic-core", "numpy"):
        (part,) = (p for p in parts["components"] if p["purl"].startswith(f"pkg:pypi/{name}@"))
        assert part["scope"] == "required" and f"{name}=={part['version']} " in pinned
    scopes = {p["name"]: p["scope"] for p in parts["components"]}
    assert (scopes["ark-ff"], scopes["syn"], scopes["tokenizers"], scopes["snarkjs"]) == (
        "required", "excluded", "optional", "optional",
    )  # fmt: skip
    assert not {"pytest", "mypy", "ruff", "criterion"} & set(scopes)


def test_what_depends_on_what_is_said_of_parts_only(parts: dict[str, Any]) -> None:
    refs = {part["bom-ref"] for part in parts["components"]} | {f"pkg:pypi/ragaudit-zk@{VERSION}"}
    edges = {entry["ref"]: set(entry["dependsOn"]) for entry in parts["dependencies"]}
    assert set(edges) <= refs and set().union(*edges.values()) <= refs
    reached, left = set(), [f"pkg:pypi/ragaudit-zk@{VERSION}"]
    while left:
        ref = left.pop()
        reached.add(ref)
        left += edges.get(ref, set()) - reached
    assert reached == refs


def test_the_parts_list_is_a_function_of_the_locks(
    parts: dict[str, Any], tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    again = tools["sbom"].bill()
    assert again["metadata"].pop("timestamp") == "2023-11-14T22:13:20+00:00"
    assert again == parts
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", parts["serialNumber"])


@pytest.mark.full
def test_the_parts_list_has_the_public_schema(parts: dict[str, Any]) -> None:
    validation = pytest.importorskip("cyclonedx.validation.json", reason="needs requirements/supply.txt")
    from cyclonedx.schema import SchemaVersion

    assert validation.JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(parts)) is None


# -- signatures ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made as docs/versions.md says, but without a passphrase."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("needs ssh-keygen")
    folder = tmp_path_factory.mktemp("keys")
    for name, kind in (("own", "ed25519"), ("other", "ed25519"), ("ecdsa", "ecdsa")):
        command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "release", "-f", str(folder / name)]
        subprocess.run(command, check=True)
    return folder


@pytest.fixture
def released(
    tmp_path: Path, keys: Path, tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch
) -> Path:
    result = tmp_path / "made"
    result.mkdir()
    (result / "ragaudit_zk-1-x86_64.whl").write_bytes(b"wheel")
    (result / "verify.html").write_bytes(b"page")
    monkeypatch.setattr(tools["release"], "bill", lambda: {"bomFormat": "CycloneDX"})
    tools["release"].release(sorted(result.iterdir()), keys / "own", tmp_path / "release")
    return tmp_path / "release"


def signers(keys: Path, name: str, where: Path) -> Path:
    """The file of allowed keys that docs/versions.md has a reader write."""
    path = where / f"signers-{name}"
    path.write_text('release namespaces="rag-audit-release" ' + (keys / f"{name}.pub").read_text())
    return path


def documented(folder: Path, allowed: Path) -> bool:
    """The commands of docs/versions.md, word for word but for the file of keys."""
    (block,) = re.findall(
        r"<!-- tested: release -->\n```sh\n(.*?)```", (ROOT / "docs/versions.md").read_text(), re.DOTALL
    )
    commands = block.replace("release-signers", str(allowed))
    return (
        subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", commands], cwd=folder, capture_output=True
        ).returncode
        == 0
    )


def test_a_release_verifies_by_the_documented_commands(released: Path, keys: Path, tmp_path: Path) -> None:
    assert {path.name for path in released.iterdir()} == {
        "ragaudit_zk-1-x86_64.whl", "verify.html", "sbom.cdx.json", "SHA256SUMS", "SHA256SUMS.sig",
    }  # fmt: skip
    assert documented(released, signers(keys, "own", tmp_path))
    assert not documented(released, signers(keys, "other", tmp_path))


@pytest.mark.parametrize("name", ["verify.html", "sbom.cdx.json", "SHA256SUMS"])
def test_a_changed_file_is_refused(
    name: str, released: Path, keys: Path, tmp_path: Path, tools: dict[str, ModuleType]
) -> None:
    allowed = signers(keys, "own", tmp_path)
    assert tools["release"].holds(released, allowed)
    with (released / name).open("ab") as file:
        file.write(b"\n")
    assert not documented(released, allowed)
    assert not tools["release"].holds(released, allowed)


def test_a_signature_for_something_else_is_none_of_a_release(
    released: Path, keys: Path, tmp_path: Path, tools: dict[str, ModuleType]
) -> None:
    (released / "SHA256SUMS.sig").unlink()
    sign = [
        "ssh-keygen",
        "-Y",
        "sign",
        "-q",
        "-f",
        str(keys / "own"),
        "-n",
        "git",
        str(released / "SHA256SUMS"),
    ]
    subprocess.run(sign, check=True, capture_output=True)
    allowed = signers(keys, "own", tmp_path)
    allowed.write_text(
        allowed.read_text().replace('namespaces="rag-audit-release" ', "")
    )  # a careless reader
    assert not documented(released, allowed)


def test_a_file_beside_the_signed_ones_is_seen(
    released: Path, keys: Path, tmp_path: Path, tools: dict[str, ModuleType]
) -> None:
    (released / "ragaudit_zk-1-aarch64.whl").write_bytes(b"not signed")
    assert not tools["release"].holds(released, signers(keys, "own", tmp_path))


def test_a_file_that_is_missing_leaves_the_release_before(
    released: Path, keys: Path, tools: dict[str, ModuleType]
) -> None:
    wheel = next(released.glob("*.whl"))
    with pytest.raises(SystemExit, match=r"no such file: .*page\.html"):
        tools["release"].release([wheel, released / "page.html"], keys / "own", released)
    assert (released / "SHA256SUMS.sig").exists() and wheel.exists()


@pytest.mark.parametrize(
    ("key", "mode", "says"),
    [
        ("none", 0o600, "docs/versions.md"),
        ("own", 0o644, "others may read"),
        ("ecdsa", 0o600, "no Ed25519 key"),
    ],
)
def test_a_key_that_will_not_do(
    key: str, mode: int, says: str, keys: Path, tmp_path: Path, tools: dict[str, ModuleType]
) -> None:
    path = tmp_path / key
    if (keys / key).exists():
        shutil.copy(keys / key, path)
        path.chmod(mode)
    with pytest.raises(SystemExit, match=says):
        tools["release"].release([], path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_private_key_is_tracked() -> None:
    result = subprocess.run(
        ["git", "grep", "-lE", "-e", "-----BEGIN (OPENSSH|RSA|EC|ENCRYPTED) ?PRIVATE KEY-----"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert set(result.stdout.split()) <= {"tests/install/test_release.py"}


# -- builds --------------------------------------------------------------------------------------------------


def test_a_build_names_no_folder_of_its_machine(
    tools: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("CARGO_HOME", "/home/x/.cargo")
    result = tools["build"].environment(ROOT, "-C", "opt")
    assert (
        result["RUSTFLAGS"]
        == f"-C opt --remap-path-prefix={ROOT}=/rag-audit --remap-path-prefix=/home/x/.cargo=/cargo"
    )
    committed = subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result["SOURCE_DATE_EPOCH"] == committed.stdout.strip()
    with pytest.raises(SystemExit, match="space"):
        tools["build"].environment(tmp_path / "a folder")


@pytest.mark.parametrize("leaks", [False, True])
def test_two_builds_of_one_revision_are_compared_by_their_parts(
    leaks: bool,
    tools: dict[str, ModuleType],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Also where a commit comes between them."""
    build, repository = tools["build"], tmp_path / "repository"

    def git(*words: str) -> None:
        told = ["-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *told, *words], cwd=repository, check=True, capture_output=True)

    def web(folder: Path) -> Path:
        git("commit", "--allow-empty", "-m", "later")
        (folder / "native.wasm").write_bytes(b"page")
        return folder / "native.wasm"

    def wheel(folder: Path, cpu: str, out: Path) -> Path:
        path = folder / f"x-{cpu}.whl"
        head = subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, check=True
        ).stdout
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo("head"), head)
            archive.writestr(zipfile.ZipInfo("core"), str(folder) if leaks else "core")
        return path

    repository.mkdir()
    git("init", "--quiet")
    git("commit", "--allow-empty", "-m", "first")
    for name, value in (("ROOT", repository), ("web", web), ("wheel", wheel)):
        monkeypatch.setattr(build, name, value)
    assert build.twice("x86_64") == leaks
    assert capsys.readouterr().out.splitlines()[-1] == ("DIFFERENT: core x-x86_64.whl" if leaks else "equal")
