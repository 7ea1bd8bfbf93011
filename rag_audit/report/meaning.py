"""A report's answers to the ten questions of its readers, in sentences (docs/report.md, "Ten questions")."""

from __future__ import annotations

import math
from decimal import Decimal

from rag_audit._internal.words import counted, listed, of_positions
from rag_audit.mechanisms import named
from rag_audit.mechanisms.descriptions import description
from rag_audit.mechanisms.descriptions.base import listed_at_random, percent
from rag_audit.report.claims import chosen
from rag_audit.report.model import DocumentTableReport, Measured, Report, Requirement, TenantReport
from rag_audit.report.protection import conditions
from rag_audit.report.requirements import nearest
from rag_audit.report.strength import tier

_MANY = 1_000_000
_SHOWN = 4


def one_in(probability: float) -> str:
    """A probability as ``1 in ..``, rounded up, so that it stays an upper bound."""
    if probability <= 0:
        return "0"
    if probability >= 0.5:
        return f"{math.ceil(100 * min(probability, 1.0) - 1e-9)} in 100"
    return f"1 in {math.floor(1 / probability + 1e-9):,}"


def factor(eps: float) -> str:
    """e^eps in words, rounded up."""
    if eps > math.log(_MANY):
        return f"a factor of e^{eps:.5g}, which is above a million"
    value = math.exp(eps)
    return f"a factor {math.ceil(value):,}" if value >= 10 else f"a factor {math.ceil(10 * value) / 10:g}"


STRENGTHS = {
    "strong": "strong, because it is at most 1",
    "moderate": "moderate, because it is between 1 and 10, where guarantees are usually called reasonable",
    "weak": "weak, because it is above 10, where epsilon promises little",
    "none": "none, because no number bounds the information in answers",
}
"""Each tier of epsilon in words."""


def strength(eps: float) -> str:
    """The strength of an epsilon, in words."""
    return STRENGTHS[tier(eps)]


def _graded(report: Report, tenant: str | None, words: str) -> str:
    """The strength of a tenant's epsilon, with its condition if the line of the tenant has a lower one."""
    own = next((p for p in report.protections if p.tenant == tenant), None)
    if own is None or own.lists.eps is None or own.lists.strength == tier(float(own.lists.eps)):
        return f"is {words}"
    others, gap = conditions(report, own)
    unless = [
        *(["other parties confirmed it"] if others else []),
        *(["each answer were proved"] if gap else []),
    ]
    return f"is {own.lists.strength}; it would be {words}, if {' and '.join(unless)}"


