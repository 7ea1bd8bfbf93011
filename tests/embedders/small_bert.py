"""A small encoder with random weights: two layers of 16 components. `folder` writes it in the format of published models.

Every parameter is a multiple of 2^-12 from SHAKE-256, so other implementations can make the same model: entry i of the
tensor with that name in the file is an integer of two bytes, little-endian, signed, from the stream over
"rag-audit/small-bert/<seed>/<name>", divided by 2^5 (floor), plus 2^12 for the weights of a LayerNorm.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from hashlib import shake_256
from pathlib import Path

import numpy as np
import numpy.typing as npt

from rag_audit.retrieval.embedders.integer_bert.files import _KIND, _names
from rag_audit.retrieval.embedders.integer_bert.semantics import Scales, Shape

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "red", "blue", "green", "##ish", "a", "house", "the", "of", "law",
         "court", "fever", "pain", "drug", "dose", "##s"]  # fmt: skip
SHAPE = Shape(layers=2, width=16, heads=2, inner=32, vocabulary=len(WORDS), places=24)
SCALES = Scales(x=8, q=8, v=8, o=8, z=8, g=8)
TOKENIZER = {
    "version": "1.0", "truncation": None, "padding": None,
    "added_tokens": [
        {"id": i, "content": WORDS[i], "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True} for i in range(5)
    ],
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                   "strip_accents": None, "lowercase": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                   {"SpecialToken": {"id": "[SEP]", "type_id": 0}}],
        "pair": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                 {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [2], "tokens": ["[CLS]"]},
                           "[SEP]": {"id": "[SEP]", "ids": [3], "tokens": ["[SEP]"]}},
    },
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
              "max_input_chars_per_word": 100, "vocab": {word: i for i, word in enumerate(WORDS)}},
}  # fmt: skip

Tensors = dict[str, npt.NDArray[np.float32]]


def tensors(shape: Shape = SHAPE, seed: int = 0, shift: int = 5) -> Tensors:
    """The tensors of a published model by name."""
    out = {}
    for name, dimensions in [*_names(shape).values(), (_KIND, [2, shape.width])]:
        count = int(np.prod(dimensions))
        stream = shake_256(f"rag-audit/small-bert/{seed}/{name}".encode()).digest(2 * count)
        integers = np.frombuffer(stream, "<i2").astype(np.int64) >> shift
        if name.endswith("LayerNorm.weight"):
            integers += 1 << 12
        out[name] = (integers / (1 << 12)).astype(np.float32).reshape(dimensions)
    return out


def configuration(shape: Shape = SHAPE) -> dict[str, object]:
    return {
        "model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu", "layer_norm_eps": 1e-12,
        "num_hidden_layers": shape.layers, "hidden_size": shape.width, "num_attention_heads": shape.heads,
        "intermediate_size": shape.inner, "vocab_size": shape.vocabulary,
        "max_position_embeddings": shape.places,
    }  # fmt: skip


def safetensors(of: Mapping[str, npt.NDArray[np.generic]], kind: str = "F32") -> bytes:
    """A safetensors file."""
    header, body = {}, b""
    for name, values in of.items():
        data = values.tobytes()
        header[name] = {
            "dtype": kind,
            "shape": list(values.shape),
            "data_offsets": [len(body), len(body) + len(data)],
        }
        body += data
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def write(folder: Path, shape: Shape = SHAPE, seed: int = 0, scales: Scales = SCALES) -> Path:
    """Write the model's folder, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(configuration(shape)))
    (folder / "tokenizer.json").write_text(json.dumps(TOKENIZER))
    (folder / "model.safetensors").write_bytes(safetensors(tensors(shape, seed)))
    (folder / "scales.json").write_text(json.dumps(asdict(scales)))
    return folder
