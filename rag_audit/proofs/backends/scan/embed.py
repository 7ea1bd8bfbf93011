"""Proofs of claim A1 in the scan argument: hq and cq come from the same tokens under the committed table
(docs/scan/embed.md)."""

from __future__ import annotations

import array
import base64
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property

from rag_audit import _native
from rag_audit._internal.cache import build_file, cache_dir
from rag_audit._internal.canonical import Json, digest_hex
from rag_audit._internal.errors import EncodingError, InvalidProof, PolicyError, WitnessError
from rag_audit.models.manifest import StaticTable
from rag_audit.proofs.backends.scan.key import ARGUMENT, VERSION
from rag_audit.proofs.backends.scan.verify import parse_parts, refused
from rag_audit.proofs.batch import NativeBatch, Refusals, in_chunks
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.relation.field import digest_to_field, to_bytes

PUBLIC = ("ctx", "hq", "cq")
"""The names of the public values except the table, which the key holds."""
_MOST = {"tokens": 208, "dimension": 4096, "vocabulary": 1 << 15, "norm_factor": 1 << 20}
"""The limits of `native/scan-protocol/src/embed/statement.rs`, which keep every value far below r."""


@dataclass(frozen=True)
class EmbedArgument:
    """The argument's parameters, fixed before any table is committed to; its digest names it as groth16's a circuit.

    :param tokens: T, the most tokens of a query, at most 208
    :param dimension: components of a row, at most 4,096
    :param vocabulary: rows of the table, at most 32,768
    :param norm_factor: A of the integer normalisation (docs/relation.md, "Vectors")
    :raises PolicyError: the argument has no room for the parameters
    """

    tokens: int
    dimension: int = 256
    vocabulary: int = 32_000
    norm_factor: int = 8145

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            found = getattr(self, name)
            if not 1 <= found <= most:
                raise PolicyError(
                    "the embedder does not fit the argument", field=name, expected=f"1..{most}", found=found
                )

    def digest(self) -> str:
        """The protocol's digest that a policy names, 64 hexadecimal digits."""
        named: dict[str, Json] = {
            "system": "scan", "version": VERSION, "argument": ARGUMENT, "claims": ["A1"],
        }  # fmt: skip
        return digest_hex({**named, **asdict(self)})


