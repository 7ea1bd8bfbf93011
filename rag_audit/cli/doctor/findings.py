"""Checks of the parts that roles need: whether a part is there, its version, and the command that adds it."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

import rag_audit
from rag_audit._internal.cache import cache_dir
from rag_audit._internal.errors import SetupError
from rag_audit._internal.free_memory import GB, available_bytes
from rag_audit._internal.node import (
    MIN_NODE,
    NODE_HINT,
    circuits_dir,
    find_node,
    npm_folder,
)

DISTRIBUTION = "ragaudit-zk"
MIN_PYTHON = (3, 11)
PACKAGE = Path(rag_audit.__file__).resolve().parent
_DAY_S = 86400
_UNSYNCHRONISED = 5
"""The result of adjtimex(2) if no time service synchronises the clock (TIME_ERROR)."""
_LITTLE_DISK = 1 << 30


@dataclass(frozen=True)
class Finding:
    """The finding for one part. A note asks for attention, but the role is still complete."""

    state: Literal["ok", "note", "missing"]
    actual: str
    remedy: str | None = None


def _missing(actual: str, remedy: str) -> Finding:
    return Finding("missing", actual, remedy)


def checkout() -> Path | None:
    """The folder of the source checkout that this package runs from, or None for an installed one."""
    return PACKAGE.parent if (PACKAGE.parent / "native" / "Cargo.toml").is_file() else None


def python() -> Finding:
    """The interpreter and the system."""
    result = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if os.name != "posix":
        return _missing(
            result, "use Linux or another POSIX system: the package needs POSIX locks, owners and file modes"
        )
    if sys.version_info < MIN_PYTHON:
        return _missing(result, "install Python {}.{} or newer".format(*MIN_PYTHON))
    return Finding("ok", result)


def packages(extra: str | None = None) -> Finding:
    """The Python packages of the base install, or the additional packages of an extra."""
    name = DISTRIBUTION if extra is None else f"{DISTRIBUTION}[{extra}]"
    try:
        required = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        return _missing(
            "rag-audit is not installed; Python only finds its folder on the path", "pip install ."
        )
    lacking, count = [], 0
    for line in required:
        marker = re.search(r"extra == ['\"]([\w-]+)['\"]", line)
        if (marker[1] if marker else None) != extra:
            continue
        count += 1
        match = re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*([^;]*)", line)
        assert match is not None, line
        if (wrong := _wrong(match[1], match[2].strip())) is not None:
            lacking.append(wrong)
    if lacking:
        return _missing("; ".join(lacking), f"pip install '{name}'")
    return Finding("ok", f"{count} packages")


def _wrong(name: str, limits: str) -> str | None:
    """The fault of an installed package: it is missing, or its version is outside the limits."""
    try:
        result = metadata.version(name)
    except metadata.PackageNotFoundError:
        return f"{name} is missing"
    version = _numbers(result)
    for sign, limit in re.findall(r"(>=|<)\s*([\d.]+)", limits):
        if (version >= _numbers(limit)) != (sign == ">="):
            return f"{name} {result} is not {limits}"
    return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[a-z+-]", version)[0]))


def native() -> Finding:
    """The Rust core: whether it loads and agrees with the reference, and the lanes that it uses."""
    remedy = (
        "make native"
        if checkout() is not None
        else f"reinstall the package: pip install --force-reinstall {DISTRIBUTION}"
    )
    try:
        from rag_audit import _native
        from rag_audit.relation.field import to_bytes
        from rag_audit.relation.poseidon import permute
    except ImportError as exc:
        return _missing(f"the core does not load: {exc}", remedy)
    if not hasattr(_native, "lanes"):
        return _missing("the core is older than the package", remedy)
    state = list(range(9))
    if _native.poseidon_permute(b"".join(map(to_bytes, state))) != b"".join(map(to_bytes, permute(state))):
        return _missing("the core and the reference compute different hashes", remedy)
    lanes, products = _native.lanes()
    field = "eight residues at a time (AVX-512 IFMA)" if lanes == 8 else "one residue at a time (portable)"
    if lanes == 1 and "RAG_AUDIT_PORTABLE" in os.environ:
        field = "one residue at a time (RAG_AUDIT_PORTABLE is set)"
    return Finding("ok", f"{field}, scores by {'AVX2' if products else 'portable code'}")


def machine() -> Finding:
    """Cores and memory that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    free = available_bytes()
    memory = "memory unknown" if free is None else f"{free / GB:.1f} GB of memory free"
    return Finding("ok", f"{cores} core{'s' if cores > 1 else ''}, {memory}")


