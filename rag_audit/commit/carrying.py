"""The placement of a new window's documents in tables that continue those of earlier windows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
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
from rag_audit.commit.tables import (
    CarriedTable,
    ListedRows,
    PlacedTable,
    WindowTable,
    key_of,
    load_table,
    store_table,
)
from rag_audit.log.place import begun, ledger_rows
from rag_audit.mechanisms.base import SAMPLE, TableShape, constants_text
from rag_audit.models.layout import Layout
from rag_audit.models.passage import Passage
from rag_audit.models.policy import Policy
from rag_audit.models.records import (
    ColumnEntry,
    QueryRecord,
    TenantEntry,
    WindowHeader,
    WindowTrailer,
    parse_entry,
)

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
        constants = policy.chain_constants(part.tenant)
        if previous is not None and previous.pools != policy.mechanism(part).pools:
            raise PolicyError(
                "the tenant's mechanism differs from that of the table before",
                field=f"policy.tenants.{part.tenant}.mechanism",
                expected="pooled-listing" if previous.pools else "sampling by document",
                actual=part.mechanism,
                hint="keep the mechanism in a chain of windows, or start another chain (another origin)",
            )
        if previous is not None and previous.constants != constants:
            raise PolicyError(
                "a setting of the tenant that is constant in a chain differs from that of the table before",
                field=f"policy.tenants.{part.tenant}",
                expected=constants_text(previous.constants),
                actual=constants_text(constants),
                hint="keep these settings in a chain of windows, or start another chain (another origin)",
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


def with_listed_rows(
    folder: Path, policy: Policy, tenants: Sequence[TenantEntry], earlier: Sequence[Path]
) -> list[TenantEntry]:
    """The entries of the tenants of a prepared window, once the window before has ended: with pooled listing a window
    begins with the listed rows at the end of the window before, and was prepared while that window answered. The
    function stores these rows with the window's own table. A second call has the same result.

    :param earlier: `Continuing.folders`
    :raises PolicyError: a table continues another table than the latest one, or the window before has not ended
    """
    result, read = [], earlier_windows()
    for entry in tenants:
        part = policy.tenant(entry.tenant)
        if part is None or entry.table is None or not policy.mechanism(part).persists:
            result.append(entry)
            continue
        latest = carried_from(earlier, entry.tenant, read)
        now, then = latest and latest.entry(), entry.table.previous
        if (now and (now.header, now.carried)) != (then and (then.header, then.carried)):
            raise PolicyError("the document table continues another table than the latest one",
                              field=f"tenants.{entry.tenant}.table.previous", expected=now and now.window,
                              actual=then and then.window,
                              hint="prepare the window again, which reuses the index")  # fmt: skip
        if latest is not None and policy.mechanism(part).pools:
            require_ended(entry.tenant, latest)
            own = load_table(folder, entry.tenant)
            store_table(folder, entry.tenant, replace(own, previous=latest))
            table = entry.table.model_copy(update={"previous": now})
            entry = entry.model_copy(update={"table": table})
        result.append(entry)
    return result


def require_ended(tenant: str, before: CarriedTable) -> None:
    """Return if the listed rows at the end of the window before are known.

    :raises PolicyError: the window has not ended
    """
    if before.listed is None:
        raise PolicyError(
            "the listed rows of the window before are not final",
            field=f"tenants.{tenant}.table.previous",
            expected=f"window {before.window} with a window trailer",
            actual="none",
            hint="close that window with `rag-audit provider close`",
        )


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
                mechanism, last = stored.policy.mechanism(part), stored.last.get(tenant)
                ended = stored.ended and mechanism.pools
                return CarriedTable(
                    stored.header.window,
                    stored.digest,
                    stored.policy.chain_constants(tenant),
                    mechanism.pools,
                    own.table,
                    own.key,
                    *own.proved,
                    _listed_at_the_end(folder, tenant, own, last) if ended else None,
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


def _listed_at_the_end(folder: Path, tenant: str, table: WindowTable, last: QueryRecord | None) -> ListedRows:
    """The listed rows at the end of a window, which its closing stored with its table.

    :param last: the tenant's last record of the window
    :raises StoreError: the stored rows are missing, or are not those of the last record
    """
    expected = None if last is None else last.listed_rows
    if table.ended is None or table.ended.digest != expected:
        raise StoreError(
            "the stored listed rows are not those of the tenant's last record in the window",
            field=str(Layout(folder).table(tenant)),
            expected=expected or "the rows at the beginning of the window, which has no record of the tenant",
            actual="none" if table.ended is None else table.ended.digest,
            hint="restore the file from a copy of the window's folder, or start another chain (another origin)",
        )
    return table.ended


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
    last: Mapping[str, QueryRecord]
    """the last query record of each tenant"""
    ended: bool
    """whether the ledger has the window trailer"""

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
            {e.tenant: e for e in entries if isinstance(e, QueryRecord)},
            isinstance(entries[-1], WindowTrailer),
        )
