"""The command that installs a missing package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rag_audit._internal.errors import SetupError

EXTRAS = {
    "distributed": "dask",
    "docx": "documents",
    "faiss": "experiments",
    "h11": "serve",
    "haystack": "haystack",
    "httpx": "client",
    "langchain_core": "langchain",
    "llama_cpp": "language-model",
    "llama_index": "llama-index",
    "matplotlib": "experiments",
    "onnxruntime": "onnx",
    "openpyxl": "documents",
    "pptx": "documents",
    "prometheus_client": "serve",
    "psycopg": "postgres",
    "pyarrow": "documents",
    "pypdfium2": "documents",
    "qdrant_client": "documents",
    "ray": "ray",
    "scipy": "experiments",
    "selectolax": "documents",
    "sentence_transformers": "sentence-transformers",
    "sklearn": "experiments",
    "starlette": "serve",
    "tokenizers": "provider",
    "uvicorn": "serve",
    "webencodings": "documents",
    "wordllama": "provider",
}
"""Packages that not every role needs, and the extra that installs each."""


def missing(package: str, otherwise: str = "") -> SetupError:
    """The error where a package of `EXTRAS` is not installed.

    :param otherwise: an alternative to the installation, appended to the hint
    """
    extra = EXTRAS[package.partition(".")[0]]
    return SetupError(
        "a required package is not installed",
        field=package,
        hint=f"pip install 'ragaudit-zk[{extra}]'{otherwise}",
    )


@contextmanager
def needing(package: str) -> Iterator[None]:
    """A block of imports that need a package of `EXTRAS`.

    :raises SetupError: the package is not installed
    """
    try:
        yield
    except ImportError as exc:
        raise missing(package) from exc
