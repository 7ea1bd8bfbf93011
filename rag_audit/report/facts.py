"""The report's description of a window in addition to checks and figures. It comes from the case after the checks.

This module makes no decision and raises no error. It omits a part that is missing from a window or not well-formed; the
check of that part reports the error.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace

from rag_audit._internal.canonical import MAX_SAFE_INTEGER, sha256
from rag_audit._internal.errors import RagAuditError, SignatureError
from rag_audit._internal.words import counted
from rag_audit.log.checkpoint import SignedCheckpoint
from rag_audit.log.keys import VerifierKey
from rag_audit.mechanisms.descriptions import description
from rag_audit.models.chain import ClosedWindow, outcome_of
from rag_audit.models.manifest import manifest_digest
from rag_audit.models.policy import Policy
from rag_audit.models.records import DrandBeacon, PreviousWindow, WindowHeader, parse_entry
from rag_audit.models.trust import Require
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.policy import check_policy
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.report.model import (
    Activity,
    BeaconReport,
    Chain,
    ChainLink,
    Counts,
    DocumentTableReport,
    Event,
    Exposure,
    InputFile,
    KeyReport,
    QueryCount,
    ReceiptFiles,
    ServiceReport,
    TenantReport,
    Vouching,
    WindowReport,
    WitnessReport,
)
from rag_audit.verify.case import Case
from rag_audit.verify.inputs import Inputs

PARTS = 48
"""Parts of the interval over which a report counts queries."""


@dataclass(frozen=True)
class Facts:
    """A window as its report describes it, and the verifier's requirements.

    :param policies: the policies of this window and of the previous windows that were supplied, if all of these are in
        its chain; else empty
    """

    window: WindowReport
    tenants: list[TenantReport]
    require: Require
    vouching: Vouching
    counts: Counts
    events: list[Event]
    activity: Activity | None
    chain: Chain
    inputs: Inputs
    policies: list[Policy]


def facts_of(case: Case, inputs: Inputs) -> Facts:
    """The facts of a case after its checks."""
    return Facts(
        window=_window(case),
        tenants=_tenants(case),
        require=case.trust.require,
        vouching=_vouching(case),
        counts=_counts(case),
        events=_events(case),
        activity=_activity(case),
        chain=_chain(case),
        inputs=inputs,
        policies=_policies(case),
    )


def facts_without(facts: Facts) -> Facts:
    """The facts of a window that is not established: tenants have no privacy figure, and no windows are added up."""
    none = dict.fromkeys(
        (
            "eps",
            "exposure",
            "exclusion_factor",
            "exclusion_factor_all_accounts",
            "documents",
            "chance_listed",
            "positions_listed",
        )
    )
    return replace(facts, tenants=[tenant.model_copy(update=none) for tenant in facts.tenants], policies=[])


def input_files(inputs: Inputs) -> list[InputFile]:
    """The files behind a verdict."""
    return [InputFile(role=role, name=name, sha256=digest) for role, name, digest in inputs.files]


def receipt_files(inputs: Inputs) -> ReceiptFiles:
    """The supplied receipts, as one digest."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(inputs.receipts))
    digest = sha256(lines.encode()).hex() if inputs.receipts else None
    return ReceiptFiles(files=len(inputs.receipts), sha256=digest)


def _policies(case: Case) -> list[Policy]:
    """The policies of the supplied chain. Each is well-formed and matches its window header's commitment."""
    if not case.previous or case.tallies.get("chain_reached") != len(case.previous):
        return []
    result = [case.policy]
    for file in case.previous:
        with suppress(RagAuditError):
            if isinstance(file, WindowFile):
                policy, header = (
                    Policy.parse(file.policy, field="policy"),
                    parse_entry(file.entries[0], field="entry"),
                )
                if isinstance(header, WindowHeader) and header.c_policy == policy.digest():
                    schema = file.embedder.get("schema")
                    dimension = schema.get("dimension") if isinstance(schema, dict) else None
                    check_policy(policy, dimension if type(dimension) is int else None)
                    result.append(policy)
    return result if len(result) == len(case.previous) + 1 else []


