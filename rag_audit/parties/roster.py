"""The provider's roster file: the accounts of its next window."""

from __future__ import annotations

from pathlib import Path

from rag_audit.encoding.canonical import jcs, read_json
from rag_audit.encoding.durable import replace_file
from rag_audit.errors import SchemaError, SizeError
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
    data = jcs([line.dump() for line in roster]) + b"\n"
    if len(data) > MAX_ROSTER_BYTES:
        raise SizeError("the roster would be larger than what is read of it", field=str(path),
                        expected=f"at most {MAX_ROSTER_BYTES} bytes", found=f"{len(data)}",
                        hint="remove accounts that are gone, or serve the others in a window of their own")  # fmt: skip
    replace_file(path, data)
    return roster
