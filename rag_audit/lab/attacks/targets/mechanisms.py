"""The mechanism of an engine, read from a command's option, and its certified bounds."""

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

    :param window: the embedder's score window; noise uses its range
    :param capacity: number of positions, which determines the flip probability of `listing:KEEP`
    :raises PolicyError: the text does not have the form, or a parameter is out of range
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
    """The certified epsilon over lists for this number of accounts with this number of queries each; infinite without a
    certified bound.

    A document on several positions loses privacy at each: the bound is epsilon times their number. For noise, which has
    a delta above 0, it is the bound for the same multiple of the queries, since losses at different positions add like
    losses of queries.

    :param delta: delta_policy, which randomized response does not need
    :param positions: positions that the document fills
    """
    if isinstance(mechanism, Noise):
        noise = _bounded(mechanism)
        return math.inf if noise is None else accounting.eps_at(noise, accounts * queries * positions, delta)
    if isinstance(mechanism, RandomisedList):
        return positions * mechanism.epsilon(accounts)
    return math.inf


def certified_auc(mechanism: Mechanism, accounts: int, queries: int) -> float | None:
    """The certified ceiling of the AUC of any test on lists that decides whether a position has one document, another
    or none; None without a certified bound.
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
