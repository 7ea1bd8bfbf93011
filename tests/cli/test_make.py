"""What `make` says on a machine that lacks something: one line, with the command that installs it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("bash", "sh", "make", "find", "grep", "touch", "flock", "env")


def make(folder: Path, target: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a target in a copy of the Makefile, with nothing on the PATH but the shell's own tools."""
    tools = folder / "tools"
    tools.mkdir()
    for name in TOOLS:
        if (result := shutil.which(name)) is not None:
            (tools / name).symlink_to(result)
    (folder / "requirements").mkdir()
    (folder / "native").mkdir()
    for name in ("Makefile", "pyproject.toml", "requirements/dev.txt"):
        shutil.copy(ROOT / name, folder / name)
    return subprocess.run(
        [str(tools / "make"), target, *(f"{k}={v}" for k, v in variables.items())],
        cwd=folder,
        env={"PATH": str(tools), "HOME": os.environ.get("HOME", "/")},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_without_cargo(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    stamp = tmp_path / ".venv" / ".stamp"
    stamp.touch()
    os.utime(stamp, (2_000_000_000, 2_000_000_000))
    done = make(tmp_path, "native")
    assert done.returncode == 2
    assert "rag-audit: needs a Rust toolchain; install it: curl" in done.stderr


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_with_an_old_python(tmp_path: Path) -> None:
    old = tmp_path / "python-old"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.8.18"\nexit 1\n')
    old.chmod(0o755)
    done = make(tmp_path, "setup", PYTHON=str(old))
    assert done.returncode == 2
    assert "needs Python 3.11 or newer; found Python 3.8.18" in done.stderr