def _window(case: Case) -> WindowReport:
    header, policy = case.header, case.policy
    p, q = policy.estimator.theta
    tau = (
        "the whole window"
        if policy.estimator.tau == 0
        else f"{policy.estimator.tau} {policy.estimator.tau_unit}"
    )
    return WindowReport(
        origin=header.origin,
        window=header.window,
        header=case.header_digest,
        entries=len(case.entries),
        root=case.final.root.hex(),
        policy=policy.digest(),
        embedder=f"{case.manifest['embedder']['kind']}, manifest {manifest_digest(case.manifest['embedder'])}",
        top_k=policy.top_k,
        theta=f"{p}/{q}",
        tau=tau,
        query_tokens=policy.tokens.query,
        opens_at=header.opens_at,
        closes_at=header.closes_at,
        delete_after=policy.delete_after,
    )


def _tenants(case: Case) -> list[TenantReport]:
    policy, figures = case.policy, case.figures
    bounds = figures.get("bounds")
    sigma = None if bounds is None else bounds["mechanism"]["sigma_over_delta"]
    result = []
    for part in policy.tenants:
        mechanism, tenant = policy.mechanism(part), part.tenant
        own = figures.get("tenants", {}).get(tenant)
        result.append(
            TenantReport(
                tenant=tenant,
                mechanism=mechanism.name,
                words=description(mechanism.name).words,
                eps=None if own is None else own["eps"],
                exposure=None
                if own is None
                else Exposure(**own["exposure"], realised=figures.get("exposed", {}).get(tenant, 0)),
                exclusion_factor=None if own is None else own["exclusion_factor"],
                exclusion_factor_all_accounts=None if own is None else own["exclusion_factor_all_accounts"],
                documents=None
                if (table := figures.get("documents", {}).get(tenant)) is None
                else DocumentTableReport(**table),
                chance_listed=figures.get("by_chance", {}).get(tenant),
                positions_listed=figures.get("listable", {}).get(tenant),
                capacity=part.capacity,
                accounts_max=part.accounts_max,
                longest=mechanism.longest,
                system=part.system,
                gains=list(mechanism.gains),
                lattice=mechanism.scores.lattice,
                sigma_over_delta=sigma if mechanism.uses_delta else None,
                keep=_share(mechanism.keep),
                flip_probability=_share(mechanism.flip_probability),
                keep_over_range=mechanism.keep,
                flip_over_range=mechanism.flip_probability,
                threshold=mechanism.threshold,
                score_lo=mechanism.scores.lo,
                score_hi=mechanism.scores.hi,
            )
        )
    return result


def _share(coin: int | None) -> str | None:
    return None if coin is None else f"{coin / PROBABILITY_RANGE:.6g}"


def _key(name: str, vkey: str) -> KeyReport:
    with suppress(RagAuditError):
        key = VerifierKey.parse(vkey)
        return KeyReport(name=name, vkey=vkey, key_id=key.key_id.hex(), fingerprint=sha256(key.public).hex())
    return KeyReport(name=name, vkey=vkey, key_id=None, fingerprint=None)


def _signers(signed: SignedCheckpoint | None) -> set[str]:
    return set() if signed is None else {str(key) for key in signed.cosignatures}


def _vouching(case: Case) -> Vouching:
    trust, source = case.trust, case.header.beacon
    header, end = (_signers(case.signed.get(name)) for name in ("header.signature", "ledger.checkpoint"))
    drand = isinstance(source, DrandBeacon)
    dependent = trust.dependence.dependent
    stated = {} if trust.service is None else trust.service.model_dump()
    names = {w.vkey: w.name for w in trust.witness}
    in_beacon = set() if isinstance(source, DrandBeacon) else {w.vkey for w in source.witnesses}
    return Vouching(
        provider=_key(trust.provider.origin, trust.provider.vkey),
        service=ServiceReport(**stated) if any(stated.values()) else None,
        witnesses=[
            WitnessReport(
                **_key(w.name, w.vkey).model_dump(),
                independent=w.name not in dependent,
                header=w.vkey in header,
                end=w.vkey in end,
                beacon=w.vkey in in_beacon,
                relation=w.relation,
            )
            for w in trust.witness
        ],
        quorum=trust.quorum,
        beacon=BeaconReport(
            source="drand" if drand else "witnesses",
            witnesses=[]
            if isinstance(source, DrandBeacon)
            else [names.get(w.vkey, w.name) for w in source.witnesses],
            chain=source.chain if isinstance(source, DrandBeacon) else None,
            round=source.round if isinstance(source, DrandBeacon) else None,
        ),
        verifiers=[_key(v.name, v.vkey) for v in trust.verifier],
        accounts_named=sum(account.independent for account in trust.account),
        accounts_dependent=sum(not account.independent for account in trust.account),
    )


