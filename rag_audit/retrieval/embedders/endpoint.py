"""The embedder `openai`: any endpoint that speaks the OpenAI embeddings format.

Texts leave the machine and reach the operator of the endpoint. Its vectors are not proved, and no party can show that
the same text always gets the same vector (docs/security.md, "Third-party embedders").
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import numpy as np

from rag_audit._internal.canonical import digest_hex
from rag_audit._internal.errors import EndpointError, SetupError
from rag_audit._internal.http import Again, Caller, read_object
from rag_audit.retrieval.embedders.base import DocumentRefused, PromptTemplate, document_number
from rag_audit.retrieval.embedders.declared import DeclaredEmbedder, Floats
from rag_audit.retrieval.embedders.settings import FILE, FILES, EmbedderSettings, load_settings

NAME = "openai"
_OF_A_TEXT = (400, 413, 422)
"""Status codes that endpoints use to refuse a text, because it is too long or for another reason."""
_NUMBER_BYTES = 32
"""Maximum bytes of one component in an answer."""


class EndpointEmbedder(DeclaredEmbedder):
    """An endpoint's model, with the methods of `Embedder`. The object sends no request before it embeds a text.

    :param place: the settings, with `url`, `model` and `dimension`
    :param sleep: waits between attempts; tests count instead
    :raises SetupError: the settings lack one of these, or would send a key unencrypted
    """

    def __init__(
        self,
        place: Path | None,
        *,
        query_tokens: int = 64,
        document_tokens: int = 512,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        settings, _ = load_settings(place, name=NAME, unknown=FILES)
        for field in ("url", "model", "dimension"):
            if getattr(settings, field) is None:
                raise SetupError("the endpoint's settings are not complete", field=f"{FILE}.{field}",
                                 expected="url, model and dimension")  # fmt: skip
        assert settings.url is not None and settings.model is not None and settings.dimension is not None
        super().__init__(
            NAME,
            artefacts={"model": digest_hex({"model": settings.model})},
            dimension=settings.dimension,
            cut=settings.cut,
            template=PromptTemplate(settings.query_prompt or "", settings.document_prompt or ""),
            query_tokens=query_tokens,
            document_tokens=document_tokens,
            model=settings.model,
        )
        self._settings, self._sleep = settings, sleep
        self._url = _checked_url(settings)

    def _vectors(self, texts: Sequence[str]) -> Floats:
        settings = self._settings
        caller = Caller(
            self._url,
            "embedding endpoint",
            "an embedding of each text",
            "repeat the command when the endpoint works; `--vectors FILE` stores finished vectors",
            key=_key(settings),
            timeout_s=float(settings.timeout_s),
            attempts=settings.attempts,
            sleep=self._sleep,
            option=f"{FILE}.url",
        )
        result: list[Floats] = []
        for first in range(0, len(texts), settings.batch):
            result.append(self._embedded(caller, texts[first : first + settings.batch], first))
        return np.concatenate(result)

    def _embedded(self, caller: Caller, batch: Sequence[str], first: int) -> Floats:
        """The vectors of one request. If the endpoint refuses a request, the method sends it in halves, so that the
        error names the refused text.

        :param first: the number of the first text, for errors
        """
        try:
            return self._ask(caller, batch)
        except DocumentRefused as exc:
            exc.field = f"documents[{first + (document_number(exc) or 0)}]"
            raise
        except EndpointError as exc:
            if exc.status not in _OF_A_TEXT:
                raise
            if len(batch) == 1:
                if not self._answers(caller):
                    raise
                raise DocumentRefused("the embedding endpoint refuses a text", field=f"documents[{first}]",
                                      expected="status 200, as for other texts", actual=exc.actual,
                                      hint="shorten the text, or leave it out: --skip-unreadable") from exc  # fmt: skip
        half = len(batch) // 2
        return np.concatenate(
            [self._embedded(caller, batch[:half], first), self._embedded(caller, batch[half:], first + half)]
        )

    def _ask(self, caller: Caller, batch: Sequence[str]) -> Floats:
        requested = {"model": self._settings.model, "input": list(batch), "encoding_format": "float"}
        return caller.post("embeddings", requested, partial(self._read, count=len(batch)))

    def _answers(self, caller: Caller) -> bool:
        """Whether the endpoint embeds a plain word, so that a refusal is about a text and not about the settings."""
        try:
            self._ask(caller, ["word"])
        except EndpointError:
            return False
        return True

    def _read(self, response: httpx.Response, *, count: int) -> Floats:
        """The vectors of one answer, in the order of the texts."""
        maximum = (1 << 20) + count * self.raw_dimension * _NUMBER_BYTES
        data = read_object(response, maximum).get("data")
        if not isinstance(data, list) or len(data) != count:
            raise Again("nonsense: not one embedding for each text")
        out, seen = np.zeros((count, self.raw_dimension)), set()
        for item in data:
            index = item.get("index") if isinstance(item, dict) else None
            if type(index) is not int or not 0 <= index < count or index in seen:
                raise Again("nonsense: an embedding without a text, or a second one of it")
            seen.add(index)
            out[index] = self._components(item.get("embedding"), index)
        return out

    def _components(self, vector: Any, number: int) -> Floats:
        if not isinstance(vector, list) or any(type(x) not in (int, float) for x in vector):
            raise Again("nonsense: an embedding is no list of numbers")
        if len(vector) != self.raw_dimension:
            raise EndpointError("the endpoint answers with vectors of another dimension", field=self._url,
                                expected=self.raw_dimension, actual=len(vector),
                                hint="its model has changed, or is not the one in the settings; vectors of two models"
                                " do not belong into one index")  # fmt: skip
        try:
            result = np.array(vector, np.float64)
        except OverflowError:
            result = np.array([np.inf])
        if not np.isfinite(result).all():
            raise DocumentRefused("the endpoint's answer contains a value that is not a finite"
                                  " number", field=f"documents[{number}]",
                                  expected="finite components",
                                  hint="shorten the text, or leave it out: --skip-unreadable")  # fmt: skip
        return result


def _checked_url(settings: EmbedderSettings) -> str:
    assert settings.url is not None
    url, place = settings.url, f"{FILE}.url"
    Caller(re.split(r"[?#]", url)[0], "embedding endpoint", "", "", option=place)
    parts = urlsplit(url)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise SetupError("the address holds more than a place", field=place, expected="https://host/v1",
                         hint="the key comes from the environment: key_env")  # fmt: skip
    if settings.key_env is not None and parts.scheme == "http" and not _here(parts.hostname or ""):
        raise SetupError("the key would be sent unencrypted", field=place, expected="https://", actual=url)
    return url


def _here(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _key(settings: EmbedderSettings) -> str | None:
    """The key. It appears in no file, error or log of this package."""
    if settings.key_env is None:
        return None
    key = os.environ.get(settings.key_env)
    if not key:
        raise SetupError("the endpoint's key is not in the environment", field=settings.key_env,
                         hint=f"export {settings.key_env}=..")  # fmt: skip
    if not key.isascii() or not key.isprintable():
        raise SetupError("the endpoint's key has characters that no header may have", field=settings.key_env)
    return key
