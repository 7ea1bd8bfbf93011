"""A language model without weights: a script writes its answers, and a table gives its scores in a text."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from rag_audit.lab.attacks.language.model import Scores

VOCABULARY = 1 << 13
SURE, LIKELY = 6.0, 3.0
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
_PIECE = re.compile(r"<s>|</s>|\s?\w+|\s|[^\w\s]")


class FakeModel:
    """Writes what a script answers to a prompt, and finds a few words likely everywhere else.

    :param script: the answer to a prompt's text
    :param likely: scores of pieces in a text that is no prompt
    """

    template = TEMPLATE
    marks = ("<s>", "</s>")

    def __init__(
        self,
        script: Callable[[str], str] = lambda _: "",
        *,
        context: int = 4096,
        likely: Mapping[str, float] | None = None,
        label: str = "fake (sha256 00)",
    ) -> None:
        self.script, self.context, self.label = script, context, label
        self._likely = dict(likely or {})
        self._pieces = ["<s>", "</s>"]
        self._ids = {"<s>": 0, "</s>": 1}
        self.prompts: list[str] = []

    def tokens(self, text: str, *, special: bool = False) -> list[int]:
        pieces = _PIECE.findall(text)
        if not special:
            pieces = [part for p in pieces for part in (list(p) if p in self.marks else [p])]
        for piece in pieces:
            if piece not in self._ids:
                self._ids[piece] = len(self._pieces)
                self._pieces.append(piece)
        return [self._ids[piece] for piece in pieces]

    def piece(self, token: int) -> bytes:
        return b"" if token < 2 else self._pieces[token].encode()

    def ends(self, token: int) -> bool:
        return token == 1

    def scores(self, tokens: Sequence[int], last: int) -> Scores:
        rows = np.zeros((last, VOCABULARY), np.float32)
        for row, end in enumerate(range(len(tokens) - last + 1, len(tokens) + 1)):
            text = "".join(self._pieces[t] for t in tokens[:end])
            prompt, mark, said = text.partition("<|assistant|>")
            if not mark:
                for piece, score in self._likely.items():
                    rows[row, self.tokens(piece)[0]] = score
                continue
            if not said:
                self.prompts.append(prompt)
            answer = self.tokens(self.script(prompt))
            place = len(self.tokens(said))
            rows[row, answer[place] if place < len(answer) else 1] = SURE
        return rows


def present(prompt: str) -> str:
    """The answer of a model that reads its context: whether the quoted text is in it."""
    context, _, question = prompt.partition("<|user|>")
    quoted = re.search(r'Does this: "(.*)" appear in the context', question, re.DOTALL)
    return "Yes" if quoted and quoted[1] in context else "No"


def probability(score: float) -> float:
    """The log-probability of a token with this score, where all other scores are 0."""
    return float(score - np.log(np.exp(score) + VOCABULARY - 1))


def gguf(
    path: Path,
    architecture: str = "llama",
    *,
    template: str | None = TEMPLATE,
    version: int = 3,
    context: int | None = 512,
) -> Path:
    """Write the header of a GGUF file with these values, and a list of tokens between them."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def pair(key: str, value: str | int) -> bytes:
        if isinstance(value, str):
            return text(key) + struct.pack("<I", 8) + text(value)
        return text(key) + struct.pack("<II", 4, value)

    words = ["<s>", "</s>", "word"]
    pairs = [
        pair("general.architecture", architecture),
        pair("general.name", "Fake 1M"),
        text("tokenizer.ggml.tokens")
        + struct.pack("<IIQ", 9, 8, len(words))
        + b"".join(text(word) for word in words),
        text("tokenizer.ggml.scores") + struct.pack("<IIQ3f", 9, 6, 3, 0.0, 1.0, 2.0),
    ]
    if context is not None:
        pairs.append(pair(f"{architecture}.context_length", context))
    if template is not None:
        pairs.append(pair("tokenizer.chat_template", template))
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", version, 0, len(pairs)) + b"".join(pairs))
    return path
