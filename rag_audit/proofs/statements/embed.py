"""The statement of claim A1: a record's query vector follows from the query's tokens under the committed
table or encoder."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit.proofs.statements.tenant import PublicValues


@dataclass(frozen=True)
class EmbedStatement(PublicValues):
    """The public values of one record's proof of claim A1; it shares hq and cq with the record.

    :param ctx: digest of the record's context, to which it binds the proof
    :param table: root of the tree over the embedder's table, digest of the commitments to its columns, or digest of the
        pins of an integer encoder. A verifier takes it from a pin, since a prover who could choose the table or the
        model could choose the vector
    :param hq: the record's commitment to the query's tokens
    :param cq: the record's query-vector commitment
    """

    ctx: int
    table: int
    hq: int
    cq: int
