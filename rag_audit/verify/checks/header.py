"""`header.*`: the commitments, their signers, the time before which they were made, and the windows before."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from rag_audit._internal.errors import InvalidProof, PolicyError, RagAuditError, SetupError, SignatureError
from rag_audit._internal.words import counted, instant
from rag_audit.log.checkpoint import Checkpoint, SignedCheckpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.models.beacon import drand_beacon, witness_beacon
from rag_audit.models.chain import ClosedWindow, Outcome, Unanswered
from rag_audit.models.drand import DrandChain
from rag_audit.models.header import check_roster, compared
from rag_audit.models.records import EMPTY_LEDGER, BeaconEntry, BeaconSource, DrandBeacon
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.policy import check_policy
from rag_audit.verify.case import Case, Status, refusal
from rag_audit.verify.checks.signatures import check_checkpoint, open_trusted


def check(case: Case) -> None:
    """Run the group."""
    _signature(case)
    check_complete(case)
    _indices(case)
    check_well_formed(case)
    _chain(case)
    check_first_beacon(case)


def check_well_formed(case: Case) -> None:
    """Check that the policy and the roster are well-formed."""
    with case.guarding("header.policy"):
        try:
            # Checked to be an integer; C_emb commits to it.
            check_policy(case.policy, case.manifest["schema"]["dimension"])
            check_roster(case.roster, case.policy)
            case.report("header.policy", True, "well-formed", "well-formed")
        except PolicyError as exc:
            case.report("header.policy", False, exc.expected or "well-formed", exc, exc.field)


def check_first_beacon(case: Case) -> None:
    """Check the window's beacon, entry 1."""
    if case.partial and len(case.entries) < 2:
        return
    first = case.entries[1] if len(case.entries) > 1 else None
    check_beacon(
        case, "header.beacon", case.header.beacon, first if isinstance(first, BeaconEntry) else None, 0
    )


def _signature(case: Case) -> None:
    with case.guarding("header.signature"):
        signed = check_checkpoint(case, case.file.header_checkpoint, "header.signature", "header.quorum")
        opened = case.signed.get("header.signature")
        if opened is None:
            return
        # Only the provider's signature binds it to the root, whether a quorum cosigned the checkpoint or not.
        head = opened.checkpoint
        root = case.tree.root(1)
        case.report("header.root", (head.size, head.root) == (1, root), f"size 1 root {root.hex()}",
                    f"size {head.size} root {head.root.hex()}", "header_checkpoint")  # fmt: skip
        if signed is None:
            return
        at = signed.quorum_time(case.trust.quorum) * 1000
        opens = case.header.opens_at
        case.report(
            "header.published", at < opens, f"a quorum before {instant(opens)}", f"a quorum at {instant(at)}"
        )


def check_complete(case: Case) -> None:
    """Check that the parts of the file open the commitments of the window header."""
    header, policy = case.header, case.policy
    tenants = list(case.tenants.values())
    pairs: list[tuple[str, object, object]] = [
        *compared(header, policy=policy.dump(), embedder=case.file.embedder, roster=case.roster, tenants=tenants),
        ("ledger", header.ledger, EMPTY_LEDGER),
        ("origin", header.origin, case.trust.provider.origin),
        ("window", header.window, policy.window),
        ("opens_at", header.opens_at, policy.opens_at),
        ("closes_at", header.closes_at, policy.closes_at),
        ("capacities", [(t.tenant, t.capacity) for t in policy.tenants], [(t.tenant, t.capacity) for t in tenants]),
        ("schema", [{"tenant": t.tenant, "capacity": t.capacity} for t in tenants],
         case.manifest["schema"].get("tenants")),
        ("tokens", policy.tokens.dump(), case.manifest["embedder"]["tokens"]),
    ]  # fmt: skip
    wrong = next(((name, a, b) for name, a, b in pairs if a != b), None)
    if wrong is None:
        case.report("header.complete", True, "values that open every commitment", f"{len(pairs)} agree")
    else:
        name, committed, result = wrong
        case.report("header.complete", False, f"{name} = {committed}", f"{name} = {result}", f"header.{name}")


def _indices(case: Case) -> None:
    """Check that no index or list of documents is committed for two tenants: caps and bounds count a tenant's accounts.

    Salts and blindings are drawn for each tenant, so equal commitments are one commitment under two names.
    """
    for name in ("c_idx", "c_docs"):
        owner: dict[str, str] = {}
        for tenant in case.tenants.values():
            first = owner.setdefault(getattr(tenant, name), tenant.tenant)
            if first != tenant.tenant:
                case.report("header.indices", False, "different commitments for each tenant",
                            f"{first} and {tenant.tenant} have the same {name}", "tenants")  # fmt: skip
                return
    case.report(
        "header.indices", True, "different commitments for each tenant", f"{len(case.tenants)} tenants"
    )


