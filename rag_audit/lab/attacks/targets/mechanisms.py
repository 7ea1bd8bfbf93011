"""What an engine does to its scores before it answers, read from a command's option, and what is certified of it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TypeAlias

from rag_audit._internal.errors import PolicyError
from rag_audit.commit.explore.coins import RandomisedList, SampledTopK, parse_mechanism
from rag_audit.commit.explore.simulate import Noise
from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting import curves
from rag_audit.mechanisms.descriptions.listing import THRESHOLDS, UNRELATED
from rag_audit.models.attacks import AttackedMechanism
from rag_audit.relation.scores import ScoreWindow
from rag_audit.retrieval.embedders import DEFAULT_EMBEDDER


@dataclass(frozen=True)
class Plain:
    """Exact scores, first K."""


Mechanism: TypeAlias = Plain | Noise | SampledTopK | RandomisedList
FORM = "none, noise:GAINS:R (noise:1,1,1,1:64), sampling:KEEP, listing:KEEP, or listing:KEEP:CHANCE:THRESHOLD[:MOST]"


def parse(written: str, window: ScoreWindow, capacity: int) -> Mechanism:
    """Read a mechanism.

    :param window: the embedder's score window, whose range noise uses
    :param capacity: positions, from which `listing:KEEP` takes its chance of listing
    :raises PolicyError: it is not of the form, or a parameter is out of range
    """
    if written == "none":
        return Plain()
    noise = re.fullmatch(r"noise:([0-9]{1,9}(?:,[0-9]{1,9}){0,5}):([0-9]{1,9})", written)
    if noise is not None:
        gains = tuple(int(g) for g in noise[1].split(","))
        return Noise(gains, ScoreWindow(window.lo, window.hi, int(noise[2])))
    if re.fullmatch(r"listing:[0-9.]+", written):
        chance = min(UNRELATED, capacity // 2) / capacity
        written = f"{written}:{chance:.9f}:{THRESHOLDS[DEFAULT_EMBEDDER]}"
    if written.startswith(("sampling:", "listing:")):
        return parse_mechanism(written)
    raise PolicyError("not a mechanism", field="--mechanism", expected=FORM, found=written)


def name_of(mechanism: Mechanism) -> str:
    """The mechanism in words."""
    if isinstance(mechanism, Plain):
        return "no noise"
    if isinstance(mechanism, Noise):
        gains = ",".join(map(str, mechanism.gains))
        return f"noise {gains} at R {mechanism.window.lattice}"
    return mechanism.label


def parameters(mechanism: Mechanism) -> AttackedMechanism:
    """The mechanism as attacks.json has it, in a policy's units."""
    if isinstance(mechanism, Plain):
        return AttackedMechanism(kind="none")
    if isinstance(mechanism, Noise):
        w = mechanism.window
        return AttackedMechanism(kind="noise", gains=[*mechanism.gains], lattice=w.lattice, lo=w.lo, hi=w.hi)
    if isinstance(mechanism, SampledTopK):
        return AttackedMechanism(kind="sampling", keep=mechanism.sampling.keep)
    return AttackedMechanism(kind="listing", keep=mechanism.sampling.keep, chance=mechanism.sampling.chance,
                             threshold=mechanism.threshold, listed_max=mechanism.most)  # fmt: skip


def certified_epsilon(
    mechanism: Mechanism, accounts: int, queries: int, delta: str, *, positions: int = 1
) -> float:
    """The certified epsilon over lists for so many accounts of so many queries each; infinite where none is certified.

    A document on several positions costs its loss at each: epsilon times their number, and for noise, whose delta is
    above 0, the bound of as many times the queries, since its losses at different positions add like those of queries.

    :param delta: delta_policy, which listing does not need
    :param positions: positions that the document fills
    """
    if isinstance(mechanism, Noise):
        noise = _bounded(mechanism)
        return math.inf if noise is None else accounting.eps_at(noise, accounts * queries * positions, delta)
    if isinstance(mechanism, RandomisedList):
        return positions * mechanism.epsilon(accounts)
    return math.inf


def certified_auc(mechanism: Mechanism, accounts: int, queries: int) -> float | None:
    """The certified ceiling of the AUC of any test on lists, whether a position holds one document, another
    or none; None where nothing is certified.
    """
    if isinstance(mechanism, Noise):
        noise = _bounded(mechanism)
        return None if noise is None else float(accounting.membership(noise, accounts * queries).auc_bound)
    if isinstance(mechanism, RandomisedList):
        return curves.auc_for(mechanism.sampling, accounts)
    return curves.auc(mechanism.sampling) if isinstance(mechanism, SampledTopK) else None


def _bounded(noise: Noise) -> accounting.Mechanism | None:
    """The mechanism that the accountant bounds; None where its support ends before one document's shift."""
    try:
        return accounting.Mechanism(noise.gains, noise.window.lattice)
    except PolicyError:
        return None
