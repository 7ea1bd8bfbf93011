"""rag-audit: how much can a multi-tenant RAG service leak through retrieval to a coalition of accounts?

What a program needs is importable from here; each name is loaded on first use, so that a verifier never loads
what only a provider needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rag_audit.commit.draft import draft_policy
    from rag_audit.formats.policy import Policy
    from rag_audit.formats.publication import Publication
    from rag_audit.formats.records import WitnessBeacon
    from rag_audit.formats.trust import Trust
    from rag_audit.ledger.keys import SigningKey, VerifierKey
    from rag_audit.parties.account import Account
    from rag_audit.parties.provider.window import Window
    from rag_audit.parties.witness import Witness
    from rag_audit.verify.verifier import Verdict, verify_window

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
    "Account": "parties.account",
    "Policy": "formats.policy",
    "Publication": "formats.publication",
    "SigningKey": "ledger.keys",
    "Trust": "formats.trust",
    "Verdict": "verify.verifier",
    "VerifierKey": "ledger.keys",
    "Window": "parties.provider.window",
    "Witness": "parties.witness",
    "WitnessBeacon": "formats.records",
    "draft_policy": "commit.draft",
    "verify_window": "verify.verifier",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
