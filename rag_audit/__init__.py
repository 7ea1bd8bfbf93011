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
    from rag_audit._internal.canonical import jcs as jcs
    from rag_audit.account.account import Account as Account
    from rag_audit.attest.window import Window as Window
    from rag_audit.commit.draft import Embedding as Embedding
    from rag_audit.commit.draft import EstimatorParameters as EstimatorParameters
    from rag_audit.commit.draft import NoiseParameters as NoiseParameters
    from rag_audit.commit.draft import Period as Period
    from rag_audit.commit.draft import PrivacyTarget as PrivacyTarget
    from rag_audit.commit.draft import Tenants as Tenants
    from rag_audit.commit.draft import draft_policy as draft_policy
    from rag_audit.commit.preparing import Terms as Terms
    from rag_audit.log.keys import VerifierKey as VerifierKey
    from rag_audit.log.merkle import HashTree as HashTree
    from rag_audit.log.merkle import leaf_hash as leaf_hash
    from rag_audit.log.note import parse_note as parse_note
    from rag_audit.log.signing import SigningKey as SigningKey
    from rag_audit.models.manifest import manifest_digest as manifest_digest
    from rag_audit.models.passage import Passage as Passage
    from rag_audit.models.policy import Policy as Policy
    from rag_audit.models.publication import Publication as Publication
    from rag_audit.models.records import WitnessBeacon as WitnessBeacon
    from rag_audit.models.trust import Require as Require
    from rag_audit.models.trust import Trust as Trust
    from rag_audit.models.trust_template import trust_template as trust_template
    from rag_audit.models.windowfile import WindowFile as WindowFile
    from rag_audit.proofs.backends import protocols_digest as protocols_digest
    from rag_audit.relation.noise import table_digest as table_digest
    from rag_audit.report.verification import verify_window as verify_window
    from rag_audit.retrieval.embedders import get_embedder as get_embedder
    from rag_audit.verify.inputs import VerifierOptions as VerifierOptions
    from rag_audit.verify.verdict import Verdict as Verdict
    from rag_audit.witness.witness import Witness as Witness

_HOME = {
    "Account": "account.account",
    "Embedding": "commit.draft",
    "EstimatorParameters": "commit.draft",
    "HashTree": "log.merkle",
    "NoiseParameters": "commit.draft",
    "Passage": "models.passage",
    "Period": "commit.draft",
    "Policy": "models.policy",
    "PrivacyTarget": "commit.draft",
    "Publication": "models.publication",
    "Require": "models.trust",
    "SigningKey": "log.signing",
    "Tenants": "commit.draft",
    "Terms": "commit.preparing",
    "Trust": "models.trust",
    "Verdict": "verify.verdict",
    "VerifierKey": "log.keys",
    "VerifierOptions": "verify.inputs",
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

__all__ = sorted(_HOME)


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
