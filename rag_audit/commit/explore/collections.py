"""The public text collections that experiments, attacks and measurements use.

The collections lie outside the project, in the folder that the environment variable RAG_AUDIT_DATA names, each with
its licence. The project neither copies nor downloads them, and no folder is searched while the variable is unset.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from rag_audit._internal.errors import RagAuditError, SchemaError
from rag_audit._internal.jsonlines import records, string

VARIABLE = "RAG_AUDIT_DATA"


class CollectionError(RagAuditError):
    """A text collection is unknown or not at hand."""


@dataclass(frozen=True)
class Collection:
    """Passages, questions, and for each question the places of its relevant passages."""

    name: str
    passages: Sequence[str]
    questions: Sequence[str]
    relevant: Sequence[frozenset[int]]

    def sample(self, questions: int, seed: int = 0) -> Collection:
        """The same passages with at most this number of the questions, chosen by the seed."""
        chosen = Random(seed).sample(range(len(self.questions)), min(questions, len(self.questions)))
        return Collection(
            self.name,
            self.passages,
            [self.questions[i] for i in chosen],
            [self.relevant[i] for i in chosen],
        )


def folder() -> Path:
    """The collections' folder.

    :raises CollectionError: RAG_AUDIT_DATA is unset, or names no folder
    """
    named = os.environ.get(VARIABLE)
    if not named or not Path(named).is_dir():
        raise CollectionError("the text collections are missing", field=VARIABLE,
                              expected="the environment variable names the folder of the collections",
                              actual=f"no folder {named}" if named else "the variable is not set",
                              hint="set the variable to a folder with the files of public collections, for example"
                                   " squad_dev_v1.1_passages.jsonl.gz and"
                                   " squad_dev_v1.1_questions.jsonl.gz (docs/study.md)")  # fmt: skip
    return Path(named)


def collection(name: str, data: Path | None = None) -> Collection:
    """A collection by its name in `NAMES`.

    :raises CollectionError: the name or the folder is unknown, or a file is missing
    :raises SchemaError: a line has another shape
    """
    if name not in _LOADERS:
        raise CollectionError(
            "there is no such collection", field="collection", expected=", ".join(NAMES), actual=name
        )
    return _LOADERS[name](data or folder())


def _squad(data: Path) -> Collection:
    passages, texts = _texts(data / "squad_dev_v1.1_passages.jsonl.gz")
    requested = _lines(data / "squad_dev_v1.1_questions.jsonl.gz")
    return Collection(
        "SQuAD dev v1.1",
        texts,
        [string(line, "question", place) for place, line in requested],
        [frozenset({_place(passages, string(line, "passage", place), place)}) for place, line in requested],
    )


def _scifact(data: Path) -> Collection:
    passages, texts = _texts(data / "scifact_passages.jsonl.gz")
    relevant: dict[str, set[int]] = defaultdict(set)
    for line in _present(data / "scifact_qrels.tsv").read_text("utf-8").splitlines():
        query, document, grade = line.split("\t")
        if document in passages and grade.isdigit() and int(grade) > 0:
            relevant[query].add(passages[document])
    requested = [
        (str(line["id"]), string(line, "question" if "question" in line else "text", place))
        for place, line in _lines(data / "scifact_questions.jsonl.gz")
        if relevant[str(line["id"])]
    ]
    return Collection(
        "SciFact",
        texts,
        [text for _, text in requested],
        [frozenset(relevant[query]) for query, _ in requested],
    )


def _medquad(data: Path) -> Collection:
    """Each answer is a passage, and its question asks for it; questions asked of several answers ask for all."""
    passages: dict[str, int] = {}
    requested: dict[str, set[int]] = defaultdict(set)
    for place, line in _lines(data / "medquad.jsonl.gz"):
        answer, question = string(line, "answer", place).strip(), string(line, "question", place).strip()
        if answer and question:
            requested[question].add(passages.setdefault(answer, len(passages)))
    return Collection(
        "MedQuAD", list(passages), list(requested), [frozenset(places) for places in requested.values()]
    )


def _pubmedqa(data: Path) -> Collection:
    lines = _lines(data / "pubmedqa_labeled.jsonl.gz")
    return Collection(
        "PubMedQA",
        [string(line, "passage", place) for place, line in lines],
        [string(line, "question", place) for place, line in lines],
        [frozenset({i}) for i in range(len(lines))],
    )


def _mts(data: Path) -> Collection:
    """Each dialogue is a passage, and its note asks for it; equal dialogues are one passage, as are equal notes."""
    passages: dict[str, int] = {}
    requested: dict[str, set[int]] = defaultdict(set)
    for place, line in _lines(data / "mts_dialog.jsonl.gz"):
        dialogue, note = string(line, "dialogue", place).strip(), string(line, "note", place).strip()
        if dialogue:
            number = passages.setdefault(dialogue, len(passages))
            if note:
                requested[note].add(number)
    return Collection(
        "MTS-Dialog", list(passages), list(requested), [frozenset(places) for places in requested.values()]
    )


def _texts_only(name: str, file: str, key: str) -> Callable[[Path], Collection]:
    def load(data: Path) -> Collection:
        texts = dict.fromkeys(string(line, key, place).strip() for place, line in _lines(data / file))
        return Collection(name, [text for text in texts if text], [], [])

    return load


_LOADERS: dict[str, Callable[[Path], Collection]] = {
    "squad": _squad,
    "scifact": _scifact,
    "medquad": _medquad,
    "pubmedqa": _pubmedqa,
    "mts": _mts,
    "travel": _texts_only("SGD travel", "sgd_travel.jsonl.gz", "text"),
}
NAMES = tuple(_LOADERS)
"""`travel` has texts and no questions."""
WITH_QUESTIONS = tuple(name for name in NAMES if name != "travel")
"""The collections on which recall can be measured."""


def _lines(path: Path) -> list[tuple[str, Mapping[str, object]]]:
    return [(place, line) for place, _, line in records(_present(path))]


def _present(path: Path) -> Path:
    if not path.is_file():
        raise CollectionError("a collection's file is missing", field=VARIABLE, expected=path.name,
                              actual=str(path.parent))  # fmt: skip
    return path


def _texts(path: Path) -> tuple[dict[str, int], list[str]]:
    """Each passage's place by its id, and the texts, title first where there is one."""
    places: dict[str, int] = {}
    texts: list[str] = []
    for place, line in _lines(path):
        places[str(line["id"])] = len(texts)
        text = string(line, "text", place)
        texts.append(text if path.name.startswith("squad") else f"{string(line, 'title', place)} {text}")
    return places, texts


def _place(passages: Mapping[str, int], name: str, place: str) -> int:
    if name not in passages:
        raise SchemaError(
            "a question's passage is missing", field=place, expected="the id of a passage", actual=name
        )
    return passages[name]
