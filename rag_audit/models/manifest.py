"""The document under C_emb: the embedder, its token limits, and the schema of the tenants (the paper's R1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NotRequired, Protocol, TypeAlias, TypedDict, cast

from rag_audit._internal.canonical import Json, digest_hex, parse_hex
from rag_audit._internal.errors import PolicyError, SchemaError, kind_of

DECLARED = ("sentence-transformers", "openai")
"""Embedders with vectors that cannot be recomputed to the last bit. For them A1 is only ever declared."""
PUBLISHED = {
    "wordllama-lexical-768": "a034f608f0a4cc4df899d383186562cc0a016acc8f9c5523aa1437e082b149bb",
    "minilm-int": "c3c09e15f4327510fcc6f127da9493fad25a542cc433b6a5bb4b608edeb99876",
}
"""The digests (`manifest_digest`) of this release's own embedders, for verifiers that pin no manifest."""


class TokenCounts(TypedDict):
    """The numbers of tokens at which the tokeniser truncates texts."""

    query: int
    document: int


@dataclass(frozen=True)
class TableConstants:
    """The constants of a static embedder that proofs of claim A1 depend on.

    :param vocabulary: rows of the table, one for each token
    :param norm_factor: A of the integer normalisation (docs/relation.md, "Vectors")
    """

    vocabulary: int
    norm_factor: int


@dataclass(frozen=True)
class EncoderConstants:
    """The constants of an integer encoder that proofs of claim A1 depend on. The digest of its pins fixes all others.

    :param norm_factor: A of the integer normalisation (docs/relation.md, "Vectors")
    """

    norm_factor: int

    def check_tokens(self, tokens: int) -> None:
        """Refuse a query limit that is not a length class. A proof shows the class, and hides the number of tokens.

        :raises PolicyError: the limit is another number
        """
        if tokens not in LENGTH_CLASSES:
            expected = " or ".join(map(str, LENGTH_CLASSES))
            raise PolicyError("the query limit is no length class of the integer encoder",
                              field="policy.tokens.query", expected=expected, actual=tokens,
                              hint="rag-audit provider policy new --query-tokens 32, or 64 for longer"
                                   " questions")  # fmt: skip


LENGTH_CLASSES = (32, 64)
"""The numbers of places of a proof of an integer encoder."""
ENCODER_ARTEFACT = "encoder-scan"
"""The artefact of an integer encoder that its proofs of claim A1 name: the digest of its pins."""
ProvableConstants: TypeAlias = TableConstants | EncoderConstants
"""The constants of an embedder with proofs of claim A1."""
DEFAULT_TABLE = TableConstants(vocabulary=32_000, norm_factor=16_593)
"""The constants of the default embedder: A = 7 * 256 / 0.108, for norms in units of 2^-8."""


@dataclass(frozen=True)
class StaticTable:
    """A static embedder's table for proofs of claim A1. Each proof system accepts only its own pinned commitment to it.

    :param rows: a function that returns the table, int8, row by row, shape (vocabulary, dimension); it belongs to a
        module, so a job carries it by name and calls it in the process that proves
    :param digest: SHA-256 over the rows
    :param tree: SHA-256 over the nodes of the circuits' tree over the rows, leaves first, 32 bytes big-endian each
    :param columns: SHA-256 over the scan argument's commitments to the columns, preceded by their numbers
    """

    rows: Callable[[], bytes]
    digest: str
    dimension: int
    constants: TableConstants
    tree: str
    columns: str


class EncoderProver(Protocol):
    """An integer encoder with the commitments to its parameters (`_native.EncoderModel`)."""

    def pins(self) -> bytes:
        """The commitments, and the parameters that a verifier takes in the clear."""

    def digest(self) -> bytes:
        """The digest of the pins, 32 bytes."""

    def prove(self, parameters: tuple[int, int], statement: bytes, tokens: bytes, salts: bytes, /) -> bytes:
        """The proof of claim A1.

        :param parameters: places and A
        :param statement: context, hq and cq, 32 bytes each
        :param tokens: uint32, little-endian
        :param salts: of hq and cq, 32 bytes each
        :raises ValueError: the tokens do not satisfy the statement, or leave a range of the encoder
        """


