"""trust.toml: the only source of trust of a verifier (docs/protocol.md, "Trust").

A key, pin or level that is found only inside a window is never used. A missing key or pin leads to exit code 2, an
unmet requirement or an absent ``max_``/``min_`` to exit code 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, PlainValidator, StringConstraints, WithJsonSchema

from rag_audit._internal.canonical import parse_toml, read_bytes
from rag_audit._internal.errors import SchemaError
from rag_audit.log.keys import VerifierKey
from rag_audit.mechanisms import MechanismName
from rag_audit.models.models import (
    Count,
    DecimalText,
    Hex32,
    Identifier,
    Line,
    Model,
    One,
    Positive,
    repeated,
)

MAX_TRUST_BYTES = 1 << 20
QUERY_EMBEDDING_LEVELS = ("declared", "re-executed", "proved(unpinned)", "proved")
DOCUMENT_EMBEDDING_LEVELS = ("declared", "re-executed", "proved")
CHALLENGE_LEVELS = ("published", "own", "full")
COALITION_LEVELS = ("not-checked", "checked")
MAX_EMPTY = 7
"""Windows in a row that may end without a query: a week of daily windows. Each is one more draw of the seed."""
WHOLE_WINDOW = "0"
NOISE: MechanismName = "noise"
_TAU = re.compile(r"\A([1-9][0-9]{0,14}) (positions|seconds)\Z")
TAU_FORMS = '0 (the whole window), or a text with its unit: "500 positions", "3600 seconds"'


def _tau(value: object) -> int | str:
    if type(value) is int and value == 0:
        return value
    if isinstance(value, str) and _TAU.match(value):
        return value
    raise ValueError(TAU_FORMS)


Tau = Annotated[
    int | str,
    PlainValidator(_tau),
    WithJsonSchema(
        {"anyOf": [{"const": 0}, {"type": "string", "pattern": "^[1-9][0-9]{0,14} (positions|seconds)$"}]}
    ),
]
"""A span with its unit, or the integer 0 for the whole window."""


class ProviderTrust(Model):
    """The provider, who signs the ledger."""

    origin: Line
    vkey: str


class ServiceTrust(Model):
    """The verifier's own knowledge about the service, for reports. No check reads it."""

    purpose: Line | None = None
    operator: Line | None = None
    contact: Line | None = None
    keys_made_by: Line | None = None


class WitnessTrust(Model):
    """A witness. Its cosignature counts towards the quorum."""

    name: Line
    vkey: str
    independent: bool = True
    """false for a witness that the provider operates, as in a pilot; a verdict that depends on it then says so"""
    relation: Line | None = None
    """its relation to the provider, for reports"""


class DrandTrust(Model):
    """A pinned drand chain."""

    chain: Hex32
    public_key: Annotated[str, StringConstraints(pattern="^([0-9a-f]{96}|[0-9a-f]{192})$")]
    """the public key, a compressed point of G1 or G2"""
    scheme: Literal["bls-unchained-g1-rfc9380", "pedersen-bls-chained"]
    genesis: Positive
    period: Positive


class BeaconTrust(Model):
    """The beacon that is accepted: the nonces of all the named witnesses, or a drand chain."""

    witnesses: list[str] = Field(default_factory=list)
    drand: DrandTrust | None = None


class VerifierTrust(Model):
    """A verifier's key. Its challenges count."""

    name: Line
    vkey: str


class AccountTrust(Model):
    """An account with receipts that count towards `min_receipts`."""

    id: Identifier
    key: Hex32
    independent: bool = True
    """false for an account of the provider, as in a pilot; no report then calls its receipts independent"""


class Groth16Pin(Model):
    """A verification key that the verifier accepts for one circuit, and how its setup came about."""

    circuit: Hex32
    vk: Hex32
    setup: Literal["unsafe", "ceremony"] = "unsafe"


CircuitPin: TypeAlias = Groth16Pin
"""A pin of a circuit's key. The published schema of trust.toml has the other name."""


