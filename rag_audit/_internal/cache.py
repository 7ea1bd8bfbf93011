"""The user cache: folders that only this user can write to, created completely or not at all, and checked at each use.

The cache contains compiled circuits, keys and the tools that make them, keyed by digests of their inputs. The package
uses no file that another user could have written: every level belongs to this user and is closed to others, and a
folder's manifest has the digest of each of its files. A process of the same user can also write manifests. Against
that, proofs are checked under published keys, and `provider setup verify` recompiles the circuits.
"""

from __future__ import annotations

import grp
import hashlib
import os
import pwd
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rag_audit._internal.canonical import Json, jcs, read_json
from rag_audit._internal.errors import RagAuditError, SetupError
from rag_audit._internal.lock import locked
from rag_audit._internal.regular import open_regular

MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 1 << 22
_PRIVATE = 0o700
_SETTLED_NS = 2 * 10**9
"""A file that changed more recently than this may change once more without a new time stamp, so it is hashed a
second time."""

_Identity = tuple[int, int, int, int, int]
_hashed: dict[_Identity, str] = {}


def cache_dir(*parts: str) -> Path:
    """A folder below the user's cache (`$XDG_CACHE_HOME/rag-audit` on Linux); missing levels are made with mode 0700.

    :raises SetupError: the folder cannot be created, or someone else can write to it: a level, or a folder above the
        cache, belongs to another user or is open to others (a sticky folder such as /tmp is accepted above it)
    """
    import platformdirs  # a verification of a small window has no cache

    top = Path(platformdirs.user_cache_dir("rag-audit", appauthor=False)).absolute()
    path = top.joinpath(*parts)
    try:
        # From the root down, so that no folder is created below a refused one.
        for level in (*reversed(path.parents), path):
            if not level.is_dir():
                level.mkdir(mode=_PRIVATE, exist_ok=True)
            if level in top.parents:
                _check_above(level)
                continue
            if level == top:  # the way there may lead through links
                for folder in reversed(top.resolve().parents):
                    _check_above(folder)
            _close(level)
    except OSError as exc:
        raise SetupError.of_os_error(
            exc,
            "the cache folder cannot be written",
            field=path,
            hint="set XDG_CACHE_HOME to a writable folder",
        ) from exc
    return path


def _check_above(folder: Path) -> None:
    """Refuse a folder if another user could replace files below it."""
    result = folder.lstat()
    # The owner of the root can replace every file; if a sandbox maps no users, that owner is not number 0.
    if result.st_uid not in (0, os.geteuid(), Path("/").stat().st_uid):
        raise _unsafe("the cache is inside another user's folder", folder, result)
    if not stat.S_ISLNK(result.st_mode) and _open_to_others(result) and not result.st_mode & stat.S_ISVTX:
        raise _unsafe("the cache is inside a folder that other users can write to", folder, result)


def _close(level: Path) -> None:
    """Check that a level of the cache belongs to this user, and close it to others where it was readable."""
    if level.lstat().st_uid != os.geteuid():
        raise _unsafe("the cache is another user's folder", level, level.lstat())
    result = level.stat()
    if result.st_uid != os.geteuid():
        raise _unsafe("the cache is another user's folder", level, result)
    if _open_to_others(result):
        raise _unsafe("other users can write to the cache", level, result)
    if stat.S_IMODE(result.st_mode) & 0o077:
        level.chmod(_PRIVATE)


def _open_to_others(actual: os.stat_result) -> bool:
    """Whether a user other than the owner may write. A group with this user as its only member does not count."""
    if actual.st_mode & stat.S_IWOTH:
        return True
    return bool(actual.st_mode & stat.S_IWGRP) and not _private_group(actual.st_gid)


def _private_group(gid: int) -> bool:
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def _unsafe(message: str, folder: Path, actual: os.stat_result) -> SetupError:
    return SetupError(
        message,
        field=str(folder),
        expected=f"owner {os.geteuid()}, not writable by other users",
        actual=f"owner {actual.st_uid}, mode {stat.S_IMODE(actual.st_mode):04o}",
        hint="set XDG_CACHE_HOME to your own folder; or, if this folder is yours, remove its content,"
        " then chown and chmod 700",
    )


def build_once(target: Path, build: Callable[[Path], None]) -> Path:
    """The folder `target`, created by `build(empty folder)` unless it exists already.

    The folder appears complete or not at all: an interrupted build leaves no file that a later build would trust.

    :param target: a path in a folder that `cache_dir` returned
    :raises SetupError: the disk is full or the folder cannot be written
    """
    if target.is_dir():
        return target
    cache_dir()
    try:
        target.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
        with locked(target.with_name(target.name + ".lock")):
            if not target.is_dir():
                partial = target.with_name(target.name + ".partial")
                shutil.rmtree(partial, ignore_errors=True)
                partial.mkdir(mode=_PRIVATE)
                build(partial)
                partial.rename(target)
    except OSError as exc:
        raise SetupError(
            "cannot write to the cache", field=str(target), actual=exc.strerror or str(exc)
        ) from exc
    return target


