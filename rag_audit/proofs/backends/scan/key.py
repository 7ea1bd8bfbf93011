"""The verification keys of scan proofs: a tenant's index commitment with the policy's constants, and an embedder's
table."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass, field
from functools import cached_property, lru_cache

from rag_audit import _native
from rag_audit._internal.canonical import Json, digest_hex, parse_base64, sha256
from rag_audit._internal.errors import EncodingError, PolicyError, SchemaError, kind_of
from rag_audit.proofs.backends.scan import memory
from rag_audit.relation.field import digest_to_field
from rag_audit.relation.noise import check_gains
from rag_audit.relation.scores import ScoreWindow

VERSION = 1
"""The version of the vectors with the argument's trace and proofs."""
ARGUMENT, POOLED_ARGUMENT = _native.scan_protocol().hex(), _native.scan_pooled_protocol().hex()
"""The digest of the common rules of both parties: layout, limits, and the labels and lengths of every kind of run
(docs/scan/transcript.md), and the digest of the rules for tenants with pooled listing."""
ENCODER_ARGUMENT = _native.scan_encoder_protocol().hex()
"""The digest of the rules for an integer encoder's proofs of A1."""


def _protocol(*claims: str, argument: str = ARGUMENT, **parameters: int) -> str:
    named: dict[str, Json] = {
        "system": "scan",
        "version": VERSION,
        "argument": argument,
        "claims": list(claims),
    }
    return digest_hex({**named, **parameters})


PROTOCOL = _protocol("A2", "A3", "A4")
"""The digest that names the argument of records, where groth16 names a circuit; other rules have another digest."""
BERNOULLI_PROTOCOL = _protocol("kept")
"""The digest of the argument that the sampled positions are the Bernoulli bits of the seed."""
DOCUMENT_TABLE_PROTOCOL = _protocol("kept", "document table")
"""The digest of the argument that the sampled positions follow documents."""
POOLED_LISTING_PROTOCOL = _protocol("A2", "A3", "A4", "pooled listing", argument=POOLED_ARGUMENT)
"""The digest of the argument for records of tenants with pooled listing, which has rules of its own."""
POOLED_TABLE_PROTOCOL = _protocol("kept", "document table", "listed", argument=POOLED_ARGUMENT)
"""The digest of the argument that the sampled positions follow documents, and that listed documents stay listed from
window to window."""
COALITION_PROTOCOL = _protocol("coalition")
"""The digest that names the argument of coalition proofs (`proofs.scan.coalition`)."""
SLOT = ("c_seed", "beacon", "slot")
RECORD = (*SLOT, "ctx", "cq", "htopk")
"""The public values of a record, in the native core's order."""
_MOST_EMBEDDED = {"tokens": 208, "dimension": 4096, "vocabulary": 1 << 15, "norm_factor": 1 << 20}
"""The limits of `native/scan-protocol/src/embed/statement.rs`, under which every value is far below r."""
MAX_PINS_BYTES = 4 << 20
"""The largest pins of an encoder; those of all-MiniLM-L6-v2 have 269,072 bytes."""
MAX_LISTED = 1024
"""The largest K."""


@dataclass(frozen=True)
class PooledKey:
    """The further constants of a tenant with pooled listing.

    :param row: commitments to the row of each position, 32 bytes a point
    :param kept: commitments to the bit of each row of the document table
    :param rows: the number of rows D
    :param positions_per_document: the maximum number of positions of a row
    :param flip_probability: Q over 2^40
    :param threshold: the minimum raw score of a relevant position
    :param listed: the digest of the listed rows before the tenant's first record of the window
    """

    row: bytes
    kept: bytes
    rows: int
    positions_per_document: int
    flip_probability: int
    threshold: int
    listed: str


