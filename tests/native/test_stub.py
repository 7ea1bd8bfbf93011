"""The type stub of the native module says what the module has: names, parameters, defaults."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_stub_agrees_with_the_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", "pyproject.toml", "rag_audit._native"],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