def check_beacon(case: Case, check_id: str, source: BeaconSource, entry: BeaconEntry | None, of: int) -> None:
    """Check that entry `of` named a beacon entry, and that the beacon was drawn after its quorum and before its use."""
    if entry is None:
        case.report(check_id, False, f"a beacon entry for entry {of}", "no beacon entry")
        return
    with case.guarding(check_id):
        if (entry.entry, entry.source) != (of, source.source):
            case.report(check_id, False, f"{source.source} beacon of entry {of}",
                        f"{entry.source} beacon of entry {entry.entry}", f"entries[{entry.seq}]")  # fmt: skip
            return
        text = case.file.header_checkpoint if of == 0 else entry.checkpoint
        signed = open_trusted(case, text, field=f"entries[{entry.seq}].checkpoint")
        head = signed.checkpoint
        if not (of < head.size <= entry.seq and case.tree.root(head.size) == head.root):
            case.report(check_id, False, f"a checkpoint of this ledger that contains entry {of}",
                        f"a checkpoint of size {head.size}, of another tree or without the entry")  # fmt: skip
            return
        try:
            quorum_at = signed.quorum_time(case.trust.quorum)
        except SignatureError as exc:
            case.require(check_id, False, exc.expected, refusal(exc), f"entries[{entry.seq}].checkpoint")
            return
        try:
            value, drawn_at = beacon_value(case, source, entry, signed)
        except (InvalidProof, SignatureError) as exc:
            case.report(check_id, False, exc.expected or "the beacon that the entry names", exc, exc.field)
            return
        if value.hex() != entry.value:
            case.report(check_id, False, value.hex(), entry.value, f"entries[{entry.seq}].value")
            return
        case.drawn[of] = drawn_at
        used = case.first_use(of)
        in_order = used is None or (drawn_at <= used.ts and entry.seq < used.seq)
        first = "none" if used is None else f"{instant(used.ts)} in entry {used.seq}"
        drawn = f"drawn {instant(drawn_at)} in entry {entry.seq}"
        case.report(check_id, in_order, "drawn after the quorum, before the first query",
                    f"quorum {instant(quorum_at * 1000)}, {drawn}, first query {first}")  # fmt: skip


def beacon_value(
    case: Case, source: BeaconSource, entry: BeaconEntry, signed: SignedCheckpoint
) -> tuple[bytes, int]:
    """The value that the entry's notes give under the keys of trust.toml, and when it was drawn (ms).

    :raises InvalidProof: the notes do not prove the named beacon, or it is older than the quorum
    :raises SignatureError: a signature is by another key than trust.toml's
    :raises SetupError: trust.toml pins no drand chain
    """
    field = f"entries[{entry.seq}]"
    if isinstance(source, DrandBeacon):
        pin = case.trust.beacon.drand
        if pin is None:
            raise SetupError("trust.toml pins no drand chain", field="trust.beacon.drand")
        chain = DrandChain(
            bytes.fromhex(pin.chain), bytes.fromhex(pin.public_key), pin.scheme, pin.genesis, pin.period
        )
        return drand_beacon(source, entry.notes, signed, chain=chain, quorum=case.trust.quorum, field=field)
    named = {w.name: w.vkey for w in case.trust.witness}
    trusted = [VerifierKey.parse(named[n], field=f"trust.witness.{n}") for n in case.trust.beacon.witnesses]
    if not trusted:
        raise SetupError("trust.toml lists no beacon witnesses", field="trust.beacon.witnesses")
    return witness_beacon(
        source,
        entry.notes,
        signed,
        trusted=trusted,
        quorum=case.trust.quorum,
        window=case.header.window,
        field=field,
    )


def _chain(case: Case) -> None:
    """Check the windows before this one, and the window header's counts of abandoned and of empty windows."""
    stated = Unanswered.before(case.header)
    case.figures["abandoned"], case.figures["empty"] = stated.abandoned, stated.empty
    reached: list[ClosedWindow] = []
    with case.guarding("header.chain"):
        _walk(case, reached)
    case.tallies["chain_reached"] = len(reached)
    _counts(case, reached)


def _walk(case: Case, reached: list[ClosedWindow]) -> None:
    """Follow the window headers back through the supplied windows.

    :param reached: a list that receives each window of the chain, the nearest first
    :raises RagAuditError: a supplied window cannot be read, or the witnesses' quorum cosigned another window
    """
    named = case.header.previous
    files = [(file, f"previous[{number}]") for number, file in enumerate(case.previous)]
    if unread := next((file for file, _ in files if isinstance(file, RagAuditError)), None):
        raise unread
    given = [cosigned(case, file, field) for file, field in files if isinstance(file, WindowFile)]
    if not _no_fork(case, given):
        return
    if named is None and not given:
        # Only the witnesses know whether a first window is really the first: they refuse to cosign a second one.
        case.report(
            "header.chain", True, "the origin's first window, or a named predecessor", "no previous window"
        )
        return
    if named is None:
        _first(case, given)
        return
    if not given:
        case.report("header.chain", True, "the window that the quorum cosigned before",
                    f"header {named.header[:16]}.., not supplied: the witnesses are the only evidence")  # fmt: skip
        return
    links = {window.digest: window for window in given}
    later = case.header
    while later.previous is not None and (window := links.pop(later.previous.header, None)) is not None:
        overlap = window.ended_at > later.opens_at
        result, root = later.previous.root, window.head.root.hex()
        if result != root or overlap:
            case.report("header.chain", False, f"final root {root} of {window.header.window}, and disjoint intervals",
                        f"{result}{', overlapping' if overlap else ''}")  # fmt: skip
            return
        reached.append(window)
        later = window.header
    if not reached:
        case.record("header.chain", Status.UNDECIDED, f"header {named.header}",
                    ", ".join(f"{window.digest} of window {window.header.window}" for window in given))  # fmt: skip
    elif links:
        case.record("header.chain", Status.UNDECIDED, "consecutive windows up to this one",
                    f"{len(links)} supplied windows outside of the chain")  # fmt: skip
    else:
        end = (
            "back to the origin's first window"
            if later.previous is None
            else "the witnesses are the only evidence for earlier windows"
        )
        case.report("header.chain", True, "each window names its predecessor, and the intervals are disjoint",
                    f"{counted(len(reached), 'earlier window')}, {end}")  # fmt: skip


