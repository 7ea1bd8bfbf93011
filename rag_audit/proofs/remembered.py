"""The cache of a window's valid proofs, in the user's cache.

A line is the SHA-256 of a proof with all inputs of its verification (`proofs.checking`), with a MAC under a key in the
same folder. The MAC detects lines that are damaged, truncated or copied from another user's cache. It does not stop an
attacker who can write as this user: such an attacker can read the key, and could also replace this program
(docs/security.md, "Proof results that a verifier caches").
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from rag_audit import __version__, _native
from rag_audit._internal.cache import cache_dir
from rag_audit._internal.canonical import jcs
from rag_audit._internal.durable import create_private, read_private
from rag_audit._internal.errors import StoreError
from rag_audit._internal.lock import locked
from rag_audit.proofs.batch import Checker, Item

if TYPE_CHECKING:
    from rag_audit.proofs.batch import Value

FOLDER = "verified"
FILES = 64
"""Maximum number of remembered windows. Beyond it, the cache drops the windows with the oldest verification."""
MAX_BYTES = 256 << 20
"""A larger file is begun anew."""
_DIGEST = 32
_LINE = 2 * _DIGEST
_KEY = "key"


class VerifiedProofs:
    """The proofs of one window that are known to be valid.

    :param window: SHA-256 over the window's entry 0, in hexadecimal
    :param elsewhere: whether proofs that other machines found valid count; they never count for a verification on only
        this machine
    :raises SetupError: other users can access the cache
    :raises StoreError: the cache cannot be written
    """

    def __init__(self, window: str, *, elsewhere: bool = False) -> None:
        folder = cache_dir(FOLDER)
        with locked(folder / ".lock"):
            self._key = _key_of(folder)
            self._path = folder / f"{window}.log"
            _forget(folder, self._path)
        self._where = b"elsewhere" if elsewhere else b"here"
        self._counts = {self._where, b"here"}
        self.damaged = 0
        """number of lines that were skipped, since they are not this cache's"""
        self._known = self._read()

    def names(self, checker: Checker[Item]) -> Callable[[Item], bytes]:
        """The function that names proofs by the digest of all inputs of their verification: program, key, statement.

        :param checker: the verifying object, which has the key
        """
        base = _program() + fingerprint(checker)
        return lambda item: hashlib.sha256(base + fingerprint(item)).digest()

    def __contains__(self, name: bytes) -> bool:
        return name in self._known

    def __len__(self) -> int:
        return len(self._known)

    def add(self, names: Iterable[bytes]) -> None:
        """Remember valid proofs. If a proof cannot be recorded, a later run verifies it once more.

        :param names: 32 bytes each
        """
        new = [name for name in names if name not in self._known]
        self._known |= set(new)
        try:
            with open(os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as log:
                log.write(b"".join(name + self._mac(name, self._where) for name in new))
        except OSError as exc:
            raise StoreError("cannot be written", field=str(self._path), actual=exc.strerror,
                             hint="--no-cache verifies without it") from exc  # fmt: skip

    def _read(self) -> set[bytes]:
        known: set[bytes] = set()
        if not self._path.exists() or self._path.stat().st_size > MAX_BYTES:
            self._path.unlink(missing_ok=True)
            return known
        data = read_private(self._path, max_bytes=MAX_BYTES)
        for start in range(0, len(data) - _LINE + 1, _LINE):
            name, mac = data[start : start + _DIGEST], data[start + _DIGEST : start + _LINE]
            if any(hmac.compare_digest(mac, self._mac(name, where)) for where in self._counts):
                known.add(name)
            elif not hmac.compare_digest(mac, self._mac(name, b"elsewhere")):
                self.damaged += 1
        if len(data) % _LINE:  # an interrupted write: later lines would have wrong places
            with open(self._path, "r+b") as log:
                log.truncate(len(data) - len(data) % _LINE)
        return known

    def _mac(self, name: bytes, where: bytes) -> bytes:
        return hmac.digest(self._key, where + b"\0" + name, "sha256")


def _key_of(folder: Path) -> bytes:
    path = folder / _KEY
    if not path.exists():
        create_private(path, secrets.token_bytes(_DIGEST))
    return read_private(path, max_bytes=_DIGEST)


def _forget(folder: Path, own: Path) -> None:
    """Remove the files of the windows that were verified longest ago."""
    logs = sorted(
        (p for p in folder.glob("*.log") if p != own), key=lambda p: p.stat().st_mtime, reverse=True
    )
    for path in logs[FILES - 1 :]:
        path.unlink(missing_ok=True)


@lru_cache(maxsize=1)
def _program() -> bytes:
    """Digest of the verifying program: its release, its native core, and the Python of the proof systems. A change
    of any of them therefore invalidates the remembered results."""
    digest = hashlib.sha256(__version__.encode())
    native = Path(str(_native.__file__))
    for path in (native, *sorted(Path(__file__).parent.rglob("*.py"))):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()


def fingerprint(value: Value | Checker[Item]) -> bytes:
    """SHA-256 over a value of plain types and dataclasses of them, in one way only: each part with its type and length.

    :raises TypeError: another type, which would have to be written in one way first
    """
    digest = hashlib.sha256()
    _write(value, digest.update)
    return digest.digest()


def _write(value: Value | Checker[Item], put: Callable[[bytes], None]) -> None:
    if is_dataclass(value) and not isinstance(value, type):
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        parts: Sequence[Value] = [getattr(value, part.name) for part in fields(value)]
        put(f"d{len(name)}:{name}{len(parts)}:".encode())
    elif isinstance(value, list | tuple):
        parts = value
        put(f"l{len(parts)}:".encode())
    else:
        kind, data = _plain(value)
        put(f"{kind}{len(data)}:".encode() + data)
        return
    for part in parts:
        _write(part, put)


def _plain(value: Value | Checker[Item]) -> tuple[str, bytes]:
    if isinstance(value, bytes):
        return "b", value
    if isinstance(value, str):
        return "s", value.encode()
    if value is None or isinstance(value, bool | int):
        return "i", str(value).encode()
    if isinstance(value, dict):
        return "j", jcs(value)
    raise TypeError(f"a {type(value).__name__} has no fingerprint")
