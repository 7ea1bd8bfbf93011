"""The engine's side of a cell: the policy's noise, and the upper bounds that a window with it would certify."""

from __future__ import annotations

from functools import lru_cache

from rag_audit.mechanisms import accounting
from rag_audit.mechanisms.accounting import Mechanism, Membership
from rag_audit.mechanisms.accounting.calibration import calibrate

DELTA_ACC = "1e-6"
"""The paper's delta of an account."""
LATTICE = 16


@lru_cache(maxsize=64)
def mechanism(eps_acc: int, n: int, lattice: int = LATTICE) -> Mechanism:
    """The minimum noise of a policy by equation (3.4), as `provider policy new --calibration classical` finds it."""
    return calibrate("classical", n=n, delta_acc=DELTA_ACC, eps_acc=eps_acc, lattice=lattice).mechanism


@lru_cache(maxsize=256)
def certified(noise: Mechanism, queries: int) -> Membership:
    """Upper bounds on every membership test with that many queries by the coalition."""
    return accounting.membership(noise, queries)
