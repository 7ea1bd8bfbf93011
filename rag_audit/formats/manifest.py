"""The document under C_emb: which embedder, cut where, and the schema of the tenants (the paper's R1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NotRequired, TypedDict, cast

from rag_audit.encoding.canonical import Json, parse_hex
from rag_audit.errors import SchemaError


class TokenCounts(TypedDict):
    """Where texts are cut, in tokens."""

    query: int
    document: int


class EmbedderManifest(TypedDict):
    """What an embedder says of itself (`index.embedders.base.Embedder.manifest`).

    :param kind: its name
    :param artefacts: SHA-256 of what it is made of, by name, 64 hexadecimal digits each
    :param quantiser: how a real vector becomes an int4 one; with `norm_factor` where that is done in integers
    :param query_commitment: whether hq is over tokens or over text
    """

    kind: str
    artefacts: dict[str, str]
    tokens: TokenCounts
    dimension: NotRequired[int]
    prompt: NotRequired[str]
    quantiser: NotRequired[dict[str, Any]]
    query_commitment: NotRequired[str]
    pooling: NotRequired[str]


class SchemaTenant(TypedDict):
    """A tenant as the schema has it."""

    tenant: str
    capacity: int


class Schema(TypedDict):
    """Components of a vector, and the tenants."""

    dimension: int
    tenants: NotRequired[list[SchemaTenant]]


class Manifest(TypedDict):
    """The whole document."""

    v: NotRequired[int]
    embedder: EmbedderManifest
    schema: Schema


def check_manifest(value: Mapping[str, Any]) -> Manifest:
    """The document, once the parts that both sides read are there with their types.

    :raises SchemaError: naming the first that is not
    """
    needed = {"embedder": dict, "embedder.kind": str, "embedder.artefacts": dict, "embedder.tokens": dict,
              "embedder.tokens.query": int, "embedder.tokens.document": int, "schema": dict,
              "schema.dimension": int}  # fmt: skip
    for place, kind in needed.items():
        part: Any = value
        for name in place.split("."):
            part = part.get(name)
        if type(part) is not kind:
            raise SchemaError("embedder manifest is not well-formed", field=f"embedder.{place}",
                              expected=kind.__name__, found=type(part).__name__)  # fmt: skip
    for name, digest in value["embedder"]["artefacts"].items():
        parse_hex(digest, 32, field=f"embedder.embedder.artefacts.{name}")
    return cast(Manifest, value)


def as_json(manifest: Manifest) -> dict[str, Json]:
    """The same document as JSON."""
    return cast("dict[str, Json]", manifest)
