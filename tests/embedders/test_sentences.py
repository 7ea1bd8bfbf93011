"""The embedder that loads sentence-transformers, against a module with that package's interface: the package itself
brings torch, which is too large for the locked environment."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from rag_audit.errors import SchemaError, SetupError
from rag_audit.retrieval.embedders import NothingToEmbed, get_embedder, published_constants
from rag_audit.retrieval.embedders.quantise import quantise_unit

DIMENSION = 6


class SentenceTransformer:
    """The methods that are called, of version 5."""

    def __init__(self, path: str, *, device: str, local_files_only: bool, trust_remote_code: bool) -> None:
        assert (device, local_files_only, trust_remote_code) == ("cpu", True, False)
        if not Path(path, "model.safetensors").read_bytes():
            raise OSError("no weights")
        self.default_prompt_name: str | None = "query"
        self.max_seq_length = 512
        self.requested: list[str] = []

    def get_sentence_embedding_dimension(self) -> int:
        return DIMENSION

    def encode(
        self, sentences: list[str], *, batch_size: int, convert_to_numpy: bool, show_progress_bar: bool
    ) -> np.typing.NDArray[np.float32]:
        assert convert_to_numpy and not show_progress_bar and self.default_prompt_name is None
        self.requested += sentences
        return np.stack([self.vector(text) for text in sentences])

    @staticmethod
    def vector(text: str) -> np.typing.NDArray[np.float32]:
        return np.array([text.count(letter) for letter in "abcdef"], np.float32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = SentenceTransformer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    (tmp_path / "modules.json").write_text("[]")
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "lock").touch()
    return tmp_path


def embedder(place: Path, **options: Any) -> Any:
    return get_embedder("sentence-transformers", folder=place, **options)


def test_texts_become_vectors(folder: Path) -> None:
    result = embedder(folder)
    texts: Sequence[str] = ["a face", "decade", "bad fee"]
    expected = [
        quantise_unit(SentenceTransformer.vector(text), result.scale, turn=True).tolist() for text in texts
    ]
    assert result.embed_documents(texts).tolist() == expected
    assert result.embed_query("decade").tolist() == expected[1]
    assert published_constants("sentence-transformers", folder).dimension == DIMENSION
    with pytest.raises(NothingToEmbed) as caught:
        result.embed_documents(["a", "xyz"])  # a vector of zeros
    assert caught.value.field == "documents[1]"


def test_the_model_s_own_prompts_are_used_unless_the_settings_say_others(folder: Path) -> None:
    prompts = {"prompts": {"query": "ask: ", "passage": "read: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    result = embedder(folder)
    result.embed_query("face")
    result.embed_documents(["face"])
    assert result._loaded.requested == ["ask: face", "read: face"]
    (folder / "embedder.toml").write_text('query_prompt = ""\ncut = 4\nmax_tokens = 32\n')
    short = embedder(folder)
    assert short.embed_query("face").shape == (4,)
    assert short._loaded.requested == ["face"] and short._loaded.max_seq_length == 32


def test_the_manifest_has_all_files_and_no_place(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = embedder(folder).manifest()
    assert before["kind"] == "sentence-transformers" and set(before["artefacts"]) == {"files"}
    (folder / ".cache" / "lock").write_text("changed")
    assert embedder(folder).manifest() == before
    settings = tmp_path_factory.mktemp("elsewhere") / "embedder.toml"
    settings.write_text(f"folder = {json.dumps(str(folder))}\n")
    assert embedder(settings).manifest() == before
    (folder / "model.safetensors").write_bytes(b"other weights")
    assert embedder(folder).manifest() != before


def test_what_is_missing_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "model.safetensors").write_bytes(b"")
    with pytest.raises(SetupError, match="cannot be loaded"):
        embedder(folder)
    (folder / "embedder.toml").write_text('url = "https://models.example/v1"\n')
    with pytest.raises(SchemaError, match="no such setting"):
        embedder(folder)
    (folder / "embedder.toml").unlink()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(SetupError) as caught:
        embedder(folder)
    assert caught.value.hint == "pip install 'ragaudit-zk[sentence-transformers]'"
    (folder / "modules.json").unlink()
    with pytest.raises(SetupError, match="no model of sentence-transformers"):
        embedder(folder)
