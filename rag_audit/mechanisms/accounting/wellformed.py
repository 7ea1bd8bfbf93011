"""The refusal of a policy without a bound, with the reason and the nearest policy that works."""

from __future__ import annotations

from collections.abc import Sequence

from rag_audit._internal.errors import PolicyError
from rag_audit.mechanisms.accounting.methods import METHODS, meets, required_sigma_over_delta
from rag_audit.mechanisms.accounting.pmf import INFINITE_LOSS_SHARE, Mechanism, check_gain_tuple
from rag_audit.mechanisms.accounting.values import Real, check_delta_split, count, epsilon, probability, text
from rag_audit.relation.noise import MAX_GAIN_RATIO, MAX_GAINS


def check_policy(
    *,
    gains: Sequence[int],
    lattice: int,
    n: int,
    k_max: int,
    eps_acc: Real,
    delta_acc: Real,
    delta_policy: Real,
    calibration: str,
    positions: int = 1,
) -> Mechanism:
    """Check all of the accountant's conditions on a policy, and return the policy's mechanism.

    >>> made = dict(n=10, k_max=2, eps_acc="4", delta_acc="1e-6", delta_policy="1e-5", calibration="exact")
    >>> check_policy(gains=(1, 2, 15), lattice=64, **made)
    Mechanism(gains=(1, 2, 15), lattice=64)

    :param positions: s, the maximum number of positions of a document, each of which has a loss at each query
    :raises PolicyError: one error per fault, with the field: eps_acc <= 0; delta_acc or delta_policy outside
        (0, 1); delta_policy <= k_max delta_acc; n or k_max not a positive integer; gains that break the
        smoothness rule; lattice not a power of two or beyond the support; infinite losses above a hundredth
        of delta_policy; an unknown calibration, or one that sigma/Delta does not meet
    """
    n, k_max = count(n, "n"), count(k_max, "k_max")
    eps, d_acc = epsilon(eps_acc, "eps_acc"), probability(delta_acc, "delta_acc")
    delta = probability(delta_policy, "delta_policy")
    check_delta_split(delta_policy, k_max, delta_acc)
    mechanism = Mechanism(check_gain_tuple(gains), lattice)
    losses = n * count(positions, "positions")
    check_infinite_loss(mechanism, k_max * losses, delta)
    if calibration not in METHODS:
        raise PolicyError(
            "unknown calibration", field="calibration", expected=", ".join(METHODS), actual=repr(calibration)
        )
    if not meets(calibration, mechanism, n=losses, eps_acc=eps, delta_acc=d_acc):
        needed = required_sigma_over_delta(calibration, n=losses, eps_acc=eps, delta_acc=d_acc)
        about = "" if positions == 1 else f" about documents of {positions} positions"
        raise PolicyError(
            f"the noise does not meet the {calibration} calibration",
            field="gains",
            expected=f"sigma/Delta of about {needed:.5g} or more, for {n} queries{about} at eps_acc {text(eps)}",
            actual=f"{mechanism.sigma_over_delta:.5g}",
            hint="larger gains, a smaller lattice, fewer queries or a larger eps_acc",
        )
    return mechanism


def check_infinite_loss(mechanism: Mechanism, compositions: int, delta: float) -> None:
    """Refuse noise if its infinite losses over all queries take more than a hundredth of delta.

    >>> check_infinite_loss(Mechanism((1, 2, 15), 64), 20, 1e-5)

    :raises PolicyError: they take more; the hint names the nearest mechanisms within the limit
    """
    if not mechanism.fits(compositions, delta):
        limit = INFINITE_LOSS_SHARE * delta
        raise PolicyError(
            "too much probability of an infinite privacy loss: the noise is too narrow for the lattice",
            field="lattice",
            expected=f"at most {limit:.3g} (a hundredth of delta_policy) over {compositions} queries",
            actual=f"{compositions * mechanism.outside_mass:.3g}",
            hint=_nearest(mechanism, compositions, delta),
        )


def _nearest(mechanism: Mechanism, compositions: int, delta: float) -> str:
    """A hint: the largest lattice that works with these gains, and the least further gain that works with this one."""
    ways = []
    lattice = mechanism.lattice // 2
    while lattice and not Mechanism(mechanism.gains, lattice).fits(compositions, delta):
        lattice //= 2
    if lattice:
        ways.append(f"lattice {lattice} with these gains")
    if len(mechanism.gains) < MAX_GAINS:
        for ratio in range(1, MAX_GAIN_RATIO + 1):
            gains = (*mechanism.gains, ratio * mechanism.gains[-1])
            if Mechanism(gains, mechanism.lattice).fits(compositions, delta):
                ways.append(f"gains {','.join(map(str, gains))} with this lattice")
                break
    return "nearest that works: " + ", or ".join(ways) if ways else "fewer queries or a larger delta_policy"
