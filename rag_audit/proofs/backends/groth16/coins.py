"""Instances of the circuits about coins (docs/circuits.md): `kept`, `retrieve` of sampled tenants and of tenants
without noise, and `listing`.
"""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit._internal.canonical import Json
from rag_audit._internal.errors import PolicyError
from rag_audit.proofs.backends.groth16.instance import (
    PUBLIC_INPUTS,
    check_capacity,
    check_queries,
    check_selection,
    circuit_digest,
    main_file,
)
from rag_audit.relation.noise import check_gains, table_digest
from rag_audit.relation.scores import MAX_DIMENSION, ScoreWindow

KEPT_INPUTS = ("ctx", "c_seed", "beacon", "slot", "keep", "c_kept")
"""The public inputs of `kept`, in the order of the verification key."""
LISTING_INPUTS = (*PUBLIC_INPUTS, "c_kept", "held_before", "held_after", "chance", "threshold", "most")
"""The public inputs of `listing`."""
MAX_LISTING = 256
"""The most positions of a listing tenant: larger ones are the scan argument's."""
SAMPLED_INPUTS = (*PUBLIC_INPUTS, "c_kept")
"""The public inputs of `retrieve` of a sampled tenant."""


@dataclass(frozen=True)
class KeptInstance:
    """`kept`: the positions of a sampled tenant that count in a window. The probability is a public input.

    :param capacity: N, positions of the index
    :raises PolicyError: parameters that the circuit cannot be built for
    """

    capacity: int

    def __post_init__(self) -> None:
        check_capacity(self.capacity)

    @property
    def name(self) -> str:
        """The instance's name, such as `kept-n64`."""
        return f"kept-n{self.capacity}"

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """The six public inputs, in order."""
        return KEPT_INPUTS

    def main_source(self) -> str:
        """The circom file with the `main` component."""
        return main_file("kept", KEPT_INPUTS, f"Kept({self.capacity})")

    def digest(self) -> str:
        """SHA-256 over sources, compiler, flags and parameters."""
        return circuit_digest(self, {})


@dataclass(frozen=True)
class SampledInstance:
    """`retrieve` of a tenant that is sampled, or without noise, or both, for one record.

    :param capacity: N, positions of the index, a multiple of 8
    :param dimension: d, components of a vector
    :param top_k: K, positions that a record lists
    :param gains: the policy's noise gains; empty without noise
    :param lo: lower end of the score window, raw units
    :param hi: upper end of the score window, raw units
    :param lattice: R, a power of two
    :param sampled: whether positions that are not kept score 0
    :raises PolicyError: parameters that the circuit cannot be built for
    """

    capacity: int
    dimension: int
    top_k: int
    gains: tuple[int, ...]
    lo: int
    hi: int
    lattice: int
    sampled: bool

    def __post_init__(self) -> None:
        if self.gains:
            check_gains(self.gains)
        if self.gains and not self.sampled:
            raise PolicyError("a tenant with noise that is not sampled has another circuit", field="sampled")
        check_selection(
            self.capacity, self.dimension, self.top_k, self.gains, ScoreWindow(self.lo, self.hi, self.lattice)
        )

    @property
    def name(self) -> str:
        """The instance's name, such as `sampled-n64-d256-k5-w101x810-r64`, `sampled-n64-d256-k5-g1-w101x810-r64` with
        noise, or `exact-n64-d256-k5-w101x810-r64` without sampling.
        """
        gains = f"-g{'x'.join(map(str, self.gains))}" if self.gains else ""
        return (
            f"{'sampled' if self.sampled else 'exact'}-n{self.capacity}-d{self.dimension}-k{self.top_k}{gains}"
            f"-w{self.lo}x{self.hi}-r{self.lattice}"
        )

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """The public inputs of `retrieve`, and c_kept after them of a sampled tenant."""
        return SAMPLED_INPUTS if self.sampled else PUBLIC_INPUTS

    @property
    def extra(self) -> dict[str, Json]:
        """What the digest covers beside sources, compiler, flags and parameters: the noise table, if there is noise."""
        return {"noise_table": table_digest()} if self.gains else {}

    def main_source(self, queries: int = 1) -> str:
        """The circom file with the `main` component.

        :param queries: the number of records of a proof
        """
        before = f"{queries}, {self.capacity}, {self.dimension}, {self.top_k}"
        after = f"{self.lo}, {self.hi}, {self.lattice}"
        if self.gains:
            gains = ", ".join(map(str, self.gains))
            component = f"SampledNoise({before}, {len(self.gains)}, [{gains}], {after})"
        else:
            component = f"{'Sampled' if self.sampled else 'Exact'}({before}, {after})"
        return main_file("sampled", self.public_inputs, component)

    def digest(self) -> str:
        """SHA-256 over sources, compiler, flags, parameters and the digest of the noise table, if there is noise."""
        return circuit_digest(self, self.extra)


@dataclass(frozen=True)
class ListingInstance:
    """`listing`: successive lists of one account of a listing tenant. What the policy says about lists is public input.

    :param capacity: N, positions of the index, a multiple of 8, at most 256
    :param dimension: d, components of a vector
    :param queries: Q, the number of records of a proof, all of which are used
    :raises PolicyError: parameters that the circuit cannot be built for
    """

    capacity: int
    dimension: int
    queries: int = 1

    def __post_init__(self) -> None:
        check_capacity(self.capacity, MAX_LISTING)
        if not 1 <= self.dimension <= MAX_DIMENSION:
            raise PolicyError("dimension out of range", field="dimension", expected=f"1..{MAX_DIMENSION}",
                              found=self.dimension)  # fmt: skip
        if self.queries != 1:
            check_queries(self.queries)

    @property
    def name(self) -> str:
        """The instance's name, such as `listing-n64-d256`, or `listing-q4-n64-d256` for several records."""
        several = f"-q{self.queries}" if self.queries > 1 else ""
        return f"listing{several}-n{self.capacity}-d{self.dimension}"

    @property
    def public_inputs(self) -> tuple[str, ...]:
        """The public inputs, in order; those that differ between records stand for Q values each."""
        return LISTING_INPUTS

    def main_source(self) -> str:
        """The circom file with the `main` component."""
        return main_file(
            "listing", LISTING_INPUTS, f"Listing({self.queries}, {self.capacity}, {self.dimension})"
        )

    def digest(self) -> str:
        """SHA-256 over sources, compiler, flags and parameters."""
        return circuit_digest(self, {})
