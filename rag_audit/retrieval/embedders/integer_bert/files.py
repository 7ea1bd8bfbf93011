"""From the folder of a BERT encoder to its integers.

The folder has the files that sentence-transformers publishes: `config.json`, `model.safetensors` and `tokenizer.json`.
A file that this module does not understand completely is refused: a vector of another graph would look plausible.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import SetupError
from rag_audit._internal.regular import open_regular
from rag_audit.retrieval.embedders.integer_bert.semantics import (
    ACCUMULATOR_LIMIT,
    ACTIVATION_LIMIT,
    WEIGHT_BITS,
    WEIGHT_LIMIT,
    IntegerModel,
    Scales,
    Shape,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CONFIGURATION, WEIGHTS, TOKENIZER, SCALES = (
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "scales.json",
)
MAX_HEADER = 1 << 20
"""Maximum bytes of a safetensors header."""
MAX_SMALL_FILE = 1 << 24
MAX_WEIGHTS = 1 << 32
_HINT = "pip install 'ragaudit-zk[provider]'"
_GRAPH: dict[str, tuple[Json, ...]] = {
    "model_type": ("bert",),
    "architectures": (["BertModel"],),
    "hidden_act": ("gelu",),
    "position_embedding_type": ("absolute",),
    "is_decoder": (False,),
    "add_cross_attention": (False,),
}
"""Values of the configuration that the integer encoder computes. The first is the default of a missing field."""
_REQUIRED = ("model_type", "hidden_act")
_EPSILON = 1e-12
"""Greatest epsilon of a LayerNorm, which the integer encoder leaves out: every variance is far above it."""
_UNUSED = ("embeddings.position_ids", "pooler.dense.bias", "pooler.dense.weight")
"""Tensors that sentence embeddings do not use."""

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Files:
    """An encoder's files.

    :param folder: their folder
    :param weights: SHA-256 of `model.safetensors`
    :param tokenizer_digest: SHA-256 of `tokenizer.json`
    """

    folder: Path
    model: IntegerModel
    tokenizer: Tokenizer
    weights: str
    tokenizer_digest: str


def load_files(folder: Path, scales: Scales, pinned: Mapping[str, str] | None = None) -> Files:
    """Read an encoder's folder.

    :param pinned: required SHA-256 of files by name; None permits every file
    :raises SetupError: a file is missing, differs from its pin, is not well-formed or needs an unsupported graph; a
        parameter needs more than 16 bits, or a layer more than 32
    """
    data = {}
    for name, limit in ((CONFIGURATION, MAX_SMALL_FILE), (TOKENIZER, MAX_SMALL_FILE), (WEIGHTS, MAX_WEIGHTS)):
        data[name] = _read(folder / name, limit)
        actual = sha256(data[name]).hexdigest()
        expected = actual if pinned is None else pinned.get(name, actual)
        if actual != expected:
            raise SetupError("a file of the model is not the pinned one", field=str(folder / name),
                             expected=expected, actual=actual,
                             hint="the embedder bert-int accepts other models")  # fmt: skip
    shape = _shape(data[CONFIGURATION], folder / CONFIGURATION)
    check_modules(folder)
    tensors = _tensors(data[WEIGHTS], shape, folder / WEIGHTS)
    return Files(
        folder,
        IntegerModel(shape, scales, _integers(tensors, shape, scales, folder / WEIGHTS)),
        _tokenizer(data[TOKENIZER], shape, folder / TOKENIZER),
        sha256(data[WEIGHTS]).hexdigest(),
        sha256(data[TOKENIZER]).hexdigest(),
    )


def load_scales(folder: Path, default: Scales) -> Scales:
    """The scales in the folder's `scales.json`, or the default if it has none.

    :raises SetupError: the file is not well-formed
    """
    path = folder / SCALES
    if not path.exists():
        return default
    return Scales.parse(_json(_read(path, MAX_SMALL_FILE), path), field=str(path))


def _read(path: Path, limit: int) -> bytes:
    try:
        with open_regular(path) as handle:
            data = handle.read(limit + 1)
    except OSError as exc:
        raise SetupError.of_os_error(
            exc, "a file of the model cannot be read", field=path,
            hint=f"name the folder that has {CONFIGURATION}, {WEIGHTS} and {TOKENIZER}",
        ) from exc  # fmt: skip
    if len(data) > limit:
        raise SetupError(
            "a file of the model is too long", field=str(path), expected=f"at most {limit} bytes"
        )
    return data


def _value(data: bytes, path: Path) -> Json:
    """The JSON value of a file. Published configurations contain fractions, which the project's own files do not.

    :raises SetupError: the file is no JSON, or an object has a name twice
    """

    def once(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        result = dict(pairs)
        if len(result) < len(pairs):
            raise ValueError("an object has a name twice")
        return result

    try:
        value: Json = json.loads(data.decode(), object_pairs_hook=once)
    except (ValueError, RecursionError) as exc:
        raise SetupError("a file of the model is no JSON", field=str(path), actual=str(exc)) from exc
    return value


def _json(data: bytes, path: Path) -> dict[str, Json]:
    value = _value(data, path)
    if not isinstance(value, dict):
        raise SetupError("a file of the model is no JSON object", field=str(path))
    return value


def _shape(data: bytes, path: Path) -> Shape:
    """The size in a `config.json`.

    :raises SetupError: the graph is another one than BERT's, or a size is missing or not supported
    """
    value = _json(data, path)
    for name, known in _GRAPH.items():
        actual = value.get(name, None if name in _REQUIRED else known[0])
        if actual not in known:
            raise SetupError("the model has a graph that is unknown here", field=f"{path}: {name}",
                             expected=known[0], actual=actual)  # fmt: skip
    epsilon = value.get("layer_norm_eps", _EPSILON)
    if not isinstance(epsilon, int | float) or not 0 <= epsilon <= _EPSILON:
        raise SetupError("the model has a graph that is unknown here", field=f"{path}: layer_norm_eps",
                         expected=f"at most {_EPSILON}", actual=epsilon)  # fmt: skip
    names = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size",
             "max_position_embeddings")  # fmt: skip
    sizes = []
    for name in names:
        size = value.get(name)
        if type(size) is not int:
            raise SetupError("the model's configuration has no size", field=f"{path}: {name}",
                             expected="an integer", actual=size)  # fmt: skip
        sizes.append(size)
    return Shape(*sizes)


def check_modules(folder: Path) -> None:
    """Check that sentence-transformers would apply no module after the pooling that changes the vector's direction.

    :raises SetupError: `modules.json` names another module
    """
    path = folder / "modules.json"
    if not path.is_file():
        return
    value = _value(_read(path, MAX_SMALL_FILE), path)
    kinds = [str(each.get("type")).rsplit(".", 1)[-1] if isinstance(each, dict) else "?"
             for each in (value if isinstance(value, list) else [value])]  # fmt: skip
    if kinds[:2] != ["Transformer", "Pooling"] or kinds[2:] not in ([], ["Normalize"]):
        raise SetupError("the model has modules that are unknown here", field=str(path),
                         expected="Transformer, Pooling, Normalize", actual=", ".join(kinds))  # fmt: skip


def _names(shape: Shape) -> dict[str, tuple[str, list[int]]]:
    """Each tensor's name in the file, by the parameter's name, with its shape there. A dense layer's matrix has a row
    for each output.
    """
    d, inner = shape.width, shape.inner
    out = {
        "word": ("embeddings.word_embeddings.weight", [shape.vocabulary, d]),
        "place": ("embeddings.position_embeddings.weight", [shape.places, d]),
        "gain": ("embeddings.LayerNorm.weight", [d]),
        "bias": ("embeddings.LayerNorm.bias", [d]),
    }
    for layer in range(1, shape.layers + 1):
        at = f"encoder.layer.{layer - 1}"
        for name, tensor, outputs, inputs in (
            ("q", "attention.self.query", d, d), ("k", "attention.self.key", d, d),
            ("v", "attention.self.value", d, d), ("a", "attention.output.dense", d, d),
            ("z", "intermediate.dense", inner, d), ("f", "output.dense", d, inner),
        ):  # fmt: skip
            out[f"{layer}.{name}"] = (f"{at}.{tensor}.weight", [outputs, inputs])
            out[f"{layer}.{name}.bias"] = (f"{at}.{tensor}.bias", [outputs])
        for number, tensor in ((1, "attention.output.LayerNorm"), (2, "output.LayerNorm")):
            out[f"{layer}.gain{number}"] = (f"{at}.{tensor}.weight", [d])
            out[f"{layer}.bias{number}"] = (f"{at}.{tensor}.bias", [d])
    return out


_KIND = "embeddings.token_type_embeddings.weight"


def _tensors(data: bytes, shape: Shape, path: Path) -> dict[str, npt.NDArray[np.float32]]:
    """The float32 tensors of a safetensors file by name: eight bytes with the header's length, the header as JSON, and
    the tensors.

    :raises SetupError: the file is truncated or not well-formed, or a tensor is missing, unknown, of another shape, of
        another type or not finite
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 2 <= length <= min(MAX_HEADER, len(data) - 8):
        raise SetupError("the weights are truncated or no safetensors file", field=str(path),
                         expected=f"a header within {len(data)} bytes", actual=length)  # fmt: skip
    header = _json(data[8 : 8 + length], path)
    body = memoryview(data)[8 + length :]
    expected = dict(_names(shape).values())
    unknown = sorted(header.keys() - expected.keys() - {"__metadata__", _KIND, *_UNUSED})
    if unknown:
        raise SetupError("the weights have a tensor that the configuration does not describe", field=str(path),
                         actual=unknown[0])  # fmt: skip
    out = {}
    for name in (*expected, _KIND):
        entry = header.get(name)
        if not isinstance(entry, dict):
            raise SetupError("the weights lack a tensor", field=str(path), expected=name)
        if entry.get("dtype") != "F32":
            raise SetupError("a tensor is not of type F32", field=f"{path}: {name}",
                             expected="F32", actual=entry.get("dtype"))  # fmt: skip
        dimensions = entry.get("shape")
        if name == _KIND:
            kinds = dimensions[0] if isinstance(dimensions, list) and dimensions else None
            wanted = [kinds if type(kinds) is int and 1 <= kinds <= 16 else 2, shape.width]
        else:
            wanted = expected[name]
        if dimensions != wanted:
            raise SetupError("a tensor has another shape", field=f"{path}: {name}",
                             expected=wanted, actual=dimensions)  # fmt: skip
        offsets = entry.get("data_offsets")
        size = 4 * int(np.prod(wanted))
        low = offsets[0] if isinstance(offsets, list) and len(offsets) == 2 else None
        if type(low) is not int or low < 0 or offsets != [low, low + size] or low + size > len(body):
            raise SetupError("a tensor lies outside the file", field=f"{path}: {name}",
                             expected=f"{size} bytes within {len(body)}", actual=offsets,
                             hint="the file may be truncated; copy it again")  # fmt: skip
        values = np.frombuffer(body[low : low + size], "<f4").reshape(wanted)
        if not np.isfinite(values).all():
            raise SetupError("a tensor has a value that is no finite number", field=f"{path}: {name}")
        out[name] = values
    return out


