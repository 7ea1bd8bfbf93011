"""`header.tables`: which document table each tenant's table continues.

A proof of a sample shows that the table keeps the bits of the table that the window header names. This group checks
that the named table is the latest one of the chain: a provider that skips a table, or starts anew, draws a second bit
for a document. A window that its provider abandoned counts, and must have a sample if it has any entry between header
and trailer, since its beacon decided the bits.

The figures of a tenant with persistent bits are figures of the chain. They hold only if this run saw every window back
to the service's first one, and if no window of the chain answered accounts of the tenant without the table: one exact
answer shows what the bits hide.

A table of a tenant with pooled listing also continues the listed rows of that window: those in the commitment of the
tenant's last record there. The group verifies all records of the tenant in the supplied windows, because a record
without a proof could contain an exact answer or end the window with any set, and no verdict of an abandoned window
passes. In sampled mode, which excludes pooled listing, a note states that it does not verify them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

from rag_audit._internal.canonical import digest_hex
from rag_audit._internal.errors import RagAuditError
from rag_audit.mechanisms.base import SAMPLE, Mechanism, TableShape, constants_text
from rag_audit.models.header import compared
from rag_audit.models.policy import Policy
from rag_audit.models.records import ColumnEntry, PreviousTable, TableEntry, WindowHeader, WindowTrailer
from rag_audit.models.windowfile import WindowFile
from rag_audit.verify.case import Case, DocumentFigures, Status
from rag_audit.verify.checks import columns, header, ledger, proof

CHECK = "header.tables"
OpenEarlier = Callable[[WindowFile], Case]
"""Parses an earlier window as a case of its own, with the trust file of this one."""


def check(case: Case, open_earlier: OpenEarlier) -> None:
    """Run the group, and store the figure `documents`.

    :raises RagAuditError: a supplied earlier window is not well-formed
    """
    shapes = {t.tenant: case.policy.mechanism(t).table for t in case.policy.tenants}
    tables = {name: entry.table for name, entry in case.tenants.items()}
    sampled = [t.tenant for t in case.policy.tenants if SAMPLE in case.policy.mechanism(t).columns]
    none = not any(shapes.values()) and not any(tables.values())
    if none and not (sampled and case.previous):
        return
    with case.guarding(CHECK):
        for name, table in tables.items():
            if (table is None) != (shapes.get(name) is None):
                expected = (
                    "no table" if shapes.get(name) is None else "a table, since the policy has documents"
                )
                case.report(
                    CHECK,
                    False,
                    f"{name}: {expected}",
                    "a table" if table else "none",
                    f"tenants.{name}.table",
                )
                return
            if table is not None and not _listed_fits(case, name, table):
                return
        earlier, others = _Earlier.all(case, open_earlier)
        for name in sampled:
            # No figure of noise with a table depends on a bit.
            free = (shape := shapes[name]) and (shape.persistent or case.policy.mechanism_of(name).noised)
            if not (free or _no_table_before(case, name, earlier)):
                return
        if none:
            return
        figures: dict[str, DocumentFigures] = {}
        persists = any(case.policy.mechanism(t).persists for t in case.policy.tenants)
        unproven = _missing(case, earlier) if persists else []
        for name, shape in shapes.items():
            if shape is None or (table := tables.get(name)) is None:
                continue
            figures[name] = _figures(shape, table, case.header)
            if not _follow(case, name, shape, table, earlier, figures[name]):
                return
            if shape.persistent:
                unproven += _answered_otherwise(name, case.policy.mechanism_of(name).name, earlier)
            if shape.persistent and not _continued_once(case, name, earlier, others):
                return
        case.figures["documents"] = figures
        words = [f"{name}: {_words(figure)}" for name, figure in figures.items()]
        # The exclusion factor counts one bit of a document, which only the tables before this one can show.
        case.require(CHECK, not unproven, "each table continues the latest table of its tenant in the chain",
                     "; ".join(unproven or words))  # fmt: skip


def _missing(case: Case, earlier: Sequence[_Earlier]) -> list[str]:
    """The first window of the chain that the verifier does not have, in words; empty if the supplied windows reach the
    service's first window."""
    oldest = earlier[-1].case.header if earlier else case.header
    if oldest.previous is None:
        return []
    return [
        f"the window before {oldest.window} was not supplied: supply every window back to the first one with --previous"
        f" (header {oldest.previous.header})"
    ]


