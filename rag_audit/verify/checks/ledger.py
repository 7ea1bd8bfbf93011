"""`ledger.*`: the ledger is one append-only log, and complete as far as its own rules can tell."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise

from rag_audit._internal.canonical import jcs
from rag_audit._internal.errors import RagAuditError
from rag_audit._internal.words import counted, instant
from rag_audit.log.checkpoint import CLOCK_LEEWAY_SECONDS, SignedCheckpoint
from rag_audit.log.merkle import verify_consistency
from rag_audit.log.second import root_by_pymerkle
from rag_audit.mechanisms import COLUMNS
from rag_audit.models.models import repeated
from rag_audit.models.records import (
    BeaconEntry,
    ColumnEntry,
    Enrolment,
    Entry,
    QueryRecord,
    WindowHeader,
    WindowTrailer,
    request_message,
    verifies,
)
from rag_audit.verify.case import Case, first
from rag_audit.verify.checks.header import check_beacon
from rag_audit.verify.checks.signatures import check_checkpoint, open_trusted


def check(case: Case) -> None:
    """Run the group. On an unreadable end, run only the checks that cannot fail on an honest ledger's beginning.

    >>> from pathlib import Path
    >>> from rag_audit.verify.verifier import open_window
    >>> case = open_window(Path("docs/examples"), trust=Path("docs/examples/trust.toml"))
    >>> check(case)
    >>> len(case.checks), {check.status.value for check in case.checks}
    (15, {'pass'})
    """
    with case.guarding("ledger.checkpoint"):
        check_checkpoint(case, case.file.final_checkpoint, "ledger.checkpoint", "ledger.quorum")
    if not case.partial:
        _checkpoint(case)
    check_sequence(case)
    if not case.partial:
        _closing(case)
    _timestamps(case)
    _clock(case)
    _accounts(case)
    if not case.partial:
        for name in COLUMNS:
            check_column(case, name)
    _listed_rows(case)
    _requests(case)
    _slots(case)


def check_records(case: Case) -> None:
    """Check the accounts, requests and slots of the records of a window before the verified one, and their commitments
    to listed rows."""
    _accounts(case)
    _listed_rows(case)
    _requests(case)
    _slots(case)


def _checkpoint(case: Case) -> None:
    size, root = case.final.size, case.final.root
    case.report("ledger.size", size == len(case.entries), f"{size} entries", f"{len(case.entries)} entries")
    computed = case.tree.root()
    if case.engine == "reference" and computed == root:
        # pymerkle also detects a fault of this package's own tree, which other checks could not show.
        computed = root_by_pymerkle(map(jcs, case.file.entries)) or computed
    case.report("ledger.root", computed == root, root.hex(), computed.hex(), "final_checkpoint")
    m, n = 1, case.tree.size
    path = case.tree.consistency_path(m, n)
    consistent = n >= m and verify_consistency(m, n, path, case.tree.root(m), root)
    case.report("ledger.consistency", consistent, "the final tree extends the tree of the window header",
                f"the final tree {'extends' if consistent else 'does not extend'} the header's tree")  # fmt: skip


def check_sequence(case: Case) -> None:
    """Check the numbers, the order and the window of the entries."""

    def wrong() -> Iterator[str]:
        for index, entry in enumerate(case.entries):
            if isinstance(entry, WindowHeader):
                if index:
                    yield f"entry {index} is a second window header"
            elif entry.seq != index:
                yield f"entry {index} has the number {entry.seq} (seq)"
            if isinstance(entry, WindowTrailer) and index != len(case.entries) - 1:
                yield f"entry {index} is the window trailer and not the last entry"
            if (
                isinstance(entry, QueryRecord | ColumnEntry | WindowTrailer)
                and entry.window != case.header.window
            ):
                yield f"entry {index} belongs to window {entry.window}"

    case.report(
        "ledger.sequence",
        (bad := first(wrong())) is None,
        "entries with the numbers 0, 1, 2, .. (seq)",
        bad or "the entries are in order",
        bad and "entries",
    )


def _closing(case: Case) -> None:
    trailer = case.trailer
    if trailer is None:
        case.report(
            "ledger.trailer", False, "a window trailer", "no window trailer: the window is not closed"
        )
        return
    enrolments = len(case.enrolments)
    result = f"{counted(trailer.queries, 'query', 'queries')}, {counted(trailer.enrolments, 'enrolment')}"
    expected = f"{counted(len(case.queries), 'query', 'queries')}, {counted(enrolments, 'enrolment')}"
    case.report("ledger.trailer", result == expected and not trailer.abandoned, f"{expected} in the trailer",
                f"the trailer has {result}" + (", and abandons the window" if trailer.abandoned else ""))  # fmt: skip
    case.figures["enrolments"] = enrolments


def _timestamps(case: Case) -> None:
    opens, closes = case.header.opens_at, case.header.closes_at

    def wrong() -> Iterator[str]:
        last = opens
        for entry in case.entries:
            if isinstance(entry, QueryRecord | Enrolment):
                if not opens <= entry.ts <= closes:
                    yield f"entry {entry.seq} has the time {instant(entry.ts)}, outside the window's interval"
                if entry.ts < last:
                    yield f"entry {entry.seq} has an earlier time than the entry before it"
                last = max(last, entry.ts)
            if isinstance(entry, WindowTrailer) and entry.ts < last:
                yield f"the window trailer has the time {instant(entry.ts)}, before an earlier entry's time"

    bad = first(wrong())
    case.report(
        "ledger.timestamps",
        bad is None,
        f"times that ascend from {instant(opens)} to {instant(closes)}",
        bad or "the times ascend",
        bad and "entries",
    )


@dataclass(frozen=True)
class _Witnessed:
    """A checkpoint of this ledger that a quorum cosigned.

    :param at: the time when the quorum was complete, in ms
    :param before: the first entry that is known to follow the quorum; earlier ones from `size` on may have waited
    """

    name: str
    size: int
    at: int
    before: int


def _clock(case: Case) -> None:
    """Compare the ledger's times with the witnesses': no entry that a quorum cosigned is stamped later than the quorum,
    and none that follows a beacon is stamped earlier than the cosignatures under it.
    """
    leeway = 1000 * CLOCK_LEEWAY_SECONDS
    stands = _witnessed(case)
    # Times of entries ascend where `ledger.timestamps` passes; the largest so far is equivalent where it does not.
    latest = list(accumulate((getattr(e, "ts", 0) for e in case.entries), max))
    following = _following(case.entries)

    def wrong() -> Iterator[str]:
        for earlier, later in pairwise(stands):
            if later.at < earlier.at - leeway:
                yield f"the quorum cosigned {later.name} at {instant(later.at)}, before {earlier.name}"
        for stand in stands:
            if (ts := latest[min(stand.size, len(latest)) - 1]) > stand.at + leeway:
                when = f"has the time {instant(ts)}, and the quorum cosigned it at {instant(stand.at)}"
                yield f"an entry of {stand.name} {when}"
            entry = following[stand.before]
            if entry is not None and entry.ts < stand.at - leeway:
                yield (f"entry {entry.seq} has the time {instant(entry.ts)}, and the quorum cosigned {stand.name},"
                       f" which an earlier beacon is over, at {instant(stand.at)}")  # fmt: skip

    bad = first(wrong())
    case.report(
        "ledger.clock",
        bad is None,
        f"times that agree with the times of {len(stands)} quorums within {CLOCK_LEEWAY_SECONDS} s",
        bad or f"the times agree with {counted(len(stands), 'quorum')}",
        bad and "entries",
    )


def _following(entries: Sequence[Entry]) -> list[QueryRecord | Enrolment | WindowTrailer | None]:
    """For each index, and for the one after the last, the first entry from there on that has a time."""
    result: list[QueryRecord | Enrolment | WindowTrailer | None] = [None]
    for entry in reversed(entries):
        result.append(entry if isinstance(entry, QueryRecord | Enrolment | WindowTrailer) else result[-1])
    return result[::-1]


def _witnessed(case: Case) -> list[_Witnessed]:
    """The checkpoints of this ledger with a quorum's cosignatures, by size. Other checkpoints give no evidence about
    time, and other checks decide whether they are allowed.
    """
    end = len(case.entries)
    texts = [("the window header", case.file.header_checkpoint, min(2, end))]
    texts += [
        (f"the first {e.entry + 1} entries", e.checkpoint, place + 1)
        for place, e in enumerate(case.entries)
        if isinstance(e, BeaconEntry) and e.entry
    ]
    texts.append(("the end", case.file.final_checkpoint, end))
    result, opened = [], dict[str, SignedCheckpoint]()
    for name, text, before in texts:
        with suppress(RagAuditError):
            # Accounts that were enrolled in one batch share a checkpoint; its signatures are verified once.
            signed = opened[text] = opened.get(text) or open_trusted(case, text, field=name)
            head = signed.checkpoint
            at = 1000 * signed.quorum_time(case.trust.quorum)
            if 0 < head.size <= end and case.tree.root(head.size) == head.root:
                result.append(_Witnessed(name, head.size, at, before))
    return sorted(result, key=lambda stand: stand.size)


def _accounts(case: Case) -> None:
    everyone = case.everyone

    def wrong() -> Iterator[str]:
        for attribute in ("account", "key"):
            values = repeated(getattr(r, attribute) for r in everyone)
            yield from (f"two roster lines have the {attribute} {v}" for v in values)
        counts = Counter(r.tenant for r in everyone)
        for tenant in case.policy.tenants:
            if (count := counts[tenant.tenant]) > tenant.accounts_max:
                yield f"tenant {tenant.tenant} has {count} accounts, and its maximum is {tenant.accounts_max}"
        known = {r.account: r.tenant for r in case.roster}
        for entry in case.entries:
            if isinstance(entry, Enrolment):
                known[entry.account] = entry.tenant
                if case.policy.tenant(entry.tenant) is None:
                    yield f"enrolment {entry.seq} names the unknown tenant {entry.tenant}"
            if isinstance(entry, QueryRecord) and known.get(entry.account) != entry.tenant:
                where = known.get(entry.account, "no tenant, as the account joined later or never")
                yield f"record {entry.seq} names tenant {entry.tenant} for {entry.account}; the roster names {where}"

    bad = first(wrong())
    case.report("ledger.accounts", bad is None, "every account is on the roster, with its tenant",
                bad or f"{len(everyone)} accounts", bad and "entries")  # fmt: skip
    _enrolment_beacons(case)
    own = sum(r.custody == "account" for r in everyone)
    case.figures["accounts"] = len(everyone)
    case.figures["accounts_holding_their_keys"] = own


def _enrolment_beacons(case: Case) -> None:
    enrolments = case.enrolments
    used = {q.account for q in case.queries}
    beacons = case.beacons()
    case.figures["enrolments_void_or_unused"] = sum(
        e.seq not in beacons or e.account not in used for e in enrolments
    )
    for enrolment in enrolments:
        if enrolment.account in used:
            check_beacon(
                case, "ledger.enrolment", enrolment.beacon, beacons.get(enrolment.seq), enrolment.seq
            )
    check_beacon_entries(case)


def check_beacon_entries(case: Case) -> None:
    """Check that no window header or enrolment has two beacon entries, and that nothing else has one."""
    answered = {0, *(e.seq for e in case.enrolments)}
    entries = Counter(e.entry for e in case.entries if isinstance(e, BeaconEntry))
    extra = sorted(e for e, count in entries.items() if e not in answered or count > 1)
    case.report(
        "ledger.beacons",
        not extra,
        "one beacon for each window header or enrolment",
        f"entry {extra[0]} has two beacons or needs none" if extra else counted(entries.total(), "beacon"),
    )


def check_column(case: Case, name: str) -> None:
    """Check a column of each tenant that has it, such as the sample. The ledger must commit to it exactly once,
    after the beacon that decides it and before the first query that depends on it."""
    sampled = dict.fromkeys(t.tenant for t in case.policy.tenants if name in case.policy.mechanism(t).columns)
    entries = [e for e in case.entries if isinstance(e, ColumnEntry) and e.type == name]
    if not sampled and not entries:
        return
    first_queries = {q.tenant: q.seq for q in reversed(case.queries)}

    def wrong() -> Iterator[str]:
        yield from (f"tenant {t} has two {name} entries" for t in repeated(e.tenant for e in entries))
        yield from (f"tenant {t} has no {name} entry" for t in sampled if (t, name) not in case.columns)
        for entry in entries:
            if entry.tenant not in sampled:
                yield f"entry {entry.seq} names tenant {entry.tenant}, whose mechanism has no {name}"
            if entry.seq < 2:
                yield f"entry {entry.seq} comes before the beacon"
            if (query := first_queries.get(entry.tenant)) is not None and query < entry.seq:
                yield f"entry {entry.seq} comes after record {query} of tenant {entry.tenant}"

    bad = first(wrong())
    case.report(f"ledger.{name}", bad is None, "one entry for each sampled tenant, before its first query",
                bad or f"{len(entries)} tenants", bad and "entries")  # fmt: skip


def _pooling(case: Case) -> dict[str, int]:
    """The tenants with pooled listing, each with m, the maximum number of its records."""
    return {
        t.tenant: t.accounts_max * case.policy.n
        for t in case.policy.tenants
        if case.policy.mechanism(t).pools
    }


def _listed_rows(case: Case) -> None:
    """Check that exactly the records of tenants with pooled listing commit to listed rows, and that a tenant has at
    most m such records: f, the probability that chance lists a document in the window, counts m queries."""
    pooling = _pooling(case)
    if not pooling and not any(q.listed_rows is not None for q in case.queries):
        return
    counts = Counter(q.tenant for q in case.queries if q.tenant in pooling)

    def wrong() -> Iterator[str]:
        for q in case.queries:
            if (q.listed_rows is not None) != (q.tenant in pooling):
                states = "no" if q.listed_rows is None else "a"
                yield f"record {q.seq} of tenant {q.tenant} has {states} commitment to listed rows"
        for tenant, count in counts.items():
            if count > pooling[tenant]:
                yield f"tenant {tenant} has {count} records, and its maximum m is {pooling[tenant]}"

    bad = first(wrong())
    case.report("ledger.listed_rows", bad is None,
                "the listed rows in records with pooled listing and in no other record, at most m records of a tenant",
                bad or f"{counted(counts.total(), 'record')} with pooled listing", bad and "entries")  # fmt: skip


def _requests(case: Case) -> None:
    accounts = case.accounts()

    def wrong() -> Iterator[str]:
        for q in case.queries:
            account = accounts.get(q.account)
            message = request_message(case.header.origin, case.header_digest, q.tenant, q.account, q.i, q.hq)
            if account is None or not verifies(bytes.fromhex(account.key), message, q.sig):
                yield f"record {q.seq} has no valid signature of its account"

    bad = first(wrong())
    case.report(
        "ledger.requests",
        bad is None,
        "every request is signed by its account's key",
        bad or f"{len(case.queries)} signed requests",
        bad,
    )


def _slots(case: Case) -> None:
    counts: dict[str, int] = defaultdict(int)
    order: list[str] = []
    for q in case.queries:
        counts[q.account] += 1
        if q.i != counts[q.account]:
            order.append(f"record {q.seq} is query {q.i} of {q.account}, not query {counts[q.account]}")
    case.report(
        "ledger.slots",
        not order,
        "the queries of each account have the numbers 1, 2, .. (i)",
        order[0] if order else "no gap and no repetition",
    )
    maximum = max(counts.values(), default=0)
    case.report("ledger.limit", maximum <= case.policy.n, f"at most {case.policy.n} queries of each account",
                f"at most {counted(maximum, 'query', 'queries')} of each account")  # fmt: skip
    case.figures["counts"] = dict(sorted(counts.items()))
