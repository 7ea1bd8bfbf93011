"""The choice of noise: the least noise that meets a target, over the lattices that a policy may have."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.defaults import EPS_JOINT

LATTICES = (64, 32, 16)
"""The lattices for calibrating a target, finest first, if none is given."""
DEFAULT_GAINS = (1, 8, 64)
DEFAULT_LATTICE = 32
DEFAULT_EPS_ACC = "4"
"""A policy's text about the target for one account, if its noise was given."""


@dataclass(frozen=True)
class Chosen:
    """The noise chosen for a policy, its per-account epsilon, and the reason in words."""

    gains: tuple[int, ...]
    lattice: int
    eps_acc: str
    why: str


def choose_noise(
    *,
    gains: tuple[int, ...] | None,
    lattice: int | None,
    eps_acc: str | None,
    eps_joint: str | None,
    calibration: str,
    n: int,
    k_max: int,
    delta_acc: str,
    delta_policy: str,
) -> Chosen:
    """The given noise, or the least noise that meets the target (`EPS_JOINT` by default).

    :raises PolicyError: more than one of noise, eps_acc and eps_joint is given, or the target is out of reach
    """
    from rag_audit.mechanisms.accounting import Mechanism
    from rag_audit.mechanisms.accounting.calibration import Calibration, calibrate
    from rag_audit.mechanisms.accounting.values import text

    if eps_joint is not None and (eps_acc is not None or gains is not None):
        raise PolicyError(
            "more than one target is given",
            field="--eps-joint",
            expected="one of --eps-acc, --eps-joint and --gains",
            found="--eps-acc" if eps_acc is not None else "--gains",
        )
    if gains is not None:
        mechanism = Mechanism(gains, lattice or DEFAULT_LATTICE)
        why = "The noise was given, not chosen for a target."
        return Chosen(gains, mechanism.lattice, eps_acc or DEFAULT_EPS_ACC, why)
    if eps_acc is None:
        eps_joint = eps_joint or EPS_JOINT
    made: list[Calibration] = []
    refused: PolicyError | None = None
    for choice in LATTICES if lattice is None else (lattice,):
        try:
            made.append(
                calibrate(
                    calibration,
                    n=n,
                    delta_acc=delta_acc,
                    eps_acc=eps_acc,
                    eps_joint=eps_joint,
                    k=k_max,
                    delta=delta_policy,
                    lattice=choice,
                )
            )
        except PolicyError as exc:
            refused = exc
    if not made:
        assert refused is not None
        raise refused
    best = min(made, key=lambda c: len(c.mechanism.gains))  # the first of these has the finest lattice
    target = (
        f"eps_joint {eps_joint} for {k_max} accounts" if eps_joint else f"eps_acc {eps_acc} for one account"
    )
    why = (
        f"The least noise for {target}, {n} queries each, by the {calibration} calibration: with the fewest gains,"
        f" and then the finest lattice{'' if lattice else f' of {LATTICES}'}."
    )
    return Chosen(best.mechanism.gains, best.mechanism.lattice, eps_acc or text(best.eps_acc), why)
