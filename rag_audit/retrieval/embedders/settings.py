"""`embedder.toml`: the settings that the files of a model, or the address of an endpoint, do not contain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from rag_audit._internal.canonical import parse_json, parse_toml, read_bytes
from rag_audit._internal.errors import RagAuditError, SchemaError, SetupError
from rag_audit.models.models import Line, Model
from rag_audit.relation.scores import MAX_DIMENSION

FILE = "embedder.toml"
MAX_SETTINGS_BYTES = 1 << 16
_RAW_DIMENSION = 1 << 16
_POOLING = Path("1_Pooling", "config.json")

Dimension = Annotated[int, Field(ge=1, le=MAX_DIMENSION)]
Prompt = Annotated[str, Field(max_length=4096)]


class EmbedderSettings(Model):
    """The fields of `embedder.toml`. Fields that an embedder does not use are refused.

    :param folder: the folder of the model's files, relative to this file
    :param pooling: how a token encoder's outputs become one vector
    :param max_tokens: the model's maximum number of tokens
    :param query_prompt: the text prepended to a query
    :param document_prompt: the text prepended to a document
    :param cut: number of first components to use, for a model trained for this purpose (Matryoshka)
    :param url: for an endpoint, the base address above `embeddings`
    :param model: for an endpoint, the name of its model
    :param dimension: for an endpoint, the components of its vectors
    :param key_env: for an endpoint, the environment variable that contains its key
    :param batch: for an endpoint, texts in one request
    :param timeout_s: for an endpoint, seconds for connecting and for each read
    :param attempts: for an endpoint, maximum number of attempts for one request
    """

    folder: str = "."
    pooling: Literal["mean", "cls"] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    query_prompt: Prompt | None = None
    document_prompt: Prompt | None = None
    cut: Dimension | None = None
    url: Line | None = None
    model: Line | None = None
    dimension: Annotated[int, Field(ge=1, le=_RAW_DIMENSION)] | None = None
    key_env: Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    batch: Annotated[int, Field(ge=1, le=2048)] = 64
    timeout_s: Annotated[int, Field(ge=1, le=3600)] = 60
    attempts: Annotated[int, Field(ge=1, le=100)] = 5


ENDPOINT = {"url", "model", "dimension", "key_env", "batch", "timeout_s", "attempts"}
"""The fields about an endpoint."""
FILES = {"folder", "pooling", "max_tokens"}
"""The fields about a folder of files."""


def load_settings(place: Path | None, *, name: str, unknown: set[str]) -> tuple[EmbedderSettings, Path]:
    """An embedder's settings, and the folder of its files.

    :param place: an `embedder.toml` of any name, or a folder that may contain one
    :param unknown: the fields that this embedder does not use
    :raises SetupError: the file or folder does not exist
    :raises SchemaError: a field is unknown, out of range, or belongs to another kind of embedder; the error names it
    """
    if place is None:
        raise SetupError(f"the {name} embedder needs --model", field="--model",
                         expected=f"a folder of files, or an {FILE}")  # fmt: skip
    file = place / FILE if place.is_dir() else place
    if place.is_dir() and not file.exists():
        return EmbedderSettings(), place
    if not file.is_file():
        raise SetupError("there is no such file or folder", field=str(place),
                         expected=f"a folder of files, or an {FILE}")  # fmt: skip
    value = parse_toml(
        read_bytes(file, max_bytes=MAX_SETTINGS_BYTES), source=file.name, max_bytes=MAX_SETTINGS_BYTES
    )
    known = EmbedderSettings.model_fields.keys() - unknown
    if wrong := sorted(value.keys() - known):  # named without its value, which may be a key
        raise SchemaError(f"the {name} embedder has no such setting", field=f"{file.name}.{wrong[0]}",
                          expected=", ".join(sorted(known)))  # fmt: skip
    settings = EmbedderSettings.parse(value, field=file.name)
    return settings, file.parent / settings.folder


def with_published(settings: EmbedderSettings, folder: Path) -> EmbedderSettings:
    """The settings. Missing ones are filled from the folder's own files in the format of sentence-transformers:
    pooling, maximum tokens, prompts.

    :raises SetupError: such a file is not well-formed, or needs an unsupported feature
    """
    created = settings.model_dump()
    if settings.pooling is None:
        pooling = _published(folder, _POOLING)
        requested = [
            key for key, value in pooling.items() if key.startswith("pooling_mode_") and value is True
        ]
        known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
        if requested and (len(requested) > 1 or requested[0] not in known):
            raise SetupError("the model asks for a pooling that is unknown here", field=str(folder / _POOLING),
                             expected="mean or cls", actual=", ".join(requested))  # fmt: skip
        created["pooling"] = known[requested[0]] if requested else "mean"
    if settings.max_tokens is None:
        maximum = _published(folder, Path("sentence_bert_config.json")).get("max_seq_length")
        created["max_tokens"] = maximum if isinstance(maximum, int) and maximum >= 1 else 512
    prompts = _published(folder, Path("config_sentence_transformers.json")).get("prompts")
    for role, names in (("query", ("query",)), ("document", ("document", "passage"))):
        if created[f"{role}_prompt"] is None:
            result = [prompts[n] for n in names if n in prompts] if isinstance(prompts, dict) else []
            created[f"{role}_prompt"] = result[0] if result and isinstance(result[0], str) else ""
    return EmbedderSettings.parse(created, field=FILE)


def _published(folder: Path, name: Path) -> dict[str, object]:
    path = folder / name
    if not path.is_file():
        return {}
    try:
        value = parse_json(read_bytes(path, max_bytes=MAX_SETTINGS_BYTES), source=name.name)
    except RagAuditError as exc:
        raise SetupError("a file of the model cannot be read", field=str(path), actual=str(exc)) from exc
    return dict(value) if isinstance(value, dict) else {}
