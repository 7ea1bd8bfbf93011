"""The report of a verification: the complete content of all its formats, as one typed model (docs/report.md).

`build.report_of` makes a report once, and each format renders it. A report contains no secret: all quoted text is in
window.json, in trust.toml or in the countersigned receipts, and each path is reduced to its last name. Reals are
decimal strings, as in every published file; `inf` is written out. Every text is one line of visible characters,
whatever a file contains.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from rag_audit._internal.printable import printable
from rag_audit.mechanisms import MechanismName
from rag_audit.models.models import Hex32, Model, One
from rag_audit.models.trust import Dependence
from rag_audit.verify.verdict import OutcomeName


def _text(value: object) -> object:
    return printable(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_text)]
"""One line of visible characters; invisible characters are escaped (`errors.printable`)."""
Number: TypeAlias = int
"""An integer. A report must be able to say each value that a check can judge, also a value that the check finds out of
range, so the integers of a report have no limits."""
Real = Annotated[str, Field(pattern=r"^(-?(inf|[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)|nan)$")]
"""A real as a decimal string, inf, or nan where a figure is undefined."""
StatusName: TypeAlias = Literal["pass", "fail", "undecided", "unproven", "unmet"]
Standing: TypeAlias = Literal["proved", "if-conforming", "not-established"]
Level: TypeAlias = Literal["not-established", "none", "weak", "moderate", "strong"]


class Odds(Model):
    """The most that an even chance can become: 1 in 2 becomes at most `likely` in `of` (10 in 11 by a factor 10)."""

    likely: Number
    of: Number


class Exposure(Model):
    """The number of a tenant's documents that accounts can read (docs/accounting.md, "Exposure")."""

    accounts: Number
    """k, the accounts of the coalition: k_max, or all accounts of a smaller tenant"""
    queries: Number
    """k n, all questions of these accounts"""
    documents: Number
    """the maximum number of documents that answers can return (for noise, the positions of the index)"""
    limit: Number
    """the maximum number of documents that these accounts can read"""
    exact: Number
    """the same maximum if answers were exact"""
    by_chance: Real | None
    """an upper bound on the expected number that random flips return without relevance; null without flips"""
    exceeds_exact: bool
    """whether the expected number exceeds 1.6 times the number of exact retrieval"""
    realised: Number
    """the maximum for all questions of all the tenant's accounts in the log"""


class ProtectionLine(Model):
    """What one adversary of a tenant learns at most (`report.protection`).

    The figure has no value if a check that it depends on did not pass: then the strength is not-established, and the
    other fields are null.
    """

    strength: Level
    figure: Text
    """the figure in plain words"""
    reasons: list[Text]
    """why the strength is no higher; empty if it is strong"""
    checks: list[Text]
    """the checks, without tenants, that the figure depends on; empty if one of them did not pass"""


class IsolationLine(ProtectionLine):
    """Accounts of other tenants, who see no data of this tenant's index."""

    proved: bool
    """whether each answer of the window is proved to come from the index of the account's own tenant (claim A4)"""
    other_tenants: Number | None


class ListsLine(ProtectionLine):
    """Observers of the selected positions, or of the newly listed documents, who see no text."""

    eps: Real | None
    """null if no epsilon is finite"""
    delta: Real | None
    accounts: Number | None
    """the accounts whose lists epsilon covers together; null if it covers any number of accounts"""
    positions: Number | None
    """the maximum positions of a document that epsilon covers"""
    odds: Odds | None
    """the odds of a document's presence, apart from delta; null beyond a factor of a million"""


class PresenceLine(ProtectionLine):
    """Accounts of the tenant that ask for the document, and read its text if it is returned."""

    keep: Real | None
    """the probability that the document's random bit permits its return; null if no bit decides"""
    exposure: Exposure | None


class AbsenceLine(ProtectionLine):
    """Accounts of the tenant that never received the document, who see that it is missing. A missing result makes the
    absence of the document more likely, and never less likely."""

    exclusion_factor: Real | None
    """the maximum factor for `accounts`; null if no finite factor exists"""
    exclusion_factor_all_accounts: Real | None
    accounts: Number | None
    """the accounts that pool their answers; null if the factor is the same for any number of accounts"""
    positions: Number | None
    """the maximum positions of a document that the factor covers"""
    odds: Odds | None
    """the odds of the document's absence; null beyond a factor of a million"""


