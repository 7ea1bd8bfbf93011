"""The cheaters of tests/window/test_checks.py, as cases: each is sealed and proved as far as its provider could."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.simulate.answers import Answerer
from tests.simulate.cases import SHOWN, Fault
from tests.window import test_checks

SKIPPED = (
    # What this window's own form of the fault stands for (`forgeries`).
    "closing record counts other queries",
    "an eager proof other than the recorded one",
    "an eager proof of the embedding other than the recorded one",
    # One requirement that trust.toml leaves out is enough, one part of a manifest, one span of tau in each unit.
    "max_K_share absent", "max_delta absent", "max_theta absent", "max_score_hi absent", "min_score_width absent",
    "min_k_max absent", "min_tau absent", "max_abandoned absent", "--max-epsilon does not loosen trust.toml",
    "a manifest with another dimension", "a manifest with another scale", "a manifest with another form of hq",
    "a manifest that says more than the pinned one", "tau in positions, wanted in seconds", "tau shorter than wanted",
    "policy not well-formed: queries deleted before the end",
    "policy not well-formed: no score reaches the top of the window",
    # Its windows have no proofs of A1 anyway (`forgeries`).
    "A1 not proved",
    # The case of an abandoned window before this one stands for it: the two counts stand beside each other.
    "eight empty windows before this one",
    "more documents than the limit",
    # Nobody could prove anything about it.
    "proofs over the provider's own table",
)  # fmt: skip
"""Cheats that have no case here."""
EMBEDDED = (
    "a record without proof of its embedding", "proof of another record's embedding",
    "a record's two proofs for each other", "another circuit than the embedder's constants ask for",
    "another verification key of embed than the pinned one", "no verification key of embed",
)  # fmt: skip
"""Cheats that need a window whose records have proofs of A1."""
FEW = (
    "final checkpoint signed by another key", "final checkpoint of another origin", "final checkpoint without quorum",
    "final checkpoint of more entries", "a wrong seq", "a second opening", "not closed", "abandoned",
    "closing record counts other enrolments", "timestamp after the window", "timestamp before the window",
    "closed before the last query", "closed after the end was cosigned", "the end cosigned before the opening",
    "a second beacon for the opening", "a beacon for a query", "no receipts", "a certificate from nowhere",
    "estimated with another theta", "estimated with a smaller tau", "estimated with another unit of tau",
)  # fmt: skip
"""Cheats for which two questions are enough."""
SHOWN_APART = (*SHOWN, ("law-1", 2), ("law-2", 1), ("medicine-1", 2))
"""The receipts that are handed in where a cheat is about one of them."""
BEYOND = (
    "policy not well-formed: the score window is beyond reach",
    "policy not well-formed: a window too narrow for the circuit",
)
"""Policies for which there is no circuit, so that records keep the proofs that they have."""


def slug(text: str) -> str:
    """A folder's name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def from_one_index(forge: Answerer) -> None:
    """Both tenants' questions are answered, and proved, from the one index."""
    forge.indices["medicine"] = "law"


def by_ones(forge: Answerer) -> None:
    """The question is answered, and proved, for a vector that the embedder never gave."""
    forge.vectors["law-1", 2] = [1] * 64


MORE: dict[str, Callable[[Answerer], None]] = {
    "one index as two tenants": from_one_index,
    "cq is not the vector of the disclosed query": by_ones,
}
"""What a provider that can prove does besides."""


def _of(cheat: test_checks.MaliciousProver) -> Fault:
    options = dict(cheat.options)
    receipts = cheat.decides.startswith("receipt.") and not options
    disclosed = cheat.decides in ("receipt.disclosed", "proof.query_embedding")
    proving = not cheat.proofs and cheat.fault not in BEYOND
    # What is wrong with a header, or with what is asked for, shows in a small window as well.
    small = (
        cheat.fault in FEW
        or cheat.decides.startswith(("header.", "trust."))
        or (proving and "circuit" in cheat.decides)
    )

    def change(forge: Answerer) -> Any:
        cheat.change(forge)
        if cheat.fault in MORE:
            MORE[cheat.fault](forge)

    return Fault(
        name=slug(cheat.fault),
        says=cheat.fault,
        change=change,
        proving=proving,
        require=options.pop("require", {}),
        independent=options.pop("independent", None),
        shown=(*SHOWN, ("law-1", 2), ("law-2", 1), ("medicine-1", 1), ("medicine-1", 2))
        if receipts or disclosed
        else SHOWN,
        options=options,
        base="embedded"
        if cheat.fault in EMBEDDED
        else "disclosed"
        if disclosed
        else "few"
        if small
        else "honest",
        decides=cheat.decides,
    )


MALICIOUS = [_of(c) for c in test_checks.MALICIOUS if c.fault not in SKIPPED]