class Pins(Model):
    """The digests of all inputs that define the meaning of a proof."""

    noise_table: Hex32 | None = None
    groth16: list[Groth16Pin] = Field(default_factory=list)
    embedder: dict[str, Hex32] = Field(default_factory=dict)
    """digest of each artefact by name (weights, tokenizer, ...): SHA-256 of files, and the commitments to the table"""
    manifest: Hex32 | None = None
    """`manifest.manifest_digest` of the whole manifest; without it only this release's own embedders are accepted"""
    scan: Hex32 | None = None
    """digest of the accepted scan protocols (`proofs.backends.protocols_digest`)"""

    def key(self, circuit: str) -> Groth16Pin | None:
        """The pinned verification key of a circuit, or None."""
        return next((p for p in self.groth16 if p.circuit == circuit), None)

    def artefact(self, name: str) -> str | None:
        """The pinned digest of an embedder's artefact, or None."""
        return self.embedder.get(name)


class Require(Model):
    """The relying party's requirements. An absent maximum or minimum is an unmet requirement, never a free pass.

    The exceptions are max_empty, which is 7 where it is absent, and max_exposure and max_fresh_share, which then limit
    nothing."""

    mode: Literal["full", "sampled"] = "full"
    mechanisms: list[MechanismName] = Field(default_factory=lambda: [NOISE])
    """the allowed mechanisms of tenants; `none` accepts windows that prove only integrity"""
    max_epsilon: DecimalText | None = None
    max_exclusion_factor: DecimalText | None = None
    """the largest exclusion_factor, of tenants with sampling or pooled listing"""
    max_exposure: Positive | None = None
    """the maximum number of documents that k_max accounts of a tenant can read; absent, there is no limit"""
    max_fresh_share: DecimalText | None = None
    """the maximum share of the rows of a persistent document table that each window replaces; absent, no limit"""
    min_keep: DecimalText | None = None
    """the minimum share of positions that a sample must contain, also for a tenant with noise"""
    max_delta: DecimalText | None = None
    min_k_max: Positive | None = None
    max_theta: DecimalText | None = None
    min_tau: Tau | None = None
    """the minimum tau; positions are compared with positions, seconds with seconds; 0 asks for the whole window"""
    max_K_share: DecimalText | None = None
    """the largest ratio of top K to capacity"""
    max_score_hi: Positive | None = None
    """maximum upper end of the score window, raw units: above the embedder's scores, answers consist of noise only"""
    min_score_width: Positive | None = None
    """least hi - lo, raw units: a narrow window makes scores yes or no, at a threshold that the provider chose"""
    query_embedding: Literal["declared", "re-executed", "proved(unpinned)", "proved"] = "proved"
    document_embedding: Literal["declared", "re-executed", "proved"] = "declared"
    coalition: Literal["not-checked", "checked"] = "checked"
    max_abandoned: Count | None = None
    """the maximum number of abandoned windows of the origin since the last complete one"""
    max_empty: Count = MAX_EMPTY
    """the maximum number of the origin's windows that ended without a query since the last complete one: each is one
    more draw of the seed, and a service without customers for some days has some"""
    min_receipts: Positive | None = None
    beta: DecimalText | None = None
    eta: DecimalText | None = None
    challenge: Literal["published", "own", "full"] = "own"
    """in sampled mode, the challenge that must be answered: one published by the provider, or the verifier's own"""
    allow_unsafe_setup: bool = False
    allow_minority_quorum: bool = False
    """whether a quorum of half the witnesses or fewer is allowed, under which two different ledgers can each have
    one"""


