"""Provides the modules that the page's Python lacks: replacements for compiled packages and for parts of the
operating system."""

from __future__ import annotations

import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any


def stand_in() -> None:
    """Register the modules, before anything of the verifier is imported."""
    import rag_audit
    from rag_audit.report.browser.inside import arrays, native, signatures

    sys.modules["rag_audit._native"] = native
    vars(rag_audit)["_native"] = native
    typing = _module("numpy.typing", NDArray=arrays.Absent, ArrayLike=arrays.Absent)
    sys.modules["numpy"] = arrays
    arrays.__dict__["typing"] = typing
    hazmat = "cryptography.hazmat.primitives"
    for package in (
        "cryptography",
        "cryptography.hazmat",
        hazmat,
        f"{hazmat}.asymmetric",
        f"{hazmat}.ciphers",
    ):
        _module(package, __path__=[], serialization=signatures.serialization)
    _module(
        "cryptography.exceptions",
        InvalidSignature=signatures.InvalidSignature,
        InvalidTag=signatures.InvalidTag,
    )
    _module(
        f"{hazmat}.asymmetric.ed25519",
        Ed25519PublicKey=signatures.Ed25519PublicKey,
        Ed25519PrivateKey=signatures.Ed25519PrivateKey,
    )
    _module(f"{hazmat}.ciphers.aead", ChaCha20Poly1305=signatures.ChaCha20Poly1305)
    _module("platformdirs", user_cache_dir=lambda *_, **__: "/home/pyodide/.cache")
    for absent in ("grp", "pwd", "fcntl", "resource", "ssl", "termios"):
        if absent not in sys.modules and importlib.util.find_spec(absent) is None:
            _module(absent)
    threading.Thread = _NoThread  # type: ignore[assignment,misc]


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


class _NoThread:
    """A thread without effect: a page has no threads, and no terminal that needs a progress display."""

    def __init__(self, *_: object, **__: object) -> None:
        self.daemon = True

    def start(self) -> None:
        """Return at once."""

    def join(self, timeout: float | None = None) -> None:
        """Return at once."""
