"""The earlier windows that the option --previous names: window files, folders of a window, and folders of windows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from rag_audit._internal.canonical import parse_json, read_bytes, sha256
from rag_audit._internal.errors import EncodingError, RagAuditError
from rag_audit._internal.words import counted
from rag_audit.models.tiles import FOLDER
from rag_audit.models.windowfile import MAX_WINDOW_BYTES, MEDIA_TYPE, SIBLING, window_file
from rag_audit.verify.inputs import printable_name

_KIND = MEDIA_TYPE.partition(";")[0]
_MARK = re.compile(rb'"mediaType"\s{0,9}:\s{0,9}"' + re.escape(_KIND.encode()))
_CHUNK = 1 << 20
_OVERLAP = 256
"""More bytes than a match of `_MARK` has."""
_NAMED = 10
"""The most entries of one folder that a note names; it counts the others."""


@dataclass(frozen=True)
class Earlier:
    """The earlier windows, and the entries of given folders that are not read.

    :param windows: each window once
    :param skipped: the entries that are neither windows nor parts of a window
    """

    windows: tuple[Path, ...]
    skipped: tuple[Path, ...] = ()

    @property
    def notes(self) -> list[str]:
        """For each folder the entries that are not read, as a note of the report."""
        result = []
        for folder, paths in groupby(sorted(self.skipped, key=_place), key=_place):
            names = [printable_name(path) for path in paths]
            more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
            result.append(
                f"--previous: folder {printable_name(folder)} has {counted(len(names), 'entry', 'entries')} without"
                f" a window, not read: {', '.join(names[:_NAMED])}{more}"
            )
        return result


@dataclass
class _Contents:
    """The contents of a given folder, with all folders in it."""

    windows: list[Path] = field(default_factory=list)
    skipped: list[Path] = field(default_factory=list)
    read: set[str] = field(default_factory=set)

    def add(self, folder: Path, *, of_tiles: bool = False) -> None:
        """Sort the entries of a folder, in the order of their names. A broken link and an unreadable file count as
        windows, so that the verifier refuses them by name.

        :param of_tiles: whether the folder contains the tiles of a window
        """
        real = os.path.realpath(folder)
        if real in self.read:  # a link back to a folder that is read already
            return
        self.read.add(real)
        inside = sorted(folder.iterdir())
        folders = {path for path in inside if path.is_dir()}
        files = (path for path in inside if path not in folders)
        windows = {path for path in files if not path.exists() or _is_window(path)}
        for path in inside:
            if path in folders:
                self.add(path, of_tiles=bool(windows) and path.name == FOLDER)
            elif path in windows:
                self.windows.append(folder if path.name == "window.json" else path)
            elif not (of_tiles or (windows and SIBLING.match(path.name))):
                self.skipped.append(path)


def earlier_windows(given: Sequence[Path], window: Path | None) -> Earlier:
    """The windows that a user named as earlier ones, each once.

    Of a folder, each file with the content of a window is a window, whatever its name and however deep it lies; the
    result names every other entry. A folder without a window stays in the result, so that the verifier names it as
    missing. So does a provider's own folder of a window, which contains other files than windows.

    :param window: the window to verify, of which a folder of windows may contain a copy with the same bytes
    :raises EncodingError: a folder cannot be read
    """
    found: dict[str, Path] = {}
    skipped: list[Path] = []
    for path in given:
        contents = _Contents()
        private = os.path.lexists(path / "public") and not os.path.lexists(path / "window.json")
        if path.is_dir() and not private:
            try:
                contents.add(path)
            except (OSError, RecursionError) as exc:
                raise EncodingError(
                    "a folder of earlier windows cannot be read",
                    field=str(path),
                    expected="a readable folder",
                    actual=str(exc),
                    hint="give --previous each window.json by name, or a folder that you can read",
                ) from exc
        others = contents.windows != [path]
        for one in contents.windows or [path]:
            if not (contents.windows and others and window is not None and _same(one, window)):
                found.setdefault(os.path.realpath(window_file(one)), one)
        skipped += contents.skipped
    return Earlier(tuple(found.values()), tuple(dict.fromkeys(skipped)))


def _place(path: Path) -> Path:
    return path.parent


def _same(one: Path, other: Path) -> bool:
    """Whether two window files have the same bytes, which name the content of all parts in other files."""
    one, other = window_file(one), window_file(other)
    try:
        if os.path.samefile(one, other):
            return True
        if one.stat().st_size != other.stat().st_size:
            return False
        return sha256(read_bytes(one, max_bytes=MAX_WINDOW_BYTES)) == sha256(
            read_bytes(other, max_bytes=MAX_WINDOW_BYTES)
        )
    except (OSError, RagAuditError):  # the verifier names the file that it cannot read
        return False


def _is_window(path: Path) -> bool:
    """Whether the verifier has to read an entry of a folder as a window: its name or its content says so, or it is a
    JSON file that cannot be read."""
    named = path.suffix.lower() == ".json"
    if not path.is_file():
        return named
    if path.name.lower() == "window.json" or any(_MARK.search(part) for part in _parts(path)):
        return True
    if not named or SIBLING.match(path.name):
        return False
    try:
        value = parse_json(read_bytes(path, max_bytes=MAX_WINDOW_BYTES), source=path.name)
    except RagAuditError:
        return True
    return isinstance(value, dict) and str(value.get("mediaType")).startswith(_KIND)


def _parts(path: Path) -> Iterator[bytes]:
    """The bytes of a file in parts that overlap."""
    with path.open("rb") as handle:
        part = b""
        while more := handle.read(_CHUNK):
            part = part[-_OVERLAP:] + more
            yield part
