"""Opens regular files for reading, and refuses all other kinds of files."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
}


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading. The function refuses all other kinds: a FIFO or a device could block for ever.

    :raises OSError: the path cannot be opened, or is not a regular file; `strerror` names its kind
    """
    _check_regular(os.stat(path).st_mode, path)
    # The path may name another file by now, so it is opened without blocking, and checked a second time.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    try:
        _check_regular(os.fstat(handle).st_mode, path)
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _check_regular(mode: int, path: Path) -> None:
    if not stat.S_ISREG(mode):
        kind = _KINDS.get(stat.S_IFMT(mode), "something else")
        raise OSError(errno.EINVAL, f"the path is not a regular file but {kind}", str(path))
