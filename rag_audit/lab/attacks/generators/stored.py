"""A generator with stored replies: a slow model answers each prompt once, also over several runs in one folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rag_audit._internal.canonical import sha256
from rag_audit.lab.attacks import journal
from rag_audit.lab.attacks.generators.local import LocalGenerator
from rag_audit.lab.attacks.interface import NextWord, Reply, Task
from rag_audit.lab.attacks.passages import Passage


class StoredGenerator:
    """Answers from a file, and asks the model what the file does not have.

    :param file: replies by a digest of the generator's label, the task and the passages
    :raises StoreError: a line of the file is damaged
    """

    def __init__(self, generator: LocalGenerator, file: Path, known: dict[str, Reply] | None = None) -> None:
        self._generator, self._file = generator, file
        self._known = journal.load(file, journal.reply_of) if known is None else known
        self.label, self.probabilities = generator.label, generator.probabilities

    def guard(self) -> StoredGenerator:
        """The guarded generator, with the same file."""
        return StoredGenerator(self._generator.guard(), self._file, self._known)

    def answer(self, task: Task, passages: Sequence[Passage]) -> Reply:
        """The stored reply, or the model's."""
        key = self._key(task, passages)
        if key not in self._known:
            reply = self._generator.answer(task, passages)
            journal.append(self._file, journal.entry_of(key, reply))
            self._known[key] = reply
        return self._known[key]

    def _key(self, task: Task, passages: Sequence[Passage]) -> str:
        word = task.word if isinstance(task, NextWord) else ""
        what = [self.label, type(task).__name__, task.prompt, word, *(p.text for p in passages)]
        return sha256(json.dumps(what).encode()).hex()
