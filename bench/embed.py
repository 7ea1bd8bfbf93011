"""Proofs of the query embedding (claim A1) for one record: `python -m bench.embed [--words W] [--batch B] [--json]`.

The script takes the default embedder's committed table and a question of W words. It measures making a proof, verifying
one proof, and verifying a batch of proofs: seconds, cpu_seconds (all threads) and peak_bytes. It first makes one proof,
which makes the generators and tables. The cost does not depend on the index.
"""

from __future__ import annotations

from random import Random

from bench.common import Cost, by_figure, emit, measured, parsed, parser
from bench.proofs import failures
from bench.service import WORDS
from rag_audit.proofs.backends.scan.embed import EmbedJob, table_columns
from rag_audit.proofs.backends.scan.key import EmbedArgument, EmbedKey
from rag_audit.proofs.backends.scan.query_vector import embed_form
from rag_audit.proofs.statements.embed import EmbedStatement
from rag_audit.relation.commitments import query_commitment, vector_commitment
from rag_audit.retrieval.embedders import get_embedder


def main() -> None:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--words", type=int, default=12)
    options.add_argument("--batch", type=int, default=64)
    args = parsed(options)
    embedder, rng = get_embedder(), Random(1)
    table = embedder.table
    assert table is not None
    argument = EmbedArgument(
        embedder.limits.query, table.dimension, table.constants.vocabulary, table.constants.norm_factor
    )
    key = EmbedKey(argument, table_columns(table))
    tokens = embedder.tokenize(" ".join(rng.choice(WORDS) for _ in range(args.words)))
    vector = embedder.embed_tokens(tokens).tolist()
    statement = EmbedStatement(
        ctx=5, table=key.root, hq=query_commitment(6, tokens), cq=vector_commitment(7, vector)
    )
    job = EmbedJob(key, statement, table.rows, tokens, 6, 7)
    job.run()
    costs: dict[str, Cost] = {}
    costs["prove"], result = measured(job.run)
    [proof] = embed_form(argument).parse(result, 1, field="proof").parts or (b"",)
    for step, count in (("verify", 1), ("batch", args.batch)):
        costs[step], bad = measured(lambda n=count: failures(key, [(proof,)] * n, [statement] * n))  # type: ignore[misc]
        if bad:
            raise SystemExit("a proof that was just made does not verify")
    head = {"tokens": len(tokens), "most_tokens": argument.tokens, "batch": args.batch, "bytes": len(proof)}
    emit({**head, **by_figure(costs)}, as_json=args.json)


if __name__ == "__main__":
    main()