def privacy_words(report: Report) -> list[str]:
    """The meaning of epsilon, its strength, and two related figures."""
    f = report.figures
    if f.standing == "not-established":
        return ["not established: a window has no privacy figure unless its checks passed"]
    if f.eps is None:
        return ["no check could compute a privacy figure"]
    any_number = all(description(t.mechanism).any_coalition for t in report.tenants)
    who = (
        "any number of colluding accounts"
        if any_number
        else f"up to {counted(f.k_max, 'colluding account')} of {counted(f.n, 'query', 'queries')} each"
    )
    lines = []
    if report.outcome.startswith("PASS-INTEGRITY") or not all(
        named(t.mechanism).protects for t in report.tenants
    ):
        bare = [t.tenant for t in report.tenants if not named(t.mechanism).protects]
        lines.append(
            f"no privacy for {listed(bare)}: answers are exact, and the window only proves integrity"
        )
    eps = float(f.eps)
    if math.isfinite(eps):
        condition = (
            "; this holds only if the provider followed its own rules (pilot)"
            if report.vouching.pilot
            else "; this holds only if the provider did not choose the randomness, which its own witnesses made"
            if chosen(report.vouching, report.tenants)
            else ""
        )
        graded = _graded(report, f.decisive, strength(eps))
        lines.append(f"{f.name} is {f.eps} for {who}; for lists this {graded}{condition}")
    elif any(named(t.mechanism).limit == "max_exclusion_factor" for t in report.tenants):
        lines.append(
            f"{f.name} has no value for {who}: a mechanism of this window has no epsilon over all outcomes"
        )
    for tenant in report.tenants:
        if tenant.documents is not None and named(tenant.mechanism).uses_delta:
            size = counted(tenant.documents.positions_per_document, "position")
            lines.append(
                f"eps of tenant {tenant.tenant} is for a document of at most {size}; no proof shows that content (a"
                " copy, a split) has one row of the document table only, and the losses of several rows add up; eps of"
                " a replaced document assumes uniformly random positions, which no proof shows"
            )
        own = float(tenant.eps or "inf")
        if math.isfinite(own) and (not math.isfinite(eps) or tenant.eps != f.eps):
            graded = _graded(report, tenant.tenant, tier(own))
            lines.append(f"eps of tenant {tenant.tenant} is {tenant.eps} (this {graded}): the odds change by at most"
                         f" {factor(own)}")  # fmt: skip
    by_exclusion_factor: dict[tuple[str, str | None], list[str]] = {}
    for tenant in report.tenants:
        if tenant.exclusion_factor is None:
            continue
        if tenant.documents is not None:
            chance = tenant.exposure is not None and tenant.exposure.by_chance is not None
            lines += _of_documents(tenant.tenant, tenant.exclusion_factor, tenant.documents, chance=chance)
        else:
            by_exclusion_factor.setdefault(
                (tenant.exclusion_factor, tenant.exclusion_factor_all_accounts), []
            ).append(tenant.tenant)
    for (odds, every), names in by_exclusion_factor.items():
        lines.append(
            f"accounts of {listed(names)} that never received a given document of one position may conclude its"
            f" absence, which becomes more likely by a factor of at most {odds} for {counted(f.k_max, 'account')}"
            f" (exclusion_factor) and {every} for all accounts; the limit for a document of s positions is the s-th"
            f" power (higher with noise), and the presence of a document that an account asks for has no protection"
        )
    if f.tpr_at_fpr_1pct is not None:
        lines.append(
            f"a test that wrongly suspects 1 in 100 absent documents {of_positions(f.positions_per_document or 1)}"
            " recognises at most"
            f" {one_in(float(f.tpr_at_fpr_1pct))} present ones (guessing: 1 in 100)"
        )
    others = [f"{f.eps_one_account} for one account"]
    if f.eps_all_accounts is not None:
        others.append(f"{f.eps_all_accounts} for all {f.accounts_max} accounts of a tenant")
    if f.eps_realised is not None:
        others.append(f"{f.eps_realised} for the queries that accounts sent")
    lines.append(f"eps of other groups is {listed(others)}")
    if f.realised_above:
        lines.append(
            f"the figure for the sent queries is above {f.name}, which is no contradiction: accounts choose"
            " the number of their queries when they know earlier answers, and the correction for this choice"
            f" costs more here than the unused queries would; {f.name} is the bound"
        )
    if f.standing == "if-conforming":
        drawn = f.sampled == report.counts.records
        lines.append(
            "the draw of sampled mode covers every record, and every record is proved"
            if drawn
            else f"this holds for records that conform: up to a share {f.beta} of the records may be false or"
            " without noise, and the draw misses a larger share with probability at most"
            f" {one_in(float(f.eta or 1))}"
        )
    return lines


def _of_documents(tenant: str, odds: str, table: DocumentTableReport, *, chance: bool) -> list[str]:
    """The meaning of a tenant's factor for documents, with what the document table does not show.

    :param chance: whether chance lists documents at the queries of each window, and listed documents stay listed
    """
    whole = counted(table.positions_per_document, "position")
    if table.fresh_rows is None:
        chain = "each window draws the bits anew, and windows multiply the factor"
    elif chance:
        chain = (
            "a document keeps its bit and stays listed in the chain of windows; the factor counts the random bits of"
            " all queries that the policy permits in all windows of the chain so far, and the random bits of each other"
            " window raise it"
        )
    else:
        chain = (
            "a document keeps its bit in the chain of windows; content under c rows (a copy, a split, or a document"
            " that was given up and added again) has the c-th power"
        )
    lines = [
        f"accounts of {tenant} that never received a given document of at most {whole} may conclude its absence, which"
        f" becomes more likely by a factor of at most {odds} for any number of accounts (exclusion_factor); {chain};"
        " the presence of a document that an account asks for has no protection"
    ]
    if table.fresh_rows is not None:
        mark = " and stays listed or not" if chance else ""
        lines += [
            f"an account of {tenant} that received a document in any window of the chain learns every later version and"
            " its removal",
            f"from the second window on, bits of {tenant} are older than the tables that use them: a carried row keeps"
            f" its bit{mark}, and each later window draws {table.fresh_rows} of {table.rows} bits anew; not proved:"
            " that a document keeps one name or appears only once, and that the provider did not start another origin;"
            " an account checks the names of the documents that it received (rag-audit account names)",
        ]
    return lines


