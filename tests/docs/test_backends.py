"""Code outside a proof system's folder does not name the system: policies do, and `proofs.backends` finds it."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

from rag_audit.proofs.backends import SYSTEMS

ROOT = Path(__file__).resolve().parents[2]
OWN = "rag_audit/proofs/backends/"
UNIQUE = re.compile("groth16", re.IGNORECASE)
"""A name that is nothing but a system's. `scan` is a word too, which counts where it is a whole string."""
ALLOWED = {
    "rag_audit/models/tenants.py": "a policy's field `system` has the names as its values, and so has its schema",
    "rag_audit/models/trust.py": "trust.toml has a field of this name for pins, and its schema a definition",
    "rag_audit/models/trust_template.py": "it writes these fields of trust.toml",
    "rag_audit/cli/trust.py": "it fills these fields of trust.toml",
    "rag_audit/models/records.py": "the published schema of a tenant's entry describes both commitments",
    "rag_audit/cli/doctor/command.py": "the role is a published name, and is read where the native core cannot load",
    "rag_audit/cli/setup.py": "the command makes the keys of circuits, which are one system's alone",
    "rag_audit/report/browser/inside/native.py": "the functions of the native module carry the name",
    "rag_audit/lab/experiments/hnsw.py": "a scan of an index, which is no proof system",
}
"""Files that may name a system, and why."""


def named(source: str) -> list[int]:
    """The lines of a module that name a proof system, in code or in words."""
    result = {number for number, line in enumerate(source.splitlines(), 1) if UNIQUE.search(line)}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split(":")[0]
            if words in SYSTEMS:
                result.add(node.lineno)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "rag_audit.proofs.backends."
        ):
            result.add(node.lineno)
    return sorted(result)


def _files() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "rag_audit/*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return listed.stdout.split()


def test_only_a_system_s_folder_names_it() -> None:
    outside = [f for f in _files() if not (f.startswith(OWN) and f.count("/") > OWN.count("/"))]
    naming = {f: lines for f in outside if (lines := named((ROOT / f).read_text()))}
    assert {f: lines for f, lines in naming.items() if f not in ALLOWED} == {}
    assert set(ALLOWED) <= set(naming), "a file that names no system needs no permission"


def test_a_folder_names_no_other_system() -> None:
    for name in SYSTEMS:
        others = [other for other in SYSTEMS if other != name]
        for file in (f for f in _files() if f.startswith(f"{OWN}{name}/")):
            for other in others:
                assert f"backends.{other}" not in (ROOT / file).read_text(), f"{file} imports {other}"


@pytest.mark.parametrize(
    "source",
    [
        'backend("scan")',
        "x = 'groth16'",
        '"""Proofs of Groth16."""',
        "from rag_audit.proofs.backends.scan import key",
    ],
)
def test_a_name_is_found(source: str) -> None:
    assert named(source) == [1]
