"""A chat endpoint on this machine: a retrieval service over texts, which misbehaves as it is told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rag_audit.attacks.generators.extractive import ExtractiveGenerator
from rag_audit.attacks.interface import Continue, FillMasks, Task, YesNo
from rag_audit.attacks.passages import Passage
from rag_audit.attacks.proxy import TokenStatistics
from rag_audit.attacks.text import words


class ChatServer(ThreadingHTTPServer):
    """Answers from the passage that shares most words with the question.

    :param faults: what goes wrong with the first requests, in order: `429`, `500`, `400`, `nonsense`, `list`, `empty`,
        `cut`, `slow`; after them all is well
    """

    daemon_threads = True

    def __init__(self, texts: Sequence[str] = (), faults: Sequence[str] = ()) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.passages = [Passage(text) for text in texts]
        self.faults = list(faults)
        self.seen: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.generator = ExtractiveGenerator(TokenStatistics(texts))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def reply(self, prompt: str) -> str:
        """What the service says: retrieval by shared words, then extraction."""
        asked = set(words(prompt))
        best = sorted(self.passages, key=lambda p: -len(asked & p.counts.keys()))[:2]
        task: Task
        if "[Mask_" in prompt:
            task = FillMasks(prompt.split("\n\n", 1)[1], prompt.count("[Mask_"))
        elif prompt.startswith("Does this:"):
            text = prompt.split('"', 1)[1].rsplit('"', 1)[0]
            task = YesNo(text, text, presence=True)
        else:
            task = Continue(prompt.split("\n\n", 1)[-1], 40)
        return self.generator.answer(task, best).text


@contextmanager
def serving(server: ChatServer) -> Iterator[ChatServer]:
    """The server, answering for the duration of the block."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append(body)
        self.server.keys.append(self.headers["Authorization"])
        fault = self.server.faults.pop(0) if self.server.faults else "well"
        if fault in ("429", "500", "400"):
            self.send_response(int(fault))
            if fault == "429":
                self.send_header("Retry-After", "7")
            self.end_headers()
            self.wfile.write(b"no")
            return
        if fault == "slow":
            time.sleep(1.0)
        text = {"empty": "", "nonsense": "", "list": ""}.get(fault) if fault in ("empty",) else None
        text = self.server.reply(body["messages"][-1]["content"]) if text is None else text
        if fault in ("nonsense", "list"):
            self._send("application/json", b"<html>" if fault == "nonsense" else b'{"choices": [3]}')
        elif body["stream"]:
            pieces = [
                f"data: {json.dumps(_piece(text[i : i + 5], body))}\n\n" for i in range(0, len(text) or 1, 5)
            ]
            self._send(
                "text/event-stream", "".join([*pieces, "" if fault == "cut" else "data: [DONE]\n\n"]).encode()
            )
        else:
            choice = {"message": {"role": "assistant", "content": text}} | _logs(text, body)
            self._send("application/json", json.dumps({"choices": [choice]}).encode())

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        with suppress(OSError):  # the client left
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def _piece(text: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}} | _logs(text, body)]}


def _logs(text: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"logprobs": {"content": [{"token": text, "logprob": -0.25}]}} if body.get("logprobs") else {}
