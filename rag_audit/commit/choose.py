"""The choice of noise: the least noise that meets a target, over the lattices that a policy may have."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.defaults import EPS_JOINT
from rag_audit.models.policy import Calibration as PolicyCalibration

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


@dataclass(frozen=True)
class NoiseTarget:
    """The noise that a policy is to have, or the target for which it is chosen.

    :param n: queries an account may make in the window
    :param k_max: the largest coalition that the bound covers
    :param eps_acc: the target: epsilon of one account, at `delta_acc`
    :param eps_joint: the target: epsilon of `k_max` accounts together, at `delta_policy`
    :param gains: the given noise, instead of a target
    :param lattice: R, the number of steps of a score; None leaves the choice to `choose`
    :param positions: the maximum number of positions of a document, each of which has a loss at each query
    """

    n: int
    k_max: int
    eps_acc: str | None
    eps_joint: str | None
    calibration: PolicyCalibration
    delta_acc: str
    delta_policy: str
    gains: tuple[int, ...] | None
    lattice: int | None
    positions: int = 1

    def choose(self) -> Chosen:
        """The given noise, or the least noise that meets the target (`EPS_JOINT` by default).

        :raises PolicyError: more than one of noise, eps_acc and eps_joint is given, or the target is out of reach
        """
        from rag_audit.mechanisms.accounting import Mechanism
        from rag_audit.mechanisms.accounting.calibration import Calibration, calibrate
        from rag_audit.mechanisms.accounting.values import text

        gains = self.gains
        if self.eps_joint is not None and (self.eps_acc is not None or gains is not None):
            raise PolicyError(
                "more than one target is given",
                field="--eps-joint",
                expected="one of --eps-acc, --eps-joint and --gains",
                actual="--eps-acc" if self.eps_acc is not None else "--gains",
            )
        if gains is not None:
            mechanism = Mechanism(gains, self.lattice or DEFAULT_LATTICE)
            why = "The options state the noise, without a target."
            return Chosen(gains, mechanism.lattice, self.eps_acc or DEFAULT_EPS_ACC, why)
        eps_joint = self.eps_joint or (EPS_JOINT if self.eps_acc is None else None)
        result: list[Calibration] = []
        refused: PolicyError | None = None
        for choice in LATTICES if self.lattice is None else (self.lattice,):
            try:
                result.append(
                    calibrate(
                        self.calibration,
                        n=self.n * self.positions,
                        delta_acc=self.delta_acc,
                        eps_acc=self.eps_acc,
                        eps_joint=eps_joint,
                        k=self.k_max,
                        delta=self.delta_policy,
                        lattice=choice,
                    )
                )
            except PolicyError as exc:
                refused = exc
        if not result:
            assert refused is not None
            raise refused
        best = min(result, key=lambda c: len(c.mechanism.gains))  # the first of these has the finest lattice
        target = (
            f"eps_joint {eps_joint} for {self.k_max} accounts"
            if eps_joint
            else f"eps_acc {self.eps_acc} for one account"
        )
        about = "" if self.positions == 1 else f" about documents of at most {self.positions} positions"
        finest = "" if self.lattice else f" of {LATTICES}"
        why = (
            f"The smallest noise for {target}, {self.n} queries each{about}, by the {self.calibration}"
            f" calibration: with the fewest gains, and then the finest lattice{finest}."
        )
        return Chosen(best.mechanism.gains, best.mechanism.lattice, self.eps_acc or text(best.eps_acc), why)
