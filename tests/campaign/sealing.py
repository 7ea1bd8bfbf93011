"""Mutations that every party signs, so that signatures and trees detect no fault."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_audit._internal.canonical import jcs
from tests.fuzz.mutate import Mutator
from tests.simulate.answers import Answerer
from tests.simulate.cases import FOLDER
from tests.simulate.randomness import drawn_from
from tests.simulate.stored_proofs import StoredProofs
from tests.simulate.windows import BASES, Base, run

if TYPE_CHECKING:
    from tests.campaign.verdicts import Campaign

CHANGED = (
    "entries",
    "entries",
    "entries",
    "policy",
    "roster",
    "tenants",
    "embedder",
    "proofs",
    "verification_keys",
)
KEPT: list[Any] = []
"""Folders of the windows, which live as long as the process."""


@cache
def _base() -> Base:
    folder = tempfile.TemporaryDirectory()
    KEPT.append(folder)
    result = StoredProofs(FOLDER / "made.json", prove=False)
    return run(Path(folder.name), result, **BASES["few"])


def sealed(campaign: Campaign, draw: Mutator) -> dict[str, bytes]:
    """The files of a window of two questions, mutated and then sealed.

    A mutation that cannot be sealed, since the other parties would not even parse it, is handed over as it is.
    """
    subject = campaign.subjects["few"]
    with drawn_from("few"), tempfile.TemporaryDirectory() as folder:
        forge = Answerer(_base())
        part = draw.pick(*CHANGED)
        if part == "proofs":
            forge.proofs = draw.gentle({"/".join(map(str, k)): v for k, v in forge.proofs.items()})
            forge.proofs = {
                (k.rpartition("/")[0], int(k.rpartition("/")[2])): v for k, v in forge.proofs.items()
            }
        else:
            forge.value[part] = draw.gentle(forge.value[part])
        try:
            file, receipts = forge.seal(Path(folder))
        except Exception:  # another party's own refusal, in code of the tests
            return {**subject.files(), "window.json": jcs_or_none(forge.value) or jcs(subject.window)}
        result = {f"receipt-{n}.json": p.read_bytes() for n, p in enumerate(sorted(receipts.iterdir())[:1])}
        return {**subject.files(), **result, "window.json": jcs(file.dump())}


def jcs_or_none(value: Any) -> bytes | None:
    """The value's bytes, where it has any."""
    try:
        return jcs(value)
    except Exception:  # a mutation may leave a value that JSON lacks
        return None
