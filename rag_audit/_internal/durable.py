"""Files that survive a crash, and files that only their owner may read.

After a crash at any point, a replaced file contains either the old or the new content. Once `replace_file` has
returned, it contains the new content: the temporary file and the directory are both synced.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from rag_audit._internal.errors import SetupError, SizeError, StoreError
from rag_audit._internal.regular import open_regular

PRIVATE_MODE = 0o600

Content = bytes | Callable[[BinaryIO], object]


def beside(path: Path, name: str) -> Path:
    """The file of a name in the folder of another file.

    :raises StoreError: the other path, such as ``.`` or ``/``, names a folder and no file
    """
    if not path.name:
        raise StoreError(
            "the path names no file", field=str(path), expected="a file's path", actual="a folder"
        )
    return path.with_name(name)


def replace_file(path: Path, data: Content, *, mode: int = 0o644) -> None:
    """Write `data` to `path` atomically and durably; an existing file is replaced.

    :param data: the content, or a function that writes it into the open file
    :raises StoreError: the file cannot be written (no such directory, full disk)
    """
    temporary = beside(path, f".{path.name}.{secrets.token_hex(8)}")
    try:
        try:
            _write_new(temporary, data, mode)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
        sync_directory(path.parent)
    except OSError as exc:
        raise StoreError("cannot be written", field=str(path), actual=exc.strerror or str(exc)) from exc


def create_private(path: Path, data: bytes) -> None:
    """Write a secret to a new file with mode 0600, durably.

    :raises StoreError: the file exists already or cannot be written
    """
    create_file(path, data, mode=PRIVATE_MODE)


def create_file(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a new file durably; an existing one stays as it is.

    :raises StoreError: the file exists already or cannot be written
    """
    try:
        _write_new(path, data, mode)
        sync_directory(path.parent)
    except FileExistsError as exc:
        raise StoreError(
            "the file exists already and is not overwritten", field=str(path), hint="choose another path"
        ) from exc
    except OSError as exc:
        with suppress(OSError):
            path.unlink()
        raise StoreError("cannot be written", field=str(path), actual=exc.strerror or str(exc)) from exc


def read_private(path: Path, *, max_bytes: int) -> bytes:
    """Read a secret, refusing a file that group or others may access.

    :raises SetupError: the file is missing, unreadable, or accessible to others than its owner
    :raises SizeError: more than `max_bytes`
    """
    try:
        with open_regular(path) as handle:
            mode = stat.S_IMODE(os.fstat(handle.fileno()).st_mode)
            if mode & (0o037 if _is_credential(path) else 0o077):
                raise SetupError(
                    "other users can access a secret file",
                    field=str(path),
                    expected="mode 0600",
                    actual=f"mode {mode:04o}",
                    hint=f"chmod 600 {path}, and replace the secret if other users may have read it",
                )
            data = handle.read(max_bytes + 1)
    except OSError as exc:
        raise SetupError("cannot be read", field=str(path), actual=exc.strerror or str(exc)) from exc
    if len(data) > max_bytes:
        raise SizeError("file too large", field=str(path), expected=f"at most {max_bytes} bytes")
    return data


def _is_credential(path: Path) -> bool:
    """Whether systemd gave the file to this service (`LoadCredential=`).

    Where the file system supports it, systemd lets the user of the service read a credential by an entry of an access
    control list, and `stat` then shows the mask of the list as the permission of the group (mode 0440).
    """
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    return bool(folder) and path.resolve().parent == Path(folder or "").resolve()


def sync_directory(path: Path) -> None:
    """Sync a directory, so that the names in it are durable."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_new(path: Path, data: Content, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as out:
        if isinstance(data, bytes):
            out.write(data)
        else:
            data(out)
        out.flush()
        os.fsync(out.fileno())
