"""The questions of the demo and their passages: `python -m bench.demo [--embedder NAME ..] [--first | --blind]
[--misses] [--json]`.

For each embedder of the demo, the script counts the questions whose passage is among the first K of all passages by the
score of the int4 vectors, without a mechanism. Choices about the demo (such as the passages' form) use the first set
only. The second, blind set was written before any measurement, and its figures are for docs/embedders.md. `--misses`
lists the questions whose passage is not among the first five, with the place of the passage and the first passage's
title.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

from bench.common import emit, parser
from rag_audit.cli.demo.corpus import Question, load_questions, passages
from rag_audit.cli.demo.embedder import FOUND, Choice
from rag_audit.errors import RagAuditError
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.texts import DocumentPart

CUTS = (1, 3, 5, 10, 20)
LISTED = 5


@dataclass(frozen=True)
class Placed:
    """A question and the place of its passage, 1 for the best score.

    :param first: the title of the passage with the best score
    """

    question: str
    answer: str
    place: int
    first: str


def places(
    documents: list[DocumentPart], rows: np.ndarray[Any, Any], questions: list[Question], embedder: Embedder
) -> list[Placed]:
    """The place of each question's passage. Of equal scores, the passage has the best place.

    :param rows: the documents' vectors, shape (documents, dimension)
    """
    result = []
    for question in questions:
        scores = rows @ embedder.embed_query(question.question).astype(np.int32)
        best = max(s for s, d in zip(scores.tolist(), documents, strict=True) if d.title == question.answer)
        first = documents[int(np.argmax(scores))].title
        result.append(Placed(question.question, question.answer, 1 + int((scores > best).sum()), first))
    return result


def main() -> int:
    """Measure and print."""
    options = parser(__doc__)
    options.add_argument("--embedder", action="append", choices=[*FOUND], help="repeat for several")
    options.add_argument("--first", action="store_true", help="the first set only")
    options.add_argument("--blind", action="store_true", help="the blind set only")
    options.add_argument("--misses", action="store_true", help="list the questions without their passage")
    args = options.parse_args()
    sets = [name for name in ("first", "blind") if getattr(args, name)] or ["first", "blind"]
    documents, results = passages(), []
    try:
        embedders = [Choice(name, "").load() for name in args.embedder or FOUND]
    except RagAuditError as exc:
        print(f"bench: {exc}", file=sys.stderr)
        return 2
    for embedder in embedders:
        rows = embedder.embed_documents([d.text for d in documents]).astype(np.int32)
        for name in sets:
            placed = places(documents, rows, load_questions(blind=name == "blind"), embedder)
            found = {str(cut): sum(p.place <= cut for p in placed) for cut in CUTS}
            missed = sorted((p for p in placed if p.place > LISTED), key=lambda p: p.place)
            results.append(
                {
                    "embedder": embedder.name,
                    "set": name,
                    "passages": len(documents),
                    "questions": len(placed),
                    "found": found,
                    "median_place": median(p.place for p in placed),
                    "misses": [asdict(p) for p in missed],
                }
            )
            if args.json:
                continue
            told = ", ".join(f"{count} among {cut}" for cut, count in found.items())
            print(f"{embedder.name}, {name} set: {len(placed)} questions, {len(documents)} passages: {told};"
                  f" median place {results[-1]['median_place']:g}", flush=True)  # fmt: skip
            for miss in missed if args.misses else []:
                print(f"  {miss.place:5}  {miss.question}  ({miss.answer}; first: {miss.first})")
    if args.json:
        emit({"sets": results}, as_json=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