class TenantProtection(Model):
    """Who is protected from whom: one line for each adversary of a tenant. No mark combines the lines, because a figure
    about lists protects no document from an account that receives its text."""

    tenant: Text
    isolation: IsolationLine
    lists: ListsLine
    presence: PresenceLine
    absence: AbsenceLine

    @property
    def lines(self) -> dict[str, ProtectionLine]:
        """The lines by name, in the order of every format."""
        return {
            "isolation": self.isolation,
            "lists": self.lists,
            "presence": self.presence,
            "absence": self.absence,
        }


class DocumentTableReport(Model):
    """The document table of a tenant: its figures are for documents. With a sample, one Bernoulli bit decides for all
    positions of a document."""

    rows: Number
    positions_per_document: Number
    """maximum positions of a document"""
    fresh_rows: Number | None
    """rows that each window after the first replaces; null if each window draws the bits of all rows anew"""
    continues: Text | None
    """the window with the table that this window's table continues; null for a first table"""
    first: Text | None
    """the window with the first table of the chain, if this run checked all windows back to it"""


class TenantReport(Model):
    """The mechanism that protects one tenant's documents, and the parameters that determine its figures."""

    tenant: Text
    mechanism: MechanismName
    words: Text
    eps: Real | None
    """epsilon over all outcomes for k_max accounts; null where no check could compute it"""
    exposure: Exposure | None
    """the documents that accounts can read; null where no check could compute it"""
    exclusion_factor: Real | None
    """the maximum factor by which the absence of a document becomes more likely for k_max accounts that never received
    it, for a document of one position unless `documents` is given; null if every position is sampled"""
    exclusion_factor_all_accounts: Real | None
    """the same for all accounts that the tenant may have"""
    documents: DocumentTableReport | None
    """the document table, if the factors are for documents"""
    chance_listed: Real | None
    """for pooled listing: the probability that random flips without relevance list a given document in the window"""
    positions_listed: Number | None
    """maximum number of its positions that can have been listed"""
    capacity: Number
    accounts_max: Number
    longest: Number
    """maximum positions of one answer"""
    system: Text
    gains: list[Number]
    """of the noise; empty without noise"""
    lattice: Number
    sigma_over_delta: Real | None
    keep: Real | None
    """the share of positions in a sample; null if every position is sampled"""
    flip_probability: Real | None
    """for pooled listing: the probability that a query lists a document whatever its content"""
    keep_over_range: Number | None
    """`keep` over 2^40, as the policy writes it"""
    flip_over_range: Number | None
    threshold: Number | None
    score_lo: Number
    score_hi: Number

    @property
    def document_positions(self) -> int:
        """The maximum number of positions of a document that the figures cover."""
        return 1 if self.documents is None else self.documents.positions_per_document

    @property
    def persists(self) -> bool:
        """Whether documents have a table and keep their bits in later windows (`Mechanism.persists`)."""
        return self.documents is not None and self.documents.fresh_rows is not None


class KeyReport(Model):
    """A public key that trust.toml names."""

    name: Text
    vkey: Text
    key_id: Text | None
    fingerprint: Hex32 | None
    """SHA-256 of the 32 bytes of the public key; null where the vkey is malformed"""


class WitnessReport(KeyReport):
    """A witness named in trust.toml, and the acts that it signed."""

    independent: bool
    """false if trust.toml says that the provider operates the witness, or if its key is the provider's"""
    header: bool
    end: bool
    beacon: bool
    relation: Text | None
    """its relation to the provider, as trust.toml states it"""


class BeaconReport(Model):
    """The sources, other than the provider's seed, of the noise and the samples."""

    source: Literal["witnesses", "drand"]
    witnesses: list[Text]
    chain: Text | None
    round: Number | None


class ServiceReport(Model):
    """The verifier's own knowledge about the service, from trust.toml. No check confirms it."""

    purpose: Text | None
    operator: Text | None
    contact: Text | None
    keys_made_by: Text | None


