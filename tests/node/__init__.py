"""Node as tests run it: short runs by the dozen, most of whose time would go to compiling the same code anew."""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from rag_audit._internal.node import NodeFailed, find_node, npm_folder, npm_packages
from rag_audit.proofs.backends.groth16 import circuit, generator, snarkjs

HERE = Path(__file__).parent
_lock = threading.Lock()
_kept: dict[tuple[int, Path], subprocess.Popen[bytes]] = {}
_checked: set[Path] = set()


def keep() -> None:
    """Let the snarkjs runs of this process share one of Node's, and those of the circuits' compiler another. Both find
    their packages compared with their manifest, two thousand files, once."""
    snarkjs.run_node = circuit.run_node = _run_kept
    snarkjs.npm_packages = circuit.npm_packages = _packages


def compile_little() -> None:
    """Let this process's witness generators run code as it is first compiled."""
    generator.circuits_dir = lambda: HERE


def _packages() -> Path:
    """As `npm_packages`."""
    folder = npm_folder()
    if folder.resolve() not in _checked:
        npm_packages()
        _checked.add(folder.resolve())
    return folder / "node_modules"


def _run_kept(script: Path, arguments: Sequence[str], *, cwd: Path, timeout: float | None = None) -> bytes:
    """As `run_node`, of a process that is kept. Caches of single tests link to the user's packages: one process serves
    them all."""
    script = script.resolve()
    with _lock:
        key = (os.getpid(), script)  # a forked child must not talk into its parent's pipes
        node = find_node().node
        process = _kept.pop(key, None) or subprocess.Popen(
            [node, str(HERE / "kept.cjs"), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert process.stdin is not None and process.stdout is not None
        request = json.dumps({"arguments": list(arguments), "cwd": str(cwd)})
        process.stdin.write(request.encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            ready, _, _ = select.select([process.stdout], [], [], timeout)
            more = process.stdout.read(1 << 16) if ready else b""
            if not more:
                process.kill()
                raise NodeFailed(-1, "", f"{script.name} ended, or was not done in time")
            answer += more
        _kept[key] = process
    done = json.loads(answer)
    if done["status"] != 0:
        raise NodeFailed(done["status"], done["stdout"], done["stderr"])
    return str(done["stdout"]).encode()


@atexit.register
def _end() -> None:
    for (parent, _), process in _kept.items():
        if parent == os.getpid():
            process.kill()
            process.wait()
