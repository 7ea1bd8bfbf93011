"""A language model in this process behind this package's own retrieval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rag_audit.lab.attacks.generators.prompts import conversation
from rag_audit.lab.attacks.interface import Continue, FillMasks, NextWord, Reply, Task
from rag_audit.lab.attacks.language.model import LanguageModel, log_probabilities, within
from rag_audit.lab.attacks.language.template import rendered
from rag_audit.lab.attacks.passages import Passage

_TOKENS_OF_MASK = 16
_TOKENS_OF_WORD = 2
_TOKENS_OF_VERDICT = 24


class LocalGenerator:
    """Answers at temperature 0, with the log-probability of each token of the answer.

    :param guarded: whether its prompt forbids repeating the context and describing its content
    """

    probabilities = True

    def __init__(self, model: LanguageModel, *, guarded: bool = False) -> None:
        self._model = model
        self._guarded = guarded
        self.label = f"language model {model.label}" + (", guarded prompt" if guarded else "")

    def guard(self) -> LocalGenerator:
        """The same model under the guarded prompt."""
        return LocalGenerator(self._model, guarded=True)

    def answer(self, task: Task, passages: Sequence[Passage]) -> Reply:
        """Answer a task from the passages in the system's prompt. The reply to `NextWord` has the exact probability of
        an answer that begins with the word.

        :raises AttackError: the prompt and the answer are longer than the model's context
        """
        model = self._model
        text = rendered(model.template, conversation(task, passages, guarded=self._guarded), *model.marks)
        prompt = model.tokens(text, special=True)
        if isinstance(task, NextWord):
            word = model.tokens(task.word)
            within(model, len(prompt) + len(word), "the prompt with the requested word")
            logs = log_probabilities(model.scores([*prompt, *word][:-1], len(word)))
            return Reply(task.word, (float(sum(logs[i, t] for i, t in enumerate(word))),))
        return self._written(prompt, most_tokens(task))

    def _written(self, prompt: Sequence[int], most: int) -> Reply:
        """The likeliest answer, token by token. An empty answer has the log-probability of its end."""
        model, tokens, logs = self._model, list(prompt), list[float]()
        within(model, len(prompt) + most, "the prompt with its answer")
        for _ in range(most):
            next_ = log_probabilities(model.scores(tokens, 1))[0]
            token = int(np.argmax(next_))
            if model.ends(token):
                if not logs:
                    return Reply("", (float(next_[token]),))
                break
            tokens.append(token)
            logs.append(float(next_[token]))
        text = b"".join(model.piece(t) for t in tokens[len(prompt) :]).decode("utf-8", "replace")
        return Reply(text.strip(), tuple(logs))


def most_tokens(task: Task) -> int:
    """The most tokens of an answer in the requested format."""
    if isinstance(task, FillMasks):
        return _TOKENS_OF_MASK * task.count
    if isinstance(task, Continue):
        return _TOKENS_OF_WORD * task.maximum
    return _TOKENS_OF_VERDICT