def _rounded(values: npt.NDArray[np.float32], name: str, path: Path) -> Integers:
    """w 2^12, rounded half to even. A float32 times 4,096 is exact in float64.

    :raises SetupError: a parameter needs more than 16 bits
    """
    result = np.rint(values.astype(np.float64) * (1 << WEIGHT_BITS))
    _check_limit(result, name, path)
    return result.astype(np.int64)


def _check_limit(values: npt.NDArray[np.float64] | Integers, name: str, path: Path) -> None:
    if values.min() < -WEIGHT_LIMIT or values.max() >= WEIGHT_LIMIT:
        extreme = values.min() if values.min() < -WEIGHT_LIMIT else values.max()
        raise SetupError("a parameter needs more than 16 bits at the step 2^-12", field=f"{path}: {name}",
                         expected=f"{-WEIGHT_LIMIT}..{WEIGHT_LIMIT - 1}", actual=int(extreme))  # fmt: skip


def _integers(
    tensors: Mapping[str, npt.NDArray[np.float32]], shape: Shape, scales: Scales, path: Path
) -> bytes:
    """The integer weights in the order of `Shape.parameters`.

    :raises SetupError: a parameter needs more than 16 bits, or a sum of products more than 32
    """
    names, parts = _names(shape), []
    values: dict[str, Integers] = {}
    for parameter, rows, columns in shape.parameters():
        name = names[parameter][0]
        integers = _rounded(tensors[name], name, path)
        if parameter == "place":
            integers = integers + _rounded(tensors[_KIND][0], _KIND, path)
            _check_limit(integers, f"{name} with {_KIND}", path)
        elif rows > 1 and parameter != "word":
            integers = integers.T
        if parameter != "word":
            values[parameter] = integers
        parts.append(integers.reshape(rows, columns).astype("<i2").tobytes())
    for layer in range(1, shape.layers + 1):
        for name, bits, residual in (("q", scales.x, None), ("k", scales.x, None), ("v", scales.x, None),
                                     ("a", scales.o, scales.o), ("z", scales.x, None),
                                     ("f", scales.g, scales.g)):  # fmt: skip
            matrix, bias = values[f"{layer}.{name}"], values[f"{layer}.{name}.bias"]
            largest = np.abs(matrix).sum(0) * ACTIVATION_LIMIT + (np.abs(bias) << bits)
            if residual is not None:
                largest = largest + (ACTIVATION_LIMIT << (WEIGHT_BITS + residual - scales.x))
            if largest.max() >= ACCUMULATOR_LIMIT:
                raise SetupError("a sum of products can need more than 32 bits",
                                 field=f"{path}: {names[f'{layer}.{name}'][0]}",
                                 expected=f"below {ACCUMULATOR_LIMIT}", actual=int(largest.max()))  # fmt: skip
    return b"".join(parts)