class Vouching(Model):
    """The parties that vouch for the report's facts."""

    provider: KeyReport
    service: ServiceReport | None
    """null if trust.toml does not describe the service"""
    witnesses: list[WitnessReport]
    quorum: Number
    beacon: BeaconReport
    verifiers: list[KeyReport]
    """the verifiers with challenges that count"""
    accounts_named: Number
    """accounts that trust.toml lists and does not call dependent on the provider"""
    accounts_dependent: Number
    """accounts that trust.toml calls dependent on the provider, as in a pilot"""

    @property
    def dependent(self) -> list[str]:
        """The names of the witnesses that depend on the provider."""
        return [w.name for w in self.witnesses if not w.independent]

    @property
    def dependence(self) -> Dependence:
        """The dependent witnesses, as `Trust.dependence` found them."""
        names = tuple(w.name for w in self.witnesses)
        return Dependence(names, frozenset(self.dependent), self.quorum)

    @property
    def pilot(self) -> bool:
        """Whether the provider's witnesses decide a quorum, so that one party can forge each confirmation."""
        return self.dependence.pilot

    @property
    def forkable(self) -> bool:
        """Whether two quorums may have no independent witness in common, so that two ledgers could have one each."""
        return not self.dependence.shares

    @property
    def chosen(self) -> bool:
        """Whether dependent witnesses alone made the beacon, so that the provider could have chosen the randomness."""
        beacon = self.beacon
        return beacon.source == "witnesses" and not self.dependence.draws(beacon.witnesses)


class QueryCount(Model):
    """How many accounts of a tenant asked so often."""

    tenant: Text
    queries: Number
    accounts: Number


class Counts(Model):
    """The window's counts."""

    tenants: Number
    entries: Number
    records: Number
    requested: Number | None
    """records that must have proofs; null if no challenge determines them"""
    proved: Number
    """records with all lists proved"""
    proofs: Number
    """records and commitments that the window file carries proofs of"""
    receipts_handed_in: Number
    """files"""
    receipts_accepted: Number
    receipts_agreeing: Number
    """accepted receipts that agree with the ledger"""
    receipts_independent: Number
    """of accounts that trust.toml lists and does not call dependent on the provider, each record once"""
    receipts_dependent: Number
    """of accounts that trust.toml calls dependent on the provider, each record once"""
    receipts_other: Number
    disclosed: Number
    """receipts with the query's text"""
    accounts: Number
    accounts_asking: Number
    accounts_holding_their_keys: Number
    enrolments: Number
    enrolments_void_or_unused: Number
    queries_by_account: list[QueryCount]


class Event(Model):
    """An instant of the window."""

    kind: Literal[
        "header-quorum",
        "beacon",
        "opens",
        "first-query",
        "last-query",
        "trailer",
        "closes",
        "final-quorum",
        "challenge",
        "delete-after",
        "verified",
    ]
    at: Number | None
    """milliseconds since the epoch; null where no time is known, as of a challenge"""
    words: Text


class Activity(Model):
    """Queries over the window's interval, in parts of equal length."""

    start: Number
    end: Number
    counts: list[Number]


class ChainLink(Model):
    """The data about the previous window that a header contains, or has to contain."""

    header: Hex32
    root: Hex32
    abandoned: Number
    empty: Number


class Chain(Model):
    """The windows before and after this one."""

    before: ChainLink | None
    """null for the origin's first window"""
    given: Number
    """number of supplied earlier windows"""
    reached: Number
    """the number of previous windows that the chain reaches"""
    words: Text
    after: ChainLink | None
    """the data that the next window's header has to name; null if this window has no end"""


class InputFile(Model):
    """A file that the verdict rests on."""

    role: Literal["window", "sibling", "trust", "previous", "challenge", "attacks"]
    name: Text
    sha256: Hex32 | None
    """null if the library received a value instead of a file"""


class ReceiptFiles(Model):
    """The supplied receipts.

    `sha256` is the digest of the output of `sha256sum` for them (digest, two spaces, name), in the order of their
    names.
    """

    files: Number
    sha256: Hex32 | None


class WindowReport(Model):
    """The window, from its published data."""

    origin: Text
    window: Text
    header: Hex32
    """digest of entry 0, the window's name in every signature"""
    entries: Number
    root: Hex32
    policy: Hex32
    embedder: Text
    top_k: Number
    theta: Text
    tau: Text
    query_tokens: Number
    opens_at: Number
    closes_at: Number
    delete_after: Number


