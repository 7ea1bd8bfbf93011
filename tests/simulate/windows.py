"""Honest windows, each run by every party with the same keys, salts and dates in every run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_audit._internal.canonical import jcs
from rag_audit.attest.query import Retained
from rag_audit.attest.window import Window
from rag_audit.commit.commitment import Commitment
from rag_audit.mechanisms.base import TableShape
from rag_audit.mechanisms.noise import Noise
from rag_audit.mechanisms.sampling import Sampling
from rag_audit.models.chain import ClosedWindow
from rag_audit.models.passage import Passage
from rag_audit.models.policy import Policy
from rag_audit.models.trust import Groth16Pin, Require
from rag_audit.models.windowfile import WindowFile
from rag_audit.proofs.backends.groth16.keys import VerificationKey
from rag_audit.proofs.proving import backend
from rag_audit.proofs.statements.tenant import tenant_public
from rag_audit.relation.bernoulli import PROBABILITY_RANGE
from rag_audit.retrieval.embedders import Embedder, published_constants
from tests.simulate.randomness import drawn_from
from tests.simulate.stored_proofs import StoredProofs
from tests.window.simulator import EMBEDDER, QUESTIONS, STRICT, TEXTS, Finished, Service

ASKED = ("law-1", "medicine-1", "law-2", "law-1", "medicine-1")
"""Who asks, in order: two accounts of one tenant, one of the other, and two of them twice."""
REQUIRED: dict[str, Any] = {**STRICT, "query_embedding": "declared"}


@dataclass(kw_only=True)
class Base(Finished):
    """A finished window that is proved by hand, and what its provider knows."""

    stored_proofs: StoredProofs
    commitment: Commitment
    embedder: Embedder
    retained: Mapping[str, Retained]
    """the questions by hq"""

    def trust_text(
        self,
        *,
        policy: Policy | None = None,
        independent: Sequence[str] = ("law-1", "medicine-1"),
        **require: Any,
    ) -> str:
        """What this window's verifier trusts, with keys that were made once."""
        pins = [
            Groth16Pin(
                circuit=i.digest(),
                vk=VerificationKey.parse(self.stored_proofs.key(i), field="key").digest,
                setup="unsafe",
            )
            for i in self.service.circuits(policy or self.policy)
        ]
        return self.service.trusting(pins, Require(**{**REQUIRED, **require}), independent)

    def keys(self) -> dict[str, Any]:
        """The verification keys that the window publishes."""
        keys = {i.digest(): self.stored_proofs.key(i) for i in self.service.circuits(self.policy)}
        for part in (p for p in self.policy.tenants if p.system == "scan"):
            tenant = self.commitment.tenants[part.tenant]
            public = tenant_public(
                tenant.entry, policy=self.policy, manifest=self.commitment.manifest, header_digest="",
                points=tenant.points,
            )  # fmt: skip
            keys.update(backend("scan").records("retrieve", public).published_keys())
        return keys


def run(
    root: Path,
    stored_proofs: StoredProofs,
    *,
    name: str = "honest",
    requested: Sequence[str] = ASKED,
    follows: bool = False,
    disclose: bool = False,
    **changes: Any,
) -> Base:
    """One window from commitment to cosigned end, without proofs.

    :param requested: who asks, in order
    :param follows: run an honest window before it, which is the same as `honest` to the byte
    :param changes: of the policy
    """
    with drawn_from(name):
        service = Service(root)
        previous = None
        if follows:
            first = _window(service, "window", ASKED)
            first.shut()
            file = WindowFile.load(first.directory / "public")
            previous = ClosedWindow.of(file, field="window.json").as_previous()
            service.clock.now = first.header.closes_at + 1
            changes = {"window": "w-2", "previous": previous, **changes}
        window = _window(service, "second" if follows else "window", requested, **changes)
        receipts = service.receipts(window, root / "verifier" / "receipts", disclose=disclose)
        retained = {r.hq: window.context.retained(r) for r in window.records}
        commitment, embedder = window.commitment, window.context.embedder
        window.shut()
    file = WindowFile.load(window.directory / "public")
    base = Base(
        service, window.directory, file, window.policy, receipts,
        stored_proofs=stored_proofs, commitment=commitment, embedder=embedder, retained=retained,
    )  # fmt: skip
    value = {**json.loads(jcs(file.dump())), "coalition_proof": None, "proofs": {}}
    base.file = WindowFile.parse({**value, "verification_keys": base.keys()}, field="window.json")
    return base


def _window(service: Service, folder: str, requested: Sequence[str], **changes: Any) -> Window:
    """A window that was opened, asked and closed."""
    window = service.open(folder, **{"table": None, "system": "groth16", **changes})
    asking: dict[str, int] = {}
    for account in requested:
        tenant = account.split("-")[0]
        number = asking[tenant] = asking.get(tenant, -1) + 1
        service.ask(window, account, QUESTIONS[tenant][number])
    service.finish(window)
    return window


KEEP = 7 * PROBABILITY_RANGE // 10
FEW = ("law-1", "medicine-1")
SAMPLED_REQUIRED: dict[str, Any] = {
    "mechanisms": ["noise", "sampling"],
    "max_exclusion_factor": "3.3334",
    "min_keep": "0.7",
}
BASES: dict[str, dict[str, Any]] = {
    "honest": {},
    "disclosed": {"disclose": True},
    "embedded": {
        "requested": ("law-1", "medicine-1", "law-2", "law-1"),
        "table": published_constants(EMBEDDER).table,
    },
    "few": {"requested": FEW},
    "in-a-row": {"requested": FEW, "follows": True},
    "sampling": {
        "requested": FEW,
        "mechanisms": {"law": Sampling(keep=KEEP), "medicine": Noise(keep=KEEP)},
    },
    "documents": {
        "requested": FEW,
        "system": {"law": "scan", "medicine": "groth16"},
        "mechanisms": {"law": Sampling(keep=KEEP, documents=TableShape(8, 2, 2)), "medicine": Noise()},
    },
    "noise-documents": {
        "requested": FEW,
        "system": "scan",
        "eps_acc": "100",
        "gains": (1, 8),
        "mechanisms": dict.fromkeys(("law", "medicine"), Noise(documents=TableShape(8, 3, None))),
        "documents": {
            "law": [Passage(text, document=key) for text, key in zip(TEXTS["law"], "aaabc", strict=True)],
            "medicine": [
                Passage(text, document=key) for text, key in zip(TEXTS["medicine"], "aabc", strict=True)
            ],
        },
    },
    "certified": {"coalition_proof": ("groth16", 8)},
    "scan": {"requested": FEW, "system": {"law": "scan", "medicine": "groth16"}},
}
"""Options of `run` for each honest window."""
