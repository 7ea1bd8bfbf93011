"""The reference engine in process, with any mechanism and defence, and a generator behind it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from random import Random

import numpy as np
import numpy.typing as npt

from rag_audit.lab.attacks.interface import Answer, Copied, Generator, Probe, Reply, Task
from rag_audit.lab.attacks.mechanisms import Attacked, Defence, Ranking
from rag_audit.lab.attacks.passages import Passage
from rag_audit.lab.attacks.quality import copied
from rag_audit.retrieval.embedders import Embedder
from rag_audit.retrieval.engine import build_index

_RUN = 1024
"""Maximum probes per batch of score computations."""
_SCORES = 1 << 22
"""Maximum scores per computation: fewer probes if there are many positions."""
_EMBEDDED = 4096
"""Texts that are embedded at a time; a tokeniser's record of a text takes many times its length."""
PASSAGES = 4096
"""Number of passages with cached words for a generator's lookups, which take a hundred times a passage's length."""


@dataclass(eq=False)
class Corpus:
    """A tenant's documents at random positions, and vectors of the questions, each computed once.

    :param documents: the texts of the index; the attacked members come first
    """

    documents: Sequence[str]
    embedder: Embedder
    capacity: int
    seed: int = 0
    _vectors: dict[str, npt.NDArray[np.int8]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        texts = list(self.documents)
        rows = np.concatenate([
            self.embedder.embed_documents(texts[i : i + _EMBEDDED], first=i)
            for i in range(0, len(texts), _EMBEDDED)
        ])  # fmt: skip
        index = build_index(rows, self.capacity, Random(self.seed))
        self.positions = index.positions
        self.rows = np.ascontiguousarray(index.rows.astype(np.float32).T)
        self._texts = dict(zip(self.positions, self.documents, strict=True))
        self._passage = lru_cache(PASSAGES)(Passage)

    def passages(self, positions: Sequence[int]) -> list[Passage]:
        """The passages at the positions with a document."""
        return [self._passage(self._texts[p]) for p in positions if p in self._texts]

    def scores(self, texts: Sequence[str]) -> npt.NDArray[np.int32]:
        """The raw scores of every position for each text, shape (texts, capacity): exact, since float32 represents
        them."""
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        if new:
            for start in range(0, len(new), _EMBEDDED):
                part = new[start : start + _EMBEDDED]
                self._vectors.update(zip(part, embed_all(self.embedder, part), strict=True))
        vectors = np.stack([self._vectors[text] for text in texts]).astype(np.float32)
        result: npt.NDArray[np.int32] = (vectors @ self.rows).astype(np.int32)  # whole numbers below 2^24
        return result

    def forget(self) -> None:
        """Drop the cached vectors of questions."""
        self._vectors.clear()


def embed_all(embedder: Embedder, texts: Sequence[str]) -> npt.NDArray[np.int8]:
    """Vectors of any texts, shape (n, d); the zero vector for a text that cannot be embedded."""
    try:
        return embedder.embed_documents(list(texts))
    except Exception as exc:
        if type(exc).__name__ != "NothingToEmbed":
            raise
        if len(texts) == 1:
            return np.zeros((1, embedder.dimension), np.int8)
        middle = len(texts) // 2
        return np.concatenate([embed_all(embedder, texts[:middle]), embed_all(embedder, texts[middle:])])


@dataclass(frozen=True, eq=False)
class Engine:
    """A service: a corpus under a mechanism and a defence, and a generator.

    :param defence: the defence, of which the engine itself adds only Mirabel's detect-and-hide
    :param rewrite: rewrites a query before retrieval, or None
    """

    corpus: Corpus
    generator: Generator
    attacked: Attacked
    defence: Defence = "none"
    rewrite: Callable[[str], str] | None = None
    top_k: int = 5
    seed: int = 0
    one_window: bool = False
    """Whether all documents are asked about in one window, and not each in a window of its own."""
    empty: frozenset[int] = frozenset()
    """Documents with empty places. Answers read their texts even so, if the places are listed."""
    observes: bool = True
    """Whether answers state what they repeat of the passages (`Answer.copied`)."""
    progress: Callable[[int, int], None] | None = None
    """Shows the number of answered probes, and of all."""
    memo: dict[tuple[int, bool, int], list[Answer]] = field(default_factory=dict)
    """Answers by seed, world and a digest of the probes: attacks that ask the same share them."""

    @property
    def label(self) -> str:
        """Its name in a report."""
        return f"reference engine, {self.attacked.label}"

    @property
    def probabilities(self) -> bool:
        """Whether replies have log-probabilities."""
        return self.generator.probabilities

    def ask(self, probes: Sequence[Probe]) -> list[Answer]:
        """Answer probes in their order; each document's are a window of their own."""
        return self._remembered(probes, absent=False)

    def ask_without(self, probes: Sequence[Probe]) -> list[Answer]:
        """Answer probes in the world with an index that has no document in the attacked document's place, all else
        being equal.

        If that place is listed, the answer uses the document's text all the same. The answers of this method and of
        `ask` therefore differ only by the lists, and the bound on lists covers every function of the answers.
        """
        return self._remembered(probes, absent=True)

    def _remembered(self, probes: Sequence[Probe], *, absent: bool) -> list[Answer]:
        key = (self.seed, absent, hash(tuple(probes)))
        if key not in self.memo:
            self.memo[key] = list(self._answers(probes, absent=absent))
        return self.memo[key]

    def _answers(self, probes: Sequence[Probe], *, absent: bool) -> Iterator[Answer]:
        filled = np.array(sorted(self.corpus.positions))
        ranking = Ranking(self.attacked, self.corpus.capacity, filled, self.top_k, self.defence, self.seed)
        nothing = [self.corpus.positions[document] for document in sorted(self.empty)]
        rows, window, done = self._scores(probes), None, 0
        for document, group in groupby(probes, key=lambda probe: probe.document):
            requested = list(group)
            if not (self.one_window and window):
                window = ranking.window(document, int(absent), _digest(requested))
            home = self.corpus.positions[document] if document < len(self.corpus.positions) else None
            known: dict[tuple[Task, tuple[int, ...]], tuple[Reply, Copied | None]] = {}
            for probe in requested:
                read = row = next(rows)
                silent = [*nothing, home] if absent and home is not None else nothing
                if silent:
                    row = row.copy()
                    row[silent] = 0
                selected = window.select(row, probe.account, read)
                key = (probe.task, selected.positions)
                if key not in known:
                    passages = self.corpus.passages(selected.positions)
                    reply = self.generator.answer(probe.task, passages)
                    known[key] = (reply, copied(probe.task, reply.text, passages) if self.observes else None)
                reply, repeated = known[key]
                done += 1
                if self.progress is not None:
                    self.progress(done, len(probes))
                yield Answer(reply, home in selected.positions, selected.hidden is not None, repeated)

    def _scores(self, probes: Sequence[Probe]) -> Iterator[npt.NDArray[np.int32]]:
        """The scores of each probe, shape (capacity,)."""
        run = max(1, min(_RUN, _SCORES // self.corpus.capacity))
        for start in range(0, len(probes), run):
            texts = [p.task.retrieval for p in probes[start : start + run]]
            places = {text: place for place, text in enumerate(dict.fromkeys(texts))}  # accounts ask the same
            result = self.corpus.scores([self._query(text) for text in places])
            for text in texts:
                yield result[places[text]]

    def _query(self, text: str) -> str:
        return self.rewrite(text) if self.rewrite is not None else text


def _digest(probes: Sequence[Probe]) -> int:
    """A number derived from the question, so that another attack on a document has other draws."""
    text = "\n".join(f"{p.place} {p.account} {p.task.retrieval}" for p in probes)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