@dataclass(frozen=True)
class ScanKey:
    """The verification key of one tenant in one window.

    :param points: the index commitment, 32 bytes a point
    :param dimension: components of a vector
    :param capacity: positions
    :param window: digest of the window header, the policy and the tenant
    :param gains: gains of the noise
    :param listed: K
    :param lo: lower end of the score window
    :param hi: upper end of the score window
    :param lattice: R
    :param sample: commitments to the rows of a tenant's sampled positions, 32 bytes each; None if it samples all
        positions
    :param pooled: the further constants of a tenant with pooled listing
    """

    points: bytes
    dimension: int
    capacity: int
    window: bytes
    gains: tuple[int, ...]
    listed: int
    lo: int
    hi: int
    lattice: int
    sample: bytes | None = None
    pooled: PooledKey | None = None

    @cached_property
    def index(self) -> _native.ScanIndex:
        """The index commitment in native form, decoded and checked once.

        :raises EncodingError: the length does not fit capacity and dimension, or a point is off the curve
        """
        return _decoded(self.points, self.dimension, self.capacity)

    def check(self) -> None:
        """Return if no other constant is out of range.

        :raises EncodingError: one is, or the score window is beyond every score
        """
        try:
            if self.gains:
                check_gains(self.gains)
            ScoreWindow(self.lo, self.hi, self.lattice).check_reach(self.dimension)
        except PolicyError as exc:
            raise EncodingError(
                "the policy's constants are refused",
                field=exc.field,
                expected=exc.expected,
                actual=exc.actual,
            ) from exc
        maximum = min(MAX_LISTED, self.capacity)
        if not 1 <= self.listed <= maximum:
            raise EncodingError(
                "the policy's constants are refused",
                field="listed",
                expected=f"1..{maximum}",
                actual=self.listed,
            )

    @cached_property
    def parameters(self) -> _native.ScanParameters:
        """The other constants in native form.

        :raises EncodingError: as `check`
        """
        self.check()
        try:
            return _native.ScanParameters(
                self.window, list(self.gains), self.listed, self.lo, self.hi, self.lattice, self.sample
            )
        except (ValueError, OverflowError) as exc:
            raise EncodingError(
                "the policy's constants are refused", field="window", actual=str(exc)
            ) from exc

    @cached_property
    def pooled_listing(self) -> _native.ScanPooledListing:
        """The constants of a tenant with pooled listing in native form.

        :raises EncodingError: a constant is out of range, or a commitment is no point
        """
        self.check()
        assert self.pooled is not None  # as for every tenant with pooled listing
        own = self.pooled
        try:
            return _native.ScanPooledListing(
                self.window,
                own.row,
                own.kept,
                (own.rows, own.positions_per_document, own.flip_probability),
                (own.threshold, self.listed),
                (self.lo, self.hi, self.lattice),
            )
        except (ValueError, OverflowError) as exc:
            raise EncodingError(
                "the policy's constants are refused", field="pooled_listing", actual=str(exc)
            ) from exc

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 over capacity, dimension and points, the tenant's C_idx in the window header.

        :raises EncodingError: as `index`
        """
        return self.index.digest()

    @property
    def c_idx(self) -> int:
        """C_idx as the field element that a statement carries."""
        return digest_to_field(self.digest)

    def __getstate__(self) -> dict[str, object]:
        # The native objects are not pickled; the receiving process rebuilds them.
        return {
            k: v
            for k, v in self.__dict__.items()
            if k not in ("index", "parameters", "pooled_listing", "digest")
        }


@dataclass(frozen=True)
class EmbedArgument:
    """The argument's parameters, fixed before any table is committed to; its digest names it as groth16's a circuit.

    :param tokens: T, maximum tokens of a query, at most 208
    :param dimension: components of a row, at most 4,096
    :param vocabulary: rows of the table, at most 32,768
    :param norm_factor: A of the integer normalisation (docs/relation.md, "Vectors")
    :raises PolicyError: the argument has no room for the parameters
    """

    tokens: int
    dimension: int = 768
    vocabulary: int = 32_000
    norm_factor: int = 16_593

    def __post_init__(self) -> None:
        for name, maximum in _MOST_EMBEDDED.items():
            actual = getattr(self, name)
            if not 1 <= actual <= maximum:
                raise PolicyError(
                    "the embedder does not fit the argument",
                    field=name,
                    expected=f"1..{maximum}",
                    actual=actual,
                )

    def digest(self) -> str:
        """The protocol's digest that a policy names, 64 hexadecimal digits."""
        return _protocol("A1", **asdict(self))


@dataclass(frozen=True)
class EmbedKey:
    """The verification key of proofs of A1. The commitment has no blindings: any party with the table computes the same
    points, so a verifier pins their digest and never takes it from a window.

    :param argument: the protocol with its parameters
    :param points: commitments to the table's columns, 32 bytes a point
    """

    argument: EmbedArgument
    points: bytes = field(repr=False)

    @classmethod
    def commit(cls, rows: bytes, argument: EmbedArgument) -> EmbedKey:
        """Commit to int8 rows in -7..7, shape (vocabulary, dimension), in about a second for 32,000 rows of 256.

        :raises EncodingError: the rows have another shape, or components outside -7..7
        """
        size = argument.vocabulary * argument.dimension
        if len(rows) != size:
            raise EncodingError(
                "the table has another shape", field="rows", expected=f"{size} bytes", actual=len(rows)
            )
        try:
            return cls(argument, _native.ScanTable.commit(rows, argument.dimension).encode())
        except (ValueError, OverflowError) as exc:
            raise EncodingError("the table is refused", field="rows", actual=str(exc)) from exc

    @cached_property
    def table(self) -> _native.ScanTable:
        """The commitment in native form, decoded and checked once.

        :raises EncodingError: the length does not fit vocabulary and dimension, or a point is off the curve
        """
        try:
            return _native.ScanTable(self.points, self.argument.dimension, self.argument.vocabulary)
        except (ValueError, OverflowError) as exc:
            raise EncodingError("the table commitment is refused", field="points", actual=str(exc)) from exc

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 over number of rows, dimension and points, which a verifier pins.

        :raises EncodingError: as `table`
        """
        return self.table.digest()

    @property
    def root(self) -> int:
        """The digest as the field element that a statement carries."""
        return digest_to_field(self.digest)

    @property
    def parameters(self) -> tuple[int, int]:
        """The maximum number of tokens and A, in the form of the native functions."""
        return self.argument.tokens, self.argument.norm_factor

    def __getstate__(self) -> dict[str, object]:
        # The native object is not pickled; the receiving process rebuilds it.
        return {"argument": self.argument, "points": self.points}


@dataclass(frozen=True)
class EncoderArgument:
    """The parameters of proofs of A1 for an integer encoder (docs/scan/encoder-embed.md). The digest of the encoder's
    pins fixes sizes, scales and parameters of the model.

    :param places: T, the policy's length class
    :param norm_factor: A of the integer normalisation (docs/relation.md, "Vectors")
    """

    places: int
    norm_factor: int

    def digest(self) -> str:
        """The protocol's digest that a policy names, 64 hexadecimal digits."""
        return _protocol("A1", "encoder", argument=ENCODER_ARGUMENT, **asdict(self))


