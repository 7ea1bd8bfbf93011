"""A small file system in memory for a script, in namespaces of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def run_on_tmpfs(mount: Path, size: str, script: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python script that sees a tmpfs of so many bytes at a folder; skip the test where that is not allowed."""
    unshare = shutil.which("unshare")
    command = f'mount -t tmpfs -o size={size} tmpfs "{mount}"'
    if (
        unshare is None
        or subprocess.run([unshare, "-rm", "sh", "-c", command], capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting a small tmpfs is not allowed here: run as a user who may `unshare -rm`")
    return subprocess.run(
        [unshare, "-rm", "sh", "-c", f'{command} && exec "{sys.executable}" "{script}"'],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
