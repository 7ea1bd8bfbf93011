"""rag-audit: how much can a multi-tenant RAG service leak through retrieval to a coalition of accounts?

What a program needs is importable from here; each name is loaded on first use, so that a verifier never loads
what only a provider needs. `rag_audit.errors` has the errors. Every other module is internal: it may change, or move,
in any release.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    __version__: str
    from rag_audit._internal.canonical import jcs
    from rag_audit.account.account import Account
    from rag_audit.attest.window import Window
    from rag_audit.commit.draft import draft_policy
    from rag_audit.log.keys import VerifierKey
    from rag_audit.log.merkle import HashTree, leaf_hash
    from rag_audit.log.note import parse_note
    from rag_audit.log.signing import SigningKey
    from rag_audit.models.manifest import manifest_digest
    from rag_audit.models.passage import Passage
    from rag_audit.models.policy import Policy
    from rag_audit.models.publication import Publication
    from rag_audit.models.records import WitnessBeacon
    from rag_audit.models.trust import Require, Trust
    from rag_audit.models.trust_template import trust_template
    from rag_audit.models.windowfile import WindowFile
    from rag_audit.proofs.backends import protocols_digest
    from rag_audit.relation.noise import table_digest
    from rag_audit.report.verification import verify_window
    from rag_audit.retrieval.embedders import get_embedder
    from rag_audit.verify.verdict import Verdict
    from rag_audit.witness.witness import Witness

__all__ = [
    "Account",
    "HashTree",
    "Passage",
    "Policy",
    "Publication",
    "Require",
    "SigningKey",
    "Trust",
    "Verdict",
    "VerifierKey",
    "Window",
    "WindowFile",
    "Witness",
    "WitnessBeacon",
    "draft_policy",
    "get_embedder",
    "jcs",
    "leaf_hash",
    "manifest_digest",
    "parse_note",
    "protocols_digest",
    "table_digest",
    "trust_template",
    "verify_window",
]

_HOME = {
    "Account": "account.account",
    "HashTree": "log.merkle",
    "Passage": "models.passage",
    "Policy": "models.policy",
    "Publication": "models.publication",
    "Require": "models.trust",
    "SigningKey": "log.signing",
    "Trust": "models.trust",
    "Verdict": "verify.verdict",
    "VerifierKey": "log.keys",
    "Window": "attest.window",
    "WindowFile": "models.windowfile",
    "Witness": "witness.witness",
    "WitnessBeacon": "models.records",
    "draft_policy": "commit.draft",
    "get_embedder": "retrieval.embedders",
    "jcs": "_internal.canonical",
    "leaf_hash": "log.merkle",
    "manifest_digest": "models.manifest",
    "parse_note": "log.note",
    "protocols_digest": "proofs.backends",
    "table_digest": "relation.noise",
    "trust_template": "models.trust_template",
    "verify_window": "report.verification",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = _version()
    elif name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def _version() -> str:
    """The version of the installed distribution, which pyproject.toml alone states."""
    from importlib import metadata

    try:
        return metadata.version("ragaudit-zk")
    except metadata.PackageNotFoundError:
        return "unknown"  # the package's folder lies on the path without having been installed


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