@dataclass(frozen=True)
class EncoderKey:
    """The verification key of proofs of A1 for an integer encoder. As for `EmbedKey`, any party with the model computes
    the same pins, so a verifier pins their digest.

    :param argument: the protocol with its parameters
    :param pins: the encoder's commitments, and the parameters that a verifier takes in the clear
    """

    argument: EncoderArgument
    pins: bytes = field(repr=False)

    @cached_property
    def encoder(self) -> _native.EncoderPins:
        """The pins in native form, decoded and checked once.

        :raises EncodingError: the pins are not canonical, or a point is off the curve
        """
        return _encoder(self.pins)

    @cached_property
    def digest(self) -> bytes:
        """The digest of the pins, which a verifier pins. They are not decoded.

        :raises EncodingError: the pins are longer than those of every encoder
        """
        if len(self.pins) > MAX_PINS_BYTES:
            raise EncodingError("the encoder's pins are too long", field="verification_keys",
                                expected=f"at most {MAX_PINS_BYTES:,} bytes", actual=len(self.pins))  # fmt: skip
        return sha256(self.pins)

    @property
    def root(self) -> int:
        """The digest as the field element that a statement carries."""
        return digest_to_field(self.digest)

    @property
    def parameters(self) -> tuple[int, int]:
        """The number of places and A, in the form of the native functions."""
        return self.argument.places, self.argument.norm_factor

    def __getstate__(self) -> dict[str, object]:
        # The native object is not pickled; the receiving process rebuilds it.
        return {"argument": self.argument, "pins": self.pins}


@lru_cache(maxsize=2)
def _encoder(pins: bytes) -> _native.EncoderPins:
    try:
        return _native.EncoderPins(pins)
    except (ValueError, OverflowError) as exc:
        place = f"verification_keys.{sha256(pins).hex()[:16]}"
        raise EncodingError("the encoder's pins are refused", field=place, actual=str(exc)) from exc


@lru_cache(maxsize=8)
def _decoded(points: bytes, dimension: int, capacity: int) -> _native.ScanIndex:
    try:
        return _native.ScanIndex(points, dimension, capacity)
    except (ValueError, OverflowError) as exc:
        raise EncodingError("the index commitment is refused", field="points", actual=str(exc)) from exc


def index_digest(points: bytes, dimension: int, capacity: int) -> bytes:
    """C_idx, SHA-256 over capacity, dimension and points, which are checked.

    :raises EncodingError: the length does not fit capacity and dimension, or a point is off the curve
    """
    return _decoded(points, dimension, capacity).digest()


def points_json(points: bytes) -> dict[str, Json]:
    """An index commitment as files carry it; the other constants of a key follow from window header and policy."""
    return {"system": "scan", "points": base64.b64encode(points).decode()}


def parse_points(value: Json, *, field: str) -> bytes:
    """Read an index commitment from a file's value; `ScanKey.index` checks length and points.

    :raises SchemaError: the commitment has other fields, or is of another system
    :raises EncodingError: the points are not canonical base64
    """
    if not isinstance(value, dict) or set(value) != {"system", "points"}:
        actual = sorted(map(str, value)) if isinstance(value, dict) else kind_of(value)
        raise SchemaError(
            "the value is not an index commitment", field=field, expected=["points", "system"], actual=actual
        )
    if value["system"] != "scan":
        raise SchemaError(
            "the index commitment is of another system",
            field=f"{field}.system",
            expected="scan",
            actual=value["system"],
        )
    return parse_base64(value["points"], field=f"{field}.points")


def commit_index(rows: bytes, dimension: int, capacity: int, blinding_key: bytes) -> bytes:
    """Commit to int8 rows in -7..7, shape (positions, dimension); the result is a key's `points`.

    :param blinding_key: 32 secret bytes, fresh for every commitment that is published
    :raises EncodingError: the rows have another shape, or components outside -7..7
    :raises MemoryLimitError: the machine has too little memory for the work
    """
    memory.require(memory.index_bytes(len(rows), 1), "index commitment")
    try:
        return _native.ScanIndex.commit(rows, dimension, capacity, blinding_key).encode()
    except (ValueError, OverflowError) as exc:
        raise EncodingError("the index is refused", field="rows", actual=str(exc)) from exc
