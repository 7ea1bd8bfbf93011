"""rag-audit: how much can a multi-tenant RAG service leak through retrieval to a coalition of accounts?

What a program needs is importable from here; each name is loaded on first use, so that a verifier never loads
what only a provider needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_audit.account import Account
    from rag_audit.ledger.note import SigningKey, VerifierKey
    from rag_audit.policy import Policy, draft_policy
    from rag_audit.publication import Publication
    from rag_audit.records import WitnessBeacon
    from rag_audit.trust import Trust
    from rag_audit.verify import Verdict, verify_window
    from rag_audit.window import Window
    from rag_audit.witness import Witness

__version__ = "0.1.0"

__all__ = [
    "Account",
    "Policy",
    "Publication",
    "SigningKey",
    "Trust",
    "Verdict",
    "VerifierKey",
    "Window",
    "Witness",
    "WitnessBeacon",
    "draft_policy",
    "verify_window",
]

_HOME = {
    "Account": "account",
    "Policy": "policy",
    "Publication": "publication",
    "SigningKey": "ledger.note",
    "Trust": "trust",
    "Verdict": "verify",
    "VerifierKey": "ledger.note",
    "Window": "window",
    "Witness": "witness",
    "WitnessBeacon": "records",
    "draft_policy": "policy",
    "verify_window": "verify",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
