"""A chat endpoint on this machine: a retrieval service over texts, which misbehaves as it is told."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rag_audit.lab.attacks.generators.extractive import ExtractiveGenerator
from rag_audit.lab.attacks.interface import Continue, FillMasks, Task, YesNo
from rag_audit.lab.attacks.passages import Passage
from rag_audit.lab.attacks.proxy import TokenStatistics
from rag_audit.lab.attacks.text import words
from tests.endpoint import Endpoint, serving

__all__ = ["ChatServer", "serving"]


class ChatServer(Endpoint):
    """Answers from the passage that shares most words with the question.

    :param faults: also `nonsense`, `list`, `empty`, `cut`
    """

    def __init__(self, texts: Sequence[str] = (), faults: Sequence[str] = ()) -> None:
        super().__init__(faults)
        self.passages = [Passage(text) for text in texts]
        self.generator = ExtractiveGenerator(TokenStatistics(texts))

    def reply(self, prompt: str) -> str:
        """The service's answer: retrieval by shared words, then extraction."""
        requested = set(words(prompt))
        best = sorted(self.passages, key=lambda p: -len(requested & p.counts.keys()))[:2]
        task: Task
        if "[Mask_" in prompt:
            task = FillMasks(prompt.split("\n\n", 1)[1], prompt.count("[Mask_"))
        elif prompt.startswith("Does this:"):
            text = prompt.split('"', 1)[1].rsplit('"', 1)[0]
            task = YesNo(text, text, presence=True)
        else:
            task = Continue(prompt.split("\n\n", 1)[-1], 40)
        return self.generator.answer(task, best).text

    def answer(self, body: dict[str, Any], fault: str) -> tuple[str, bytes]:
        if fault in ("nonsense", "list"):
            return "application/json", b"<html>" if fault == "nonsense" else b'{"choices": [3]}'
        text = "" if fault == "empty" else self.reply(body["messages"][-1]["content"])
        if body["stream"]:
            pieces = [
                f"data: {json.dumps(_piece(text[i : i + 5], body))}\n\n" for i in range(0, len(text) or 1, 5)
            ]
            return "text/event-stream", "".join(
                [*pieces, "" if fault == "cut" else "data: [DONE]\n\n"]
            ).encode()
        choice = {"message": {"role": "assistant", "content": text}} | _logs(text, body)
        return "application/json", json.dumps({"choices": [choice]}).encode()


def _piece(text: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}} | _logs(text, body)]}


def _logs(text: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"logprobs": {"content": [{"token": text, "logprob": -0.25}]}} if body.get("logprobs") else {}
