"""Phase D, verify: from a window file, a trust file and receipts to a verdict, without any network connection.

`open_window` reads, `judge` decides. This module imports no embedder, report or prover: the caller supplies the
function that re-embeds disclosed questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path

from rag_audit._internal.canonical import digest_hex, jcs
from rag_audit._internal.errors import ExitCode, RagAuditError, SchemaError, SetupError
from rag_audit._internal.words import counted
from rag_audit.log.merkle import HashTree, leaf_hash
from rag_audit.models.manifest import check_manifest, re_executable
from rag_audit.models.policy import OWN_DOCUMENTS, Policy
from rag_audit.models.records import Entry, RosterEntry, TenantEntry, WindowHeader, parse_entry
from rag_audit.models.trust import Trust
from rag_audit.models.windowfile import WindowFile
from rag_audit.verify.case import (
    SAYS_NOTHING,
    Case,
    Figures,
    NamedChallenge,
    ReceiptFile,
    Reembed,
    Reembedding,
    Status,
    worst,
)
from rag_audit.verify.checks import bound, coalition, header, ledger, proof, receipt, tables
from rag_audit.verify.checks import trust as trust_checks
from rag_audit.verify.inputs import (
    Inputs,
    Published,
    VerifierOptions,
    load_receipts,
    printable_name,
    read_challenge,
    read_previous,
    read_trust,
    read_window,
    reading_window,
    with_published,
)
from rag_audit.verify.standing import RULES
from rag_audit.verify.verdict import CONDITIONAL, Verdict, concluded


def open_window(
    window: Path | WindowFile,
    *,
    trust: Path | Trust,
    receipts: Sequence[Path] = (),
    previous: Sequence[Path] = (),
    challenges: Sequence[Path | Published] = (),
    options: VerifierOptions = VerifierOptions(),
    inputs: Inputs | None = None,
) -> Case:
    """Read a window and all inputs of its verification, for a third party that trusts only `trust`.

    :param receipts: countersigned receipt files, or folders of them
    :param previous: earlier windows, in any order, for checking the chain instead of relying on the witnesses
    :param challenges: notes that the verifier drew itself; all must be answered, in addition to others in the window. A
        `Published` note of another party is one of these others
    :param options: what this run asks for besides the trust file
    :param inputs: receives the names and digests of the files as they are read, also of a run that ends in an error
    :raises RagAuditError: the window, the trust file or a challenge of the verifier's own cannot be read (exit code 2)

    >>> case = open_window(Path("docs/examples"), trust=Path("docs/examples/trust.toml"))
    >>> case.header.window, len(case.queries)
    ('w-1', 7)
    """
    inputs = Inputs() if inputs is None else inputs
    trusted = trust if isinstance(trust, Trust) else read_trust(trust, inputs)
    trusted, allowed = options.applied(trusted)
    own = [
        NamedChallenge(printable_name(path), read_challenge(path, trusted, inputs))
        for path in challenges
        if not isinstance(path, Published)
    ]
    handed_in, unread = load_receipts(receipts, inputs)
    earlier = [read_previous(path, inputs) for path in previous]
    with nullcontext() if isinstance(window, WindowFile) else reading_window(window):
        file, unreadable = (window, []) if isinstance(window, WindowFile) else read_window(window, inputs)
        file = with_published(file, [path for path in challenges if isinstance(path, Published)], inputs)
        case = open_case(file, trusted, handed_in, options.engine, earlier, unreadable)
    case.source = None if isinstance(window, WindowFile) else window
    case.unread, case.challenges, case.max_epsilon_asked = unread, own, options.max_epsilon is not None
    case.figures["allowed"] = allowed
    return case


def judge(case: Case, reembedding: Reembedding | None = None) -> Verdict:
    """Run every check, and conclude.

    :param reembedding: re-embeds the questions that receipts disclose; without it A1 is not re-executed
    :raises RagAuditError: a part of the window could not be read, and the checks found no worse fault (exit code 2)

    >>> folder = Path("docs/examples")
    >>> case = open_window(folder, trust=folder / "trust.toml", receipts=[folder / "receipts"])
    >>> verdict = judge(case)
    >>> verdict.outcome, verdict.figures["eps_audit"]
    ('PASS', '12.39')
    """
    with nullcontext() if case.source is None else reading_window(case.source):
        reembed, notes = _reembed(case, reembedding)
        _check(case, reembed)
        verdict = _verdict(case, notes)
        _refuse(case, verdict)
    return verdict


def _check(case: Case, reembed: Reembed | None) -> None:
    """Run every group of checks. If a group does not turn an error into a check's outcome, the error ends only that
    group: one unreadable part must not hide the results of the others.
    """
    groups: list[Callable[[Case], None]] = [
        header.check,
        ledger.check,
        partial(
            tables.check,
            open_earlier=lambda file: open_case(file, case.trust, receipts=[], engine=case.engine),
        ),
        proof.check,
        partial(receipt.check, reembed=reembed),
        coalition.check,
        bound.check,
        trust_checks.check,
    ]
    for check in groups:
        try:
            check(case)
        except SAYS_NOTHING:
            raise
        except RagAuditError as exc:
            case.unreadable.append(exc)


_RANKS = (ExitCode.FAIL, ExitCode.MALFORMED, ExitCode.UNMET, ExitCode.PASS)


def _refuse(case: Case, verdict: Verdict) -> None:
    """Raise the worst error of the unreadable parts, unless the checks found a worse fault.

    :raises RagAuditError: the error
    """
    if not case.unreadable:
        return
    worst_error = min(case.unreadable, key=lambda e: _RANKS.index(e.exit_code))
    if _RANKS.index(worst_error.exit_code) <= _RANKS.index(verdict.exit_code):
        raise worst_error


def open_case(
    file: WindowFile,
    trust: Trust,
    receipts: Sequence[ReceiptFile],
    engine: str,
    previous: Sequence[WindowFile | RagAuditError] = (),
    unreadable: Sequence[RagAuditError] = (),
) -> Case:
    """Parse every part of a window file. The entries end before the first that is not well-formed, which is noted.

    :param unreadable: the errors of parts that could not be read
    :raises RagAuditError: another part is not well-formed; the first such part is named

    >>> trust = Trust.load(Path("docs/examples/trust.toml"))
    >>> case = open_case(WindowFile.load(Path("docs/examples")), trust, receipts=[], engine="native")
    >>> case.partial, [entry.type for entry in case.entries[:3]]
    (False, ['header', 'beacon', 'query'])
    """
    manifest = check_manifest(file.embedder)
    entries: list[Entry] = []
    errors = [*unreadable]
    for i, value in enumerate(file.entries):
        try:
            entries.append(parse_entry(value, field=f"entries[{i}]"))
        except RagAuditError as exc:
            errors.append(exc)
            break
    if not entries and errors:
        raise errors[0]
    if not entries or not isinstance(entries[0], WindowHeader):
        raise SchemaError("entry 0 is not a window header", field="entries[0]")
    tenants = [TenantEntry.parse(t, field=f"tenants[{i}]") for i, t in enumerate(file.tenants)]
    names = [t.tenant for t in tenants]
    if names != sorted(set(names)):
        raise SchemaError("the tenants are not sorted and unique", field="tenants", actual=names)
    return Case(
        file=file,
        manifest=manifest,
        trust=trust,
        receipts=receipts,
        engine=engine,
        header=entries[0],
        header_digest=digest_hex(file.entries[0]),
        policy=Policy.parse(file.policy, field="policy"),
        roster=[RosterEntry.parse(r, field=f"roster[{i}]") for i, r in enumerate(file.roster)],
        tenants={t.tenant: t for t in tenants},
        entries=entries,
        tree=HashTree(leaf_hash(jcs(value)) for value in file.entries[: len(entries)]),
        final=file.final_head(),
        previous=previous,
        unreadable=errors,
        partial=bool(errors),
    )


def _reembed(case: Case, reembedding: Reembedding | None) -> tuple[Reembed | None, list[str]]:
    """The function that re-embeds disclosed questions, if trust.toml pins its available artefacts, and warnings."""
    part = case.manifest["embedder"]
    if not any(r.receipt.disclosed for r in case.receipts):
        return None, []
    if not re_executable(part["kind"]):
        return None, [
            f"A1 not re-executed: vectors of {part['kind']} are declared, and other parties cannot recompute them"
        ]
    # A provider can fit an embedder to its documents and change every score, so only pinned artefacts are evidence.
    if part.get("artefacts") != case.trust.pins.embedder:
        return None, ["A1 not re-executed: the embedder's artefacts differ from the pinned artefacts"]
    if reembedding is None:
        return None, ["A1 not re-executed: this verifier has no embedder"]
    try:
        return reembedding(part), []
    except SetupError as exc:
        hint = exc.hint or ("name the folder of the artefacts with --model" if exc.field == "--model" else "")
        return None, [f"A1 not re-executed: {exc.message}" + (f" ({hint})" if hint else "")]
    except RagAuditError as exc:
        return None, [f"A1 not re-executed: {exc}"]


def _verdict(case: Case, notes: list[str]) -> Verdict:
    require = case.trust.require
    windows, delta = {}, "0"
    for tenant in case.policy.tenants:
        with suppress(RagAuditError):  # the tenant's mechanism contradicts itself
            mechanism = case.policy.mechanism(tenant)
            windows[tenant.tenant] = mechanism.scores
            delta = case.policy.delta_policy if mechanism.uses_delta else delta
    ranges = {f"{w.lo}..{w.hi}" for w in windows.values()}
    if len(ranges) > 1:
        ranges = {f"{tenant}:{w.lo}..{w.hi}" for tenant, w in windows.items()}
    figures: Figures = {
        **case.figures,
        "delta": delta,
        "k_max": case.policy.k_max,
        "n": case.policy.n,
        "scores": "+".join(sorted(ranges)),
        "lattice": min((w.lattice for w in windows.values()), default=0),
        "dimension": case.manifest["schema"]["dimension"],
        "beta": require.beta,
        "eta": require.eta,
        "window": case.header.window,
        "origin": case.header.origin,
    }
    if case.figures.get("query_embedding") != "proved":
        notes = [
            *notes,
            f"query_embedding (A1) is {case.figures.get('query_embedding')}: {CONDITIONAL}",
        ]
    if case.figures.get("challenge") == "published":
        notes = [
            *notes,
            "the challenge comes from the window file: the provider may have drawn several challenges and"
            " published one of them, and eta is the probability for a single draw; supply the verifier's own"
            " draw with --challenge",
        ]
    if case.unpinned_model == "manifest":
        notes = [
            *notes,
            f"A1 not proved: trust.toml does not pin the manifest of {case.manifest['embedder']['kind']}, so the"
            " provider may have chosen other constants of its vectors",
        ]
    elif case.unpinned_model == "model":
        notes = [
            *notes,
            f"A1 not proved: trust.toml does not pin the model of {case.manifest['embedder']['kind']}, so the"
            " provider may have fitted it to the index",
        ]
    if case.checking.known:
        notes = [
            *notes,
            f"{counted(case.checking.known, 'proof was', 'proofs were')} verified by an earlier run of this user; use"
            " --no-cache to verify them in this run",
        ]
    notes = [*notes, *([OWN_DOCUMENTS] if case.policy.own_documents else []), *tables.notes(case)]
    limit = case.policy.tokens.query
    notes = [
        *notes,
        f"a query has at most {limit} tokens: the service ignores the rest of a longer question",
    ]
    notes = [
        *notes,
        *(f"unreadable, so dependent checks were not decided: {e}" for e in case.unreadable),
    ]
    # The set of necessary checks matters only if a report has sentences (`report.build`): no check is false or
    # undecided.
    stands = worst({c.status for c in case.checks}) in (Status.PASS, Status.UNMET, Status.UNPROVEN)
    return concluded(case.checks, figures, notes, needed_checks(case) if stands else frozenset())


_EACH_TENANT = ("proof.circuit", "proof.key", "proof.valid")
_CONDITIONAL = frozenset(
    {
        "header.tables",
        "ledger.enrolment",
        "ledger.sample",
        "ledger.listed_rows",
        "proof.challenge",
        "proof.system",
        *_EACH_TENANT,
        "proof.embed.circuit",
        "proof.embed.key",
        "proof.embed.valid",
        "proof.sample",
        "proof.chain",
        "proof.query_embedding",
        "receipt.disclosed",
        "coalition.parameters",
        "coalition.count",
        "coalition.circuit",
        "coalition.key",
        "coalition.proof",
        "coalition.cap",
        "trust.max_epsilon",
        "trust.max_exclusion_factor",
        "trust.max_exposure",
        "trust.max_fresh_share",
        "trust.min_keep",
        "trust.challenge",
        "trust.manifest",
    }
)
"""Checks that some windows lack."""


def needed_checks(case: Case) -> frozenset[str]:
    """The ids of the checks that have to run on this window. Ids of tenants' checks contain the tenant's id.

    >>> case = open_window(Path("docs/examples"), trust=Path("docs/examples/trust.toml"))
    >>> "ledger.root" in needed_checks(case), "proof.challenge" in needed_checks(case)
    (True, False)
    """
    policy, trust = case.policy, case.trust
    requested = {q.tenant for q in case.queries}
    asking = {q.account for q in case.queries}
    required = case.required or frozenset()
    proved = {q.tenant for q in case.queries if q.seq in required}
    columns = [(t.tenant, name) for t in policy.tenants for name in policy.mechanism(t).columns]
    pooling = {t.tenant for t in policy.tenants if policy.mechanism(t).pools}
    result = {check for check in RULES if check not in _CONDITIONAL}
    result |= {f"{check}.{tenant}" for check in _EACH_TENANT for tenant in proved}
    result |= {
        f"{check.replace('proof.', 'proof.embed.')}.{t.tenant}"
        for check in _EACH_TENANT
        for t in policy.tenants
        if t.tenant in proved and "embed" in t.circuits and case.unpinned_model != "model"
    }
    result |= {f"proof.{name}.{tenant}" for tenant, name in columns}
    result |= {f"ledger.{name}" for _, name in columns}
    declared = case.trailer is not None and case.trailer.coalition is not None
    conditions = {
        "ledger.enrolment": any(e.account in asking for e in case.enrolments),
        "header.tables": any(policy.mechanism(t).table is not None for t in policy.tenants),
        "ledger.listed_rows": bool(pooling),
        "proof.challenge": trust.require.mode == "sampled",
        "trust.challenge": trust.require.mode == "sampled",
        "proof.chain": bool(pooling & requested),
        "proof.query_embedding": str(case.figures.get("query_embedding", "")).startswith("re-executed"),
        "trust.manifest": trust.pins.manifest is not None,
        "trust.max_epsilon": case.max_epsilon_asked
        or any(policy.mechanism(t).limit == "max_epsilon" for t in policy.tenants),
        "trust.max_exclusion_factor": any(policy.mechanism(t).limits_absence for t in policy.tenants),
        "trust.max_exposure": trust.require.max_exposure is not None,
        "trust.max_fresh_share": trust.require.max_fresh_share is not None
        and any(policy.mechanism(t).persists for t in policy.tenants),
        "trust.min_keep": any(policy.mechanism(t).sampled for t in policy.tenants),
        **dict.fromkeys(("coalition.parameters", "coalition.count", "coalition.cap"), declared),
        **dict.fromkeys(
            ("coalition.circuit", "coalition.key", "coalition.proof"),
            policy.estimator.coalition_proof is not None and bool(case.queries),
        ),
    }
    return frozenset(result | {check for check, applies in conditions.items() if applies})