def _counts(case: Case) -> Counts:
    figures, tallies = case.figures, case.tallies
    requested = Counter((q.tenant, q.account) for q in case.queries)
    spread = Counter((tenant, queries) for (tenant, _), queries in requested.items())
    return Counts(
        tenants=len(case.tenants),
        entries=len(case.entries),
        records=len(case.queries),
        requested=tallies.get("requested"),
        proved=figures.get("proved", 0),
        proofs=len(case.file.proofs),
        receipts_handed_in=len(case.receipts) + len(case.unread) - tallies.get("receipts_repeated", 0),
        receipts_accepted=tallies.get("receipts_accepted", 0),
        receipts_agreeing=tallies.get("receipts_agreeing", 0),
        receipts_independent=figures.get("receipts", 0) - tallies.get("receipts_dependent", 0),
        receipts_dependent=tallies.get("receipts_dependent", 0),
        receipts_other=figures.get("receipts_other", 0),
        disclosed=tallies.get("disclosed", 0),
        accounts=len(case.everyone),
        accounts_asking=len({account for _, account in requested}),
        accounts_holding_their_keys=figures.get("accounts_holding_their_keys", 0),
        enrolments=len(case.enrolments),
        enrolments_void_or_unused=figures.get("enrolments_void_or_unused", 0),
        queries_by_account=[
            QueryCount(tenant=tenant, queries=queries, accounts=accounts)
            for (tenant, queries), accounts in sorted(spread.items())
        ],
    )


def _quorum_at(case: Case, check: str) -> int | None:
    signed = case.signed.get(check)
    if signed is not None:
        with suppress(SignatureError):
            return 1000 * signed.quorum_time(case.trust.quorum)
    return None


def _events(case: Case) -> list[Event]:
    header, trailer, queries = case.header, case.trailer, case.queries
    names = f"{case.trust.quorum} of {len(case.trust.witness)} witnesses"
    result: list[Event] = []

    def happened(kind: str, at: int | None, words: str) -> None:
        if (
            at is not None and at <= MAX_SAFE_INTEGER
        ):  # a note may bear any time, and no check reads it as a date
            result.append(Event.parse({"kind": kind, "at": at, "words": words}, field="event"))

    happened("header-quorum", _quorum_at(case, "header.signature"), f"{names} had cosigned the commitments")
    happened("beacon", case.drawn.get(0), "the value of the beacon was known")
    happened("opens", header.opens_at, "the window opens")
    if queries:
        times = [q.ts for q in queries]
        happened("first-query", min(times), "the first answer was recorded")
        happened("last-query", max(times), "the last answer was recorded")
    if trailer is not None:
        happened("trailer", trailer.ts, "the provider closed the ledger")
    happened("closes", header.closes_at, "the provider may answer no query after this time")
    happened("final-quorum", _quorum_at(case, "ledger.checkpoint"), f"{names} had cosigned the end")
    happened("delete-after", case.policy.delete_after, "the provider deletes the private inputs of proofs")
    result.sort(key=lambda event: event.at or 0)
    own, published = len(case.challenges), len(case.file.challenges)
    if own or published:
        words = f"{counted(own, 'challenge')} of this verifier, {published} in the window file; a challenge has no date"
        result.append(Event(kind="challenge", at=None, words=words))
    return result


def _activity(case: Case) -> Activity | None:
    trailer = case.trailer
    start, end = case.header.opens_at, case.header.closes_at
    if trailer is not None:
        end = min(end, trailer.ts)
    if end <= start or not case.queries:
        return None
    counts = [0] * PARTS
    for query in case.queries:
        place = (query.ts - start) * PARTS // (end - start)
        counts[min(max(place, 0), PARTS - 1)] += 1
    return Activity(start=start, end=end, counts=counts)


def _link(previous: PreviousWindow) -> ChainLink:
    return ChainLink(
        header=previous.header, root=previous.root, abandoned=previous.abandoned, empty=previous.empty
    )


def _chain(case: Case) -> Chain:
    previous, trailer = case.header.previous, case.trailer
    after = None
    if trailer is not None:
        closed = ClosedWindow(case.header, case.header_digest, trailer, case.final, outcome_of(case.entries))
        after = _link(closed.as_previous())
    said = next((c.actual for c in case.checks if c.id == "header.chain"), "not checked")
    return Chain(
        before=None if previous is None else _link(previous),
        given=len(case.previous),
        reached=case.tallies.get("chain_reached", 0),
        words=said,
        after=after,
    )