def cache() -> Finding:
    """The user's cache: whether it can be written, and its size."""
    try:
        folder = cache_dir()
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-"):
            pass
    except SetupError as exc:
        return _missing(f"{exc.message}: {exc.field}", exc.hint or "set XDG_CACHE_HOME to your own folder")
    except OSError as exc:
        return _missing(f"{exc.strerror}: {exc.filename}", "set XDG_CACHE_HOME to your own folder")
    size = 0
    for where, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += Path(where, name).lstat().st_size
    free = shutil.disk_usage(folder).free
    result = f"{folder}: {size / GB:.2f} GB, {free / GB:.0f} GB of disk free"
    if free < _LITTLE_DISK:
        return Finding(
            "note", result, "free space on this disk, or set XDG_CACHE_HOME to a folder on another disk"
        )
    return Finding("ok", result)


def clock() -> Finding:
    """The system's clock: it must not be before the package's installation, and a time service should synchronise
    it."""
    now = time.time()
    result = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(now))
    remedy = "let a time service set the clock: timedatectl set-ntp true, or start chronyd"
    if now < (PACKAGE / "__init__.py").stat().st_mtime - _DAY_S:
        return _missing(f"{result} is before this package was installed", remedy)
    if _clock_state() == _UNSYNCHRONISED:
        return Finding("note", f"{result}; no time service synchronises this clock", remedy)
    return Finding("ok", result)


def _clock_state() -> int | None:
    """The kernel's state of the clock (adjtimex(2), called here without a change), or None if the kernel does not
    report it."""
    with suppress(OSError, AttributeError):
        return int(ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(1024)))
    return None


def node() -> Finding:
    """Node.js with npm."""
    try:
        tools = find_node()
    except SetupError as exc:
        return _missing(f"version {MIN_NODE} or newer is needed; found {exc.actual}", NODE_HINT)
    return Finding("ok", f"{_output(tools.node, '--version') or '?'} at {tools.node}")


def npm() -> Finding:
    """The locked npm packages: compiler, circuit library and the other engine."""
    try:
        lock = json.loads((circuits_dir() / "package-lock.json").read_bytes())
        names = ("circom2", "circomlib", "snarkjs")
        wanted = ", ".join(f"{name} {lock['packages'][f'node_modules/{name}']['version']}" for name in names)
        there = npm_folder().is_dir()
    except SetupError as exc:
        return _missing(exc.message, exc.hint or "reinstall the package")
    if not there:
        return Finding(
            "note",
            f"{wanted}: not downloaded yet",
            "`rag-audit provider setup new` downloads them on first use",
        )
    return Finding("ok", wanted)


def sources() -> Finding:
    """A checkout of the sources."""
    place = checkout()
    if place is None:
        return _missing(f"installed at {PACKAGE}", "clone the repository, and run there: make setup")
    return Finding("ok", str(place))


def rust() -> Finding:
    """Cargo, of the version that the workspace asks for, and a linker."""
    place = checkout()
    wanted = "1.89"
    if place is not None:
        wanted = tomllib.loads((place / "native" / "Cargo.toml").read_text())["workspace"]["package"][
            "rust-version"
        ]
    result = _output("cargo", "--version")
    if result is None:
        return _missing(f"no cargo; {wanted} or newer is needed", "curl https://sh.rustup.rs -sSf | sh")
    if _numbers(result.split()[1]) < _numbers(wanted):
        return _missing(f"{result}; {wanted} or newer is needed", "rustup update")
    if shutil.which("cc") is None:
        return _missing(f"{result}, but no C compiler to link with", "apt-get install gcc")
    return Finding("ok", result)


def tools() -> Finding:
    """Further programs that `make` and the tests call."""
    lacking = [name for name in ("make", "git", "flock") if shutil.which(name) is None]
    if lacking:
        return _missing(f"no {', no '.join(lacking)}", "apt-get install make git util-linux")
    go = _output("go", "version")
    if go is None:
        return Finding(
            "note", "make, git; no Go (some tests of `make test-full` need it)", "https://go.dev/dl"
        )
    return Finding("ok", f"make, git, {go.removeprefix('go version ')}")


def minilm() -> Finding:
    """The installed files of minilm-int, compared with the published digests."""
    try:
        from rag_audit.retrieval.embedders.integer_bert import installed
    except ImportError as exc:  # the core or a package is missing, which another finding names
        return _missing(f"not examined: {exc}", "install the missing parts above, and repeat the command")
    faults = installed.installed_faults()
    if faults:
        return _missing(f"{'; '.join(faults)}; commands need --model", installed.REPAIR)
    return Finding("ok", str(installed.installed_folder()))


def data() -> Finding:
    """The public text collections that some experiments read."""
    place = os.environ.get("RAG_AUDIT_DATA")
    if place is None or not Path(place).is_dir():
        result = "RAG_AUDIT_DATA is not set" if place is None else f"RAG_AUDIT_DATA: no folder {place}"
        return Finding(
            "note", result, "set RAG_AUDIT_DATA to the folder of the collections to run experiments on them"
        )
    return Finding("ok", place)


def _output(*command: str) -> str | None:
    """A tool's first line of output, or None if the tool is missing."""
    with suppress(OSError, subprocess.SubprocessError, IndexError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout.splitlines()[0].strip()
    return None
