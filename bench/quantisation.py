"""The loss of recall by int4 and by cut components: `python -m bench.quantisation [--json] [--documents N]`.

Recall@K is the share of the exact top K (unit vectors in floating point, all components) that the compared vectors also
rank in their top K, over all queries, in percent. Recall@K does not measure relevance: most lost documents have scores
near those of the documents that replace them.

Synthetic vectors have a stated spectrum:

- `even`: component variances j^-s in a randomly rotated basis, so that all components are alike;
- `nested`: the same variances in the order of the components, like models trained for cuts (Matryoshka).

Both kinds have 50 documents a topic. Documents of a topic and their questions are drawn around a centre of the same
spectrum. The last rows use the default embedder's own vectors before conversion to integers: the documents are the
standard library's docstrings, and the queries are the first sentences of some of these docstrings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.common import emit, parser
from rag_audit.cli.demo import corpus
from rag_audit.relation.scores import MAX_COMPONENT
from rag_audit.retrieval.embedders import wordllama
from rag_audit.retrieval.embedders.quantise import published_scale, turned

Floats = npt.NDArray[np.float32]
DIMENSIONS = (384, 768, 1024, 1536)
SLOPES = (0.5, 1.0)
FACTORS = (2.0, 2.5, 3.0, 3.5)
CUTS = (5, 20)
TOPIC = 50
OWN = 0.6
"""The length of a document's own component; its topic's centre has length 1."""


def synthetic(
    dimension: int, slope: float, count: int, queries: int, *, even: bool, seed: int
) -> tuple[Floats, Floats]:
    """Draw unit vectors of documents and of queries."""
    draw = np.random.default_rng(seed)
    deviations = np.arange(1, dimension + 1, dtype=np.float32) ** np.float32(-slope / 2)
    deviations /= np.linalg.norm(deviations)
    centres = draw.standard_normal((-(-count // TOPIC), dimension), np.float32) * deviations
    topics = np.arange(count) // TOPIC
    requested = draw.integers(0, len(centres), queries)

    def around(topic: npt.NDArray[np.int64]) -> Floats:
        own = draw.standard_normal((len(topic), dimension), np.float32) * deviations
        return np.asarray(centres[topic] + np.float32(OWN) * own, np.float32)

    rows, questions = around(topics), around(requested)
    if even:
        basis = np.linalg.qr(draw.standard_normal((dimension, dimension), np.float32))[0]
        rows, questions = rows @ basis, questions @ basis
    return unit(rows), unit(questions)


def unit(x: Floats) -> Floats:
    return np.asarray(x / np.linalg.norm(x, axis=1, keepdims=True), np.float32)


def int4(x: Floats, scale: Fraction) -> Floats:
    """Apply `quantise_unit` to each row, in floats; their products are exact."""
    steps = np.rint(MAX_COMPONENT * x.astype(np.float64) / float(scale))
    return np.clip(steps, -MAX_COMPONENT, MAX_COMPONENT).astype(np.float32)


def first(rows: Floats, queries: Floats) -> npt.NDArray[np.int64]:
    """Return the best rows of each query, in order; equal scores by position."""
    result = []
    for scores in queries @ rows.T:
        minimum = np.partition(scores, -max(CUTS))[-max(CUTS)]
        best = np.flatnonzero(scores >= minimum)
        result.append(best[np.argsort(-scores[best], kind="stable")][: max(CUTS)])
    return np.stack(result)


def kept(exact: npt.NDArray[np.int64], actual: npt.NDArray[np.int64]) -> dict[str, float]:
    """Return the share of the exact top K among the found rows, by K, percent."""
    return {
        f"recall@{k}": round(
            100 * float(np.mean([len({*a[:k]} & {*b[:k]}) / k for a, b in zip(exact, actual, strict=True)])),
            1,
        )
        for k in CUTS
    }


def turns(x: Floats) -> Floats:
    return turned(x.astype(np.float64)).astype(np.float32)


def rows_of(
    name: str, rows: Floats, queries: Floats, cuts: Sequence[int], factors: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each cut, and for each scale without rotation; the published rule rotates the vectors first."""
    exact, dimension = first(rows, queries), rows.shape[1]
    for cut in (dimension, *cuts):
        short, requested = unit(rows[:, :cut]), unit(queries[:, :cut])
        row: dict[str, Any] = {"vectors": name, "dimension": dimension, "cut": cut}
        if cut < dimension:
            yield row | {"components": "float"} | kept(exact, first(short, requested))
        scale = Fraction(published_scale(cut))
        result = first(int4(turns(short), scale), int4(turns(requested), scale))
        yield row | {"components": "int4, turned", "scale": float(scale)} | kept(exact, result)
        for factor in factors:
            scale = Fraction(round(1000 * factor / sqrt(cut)), 1000)
            result = first(int4(short, scale), int4(requested, scale))
            yield (
                row | {"components": f"int4, {factor:g}/sqrt(d)", "scale": float(scale)} | kept(exact, result)
            )


def float_vectors(texts: Sequence[str], limit: int) -> npt.NDArray[np.float32]:
    """Unit vectors of the semantic part of the default embedder's table before any rounding, shape (n, 256)."""
    data = wordllama.package_data(wordllama.WEIGHTS, wordllama.WEIGHTS_SHA256)
    size = wordllama.VOCABULARY * wordllama.SEMANTIC
    table = np.frombuffer(data[-2 * size :], "<f2").reshape(-1, wordllama.SEMANTIC).astype(np.float32)
    encodings = wordllama.tokenizer().encode_batch(list(texts), add_special_tokens=False)
    sums = np.stack([table[encoding.ids[:limit]].sum(axis=0) for encoding in encodings])
    return np.asarray(sums / np.linalg.norm(sums, axis=1, keepdims=True), np.float32)


def table(dimensions: Sequence[int], count: int, queries: int) -> Iterator[dict[str, Any]]:
    for dimension in dimensions:
        for slope in SLOPES:
            vectors = synthetic(dimension, slope, count, queries, even=True, seed=dimension)
            yield from rows_of(f"even, j^-{slope:g}", *vectors, (), FACTORS)
        vectors = synthetic(dimension, 1.0, count, queries, even=False, seed=dimension)
        yield from rows_of("nested, 1/j", *vectors, (dimension // 2, dimension // 4), (3.0,))
    texts = [document.text for document in corpus.collect()]
    requested = [text.split(". ")[0] for text in texts[:: -(-len(texts) // queries)]]
    vectors = float_vectors(texts, 512), float_vectors(requested, 64)
    yield from rows_of("semantic part", *vectors, (128, 64), (*FACTORS, 0.22 * 16))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--documents", type=int, default=10_000)
    options.add_argument("--queries", type=int, default=200)
    options.add_argument("--dimensions", type=int, nargs="+", default=DIMENSIONS)
    args = options.parse_args()
    result = []
    for row in table(args.dimensions, args.documents, args.queries):
        result.append(row)
        print(row, file=sys.stderr)
    emit({"documents": args.documents, "queries": args.queries, "table": result}, as_json=args.json)


if __name__ == "__main__":
    main()
