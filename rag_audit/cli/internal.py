"""The handler of unexpected exceptions: such an exception becomes exit code 70 and a report without data.

No program may read it as a verdict. Python itself would exit with 1, and in this package 1 means a proven false check.
"""

from __future__ import annotations

import hashlib
import platform
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import platformdirs

from rag_audit import __version__
from rag_audit._internal.durable import replace_file
from rag_audit._internal.errors import RagAuditError

WHERE = (
    "send the report to the maintainers of your copy of rag-audit, and in private if this fault might make a false"
    " window pass (SECURITY.md)"
)
_MAX_FRAMES = 60
_MAX_CAUSES = 8


def write_report(error: BaseException, command: Sequence[str]) -> tuple[str, Path | None]:
    """Write a report of an exception: the command's name, and the places in the code where it was raised.

    The report has the exceptions' types and places in the code, but no message, value or argument, since any of them
    may contain a secret or a person's text.

    :param command: the names of command and subcommands, without arguments
    :returns: the report, and its file, or None where no file could be written
    """
    lines = [
        f"rag-audit {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}",
        f"command: {' '.join(command)}",
        *_chain(error),
    ]
    text = "\n".join(lines) + "\n"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = Path(platformdirs.user_cache_dir("rag-audit")) / "reports" / f"{digest}.txt"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, text.encode(), mode=0o600)
    except (OSError, RagAuditError):
        return text, None
    return text, path


def _chain(error: BaseException) -> Iterator[str]:
    cause: BaseException | None = error
    for number in range(_MAX_CAUSES):
        if cause is None:
            return
        yield f"{'caused by ' if number else ''}{type(cause).__module__}.{type(cause).__qualname__}"
        frames = [
            f"  {_place(frame.f_code.co_filename)}:{line} in {frame.f_code.co_name}"
            for frame, line in traceback.walk_tb(cause.__traceback__)
        ]
        if len(frames) > _MAX_FRAMES:
            half = _MAX_FRAMES // 2
            frames = [*frames[:half], f"  {len(frames) - 2 * half} places omitted", *frames[-half:]]
        yield from frames
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)


def _place(filename: str) -> str:
    """A code file's path within its package, which does not reveal where the package is installed."""
    path = Path(filename)
    for folder in sorted((Path(p) for p in sys.path if p), key=lambda p: len(p.parts), reverse=True):
        if path.is_relative_to(folder):
            return path.relative_to(folder).as_posix()
    return path.name
