"""The type stub of the native module says what the module has: names, parameters, defaults."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_stub_agrees_with_the_module(tmp_path: Path) -> None:
    # Apart from the package, all of which would be checked on the way to the stub: `make lint` does that.
    package = tmp_path / "rag_audit"
    package.mkdir()
    (package / "__init__.pyi").touch()
    shutil.copy(ROOT / "rag_audit" / "_native.pyi", package)
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", "pyproject.toml", "rag_audit._native"],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