class Explanation(Model):
    """The meaning of a failing check for a reader (`rag-audit verifier explain CHECK`)."""

    means: Text
    """the statement that holds if the check passes"""
    failed: Text
    """the consequence if it does not pass"""
    honest_causes: list[Text]
    """how an honest provider, or the reader, can have come there"""
    ask: Text
    """the question for the provider, or the action to take"""
    section: Text
    """where docs say more, as file#anchor"""


class CheckLine(Model):
    """One check with its outcome."""

    id: Text
    base: Text
    """the id without its tenant, as in the documentation"""
    tenant: Text | None
    outcome: StatusName
    decides: bool
    """whether its outcome is the verdict's"""
    expected: Text
    actual: Text
    at: Text | None
    """the entry, proof or receipt that decided it"""
    explanation: Explanation | None
    """of a check that did not pass"""


class Bound(Model):
    """A bound on the noise's epsilon."""

    name: Text
    eps: Real
    counts: bool
    """whether this is the counting bound"""
    reason: Text | None
    """why it is not valid"""


class Cumulative(Model):
    """The composed bound for this window and the supplied previous windows."""

    windows: Number
    condition: Text
    """a further condition of the figure: this run verified only the last of the windows"""
    eps: Real
    delta: Real
    """the largest delta that the eps of a tenant needs: 0 if no tenant needs one"""
    positions_per_document: Number
    """the maximum number of positions of a document to which `eps` applies"""
    exclusion_factor: Real | None
    exclusion_factor_all_accounts: Real | None


class Figures(Model):
    """The figures that the checks computed."""

    standing: Standing
    """proved; for records that conform, in sampled mode; or not established, since the window did not get that far"""
    name: Literal["eps_audit", "eps_if_conforming"]
    eps: Real | None
    """epsilon over all outcomes and tenants for k_max accounts; null where no check could compute it"""
    by: Text | None
    """the bound that gives it"""
    decisive: Text | None
    """the tenant with the largest epsilon, or the first tenant without a finite one; null without a figure"""
    delta: Real
    k_max: Number
    n: Number
    """queries that an account may make"""
    eps_one_account: Real | None
    eps_all_accounts: Real | None
    accounts_max: Number | None
    """maximum number of accounts of a tenant, the basis of `eps_all_accounts`"""
    eps_realised: Real | None
    realised_above: bool
    """whether `eps_realised` exceeds `eps`, which can happen without a contradiction (docs/accounting.md)"""
    exclusion_factor: Real | None
    """the maximum factor by which the absence of a document becomes more likely for k_max accounts that never
    received it"""
    exclusion_factor_all_accounts: Real | None
    """the same for all accounts that a tenant may have"""
    positions_per_document: Number | None
    """the positions of a document that both figures assume"""
    auc: Real | None
    """the maximum of any membership test by k_max accounts, as area under its curve"""
    tpr_at_fpr_1pct: Real | None
    bounds: list[Bound]
    cumulative: Cumulative | None
    mode: Literal["full", "sampled"]
    beta: Real | None
    eta: Real | None
    challenge: Literal["full", "own", "published"] | None
    sampled: Number | None
    """records that a challenge drew"""
    query_embedding: Text
    document_embedding: Text
    coalition: Text
    largest_cluster: Number | None
    """accounts of the largest cluster of the estimate of repeated questions"""
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
    actual: Text
    outcome: StatusName
    """the outcome of the check; unproven if the check passed on facts that other checks left open"""
    scope: Text | None
    """the tenants that the requirement applied to, if not every tenant"""
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
        "senders_trust",
        "packed_report",
        "setup",
        "query_embedding",
        "document_embedding",
        "sampled",
        "challenge",
        "coalition",
        "beacon",
        "quorum",
        "receipts",
        "mechanism",
        "chain",
    ]
    words: Text
    better: Text


class Measured(Model):
    """The share of questions with their passage on a public collection under such a setting (docs/study.md)."""

    collection: Text
    setting: Text
    exact: Real
    """per cent of questions that find their passage among five without any mechanism"""
    actual: Real
    """per cent that find it with the mechanism"""


