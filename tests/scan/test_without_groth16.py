"""A proof system is one folder: without that of Groth16, windows of scan proofs verify as before."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import rag_audit
from tests.simulate.cases import FOLDER as WINDOWS

PACKAGE = Path(rag_audit.__file__).parent
PROGRAM = """
import json, sys
from pathlib import Path
import rag_audit
from rag_audit import errors
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs import backends
from rag_audit.report.verification import verify_window
from rag_audit.verify.inputs import VerifierOptions

assert Path(rag_audit.__file__).is_relative_to(Path.cwd())
assert backends.SYSTEMS == ("scan",), backends.SYSTEMS
try:
    backends.proof_system("groth16")
except errors.VersionError as exc:
    assert exc.expected == "scan"
else:
    raise AssertionError("the folder is not hidden")
folder, window, trust, engine = sys.argv[1:]
window = WindowFile.load(Path(folder) / window)
systems = {part["tenant"]: part["system"] for part in window.policy["tenants"]}
found = verify_window(window, trust=Path(folder) / trust, options=VerifierOptions(engine))
print(json.dumps({"checks": {c.id: c.status.value for c in found.checks}, "systems": systems}))
"""


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package, in which the folder of Groth16 is deleted."""
    root = tmp_path_factory.mktemp("without")
    hidden = shutil.ignore_patterns("__pycache__", "groth16")
    shutil.copytree(PACKAGE, root / "rag_audit", ignore=hidden, copy_function=os.symlink, symlinks=True)
    assert not (root / "rag_audit/proofs/backends/groth16").exists()
    return root


def verified(root: Path, name: str, engine: str) -> dict[str, str]:
    """The statuses of the checks about scan proofs of a published window, by the package in a folder."""
    folder = WINDOWS / name
    case = json.loads((folder / "case.json").read_text())
    command = [sys.executable, "-c", PROGRAM, str(folder), case["window"], case["trust"], engine]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    scan = [tenant for tenant, system in result["systems"].items() if system == "scan"]
    about = re.compile(rf"proof(\.\w+)?\.(circuit|key|valid)\.({'|'.join(map(re.escape, scan))})")
    return {name: status for name, status in result["checks"].items() if about.fullmatch(name)}


@pytest.mark.parametrize("engine", ["native", pytest.param("reference", marks=pytest.mark.full)])
def test_scan_proofs_verify_where_the_folder_of_groth16_is_deleted(without: Path, engine: str) -> None:
    right = verified(without, "scan", engine)
    assert "proof.valid" in " ".join(right) and set(right.values()) == {"pass"}
    wrong = verified(without, "scan-proof-changed", engine)
    assert wrong.keys() == right.keys() and list(wrong.values()).count("fail") == 1
