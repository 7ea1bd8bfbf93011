"""The integer encoder against the float model: `python -m bench.minilm scales|recall --model FOLDER [--json]
[--collection NAME ..] [--vectors FILE] [--integers [NAME ..]]`.

`scales` computes the scales of docs/minilm-int.md: for each kind of value the largest number of fraction bits with
which every value of the float model, on all questions and passages of SciFact, is in the range of 12 bits.

`recall` measures five rankings on the same questions: cosines of the float model, cosines of the integer encoder's
sums, scores of its int4 vectors, scores of the int4 vectors with lexical components, and scores of the default
embedder. Each has nDCG@10 and recall at 5 and 10 in percent, and the mean difference to the float model over the
questions with its standard error. `--integers` omits the float model, which takes most of the time, on the named
collections, or on all. `--vectors` keeps vectors between runs, so an interrupted run continues.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.common import emit, parser
from bench.float_bert import FloatBert
from bench.recall import COLLECTIONS, DEPTH, qualities
from bench.stored import Store, Tokens, integer_store
from rag_audit.commit.explore.collections import Collection, collection
from rag_audit.errors import RagAuditError
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER, get_embedder
from rag_audit.retrieval.embedders.integer_bert.embedder import Rule, native_encoder
from rag_audit.retrieval.embedders.integer_bert.files import Files, load_files
from rag_audit.retrieval.embedders.integer_bert.lexical import LexicalBert
from rag_audit.retrieval.embedders.integer_bert.published import (
    ARTEFACTS,
    FILE_PINS,
    LEXICAL_MINILM,
    MINILM,
    PLACES,
    PUBLISHED_MODELS,
    SCALES,
)
from rag_audit.retrieval.embedders.integer_bert.semantics import ACTIVATION_LIMIT
from rag_audit.retrieval.embedders.normal_form import visible_form
from rag_audit.retrieval.embedders.static import normalise

QUERY_TOKENS = 64
FLOAT, SUMS = "float model, cosine", "integer sums, cosine"
ABSENT = "not measured"

Values = npt.NDArray[Any]
Ranking = list[list[int]]


def tokens(files: Files, texts: Sequence[str], limit: int) -> list[list[int]]:
    """The tokens of texts, cut at the limit as the embedder cuts them."""
    encoded = [e.ids for e in files.tokenizer.encode_batch([visible_form(text) for text in texts])]
    return [ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]] for ids in encoded]


def integer_sums(files: Files, store: Store, lists: Sequence[Tokens], words: str) -> Values:
    """The sums of the last layer's rows, shape (texts, width); zeros for a text that leaves a range."""
    encoder, nothing = native_encoder(files.model), bytes(4 * files.model.shape.width)

    def compute(part: Sequence[Tokens]) -> list[bytes | None]:
        return [sums for sums, _ in encoder.embed(part, False)]

    rows = [sums or nothing for sums in store.fill(lists, compute, words)]
    return np.frombuffer(b"".join(rows), "<i4").reshape(len(lists), -1)


def float_vectors(model: FloatBert, store: Store, lists: Sequence[Tokens], words: str) -> Values:
    """The float model's unit vectors, shape (texts, width)."""

    def compute(part: Sequence[Tokens]) -> list[bytes]:
        return [row.astype("<f4").tobytes() for row in model.embed(part)]

    rows = [row or b"" for row in store.fill(lists, compute, words)]
    return np.frombuffer(b"".join(rows), "<f4").reshape(len(lists), -1)


def ranking(queries: Values, passages: Values) -> Ranking:
    """The first passages of each question by inner product, the lower number first among equal ones."""
    out = []
    for start in range(0, len(queries), 256):
        for row in queries[start : start + 256] @ passages.T:
            near = np.flatnonzero(row >= np.partition(row, -DEPTH)[-DEPTH])  # also all equal to the last one
            out.append([int(i) for i in near[np.argsort(-row[near], kind="stable")][:DEPTH]])
    return out


def unit(x: Values) -> Values:
    wide = x.astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray((wide / np.where(length == 0, 1, length)).astype(np.float32))


def int4(sums: Values, factor: int) -> Values:
    """The int4 vectors; zeros for a text without a vector."""
    rows = [normalise(row.astype(np.int64), factor, field="text") if row.any() else row for row in sums]
    return np.array(rows, np.float32)


def lexical_int4(
    embedder: LexicalBert, lists: Sequence[Sequence[int]], sums: Values, *, query: bool
) -> Values:
    """The int4 vectors with lexical components; zeros for a text without a vector."""
    out = np.zeros((len(lists), embedder.dimension), np.float32)
    for number, (of, row) in enumerate(zip(lists, sums, strict=True)):
        if row.any():
            combined = embedder.combined(row.astype(np.int64), of, query=query)
            out[number] = normalise(combined, PUBLISHED_MODELS[LEXICAL_MINILM].norm_factor, field="text")
    return out


def default_ranking(texts: Collection) -> Ranking:
    """The first passages by the default embedder's scores."""
    embedder = get_embedder(DEFAULT_EMBEDDER)
    queries = np.stack([embedder.embed_query(question) for question in texts.questions])
    return ranking(queries.astype(np.float32), embedder.embed_documents(texts.passages).astype(np.float32))


