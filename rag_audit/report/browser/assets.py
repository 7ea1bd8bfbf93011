"""The parts of the page from outside this package: a Python for browsers and the verifier's packages, locked by
digests.

They are downloaded once, into the user's cache. The locks are `locked/package-lock.json` and `locked/wheels.txt`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from rag_audit._internal.cache import build_once, cache_dir, progress, read_manifest, write_manifest
from rag_audit._internal.errors import SetupError
from rag_audit._internal.node import find_node, last_lines

LOCKED = Path(__file__).parent / "locked"
NATIVE = Path(__file__).parent / "native.wasm"
"""The module of `native/wasm`, which a wheel carries and `make page` builds."""
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")
"""The files of the Python for browsers in a page."""
_WHEELS_FOR = ("--platform=pyemscripten_2026_0_wasm32", "--platform=manylinux_2_17_x86_64", "--python-version=3.14",
               "--implementation=cp", "--abi=cp314", "--only-binary=:all:", "--no-deps")  # fmt: skip
"""MarkupSafe has no wheel for browsers. The page contains the Python files of its wheel for Linux, which suffice."""


def native_module() -> bytes:
    """The WebAssembly module without function names and other sections that do not affect execution.

    :raises SetupError: it was not built
    """
    try:
        return _without_custom(NATIVE.read_bytes())
    except OSError as exc:
        raise SetupError.of_os_error(
            exc,
            "the page's native core is missing from this installation",
            field=NATIVE,
            hint="run `make page` in a checkout, or reinstall the wheel",
        ) from exc


def _without_custom(module: bytes) -> bytes:
    """A WebAssembly module without its custom sections, which have the id 0 (WebAssembly 1.0, section 5.5)."""
    kept, at = [module[:8]], 8
    while at < len(module):
        start, size, shift = at, 0, 0
        at += 1
        while True:
            byte = module[at]
            size |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                break
        at += size
        if module[start]:
            kept.append(module[start:at])
    return b"".join(kept)


def assets_folder() -> Path:
    """The folder of the downloaded parts: `runtime/` and `packages/`. They are checked at each use.

    :raises SetupError: they are not there and cannot be downloaded, or were altered
    """
    locks = b"".join((LOCKED / name).read_bytes() for name in ("package-lock.json", "wheels.txt"))
    digest = hashlib.sha256(locks).hexdigest()

    def bring(folder: Path) -> None:
        _runtime(folder)
        _packages(folder)
        write_manifest(folder, {"locks": digest})

    folder = build_once(cache_dir() / f"page-{digest[:16]}", bring)
    read_manifest(folder)
    return folder


def _runtime(folder: Path) -> None:
    """Install the Python for browsers below `folder`, and keep only the files that a page contains."""
    work = folder / "npm"
    work.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(LOCKED / name, work / name)
    tools = find_node()
    path = os.pathsep.join([str(Path(tools.node).parent), os.environ.get("PATH", "")])
    progress("downloading the locked Python for browsers")
    _download([*tools.npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], work, path,
              "package-lock.json")  # fmt: skip
    runtime = folder / "runtime"
    runtime.mkdir()
    for name in RUNTIME:
        shutil.copy(work / "node_modules" / "pyodide" / name, runtime / name)
    shutil.rmtree(work)


def _packages(folder: Path) -> None:
    """Download the wheels of the verifier's packages below `folder`."""
    progress("downloading the locked packages of the page's Python")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--require-hashes",
               *_WHEELS_FOR, "--dest", "packages", "--requirement", str(LOCKED / "wheels.txt")]  # fmt: skip
    _download(command, folder, os.environ.get("PATH", ""), "wheels.txt")


def _download(command: Sequence[str], folder: Path, path: str, lock: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True,
                              text=True, check=False)  # fmt: skip
    except OSError as exc:
        raise SetupError.of_os_error(
            exc, "a tool that downloads the page's parts cannot be started", field=command[0]
        ) from exc
    if done.returncode != 0:
        raise SetupError(
            "the locked parts of the page cannot be downloaded",
            field=str(LOCKED / lock),
            actual=last_lines(done.stderr or done.stdout),
            hint="repeat the command on a machine with a network connection; a finished page needs no network",
        )
