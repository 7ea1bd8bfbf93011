"""Replies in a file, each stored when it arrives, so that an interrupted run resumes at the interruption."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from rag_audit._internal.errors import StoreError
from rag_audit.lab.attacks.interface import Reply

T = TypeVar("T")


def load(path: Path, read: Callable[[dict[str, Any]], T]) -> dict[str, T]:
    """The entries of a file by their keys. An unfinished last line, which a crash interrupted, is removed.

    :param read: an entry of its JSON object
    :raises StoreError: a line is damaged; the error names it
    """
    known: dict[str, T] = {}
    if not path.exists():
        return known
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        path.write_bytes(whole)
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            value: dict[str, Any] = json.loads(line)
            known[str(value["key"])] = read(value)
        except (ValueError, KeyError, TypeError, RecursionError) as exc:
            raise StoreError("a stored reply is damaged", field=f"{path}, line {number}", actual=str(exc)[:80],
                             hint="delete this line, and repeat the command") from exc  # fmt: skip
    return known


def append(path: Path, value: dict[str, Any]) -> None:
    """Add an entry, which is on the disk afterwards."""
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(value) + "\n")
        file.flush()
        os.fsync(file.fileno())


def reply_of(value: dict[str, Any]) -> Reply:
    """The reply of an entry."""
    logs = value["logs"]
    return Reply(str(value["text"]), None if logs is None else tuple(map(float, logs)))


def entry_of(key: str, reply: Reply) -> dict[str, Any]:
    """The entry of a reply."""
    logs = reply.log_probabilities
    return {"key": key, "text": reply.text, "logs": None if logs is None else list(logs)}
