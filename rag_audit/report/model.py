"""The report of a verification: everything that any of its faces says, as one typed model (docs/report.md).

A report is made once, by `build.report_of`, and rendered by each face. It holds nothing secret: what it quotes stands
in window.json, in trust.toml or in the countersigned receipts, and of paths it has the last name alone. Reals are
decimal strings, as in every published file; `inf` is written out. Every text is one line of visible characters,
whatever a file holds.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rag_audit.models.models import Model, One
from rag_audit.verify.parts import (
    Activity,
    Chain,
    Counts,
    Event,
    InputFile,
    Number,
    OutcomeName,
    Protection,
    Real,
    ReceiptFiles,
    Standing,
    StatusName,
    TenantReport,
    Text,
    Vouching,
    WindowReport,
)


class Explanation(Model):
    """What a check's failing means to a reader (`rag-audit explain CHECK`)."""

    means: Text
    """what the check says where it passes"""
    failed: Text
    """what follows where it does not"""
    honest_causes: list[Text]
    """how an honest provider, or the reader, can have come there"""
    ask: Text
    """what to ask the provider, or to do"""
    section: Text
    """where docs say more, as file#anchor"""


class CheckLine(Model):
    """One check with its outcome."""

    id: Text
    base: Text
    """the id without its tenant, by which the check is documented"""
    tenant: Text | None
    outcome: StatusName
    decides: bool
    """whether its outcome is the verdict's"""
    expected: Text
    found: Text
    at: Text | None
    """the entry, proof or receipt that decided it"""
    explanation: Explanation | None
    """of a check that did not pass"""


class Bound(Model):
    """A bound on the noise's epsilon."""

    name: Text
    eps: Real
    counts: bool
    """whether it is the one that counts"""
    reason: Text | None
    """why it is not valid"""


class Cumulative(Model):
    """The bound for this window and the ones before it that were handed in, together."""

    windows: Number
    condition: Text
    """what the figure rests on besides: this run verified the last of the windows alone"""
    eps: Real
    delta: Real
    odds_unlisted: Real | None
    odds_unlisted_all_accounts: Real | None


class Figures(Model):
    """The figures that the checks computed."""

    standing: Standing
    """proved; for records that conform, in sampled mode; or not established, since the window did not get that far"""
    name: Literal["eps_audit", "eps_if_conforming"]
    eps: Real | None
    """epsilon over all outcomes and tenants for k_max accounts; null where no check could compute it"""
    by: Text | None
    """the bound that gives it"""
    delta: Real
    k_max: Number
    n: Number
    """queries that an account may make"""
    eps_one_account: Real | None
    eps_all_accounts: Real | None
    accounts_max: Number | None
    """the most accounts that a tenant may have, which `eps_all_accounts` speaks of"""
    eps_realised: Real | None
    realised_above: bool
    """whether `eps_realised` lies above `eps`, which happens and contradicts nothing (docs/accounting.md)"""
    odds_unlisted: Real | None
    """the most by which the absence of a document becomes more likely for k_max accounts that never received it"""
    odds_unlisted_all_accounts: Real | None
    """the same for all accounts that a tenant may have"""
    positions_per_document: Number | None
    """the positions of a document that both figures assume"""
    auc: Real | None
    """the most that any membership test by k_max accounts reaches, as area under its curve"""
    tpr_at_fpr_1pct: Real | None
    bounds: list[Bound]
    cumulative: Cumulative | None
    mode: Literal["full", "sampled"]
    beta: Real | None
    eta: Real | None
    challenge: Literal["full", "own", "published"] | None
    sampled: Number | None
    """records that a challenge drew"""
    a1: Text
    d1: Text
    coalition: Text
    largest_cluster: Number | None
    """accounts of the largest cluster of the coalition estimate"""
    largest_cluster_in_a_tenant: Number | None
    proofs: Text
    setup: Text
    abandoned: Number
    empty: Number
    allowed: list[Text]
    """exceptions that trust.toml or an option allowed"""
    scores: Text
    dimension: Number
    largest_score: Number


class Requirement(Model):
    """One requirement of trust.toml, and how near to its limit the window comes."""

    name: Text
    check: Text
    words: Text
    kind: Literal["at-most", "at-least", "level"]
    limit: Text | None
    """null where trust.toml leaves it out, which no window meets"""
    found: Text
    outcome: StatusName
    """that of the check; unproven where the check passed on what other checks left open"""
    scope: Text | None
    """whom the requirement was held against, where that is not every tenant"""
    used: Real | None
    """the share of the limit that is used: 1 is at the limit, more is beyond it; null where neither is a number"""


class ClaimLine(Model):
    """A sentence that the window shows (`report.claims`)."""

    id: Text
    words: Text
    checks: list[Text]
    """the checks, without tenants, that the sentence rests on: each of them passed"""


class Timeline(Model):
    """The window's instants, in order, and how its queries spread over it."""

    events: list[Event]
    activity: Activity | None
    future: bool
    """whether an instant that should be past lies after the time of verification"""


class Weakness(Model):
    """Something that is weaker than it could be."""

    id: Literal[
        "setup", "a1", "d1", "sampled", "challenge", "coalition", "quorum", "receipts", "mechanism", "chain"
    ]
    words: Text
    better: Text


class Measured(Model):
    """What questions find on a public collection under such a setting (docs/study.md)."""

    collection: Text
    setting: Text
    exact: Real
    """per cent of questions that find their passage among five without any mechanism"""
    found: Real
    """per cent that find it with the mechanism"""


class Retrieval(Model):
    """What a tenant's mechanism costs its readers."""

    tenant: Text
    words: Text
    measured: list[Measured]


