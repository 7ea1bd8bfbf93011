"""The earlier windows that the option --previous names: window files, folders of a window, and folders of windows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_audit.models.windowfile import window_file

PREVIOUS = (
    "an earlier window, to check the chain: its window.json or folder, or a folder of windows in any order; repeat for"
    " each"
)
_SIBLING = re.compile(r"[0-9a-f]{64}\.json\Z")


def earlier_windows(given: Sequence[Path], window: Path | None) -> tuple[Path, ...]:
    """The windows that a user named as earlier ones, each once.

    A folder without window.json is a folder of windows: its files that end in .json, and its folders with window.json
    or public/window.json. A folder with none of these stays in the result, so that the verifier names it as missing. So
    does a provider's own folder of a window, which contains other files than windows.

    :param window: the window to verify, which a folder of windows may contain too
    """
    own = None if window is None else window_file(window).resolve()
    found: dict[Path, Path] = {}
    for path in given:
        alone = not path.is_dir() or any(at.exists() for at in (window_file(path), path / "public"))
        inside = [] if alone else [*_windows_in(path)]
        for one in inside or [path]:
            place = window_file(one).resolve()
            if not inside or place != own:
                found.setdefault(place, one)
    return tuple(found.values())


def _windows_in(folder: Path) -> Iterator[Path]:
    """The windows in a folder, in the order of their names."""
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            yield from [at for at in (path, path / "public") if (at / "window.json").is_file()][:1]
        elif path.suffix == ".json" and _SIBLING.match(path.name) is None:
            yield path