def _answered_otherwise(tenant: str, mechanism: str, earlier: Sequence[_Earlier]) -> list[str]:
    """Each supplied window of the chain that answered accounts of a tenant with persistent bits without its table.

    :param mechanism: the tenant's mechanism in the window under verification
    """
    result = []
    for window in earlier:
        own = window.mechanism(tenant)
        other = "unknown" if own is None else own.name
        if tenant in window.answered and not (other == mechanism and window.persists(tenant)):
            table = "" if other != mechanism else ", without a table that keeps bits"
            result.append(
                f"window {window.case.header.window} answered accounts of {tenant} under mechanism"
                f" {other}{table}: no figure holds for the chain"
            )
    return result


def _listed_fits(case: Case, tenant: str, table: TableEntry) -> bool:
    """Check that only a tenant with pooled listing names listed rows of the window before.

    :returns: whether all is well
    """
    named = None if table.previous is None else table.previous.listed
    if named is None or case.policy.mechanism_of(tenant).pools:
        return True
    return case.report(CHECK, False, f"{tenant}: no listed rows, since the tenant has no pooled listing",
                       f"{named[:16]}..", f"tenants.{tenant}.table.previous.listed")  # fmt: skip


def _figures(shape: TableShape, table: TableEntry, opened: WindowHeader) -> DocumentFigures:
    return {
        "rows": shape.rows,
        "positions_per_document": shape.positions_per_document,
        "fresh_rows": shape.fresh_rows,
        "continues": None if table.previous is None else table.previous.window,
        # Without a window before there is no table before.
        "first": opened.window if opened.previous is None or not shape.persistent else None,
    }


def _words(figure: DocumentFigures) -> str:
    if figure["fresh_rows"] is None:
        return "each window draws all bits"
    last = "its first table" if figure["continues"] is None else f"the table of window {figure['continues']}"
    return f"{last}, checked back to the first table of the chain"


def _follow(
    case: Case,
    tenant: str,
    shape: TableShape,
    table: TableEntry,
    earlier: Sequence[_Earlier],
    figure: DocumentFigures,
) -> bool:
    """Check a tenant's table against the tables of the supplied windows, back to the first one that it depends on.

    :param earlier: the windows before, the nearest first
    :returns: whether all is well
    """
    place, later, named = f"tenants.{tenant}.table", case.header, table.previous
    gaps: list[str] = []
    if not shape.persistent:
        expected_none = f"{tenant}: no table before, since each window draws all bits"
        return named is None or case.report(CHECK, False, expected_none,
                                            f"the table of window {named.window}", place)  # fmt: skip
    for window in earlier:
        name = window.case.header.window
        if (damage := window.incomplete) is not None:
            status, words = damage
            return case.record(
                CHECK,
                status,
                f"{tenant}: the parts of window {name} that its header commits to",
                words,
                place,
            )
        if (entry := window.sample_of(tenant)) is None:
            if window.drew and window.samples(tenant):
                return case.report(
                    CHECK, False, f"{tenant}: window {name} without a draw, or with a sample",
                    "a window with a beacon or later entries, and without a sample entry of the tenant", place,
                )  # fmt: skip
            if window.samples(tenant):
                gaps.append(
                    f"window {name} was abandoned and has no beacon entry: a provider that knew its beacon has"
                    " seen one more draw of the bits"
                )
            later = window.case.header
            continue
        expected = window.reference(tenant, entry)
        if expected is None:
            return case.report(CHECK, False, f"{tenant}: a document table in window {name}",
                               "a sample without a table", place)  # fmt: skip
        if expected != named:
            return case.report(CHECK, False, f"{tenant}: {_named(expected)}", _named(named), place)
        now, then = (_constants(c.policy, tenant) for c in (case, window.case))
        if now != then:
            return case.report(CHECK, False, f"{tenant}: {then}, as in window {expected.window}", now, place)
        if (fault := window.fault(tenant)) is not None:
            status, words = fault
            what = (
                "a valid sample" if window.assumed(tenant) else "a valid sample, and valid proofs of records,"
            )
            return case.record(CHECK, status, f"{tenant}: {what} in window {expected.window}", words, place)
        if window.assumed(tenant) and tenant in window.answered:
            gaps.append(
                f"the records of window {name} are not verified here in sampled mode: the figures of the chain assume"
                " that they conform"
            )
        case.table_windows[tenant] = case.table_windows.get(tenant, 1) + 1
        before = window.case.tenants[tenant].table
        assert before is not None  # `fault` found the window complete, and its policy has documents
        later, named = window.case.header, before.previous
    if later.previous is None:
        if named is not None:
            return case.report(CHECK, False, f"{tenant}: no table before the first table of the chain",
                               _named(named), place)  # fmt: skip
        figure["first"] = later.window
    case.table_gaps[tenant] = gaps
    return True