def vouched_words(report: Report) -> list[str]:
    """The parties that signed the window: provider, witnesses, beacon."""
    v = report.vouching
    both = [w.name for w in v.witnesses if w.header and w.end]
    all_of = listed(both) if both else "no witness"
    words = (
        f"{all_of} cosigned both the window header and the end of the ledger (trust.toml requires {v.quorum} of"
        f" {counted(len(v.witnesses), 'witness', 'witnesses')})"
    )
    for part, names in (
        ("header", [w.name for w in v.witnesses if w.header and not w.end]),
        ("end", [w.name for w in v.witnesses if w.end and not w.header]),
    ):
        if names:
            words += f"; {listed(names)} cosigned only the {part}"
    beacon = (
        f"the beacon is drand round {v.beacon.round}"
        if v.beacon.source == "drand"
        else f"the beacon consists of nonces of {listed(v.beacon.witnesses)}"
    )
    if v.pilot:
        depend = "depends" if len(v.dependent) == 1 else "depend"
        words = f"PILOT: {listed(v.dependent)} {depend} on the provider; {words}"
        beacon += ", so the provider could have chosen the randomness"
    elif v.chosen:
        beacon += ", all of them witnesses of the provider, so the provider could have chosen the randomness"
    elif not report.shows("randomness") and not _bare(report):
        beacon = "the beacon is not established"
    key = f"{v.provider.name}+{v.provider.key_id or 'malformed'}"
    signed = f"the provider signed with key {key}"
    if not report.shows("provider"):
        signed = (
            f"this report draws no conclusion from signatures of provider key {key} (see the checks below)"
            if _silent(report)
            else f"no signature of provider key {key} counts"
        )
    return [f"{words}; {beacon}; {signed}"]


def _silent(report: Report) -> bool:
    """Whether the report makes no statement about the window, even if the checks for such a statement passed."""
    return report.outcome in ("FAIL", "UNDECIDED")


def _bare(report: Report) -> bool:
    """Whether no tenant has a mechanism, so that no figure depends on a beacon."""
    return report.shows("answers") and not any(named(t.mechanism).protects for t in report.tenants)


def counted_words(report: Report) -> list[str]:
    """How many records, proofs and receipts."""
    c = report.counts
    proved = (
        "no draw counts" if c.requested is None else f"{c.proved:,} proved, {c.requested:,} require a proof"
    )
    if not report.shows("answers") and not report.shows("answers-drawn"):
        proved = "this report does not establish that they are proved"
    files = report.filing.receipts.files
    twice = f" (in {files:,} files)" if files > c.receipts_handed_in > 0 else ""
    supplied = f"the reader supplied {counted(c.receipts_handed_in, 'receipt')}{twice}"
    if c.receipts_handed_in:
        agree = f"{c.receipts_agreeing:,} in agreement with the ledger" if report.shows("receipts") else None
        named = f"{c.receipts_independent + c.receipts_dependent:,} from accounts that trust.toml lists"
        if c.receipts_dependent:
            named += (
                f", {c.receipts_dependent:,} of them from accounts that are not independent of the provider"
            )
        shown = [agree, named if report.shows("receipts-independent") else None]
        supplied += ": " + (
            ", ".join(part for part in shown if part) or "this report draws no conclusion from receipts"
        )
    asking = f"sent by {c.accounts_asking:,} of {counted(c.accounts, 'account')}"
    if not c.records:
        return [f"no record: none of {counted(c.accounts, 'account')} sent a query; {supplied}"]
    return [f"{counted(c.records, 'record')} ({proved}) {asking}; {supplied}"]


def _near(r: Requirement) -> str:
    scope = "" if r.scope is None else f" ({r.scope})"
    return f"{r.name} is {r.actual} ({r.kind.replace('-', ' ')} {r.limit}){scope}"


def nearest_words(report: Report) -> list[str]:
    """Which requirement is closest to its limit, or beyond it."""
    if report.figures.standing == "not-established":
        return ["no limit of trust.toml counts as met, because the values of the window are not established"]
    missed = [r for r in report.requirements if r.outcome != "pass"]
    if missed:
        named = "; ".join(
            f"{r.name} is {r.actual} ({'trust.toml has no limit' if r.limit is None else _wanted(r)})"
            for r in missed
        )
        return [f"the window does not meet {len(missed)} of {len(report.requirements)} requirements: {named}"]
    ranked = nearest(report.requirements)
    at = [r for r in ranked if Decimal(r.used or "0") >= 1]
    rest = [r for r in ranked if Decimal(r.used or "0") < 1]
    parts = []
    if at:
        more = f" and {len(at) - _SHOWN} more" if len(at) > _SHOWN else ""
        parts.append(
            f"the window meets these limits without a margin: {', '.join(map(_near, at[:_SHOWN]))}{more}"
        )
    if rest:
        share = f"{100 * float(rest[0].used or 0):.3g} %"
        closest = "the closest other limit" if at else "the closest limit"
        parts.append(f"{closest}: {_near(rest[0])}, of which the window uses {share}")
    return ["; ".join(parts) or "trust.toml has no limit with a number"]