def _no_fork(case: Case, given: Sequence[ClosedWindow]) -> bool:
    """Check that no two cosigned windows continue the same window, or are both the first of the origin, and that no
    window has two cosigned ends.

    :param given: the supplied windows, which the provider signed and the witnesses' quorum cosigned
    :returns: whether all is well
    """
    ends = {}
    if any(window.digest == case.header_digest for window in given):
        with suppress(RagAuditError):  # this window's own end counts only if the quorum cosigned it
            ends[case.header_digest] = cosigned(case, case.file, "final_checkpoint").head
    for window in given:
        first, end = ends.setdefault(window.digest, window.head), window.head
        if (first.size, first.root) != (end.size, end.root):
            ended = f"two cosigned ends: {_end(first)} and {_end(end)}, after header {window.digest}"
            return case.report("header.chain", False, f"one end of window {window.header.window}", ended)
    passed = {check.id for check in case.checks if check.status is Status.PASS}
    own = {"header.signature", "header.quorum", "header.root"} <= passed
    windows = [(case.header, case.header_digest)] if own else []
    continued: dict[str | None, tuple[str, str]] = {}
    for header, digest in [*windows, *((window.header, window.digest) for window in given)]:
        before = None if header.previous is None else header.previous.header
        name, other = continued.setdefault(before, (header.window, digest))
        if other != digest:
            place = "without a window before" if before is None else f"after header {before}"
            return case.report("header.chain", False, f"one window {place}",
                               f"two cosigned windows: {other} of window {name} and {digest} of window"
                               f" {header.window}")  # fmt: skip
    return True


def _end(head: Checkpoint) -> str:
    return f"root {head.root.hex()} of {counted(head.size, 'entry', 'entries')}"


def _first(case: Case, given: Sequence[ClosedWindow]) -> None:
    """Judge supplied windows before a window header without a predecessor: an earlier window shows that this one is not
    the first. Any other one is the verifier's mistake."""
    for window in given:
        if window.digest != case.header_digest and window.ended_at <= case.header.opens_at:
            case.report("header.chain", False, "the origin's first window, or a named predecessor",
                        f"no predecessor is named, and window {window.header.window} ended before this"
                        " window")  # fmt: skip
            return
    case.record("header.chain", Status.UNDECIDED, "no earlier window: the window header names no predecessor",
                f"{counted(len(given), 'supplied window')} that did not end before this window")  # fmt: skip


def cosigned(case: Case, file: WindowFile, field: str) -> ClosedWindow:
    """A supplied window that the provider signed and the witnesses' quorum cosigned.

    :raises RagAuditError: the file is no closed window, or a signature is missing or wrong
    """
    window = ClosedWindow.of(file, field=field)
    signed = open_trusted(case, file.final_checkpoint, field=field, window=window.header.window)
    signed.quorum_time(case.trust.quorum)
    return window


def _counts(case: Case, reached: list[ClosedWindow]) -> None:
    """Check that each window header's counts follow from the window before it."""
    later = [case.header, *(window.header for window in reached)]
    pairs = [(header, Unanswered.before(header), window.unanswered)
             for header, window in zip(later, reached, strict=False)]  # fmt: skip
    complete = any(window.outcome is Outcome.COMPLETE for window in reached)
    exact = later[-1].previous is None or complete
    for name, stated, passed in (
        (
            "abandoned",
            case.figures["abandoned"],
            "the number of windows abandoned since the last complete window",
        ),
        (
            "empty",
            case.figures["empty"],
            "the number of windows without a query since the last complete window",
        ),
    ):
        wrong = next(((o, c, e) for o, c, e in pairs if getattr(c, name) != getattr(e, name)), None)
        if wrong is not None:
            header, claimed, expected = wrong
            case.report(f"header.{name}", False, f"{getattr(expected, name)} in the header of {header.window}",
                        getattr(claimed, name), "entries[0].previous")  # fmt: skip
        else:
            case.report(f"header.{name}", True, passed,
                        f"{stated}{'' if exact else ' (the witnesses are the only evidence)'}")  # fmt: skip
