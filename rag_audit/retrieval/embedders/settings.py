"""`embedder.toml`: what the files of a model, or the address of an endpoint, do not say by themselves."""

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
    """The fields of `embedder.toml`; those that an embedder has no use for are refused.

    :param folder: of the model's files, relative to this file
    :param pooling: how a token encoder's outputs become one vector
    :param max_tokens: the most tokens that the model takes
    :param query_prompt: what is put before a query
    :param document_prompt: what is put before a document
    :param cut: how many of the first components are used, of a model that was trained for that (Matryoshka)
    :param url: of an endpoint, the base below which `embeddings` is
    :param model: of an endpoint, the name of its model
    :param dimension: of an endpoint, the components of its vectors
    :param key_env: of an endpoint, the environment variable that holds its key
    :param batch: of an endpoint, texts in one request
    :param timeout_s: of an endpoint, seconds for connecting and for each read
    :param attempts: of an endpoint, how often one request is sent at most
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

    :param place: an `embedder.toml` of any name, or a folder in which there may be one
    :param unknown: the fields that this embedder has no use for
    :raises SetupError: there is no such file or folder
    :raises SchemaError: a field is unknown, out of range, or of another kind of embedder; it is named
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
    """The settings, and where they say nothing, what the folder's own files say as sentence-transformers writes them:
    pooling, the most tokens, prompts.

    :raises SetupError: such a file is not well-formed, or asks for what is not done here
    """
    made = settings.model_dump()
    if settings.pooling is None:
        pooling = _published(folder, _POOLING)
        asked = [key for key, value in pooling.items() if key.startswith("pooling_mode_") and value is True]
        known = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
        if asked and (len(asked) > 1 or asked[0] not in known):
            raise SetupError("the model asks for a pooling that is unknown here", field=str(folder / _POOLING),
                             expected="mean or cls", found=", ".join(asked))  # fmt: skip
        made["pooling"] = known[asked[0]] if asked else "mean"
    if settings.max_tokens is None:
        most = _published(folder, Path("sentence_bert_config.json")).get("max_seq_length")
        made["max_tokens"] = most if isinstance(most, int) and most >= 1 else 512
    prompts = _published(folder, Path("config_sentence_transformers.json")).get("prompts")
    for role, names in (("query", ("query",)), ("document", ("document", "passage"))):
        if made[f"{role}_prompt"] is None:
            found = [prompts[n] for n in names if n in prompts] if isinstance(prompts, dict) else []
            made[f"{role}_prompt"] = found[0] if found and isinstance(found[0], str) else ""
    return EmbedderSettings.parse(made, field=FILE)


def _published(folder: Path, name: Path) -> dict[str, object]:
    path = folder / name
    if not path.is_file():
        return {}
    try:
        value = parse_json(read_bytes(path, max_bytes=MAX_SETTINGS_BYTES), source=name.name)
    except RagAuditError as exc:
        raise SetupError("a file of the model cannot be read", field=str(path), found=str(exc)) from exc
    return dict(value) if isinstance(value, dict) else {}
