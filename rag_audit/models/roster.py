"""The provider's roster file: the accounts of its next window."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from rag_audit._internal.canonical import Json, jcs, read_json
from rag_audit._internal.durable import beside, replace_file
from rag_audit._internal.errors import RagAuditError, SchemaError, SizeError, StoreError
from rag_audit._internal.lock import locked
from rag_audit.models.enrolling import EnrolmentRequest
from rag_audit.models.records import RosterEntry

MAX_ROSTER_BYTES = 16 << 20


def load_roster(path: Path) -> list[RosterEntry]:
    """Read a roster file, which is a JSON list of roster lines; an absent file is an empty roster."""
    if not path.exists():
        return []
    value = read_json(path, max_bytes=MAX_ROSTER_BYTES)
    if not isinstance(value, list):
        raise SchemaError("the file is not a roster", field=str(path), expected="a JSON list")
    return parse_lines(value, field=path.name)


def parse_lines(value: Json, *, field: str) -> list[RosterEntry]:
    """The roster lines of a file that has one line, or a list of them."""
    if not isinstance(value, list):
        return [RosterEntry.parse(value, field=field)]
    return [RosterEntry.parse(line, field=f"{field}[{i}]") for i, line in enumerate(value)]


def signed_by_roster(request: EnrolmentRequest, line: RosterEntry | None) -> bool:
    """Whether a request with valid signatures (`EnrolmentRequest.check`) replaces the key of its account's roster line.
    Only the holder of that key can make such a request.

    :param line: the account's line on the roster, or None
    """
    return line is not None and request.previous == line.key


class RosterFile:
    """A roster file. The object reloads it after a change. Safe to use from several threads.

    Writers replace the file by a new one (`replace_file`), so inode, size and time distinguish the two.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._state: tuple[int, int, int] | None = None
        self._lines: dict[str, RosterEntry] = {}

    def line(self, account: str) -> RosterEntry | None:
        """The account's line, or None.

        :raises StoreError: the file cannot be read, or is no roster
        """
        with self._lock:
            try:
                result = self._path.stat()
            except FileNotFoundError:
                return None
            except OSError as exc:
                raise StoreError.of_os_error(exc, "the roster cannot be read", field=self._path) from exc
            state = (result.st_ino, result.st_size, result.st_mtime_ns)
            if state != self._state:
                try:
                    self._lines = {line.account: line for line in load_roster(self._path)}
                except RagAuditError as exc:
                    raise StoreError(
                        "the roster cannot be read", field=str(self._path), actual=str(exc)
                    ) from exc
                self._state = state
            return self._lines.get(account)


def add_to_roster(path: Path, *entries: RosterEntry) -> list[RosterEntry]:
    """Add all lines to a roster file, or none. Ids and keys must stay unique.

    :raises SchemaError: an id or a key is on the roster already
    :raises SizeError: the file would exceed the size that `load_roster` accepts
    """
    with locked(lock_of(path)):
        roster = load_roster(path)
        ids, keys = {line.account for line in roster}, {line.key: line.account for line in roster}
        for entry in entries:
            if entry.account in ids or entry.key in keys:
                actual = entry.account if entry.account in ids else keys[entry.key]
                raise SchemaError("the account is already on the roster", field=str(path), actual=actual)
            ids.add(entry.account)
            keys[entry.key] = entry.account
            roster.append(entry)
        _save(path, roster)
    return roster


def lock_of(path: Path) -> Path:
    """The lock file for changes of a roster."""
    return beside(path, f".{path.name}.lock")


def admit(
    path: Path, requests: Iterable[EnrolmentRequest], *, lost: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """Put the lines of approved requests (`EnrolmentRequest.check`) on a roster file, all of them or none.

    :param lost: accounts that have lost their key; for them the provider vouches for the identity of the requester
    :returns: the new accounts, and the accounts with a replaced key
    :raises SchemaError: an account is on the roster under a key that did not sign the request, or a key is taken
    :raises SizeError: the file would exceed the size that `load_roster` accepts
    """
    with locked(lock_of(path)):
        return _admit(path, requests, lost)


def _admit(
    path: Path, requests: Iterable[EnrolmentRequest], lost: Collection[str]
) -> tuple[list[str], list[str]]:
    lines = {line.account: line for line in load_roster(path)}
    owners = {line.key: account for account, line in lines.items()}
    added: list[str] = []
    replaced: list[str] = []
    for request in requests:
        line, old = request.roster_entry(), lines.get(request.account)
        if old == line:
            continue  # admitted already
        if (owner := owners.get(line.key)) is not None:
            raise SchemaError("the key is already on the roster", field=request.account, actual=owner)
        if old is None:
            added.append(line.account)
        elif old.tenant != line.tenant:
            raise SchemaError("the account belongs to another tenant", field=request.account, expected=old.tenant,
                              actual=line.tenant)  # fmt: skip
        elif request.previous == old.key or line.account in lost:
            replaced.append(line.account)
            del owners[old.key]
        else:
            raise SchemaError("the account is on the roster with another key", field=request.account,
                              expected="a request with a signature of the old key",
                              hint="use `--lost` if the account lost its old key")  # fmt: skip
        lines[line.account], owners[line.key] = line, line.account
    _save(path, list(lines.values()))
    return added, replaced


def _save(path: Path, roster: Sequence[RosterEntry]) -> None:
    data = jcs([line.dump() for line in roster]) + b"\n"
    if len(data) > MAX_ROSTER_BYTES:
        raise SizeError("the roster would exceed its limit", field=str(path),
                        expected=f"at most {MAX_ROSTER_BYTES} bytes", actual=f"{len(data)}",
                        hint="remove accounts that left, or serve some accounts in another window")  # fmt: skip
    replace_file(path, data)