class Retrieval(Model):
    """The cost of a tenant's mechanism for its readers."""

    tenant: Text
    words: Text
    measured: list[Measured]


class AttackPoint(Model):
    """The result of an attack by this number of accounts."""

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
    """A provider's own run of attacks. It does not affect the verdict."""

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
    """The data needed to file a report, and to repeat its verification."""

    verified_at: Number
    version: Text
    inputs: list[InputFile]
    receipts: ReceiptFiles
    command: list[Text]
    """the words of the command line, with only the last names of the files"""


NO_FILE = "no file of this name"
"""The value in an error for a missing input."""


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
        """The unusable input, in one line without repetition."""
        return self.message if self.actual in (self.message, NO_FILE) else f"{self.message}: {self.actual}"


class ReportSignature(Model):
    """A verifier's signature on its report (`report.signature`)."""

    name: Text
    """the name of the verifier's key"""
    key_id: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")]
    vkey: Text
    """the public key; it shows who signed only to a reader who received the same key by another way"""
    sha256: Hex32
    """SHA-256 of the report's canonical JSON (RFC 8785) with `signature` null"""
    note: Annotated[list[Text], Field(max_length=16)]
    """the lines of the signed note: its kind, the window header's digest, the verdict line, `sha256`, an empty line,
    and the signature"""


class Report(Model):
    """The report of one verification."""

    type: Literal["report"]
    v: One
    malformed: None = None
    """for a run without a verdict, the unusable input (`ShortReport`)"""
    fault: None = None
    """for a short report, the fault that prevented the whole report (`ShortReport`)"""
    outcome: OutcomeName
    exit_code: Annotated[int, Field(ge=0, le=3)]
    line: Text
    """the verdict line (docs/protocol.md, "Verdict")"""
    sentence: Text
    """the verdict in words"""
    decided_by: list[Text]
    """the checks with the verdict's outcome; empty if every check passed"""
    protections: list[TenantProtection]
    """four lines for each tenant, in the order of `tenants`; no mark combines them"""
    warnings: list[Text]
    """what a reader must not overlook: a missing or large epsilon, a large exposure, witnesses of the provider"""
    claims: list[ClaimLine]
    """the proved facts about the window, in sentences with only passed checks; empty if a check is false or
    undecided"""
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
    signature: ReportSignature | None = None
    """of the verifier (`verify --sign`)"""

    @property
    def remark(self) -> str:
        """The end of the verdict's first line for people: whose trust file decided the verdict on a bundle, and whether
        the packed report contradicts a pass. Empty without a bundle."""
        for weakness in self.weaker:
            if weakness.id == "senders_trust":
                return f" [{weakness.words}]"
            if weakness.id == "packed_report" and self.exit_code == 0:
                return f" [WARNING: {weakness.words}]"
        return ""

    def shows(self, claim: str) -> bool:
        """Whether the window shows the fact stated by a sentence of `claims`."""
        return any(line.id == claim for line in self.claims)


class ShortReport(Model):
    """The report of a run without a whole report. It has the fields of `Report`; the fields about the window are empty.

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
    protections: list[TenantProtection] = Field(default_factory=list, max_length=0)
    warnings: list[Text] = Field(default_factory=list, max_length=0)
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
    signature: ReportSignature | None = None
    """of the verifier (`verify --sign`)"""
    remark: ClassVar[str] = ""

    @property
    def lines(self) -> list[CheckLine]:
        """The checks and, if there is no verdict, a line about it, for formats that consist of checks."""
        if self.malformed is None and self.outcome not in ("INTERNAL", "UNFINISHED"):
            return self.checks
        name = "input.readable" if self.malformed is not None else "program.finished"
        actual = self.malformed
        expected = "a verdict" if actual is None else actual.expected
        explanation = Explanation(
            means="every file and option that verify was given can be used" if actual else "verify runs to its end",
            failed=self.sentence,
            honest_causes=["a file was cut, damaged or edited on its way", "a file is of another release"]
            if actual else ["the process was stopped", "rag-audit has a fault"],
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
                actual=self.line if actual is None else actual.words,
                at=None if actual is None else actual.object,
                explanation=explanation,
            ),
        ]
