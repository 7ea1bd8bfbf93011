"""The coalition proof's claim: every two compared records with vectors of cosine at least theta have the same label, a
label is a function of the account, each label has at most c accounts and at most c_tenant of one tenant, and the
vectors are the vectors of the records' cq. In integers, with theta = p/q: <a, b> > 0 and (q <a, b>)^2 >= p^2 |a|^2
|b|^2.

Both sides build the statement only from published entries (`estimate.statement`); labels stay hidden.
"""

from __future__ import annotations

from dataclasses import dataclass

MAX_RECORDS = 65_535
"""Maximum records of any system's coalition proof."""
MAX_DIMENSION = 882
"""Maximum components of a vector: packed, they fit one run of a list hash with a salt."""


@dataclass(frozen=True)
class CoalitionSize:
    """The parameters that determine a coalition proof's circuit or protocol.

    >>> CoalitionSize(64, 256, (8, 10)) == CoalitionSize(64, 256, (4, 5))
    False

    :param records: maximum records of a window
    :param dimension: components of a vector
    :param theta: the threshold p/q, which need not be in lowest terms
    """

    records: int
    dimension: int
    theta: tuple[int, int]


@dataclass(frozen=True)
class CoalitionStatement:
    """The public values of a coalition proof about at least one record.

    :param ctx: a field element that names the window, its entries before the window trailer, and every parameter of the
        estimate; the proof must be bound to it
    :param cq: query-vector commitment of each record, in ledger order
    :param account: number of each record's account, 0..accounts - 1
    :param tenant: number of each account's tenant
    :param first: for each record j the first record that it is compared with, as those from first[j] to j - 1 are
        within tau of it; never decreasing, first[j] <= j
    :param theta: the threshold p/q, 0 < p < q <= 1000
    :param c: maximum accounts of a label
    :param c_tenant: maximum accounts of a label in one tenant, 1 <= c_tenant <= c
    :param dimension: components of a vector
    :param capacity: maximum records of the policy's coalition proof

    >>> two = CoalitionStatement(ctx=1, cq=(5, 6), account=(0, 1), tenant=(0, 0), first=(0, 0), theta=(4, 5), c=1,
    ...                          c_tenant=1, dimension=256, capacity=64)
    >>> two.size
    CoalitionSize(records=64, dimension=256, theta=(4, 5))
    """

    ctx: int
    cq: tuple[int, ...]
    account: tuple[int, ...]
    tenant: tuple[int, ...]
    first: tuple[int, ...]
    theta: tuple[int, int]
    c: int
    c_tenant: int
    dimension: int
    capacity: int

    @property
    def size(self) -> CoalitionSize:
        """The parameters that determine the proof's circuit or protocol."""
        return CoalitionSize(self.capacity, self.dimension, self.theta)