class AttackPoint(Model):
    """What an attack got by so many accounts."""

    accounts: Number
    auc: list[Real]
    lists_auc: Real | None
    lists_auc_at_most: Real | None
    eps_at_least: Real | None
    eps_certified: Real | None
    above: bool


class AttackRow(Model):
    """One attack."""

    attack: Text
    queries: Number
    without_noise: list[Real] | None
    points: list[AttackPoint]


class AttackPart(Model):
    """The attacks on tenants of one mechanism."""

    tenants: list[Text]
    mechanism: Text
    rows: list[AttackRow]


class Attacks(Model):
    """A provider's own run of attacks, which changes nothing of the verdict."""

    label: Text
    answered_by: Text
    members: Number
    others: Number
    seed: int
    index: Number | None
    capacity: Number | None
    parts: list[AttackPart]
    left_out: Number
    above_certified: list[Text]


class Filing(Model):
    """What has to be known to file a report, and to check it again."""

    verified_at: Number
    version: Text
    inputs: list[InputFile]
    receipts: ReceiptFiles
    command: list[Text]
    """the words of the command line, with the files' names alone"""


NO_FILE = "no file of this name"
"""What a run found where an input is missing."""


class Malformed(Model):
    """Why a run has no verdict: an input that could not be used."""

    error: Text
    """the error's stable name, for programs"""
    message: Text
    object: Text | None
    """the file with the place in it, or the option"""
    expected: Text
    actual: Text
    next_step: Text

    @property
    def words(self) -> str:
        """What could not be used, in one line that says nothing twice."""
        return self.message if self.actual in (self.message, NO_FILE) else f"{self.message}: {self.actual}"


class Report(Model):
    """The report of one verification."""

    type: Literal["report"]
    v: One
    malformed: None = None
    """of a run without a verdict, what could not be used (`ShortReport`)"""
    fault: None = None
    """of a short report, what kept the whole one from being made (`ShortReport`)"""
    outcome: OutcomeName
    exit_code: Annotated[int, Field(ge=0, le=3)]
    line: Text
    """the verdict line (docs/protocol.md, "Verdict")"""
    sentence: Text
    """the verdict in words"""
    decided_by: list[Text]
    """the checks whose outcome is the verdict's; empty where every check passed"""
    protection: Protection
    claims: list[ClaimLine]
    """what the window shows, in sentences whose checks passed; none where something is false or undecided"""
    window: WindowReport
    tenants: list[TenantReport]
    figures: Figures
    checks: list[CheckLine]
    requirements: list[Requirement]
    vouching: Vouching
    counts: Counts
    timeline: Timeline
    chain: Chain
    weaker: list[Weakness]
    retrieval: list[Retrieval]
    notes: list[Text]
    does_not_prove: list[Text]
    next_steps: list[Text]
    attacks: Attacks | None
    filing: Filing

    def shows(self, claim: str) -> bool:
        """Whether the window shows what a sentence of `claims` says."""
        return any(line.id == claim for line in self.claims)


NO_PROTECTION = Protection(level="not-established", reasons=["this report has no figure"], warning=None)


class ShortReport(Model):
    """The report of a run that has no whole report: the fields of `Report`, of which those about the window are empty.

    Without a verdict the outcome is MALFORMED (an input could not be used, which `malformed` explains), INTERNAL (a
    fault of this program) or UNFINISHED (the run was stopped). With a verdict the outcome is the verdict's, and `fault`
    names the fault of this program that prevented the whole report.
    """

    type: Literal["report"]
    v: One
    malformed: Malformed | None
    fault: Text | None
    outcome: OutcomeName | Literal["MALFORMED", "INTERNAL", "UNFINISHED"]
    exit_code: Annotated[int, Field(ge=0, le=255)]
    line: Text
    sentence: Text
    decided_by: list[Text]
    protection: Protection = Field(default_factory=lambda: NO_PROTECTION)
    claims: list[ClaimLine] = Field(default_factory=list, max_length=0)
    window: None = None
    tenants: list[TenantReport] = Field(default_factory=list, max_length=0)
    figures: None = None
    checks: list[CheckLine]
    requirements: list[Requirement] = Field(default_factory=list, max_length=0)
    vouching: None = None
    counts: None = None
    timeline: None = None
    chain: None = None
    weaker: list[Weakness] = Field(default_factory=list, max_length=0)
    retrieval: list[Retrieval] = Field(default_factory=list, max_length=0)
    notes: list[Text]
    does_not_prove: list[Text]
    next_steps: list[Text]
    attacks: None = None
    filing: Filing

    @property
    def lines(self) -> list[CheckLine]:
        """The checks and, where there is no verdict, a line that says so, for formats that consist of checks."""
        if self.malformed is None and self.outcome not in ("INTERNAL", "UNFINISHED"):
            return self.checks
        name = "input.readable" if self.malformed is not None else "program.finished"
        found = self.malformed
        expected = "a verdict" if found is None else found.expected
        explanation = Explanation(
            means="every file and option that verify was given can be used" if found else "verify runs to its end",
            failed=self.sentence,
            honest_causes=["a file was cut, damaged or edited on its way", "a file is of another release"]
            if found else ["the process was stopped", "rag-audit has a fault"],
            ask=self.next_steps[0],
            section="docs/report.md#runs-without-a-verdict",
        )  # fmt: skip
        return [
            *self.checks,
            CheckLine(
                id=name,
                base=name,
                tenant=None,
                outcome="undecided",
                decides=True,
                expected=expected,
                found=self.line if found is None else found.words,
                at=None if found is None else found.object,
                explanation=explanation,
            ),
        ]
