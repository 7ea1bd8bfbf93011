"""The demo's folder. The demo removes an earlier demo's folder, and no text or file of a person."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from rag_audit._internal.errors import StoreError

WITNESSES = ("witness-a", "witness-b")
MARK = ".rag-audit-demo"
"""An empty file in the demo's folder, which distinguishes it from other folders."""
MADE = frozenset({"accounts", "provider", "verifier", *WITNESSES})
"""The entries of the demo's folder, besides `MARK`."""


def check_folder(directory: Path, docs: Path | None, *, keep: bool) -> None:
    """Refuse a folder that the demo must not remove.

    :param docs: the folder of a person's own texts
    :param keep: whether an earlier demo must stay
    :raises StoreError: the folder exists, and is no earlier demo's, contains other files or a text of `docs`, or is
        inside `docs`
    """
    if not directory.exists():
        return
    if keep or not (directory / MARK).exists():
        raise StoreError("the folder of the demo exists already", field=str(directory),
                         hint="remove the folder, or choose another --dir")  # fmt: skip
    for place in () if docs is None else _places(docs):
        if _inside(place, directory):
            raise StoreError("the demo would remove the texts that it is to read", field=f"--docs {place}",
                             expected=f"texts outside the folder of the demo, {directory}",
                             hint="move the texts, or choose another --dir")  # fmt: skip
    if docs is not None and _inside(directory, docs):
        raise StoreError("the files of the earlier demo would be read as texts", field=f"--dir {directory}",
                         expected=f"a folder outside the folder of the texts, {docs}",
                         hint="remove the folder, or choose another --dir")  # fmt: skip
    others = sorted(p.name for p in directory.iterdir() if not p.name.startswith(".") and p.name not in MADE)
    if others:
        raise StoreError("the folder contains files that no demo made", field=str(directory),
                         expected="an earlier demo's files only", actual=", ".join(others[:8]),
                         hint="move these files, or choose another --dir")  # fmt: skip


def empty_folder(directory: Path) -> None:
    """Remove an earlier demo, and make the folder of a new one."""
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)
    (directory / MARK).touch()


def _places(docs: Path) -> Iterator[Path]:
    """The folder of the texts, and each link to a file below it. Links to folders are not followed."""
    yield docs
    yield from (path for path in docs.rglob("*") if path.is_symlink() and path.is_file())


def _inside(path: Path, folder: Path) -> bool:
    """Whether the path is an existing folder's, or below it, after links and `..`."""
    found = Path(os.path.realpath(path))  # `Path.resolve` raises RuntimeError for a link to itself
    return folder.exists() and any(own.exists() and own.samefile(folder) for own in (found, *found.parents))