class Trust(Model):
    """The whole trust file."""

    version: One
    quorum: Positive
    provider: ProviderTrust
    service: ServiceTrust | None = None
    witness: Annotated[list[WitnessTrust], Field(min_length=1)]
    beacon: BeaconTrust
    verifier: list[VerifierTrust] = Field(default_factory=list)
    account: list[AccountTrust] = Field(default_factory=list)
    pins: Pins
    require: Require

    @classmethod
    def load(cls, path: Path) -> Trust:
        """Read and check a trust file.

        :raises EncodingError: the file is unreadable or not TOML, or a key of the provider, a witness or a verifier is
            malformed, whether the mode uses the key or not
        :raises SizeError: the file exceeds the stated limits
        :raises SchemaError: a field is wrong or missing, or a section names one party or one key twice, or the quorum
            cannot be met, or is one of half the witnesses or fewer that the file does not allow
        """
        return cls.from_toml(read_bytes(path, max_bytes=MAX_TRUST_BYTES), source=str(path))

    @classmethod
    def from_toml(cls, data: bytes, *, source: str) -> Trust:
        """Read and check a trust file's content (`load`)."""
        trust = cls.parse(parse_toml(data, source=source, max_bytes=MAX_TRUST_BYTES), field=source)
        if trust.quorum > len(trust.witness):
            raise SchemaError(
                "the quorum cannot be met",
                field=f"{source}.quorum",
                expected=f"at most {len(trust.witness)} witnesses",
                actual=trust.quorum,
            )
        if trust.minority_quorum and not trust.require.allow_minority_quorum:
            raise SchemaError(
                "two quorums may have no common witness, so honest witnesses could cosign two different ledgers",
                field=f"{source}.quorum",
                expected=f"more than half of {len(trust.witness)} witnesses, or allow_minority_quorum = true",
                actual=trust.quorum,
            )
        unknown = sorted(set(trust.beacon.witnesses) - {w.name for w in trust.witness})
        if unknown:
            raise SchemaError(
                "the beacon names a witness without a key in this file",
                field=f"{source}.beacon.witnesses",
                expected=[w.name for w in trust.witness],
                actual=unknown,
            )
        trust._check_keys(source)
        trust._check_shares(source)
        return trust

    def _check_keys(self, source: str) -> None:
        """Check every key and every name of the file, in every mode: a key that today's mode does not use is used by
        tomorrow's, and a verifier reads of its fault only if each run reports it.

        :raises RagAuditError: a key is malformed, or a section names one party twice
        """
        for section, named in (
            ("provider", [("", self.provider.vkey)]),
            ("witness", [(w.name, w.vkey) for w in self.witness]),
            ("verifier", [(v.name, v.vkey) for v in self.verifier]),
        ):
            keys = []
            for number, (_, vkey) in enumerate(named):
                place = f"{source}.{section}" + ("" if section == "provider" else f"[{number}]")
                keys.append(VerifierKey.parse(vkey, field=f"{place}.vkey").public.hex())
            _once(f"a {section}", [name for name, _ in named], f"{source}.{section}")
            # The 32 bytes are compared: under two names one key would count as two parties.
            _once(f"the key of a {section}", keys, f"{source}.{section}")
        _once("an account", [a.id for a in self.account], f"{source}.account")
        _once("the key of an account", [a.key for a in self.account], f"{source}.account")
        _once("a circuit pin", [p.circuit for p in self.pins.groth16], f"{source}.pins.groth16")
        _once("a beacon witness", self.beacon.witnesses, f"{source}.beacon.witnesses")

    def _check_shares(self, source: str) -> None:
        """Check beta and eta, which only sampled mode uses, in every mode.

        :raises SchemaError: one of them is not in (0, 1)
        """
        for name in ("beta", "eta"):
            share = decimal(getattr(self.require, name))
            if share is not None and not 0 < share < 1:
                raise SchemaError(
                    f"{name} is not a share", field=f"{source}.require.{name}",
                    expected="a decimal above 0 and below 1", actual=getattr(self.require, name),
                )  # fmt: skip

    @property
    def minority_quorum(self) -> bool:
        """Whether half of the witnesses or fewer form a quorum."""
        return is_minority(self.quorum, len(self.witness))

    @property
    def dependence(self) -> Dependence:
        """The witnesses that depend on the provider: the file says so, or they sign with the provider's key."""
        own = VerifierKey.parse(self.provider.vkey).public
        dependent = [
            w.name for w in self.witness if not w.independent or VerifierKey.parse(w.vkey).public == own
        ]
        return Dependence(tuple(w.name for w in self.witness), frozenset(dependent), self.quorum)

    @property
    def pilot(self) -> bool:
        """Whether the provider's witnesses decide a quorum (`Dependence.pilot`)."""
        return self.dependence.pilot

    @property
    def assumptions(self) -> dict[str, bool]:
        """The names of further assumptions about dependent witnesses, and whether a verdict states each of them.

        A pilot's one name covers the others.
        """
        dependence = self.dependence
        beacon = self.beacon.witnesses
        return {
            "pilot-witnesses": dependence.pilot,
            "dependent-quorum": not (dependence.pilot or dependence.shares or self.minority_quorum),
            "dependent-beacon": bool(beacon) and not (dependence.pilot or dependence.draws(beacon)),
        }

    def listed(self, account: str) -> AccountTrust | None:
        """The account of that id, or None if this file does not list it."""
        return self._by_id.get(account)

    @cached_property
    def _by_id(self) -> dict[str, AccountTrust]:
        return {a.id: a for a in self.account}


