"""The ONNX embedder on a model of eight tokens that this file writes, byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_audit.errors import EncodingError, RagAuditError, SetupError
from rag_audit.relation.commitments import text_query_commitment
from rag_audit.retrieval.embedders import Embedder, NothingToEmbed, get_embedder
from rag_audit.retrieval.embedders.quantise import quantise_unit

pytest.importorskip("onnxruntime", reason="needs the extra [onnx]")
tokenizers = pytest.importorskip("tokenizers", reason="needs the extra [onnx]")

DIMENSION = 4
TABLE = np.array(
    [
        [0, 0, 0, 0],  # [UNK]
        [1, 0, 0, 0],  # [CLS]
        [0, 1, 0, 0],  # [SEP]
        [3, 0, 4, 0],  # red
        [0, -2, 0, 1],  # blue
        [-1, 0, 0, 0],  # minus
        [0, -1, 0, 0],  # down
        [1, 1, 1, 1],  # Represent
    ],
    np.float32,
)
VOCABULARY = ["[UNK]", "[CLS]", "[SEP]", "red", "blue", "minus", "down", "Represent"]


def varint(n: int) -> bytes:
    out = bytearray()
    while True:
        n, low = n >> 7, n & 0x7F
        out.append(low | (0x80 if n else 0))
        if not n:
            return bytes(out)


def message(*fields: tuple[int, Any]) -> bytes:
    """A protobuf message of (field number, int | str | bytes)."""
    out = b""
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def tensor_info(name: str, kind: int, shape: list[int | str]) -> bytes:
    dims = [(1, message((1, d) if isinstance(d, int) else (2, d))) for d in shape]
    return message((1, name), (2, message((1, message((1, kind), (2, message(*dims)))))))


def lookup_model(*, extra_input: str | None = None, batched: bool = True) -> bytes:
    """ONNX: last_hidden_state = Gather(table, input_ids); other inputs are declared and unused."""
    shape: list[int | str] = ["batch", "tokens"] if batched else ["tokens"]
    names = ["input_ids", "attention_mask", *([extra_input] if extra_input else [])]
    table = message(
        *[(1, n) for n in TABLE.shape],
        (2, 1),
        (8, "table"),
        (9, struct.pack(f"<{TABLE.size}f", *TABLE.ravel())),
    )
    gather = message((1, "table"), (1, "input_ids"), (2, "last_hidden_state"), (4, "Gather"))
    graph = message(
        (1, gather),
        (2, "lookup"),
        (5, table),
        *[(11, tensor_info(name, 7, shape)) for name in names],
        (12, tensor_info("last_hidden_state", 1, [*shape, DIMENSION])),
    )
    return message((1, 8), (8, message((1, ""), (2, 13))), (7, graph))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vocabulary = {word: number for number, word in enumerate(VOCABULARY)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 1), ("[SEP]", 2)]
    )
    tokenizer.enable_padding(length=32)  # published tokenizers pad: the embedder must not
    (tmp_path / "tokenizer.json").write_text(tokenizer.to_str())
    (tmp_path / "model.onnx").write_bytes(lookup_model())
    return tmp_path


def minilm(folder: Path, **options: Any) -> Embedder:
    return get_embedder("all-MiniLM-L6-v2", folder=folder, **options)


def test_mean_pooling_and_quantiser(folder: Path) -> None:
    embedder = minilm(folder)
    assert embedder.tokenize("red") == [1, 3, 2]
    # the mean of [CLS], red, [SEP] points along (4, 1, 4, 0); |x| = sqrt(33), scale 0.15
    assert embedder.embed_query("red").tolist() == [7, 7, 7, 0]
    assert quantise_unit(np.array([4.0, 1, 4, 0] + [8.0] * 100), embedder.scale).tolist()[:4] == [2, 1, 2, 0]


def test_cls_pooling_and_query_prompt(folder: Path) -> None:
    embedder = get_embedder("bge-small-en-v1.5", folder=folder)
    assert embedder.tokenize("red")[1] == VOCABULARY.index("Represent")
    assert embedder.embed_query("red").tolist() == [7, 0, 0, 0]
    assert embedder.manifest()["prompt"] != minilm(folder).manifest()["prompt"]


def test_vectors_do_not_depend_on_neighbours(folder: Path) -> None:
    embedder = minilm(folder)
    rows = embedder.embed_documents(["red", "blue blue blue", "red blue"])
    assert rows.shape == (3, DIMENSION) and rows.dtype == np.int8
    assert rows[1].tolist() == embedder.embed_documents(["blue blue blue"])[0].tolist()
    assert rows[0].tolist() != rows[1].tolist()


def test_limits_cut_and_keep_the_closing_token(folder: Path) -> None:
    embedder = minilm(folder, query_tokens=4)
    assert embedder.tokenize("red blue red blue") == [1, 3, 4, 2]
    assert embedder.manifest()["tokens"] == {"document": 256, "query": 4}


def test_documents_that_are_cut_are_counted(folder: Path) -> None:
    embedder = minilm(folder, document_tokens=4)  # two of them are special tokens
    assert embedder.cut_documents(["red", "red blue", "red blue red", "red blue red blue"]) == 2


@pytest.mark.parametrize("text", ["", "   "])
def test_empty_query_is_refused(folder: Path, text: str) -> None:
    with pytest.raises(NothingToEmbed, match="the text has no token to embed"):
        minilm(folder).embed_query(text)


def test_zero_vector_is_refused(folder: Path) -> None:
    with pytest.raises(NothingToEmbed, match="the text has no token to embed"):
        minilm(folder).embed_query("minus down")


def test_token_outside_the_vocabulary_is_refused(folder: Path) -> None:
    with pytest.raises(EncodingError, match="outside the vocabulary"):
        minilm(folder).embed_tokens([1, 8])


def test_query_commitment_is_over_the_text(folder: Path) -> None:
    assert minilm(folder).query_commitment("red", 9) == text_query_commitment(9, b"red")


def test_manifest_follows_the_artefacts(folder: Path) -> None:
    before = minilm(folder).manifest()
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes(lookup_model(extra_input="token_type_ids"))
    after = minilm(folder).manifest()
    assert before["artefacts"]["weights"] != after["artefacts"]["weights"]
    assert before["artefacts"]["tokenizer"] == after["artefacts"]["tokenizer"]


def test_missing_folder_file_and_name(folder: Path) -> None:
    with pytest.raises(SetupError, match="local folder"):
        get_embedder("all-MiniLM-L6-v2")
    with pytest.raises(SetupError, match="unknown embedder"):
        get_embedder("word2vec")
    (folder / "tokenizer.json").unlink()
    with pytest.raises(SetupError, match="cannot be read") as caught:
        minilm(folder)
    assert str(caught.value.field).endswith("tokenizer.json")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (b"not onnx", "cannot be loaded"),
        (lookup_model(batched=False), "not a token encoder"),
    ],
)
def test_unusable_model_is_refused(folder: Path, model: bytes, message: str) -> None:
    (folder / "model.onnx").write_bytes(model)
    with pytest.raises(SetupError, match=message):
        minilm(folder)


def test_model_with_an_unknown_input_is_refused(folder: Path) -> None:
    (folder / "model.onnx").write_bytes(lookup_model(extra_input="pixel_values"))
    with pytest.raises(SetupError, match="inputs that are unknown") as caught:
        minilm(folder).embed_query("red")
    assert caught.value.actual == ["pixel_values"]


# -- any model in a folder -----------------------------------------------------------------------------------


def test_any_folder_follows_the_published_rule(folder: Path) -> None:
    embedder = get_embedder("onnx", folder=folder)
    assert embedder.manifest()["quantiser"] == {"bits": 4, "scale": "1.500", "turn": "turn-1"}
    assert (embedder.manifest()["pooling"], embedder.limits.document) == ("mean", 512)
    assert "cut_from" not in embedder.manifest()
    expected = quantise_unit(np.array([4.0, 1, 4, 0]), embedder.scale, turn=True)
    assert embedder.embed_query("red").tolist() == expected.tolist()
    assert (
        embedder.embed_query("red").tolist()
        == get_embedder("onnx", folder=folder).embed_query("red").tolist()
    )


def test_a_folder_s_own_files_say_pooling_limit_and_prompts(folder: Path) -> None:
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        '{"pooling_mode_cls_token": true, "word_embedding_dimension": 4}'
    )
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 5}')
    (folder / "config_sentence_transformers.json").write_text('{"prompts": {"query": "Represent "}}')
    embedder = get_embedder("onnx", folder=folder)
    assert (embedder.manifest()["pooling"], embedder.limits.document) == ("cls", 5)
    assert embedder.tokenize("red")[1] == VOCABULARY.index("Represent")
    (folder / "embedder.toml").write_text(
        'pooling = "mean"\nquery_prompt = ""\ndocument_prompt = "Represent "\ncut = 3\n'
    )
    other = get_embedder("onnx", folder=folder)
    assert (other.manifest()["pooling"], other.dimension, other.manifest()["cut_from"]) == ("mean", 3, 4)
    assert other.tokenize("red") == [1, 3, 2]
    assert other.embed_documents(["red"]).shape == (1, 3)
    assert other.manifest()["prompt"] != embedder.manifest()["prompt"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("1_Pooling/config.json", '{"pooling_mode_lasttoken": true}', "pooling that is unknown"),
        ("1_Pooling/config.json", "{", "cannot be read"),
        ("embedder.toml", "cut = 5", "fewer components"),
        ("embedder.toml", 'url = "https://models.example"', "no such setting"),
        ("embedder.toml", 'pooling = "max"', "not well-formed"),
    ],
)
def test_what_a_folder_asks_for_in_vain_is_named(folder: Path, name: str, text: str, message: str) -> None:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    with pytest.raises(RagAuditError, match=message):
        get_embedder("onnx", folder=folder)
