"""The integer encoder against the float model: `python -m bench.minilm scales|recall --model FOLDER [--json]
[--collection NAME ..] [--cache FOLDER] [--integers]`.

`scales` computes the scales of docs/minilm-int.md: for each kind of value the largest number of fraction bits with
which every value of the float model, on all questions and passages of SciFact, is in the range of 12 bits.

`recall` measures nDCG@10 and recall at 5 and 10 of four rankings on the same questions: cosines of the float model,
cosines of the integer encoder's sums, scores of its int4 vectors, and scores of the int4 vectors with lexical
components. A standard error is that of the mean difference to the float model over the questions. `--integers` omits
the float model, which takes most of the time. `--cache` keeps vectors between runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.common import emit, parser
from bench.float_bert import FloatBert
from bench.recall import COLLECTIONS, quality
from rag_audit.commit.explore.collections import Collection, collection
from rag_audit.errors import RagAuditError
from rag_audit.retrieval.embedders.integer_bert.embedder import Rule, native_encoder
from rag_audit.retrieval.embedders.integer_bert.files import Files, load_files
from rag_audit.retrieval.embedders.integer_bert.lexical import LexicalBert
from rag_audit.retrieval.embedders.integer_bert.published import (
    FILE_PINS,
    LEXICAL_MINILM,
    PLACES,
    PUBLISHED_MODELS,
    SCALES,
)
from rag_audit.retrieval.embedders.integer_bert.semantics import ACTIVATION_LIMIT
from rag_audit.retrieval.embedders.normal_form import visible_form
from rag_audit.retrieval.embedders.static import normalise

QUERY_TOKENS = 64
DEPTH = 10

Values = npt.NDArray[Any]


def tokens(files: Files, texts: Sequence[str], limit: int) -> list[list[int]]:
    """The tokens of texts, cut at the limit as the embedder cuts them."""
    encoded = [e.ids for e in files.tokenizer.encode_batch([visible_form(text) for text in texts])]
    return [ids if len(ids) <= limit else [*ids[: limit - 1], ids[-1]] for ids in encoded]


def integer_sums(files: Files, lists: Sequence[Sequence[int]]) -> Values:
    """The sums of the last layer's rows, shape (texts, width); zeros for a text that leaves a range."""
    encoder, out = native_encoder(files.model), np.zeros((len(lists), files.model.shape.width), np.int32)
    for start in range(0, len(lists), 64):
        for number, (sums, _) in enumerate(encoder.embed(lists[start : start + 64], False), start):
            if sums is not None:
                out[number] = np.frombuffer(sums, "<i4")
    return out


def kept(cache: Path | None, name: str, compute: Callable[[], Values]) -> Values:
    """The values of a file in the cache, or computed and stored there."""
    path = None if cache is None else cache / f"{name}.npy"
    if path is not None and path.exists():
        result: Values = np.load(path)
        return result
    result = compute()
    if path is not None:
        np.save(path, result)
    return result


def ranking(queries: Values, passages: Values) -> list[list[int]]:
    """The first passages of each question by inner product, the lower number first among equal ones."""
    out = []
    for start in range(0, len(queries), 256):
        scores = queries[start : start + 256] @ passages.T
        out += [[int(i) for i in np.argsort(-row, kind="stable")[:DEPTH]] for row in scores]
    return out


def unit(x: Values) -> Values:
    wide = x.astype(np.float64)
    length = np.linalg.norm(wide, axis=1, keepdims=True)
    return np.asarray((wide / np.where(length == 0, 1, length)).astype(np.float32))


def int4(sums: Values, factor: int) -> Values:
    """The int4 vectors; zeros for a text without a vector."""
    rows = [normalise(row.astype(np.int64), factor, field="text") if row.any() else row for row in sums]
    return np.array(rows, np.float32)


def difference(
    first: Sequence[Sequence[int]], second: Sequence[Sequence[int]], texts: Collection
) -> dict[str, float]:
    """The mean difference of recall@5 in points, second less first, and its standard error."""
    each = np.array([
        100 * (len(wanted & set(b[:5])) - len(wanted & set(a[:5]))) / len(wanted)
        for a, b, wanted in zip(first, second, texts.relevant, strict=True)
    ])  # fmt: skip
    return {
        "mean": round(float(each.mean()), 2),
        "standard_error": round(float(each.std() / sqrt(len(each))), 2),
    }


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


def measure(
    texts: Collection, name: str, files: Files, folder: Path, cache: Path | None, *, integers: bool
) -> dict[str, Any]:
    parts = {"q": tokens(files, texts.questions, QUERY_TOKENS), "p": tokens(files, texts.passages, PLACES)}
    sums = {
        part: kept(cache, f"int_{name}_{part}", lambda lists=lists: integer_sums(files, lists))
        for part, lists in parts.items()
    }  # type: ignore[misc]
    factor, lexical = PUBLISHED_MODELS["minilm-int"].norm_factor, LexicalBert(LEXICAL_MINILM, files, Rule())
    rankings = {
        "integer": ranking(unit(sums["q"]), unit(sums["p"])),
        "integer_int4": ranking(int4(sums["q"], factor), int4(sums["p"], factor)),
        "lexical_int4": ranking(
            lexical_int4(lexical, parts["q"], sums["q"], query=True),
            lexical_int4(lexical, parts["p"], sums["p"], query=False),
        ),
    }
    result = {
        "collection": texts.name,
        "passages": len(texts.passages),
        "questions": len(texts.questions),
        "outside_the_ranges": sum(int((~values.any(1)).sum()) for values in sums.values()),
    }
    if not integers:
        model = FloatBert(folder)
        floats = {
            part: kept(cache, f"{name}_{part}", lambda lists=lists: model.embed(lists))
            for part, lists in parts.items()
        }  # type: ignore[misc]
        rankings["float"] = ranking(floats["q"], floats["p"])
        cosines = np.concatenate([(floats[part] * unit(sums[part])).sum(1) for part in parts])
        inside = np.concatenate([sums[part].any(1) for part in parts])
        result["cosine"] = {
            "mean": round(float(cosines[inside].mean()), 6),
            "minimum": round(float(cosines[inside].min()), 6),
        }
        for kind in ("integer", "integer_int4"):
            result[f"{kind}_less_float_recall@5"] = difference(rankings["float"], rankings[kind], texts)
    return result | {kind: quality(of.__getitem__, texts.relevant) for kind, of in rankings.items()}


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
    options.add_argument("--cache", type=Path, help="a folder for vectors")
    options.add_argument("--integers", action="store_true", help="omit the float model")
    args = options.parse_args()
    try:
        files = load_files(args.model, SCALES, FILE_PINS)
        if args.command == "scales":
            emit(scales(files, args.model), as_json=True)
            return 0
        for name in args.collection or COLLECTIONS[:4]:
            emit(
                measure(collection(name), name, files, args.model, args.cache, integers=args.integers),
                as_json=True,
            )
    except RagAuditError as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
