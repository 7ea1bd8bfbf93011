"""What `pip install .` says where there is nothing to compile with."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]


def load(folder: Path, *tools: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Load the build's backend as pip does, with these tools alone on the PATH, and print its hooks."""
    for name in tools:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    code = f"import sys; sys.path[:0] = {BUILD['backend-path']!r}; import {BUILD['build-backend']} as b; print(*dir(b))"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("tools", "missing"),
    [((), ("Rust toolchain", "C compiler")), (("cc",), ("Rust toolchain",)), (("cargo",), ("C compiler",))],
)
def test_what_is_missing_is_said_before_anything_is_fetched(
    tmp_path: Path, tools: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    done = load(tmp_path, *tools)
    assert done.returncode == 1
    assert [part for part in ("Rust toolchain", "C compiler") if part in done.stderr] == [*missing]
    assert "A wheel needs no compiler: pip install" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("tools", "environment"), [(("cargo", "cc"), {}), (("cc",), {"RAG_AUDIT_FETCH_RUST": "1"})]
)
def test_otherwise_it_is_maturin(tmp_path: Path, tools: tuple[str, ...], environment: dict[str, str]) -> None:
    done = load(tmp_path, *tools, **environment)
    assert done.returncode == 0, done.stderr
    assert {
        "build_editable",
        "build_sdist",
        "build_wheel",
        "get_requires_for_build_wheel",
        "prepare_metadata_for_build_wheel",
    } <= set(done.stdout.split())