@dataclass(frozen=True)
class EmbedKey:
    """The verification key of proofs of A1. The commitment hides nothing: anyone with the table computes the same
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
                "the table has another shape", field="rows", expected=f"{size} bytes", found=len(rows)
            )
        try:
            return cls(argument, _native.ScanTable.commit(rows, argument.dimension).encode())
        except (ValueError, OverflowError) as exc:
            raise EncodingError("the table is refused", field="rows", found=str(exc)) from exc

    @cached_property
    def table(self) -> _native.ScanTable:
        """The commitment in native form, decoded and checked once.

        :raises EncodingError: the length does not fit vocabulary and dimension, or a point is off the curve
        """
        try:
            return _native.ScanTable(self.points, self.argument.dimension, self.argument.vocabulary)
        except (ValueError, OverflowError) as exc:
            raise EncodingError("the table commitment is refused", field="points", found=str(exc)) from exc

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
        """The most tokens and A, as the native functions take them."""
        return self.argument.tokens, self.argument.norm_factor

    def __getstate__(self) -> dict[str, object]:
        # The native object is not pickled, but made again where the key arrives.
        return {"argument": self.argument, "points": self.points}


@cache
def table_columns(table: StaticTable) -> bytes:
    """Commitments to the table's columns, 32 bytes a point, which take seconds and are kept in the user's cache.

    :raises SetupError: as `proofs.groth16.embed.table_tree`
    """
    argument = EmbedArgument(1, table.dimension, table.tokens, table.norm_factor)
    return build_file(
        cache_dir("tables") / f"{table.digest}-columns",
        "points",
        lambda: EmbedKey.commit(table.rows(), argument).points,
        table.columns,
        what="commitment to the embedder's table",
        prefix=(table.tokens + 1).to_bytes(8, "big") + table.dimension.to_bytes(8, "big"),
    )


@dataclass(frozen=True)
class EmbedJob:
    """The job that proves A1 for one record. It is picklable, and holds secrets, which `repr` omits.

    :param key: protocol and committed table
    :param statement: the public values
    :param rows: a function that returns the table, int8, row by row. It belongs to a module, so a job carries its
        name, and each process loads the table itself
    :param tokens: the query's tokens, cut to the embedder's limit
    :param salt_q: salt of hq
    :param salt_c: salt of cq
    """

    key: EmbedKey
    statement: EmbedStatement
    rows: Callable[[], bytes]
    tokens: Sequence[int] = field(repr=False)
    salt_q: int = field(repr=False)
    salt_c: int = field(repr=False)

    def run(self) -> dict[str, Json]:
        """The proof as JSON: system, protocol, proof.

        :raises WitnessError: the private inputs do not satisfy the statement
        """
        if self.statement.table != self.key.root:
            raise WitnessError(
                "the statement is about another table",
                field="table",
                expected=self.statement.table,
                found=self.key.root,
            )
        try:
            proof = _native.scan_embed_prove(
                self.key.table,
                self.key.parameters,
                self.statement.encode(PUBLIC),
                self.rows(),
                array.array("I", self.tokens).tobytes(),
                to_bytes(self.salt_q) + to_bytes(self.salt_c),
            )
        except (ValueError, OverflowError) as exc:
            raise WitnessError(
                "there is no proof of A1 for this record", field="record", found=str(exc)
            ) from exc
        return embed_json(proof, self.key.argument)


def embed_json(proof: bytes, argument: EmbedArgument) -> dict[str, Json]:
    """A proof of A1 as files carry it."""
    return {"system": "scan", "protocol": argument.digest(), "proof": base64.b64encode(proof).decode()}


def parse_embed(value: Json, protocol: str, *, field: str) -> bytes:
    """Read a proof of A1 from a file's value; its bytes are checked when it is verified.

    :param protocol: digest of the protocol that the policy names
    :raises SchemaError: the proof has other fields, or is of another system or protocol
    :raises EncodingError: the proof is not canonical
    """
    [proof] = parse_parts(value, ("proof",), protocol, what="a scan proof of A1", field=field)
    return proof


def verify_embed(key: EmbedKey, proof: bytes, statement: EmbedStatement) -> None:
    """Return if the proof of A1 for one record holds.

    :raises InvalidProof: the proof does not hold; `found` has the reason
    :raises EncodingError: the bytes are no proof at all
    """
    if statement.table != key.root:
        raise InvalidProof(
            "the table is of another embedder", field="table", expected=statement.table, found=key.root
        )
    try:
        _native.scan_embed_verify(key.table, key.parameters, statement.encode(PUBLIC), proof)
    except (ValueError, OverflowError) as exc:
        raise refused(exc) from exc


def embed_refusals(
    key: EmbedKey,
    proofs: Sequence[bytes],
    statements: Sequence[EmbedStatement],
    batch: NativeBatch[tuple[bytes, bytes]] | None = None,
) -> Refusals:
    """As `proofs.scan.verify.refusals`, for proofs of A1."""
    root = key.root

    def record(i: int) -> tuple[bytes, bytes]:
        statement = statements[i]
        if statement.table != root:
            raise InvalidProof(
                "the table is of another embedder", field="table", expected=statement.table, found=root
            )
        return statement.encode(PUBLIC), proofs[i]

    if len(proofs) != len(statements):
        raise ValueError(f"{len(proofs)} proofs of {len(statements)} statements")
    decides = batch or _native.ScanEmbedBatch(key.table, key.parameters)
    return in_chunks(decides, len(proofs), record, refused)


def verify_embed_batch(
    key: EmbedKey, proofs: Sequence[bytes], statements: Sequence[EmbedStatement]
) -> list[int]:
    """The indices of the proofs that do not verify or are malformed, ascending."""
    return list(embed_refusals(key, proofs, statements))
