"""What installs a package that is missing."""

from __future__ import annotations

EXTRAS = {
    "distributed": "dask",
    "faiss": "experiments",
    "matplotlib": "experiments",
    "onnxruntime": "onnx",
    "pymerkle": "provider",
    "ray": "ray",
    "scipy": "experiments",
    "sklearn": "experiments",
    "tokenizers": "provider",
    "wordllama": "provider",
}
"""Packages that not every role needs, and the extra that installs each."""
