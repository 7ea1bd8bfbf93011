"""Any OpenAI-compatible chat endpoint: streaming, time-outs, rate limits and retries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from rag_audit._internal.errors import EndpointError
from rag_audit._internal.http import MAX_REPLY_BYTES, Again, Caller, json_object, read_object
from rag_audit.lab.attacks.generators.prompts import system
from rag_audit.lab.attacks.interface import NextWord, Reply, Task
from rag_audit.lab.attacks.passages import Passage

__all__ = ["ChatGenerator", "Endpoint", "EndpointError", "ask_chat"]

UNSEEN = math.log(1e-4)
"""The log-probability of a next word that the endpoint does not have among its likeliest."""


@dataclass(frozen=True)
class Endpoint(Caller):
    """A chat endpoint. Its `url` is the base address above `chat/completions`."""

    what: str = "chat endpoint"
    expected: str = "a chat completion"
    hint: str = "finished answers are stored: repeat the command when the endpoint works"
    option: str = "--target"
    model: str = field(kw_only=True)
    stream: bool = True
    probabilities: bool = False
    temperature: float = 0.0

    def complete(self, messages: Sequence[Mapping[str, str]], most_tokens: int = 512) -> Reply:
        """Send a request, and repeat it as long as another attempt may succeed.

        :raises EndpointError: all attempts failed, or the endpoint refuses the question; the error names the last
            reason
        """
        body: dict[str, Any] = {
            "model": self.model,
            "messages": list(messages),
            "temperature": self.temperature,
            "max_tokens": most_tokens,
            "stream": self.stream,
        }
        if self.probabilities:
            body |= {"logprobs": True, "top_logprobs": 5}
        return self.post("chat/completions", body, _answered, accept="application/json, text/event-stream")


def _answered(response: httpx.Response) -> Reply:
    if "text/event-stream" in (response.headers.get("Content-Type") or ""):
        return _from_stream(response)
    return _reply([read_object(response)], whole=True)


def _from_stream(response: httpx.Response) -> Reply:
    """The completion of a stream of server-sent events. A stream that ends before `[DONE]` raises `Again`."""

    def events() -> Iterator[dict[str, Any]]:
        done = False
        for line in _lines(response):
            if not line.startswith(b"data:"):
                continue
            data = line[5:].strip()
            if data == b"[DONE]":
                done = True
                break
            yield json_object(data)
        if not done:
            raise Again("a stream that ends in the middle")

    return _reply(list(events()), whole=False)


def _lines(response: httpx.Response) -> Iterator[bytes]:
    """The lines of a stream. Only LF ends a line: `httpx.Response.iter_lines` also splits a text at U+2028."""
    rest, size = b"", 0
    for part in response.iter_raw():
        size += len(part)
        if size > MAX_REPLY_BYTES:
            raise Again("a stream of more than 4 MiB")
        *lines, rest = (rest + part).split(b"\n")
        yield from lines
    yield rest


def _reply(parts: Sequence[Mapping[str, Any]], *, whole: bool) -> Reply:
    """The text and log-probabilities of a completion, or of the pieces of one."""
    text, logs = "", []
    try:
        for part in parts:
            for choice in part["choices"][:1]:
                piece = choice["message" if whole else "delta"].get("content") or ""
                if not isinstance(piece, str):
                    raise TypeError
                text += piece
                for token in (choice.get("logprobs") or {}).get("content") or ():
                    logs.append(max(float(token["logprob"]), UNSEEN))
    except (KeyError, TypeError, IndexError, AttributeError, ValueError):
        raise Again("nonsense: no chat completion") from None
    if not text.strip():
        raise Again("an empty answer")
    return Reply(text, tuple(logs) or None)


class ChatGenerator:
    """A chat model behind this package's own retrieval.

    :param guarded: whether its prompt forbids repeating the context and describing its content
    """

    def __init__(self, endpoint: Endpoint, *, guarded: bool = False) -> None:
        self._endpoint = endpoint
        self._guarded = guarded
        self.label = f"chat model {endpoint.model}" + (", guarded prompt" if guarded else "")
        self.probabilities = endpoint.probabilities

    def guard(self) -> ChatGenerator:
        """The same model under the guarded prompt."""
        return ChatGenerator(self._endpoint, guarded=True)

    def answer(self, task: Task, passages: Sequence[Passage]) -> Reply:
        """Answer a task from the passages in the system's prompt.

        :raises EndpointError: the endpoint does not answer
        """
        return ask_chat(self._endpoint, task, [system(passages, guarded=self._guarded)])


def ask_chat(endpoint: Endpoint, task: Task, before: Sequence[Mapping[str, str]] = ()) -> Reply:
    """A task's reply from a chat endpoint.

    :raises EndpointError: the endpoint does not answer, or gives no log-probabilities that were asked for
    """
    messages = [*before, {"role": "user", "content": task.prompt}]
    if not isinstance(task, NextWord):
        return endpoint.complete(messages)
    reply = endpoint.complete(messages, most_tokens=4)
    if reply.log_probabilities is None:
        return reply
    said = reply.text.strip().lower()
    # A word may be several tokens: the first token's probability counts if the reply begins with the word.
    likely = reply.log_probabilities[0] if said.startswith(task.word.lower()) else UNSEEN
    return Reply(task.word, (likely,))