def is_minority(quorum: int, witnesses: int) -> bool:
    """Whether half of a number of witnesses or fewer form a quorum."""
    return 2 * quorum <= witnesses


@dataclass(frozen=True)
class Dependence:
    """Which witnesses depend on the provider, and what the other witnesses then confirm. The rules are in
    docs/protocol.md, Trust. Trust files and reports ask this one class.

    :param witnesses: the names of the trust file's witnesses
    :param dependent: the names of the dependent ones
    :param quorum: the number of witnesses that form a quorum
    """

    witnesses: tuple[str, ...]
    dependent: frozenset[str]
    quorum: int

    @property
    def pilot(self) -> bool:
        """Whether each quorum needs dependent witnesses, or dependent witnesses alone form one. The dependent witnesses
        can then date a quorum back."""
        independent = len(self.witnesses) - len(self.dependent)
        return bool(self.witnesses) and not len(self.dependent) < self.quorum <= independent

    @property
    def alone(self) -> bool:
        """Whether dependent witnesses alone form a quorum, although enough independent ones form another."""
        return self.quorum <= min(len(self.dependent), len(self.witnesses) - len(self.dependent))

    @property
    def minority(self) -> bool:
        """Whether half of the witnesses or fewer form a quorum."""
        return is_minority(self.quorum, len(self.witnesses))

    @property
    def shares(self) -> bool:
        """Whether every two quorums have an independent witness in common. Two quorums of q of n witnesses have at
        least 2q - n witnesses in common, so no second ledger gets a quorum if fewer witnesses are dependent."""
        return 2 * self.quorum - len(self.witnesses) > len(self.dependent)

    def draws(self, beacon: Iterable[str]) -> bool:
        """Whether the value of at least one independent witness enters a beacon of the named witnesses."""
        return not self.dependent.union(set(beacon) - set(self.witnesses)).issuperset(beacon)


def _once(what: str, names: Sequence[str], place: str) -> None:
    """Refuse a list of trust.toml that has one item twice.

    :raises SchemaError: an item is repeated; the first ones are named
    """
    if twice := repeated(names):
        raise SchemaError(
            f"{what} is named twice", field=place, expected="each once", actual=", ".join(twice[:3])
        )


def tau_of(value: int | str) -> tuple[int, str]:
    """A `Tau` as (span, unit); the whole window has no unit."""
    match = _TAU.match(str(value))
    return (0, "") if match is None else (int(match[1]), match[2])


def at_least(level: str, required: str, order: tuple[str, ...]) -> bool:
    """Whether `level` is at least `required`; levels may carry a detail in parentheses (``re-executed(3/12)``)."""
    base = level if level in order else level.split("(")[0]
    return order.index(base) >= order.index(required)


def decimal(text: str | None) -> Decimal | None:
    """A `DecimalText` as a Decimal."""
    return None if text is None else Decimal(text)