def _tokenizer(data: bytes, shape: Shape, path: Path) -> Tokenizer:
    """The tokenizer without padding and truncation.

    :raises SetupError: the package is missing, or the tokenizer is not the WordPiece tokenizer of this vocabulary
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as exc:
        raise SetupError("the integer encoder needs the package tokenizers", hint=_HINT) from exc
    value = _json(data, path)
    model, normalizer = value.get("model"), value.get("normalizer")
    kind = model.get("type") if isinstance(model, dict) else None
    form = normalizer.get("type") if isinstance(normalizer, dict) else None
    if (kind, form) != ("WordPiece", "BertNormalizer"):
        raise SetupError("the tokenizer is unknown here", field=str(path),
                         expected="WordPiece, BertNormalizer", actual=f"{kind}, {form}")  # fmt: skip
    try:
        result: Tokenizer = Tokenizer.from_str(data.decode())
    except Exception as exc:  # the library raises bare Exception subclasses of its own
        raise SetupError("the tokenizer cannot be loaded", field=str(path), actual=str(exc)) from exc
    if result.get_vocab_size() != shape.vocabulary:
        raise SetupError("the tokenizer has another vocabulary than the model", field=str(path),
                         expected=f"{shape.vocabulary} tokens", actual=result.get_vocab_size())  # fmt: skip
    result.no_padding()
    result.no_truncation()
    return result