def _continued_once(case: Case, tenant: str, earlier: Sequence[_Earlier], others: Sequence[_Earlier]) -> bool:
    """Check that no supplied window outside of the chain continues a table that the chain continues. A window without a
    sample entry drew no bits, so the next window continues the same table.

    :returns: whether all is well
    """
    continued: dict[str | None, tuple[str, str]] = {}
    for number, window in enumerate((_Earlier(case), *earlier, *others)):
        entry, table = window.sample_of(tenant), window.case.tenants.get(tenant)
        if entry is None or table is None or table.table is None or not window.persists(tenant):
            continue
        named = table.table.previous
        own = (window.case.header.window, window.case.header_digest)
        name, first = continued.setdefault(None if named is None else named.carried, own)
        # In the chain, `_follow` compares each table with the latest one before it.
        if first != own[1] and number > len(earlier):
            return case.report(CHECK, False, f"{tenant}: one window that continues {_named(named)}",
                               f"two cosigned windows: {first} of window {name} and {own[1]} of window"
                               f" {own[0]}", f"tenants.{tenant}.table")  # fmt: skip
    return True


def _no_table_before(case: Case, tenant: str, earlier: Sequence[_Earlier]) -> bool:
    """Check that no supplied window has a table with persistent bits, for a tenant that draws all bits anew.

    :returns: whether all is well
    """
    for window in earlier:
        if (fault := window.incomplete) is not None:
            status, words = fault
            return case.record(
                CHECK, status, f"{tenant}: a policy that the header of the window before commits to", words
            )
        if window.persists(tenant) and window.drew:
            return case.report(
                CHECK, False,
                f"{tenant}: {_constants(window.case.policy, tenant)}, as in window {window.case.header.window}",
                _constants(case.policy, tenant), f"policy.tenants.{tenant}",
            )  # fmt: skip
    return True


def _content(file: WindowFile) -> str:
    """A digest of the parts of a window that its header or its ledger determines."""
    return digest_hex(
        [file.final_checkpoint, file.entries, file.policy, file.embedder, file.roster, file.tenants]
    )


def _constants(policy: Policy, tenant: str) -> str:
    """The numbers that are constant in a chain of tables."""
    part = policy.tenant(tenant)
    if part is None or part.documents is None:
        return "no document table"
    return constants_text(policy.chain_constants(tenant))


def _named(reference: PreviousTable | None) -> str:
    if reference is None:
        return "no table before"
    listed = "" if reference.listed is None else f" with the listed rows {reference.listed[:16]}.."
    return f"the table {reference.carried[:16]}..{listed} of window {reference.window} ({reference.header[:16]}..)"


