"""What a report says of a window beside its checks: parts of the model that the verifier itself takes from a case."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from rag_audit._internal.printable import printable
from rag_audit.models.models import Hex32, Model


def _text(value: object) -> object:
    return printable(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_text)]
"""One line of visible characters: what is not visible is escaped (`errors.printable`)."""
Number: TypeAlias = int
"""An integer. A report must be able to say each value that a check can judge, also a value that the check finds out of
range, so the integers of a report have no limits."""
Real = Annotated[str, Field(pattern=r"^(-?(inf|[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?)|nan)$")]
"""A real as a decimal string, inf, or nan where a figure is undefined."""
OutcomeName: TypeAlias = Literal[
    "PASS",
    "PASS-SAMPLED",
    "PASS-INTEGRITY",
    "PASS-INTEGRITY-SAMPLED",
    "FAIL",
    "UNDECIDED",
    "UNPROVEN",
    "UNMET",
]
StatusName: TypeAlias = Literal["pass", "fail", "undecided", "unproven", "unmet"]
Standing: TypeAlias = Literal["proved", "if-conforming", "not-established"]
Level: TypeAlias = Literal["not-established", "none", "weak", "moderate", "strong"]


class Protection(Model):
    """How strong the protection of a window's documents is (`report.strength`)."""

    level: Level
    """that of the tenant whose protection is the weakest"""
    reasons: list[Text]
    """why it is no stronger"""
    warning: Text | None
    """of a pass whose protection is weak or none: the sentence that keeps a reader from taking a pass for protection"""


class TenantReport(Model):
    """What protects one tenant's documents, and the parameters from which its figures follow."""

    tenant: Text
    mechanism: Literal["noise", "sampling", "listing", "none"]
    words: Text
    eps: Real | None
    """epsilon over all outcomes for k_max accounts; null where no check could compute it"""
    odds_unlisted: Real | None
    """the most by which the absence of a document of one position becomes more likely for k_max accounts that never
    received it; null where every position is kept"""
    odds_unlisted_all_accounts: Real | None
    """the same for all accounts that the tenant may have"""
    chance_listed: Real | None
    """of listing: how likely chance alone lists a given position to one of k_max accounts"""
    positions_listed: Number | None
    """the most of its positions that can have been listed"""
    capacity: Number
    accounts_max: Number
    longest: Number
    """the most positions of one answer"""
    system: Text
    gains: list[Number]
    """of the noise; empty without noise"""
    lattice: Number
    sigma_over_delta: Real | None
    keep: Real | None
    """the share of positions that a sample keeps; null where every position is kept"""
    chance: Real | None
    """of listing: the probability that a position is listed at a query whatever it holds"""
    keep_coin: Number | None
    """`keep` over 2^40, as the policy writes it"""
    chance_coin: Number | None
    threshold: Number | None
    score_lo: Number
    score_hi: Number


class KeyReport(Model):
    """A public key that trust.toml names."""

    name: Text
    vkey: Text
    key_id: Text | None
    fingerprint: Hex32 | None
    """SHA-256 of the 32 bytes of the public key; null where the vkey is malformed"""


class WitnessReport(KeyReport):
    """A witness that trust.toml names, and what it put its name to."""

    opening: bool
    end: bool
    beacon: bool


class BeaconReport(Model):
    """What the noise and the samples depend on beside the provider's seed."""

    source: Literal["witnesses", "drand"]
    witnesses: list[Text]
    chain: Text | None
    round: Number | None


class Vouching(Model):
    """Who vouches for what the report says."""

    provider: KeyReport
    witnesses: list[WitnessReport]
    quorum: Number
    beacon: BeaconReport
    verifiers: list[KeyReport]
    """whose challenges count"""
    accounts_named: Number
    """accounts that trust.toml knows to be independent of the provider"""


class QueryCount(Model):
    """How many accounts of a tenant asked so often."""

    tenant: Text
    queries: Number
    accounts: Number


class Counts(Model):
    """How many there were of what."""

    tenants: Number
    entries: Number
    records: Number
    asked: Number | None
    """records that must have proofs; null where no challenge says which"""
    proved: Number
    """records whose every list is proved"""
    proofs: Number
    """records and commitments that the window file carries proofs of"""
    receipts_handed_in: Number
    """files"""
    receipts_accepted: Number
    receipts_agreeing: Number
    """accepted ones that the ledger agrees with"""
    receipts_independent: Number
    """of accounts that trust.toml names, each record once"""
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
        "opening-quorum",
        "beacon",
        "opens",
        "first-query",
        "last-query",
        "closing",
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


class Link(Model):
    """What an opening says, or has to say, of the window before it."""

    opening: Hex32
    root: Hex32
    abandoned: Number
    empty: Number


class Chain(Model):
    """The windows before and after this one."""

    before: Link | None
    """null for the origin's first window"""
    given: Number
    """earlier windows handed in"""
    reached: Number
    """those of them that the chain reaches"""
    words: Text
    after: Link | None
    """what the opening of the next window has to name; null where this one has no end"""


class InputFile(Model):
    """A file that the verdict rests on."""

    role: Literal["window", "sibling", "trust", "previous", "challenge", "attacks"]
    name: Text
    sha256: Hex32 | None
    """null where the library was handed a value in place of a file"""


class ReceiptFiles(Model):
    """The receipts that were handed in.

    `sha256` is the digest of what `sha256sum` prints for them (digest, two spaces, name), in the order of their names.
    """

    files: Number
    sha256: Hex32 | None


class WindowReport(Model):
    """The window, by what it publishes."""

    origin: Text
    window: Text
    opening: Hex32
    """digest of entry 0, the window's name in every signature"""
    entries: Number
    root: Hex32
    policy: Hex32
    policy_version: Number
    embedder: Text
    top_k: Number
    theta: Text
    tau: Text
    query_tokens: Number
    opens_at: Number
    closes_at: Number
    delete_after: Number
