"""What `rag-audit doctor` finds, for whom, and its exit code."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from importlib import metadata
from importlib.machinery import PathFinder
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import rag_audit
from rag_audit import _native
from rag_audit._internal import node as toolchain
from rag_audit._internal.node import find_node
from rag_audit.cli import main
from rag_audit.cli.doctor import command, findings
from rag_audit.cli.doctor.command import CHECKS, ROLES, examine
from rag_audit.cli.doctor.findings import Finding
from rag_audit.errors import ExitCode, SchemaError
from rag_audit.retrieval.embedders.integer_bert import installed
from tests.clock import set_clock


def doctor(*words: str) -> Result:
    return CliRunner().invoke(main, ["doctor", *words])


def test_a_verifier_finds_what_it_needs_here() -> None:
    done = doctor("--role", "verifier", "--json")
    assert done.exit_code == ExitCode.PASS
    value = json.loads(done.output)
    assert value["version"] == rag_audit.__version__
    assert value["roles"] == {"verifier": {"complete": True, "missing": []}}
    assert set(value["checks"]) == set(ROLES["verifier"])
    assert "residue" in value["checks"]["native core"]["actual"]


def test_python_m_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rag_audit", "doctor", "--role", "witness"],
        capture_output=True, text=True, check=False, env={**os.environ, "RAG_AUDIT_PORTABLE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"rag-audit {rag_audit.__version__}\n")
    assert "one residue at a time (RAG_AUDIT_PORTABLE is set)" in done.stdout
    assert done.stdout.splitlines()[-1].split() == ["witness", "complete"]


def test_every_role_needs_what_is_looked_at_and_nothing_is_looked_at_in_vain() -> None:
    assert {name for names in ROLES.values() for name in names} == set(CHECKS)


def test_a_provider_s_role_needs_what_the_quickstart_installs(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/quickstart.md").read_text()
    result = re.search(
        r"pip install 'ragaudit-zk\[([a-z,]+)\]'\n.*?`rag-audit doctor --role (\w+)`", page, re.DOTALL
    )
    assert result is not None
    extras, role = result[1].split(","), result[2]
    assert {f"packages[{extra}]" for extra in extras} <= set(ROLES[role])
    monkeypatch.setattr(command, "CHECKS", {name: lambda: Finding("ok", "there") for name in CHECKS})
    assert doctor("--role", role).exit_code == ExitCode.PASS
    for extra in extras:
        with monkeypatch.context() as one:
            one.setitem(
                command.CHECKS, f"packages[{extra}]", lambda: Finding("missing", "none", "install it")
            )
            done = doctor("--role", role)
            assert done.exit_code == ExitCode.MALFORMED and f"lacks packages[{extra}]" in done.output


def test_the_code_is_that_of_the_roles_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "CHECKS", {name: lambda: Finding("ok", "there") for name in CHECKS})
    assert doctor().exit_code == ExitCode.PASS
    monkeypatch.setitem(command.CHECKS, "node", lambda: Finding("missing", "none", "install Node"))
    done = doctor()  # a verifier needs no Node
    assert done.exit_code == ExitCode.PASS
    assert ["provider-groth16", "lacks", "node"] in [line.split() for line in done.output.splitlines()]
    assert "-> install Node" in done.output
    assert doctor("--role", "provider").exit_code == ExitCode.PASS
    assert doctor("--role", "provider", "--role", "provider-groth16").exit_code == ExitCode.MALFORMED
    monkeypatch.setitem(command.CHECKS, "native core", lambda: Finding("missing", "none", "make native"))
    assert doctor().exit_code == ExitCode.MALFORMED
    monkeypatch.setitem(command.CHECKS, "native core", lambda: Finding("note", "slow"))
    assert doctor().exit_code == ExitCode.PASS


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(SchemaError, match="no role has this name"):
        examine(["auditor"])
    assert doctor("--role", "auditor").exit_code == ExitCode.MALFORMED


# -- findings ------------------------------------------------------------------------------------------------


def test_extras_are_named_with_what_they_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"httpx": "0.28.1", "tokenizers": "0.14.2"}

    def version(name: str) -> str:
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr(metadata, "version", version)
    result = findings.packages("provider")
    assert result.state == "missing"
    assert result.actual == "tokenizers 0.14.2 is not >=0.15; wordllama is missing"
    assert result.remedy == "pip install 'ragaudit-zk[provider]'"
    versions |= {"wordllama": "1.0", "tokenizers": "0.15.0rc1"}
    assert findings.packages("provider") == Finding("ok", "3 packages")
    versions |= {"pydantic": "3.0"}
    assert "pydantic 3.0 is not" in findings.packages().actual


def test_files_of_minilm_int_are_named_with_the_command_that_installs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, installed.PACKAGE, None)
    missing = findings.minilm()
    assert missing.state == "missing" and missing.remedy is not None and installed.INSTALL in missing.remedy
    assert "not installed" in missing.actual
    assert examine(["provider-minilm"]).lacking("provider-minilm") == ["minilm-int"]
    assert "minilm-int" not in examine(["provider"]).actual  # no other role needs them
    monkeypatch.setattr(installed, "find_spec", lambda name: PathFinder.find_spec(name, [str(tmp_path)]))
    folder = tmp_path / installed.PACKAGE / "model"
    (folder.parent / "__pycache__").mkdir(parents=True)  # the rest of a package that was removed
    removed = findings.minilm()
    assert removed.state == "missing" and removed.remedy == f"{installed.INSTALL} --force-reinstall"
    assert all(str(folder / name) in removed.actual for name in installed._FILES)
    folder.mkdir()
    for name in installed._FILES:
        (folder / name).write_text("{}")
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()
    incomplete = findings.minilm()
    assert f"{folder / 'model.safetensors'}: there is no such file" in incomplete.actual
    assert f"{folder / 'tokenizer.json'}: not the published file" in incomplete.actual
    assert "config.json" not in incomplete.actual
    digest = hashlib.sha256(b"{}").hexdigest()
    (folder / "model.safetensors").rmdir()
    (folder / "model.safetensors").write_text("{}")
    monkeypatch.setattr(installed, "FILE_PINS", dict.fromkeys(installed._FILES, digest))
    assert findings.minilm() == Finding("ok", str(folder))


def test_a_folder_that_was_never_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "requires", requires)
    assert "not installed" in findings.packages().actual


def test_a_core_that_does_not_load_or_computes_otherwise_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "poseidon_permute", lambda state: state)
    assert "different hashes" in findings.native().actual
    monkeypatch.delattr(_native, "lanes")
    assert "older than the package" in findings.native().actual
    monkeypatch.delattr(rag_audit, "_native")
    monkeypatch.setitem(sys.modules, "rag_audit._native", None)
    result = findings.native()
    assert (result.state, result.remedy) == ("missing", "make native")
    assert "does not load" in result.actual


def test_a_cache_that_cannot_be_used_names_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert findings.cache().state == "ok"
    assert not [p for p in (tmp_path / "rag-audit").iterdir() if p.name.startswith(".doctor")]
    (tmp_path / "rag-audit" / "key").write_bytes(bytes(20_000_000))
    assert f"{tmp_path}/rag-audit: 0.02 GB" in findings.cache().actual
    (tmp_path / "rag-audit").chmod(0o777)
    result = findings.cache()
    assert result.state == "missing" and "other users can write to the cache" in result.actual
    assert result.remedy is not None and "XDG_CACHE_HOME" in result.remedy
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert findings.cache().state == "missing"


def test_a_clock_before_the_installation_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    set_clock(monkeypatch, findings, time=lambda: 86400.0)
    result = findings.clock()
    assert result.state == "missing" and result.actual.startswith("1970-01-02 00:00:00 UTC is before")
    monkeypatch.undo()
    monkeypatch.setattr(findings, "_clock_state", lambda: 5)
    assert findings.clock().state == "note"
    monkeypatch.setattr(findings, "_clock_state", lambda: None)
    assert findings.clock().state == "ok"


def test_tools_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no cargo" in findings.rust().actual
    assert findings.tools().actual == "no make, no git, no flock"
    for name, says in (("cargo", "cargo 1.70.0"), ("make", ""), ("git", ""), ("flock", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {says}\n")
        (tmp_path / name).chmod(0o755)
    assert findings.rust() == Finding("missing", "cargo 1.70.0; 1.89 or newer is needed", "rustup update")
    assert findings.tools().state == "note"
    (tmp_path / "cargo").write_text("#!/bin/sh\necho cargo 1.100.0\n")
    assert "no C compiler" in findings.rust().actual
    find_node.cache_clear()
    monkeypatch.setattr(toolchain.importlib.util, "find_spec", lambda name: None)
    try:
        assert findings.node().remedy == toolchain.NODE_HINT
    finally:
        find_node.cache_clear()


def test_what_node_has_yet_to_fetch_is_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    result = findings.npm()
    assert result.state == "note" and "snarkjs 0." in result.actual
    toolchain.npm_folder().mkdir()
    assert findings.npm() == Finding("ok", result.actual.removesuffix(": not downloaded yet"))


def test_an_installed_package_is_no_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert findings.sources().state == "ok"
    monkeypatch.setattr(findings, "PACKAGE", tmp_path / "rag_audit")
    assert findings.sources().state == "missing"
    assert findings.checkout() is None


def test_collections_are_looked_for_where_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAG_AUDIT_DATA", str(tmp_path))
    assert findings.data() == Finding("ok", str(tmp_path))
    monkeypatch.setenv("RAG_AUDIT_DATA", str(tmp_path / "none"))
    assert findings.data().state == "note"
