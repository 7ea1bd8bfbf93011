"""Proofs of A1 for the integer encoder: the tokens of queries give their vectors (docs/scan/encoder-embed.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.backends.reference import encoder, encoder_input, encoder_output, limits
from rag_audit.proofs.backends.reference.attention import HEAD_ENTRIES, read_marks
from rag_audit.proofs.backends.reference.block import (
    ACTIVATIONS,
    ROOT_ENTRIES,
    Blocks,
    activations,
    limb_tables,
    of_limbs,
    take,
    widths,
)
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.extensions import log2
from rag_audit.proofs.backends.reference.index import NIBBLES
from rag_audit.proofs.backends.reference.lookup import look_up
from rag_audit.proofs.backends.reference.poseidon import permutations
from rag_audit.proofs.backends.reference.session import Session
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.proofs.backends.reference.vector import MAX_FACTOR, Size, Vectors

RUN = "encoder embed"


MAX_QUERIES, MAX_LOOKED_UP = 16, 1 << 27


@dataclass(frozen=True)
class Hashes:
    """What a record publishes about its query; `context` is the digest of all other values of the record."""

    context: int
    hq: int
    cq: int


@dataclass(frozen=True)
class EncoderEmbedded:
    """The public values of a run; `norm_factor` is A."""

    queries: Sequence[Hashes]
    embeddings: encoder_input.Embeddings
    layers: Sequence[encoder.Layer]
    places: int
    norm_factor: int

    def __post_init__(self) -> None:
        encoder.require_layers(self.layers)
        table, of_layers = self.embeddings, self.layers[0].attention
        of_table = table.width, table.norm.scale, table.row_bits
        same = of_table == (of_layers.width, of_layers.scale_x, of_layers.row_bits)
        limits.require(
            embeddings=same,
            places=encoder_input.allowed_of(table, self.places),
            norm_factor=1 <= self.norm_factor <= MAX_FACTOR,
        )
        limits.require(queries=self.texts.bit_count() == 1 and self.texts <= self.most)

    @property
    def texts(self) -> int:
        """Q."""
        return len(self.queries)

    @property
    def most(self) -> int:
        """The largest number of queries: the rows that they look up have a limit."""
        counts = [count for count in (2, 4, 8, MAX_QUERIES) if self._looked_up(count) <= MAX_LOOKED_UP]
        return max(counts, default=1)

    def _looked_up(self, texts: int) -> int:
        """The number of rows that a run of so many queries looks up."""
        table, layer, keys = self.embeddings, self.layers[0], self.places
        places, width, heads = texts * keys, table.width, layer.attention.heads
        low, high = table.digits
        of_token = (1 << low) + (1 << high) + 1 + len(widths(table.token_bits))
        of_input = of_token + width * len(widths(table.norm.bits)) + ROOT_ENTRIES
        of_attention = sum(
            (keys * heads if kind == 3 else width) * len(widths(bits))
            for kind, bits in enumerate(layer.attention.remainders)
        )
        of_dense, of_norm = (len(widths(bits)) for bits in layer.feed_forward.remainders)
        of_layer = of_attention + heads * HEAD_ENTRIES + ROOT_ENTRIES
        of_layer += layer.feed_forward.inner * of_dense + width * of_norm + ROOT_ENTRIES
        of_layer += keys * heads + layer.feed_forward.inner + 6 * width
        of_vector = encoder_output.size(width, self.norm_factor, keys, texts)
        entries = texts << log2(width)
        of_output = entries + (2 * entries + 3 * texts) * of_vector.limbs
        return places * (of_input + len(self.layers) * of_layer + width) + of_output

    @property
    def row_bits(self) -> int:
        """Rows of the columns that a run commits to have 2^`row_bits` values; those of the model are shorter."""
        return self.embeddings.row_bits + log2(self.texts)

    @property
    def vectors(self) -> Size:
        """The size of the vectors."""
        return encoder_output.size(self.embeddings.width, self.norm_factor, self.places, self.texts)

    def limb_widths(self) -> list[int]:
        """The widths of the tables of limbs: those of the input, then those of the layers."""
        of_layers = of_limbs(self.layers[0].remainders)
        return list(dict.fromkeys([*self.embeddings.limb_widths(), *of_layers]))


def read(claim: EncoderEmbedded, reader: Reader) -> Session:
    """The whole run, with all its claims."""
    said, table, layers, keys = reader.transcript, claim.embeddings, claim.layers, claim.places
    texts, queries = claim.texts, claim.queries
    for query in queries:
        said.scalar("context", query.context)
    said.raw("embeddings", table.digest)
    encoder.say_layers(said, layers, keys)
    said.integer("norm factor", claim.norm_factor)
    for query in queries:
        said.scalars(("hq", query.hq), ("cq", query.cq))

    session = Session(reader, claim.row_bits)
    places, limb_bits = texts * keys, claim.limb_widths()
    matrix, of_vectors = Blocks(table.width).entries(places), claim.vectors.entries()
    of_input = encoder_input.Parts.entries(table, places)
    of_layers = encoder.Stack.entries(layers, keys, texts)
    tables = [len(NIBBLES), *encoder.TABLES, len(ACTIVATIONS), *(1 << width for width in limb_bits)]
    entries = [places, *matrix, *matrix, *of_input, *of_layers, *of_vectors, *tables]
    sent = iter(session.commit("embedding columns", entries))
    of_marks, x, y = next(sent), take(sent, len(matrix)), take(sent, len(matrix))
    marks = read_marks(session, of_marks, keys, texts)
    tokens = encoder_input.Tokens.read(session, table, marks, texts)
    values = session.send("vector", texts * (1 + claim.vectors.hidden))
    salts, hidden = values[:texts], values[texts:]

    parts = encoder_input.Parts.of(session, table, (marks, tokens), x, sent)
    stack = encoder.Stack.of(layers, marks, x, y, sent, texts)
    if texts > 1:
        matrices = [matrix for layer in layers for matrix in layer.matrices]
        of_matrices = [column for matrix in matrices for column in matrix.columns]
        session.pinned, session.pinned_bits = [*parts.words, *parts.of_places, *of_matrices], table.row_bits
    vectors = Vectors(claim.vectors, take(sent, len(of_vectors)), hidden)
    calls = tokens.calls(marks, [query.hq for query in queries])
    calls += vectors.calls(session, salts, [query.cq for query in queries])
    of_steps, of_exp, of_gelu, of_activations, *of_widths = sent
    look_up(
        session,
        [
            *parts.lookups(),
            *stack.lookups(),
            *encoder_output.lookups(vectors, of_steps),
            *encoder.tables(layers[0], of_exp, of_gelu),
            activations(of_activations),
            *limb_tables(limb_bits, of_widths),
        ],
    )
    parts.claims(session)
    stack.claims(session)
    encoder_output.claims(session, vectors, marks, y)
    permutations(session, calls)
    close(session)
    return session
