"""A BERT encoder in float32, with which `bench.minilm` compares the integer embedder.

The package needs no float model, so this file is a measurement aid: it reads a model's folder as `minilm-int` does and
computes the same graph by numpy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from scipy.special import erf

Floats = npt.NDArray[np.float32]
PLACES = 1 << 13
"""Maximum number of padded places in one pass."""


class FloatBert:
    """The encoder of a folder with `config.json` and `model.safetensors`.

    :param folder: the model's folder
    """

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_bytes())
        self.layers: int = config["num_hidden_layers"]
        self.heads: int = config["num_attention_heads"]
        self.epsilon: float = config["layer_norm_eps"]
        self._tensors = load_file(folder / "model.safetensors")
        self.largest: dict[str, float] = {}
        """the largest magnitude of each kind of value in all passes so far, padded places apart"""

    def embed(self, texts: Sequence[Sequence[int]]) -> Floats:
        """The means of the last layer over each text's tokens, as unit vectors; shape (texts, width)."""
        width = self._tensors["embeddings.LayerNorm.weight"].size
        out = np.zeros((len(texts), width), np.float32)
        for part in self._batches(texts):
            out[part] = self._pass([texts[i] for i in part])
        return out

    def _batches(self, texts: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        part: list[int] = []
        for i in sorted(range(len(texts)), key=lambda i: len(texts[i])):
            if part and len(texts[i]) * (len(part) + 1) > PLACES:
                yield part
                part = []
            part.append(i)
        if part:
            yield part

    def _see(self, name: str, x: Floats, mask: npt.NDArray[np.bool_]) -> None:
        self.largest[name] = max(self.largest.get(name, 0.0), float(np.abs(x[mask]).max()))

    def _norm(self, name: str, x: Floats) -> Floats:
        centred = x - x.mean(-1, keepdims=True)
        deviation = np.sqrt((centred * centred).mean(-1, keepdims=True) + self.epsilon)
        result: Floats = centred / deviation * self._tensors[f"{name}.weight"] + self._tensors[f"{name}.bias"]
        return result

    def _dense(self, name: str, x: Floats) -> Floats:
        result: Floats = x @ self._tensors[f"{name}.weight"].T + self._tensors[f"{name}.bias"]
        return result

    def _pass(self, texts: Sequence[Sequence[int]]) -> Floats:
        places = max(map(len, texts))
        tokens = np.zeros((len(texts), places), np.int64)
        mask = np.zeros((len(texts), places), np.bool_)
        for row, text in enumerate(texts):
            tokens[row, : len(text)], mask[row, : len(text)] = text, True
        e = "embeddings."
        x = self._tensors[f"{e}word_embeddings.weight"][tokens]
        x = x + self._tensors[f"{e}position_embeddings.weight"][:places]
        x = self._norm(f"{e}LayerNorm", x + self._tensors[f"{e}token_type_embeddings.weight"][0])
        self._see("x", x, mask)
        hidden = np.where(mask[:, None, None, :], np.float32(0), np.float32(-1e9))
        for layer in range(self.layers):
            at = f"encoder.layer.{layer}."
            q, k, v = (self._dense(f"{at}attention.self.{name}", x) for name in ("query", "key", "value"))
            for name, value in (("q", q), ("q", k), ("v", v)):
                self._see(name, value, mask)
            q, k, v = (a.reshape(len(texts), places, self.heads, -1).transpose(0, 2, 1, 3) for a in (q, k, v))
            scores = q @ k.transpose(0, 1, 3, 2) / np.float32(np.sqrt(q.shape[-1])) + hidden
            scores -= scores.max(-1, keepdims=True)
            self._see("u", np.where(mask[:, None, None, :], scores, 0).min((1, 3)), mask)
            np.exp(scores, out=scores)
            scores /= scores.sum(-1, keepdims=True)
            o = (scores @ v).transpose(0, 2, 1, 3).reshape(x.shape)
            self._see("o", o, mask)
            x = self._norm(
                f"{at}attention.output.LayerNorm", x + self._dense(f"{at}attention.output.dense", o)
            )
            self._see("x", x, mask)
            z = self._dense(f"{at}intermediate.dense", x)
            self._see("z", z, mask)
            g = (z * np.float32(0.5) * (1 + erf(z * np.float32(0.5**0.5)))).astype(np.float32)
            x = self._norm(f"{at}output.LayerNorm", x + self._dense(f"{at}output.dense", g))
            self._see("x", x, mask)
        total = (x * mask[:, :, None]).sum(1)
        result: Floats = total / np.linalg.norm(total, axis=1, keepdims=True)
        return result