def build_file(
    folder: Path, name: str, build: Callable[[], bytes], digest: str, *, what: str, prefix: bytes = b""
) -> bytes:
    """The content of a cached file that is built once and must have the given digest.

    :param what: the file's name, for errors and for the line that a person sees while it is built
    :param digest: SHA-256 over `prefix` and the file
    :raises SetupError: the cache cannot be written, or contains another file under this name
    """

    def write(target: Path) -> None:
        progress(f"making {what}")
        (target / name).write_bytes(build())

    result = build_once(folder, write)
    try:
        data = (result / name).read_bytes()
    except OSError as exc:
        raise SetupError.of_os_error(exc, f"{what} cannot be read", field=result) from exc
    actual = hashlib.sha256(prefix + data).hexdigest()
    if actual != digest:
        raise SetupError(
            f"the cached {what} differs from the pinned file",
            field=str(result),
            expected=digest,
            actual=actual,
            hint=f"remove it, and the next run recreates it: rm -r {result}",
        )
    return data


def progress(message: str) -> None:
    """One line on standard error, if a person is watching."""
    if sys.stderr.isatty():
        print(f"rag-audit: {message} ..", file=sys.stderr, flush=True)


def write_manifest(folder: Path, value: Mapping[str, Json]) -> None:
    """Write a folder's manifest: `value` and, under `files`, the digest of every file in the folder."""
    files: dict[str, Json] = {name: digest_once(path) for name, path in _files(folder)}
    (folder / MANIFEST).write_bytes(jcs({**value, "files": files}))


def read_manifest(folder: Path) -> dict[str, Json]:
    """A folder's manifest. The function first compares every file in the folder with it. A process hashes a file once,
    and a second time after a change.

    :raises SetupError: a file is missing, altered or not listed, or there is no such manifest
    """
    hint = f"remove it, and the next run recreates it: rm -r {folder}"
    try:
        value = read_json(folder / MANIFEST, max_bytes=MAX_MANIFEST_BYTES)
    except RagAuditError as exc:
        raise SetupError(
            "a cached folder has no manifest", field=str(folder), actual=exc.message, hint=hint
        ) from exc
    listed = value.get("files") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(listed, dict):
        raise SetupError(
            "the manifest of a cached folder lists no files", field=str(folder / MANIFEST), hint=hint
        )
    result = dict(_files(folder))
    if set(result) != set(listed):
        raise SetupError(
            "a cached folder lacks files of its manifest, or has further files",
            field=str(folder),
            expected=f"without {sorted(set(result) - set(listed))}, with {sorted(set(listed) - set(result))}",
            hint=hint,
        )
    for name, path in result.items():
        digest = digest_once(path)
        if digest != listed[name]:
            raise SetupError(
                "a cached file does not match its manifest",
                field=str(path),
                expected=listed[name],
                actual=digest,
                hint=hint,
            )
    return value


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Every file and link below a folder except its manifest, with its path relative to the folder."""
    for where, _, names in os.walk(folder):
        inside = Path(where).relative_to(folder).as_posix()
        prefix = "" if inside == "." else f"{inside}/"
        for name in names:
            if prefix + name != MANIFEST:
                yield prefix + name, Path(where, name)


def digest_once(path: Path) -> str:
    """SHA-256 of a cached file's content, or of a link's target path. A process hashes a file once, and a second time
    after a change.

    :raises SetupError: the file cannot be read
    """
    try:
        there = path.lstat()
        if stat.S_ISLNK(there.st_mode):
            return hashlib.sha256(b"link\0" + os.fsencode(path.readlink())).hexdigest()
        if (known := _hashed.get(_identity(there))) is not None:
            return known
        with open_regular(path) as handle:
            identity = _identity(os.fstat(handle.fileno()))
            digest = hashlib.file_digest(handle, "sha256").hexdigest()
            if identity == _identity(os.fstat(handle.fileno())) and _settled(identity):
                _hashed[identity] = digest
            return digest
    except OSError as exc:
        raise SetupError.of_os_error(exc, "a cached file cannot be read", field=path) from exc


def _identity(actual: os.stat_result) -> _Identity:
    return actual.st_dev, actual.st_ino, actual.st_size, actual.st_mtime_ns, actual.st_ctime_ns


def _settled(identity: _Identity) -> bool:
    return time.time_ns() - identity[-1] > _SETTLED_NS
