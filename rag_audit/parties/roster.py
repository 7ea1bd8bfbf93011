"""The provider's roster file: the accounts of its next window."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from rag_audit.encoding.canonical import jcs, read_json
from rag_audit.encoding.durable import replace_file
from rag_audit.errors import SchemaError, SizeError
from rag_audit.formats.enrolling import EnrolmentRequest
from rag_audit.formats.records import RosterEntry

MAX_ROSTER_BYTES = 16 << 20


def load_roster(path: Path) -> list[RosterEntry]:
    """Read a roster file, which is a JSON list of roster lines; an absent file is an empty roster."""
    if not path.exists():
        return []
    value = read_json(path, max_bytes=MAX_ROSTER_BYTES)
    if not isinstance(value, list):
        raise SchemaError("the file is not a roster", field=str(path), expected="a JSON list")
    return [RosterEntry.parse(line, field=f"{path.name}[{i}]") for i, line in enumerate(value)]


def add_to_roster(path: Path, entry: RosterEntry) -> list[RosterEntry]:
    """Add a line to a roster file, in which ids and keys stay unique.

    :raises SchemaError: the id or the key is on the roster already
    :raises SizeError: the file would exceed what is read of it
    """
    roster = load_roster(path)
    for line in roster:
        if entry.account == line.account or entry.key == line.key:
            raise SchemaError("the account is on the roster already", field=str(path), found=line.account)
    roster.append(entry)
    _save(path, roster)
    return roster


def admit(
    path: Path, requests: Iterable[EnrolmentRequest], *, lost: Collection[str] = ()
) -> tuple[list[str], list[str]]:
    """Put the lines of approved requests (`EnrolmentRequest.check`) on a roster file, all of them or none.

    :param lost: accounts that have lost their key: the provider vouches that they are who asks
    :returns: the accounts that are new, and those whose key is replaced
    :raises SchemaError: an account is on the roster under a key that did not sign the request, or a key is taken
    :raises SizeError: the file would exceed what is read of it
    """
    lines = {line.account: line for line in load_roster(path)}
    owners = {line.key: account for account, line in lines.items()}
    added: list[str] = []
    replaced: list[str] = []
    for request in requests:
        line, old = request.roster_entry(), lines.get(request.account)
        if old == line:
            continue  # admitted already
        if (owner := owners.get(line.key)) is not None:
            raise SchemaError("the key is on the roster already", field=request.account, found=owner)
        if old is None:
            added.append(line.account)
        elif old.tenant != line.tenant:
            raise SchemaError("the account is another tenant's", field=request.account, expected=old.tenant,
                              found=line.tenant)  # fmt: skip
        elif request.previous == old.key or line.account in lost:
            replaced.append(line.account)
            del owners[old.key]
        else:
            raise SchemaError("the account is on the roster under another key", field=request.account,
                              expected="a request that the old key has signed too",
                              hint="`--lost` replaces the line of an account that has lost its key")  # fmt: skip
        lines[line.account], owners[line.key] = line, line.account
    _save(path, list(lines.values()))
    return added, replaced


def _save(path: Path, roster: Sequence[RosterEntry]) -> None:
    data = jcs([line.dump() for line in roster]) + b"\n"
    if len(data) > MAX_ROSTER_BYTES:
        raise SizeError("the roster would be larger than what is read of it", field=str(path),
                        expected=f"at most {MAX_ROSTER_BYTES} bytes", found=f"{len(data)}",
                        hint="remove accounts that are gone, or serve the others in a window of their own")  # fmt: skip
    replace_file(path, data)