@dataclass(frozen=True)
class ProvedEncoder:
    """An integer encoder for proofs of claim A1.

    :param prover: a function that returns the encoder. It is picklable, so a job carries it, and each process loads the
        model itself, once
    :param weight_bytes: the model's parameters, two bytes each
    :param activations: the number of values of one place in all layers
    """

    prover: Callable[[], EncoderProver]
    weight_bytes: int
    activations: int


Provable: TypeAlias = StaticTable | ProvedEncoder
"""The source of an embedder's proofs of claim A1."""


class Quantiser(TypedDict):
    """How a real vector becomes one of `bits` bits a component.

    :param scale: the largest component's value, a decimal string
    :param entry_clip: where the components of the table's rows are cut
    :param turn: the public orthogonal map before quantisation, if there is one (docs/relation.md, "Vectors")
    :param norm_factor: A of the integer normalisation, for embedders that normalise in integers
    """

    bits: int
    scale: str
    entry_clip: NotRequired[str]
    norm_factor: NotRequired[int]
    turn: NotRequired[str]


class EmbedderManifest(TypedDict):
    """An embedder's description of itself (`index.embedders.base.Embedder.manifest`).

    :param kind: the embedder's name
    :param artefacts: SHA-256 of each of the embedder's artefacts by name, 64 hexadecimal digits
    :param quantiser: how a real vector becomes an int4 one
    :param documents: how documents are embedded, if not as queries
    :param normal_form: the form of texts before they become tokens (docs/relation.md, "Vectors")
    :param query_commitment: whether hq commits to tokens or to text
    :param model: the model that an endpoint is asked for
    :param cut_from: the components of the model's own vectors, if only the first `dimension` are used
    :param vocabulary: rows of the table, for static embedders
    """

    kind: str
    artefacts: dict[str, str]
    tokens: TokenCounts
    dimension: NotRequired[int]
    prompt: NotRequired[str]
    quantiser: NotRequired[Quantiser]
    documents: NotRequired[str]
    normal_form: NotRequired[str]
    query_commitment: NotRequired[str]
    pooling: NotRequired[str]
    model: NotRequired[str]
    cut_from: NotRequired[int]
    vocabulary: NotRequired[int]


class SchemaTenant(TypedDict):
    """A tenant as the schema lists it."""

    tenant: str
    capacity: int


class Schema(TypedDict):
    """The schema: the number of components of a vector, and the tenants."""

    dimension: int
    tenants: NotRequired[list[SchemaTenant]]


class Manifest(TypedDict):
    """The whole embedder manifest."""

    v: NotRequired[int]
    embedder: EmbedderManifest
    schema: Schema


def check_manifest(value: dict[str, Json]) -> Manifest:
    """Check that the parts of a manifest that both sides read are present with their types.

    :raises SchemaError: a part is missing or of another type; the first one is named
    """
    needed = {"embedder": dict, "embedder.kind": str, "embedder.artefacts": dict, "embedder.tokens": dict,
              "embedder.tokens.query": int, "embedder.tokens.document": int, "schema": dict,
              "schema.dimension": int}  # fmt: skip
    for place, kind in needed.items():
        part: Json = value
        for name in place.split("."):
            part = part.get(name) if isinstance(part, dict) else None
        if type(part) is not kind:
            raise SchemaError("the embedder manifest is not well-formed", field=f"embedder.{place}",
                              expected=kind_of(kind()), actual=kind_of(part))  # fmt: skip
    manifest = cast(Manifest, value)
    for name, digest in manifest["embedder"]["artefacts"].items():
        parse_hex(digest, 32, field=f"embedder.embedder.artefacts.{name}")
    return manifest


def manifest_digest(manifest: EmbedderManifest | dict[str, Json]) -> str:
    """The digest that pins an embedder for a verifier: SHA-256 of its manifest without the token limits, 64 hex digits.

    :param manifest: the manifest, with or without the token limits
    """
    return digest_hex(without_limits(manifest))


def without_limits(manifest: EmbedderManifest | dict[str, Json]) -> dict[str, Json]:
    """A manifest without its token limits, which the policy sets."""
    return {key: value for key, value in cast("dict[str, Json]", manifest).items() if key != "tokens"}


def re_executable(name: str) -> bool:
    """Whether others who have the embedder's files get its vectors too, to the last bit."""
    return name not in DECLARED


def as_json(manifest: Manifest) -> dict[str, Json]:
    """The manifest as a JSON value."""
    return cast("dict[str, Json]", manifest)
