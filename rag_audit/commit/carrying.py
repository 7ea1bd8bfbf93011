"""The placement of a new window's documents in tables that continue those of earlier windows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from rag_audit._internal.canonical import digest_hex, parse_json
from rag_audit._internal.errors import PolicyError, StoreError, brief
from rag_audit._internal.jsonlines import records, string
from rag_audit._internal.words import counted
from rag_audit.commit.document_table import (
    DocumentSizeError,
    Placement,
    TableCapacityError,
    place_documents,
    positions_by_document,
)
from rag_audit.commit.stored import load_stored
from rag_audit.commit.tables import CarriedTable, PlacedTable, key_of, load_table
from rag_audit.log.place import begun, ledger_rows
from rag_audit.mechanisms.base import SAMPLE, TableShape
from rag_audit.models.layout import Layout
from rag_audit.models.passage import Passage
from rag_audit.models.policy import Policy
from rag_audit.models.records import ColumnEntry, WindowHeader, WindowTrailer, parse_entry

GIVEN_UP = "--given-up, or documents.given_up in provider.toml"
"""The option with the documents that never return, in words."""
_SHOWN = 10
"""The number of documents that a message names."""


@dataclass(frozen=True)
class Continuing:
    """The windows whose tables a new window continues.

    :param folders: the private folders of earlier windows of the chain, the latest first, each with the window before
        it unless it is the last
    :param say: called with a line for people for each tenant with documents that wait
    :param given_up: for each tenant the keys of documents that never return (`load_given_up`)
    """

    folders: Sequence[Path] = ()
    say: Callable[[str], None] = lambda line: None
    given_up: Mapping[str, Set[str]] = field(default_factory=dict)


FIRST = Continuing()
"""For the first window of a chain, and for windows that continue no table."""


def load_given_up(path: Path | None) -> dict[str, Set[str]]:
    """The documents that a provider gave up, by tenant, from JSON Lines ``{"tenant": "..", "document": ".."}``.

    :param path: the file; None if no document was given up
    :raises EncodingError: the file is unreadable, or a line is not JSON
    :raises SchemaError: a line lacks a tenant or a document
    """
    result: defaultdict[str, set[str]] = defaultdict(set)
    for place, _, line in () if path is None else records(path):
        result[string(line, "tenant", place)].add(string(line, "document", place))
    return {**result}


def place_tables(
    policy: Policy, documents: Mapping[str, Sequence[Passage]], continuing: Continuing
) -> tuple[dict[str, PlacedTable], dict[str, Sequence[Passage]]]:
    """Place the documents of every tenant with a document table.

    A document that gets no row waits: the window leaves it out.

    :returns: the tables, and all tenants' passages without those of documents that wait
    :raises DocumentSizeError: a document has more positions than the policy permits
    :raises TableCapacityError: there are more documents than the table has room for
    :raises PolicyError: the latest sample of the tenant has no table, or a table of another shape; or the window
        would replace the row of an absent document
    """
    placed, kept, read = {}, dict(documents), earlier_windows()
    for part in policy.tenants:
        shape = policy.mechanism(part).table
        if shape is None:
            continue
        own = documents[part.tenant]
        previous = carried_from(continuing.folders, part.tenant, read) if shape.persistent else None
        constants = (part.capacity, policy.mechanism(part).sampled_share)
        if previous is not None and previous.constants != constants:
            raise PolicyError(
                "the tenant's capacity or share of sampled documents differs from that of the table before",
                field=f"policy.tenants.{part.tenant}",
                expected="capacity {}, keep {}".format(*previous.constants),
                actual="capacity {}, keep {}".format(*constants),
                hint="keep both numbers in a chain of windows, or start another chain (another origin)",
            )
        keys = [key_of(passage) for passage in own]
        counts, before = positions_by_document(keys), None if previous is None else previous.table
        try:
            placement = place_documents(
                shape, counts, before, given_up=continuing.given_up.get(part.tenant, frozenset())
            )
        except (DocumentSizeError, TableCapacityError, PolicyError) as exc:
            exc.field = f"{part.tenant}: {exc.field}"
            raise
        if placement.lost:
            raise PolicyError(
                "the window would replace the rows of absent documents, which would draw second bits if they return",
                field=f"policy.tenants.{part.tenant}.documents.rows",
                expected=f"at least {shape.fresh_rows} rows that never had a document (--fresh-rows)",
                actual=f"{(shape.fresh_rows or 0) - len(placement.lost)} of the {shape.rows} rows (--documents);"
                f" {_listed(placement.lost)} would lose a row",
                hint=f"give up documents that never return ({GIVEN_UP}), or start another chain (another origin),"
                " with a policy with more rows (--documents)",
            )
        if placement.waiting:
            waiting = set(placement.waiting)
            kept[part.tenant] = [d for d, key in zip(own, keys, strict=True) if key not in waiting]
            continuing.say(f"{part.tenant}: {_waiting(shape, placement)}: {_listed(placement.waiting)}")
        placed[part.tenant] = PlacedTable(placement.table, previous)
    return placed, kept


def _waiting(shape: TableShape, placement: Placement) -> str:
    """How many documents wait, and why."""
    wait = counted(len(placement.waiting), "document waits", "documents wait")
    if not placement.full:
        return (f"{wait} for the next window, since each window has room for {shape.fresh_rows} new documents"
                " (--fresh-rows)")  # fmt: skip
    absent = placement.absent
    removed = f", {_listed(absent)} among them" if absent else ""
    free = f"give up removed documents that never return ({GIVEN_UP}), or " if absent else ""
    return (
        f"WARNING: {wait}, and no later window of this chain admits a new document: it has room for {shape.documents}"
        f" documents in all its windows (--documents {shape.rows} less --fresh-rows {shape.fresh_rows}), and a removed"
        f" document keeps its row{removed}. To admit them, {free}start a chain with another origin and more"
        " --documents. Left out"
    )


def _listed(keys: Sequence[str]) -> str:
    shown = ", ".join(brief(key) for key in keys[:_SHOWN])
    return shown if len(keys) <= _SHOWN else f"{shown} and {len(keys) - _SHOWN} more"


def earlier_windows() -> Callable[[Path], _Earlier]:
    """A function that reads the window of a folder, each folder once: a ledger can be long, and all tenants need it."""
    return cache(_Earlier.of)


def carried_from(
    folders: Sequence[Path], tenant: str, read: Callable[[Path], _Earlier] | None = None
) -> CarriedTable | None:
    """The table that the next window of a tenant continues: the table of the latest earlier window with a `sample`
    entry of the tenant, abandoned or not. None if no window of the chain has one.

    :param folders: `Continuing.folders`
    :param read: `earlier_windows()`, which several tenants share
    :raises PolicyError: the latest `sample` entry of the tenant has no table, or earlier folders are needed
    :raises StoreError: a folder's table is missing or was altered
    """
    for number, folder in enumerate(folders):
        stored = (read or _Earlier.of)(folder)
        part = stored.policy.tenant(tenant)
        column = stored.columns.get(tenant)
        if column is not None and column.carried is None:
            raise PolicyError(
                "the latest earlier window with a sample of the tenant has no document table",
                field=f"policy.tenants.{tenant}.documents",
                expected=f"a table in window {stored.header.window}, since documents keep their bits",
                actual="none",
                hint="fresh_rows = null (--fresh-bits) draws all bits anew in each window; or start another chain",
            )
        sampled = part is not None and stored.policy.mechanism(part).sample is not None
        if column is None and sampled and stored.drew:
            raise PolicyError(
                "an earlier window has a beacon, which decided the bits of its table, and no sample of the tenant",
                field=f"policy.tenants.{tenant}.documents",
                expected=f"a sample entry in window {stored.header.window}",
                actual="none",
                hint="close that window with `rag-audit provider close --abandon`, which appends the sample entry; if"
                " it is closed, start another chain (another origin)",
            )
        if part is not None and part.documents is not None:
            own = load_table(folder, tenant, stored.digest)
            if column is None:
                if own.previous is not None or stored.header.previous is None:
                    return own.previous
            elif own.proved is None or own.proved[0].digest != column.carried:
                raise StoreError("the table differs from the sample entry of its window",
                                 field=str(Layout(folder).table(tenant)), expected=column.carried)  # fmt: skip
            else:
                return CarriedTable(
                    stored.header.window,
                    stored.digest,
                    (part.capacity, stored.policy.mechanism(part).sampled_share),
                    own.table,
                    own.key,
                    *own.proved,
                )
        if stored.header.previous is None:
            return None
        if number == len(folders) - 1:
            raise PolicyError(
                "the folders of earlier windows are needed for the tenant's document table",
                field=f"documents.{tenant}",
                expected=f"the windows before {stored.header.window}",
                actual="their folders are not named",
            )
    return None


def latest_headers(folder: Path) -> list[str | None]:
    """The headers that the next window may name as the window before: that of the latest window, or the one that this
    window names, if no witness knows the latest window.

    :returns: digests; the second is None if the latest window names none
    """
    stored = _Earlier.of(folder)
    before = stored.header.previous
    return [stored.digest, None if before is None else before.header]


@dataclass(frozen=True)
class _Earlier:
    """An earlier window, as far as its successor's tables depend on it."""

    header: WindowHeader
    digest: str
    policy: Policy
    columns: Mapping[str, ColumnEntry]
    drew: bool
    """whether the ledger shows that the window's beacon was drawn"""

    @classmethod
    def of(cls, folder: Path) -> _Earlier:
        layout = Layout(folder)
        if not layout.commitment.exists() or not begun(layout.ledger, layout.ledger_place):
            raise PolicyError("the folder contains no window", field=str(folder),
                              hint="name the folder of the previous window")  # fmt: skip
        stored = load_stored(folder)
        entries = [
            parse_entry(parse_json(body, source="ledger"), field="ledger")
            for body, _ in ledger_rows(layout.ledger, layout.ledger_place)
        ]
        return cls(
            stored.header,
            digest_hex(stored.header.dump()),
            Policy.parse(stored.policy, field="commitment.json.policy"),
            {e.tenant: e for e in entries if isinstance(e, ColumnEntry) and e.type == SAMPLE},
            any(not isinstance(e, WindowHeader | WindowTrailer) for e in entries),
        )