def _wanted(r: Requirement) -> str:
    return f"required: {'' if r.kind == 'level' else r.kind.replace('-', ' ') + ' '}{r.limit}"


def weaker_words(report: Report) -> list[str]:
    """The weaker aspects of the verification: set-up, D1, sampled mode, coalition and others."""
    return [f"{w.id}: {w.words}" for w in report.weaker] or [
        "this release knows no aspect that could be stronger"
    ]


def retrieval_words(report: Report) -> list[str]:
    """The cost in retrieval quality, by mechanism."""
    by_words: dict[str, list[str]] = {}
    for r in report.retrieval:
        by_words.setdefault(r.words, []).append(r.tenant)
    lines = [f"{listed(tenants[:6])}: {words}" for words, tenants in by_words.items()]
    lines += _measured(report)
    return lines


def _measured(report: Report) -> list[str]:
    """The measured settings nearest to this window's, each with the range over the collections."""
    by_setting: dict[str, list[Measured]] = {}
    for m in (m for r in report.retrieval for m in r.measured):
        if m not in by_setting.setdefault(m.setting, []):
            by_setting[m.setting].append(m)
    if not by_setting:
        return []
    shares = [f"{_range([m.actual for m in ms])} % with {setting}" for setting, ms in by_setting.items()]
    exact = _range([m.exact for ms in by_setting.values() for m in ms])
    return [
        "on public collections (docs/study.md), the share of questions that find their passage among five results is"
        f" {listed([*shares, f'{exact} % without a mechanism'])}"
    ]


def _range(values: list[str]) -> str:
    ordered = sorted(values, key=float)
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"


def handed_out(tenant: TenantReport, queries: int) -> tuple[float, float]:
    """The probability that unlimited noise returns a given document: for one query, and for the given number."""
    share = listed_at_random(tenant.longest, tenant.capacity, tenant.document_positions)
    return share, 1 - (1 - share) ** queries


def outside_words(report: Report) -> list[str]:
    """The risks that the figures do not cover, in one sentence; the full list follows the report."""
    noisy = [t for t in report.tenants if named(t.mechanism).uses_delta]
    any_number = all(description(t.mechanism).any_coalition for t in report.tenants)
    beyond = "" if any_number else f"coalitions above {counted(report.figures.k_max, 'account')}, "
    lines = [
        "the figures do not cover the content of a returned passage (its account reads it), the text that a model"
        f" writes from it, {beyond}and answers outside of the ledger; the end of this report lists"
        f" {len(report.does_not_prove)} such points"
    ]
    if noisy and report.figures.standing != "not-established":
        tenant = max(noisy, key=lambda t: handed_out(t, 1))
        once, often = handed_out(tenant, report.figures.n)
        size = tenant.document_positions
        filling = "" if size == 1 else f" of {size} positions"
        lines.append(
            f"even with unlimited noise, an answer returns a given document{filling} among {tenant.capacity:,}"
            f" positions with probability {percent(once)} a query (K = {tenant.longest}), {percent(often)} over"
            f" {report.figures.n:,}"
        )
    return lines


def chain_words(report: Report) -> list[str]:
    """The previous window, and the window header fields that the next window has to name."""
    chain = report.chain
    if not report.shows("chain"):
        if _silent(report):
            return [
                "this report draws no conclusion about the previous window (see the check header.chain below)"
            ]
        return ["the previous window is not established"]
    words = (
        f"this window is the first of its origin ({chain.words})"
        if chain.before is None
        else f"the previous window: {chain.words}"
    )
    if chain.before is not None and chain.before.abandoned:
        words += f"; {counted(chain.before.abandoned, 'window')} abandoned since the last complete one"
    if chain.before is not None and chain.before.empty:
        words += f"; {counted(chain.before.empty, 'window')} without a query since the last complete one"
    lines = [words]
    if chain.after is not None:
        lines.append(
            f"the next window has to name this header, {chain.after.header[:16]}.., and this final root,"
            f" {chain.after.root[:16]}.."
        )
    if report.figures.cumulative is not None:
        c = report.figures.cumulative
        lines.append(
            f"the eps of {c.windows} windows over one index is {c.eps} in total, at delta {c.delta}, about a document"
            f" {of_positions(c.positions_per_document)}; {c.condition}"
        )
    elif chain.before is not None:
        lines.append(
            "the eps of windows over one index add up: rag-audit verifier cumulative computes their total"
        )
    return lines
