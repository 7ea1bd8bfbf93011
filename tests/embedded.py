"""Statements of claim A1 by the Python reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rag_audit.models.manifest import DEFAULT_TABLE
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.relation.commitments import query_commitment, vector_commitment
from rag_audit.retrieval.embedders.static import normalise


def embed_statement(
    entries: npt.NDArray[np.int8], tokens: list[int], *, ctx: int, table: int, salts: Sequence[int]
) -> EmbedStatement:
    """What the reference says of these tokens.

    :param entries: the table's rows, shape (vocabulary, dimension)
    :param table: the commitment to the table
    :param salts: of the query's commitment, and of the vector's
    """
    vector = normalise(entries[tokens].sum(axis=0, dtype=np.int64), DEFAULT_TABLE.norm_factor, field="query")
    salt_q, salt_c = salts
    return EmbedStatement(
        ctx=ctx,
        table=table,
        hq=query_commitment(salt_q, tokens),
        cq=vector_commitment(salt_c, [int(v) for v in vector]),
    )