@dataclass(frozen=True)
class _Earlier:
    """A supplied window of the chain.

    :param case: the window as a case of its own, with the checks that its tables need
    :param copies: the window in the other files with its header, of which each may contain the proofs
    """

    case: Case
    copies: Sequence[_Earlier] = ()

    @classmethod
    def of(cls, files: Sequence[WindowFile], open_earlier: OpenEarlier) -> _Earlier:
        """The window of files with one header. Neither their order nor a damaged file among them has an influence.

        :raises RagAuditError: no file is well-formed
        """
        copies, errors = [], []
        for file in sorted(files, key=_content) if len(files) > 1 else files:
            try:
                copies.append(cls(open_earlier(file)))
            except RagAuditError as exc:
                errors.append(exc)
        if not copies:
            raise errors[0]
        first, *others = sorted(copies, key=lambda window: window.incomplete is not None)
        return cls(first.case, others)

    @classmethod
    def all(cls, case: Case, open_earlier: OpenEarlier) -> tuple[list[_Earlier], list[_Earlier]]:
        """The supplied windows, the nearest first, as far back as each names the next; and the others, if they are
        cosigned and their headers commit to their tenants."""
        files: defaultdict[str, list[WindowFile]] = defaultdict(list)
        for file in case.previous:
            if isinstance(file, WindowFile) and file.entries:
                files[digest_hex(file.entries[0])].append(file)
        result: list[_Earlier] = []
        before = case.header.previous
        while before is not None and (same := files.pop(before.header, None)) is not None:
            result.append(cls.of(same, open_earlier))
            before = result[-1].case.header.previous
        others = []
        for _, same in sorted(files.items()):
            with suppress(RagAuditError):
                window = cls.of(same, open_earlier)
                header.cosigned(case, window.case.file, "previous")
                if window.incomplete is None and window.case.header_digest != case.header_digest:
                    others.append(window)
        return result, others

    def sample_of(self, tenant: str) -> ColumnEntry | None:
        """The window's `sample` entry of a tenant."""
        return self.case.columns.get((tenant, SAMPLE))

    def mechanism(self, tenant: str) -> Mechanism | None:
        """The tenant's mechanism in the window's policy; None if the policy has no such tenant."""
        part = self.case.policy.tenant(tenant)
        return None if part is None else self.case.policy.mechanism(part)

    def pools(self, tenant: str) -> bool:
        """Whether the window's policy has pooled listing for the tenant."""
        mechanism = self.mechanism(tenant)
        return mechanism is not None and mechanism.pools

    def assumed(self, tenant: str) -> bool:
        """Whether the figures assume that the tenant's records conform: sampled mode proves only drawn records."""
        return self.case.trust.require.mode == "sampled" and not self.pools(tenant)

    @cached_property
    def answered(self) -> Set[str]:
        """The tenants for which the ledger has a record of the tenant, or of an account of the tenant."""
        asked = {q.account for q in self.case.queries}
        own = {a.tenant for a in self.case.everyone if a.account in asked}
        return own | {q.tenant for q in self.case.queries}

    def persists(self, tenant: str) -> bool:
        """Whether documents of the tenant keep their bits in later windows."""
        mechanism = self.mechanism(tenant)
        return mechanism is not None and mechanism.persists

    def reference(self, tenant: str, entry: ColumnEntry) -> PreviousTable | None:
        """The reference that the next table has to this window's table; None if the window has no table."""
        if entry.carried is None:
            return None
        records = [q.listed_rows for q in self.case.queries if q.tenant == tenant]
        return PreviousTable(
            window=self.case.header.window,
            header=self.case.header_digest,
            carried=entry.carried,
            listed=records[-1] if records and self.pools(tenant) else None,
        )

    def fault(self, tenant: str) -> tuple[Status, str] | None:
        """The gravest fault of the window's sample of a tenant and, unless assumed to conform, of its records; None if
        a file of the window has valid proofs of them."""
        faults = []
        for window in (self, *self.copies):
            if (fault := window._own_fault(tenant)) is None:
                return None
            faults.append(fault)
        return min(faults, key=lambda fault: (fault[0] is not Status.FAIL, fault[1]))

    def _own_fault(self, tenant: str) -> tuple[Status, str] | None:
        """The first such fault in this file."""
        if self.unsound is not None:
            return self.unsound
        done = len(self.case.checks)
        column = columns.check_column(self.case, tenant, SAMPLE)
        if column is None or self.assumed(tenant):
            return self._fault_since(done)
        if (fault := self._fault_since(done) or self.unsound_records) is not None:
            return fault
        done = len(self.case.checks)
        proof.check_records(self.case, tenant, {SAMPLE: column})
        return self._fault_since(done)

    @cached_property
    def unsound_records(self) -> tuple[Status, str] | None:
        """The first fault of the window's records that the ledger shows."""
        done = len(self.case.checks)
        ledger.check_records(self.case)
        return self._fault_since(done)

    @cached_property
    def unsound(self) -> tuple[Status, str] | None:
        """The first fault of the window that concerns the samples of all tenants."""
        if self.incomplete is not None:
            return self.incomplete
        done = len(self.case.checks)
        ledger.check_sequence(self.case)
        ledger.check_beacon_entries(self.case)
        header.check_first_beacon(self.case)
        ledger.check_column(self.case, SAMPLE)
        return self._fault_since(done)

    @property
    def drew(self) -> bool:
        """Whether the ledger shows that the window's beacon was drawn: no other entry precedes the beacon."""
        return any(not isinstance(entry, WindowTrailer) for entry in self.case.entries[1:])

    def samples(self, tenant: str) -> bool:
        """Whether the window's policy samples for the tenant."""
        mechanism = self.mechanism(tenant)
        return mechanism is not None and SAMPLE in mechanism.columns

    @cached_property
    def incomplete(self) -> tuple[Status, str] | None:
        """Why the policy is not well-formed or may not be the window's own; None if the header commits to it. A part
        that does not open its commitment is damage to the file, which anybody can cause, and no evidence."""
        done, file = len(self.case.checks), self.case.file
        parts = compared(self.case.header, policy=file.policy, embedder=file.embedder, roster=self.case.roster,
                         tenants=[*self.case.tenants.values()])  # fmt: skip
        for name, committed, actual in parts:
            if committed != actual:
                return Status.UNDECIDED, f"damaged file: {name} = {actual}, and the header has {committed}"
        header.check_complete(self.case)
        header.check_well_formed(self.case)
        return self._fault_since(done)

    def _fault_since(self, done: int) -> tuple[Status, str] | None:
        for outcome in self.case.checks[done:]:
            if outcome.status is not Status.PASS:
                return outcome.status, f"{outcome.id}: {outcome.actual}"
        return None


def notes(case: Case) -> list[str]:
    """Sentences about draws that no check sees, for the verdict."""
    return [f"{tenant}: {gap}" for tenant, gaps in case.table_gaps.items() for gap in gaps]