def figures(rankings: Mapping[str, Ranking], texts: Collection) -> dict[str, Any]:
    """Mean and standard error of each measure of each ranking, and of its difference to the float model's."""
    each = {name: qualities(of.__getitem__, texts.relevant) for name, of in rankings.items()}
    result: dict[str, Any] = {}
    for name, own in each.items():
        result[name] = {measure: _mean(values) for measure, values in own.items()}
        if FLOAT in each and name != FLOAT:
            less = {measure: _mean(values - each[FLOAT][measure]) for measure, values in own.items()}
            result[name]["less_float"] = less
    return result


def _mean(values: Values) -> dict[str, float]:
    return {"mean": float(values.mean()), "standard_error": float(values.std() / sqrt(len(values)))}


def measure(
    texts: Collection, files: Files, folder: Path, vectors: Path | None, *, integers: bool
) -> dict[str, Any]:
    """The five rankings of a collection."""
    parts = {"questions": tokens(files, texts.questions, QUERY_TOKENS),
             "passages": tokens(files, texts.passages, PLACES)}  # fmt: skip
    store = integer_store(vectors, ARTEFACTS, "mean")
    questions, passages = (
        integer_sums(files, store, lists, f"{texts.name}, integers, {part}") for part, lists in parts.items()
    )
    factor, lexical = PUBLISHED_MODELS[MINILM].norm_factor, LexicalBert(LEXICAL_MINILM, files, Rule())
    rankings = {
        SUMS: ranking(unit(questions), unit(passages)),
        MINILM: ranking(int4(questions, factor), int4(passages, factor)),
        LEXICAL_MINILM: ranking(
            lexical_int4(lexical, parts["questions"], questions, query=True),
            lexical_int4(lexical, parts["passages"], passages, query=False),
        ),
        DEFAULT_EMBEDDER: default_ranking(texts),
    }
    result: dict[str, Any] = {
        "collection": texts.name,
        "passages": len(texts.passages),
        "questions": len(texts.questions),
        "outside_the_ranges": sum(int((~sums.any(1)).sum()) for sums in (questions, passages)),
    }
    if not integers:
        model, store = FloatBert(folder), Store(vectors, f"float32/{files.weights}")
        floats = [
            float_vectors(model, store, lists, f"{texts.name}, float model, {part}")
            for part, lists in parts.items()
        ]
        rankings = {FLOAT: ranking(*floats), **rankings}
        for part, own, sums in zip(parts, floats, (questions, passages), strict=True):
            cosines = (own * unit(sums)).sum(1)[sums.any(1)]
            result[f"cosine_of_{part}"] = {"mean": float(cosines.mean()), "minimum": float(cosines.min())}
    return result | {"rankings": figures(rankings, texts)}


def table(results: Sequence[dict[str, Any]]) -> str:
    """The measurements in Markdown: a table for the rankings, and one for the differences to the float model."""
    every = {name: None for result in results for name in result["rankings"]}
    names = sorted(
        every, key=lambda name: name != FLOAT
    )  # a collection without the float model may come first
    sizes = (f"{r['collection']}: {r['passages']:,} passages, {r['questions']:,} questions" for r in results)
    rule = "|---" * (len(results) + 1) + "|"
    lines = ["| ranking | " + " | ".join(sizes) + " |", rule]
    for name in names:
        cells = [_cell(r["rankings"][name]) if name in r["rankings"] else ABSENT for r in results]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    if FLOAT in names:
        lines += ["", "| less the float model | " + " | ".join(r["collection"] for r in results) + " |", rule]
        for name in names[1:]:
            less = (r["rankings"][name].get("less_float") for r in results)
            cells = [ABSENT if each is None else _difference(each) for each in less]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(of: Mapping[str, Any]) -> str:
    shown = (of[name] for name in ("ndcg@10", "recall@5", "recall@10"))
    return (
        ", ".join(f"{value['mean']:.1f}" for value in shown) + f" (± {of['recall@5']['standard_error']:.1f})"
    )


def _difference(of: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{of[name]['mean']:+.2f} ± {of[name]['standard_error']:.2f}" for name in ("ndcg@10", "recall@5")
    )


def scales(files: Files, folder: Path) -> dict[str, Any]:
    texts, model = collection("scifact"), FloatBert(folder)
    model.embed(tokens(files, texts.questions, QUERY_TOKENS))
    model.embed(tokens(files, texts.passages, PLACES))
    bits = {}
    for name in ("x", "q", "v", "o", "z"):
        bits[name] = max(b for b in range(12) if model.largest[name] * 2**b <= ACTIVATION_LIMIT - 1)
    return {"largest": model.largest, "scales": {**bits, "g": bits["z"]}}


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("command", choices=("scales", "recall"))
    options.add_argument("--model", type=Path, required=True, help="the folder of the published files")
    options.add_argument("--collection", action="append", choices=COLLECTIONS, help="repeat for several")
    options.add_argument("--vectors", type=Path, help="a file that keeps vectors between runs")
    options.add_argument(
        "--integers", nargs="*", choices=COLLECTIONS, metavar="NAME",
        help="omit the float model on these collections, or on all",
    )  # fmt: skip
    args = options.parse_args()
    try:
        files = load_files(args.model, SCALES, FILE_PINS)
        if args.command == "scales":
            emit(scales(files, args.model), as_json=True)
            return 0
        omitted = COLLECTIONS if args.integers == [] else args.integers or ()
        results = [
            measure(collection(name), files, args.model, args.vectors, integers=name in omitted)
            for name in args.collection or COLLECTIONS[:4]
        ]
    except RagAuditError as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 2
    if args.json:
        emit({"collections": results}, as_json=True)
    else:
        print(table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
