"""The pinned snarkjs in the place of what npx would fetch, for commands of the documentation."""

from __future__ import annotations

from pathlib import Path

from rag_audit._internal.node import find_node, npm_packages


def pinned_npx(folder: Path) -> Path:
    """A folder with a command `npx` that runs the snarkjs of the project's lock, under the name and version of the page."""
    folder.mkdir()
    cli = npm_packages() / "snarkjs" / "build" / "cli.cjs"
    command = folder / "npx"
    command.write_text(
        f'#!/bin/sh\ntest "$1 $2" = "--yes snarkjs@0.7.6" || exit 9\nshift 2\nexec {find_node().node} {cli} "$@"\n'
    )
    command.chmod(0o755)
    return folder
