"""Proofs of A1 for the integer encoder: a query's tokens give its vector (docs/scan/encoder-embed.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_audit.proofs.backends.reference import encoder, encoder_input, encoder_output, limits
from rag_audit.proofs.backends.reference.attention import read_marks
from rag_audit.proofs.backends.reference.block import (
    ACTIVATIONS,
    Blocks,
    activations,
    limb_tables,
    of_limbs,
    take,
)
from rag_audit.proofs.backends.reference.closing import close
from rag_audit.proofs.backends.reference.index import NIBBLES
from rag_audit.proofs.backends.reference.lookup import look_up
from rag_audit.proofs.backends.reference.poseidon import permutations
from rag_audit.proofs.backends.reference.session import Session
from rag_audit.proofs.backends.reference.transcript import Reader
from rag_audit.proofs.backends.reference.vector import MAX_FACTOR, Size, Vector

RUN = "encoder embed"


@dataclass(frozen=True)
class EncoderEmbedded:
    """The public values of a run; `norm_factor` is A."""

    context: int
    embeddings: encoder_input.Embeddings
    layers: Sequence[encoder.Layer]
    places: int
    norm_factor: int
    hq: int
    cq: int

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

    @property
    def vector(self) -> Size:
        """The size of the vector."""
        return encoder_output.size(self.embeddings.width, self.norm_factor, self.places)

    def limb_widths(self) -> list[int]:
        """The widths of the tables of limbs: those of the input, then those of the layers."""
        of_layers = of_limbs(self.layers[0].remainders)
        return list(dict.fromkeys([*self.embeddings.limb_widths(), *of_layers]))


def read(claim: EncoderEmbedded, reader: Reader) -> Session:
    """The whole run, with all its claims."""
    said, table, layers, places = reader.transcript, claim.embeddings, claim.layers, claim.places
    said.scalar("context", claim.context)
    said.raw("embeddings", table.digest)
    encoder.say_layers(said, layers, places)
    said.integer("norm factor", claim.norm_factor)
    said.scalars(("hq", claim.hq), ("cq", claim.cq))

    session = Session(reader, table.row_bits)
    matrix, limb_bits = Blocks(table.width).entries(places), claim.limb_widths()
    of_input = encoder_input.Parts.entries(table, places)
    of_layers = encoder.Stack.entries(layers, places)
    of_vector = claim.vector.entries()
    tables = [len(NIBBLES), *encoder.TABLES, len(ACTIVATIONS), *(1 << width for width in limb_bits)]
    entries = [places, *matrix, *matrix, *of_input, *of_layers, *of_vector, *tables]
    sent = iter(session.commit("embedding columns", entries))
    of_marks, x, y = next(sent), take(sent, len(matrix)), take(sent, len(matrix))
    marks = read_marks(session, of_marks, places)
    tokens = encoder_input.Tokens.read(session, table, marks)
    salt, *hidden = session.send("vector", 1 + claim.vector.hidden)

    parts = encoder_input.Parts.of(session, table, (marks, tokens), x, sent)
    stack = encoder.Stack.of(layers, marks, x, y, sent)
    vector = Vector(claim.vector, take(sent, len(of_vector)), hidden)
    calls = [tokens.call(marks, claim.hq), *vector.calls(session, salt, claim.cq)]
    of_steps, of_exp, of_gelu, of_activations, *of_widths = sent
    look_up(
        session,
        [
            *parts.lookups(),
            *stack.lookups(),
            *encoder_output.lookups(vector, of_steps),
            *encoder.tables(layers[0], of_exp, of_gelu),
            activations(of_activations),
            *limb_tables(limb_bits, of_widths),
        ],
    )
    parts.claims(session)
    stack.claims(session)
    encoder_output.claims(session, vector, marks, y)
    permutations(session, calls)
    close(session)
    return session
