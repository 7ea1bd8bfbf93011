"""Instances of the circuits about coins (docs/circuits.md): `kept`."""

from __future__ import annotations

from dataclasses import dataclass

from rag_audit.proofs.groth16.instance import check_capacity, circuit_digest, main_file

KEPT_INPUTS = ("ctx", "c_seed", "beacon", "slot", "keep", "c_kept")
"""The public inputs of `kept`, in the order of the verification key."""


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
