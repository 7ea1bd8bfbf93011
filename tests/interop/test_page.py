"""The commands of docs/interop.md, run as they stand there, on the documentation's own window."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import named_block
from tests.interop.npx import pinned_npx

pytestmark = pytest.mark.full
ROOT = Path(__file__).resolve().parents[2]


def run(block: str, folder: Path, *, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a block where `docs` and `tests` are the repository's, and nothing else is."""
    for name in ("docs", "tests"):
        (folder / name).symlink_to(ROOT / name)
    places = [str(path)] if path else []
    search = os.pathsep.join([*places, str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", named_block("interop.md", block)],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=1800,
    )  # fmt: skip


def test_go_reads_checkpoints_and_tiles(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("NOT RUN: no Go toolchain, so no independent reader")
    done = run("go", tmp_path)
    if done.returncode and "reading http" in done.stderr:
        pytest.skip(f"NOT RUN: the Go module proxy does not give the pinned modules: {done.stderr[-400:]}")
    assert done.stdout == named_block("interop.md", "go-output"), done.stderr
    reader, log = tmp_path / "out/reader", "example.org/rag/w-1"
    trust = (ROOT / "docs/examples/trust.toml").read_text()
    key, first, second = (
        next(line.split('"')[1] for line in trust.splitlines() if line.startswith(f'vkey = "{name}+'))
        for name in ("example.org/rag", "w1", "w2")
    )

    def read(*arguments: object) -> str:
        told = subprocess.run(
            [reader, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
        )
        return told.stdout.strip() if told.returncode == 0 else f"refused: {told.stderr.strip()}"

    # Cosignatures count only under keys that the reader named, and the log's key is the log's.
    tiles, checkpoint, header = (tmp_path / "out" / name for name in ("tiles", "tiles/checkpoint", "header"))
    assert read("checkpoint", checkpoint, log, key, second) == "12 example.org/rag w2"
    edited = tmp_path / "edited"
    edited.write_text(checkpoint.read_text().replace("\n12\n", "\n11\n"))
    for refused in (
        ("checkpoint", edited, log, key),
        ("checkpoint", checkpoint, f"{log}2", key),
        ("checkpoint", checkpoint, log, first),
        ("grown", checkpoint, tmp_path / "none", log, key),
    ):
        assert read(*refused).startswith("refused")
    # A tile with another hash makes no consistency proof.
    (tile,) = (tiles / "tile/0").rglob("*.p/*")
    data = tile.read_bytes()
    tile.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert read("grown", header, tiles, log, key).startswith("refused")


@pytest.mark.circuits
def test_snarkjs_reads_a_proof(tmp_path: Path) -> None:
    done = run("snarkjs", tmp_path, path=pinned_npx(tmp_path / "bin"))
    assert done.returncode == 0 and "OK!" in done.stdout, done.stdout + done.stderr
    assert "proofs: 15" in done.stdout
